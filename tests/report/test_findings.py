"""What a report says to do, and what it found."""

import re

import numpy as np
import pytest

import mlconsensus as mlc
from mlconsensus.report import summarize
from mlconsensus.report.findings import actions, findings


def test_the_report_begins_with_what_to_do():
    panel, truth = mlc.datasets.make_panel(
        quality=[0.8, 0.8, 0.8, 0.8, 0], shared_errors=0, random_state=0
    )
    found = mlc.combine(panel, method="weighted")
    report = found.report()
    unknown, known = (actions(each.summary) for each in (report, found.report(truth)))
    assert [action.section for action in unknown] == ["models", "changes", "changes"]
    assert unknown[0].sentence == "Check model_4 (random), or leave it out."
    evidence = "There is not yet evidence of how accurate these labels are."
    assert unknown[1].sentence == evidence
    assert unknown[2].sentence.startswith("To measure how often the first label is ")
    assert "let a person label about " in unknown[2].sentence
    assert known[-1].sentence.startswith("Use it: it ranks better than chance")
    other, other_truth = mlc.datasets.make_panel(random_state=0)
    trusted = actions(
        mlc.combine(other, method="weighted").report(other_truth).summary
    )[-1]
    assert trusted.sentence.startswith(
        "Use it: it ranks better than chance (microAUC 0."
    )
    assert re.search(
        r"label ranking average precision against voting "
        r"\+0\.\d+ \(0\.\d+ to 0\.\d+\); ",
        trusted.sentence,
    )
    page = report.to_html()
    assert page.index("What to do now") < page.index("What was found")
    assert '<a href="#changes">Details</a>' in page
    assert "What to do now:" in report.to_text()


@pytest.mark.parametrize("method", ["weighted", "mv"])
def test_a_consensus_that_is_chance_or_worse_is_not_to_be_used(made, method):
    panel, truth = made
    rng = np.random.default_rng(0)
    random = rng.random((4, 400, 9)) < np.linspace(
        0.1, 0.5, 9
    )  # it knows how frequent labels are, and no more
    mixed = rng.random((400, 9)) < np.linspace(0.1, 0.5, 9)
    for said, known in ((panel, ~truth), (random, mixed)):
        report = mlc.combine(said, method=method).report(known)
        first = actions(report.summary)[-1].sentence
        assert first.startswith(
            "Do not use it: it ranks no better than chance (microAUC 0."
        )
        assert "Use it" not in report.to_text()
        assert "alone has better label sets" not in report.to_text()
    assert report.summary.judged.results[0].metrics["micro_auc"] > 0.55


def test_voting_is_not_compared_with_itself(made):
    report = mlc.combine(made.predictions, method="mv").report(made.truth)
    assert [rival.kind for rival in report.summary.judged.rivals] == ["model"]
    assert "compared with voting +" not in report.to_text()
    assert "compared with voting −" not in report.to_text()


def test_a_model_that_is_better_by_far_is_to_be_used_in_its_place():
    rng = np.random.default_rng(0)
    truth = rng.random((300, 8)) < 0.3
    panel = [truth, *(truth ^ (rng.random((3, 300, 8)) < 0.35))]
    first = actions(mlc.combine(panel, method="mv").report(truth).summary)[-1].sentence
    assert first.startswith("Use model_0 in its place: label ranking average ")
    assert first.count("against the best model model_0 −0.") == 1


