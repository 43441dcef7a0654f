import numpy as np
import pytest
from hypothesis import given

import mlconsensus as mlc
from panels import DEGENERATE, panels


@given(scores=panels())
def test_rows_are_distributions(scores):
    result = mlc.mlcm_r(scores)
    assert (result >= 0).all()
    np.testing.assert_allclose(result.sum(axis=1), 1, rtol=0, atol=1e-10)


def test_an_instance_without_labels_gets_the_prior():
    scores = DEGENERATE["an instance without labels"]
    edges = scores.sum(axis=(0, 1))
    np.testing.assert_allclose(mlc.mlcm_r(scores)[-1], edges / edges.sum())


def test_nothing_predicted_at_all_leaves_labels_equal():
    np.testing.assert_allclose(mlc.mlcm_r(np.zeros((2, 3, 4))), 0.25)


def test_a_label_never_predicted_scores_nothing():
    assert (mlc.mlcm_r(DEGENERATE["a label never predicted"])[:, -1] == 0).all()


def test_a_score_sets_the_weight_of_its_edge():
    """Two labels, one instance and model: the walk moves at most a·b/(a + b)."""
    result = mlc.mlcm_r(
        [[[0.75, 0.25]]], alpha=1e9
    )  # held to its own label, the walk stays at home
    np.testing.assert_allclose(result, [[0.75, 0.25]], atol=1e-6)


@pytest.mark.parametrize("alpha", [0, -1, np.nan, np.inf, "2", None, True])
def test_alpha_must_be_positive(alpha):
    for combiner in (mlc.MLCMr(alpha=alpha), mlc.BGCM(alpha=alpha)):
        with pytest.raises(
            mlc.InputError, match="alpha: found .* expected a finite number above 0"
        ):
            combiner.fit_transform([[[1, 0]]])


@pytest.mark.parametrize("restart", [0, 1, -0.5, 1.5, "half", np.nan])
def test_restart_must_be_a_probability(restart):
    with pytest.raises(mlc.InputError, match="restart: found .* expected a number"):
        mlc.MLCMr(restart=restart).fit_transform([[[1, 0]]])


def test_only_the_restart_walk_is_the_same_for_a_panel_ten_times_as_long():
    panel, _ = mlc.datasets.make_panel(100, 8, 3, random_state=0)
    once = panel.to_array()
    repeated = np.tile(once, (1, 10, 1))
    np.testing.assert_allclose(
        mlc.mlcm_r(repeated, restart=0.3)[:100],
        mlc.mlcm_r(once, restart=0.3),
        atol=1e-10,
    )
    assert np.abs(mlc.mlcm_r(repeated)[:100] - mlc.mlcm_r(once)).max() > 0.01


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-300, 1e-45])
def test_scores_that_vanish_in_float32_say_nothing(size):
    scores = np.random.default_rng(0).random((3, 50, 4))
    scores[:, :20] *= size
    fitted = mlc.MLCMr(weights=[1e6, 1, 1e-6]).fit(scores)
    result = fitted.transform(scores)
    np.testing.assert_allclose(
        result, fitted.transform(scores, dtype=np.float32), atol=1e-6
    )
    np.testing.assert_allclose(
        result[:20], np.broadcast_to(fitted.solution_.prior, (20, 4))
    )
