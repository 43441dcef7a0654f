import numpy as np
import pytest

import reference_filter
from mlconsensus.combiners import raters
from mlconsensus.combiners.raters import Moments


def one_round(agreement, r):
    """What reweighted least squares make of r, undamped."""
    weight = (1 - np.eye(len(r))) / (np.abs(agreement - np.outer(r, r)) + 1e-3)
    return (weight * agreement) @ r / (weight @ r**2)


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


@pytest.mark.parametrize("silent", [0.0, 0.2])
def test_copies_and_kin_are_found_as_by_loops_over_pairs(silent):
    rng = np.random.default_rng(0)
    Y = (rng.random((7, 60, 4)) < 0.4).astype(float)
    Y[rng.random(Y.shape) < silent] = np.nan
    Y[3] = Y[5] = Y[1]
    Y[2] = Y[0]
    Y[2, :4] = 1.0  # all but a copy, which says yes more often
    Y[6] = 0.0
    mean, covariance, both = reference_filter._moments(reference_filter.statistics(Y))
    moments = Moments(mean, covariance, both)
    assert raters.first_copies(moments).tolist() == [0, 1, 2, 1, 4, 1, 6]
    assert raters.first_copies(moments).tolist() == reference_filter._distinct(mean, moments.by_label(), both).tolist()
    kin = reference_filter._kinship(mean, moments.by_label(), both)
    np.testing.assert_allclose(raters.kinship(moments), kin, rtol=1e-12)
