import numpy as np
import pytest

import mlconsensus as mlc
from mlconsensus.evaluation.calibration import calibrated


def test_without_answers_scores_stay_as_they_are():
    scores = np.array([[0.1, 0.8]])
    np.testing.assert_allclose(calibrated(scores, scores, np.full((1, 2), np.nan)), scores, atol=1e-9)


def test_few_answers_change_little_and_many_reach_the_truth():
    rng = np.random.default_rng(0)
    scores = rng.random((4000, 3))
    truth = rng.random(scores.shape) < scores**2
    away = [np.abs(calibrated(scores, scores[:g], truth[:g]) - scores).mean() for g in (3, 2000)]
    assert away[0] < away[1]
    assert np.abs(calibrated(scores, scores[:2000], truth[:2000]) - scores**2).mean() < 0.04


def test_a_label_of_its_own_kind_is_learned_and_one_without_answers_takes_what_others_have():
    rng = np.random.default_rng(0)
    scores = rng.uniform(0.05, 0.95, (3000, 3))
    rate = scores * [1.0, 0.3, 0.3]
    truth = (rng.random(scores.shape) < rate).astype(float)
    truth[:, 2] = np.nan
    found = calibrated(scores, scores, truth)
    assert found[:, 1].mean() == pytest.approx(rate[:, 1].mean(), abs=0.02)
    assert found[:, 1].mean() < found[:, 2].mean() < found[:, 0].mean()


def test_order_of_scores_within_a_label_is_kept():
    rng = np.random.default_rng(1)
    scores = rng.uniform(0.01, 0.99, (50, 2))
    found = calibrated(scores, scores[:20], rng.random((20, 2)) < 0.5)
    np.testing.assert_array_equal(np.argsort(found, axis=0), np.argsort(scores, axis=0))


@pytest.mark.parametrize("method", ["filter", "mlcm-r", "mlcm-a"])
def test_probabilities_of_a_consensus(method):
    panel, truth = mlc.datasets.make_panel(n_instances=300, random_state=0)
    gold = np.where(np.arange(300)[:, None] < 100, truth, np.nan)
    plain, known = mlc.combine(panel, method=method).probabilities, mlc.combine(panel, method=method, gold=gold)
    assert 0 <= plain.min() <= plain.max() <= 1
    np.testing.assert_array_equal(known.probabilities[:100], truth[:100])
    rest = truth[100:]
    assert known.probabilities[100:].mean() == pytest.approx(rest.mean(), abs=0.03)
    before, after = (
        -np.log(np.where(rest, p[100:], 1 - p[100:]).clip(1e-4)).mean() for p in (plain, known.probabilities)
    )
    assert after < before * 1.05
