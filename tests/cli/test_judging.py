"""`evaluate` and `compare`."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mlconsensus as mlc
from mlconsensus.metrics import LABEL_SET_METRICS, RANKING_METRICS

# Names of the methods in tables.
NAMES = [kind.name for kind in mlc.COMBINERS.values()]


def test_evaluate_reads_labels_as_combine_does(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, labels in (
        ("scores.csv", "Sports,Other,news"),
        ("truth.csv", "sports,rest,NEWS"),
    ):
        (tmp_path / name).write_text(f"id,{labels}\n1,1,0,0\n2,0,1,1\n")
    (tmp_path / "aliases.csv").write_text("name,stands for\nother,rest\n")
    assert run("evaluate", "scores.csv", "--truth", "truth.csv").code == 2
    ran = run(
        "evaluate",
        "scores.csv",
        "--truth",
        "truth.csv",
        "--ignore-case",
        "--aliases",
        "aliases.csv",
        "--json",
    )
    assert json.loads(ran.out)["micro_f1"] == 1


def test_evaluate(run, panel):
    ran = run("evaluate", "a.csv", "--truth", "truth.csv", "--json")
    assert ran.code == 0
    result = json.loads(ran.out)
    assert list(result) == [
        *RANKING_METRICS,
        *LABEL_SET_METRICS,
        "intervals",
        "drawn",
        "note",
    ]
    for metric, interval in result["intervals"].items():
        assert interval["low"] <= result[metric] <= interval["high"]
    assert (result["micro_auc"], result["ranking_loss"], result["subset_accuracy"]) == (
        1,
        0,
        1,
    )
    text = run("evaluate", "a.csv", "--truth", "truth.csv").out
    assert "microAUC" in text
    assert "label sets" in text
    assert "1.0000" in text


def test_a_consensus_may_hold_any_finite_number(run, panel):
    (panel / "scores.csv").write_text(
        "id,sport,news,war\n1,7,-0.5,-1e9\n2,-3,1.5,1\n3,-1,0,-2\n"
    )
    assert (
        json.loads(run("evaluate", "scores.csv", "--truth", "truth.csv", "--json").out)[
            "ranking_loss"
        ]
        == 0
    )
    (panel / "scores.csv").write_text("id,sport,news,war\n1,inf,-0.5,-1e9\n")
    assert "found inf" in run("evaluate", "scores.csv", "--truth", "truth.csv").err


def test_labels_without_a_score_come_last(run, panel):
    (panel / "top.csv").write_text("id,sport,news,war\n1,-0.5,,\n2,,1,0.5\n3,,-7,\n")
    assert (
        json.loads(run("evaluate", "top.csv", "--truth", "truth.csv", "--json").out)[
            "ranking_loss"
        ]
        == 0
    )


def test_evaluate_says_what_it_leaves_out(run, panel):
    (panel / "less.csv").write_text("id,war,sport,travel\n2,1,0,1\n1,0,1,0\n9,0,1,0\n")
    ran = run("evaluate", "a.csv", "--truth", "less.csv")
    assert ran.err == (
        "judged on 2 of 3 instances and 2 of 3 labels; the truth has 1 more "
        "instance and 1 more label\n"
    )


@pytest.mark.parametrize(
    ("truth", "words"),
    [
        ("id,sport\n1,0.5\n2,0\n", "found 0.5, expected only 0 and 1"),
        ("id,sport\n1,\n2,0\n", "expected only 0 and 1"),
        (
            "id,sport\n8,1\n9,0\n",
            "found none of the names that are judged (it has '8', …), expected some "
            "such as '1'",
        ),
        ("id,sprot\n1,1\n2,0\n", "found none of the names that are judged"),
    ],
)
def test_bad_truth(run, panel, truth, words):
    (panel / "bad.csv").write_text(truth)
    for ran in (
        run("evaluate", "a.csv", "--truth", "bad.csv"),
        run("compare", "a.csv", "b.csv", "--truth", "bad.csv"),
    ):
        assert (ran.code, ran.out) == (2, "")
        assert words in ran.err.splitlines()[-1]


def test_compare(run, panel):
    ran = run("compare", "a.csv", "b.csv", "c.csv", "--truth", "truth.csv", "--json")
    result = json.loads(ran.out)
    assert list(result) == ["BM", *NAMES, "effective_models", "families"]
    assert result["MV"]["ranking_loss"] == 0
    assert (result["effective_models"]["low"], result["effective_models"]["high"]) == (
        1,
        3,
    )  # three cannot tell
    by_model = json.loads(
        run(
            "compare",
            "a.csv",
            "b.csv",
            "--truth",
            "truth.csv",
            "--json",
            "--each-model",
        ).out
    )
    assert list(by_model) == [
        "a",
        "b",
        "BM",
        *NAMES,
        "effective_models",
        "families",
    ]
    mean = (by_model["a"]["micro_auc"] + by_model["b"]["micro_auc"]) / 2
    assert by_model["BM"]["micro_auc"] == pytest.approx(mean)


def test_compare_marks_the_best(run, panel):
    (panel / "d.csv").write_text("id,sport,news,war\n1,0,1,0\n2,0,1,1\n3,0,1,0\n")
    lines = run("compare", "a.csv", "d.csv", "--truth", "truth.csv").out.splitlines()
    assert "ranking loss ↓" in lines[0]
    assert (
        lines[-1] == "BM: mean of the models; * best of its column."
    )  # two cannot tell how many voices they are
    assert [line.split()[0] for line in lines[1 : 2 + len(NAMES)]] == [
        "BM",
        *NAMES,
    ]
    for column in range(1, 5):
        assert any(
            line.split()[column].endswith("*") for line in lines[1 : 2 + len(NAMES)]
        )


def test_a_metric_without_a_value_is_null(run, panel):
    (panel / "one.csv").write_text("id,sport\n1,1\n")
    assert (
        '"micro_auc": null'
        in run("evaluate", "one.csv", "--truth", "one.csv", "--json").out
    )
    (panel / "two.csv").write_text("id,sport\n1,1\n")
    assert (
        '"micro_auc": null'
        in run("compare", "one.csv", "--truth", "two.csv", "--json").out
    )


def test_each_model_is_judged_on_what_it_has_seen(run, panel):
    (panel / "few.csv").write_text("id,sport,news,war\n2,0,1,1\n")
    result = json.loads(
        run(
            "compare",
            "a.csv",
            "b.csv",
            "few.csv",
            "--truth",
            "truth.csv",
            "--each-model",
            "--json",
        ).out
    )
    assert (result["few"]["micro_auc"], result["few"]["ranking_loss"]) == (1, 0)
    text = run(
        "compare", "a.csv", "b.csv", "few.csv", "--truth", "truth.csv", "--each-model"
    ).out
    assert "*" not in next(line for line in text.splitlines() if line.startswith("few"))
    assert "1.0000*" in text


def test_agreement(run, panel):
    ran = run("agreement", "a.csv", "b.csv", "c.csv")
    assert ran.code == 0
    assert "a – b" in ran.out
    assert "Krippendorff's α" in ran.out
    result = json.loads(run("agreement", "a.csv", "b.csv", "c.csv", "--json").out)
    assert [one["label"] for one in result["labels"]] == ["sport", "news", "war"]
    assert result["labels"][0]["alpha"]["value"] == 1
    assert [one["models"] for one in result["pairs"]] == [
        ["a", "b"],
        ["a", "c"],
        ["b", "c"],
    ]
    alone = run("agreement", "a.csv")
    assert alone.code == 2
    assert (
        alone.err
        == "mlconsensus: agreement: found one model, expected at least two to compare\n"
    )


@pytest.fixture
def raters(tmp_path):
    """Five raters with errors of their own, a file each, and who belongs together."""
    rng = np.random.default_rng(0)
    truth = rng.random((200, 4)) < 0.4
    for name in "abcde":
        votes = truth ^ (rng.random(truth.shape) < 0.15)
        rows = [
            f"{i},{','.join(str(int(cell)) for cell in row)}"
            for i, row in enumerate(votes)
        ]
        (tmp_path / f"{name}.csv").write_text("\n".join(["id,w,x,y,z", *rows, ""]))
    (tmp_path / "groups.csv").write_text("rater,group\na,one\nb,one\n")
    return [f"{name}.csv" for name in "abcde"]


def test_compare_without_truth(run, raters):
    ran = run("compare", *raters)
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert [line.split()[0] for line in lines[1 : len(NAMES)]] == [
        m for m in NAMES if m != "MV"
    ]
    assert lines[-2].startswith("No method is shown to be better ")
    result = json.loads(run("compare", *raters, "--json").out)
    assert (result["n_models"], result["n_families"], result["n_folds"]) == (5, 5, 5)
    assert result["sentence"] == lines[-2]
    assert result["effective_models"]["sentence"] + "." == lines[-1]
    assert (
        4.5
        < result["effective_models"]["estimate"]
        <= result["effective_models"]["high"]
        <= 5
    )
    for gains in result["gains"].values():
        for gain in gains.values():
            assert gain["low"] <= gain["expected"] <= gain["high"]


def test_groups_are_held_out_together(run, raters):
    result = json.loads(
        run("compare", *raters, "--families", "groups.csv", "--json").out
    )
    assert (result["n_families"], result["n_folds"]) == (4, 4)
    ran = run("compare", *raters[1:], "--families", "groups.csv")
    assert (ran.code, ran.out) == (2, "")
    assert "families: found model 'a', expected one of" in ran.err


def test_families_in_every_command(run, raters, tmp_path):
    (tmp_path / "one.csv").write_text("model,family\na,x\nb,x\nc,x\n")
    options = ["--families", "one.csv"]
    agreement = json.loads(run("agreement", *raters, *options, "--json").out)
    assert [entry["models"] for entry in agreement["models"]] == [
        ["a + b + c"],
        ["d"],
        ["e"],
    ]

    # A truth and gold labels go together with families.
    truth = "".join(f"{i},1,0,0,1\n" for i in range(0, 200, 2))
    (tmp_path / "truth.csv").write_text("id,w,x,y,z\n" + truth)
    for reference in ("--truth", "--gold"):
        compared = run("compare", *raters, *options, reference, "truth.csv", "--json")
        assert compared.code == 0
        families = json.loads(compared.out)["families"]
        assert families["origin"] == "stated"
        assert [entry["models"] for entry in families["families"]] == [["a", "b", "c"]]

    asked = ["--budget", "5", "--output", "ask.csv"]
    assert run("ask", *raters, *options, *asked).code == 0
    assert run("explain", *raters, *options, "--instance", "7").code == 0
    report = run("report", *raters, *options, "--output-format", "text")
    assert "a, b and c are one family, as stated" in report.out


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a,x\nzoe,x\n", "families: found model 'zoe', expected one of the 5 models"),
        ("a,x\na,y\n", "f.csv, row 2: found the model 'a' again, expected each once"),
        ("a,x,y\n", "f.csv"),
        ("", "f.csv: found no model with a family"),
    ],
)
@pytest.mark.parametrize("command", ["combine", "compare", "agreement", "report"])
def test_bad_family_files(run, raters, tmp_path, command, rows, message):
    (tmp_path / "f.csv").write_text("model,family\n" + rows)
    ran = run(command, *raters, "--families", "f.csv")
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1
    assert message in ran.err


def test_too_few_raters_are_told(run, raters):
    ran = run("compare", *raters[:2])
    assert ran.code == 0
    assert ran.out.startswith("No recommendation: ")
    result = json.loads(run("compare", *raters[:2], "--json").out)
    assert (result["gains"], result["recommended"]) == ({}, None)


def test_too_few_instances_are_told(run, panel):
    ran = run("compare", "a.csv", "b.csv", "c.csv")
    assert ran.code == 0
    assert ran.out.splitlines()[-1].startswith("No recommendation: ")
    for name in "abc":
        (panel / f"{name}.csv").write_text(
            "id,x\n" + "".join(f"{i},{i % 2}\n" for i in range(30))
        )
    result = json.loads(run("compare", "a.csv", "b.csv", "c.csv", "--json").out)
    assert result["recommended"] is None
    assert (
        result["gains"]["DS"]["ranking_loss"]["expected"] is None
    )  # one label has no pairs


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--each-model"],
            "--each-model: found no --truth, expected both, to evaluate each model",
        ),
        (["--families", "none.csv"], "none.csv: found no such file"),
    ],
)
def test_options_that_do_not_go_together(run, raters, options, words):
    ran = run("compare", *raters, *options)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err


@pytest.fixture
def answers(panel):
    """Truth of half of the instances with a missing cell, and files of models."""
    panel, truth = mlc.datasets.make_panel(n_instances=60, n_labels=4, random_state=0)
    for name in panel.models:
        panel.to_frame(name).to_csv(f"{name}_.csv", index_label="id")
    gold = pd.DataFrame(
        truth.astype(float), index=panel.instances, columns=panel.labels
    ).iloc[::2]
    gold.iloc[0, 0] = np.nan
    gold.to_csv("answers.csv", index_label="id")
    gold.assign(**{"inclusion probability": 0.5}).to_csv("asked.csv", index_label="id")
    return [f"{name}_.csv" for name in panel.models]


def test_compare_by_gold_gives_intervals_and_says_of_what(run, answers):
    text = run("compare", *answers, "--gold", "answers.csv", "--drawn", "random").out
    assert "for all 60 instances, of which 30 were drawn at random" in text
    assert "not significant with gold labels of 30 instances" in text
    unsaid = run("compare", *answers, "--gold", "answers.csv").out
    assert "only for the 30 instances with gold labels and others like them" in unsaid
    result = json.loads(
        run(
            "compare", *answers, "--gold", "answers.csv", "--drawn", "random", "--json"
        ).out
    )
    asked = json.loads(run("compare", *answers, "--gold", "asked.csv", "--json").out)
    assert result["figures"] == asked["figures"]
    figure = result["figures"]["Weighted"]["ranking_loss"]
    assert figure["low"] < figure["value"] < figure["high"]
    assert set(result["gains"]) == set(NAMES) - {"MV"}
    assert (
        "--gold: found --truth too"
        in run(
            "compare", *answers, "--gold", "answers.csv", "--truth", "answers.csv"
        ).err
    )


def test_compare_leaves_raters_out(run, answers):
    text = run("compare", *answers, "--gold", "answers.csv", "--leave-out").out
    assert "gain over all models" in text
    assert f"without {answers[0].removesuffix('.csv')}" in text
    assert "--leave-out: found no --gold" in run("compare", *answers, "--leave-out").err


def test_evaluate_by_gold(run, answers):
    run("combine", *answers, "--output", "consensus.csv")
    result = json.loads(
        run("evaluate", "consensus.csv", "--gold", "answers.csv", "--json").out
    )
    assert list(result) == [*RANKING_METRICS, "intervals", "drawn", "note"]
    assert "others like them" in result["drawn"]
    drawn = run("evaluate", "consensus.csv", "--gold", "asked.csv").out
    assert "of which 30 were drawn with the probabilities in the file" in drawn
    assert "90 % from" in drawn
    run("combine", *answers, "--gold", "answers.csv", "--output", "learned.csv")
    assert (
        "found the answers themselves"
        in run("evaluate", "learned.csv", "--gold", "answers.csv").err
    )
    ran = run("evaluate", "consensus.csv")
    assert ran.code == 2
    assert "found both or none of --truth and --gold" in ran.err


def test_decide_keeps_a_promise_and_leaves_cells_to_people(run, answers):
    ran = run(
        "decide", *answers, "--gold", "answers.csv", "--recall", "0.8", "-o", "sets.csv"
    )
    assert ran.code == 0
    assert "At least 80% of an instance's relevant labels are kept" in ran.err
    assert "Left to people: 0 of 240 cells" in ran.err
    assert set(np.unique(pd.read_csv("sets.csv", index_col=0))) <= {0, 1}
    both = ["--recall", "0.8", "--false-discovery", "0.2", "-o", "left.csv", "--json"]
    result = json.loads(run("decide", *answers, "--gold", "answers.csv", *both).out)
    assert (
        pd.read_csv("left.csv", index_col=0).isna().to_numpy().sum()
        == result["left"]["cells"]
    )
    assert [promise["about"] for promise in result["promises"]] == [
        "recall",
        "false_discovery",
    ]


def test_decide_refuses_what_it_cannot_promise_by(run, answers):
    assert "nothing to promise" in run("decide", *answers, "--gold", "answers.csv").err
    asked = pd.read_csv("asked.csv", index_col=0)
    asked.iloc[0, -1] = 0.9
    asked.to_csv("uneven.csv")
    ran = run(
        "decide", *answers, "--gold", "uneven.csv", "--recall", "0.9", "-o", "out.csv"
    )
    assert (ran.code, "asked about with unequal probabilities" in ran.err) == (2, True)
    assert (
        "found no --output"
        in run(
            "decide", *answers, "--gold", "answers.csv", "--recall", "0.9", "--json"
        ).err
    )


def test_ask_writes_a_table_that_comes_back_as_gold(run, answers):
    ran = run("ask", *answers, "--budget", "10", "-o", "questions.csv")
    assert (ran.code, ran.err.splitlines()[-1]) == (
        0,
        "10 instances to ask about → questions.csv",
    )
    asked = pd.read_csv("questions.csv", index_col=0)
    assert asked.iloc[:, 1:].isna().all().all()
    assert (
        "found no answer"
        in run("combine", *answers, "--gold", "questions.csv", "-o", "out.csv").err
    )
    _, truth = mlc.datasets.make_panel(n_instances=60, n_labels=4, random_state=0)
    asked.iloc[:, 1:] = truth[asked.index].astype(float)
    asked.to_csv("questions.csv")
    assert (
        run("combine", *answers, "--gold", "questions.csv", "-o", "out.csv").code == 0
    )
    result = run("compare", *answers, "--gold", "questions.csv").out
    assert "with the probabilities in the file" in result
    labels = Path("vocabulary.txt")
    labels.write_text("\n".join(asked.columns[1:]))
    assert (
        run("compare", *answers, "--gold", "questions.csv", "--vocabulary", labels).out
        == result
    )
    ran = run("compare", *answers, "--gold", "questions.csv", "--drawn", "random")
    assert (
        "drawn: found 'random' next to a column 'inclusion probability' in "
        "questions.csv, expected one" in ran.err
    )
    more = [
        "--gold",
        "questions.csv",
        "--budget",
        "5",
        "--for",
        "figures",
        "-o",
        "more.csv",
        "--json",
    ]
    result = json.loads(run("ask", *answers, *more).out)
    assert len(result["instances"]) == 15
    assert len(pd.read_csv("more.csv").dropna()) == 10


def test_truth_as_lists_of_tags_judges_as_a_table_does(run, tmp_path, monkeypatch):
    """A label that no list names is a no; predictions of it count as errors."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scores.csv").write_text(
        "id,law,war,art\n1,0.9,0.1,0.95\n2,0.2,0.8,0.1\n"
    )
    (tmp_path / "truth.csv").write_text("id,law,war,art\n1,1,0,0\n2,0,1,0\n")
    (tmp_path / "truth.jsonl").write_text(
        '{"instance": "1", "labels": ["law"]}\n{"instance": "2", "labels": ["war"]}\n'
    )
    result = [
        json.loads(
            run("evaluate", "scores.csv", "--truth", f"truth.{kind}", "--json").out
        )
        for kind in ("csv", "jsonl")
    ]
    assert result[0] == result[1]
    assert result[0]["one_error"] == 0.5
    (tmp_path / "truth.jsonl").write_text('{"instance": "1", "labels": ["sport"]}')
    assert run("evaluate", "scores.csv", "--truth", "truth.jsonl").code == 2


