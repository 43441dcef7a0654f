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
    scores = [
        np.where(
            truth,
            rng.random(truth.shape) < found,
            rng.random(truth.shape) < false_alarms,
        )
        for found in rng.uniform(0.6, 0.9, m)
    ]
    return np.array(scores), truth


@pytest.mark.parametrize("m", [3, 5, 9])
@pytest.mark.parametrize("prevalence", [0.03, 0.1, 0.3])
@pytest.mark.parametrize("false_alarms", [0.01, 0.05])
def test_false_alarms_of_annotators_do_not_add_up(m, prevalence, false_alarms):
    scores, truth = annotators(m, prevalence, false_alarms)
    found = mlc.combine(scores).label_indicator
    majority = f1_score(truth, scores.mean(axis=0) >= 0.5, average="micro")
    assert f1_score(truth, found, average="micro") > majority - 0.02
    assert (
        abs(
            expected_f1.estimate_total_labels(mlc.Predictions(scores)) / truth.sum() - 1
        )
        < 0.35
    )


def test_models_that_miss_much_get_more_than_a_majority_gives():
    rng = np.random.default_rng(0)
    truth = rng.random((1000, 12)) < 0.1
    scores = np.array([truth & (rng.random(truth.shape) < 0.3) for _ in range(7)])
    found = mlc.combine(scores).label_indicator
    majority = f1_score(truth, scores.mean(axis=0) >= 0.5, average="micro")
    assert f1_score(truth, found, average="micro") > majority + 0.3


def test_the_curve_is_what_a_rater_that_is_left_out_says():
    """Five models with hits 0.8 and false alarms 0.1: Bayes' rule gives `p`."""
    scores, truth = annotators(5, 0.2, 0.1)
    rng = np.random.default_rng(1)
    scores = np.where(
        truth, rng.random(scores.shape) < 0.8, rng.random(scores.shape) < 0.1
    )
    shares, likely = expected_f1._estimate_true_shares(mlc.Predictions(scores))
    np.testing.assert_allclose(shares, np.arange(5) / 4)
    yes = np.arange(5)
    odds = 0.2 / 0.8 * (0.8 / 0.1) ** yes * (0.2 / 0.9) ** (4 - yes)
    np.testing.assert_allclose(likely, odds / (1 + odds), atol=0.06)


@given(scores=panels())
def test_between_nothing_and_all(scores):
    panel = mlc.Predictions(scores)
    found = expected_f1.estimate_total_labels(panel)
    shares = np.concatenate(
        [np.ravel(block) for block in mlc.decision.vote_shares(panel)]
    )
    n_majority = ((shares > 0.5).sum() + (shares >= 0.5).sum()) / 2
    assert n_majority - 0.5 <= found <= max(n_majority, (shares > 0).sum()) + 0.5


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_panels(name):
    found = mlc.combine(DEGENERATE[name])
    assert found.label_indicator.shape == found.scores.shape


def test_gold_says_how_many_labels_there_are():
    """Scores that are square roots of probabilities predict too many labels."""
    rng = np.random.default_rng(0)
    likely = rng.beta(0.3, 1.5, (600, 10))
    truth = rng.random(likely.shape) < likely
    scores = np.array(
        [
            np.clip(np.sqrt(likely) + rng.normal(0, 0.05, likely.shape), 0, 1)
            for _ in range(4)
        ]
    )
    gold = np.where(np.arange(600)[:, None] < 100, truth, np.nan)
    found, taught = (
        mlc.combine(scores, gold=known).label_indicator for known in (None, gold)
    )
    before, after = (
        f1_score(truth[100:], each[100:], average="micro") for each in (found, taught)
    )
    assert after > before
    assert (
        abs(taught[100:].sum() / truth[100:].sum() - 1)
        < 0.2
        < abs(found[100:].sum() / truth[100:].sum() - 1)
    )
    assert (taught[:100] == truth[:100]).all()
