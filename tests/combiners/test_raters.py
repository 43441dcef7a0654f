import itertools

import numpy as np
import pytest

import mlconsensus as mlc
from mlconsensus.combiners import rater_filter, raters


def one_round(agreement, r):
    """What reweighted least squares make of r, undamped."""
    weight = (1 - np.eye(len(r))) / (np.abs(agreement - np.outer(r, r)) + 1e-3)
    return (weight * agreement) @ r / (weight @ r**2)


def mcnemar_share(one, other):
    """How much of the difference of two models' rates chance explains, over all labels (McNemar's statistic)."""
    n, differ = len(one), (one != other).sum(axis=0)
    labels = differ > 0
    statistic = (n * (one.mean(axis=0) - other.mean(axis=0)))[labels] ** 2 / differ[labels]
    return min(1, labels.sum() / max(statistic.sum(), 1e-12)) if labels.any() else 1.0


def factor(reliable, noise, seed):
    found = np.outer(reliable, reliable) + np.random.default_rng(seed).normal(0, noise, 2 * (len(reliable),))
    found = np.clip((found + found.T) / 2, -1, 1)
    np.fill_diagonal(found, 1.0)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_the_common_factor_is_where_its_rounds_come_to_rest(seed):
    agreement = factor(np.linspace(0.4, 0.9, 10), 0.01, seed)
    r = raters._common_factor(agreement)
    assert np.abs(one_round(agreement, r) - r).max() < 1e-12
    beside = r + np.random.default_rng(seed).uniform(-1e-4, 1e-4, len(r))
    again = raters._minimum_near(agreement, 1 - np.eye(len(r)), beside)  # None would leave all to the rounds
    np.testing.assert_allclose(again, r, rtol=0, atol=1e-12)


def test_newton_leaves_the_minimum_to_the_rounds(monkeypatch):
    """Panels of copies, opposites and strangers have several minima: it goes to the one that rounds alone come near."""
    panels = [factor([0.9, 0.8, 0.7, 0.6, quality], 0.05, seed) for seed in range(5) for quality in (-0.7, 0.0, 0.6)]
    for agreement in panels:
        agreement[0, 1] = agreement[1, 0] = 1.0
    found = [raters._common_factor(agreement) for agreement in panels]
    monkeypatch.setattr(raters, "_minimum_near", lambda *_: None)
    for agreement, r in zip(panels, found, strict=True):
        np.testing.assert_allclose(r, raters._common_factor(agreement), atol=0.02)


def test_two_models_have_a_valley_of_minima():
    r = raters._common_factor(factor([0.5, 0.8], 0.0, 0))
    assert r[0] * r[1] == pytest.approx(0.4)
    assert r[0] == pytest.approx(r[1])


def seven_models(silent):
    """Copies (1, 3, 5), all but a copy that says yes more often (0, 2), strangers, and one that never says yes."""
    rng = np.random.default_rng(0)
    Y = (rng.random((7, 60, 4)) < 0.4).astype(float)
    Y[rng.random(Y.shape) < silent] = np.nan
    Y[3] = Y[5] = Y[1]
    Y[2] = Y[0]
    Y[2, :4] = 1.0
    Y[6] = 0.0
    return Y, rater_filter._moments(rater_filter.statistics(mlc.Predictions(Y)))


@pytest.mark.parametrize("silent", [0.0, 0.2])
def test_copies_are_found(silent):
    _, moments = seven_models(silent)
    assert raters.first_copies(moments).tolist() == [0, 1, 2, 1, 4, 1, 6]


def test_kin_are_found_as_by_loops_over_pairs():
    Y, moments = seven_models(0.0)
    kin = raters.kinship(moments)
    for k, q in itertools.combinations(range(7), 2):
        assert kin[k, q] == pytest.approx(mcnemar_share(Y[k], Y[q]) ** 2)