def test_compare_says_that_instances_without_labels_are_errors(
    run, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for name, rows in {
        "a": "1,1,0\n2,0,0\n",
        "b": "1,1,1\n2,0,1\n",
        "truth": "1,1,0\n2,0,0\n3,0,1\n",
    }.items():
        (tmp_path / f"{name}.csv").write_text(f"id,law,war\n{rows}")
    output = (
        "1 instance without a relevant label: whatever is ranked first is a one-error."
    )
    assert (
        run("compare", "a.csv", "b.csv", "--truth", "truth.csv").out.splitlines()[-1]
        == output
    )
    for option in ("--truth", "--gold"):
        assert (
            output
            in run(
                "evaluate",
                "b.csv",
                option,
                "truth.csv" if option == "--truth" else "a.csv",
            ).out.splitlines()
        )
        assert json.loads(run("evaluate", "b.csv", option, "a.csv", "--json").out)[
            "note"
        ] == output.removesuffix(".")


def test_a_truth_of_all_instances_leaves_nothing_to_draw(run, answers):
    _, truth = mlc.datasets.make_panel(n_instances=60, n_labels=4, random_state=0)
    pd.DataFrame(
        truth.astype(int), columns=pd.read_csv("answers.csv").columns[1:]
    ).to_csv("all.csv", index_label="id")
    result = json.loads(run("evaluate", answers[0], "--truth", "all.csv", "--json").out)
    assert (
        result["drawn"]
        == "The estimates are only for the 60 instances with gold labels and others "
        "like them."
    )


def test_labels_that_a_list_never_gives_are_not_given(run, tmp_path, monkeypatch):
    """Three of four labels are predicted and none is wrong: F1 is 6/7."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "truth.csv").write_text("id,a,b,rare\n1,1,0,1\n2,0,1,0\n3,1,0,0\n")
    (tmp_path / "tags.jsonl").write_text(
        "".join(
            f'{{"id": "{position}", "labels": ["{x}"]}}\n'
            for position, x in enumerate("aba", 1)
        )
    )
    (tmp_path / "tags.csv").write_text(
        "item,label,annotator\n1,a,eve\n2,b,eve\n3,a,eve\n"
    )
    (tmp_path / "wide.csv").write_text("id,a,b\n1,1,0\n2,0,1\n3,1,0\n")
    for file, f1 in (("tags.jsonl", 6 / 7), ("tags.csv", 6 / 7), ("wide.csv", 1)):
        ran = run("evaluate", file, "--truth", "truth.csv", "--json")
        assert json.loads(ran.out)["micro_f1"] == pytest.approx(f1)
        if f1 < 1:
            output = f"1 label of the truth never given in {file}: counted as not given"
        else:
            output = "has 1 more label\n"
        assert output in ran.err
    (tmp_path / "tags.csv").write_text("item,label,annotator\n1,x,eve\n2,y,eve\n")
    assert (
        "found none of the names that are judged"
        in run("evaluate", "tags.csv", "--truth", "truth.csv").err
    )
