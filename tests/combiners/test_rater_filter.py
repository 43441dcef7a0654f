"""What the rater filter promises beyond the contract of all methods."""

import numpy as np
import pytest

import mlconsensus as mlc


def fitted(scores):
    return mlc.RaterFilter(rescale=False).fit_transform(scores)


@pytest.mark.parametrize("silent", [0.0, 0.3])
def test_a_copy_of_a_model_adds_nothing(silent):
    """But for the one answer at the labels' frequencies that each rater's mean starts from."""
    panel, _ = mlc.datasets.make_panel(1000, 8, 5, random_state=0)
    scores = panel.to_array()
    scores[np.random.default_rng(0).random(scores.shape) < silent] = np.nan
    more = np.concatenate([scores, scores[[2]]])
    np.testing.assert_allclose(fitted(more), fitted(scores), rtol=0, atol=1e-3)


@pytest.mark.parametrize("silent", [0.0, 0.3])
@pytest.mark.parametrize("copies", [3, 5, 8])
def test_near_copies_do_not_carry_the_panel(copies, silent):
    """One annotator many times, with 3 % of the answers drawn anew, beside five others: ahead of voting, not behind."""
    rng = np.random.default_rng(copies)
    truth = rng.random((600, 10)) < np.linspace(0.05, 0.4, 10)
    answers = np.where(truth, rng.random((6, 600, 10)) < 0.7, rng.random((6, 600, 10)) < 0.08)
    anew = rng.random((copies, 600, 10)) < 0.03
    near = np.where(anew, rng.random(anew.shape) < truth.mean(axis=0), answers[5])
    scores = np.concatenate([answers[:5], near]).astype(float)
    scores[rng.random(scores.shape) < silent] = np.nan
    without = mlc.metrics.micro_auc(truth, fitted(np.concatenate([scores[:5], scores[[5]]])))
    found = mlc.metrics.micro_auc(truth, fitted(scores))
    assert found > mlc.metrics.micro_auc(truth, mlc.majority_vote(scores)) + 0.002
    assert found > without - 0.01


def test_without_a_signal_scores_are_votes():
    rng = np.random.default_rng(0)
    scores = (rng.random((7, 500, 6)) < 0.2).astype(float)
    combiner = mlc.RaterFilter().fit(scores)
    within = [
        np.corrcoef(a, b)[0, 1] for a, b in zip(combiner.transform(scores).T, mlc.majority_vote(scores).T, strict=True)
    ]
    assert min(within) > 0.95
    assert "hardly agree beyond chance" in combiner.saw(combiner.solution_)


def test_a_sparse_crowd_is_combined_in_proportion_to_what_was_said():
    """Three of two hundred raters on each instance: rater by rater nothing is known, together much is."""
    rng = np.random.default_rng(0)
    truth = rng.random((600, 8)) < 0.3
    scores = np.full((200, 600, 8), np.nan)
    for i in range(600):
        for k in rng.choice(200, 3, replace=False):
            scores[k, i] = truth[i] ^ (rng.random(8) < (0.05 if k % 2 else 0.35))
    gained = [mlc.metrics.micro_auc(truth, found) for found in (fitted(scores), mlc.majority_vote(scores))]
    assert gained[0] > gained[1] + 0.01


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
