import numpy as np
import pytest

import mlconsensus as mlc
from mlconsensus.errors import InputError
from mlconsensus.model_selection.comparison import (
    cross_fit,
    find_inclusion_probabilities,
)
from mlconsensus.predictions.gold_labels import CHANCE


@pytest.fixture(scope="module")
def answered():
    panel, truth = mlc.datasets.make_panel(n_instances=200, random_state=1)
    return panel, truth, np.where(np.arange(len(truth))[:, None] < 40, truth, np.nan)


METHODS = {"MV": mlc.MajorityVote(), "DS": mlc.DawidSkene()}


def test_an_answer_never_judges_what_was_fitted_with_it(answered):
    panel, _, gold = answered
    other = gold.copy()
    other[7] = 1 - other[7]
    before, after = (
        cross_fit(mlc.MLCMr(), panel.with_gold(labels)) for labels in (gold, other)
    )
    np.testing.assert_array_equal(before[7], after[7])


def test_without_answers_it_is_the_plain_fit(answered):
    panel, _, _ = answered
    np.testing.assert_array_equal(
        cross_fit(mlc.DawidSkene(), panel), mlc.dawid_skene(panel)
    )


def test_one_answered_instance_is_enough(answered):
    panel, truth, _ = answered
    one = np.where(np.arange(len(truth))[:, None] < 1, truth, np.nan)
    comparison = mlc.compare(panel, one, "random", METHODS)
    assert comparison.n_gold == 1
    assert "not significant with gold labels of 1 instance." in comparison.sentence


def test_it_says_whose_the_figures_are(answered):
    panel, _, gold = answered
    assert (
        "for all 200 instances, of which 40 were drawn at random"
        in mlc.compare(panel, gold, "random", METHODS).drawn
    )
    unsaid = mlc.compare(panel, gold, None, METHODS)
    assert (
        "only for the 40 instances with gold labels and others like them"
        in unsaid.drawn
    )
    with pytest.raises(InputError, match="drawn: found 'well', expected 'random'"):
        mlc.compare(panel, gold, "well")
    with pytest.raises(
        InputError,
        match=r"gold: found none, .* mlc\.compare_on_held_out_models\(predictions\)",
    ):
        mlc.compare(panel)


def test_probabilities_come_from_the_column(answered):
    pd = pytest.importorskip("pandas")
    panel, _, gold = answered
    frame = pd.DataFrame(
        gold[:40], index=panel.instances[:40], columns=panel.labels
    ).assign(**{CHANCE: 0.2})
    chance, sentence = find_inclusion_probabilities(frame, None, gold, panel.instances)
    assert set(chance[:40]) == {0.2}
    assert "with the probabilities in the file" in sentence
    assert (
        mlc.compare(panel, frame, None, METHODS).figures
        == mlc.compare(panel, gold, "random", METHODS).figures
    )


def test_text_shows_figures_and_differences(answered):
    panel, _, gold = answered
    text = str(mlc.compare(panel, gold, "random", METHODS))
    assert "gain over MV" in text
    assert "not significant with gold labels of 40 instances." in text


def test_a_rater_that_is_worth_its_price_is_missed_and_a_random_one_is_not():
    rng = np.random.default_rng(0)
    truth = rng.random((500, 6)) < 0.3
    good = truth ^ (rng.random(truth.shape) < 0.02)
    fair = truth ^ (rng.random((3, *truth.shape)) < 0.3)
    panel = mlc.Predictions(
        np.array([good, *fair, rng.random(truth.shape) < 0.5]),
        models=["good", *"abc", "dice"],
    )
    gold = np.where(np.arange(500)[:, None] < 100, truth, np.nan)
    comparison = mlc.leave_out(panel, gold, "random", mlc.MajorityVote())
    assert comparison.gains["without good"]["average_precision"].high < 0
    assert comparison.gains["without dice"]["average_precision"].low > 0
    assert "Significantly worse than all models: without good (" in comparison.sentence
    with pytest.raises(InputError, match="models: found one, expected at least two"):
        mlc.leave_out(panel.select(models=["good"]), gold)


@pytest.mark.parametrize("methods", [["mv"], "mv", {}, {"a": "mv"}, {"a": mlc.MLCMa}])
def test_what_is_no_method_is_refused(answered, methods):
    panel, _, gold = answered
    for judge in (
        lambda: mlc.compare(panel, gold, methods=methods),
        lambda: mlc.compare_on_held_out_models(panel, methods=methods),
    ):
        with pytest.raises(InputError, match="^method"):
            judge()
