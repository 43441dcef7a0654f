import numpy as np
import pytest
from hypothesis import given
from sklearn.metrics import f1_score

import mlconsensus as mlc
from mlconsensus.decision import expected_f1
from panels import DEGENERATE, panels


def annotators(m, prevalence, false_alarms, seed=0):
    """Raters who err on their own: each finds 60 to 90 % of the labels."""
    rng = np.random.default_rng(seed)
    truth = rng.random((1000, 12)) < prevalence
    predictions = [
        np.where(
            truth,
            rng.random(truth.shape) < hit_rate,
            rng.random(truth.shape) < false_alarms,
        )
        for hit_rate in rng.uniform(0.6, 0.9, m)
    ]
    return np.array(predictions), truth


@pytest.mark.parametrize("m", [3, 5, 9])
@pytest.mark.parametrize("prevalence", [0.03, 0.1, 0.3])
@pytest.mark.parametrize("false_alarms", [0.01, 0.05])
def test_false_alarms_of_annotators_do_not_add_up(m, prevalence, false_alarms):
    predictions, truth = annotators(m, prevalence, false_alarms)
    label_sets = mlc.combine(predictions).label_indicator
    majority = f1_score(truth, predictions.mean(axis=0) >= 0.5, average="micro")
    assert f1_score(truth, label_sets, average="micro") > majority - 0.02
    assert (
        abs(
            expected_f1.estimate_total_labels(mlc.Predictions(predictions))
            / truth.sum()
            - 1
        )
        < 0.35
    )


def test_models_that_miss_much_get_more_than_a_majority_gives():
    rng = np.random.default_rng(0)
    truth = rng.random((1000, 12)) < 0.1
    predictions = np.array([truth & (rng.random(truth.shape) < 0.3) for _ in range(7)])
    label_sets = mlc.combine(predictions).label_indicator
    majority = f1_score(truth, predictions.mean(axis=0) >= 0.5, average="micro")
    assert f1_score(truth, label_sets, average="micro") > majority + 0.3


def test_the_curve_is_what_a_rater_that_is_left_out_says():
    """Five raters who know the truth with hits 0.8 and false alarms 0.1: Bayes' rule gives `p` of each share."""
    predictions, truth = annotators(5, 0.2, 0.1)
    rng = np.random.default_rng(1)
    predictions = np.where(
        truth, rng.random(predictions.shape) < 0.8, rng.random(predictions.shape) < 0.1
    )
    shares, likely = expected_f1._curve(mlc.Predictions(predictions))
    np.testing.assert_allclose(shares, np.arange(5) / 4)
    yes = np.arange(5)
    odds = 0.2 / 0.8 * (0.8 / 0.1) ** yes * (0.2 / 0.9) ** (4 - yes)
    np.testing.assert_allclose(likely, odds / (1 + odds), atol=0.06)


@given(scores=panels())
def test_between_nothing_and_all(scores):
    panel = mlc.Predictions(scores)
    total = expected_f1.estimate_total_labels(panel)
    shares = np.concatenate(
        [np.ravel(block) for block in mlc.decision.vote_shares(panel)]
    )
    assert (
        (shares >= 0.5).sum() <= total <= max((shares >= 0.5).sum(), (shares > 0).sum())
    )


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_panels(name):
    consensus = mlc.combine(DEGENERATE[name])
    assert consensus.label_indicator.shape == consensus.scores.shape


def test_gold_says_how_many_labels_there_are():
    """Models whose scores are the square roots of probabilities say yes far too often."""
    rng = np.random.default_rng(0)
    likely = rng.beta(0.3, 1.5, (600, 10))
    truth = rng.random(likely.shape) < likely
    predictions = np.array(
        [
            np.clip(np.sqrt(likely) + rng.normal(0, 0.05, likely.shape), 0, 1)
            for _ in range(4)
        ]
    )
    gold = np.where(np.arange(600)[:, None] < 100, truth, np.nan)
    without_gold, taught = (
        mlc.combine(predictions, gold=gold_labels).label_indicator
        for gold_labels in (None, gold)
    )
    before, after = (
        f1_score(truth[100:], chosen[100:], average="micro")
        for chosen in (without_gold, taught)
    )
    assert after > before
    assert (
        abs(taught[100:].sum() / truth[100:].sum() - 1)
        < 0.2
        < abs(without_gold[100:].sum() / truth[100:].sum() - 1)
    )
    assert (taught[:100] == truth[:100]).all()
