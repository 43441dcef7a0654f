import numpy as np
import pytest

import mlconsensus as mlc
from mlconsensus.decision.calibration import calibrate_scores


def test_without_answers_scores_stay_as_they_are():
    scores = np.array([[0.1, 0.8]])
    np.testing.assert_allclose(
        calibrate_scores(scores, scores, np.full((1, 2), np.nan)), scores, atol=1e-9
    )


def test_few_answers_change_little_and_many_reach_the_truth():
    rng = np.random.default_rng(0)
    scores = rng.random((4000, 3))
    truth = rng.random(scores.shape) < scores**2
    away = [
        np.abs(calibrate_scores(scores, scores[:g], truth[:g]) - scores).mean()
        for g in (3, 2000)
    ]
    assert away[0] < away[1]
    assert (
        np.abs(calibrate_scores(scores, scores[:2000], truth[:2000]) - scores**2).mean()
        < 0.04
    )


def test_an_unusual_label_is_learned_and_a_label_without_gold_takes_the_prior():
    rng = np.random.default_rng(0)
    scores = rng.uniform(0.05, 0.95, (3000, 3))
    rate = scores * [1.0, 0.3, 0.3]
    truth = (rng.random(scores.shape) < rate).astype(float)
    truth[:, 2] = np.nan
    probabilities = calibrate_scores(scores, scores, truth)
    assert probabilities[:, 1].mean() == pytest.approx(rate[:, 1].mean(), abs=0.02)
    assert (
        probabilities[:, 1].mean()
        < probabilities[:, 2].mean()
        < probabilities[:, 0].mean()
    )


def test_order_of_scores_within_a_label_is_kept():
    rng = np.random.default_rng(1)
    scores = rng.uniform(0.01, 0.99, (50, 2))
    probabilities = calibrate_scores(scores, scores[:20], rng.random((20, 2)) < 0.5)
    np.testing.assert_array_equal(
        np.argsort(probabilities, axis=0), np.argsort(scores, axis=0)
    )


@pytest.mark.parametrize("method", ["weighted", "mlcm-r", "mlcm-a"])
def test_probabilities_of_a_consensus(method):
    panel, truth = mlc.datasets.make_panel(n_instances=300, random_state=0)
    gold = np.where(np.arange(300)[:, None] < 100, truth, np.nan)
    plain = mlc.combine(panel, method=method).probabilities
    with_gold = mlc.combine(panel, method=method, gold=gold)
    assert 0 <= plain.min() <= plain.max() <= 1
    np.testing.assert_array_equal(with_gold.probabilities[:100], truth[:100])
    rest = truth[100:]
    assert with_gold.probabilities[100:].mean() == pytest.approx(rest.mean(), abs=0.03)
    before, after = (
        -np.log(np.where(rest, p[100:], 1 - p[100:]).clip(1e-4)).mean()
        for p in (plain, with_gold.probabilities)
    )
    assert after < before * 1.05


def test_it_is_where_the_posterior_is_highest():
    """The gains of a, b and c equal their priors: N(0, 1), N(1, 1/4), N(0, 1/8)."""
    rng = np.random.default_rng(2)
    gold = rng.uniform(0.05, 0.95, (40, 3))
    truth = (rng.random(gold.shape) < gold**2).astype(float)
    truth[rng.random(gold.shape) < 0.2] = np.nan
    halves = calibrate_scores(np.array([[0.5] * 3, [0.75] * 3]), gold, truth)
    base, more = np.log(halves / (1 - halves))  # a + c, and b log 3 more
    b = ((more - base) / np.log(3)).mean()
    c_sum = base.sum() / (
        1 + 8 * 3
    )  # a = 8 Σ c, since all answers together move a as they move the c
    a = 8 * c_sum
    c = base - 8 * c_sum
    x = np.log(gold / (1 - gold))
    has_truth = ~np.isnan(truth)
    over = np.where(
        has_truth, 1 / (1 + np.exp(-(a + b * x + c))) - np.nan_to_num(truth), 0
    )
    assert over.sum() + a == pytest.approx(0, abs=1e-3)
    assert (over * x).sum() + 4 * (b - 1) == pytest.approx(0, abs=1e-3)
    np.testing.assert_allclose(over.sum(axis=0) + 8 * c, 0, atol=1e-3)
    assert abs(b - 1) > 0.05


def test_scores_without_odds_are_cut():
    scores = np.array([[0.0, 1.0, 0.0005, 2.0]])
    probabilities = calibrate_scores(scores, scores, np.full(scores.shape, np.nan))
    np.testing.assert_allclose(probabilities, [[0.001, 0.999, 0.001, 0.999]])
