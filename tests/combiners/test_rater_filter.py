"""What the rater filter promises beyond the contract of all methods."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mlconsensus as mlc
from panels import panels


def fitted(scores):
    return mlc.RaterFilter(rescale=False).fit_transform(scores)


@given(scores=panels(), data=st.data())
def test_a_copy_of_a_model_adds_nothing(scores, data):
    doubled = data.draw(st.integers(0, len(scores) - 1))
    more = np.concatenate([scores, scores[[doubled]]])
    np.testing.assert_allclose(fitted(more), fitted(scores), rtol=0, atol=1e-10)


def test_models_that_answer_at_random_leave_the_consensus_almost_as_it_is():
    panel, truth = mlc.datasets.make_panel(3000, 10, 5, quality=0.8, shared_errors=0, random_state=0)
    scores = panel.to_array()
    rng = np.random.default_rng(1)
    noise = np.stack([rng.random(truth.shape) < truth.mean(axis=0) for _ in range(3)]).astype(float)
    alone, among = fitted(scores), fitted(np.concatenate([scores, noise]))
    assert np.corrcoef(alone.ravel(), among.ravel())[0, 1] > 0.99
    voting = [mlc.majority_vote(given) for given in (scores, np.concatenate([scores, noise]))]
    assert np.corrcoef(*(given.ravel() for given in voting))[0, 1] < 0.97


def test_the_better_a_model_the_more_it_is_trusted():
    quality = [0.2, 0.4, 0.6, 0.8]
    panel, _ = mlc.datasets.make_panel(5000, 8, 4, quality=quality, shared_errors=0, random_state=0)
    overall = mlc.RaterFilter().fit(panel).solution_.overall
    assert (np.diff(overall) > 0).all()


@pytest.mark.parametrize("shift", [1, 2])
def test_labels_that_go_together_lend_each_other_what_models_missed(shift):
    """Two labels that are always true together: where models miss one of them, the other one speaks for it."""
    rng = np.random.default_rng(0)
    truth = np.repeat(rng.random((2000, 2)) < 0.2, 2, axis=1)  # labels 0 and 1, and labels 2 and 3
    scores = (truth & (rng.random((4, 2000, 4)) < 0.6)).astype(float)
    found = fitted(scores)
    only_first = (scores[:, :, 0] == 1).all(axis=0) & (scores[:, :, 1:] == 0).all(axis=(0, 2))
    assert only_first.any()
    assert (found[only_first, 1] > found[only_first, 1 + shift]).all()
