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
    assert [action.section for action in unknown] == ["models", "changes"]
    assert unknown[0].sentence == "Check model_4 (random), or leave it out."
    assert unknown[1].sentence.startswith(
        "Ask a person about 100 instances before you rely on it, first about "
    )
    assert known[-1].sentence.startswith("Use it: it ranks better than chance")
    other, other_truth = mlc.datasets.make_panel(random_state=0)
    trusted = actions(
        mlc.combine(other, method="weighted").report(other_truth).summary
    )[-1]
    assert trusted.sentence.startswith(
        "Use it: it ranks better than chance (microAUC 0."
    )
    assert re.search(
        r"in average precision it is 0\.\d+ ahead of voting \(0\.\d+ to 0\.\d+\) and ",
        trusted.sentence,
    )
    page = report.to_html()
    assert page.index("What to do now") < page.index("What was found")
    assert '<a href="#changes">The evidence</a>' in page
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
        assert "label sets are behind" not in report.to_text()
    assert report.summary.judged.results[0].metrics["micro_auc"] > 0.55


def test_voting_is_not_compared_with_itself(made):
    report = mlc.combine(made.predictions, method="mv").report(made.truth)
    assert [rival.kind for rival in report.summary.judged.rivals] == ["model"]
    assert "voting (" not in report.to_text()
    assert "that of voting" not in report.to_text()


def test_a_model_that_is_better_by_far_is_to_be_used_in_its_place():
    rng = np.random.default_rng(0)
    truth = rng.random((300, 8)) < 0.3
    panel = [truth, *(truth ^ (rng.random((3, 300, 8)) < 0.35))]
    first = actions(mlc.combine(panel, method="mv").report(truth).summary)[-1].sentence
    assert first.startswith("Use model_0 in its place: in average precision it is 0.")
    assert first.count(" behind the best model, model_0 (−0.") == 1


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
    assert not any("label sets are behind" in line for line in findings(found))
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
    assert found[-1].sentence == "Trust it: every instance has an answer."


def test_a_model_with_better_label_sets_is_named():
    """Three that err alike outvote one who knows."""
    rng = np.random.default_rng(0)
    truth = rng.random((300, 8)) < 0.2
    alike = truth ^ (rng.random(truth.shape) < 0.15)
    said = {
        name: alike ^ (rng.random(truth.shape) < 0.05)
        for name in ("ann", "bob", "cleo")
    }
    found = findings(
        summarize(
            mlc.combine(said | {"dora": truth ^ (rng.random(truth.shape) < 0.01)}),
            truth,
        )
    )
    assert any(
        line.startswith("Its label sets are behind those of a model (micro F1 0.")
        for line in found
    )
    own = {
        name: truth ^ (rng.random(truth.shape) < 0.1) for name in ("ann", "bob", "cleo")
    }
    good = findings(summarize(mlc.combine(own), truth))
    assert not any("label sets are behind" in line for line in good)
