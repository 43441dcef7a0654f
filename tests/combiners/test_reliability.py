"""Steps of the reliability estimate on correlations whose answer is known."""

import numpy as np
import pytest

from mlconsensus import WeightedConsensus
from mlconsensus.combiners.reliability import (
    estimate_reliability,
    find_families,
    find_signs,
    has_lone_model,
)


def precise(n_models, precision=10_000.0):
    """Return equal precisions of all pairs, 0 on the diagonal."""
    return precision * (1 - np.eye(n_models))


def correlate(reliability):
    """Return the correlations of independent models; Eq. (1)."""
    correlation = np.outer(reliability, reliability)
    np.fill_diagonal(correlation, 1.0)
    return correlation


@pytest.mark.parametrize("n_models", [3, 5, 9])
def test_reliabilities_are_those_that_made_the_correlations(n_models):
    reliability = np.linspace(0.8, 0.4, n_models)
    fitted = estimate_reliability(correlate(reliability), precise(n_models, 1e8))
    np.testing.assert_allclose(fitted, reliability, atol=0.01)


def test_inverted_models_get_a_negative_sign():
    reliability = np.array([0.7, -0.6, 0.5, 0.6, -0.4])
    signs = find_signs(correlate(reliability), precise(5))
    np.testing.assert_array_equal(signs, np.sign(reliability))


def test_a_weak_negative_correlation_is_not_evidence_of_inversion():
    """Five models agree; the last deviates by one standard error."""
    precision = precise(6, 100.0)
    correlation = correlate(np.array([0.7, 0.7, 0.7, 0.7, 0.7, 0.0]))
    correlation[-1, :-1] = -0.1 / np.sqrt(5)
    correlation[:-1, -1] = -0.1 / np.sqrt(5)
    assert (find_signs(correlation, precision) == 1).all()
    assert find_signs(correlation, 10_000 * precision)[-1] == -1


def test_a_pair_next_to_one_model_can_be_a_family_or_not():
    """Neither two models nor three of equal correlation have a lone model."""
    pair = np.array([[1.0, 0.7, 0.35], [0.7, 1.0, 0.35], [0.35, 0.35, 1.0]])
    assert has_lone_model(pair, precise(3))
    assert not has_lone_model(pair[:2, :2], precise(2))
    assert not has_lone_model(correlate(np.full(3, 0.7)), precise(3))


def test_independent_models_are_families_of_one():
    family = find_families(correlate(np.array([0.8, 0.7, 0.6, 0.5])), precise(4))
    assert len(set(family.tolist())) == 4


def test_models_with_common_errors_are_a_family():
    correlation = correlate(np.full(6, 0.6))
    correlation[:3, :3] = np.where(np.eye(3) > 0, 1.0, 0.8)
    family = find_families(correlation, precise(6))
    assert len(set(family[:3].tolist())) == 1
    assert len(set(family[3:].tolist())) == 3


def test_two_good_models_next_to_weak_ones_are_not_a_family():
    """Weak models see the reliability of good ones with large sampling errors."""
    quality = np.array([0.98, 0.98, 0.3, 0.3, 0.2, 0.2, 0.2])
    rng = np.random.default_rng(0)
    n_families = []
    for _ in range(20):
        truth = rng.random((200, 10)) < 0.3
        guesses = rng.random((7, *truth.shape)) < 0.3
        is_right = rng.random(guesses.shape) < quality[:, np.newaxis, np.newaxis]
        scores = np.where(is_right, truth, guesses)
        combiner = WeightedConsensus().fit(scores)
        n_families.append(len(set(combiner.families_.values())))
    assert n_families == [7] * 20