def test_nobody_is_compared_on_few_instances_and_all_on_the_same():
    """Models with few or easy instances are not compared with others."""
    rng = np.random.default_rng(0)
    truth = rng.random((300, 6)) < 0.3
    hard = np.arange(300) >= 180
    said = (
        truth ^ (rng.random((5, 300, 6)) < np.where(hard, 0.4, 0.05)[:, None])
    ).astype(float)
    said[3, 6:] = said[4, hard] = np.nan
    said[3, :6] = truth[:6]
    found = summarize(mlc.combine(said), truth)
    rows = {row.name: row for row in found.judged.results}
    assert rows["model_3"].consensus is None
    assert rows["model_3"].metrics["micro_f1"] == 1
    scores, sets = (
        values[~hard]
        for values in (mlc.combine(said).scores, mlc.combine(said).label_indicator)
    )
    assert rows["model_4"].consensus == mlc.metrics.evaluate(truth[~hard], scores, sets)
    assert (
        rows["model_4"].metrics["micro_f1"]
        > rows["Weighted"].metrics["micro_f1"] + 0.02
    )
    assert not any("label sets" in line for line in _evaluate(found))
    assert "model_3" not in {rival.name for rival in found.judged.rivals}
    assert found.judged.precision_recall[-1].recall[0] > 0.8  # of what it has seen


def test_models_that_hardly_agree_are_not_to_be_combined():
    random = np.random.default_rng(0).random((3, 200, 5)) < 0.3
    assert actions(mlc.combine(random).report().summary)[0].sentence.startswith(
        "Do not combine these models"
    )


def test_nothing_is_left_to_ask_where_all_is_known():
    panel, truth = mlc.datasets.make_panel(n_instances=30, random_state=0)
    found = actions(mlc.combine(panel, gold=truth.astype(float)).report().summary)
    assert found[-1].sentence.startswith(
        "Rely on it as far as this suffices: on the 30"
    )


def test_a_model_with_better_label_sets_is_named():
    """Three that err alike outvote one who knows."""
    rng = np.random.default_rng(0)
    truth = rng.random((300, 8)) < 0.2
    alike = truth ^ (rng.random(truth.shape) < 0.15)
    said = {
        name: alike ^ (rng.random(truth.shape) < 0.05)
        for name in ("ann", "bob", "cleo")
    }
    dora = truth ^ (rng.random(truth.shape) < 0.01)
    found = _evaluate(summarize(mlc.combine(said | {"dora": dora}), truth))
    assert any(
        line.startswith("dora alone has better label sets: micro F1 0.")
        for line in found
    )
    own = {
        name: truth ^ (rng.random(truth.shape) < 0.1) for name in ("ann", "bob", "cleo")
    }
    good = _evaluate(summarize(mlc.combine(own), truth))
    assert not any("alone has better label sets" in line for line in good)


def _evaluate(summary):
    """Return the sentences about the ground truth."""
    results = []
    for finding in findings(summary):
        if finding.key == "Evaluation":
            results.append(finding.sentence)
    return results


def test_a_gain_within_chance_is_not_called_better():
    rng = np.random.default_rng(1)
    truth = rng.random((60, 4)) < 0.3
    panel = truth ^ (rng.random((3, 60, 4)) < 0.15)
    summary = mlc.combine(panel, method="weighted").report(truth).summary
    gain = summary.judged.rivals[0].ahead
    assert gain.low <= 0 <= gain.high
    sentence = _evaluate(summary)[0]
    assert "which is within chance" in sentence
    assert "better" not in sentence


def test_excellent_models_need_fewer_reviews_than_poor_ones():
    rng = np.random.default_rng(0)
    truth = rng.random((2000, 6)) < 0.3
    budgets = {}
    for error in (0.02, 0.2):
        panel = truth ^ (rng.random((5, *truth.shape)) < error)
        asking = mlc.combine(panel).report().summary.asking
        budgets[error] = asking.budget
    assert budgets[0.02] < budgets[0.2]


def test_gold_labels_are_evidence(made):
    gold = np.full(made.truth.shape, np.nan)
    gold[:100] = made.truth[:100]
    report = mlc.combine(made.predictions, gold=gold).report()
    evidence = report.summary.gold_evidence
    assert evidence.n_instances == 100
    assert evidence.value.low < evidence.value.value < evidence.value.high
    sentences = [action.sentence for action in actions(report.summary)]
    assert any("on the 100 instances with gold labels" in line for line in sentences)
    assert "There is not yet evidence" not in " ".join(sentences)
