import numpy as np
import pytest
from hypothesis import given

import mlconsensus as mlc
from panels import DEGENERATE, panels


@given(scores=panels())
def test_rows_are_distributions(scores):
    found = mlc.mlcm_r(scores)
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=0, atol=1e-10)


def test_an_instance_without_labels_gets_the_prior():
    scores = DEGENERATE["an instance without labels"]
    edges = scores.sum(axis=(0, 1))
    np.testing.assert_allclose(mlc.mlcm_r(scores)[-1], edges / edges.sum())


def test_nothing_predicted_at_all_leaves_labels_equal():
    np.testing.assert_allclose(mlc.mlcm_r(np.zeros((2, 3, 4))), 0.25)


def test_a_label_never_predicted_scores_nothing():
    assert (mlc.mlcm_r(DEGENERATE["a label never predicted"])[:, -1] == 0).all()


def test_a_score_sets_the_weight_of_its_edge():
    """Two labels, one instance and model: the walk cannot move mass that a·b/(a + b) does not carry."""
    found = mlc.mlcm_r([[[0.75, 0.25]]], alpha=1e9)  # held to its own label, the walk stays at home
    np.testing.assert_allclose(found, [[0.75, 0.25]], atol=1e-6)


@pytest.mark.parametrize("alpha", [0, -1, np.nan, np.inf, "2", None, True])
def test_alpha_must_be_positive(alpha):
    for combiner in (mlc.MLCMr(alpha=alpha), mlc.BGCM(alpha=alpha)):
        with pytest.raises(mlc.InputError, match="alpha: found .* expected a finite number above 0"):
            combiner.fit_transform([[[1, 0]]])
