import json
import os

import numpy as np
import polars as pl
import pytest
from bad_files import BAD_FILES

import mlconsensus as mlc
from mlconsensus.io import write_table
from mlconsensus.predictions.score_tables import ScoreTable


def _expected(method):
    nan = np.nan
    scores = np.array(
        [
            [[1, 0, 0], [0, 1, 1], [0, 1, 0]],
            [[1, 0, nan], [0, 1, nan], [0, 1, nan]],
            [[1, 0, 0], [nan, 1, 1], [nan, nan, nan]],
        ]
    )
    return mlc.COMBINERS[method]().fit_transform(scores)


def _rows(text):
    head, *rows = (line.split(",") for line in text.splitlines())
    return head, {
        row[0]: [float(cell) if cell else None for cell in row[1:]] for row in rows
    }


@pytest.mark.parametrize("method", ["majority_vote", "bgcm", "mlcm_r", "mlcm_a"])
def test_files_are_matched_by_name(run, panel, method):
    ran = run(
        "combine",
        "a.csv",
        "b.csv",
        "c.csv",
        "--method",
        method.lower(),
        "--output",
        "out.csv",
    )
    assert (ran.code, ran.out) == (0, "")
    missing, done = ran.err.splitlines()
    assert missing.startswith("25.9% of the 3 × 3 × 3 predictions are missing")
    assert done.startswith(
        f"combined 3 models × 3 instances × 3 labels with {method} (the method was "
        "requested"
    )
    assert done.endswith(") → out.csv")
    assert ("the first label is the same" in done) == (method != "majority_vote")
    head, rows = _rows((panel / "out.csv").read_text())
    assert head == ["instance", "sport", "news", "war"]
    np.testing.assert_allclose(
        [rows["1"], rows["2"], rows["3"]], _expected(method), rtol=0, atol=1e-12
    )


def test_standard_output_carries_only_the_consensus(shell, panel):
    ran = shell(
        "mlconsensus combine a.csv b.csv --labels intersection 2>/dev/null | cut "
        "-d, -f1,2"
    )
    assert ran.out.splitlines()[0] == "instance,sport"
    assert len(ran.out.splitlines()) == 4


def test_standard_input(shell, panel):
    ran = shell(
        "cat a.csv | mlconsensus combine - b.csv --format csv --instances intersection"
    )
    assert ran.code == 0
    assert len(ran.out.splitlines()) == 4


def test_the_method_is_named_with_what_it_saw(run, panel):
    ran = run("combine", "a.csv", "b.csv", "-o", "x.csv")
    assert "with weighted_consensus (no family of related models was " in ran.err
    assert "reliability" in ran.err


def test_json_says_what_was_done(run, panel):
    ran = run("combine", "a.csv", "b.csv", "--json", "--output", "x.csv")
    done = json.loads(ran.out)
    assert (done["method"], done["instances"], done["labels"], done["missing"]) == (
        "weighted_consensus",
        3,
        3,
        3,
    )
    assert done["models"] == ["a", "b"]
    assert run("combine", "a.csv", "--json").code == 2


@pytest.mark.parametrize(
    "rule", ["instances", "f1", "micro-f1", "hamming", "threshold"]
)
def test_label_sets(run, panel, rule):
    assert (
        run(
            "combine",
            "a.csv",
            "b.csv",
            "c.csv",
            "--method",
            "mv",
            "--decide",
            rule,
            "-o",
            "x.csv",
        ).code
        == 0
    )
    _, rows = _rows((panel / "x.csv").read_text())
    assert rows == {"1": [1, 0, 0], "2": [0, 1, 1], "3": [0, 1, 0]}


@pytest.mark.parametrize("method", ["mv", "weighted", "mlcm-r"])
@pytest.mark.parametrize("gold", [None, "gold.csv"])
@pytest.mark.parametrize("metric", ["f1", "micro-f1", "hamming"])
def test_label_sets_by_a_metric_are_those_of_the_library(
    run, tmp_path, monkeypatch, method, gold, metric
):
    monkeypatch.chdir(tmp_path)
    panel, truth = mlc.datasets.make_panel(80, 5, 3, random_state=0)
    names = [str(name) for name in panel.instances]
    for model in panel.models:
        panel.to_frame(model, "polars").write_csv(f"{model}.csv")
    answers = np.where(np.arange(80)[:, None] < 30, truth, np.nan)
    pl.DataFrame(answers[:30].astype(int), list(panel.labels)).insert_column(
        0, pl.Series("instance", names[:30])
    ).write_csv("gold.csv")
    if gold is None:
        gold_option = []
    else:
        gold_option = ["--gold", gold]
    files = [f"{model}.csv" for model in panel.models]
    assert (
        run(
            "combine",
            *files,
            "--method",
            method,
            "--decide",
            metric,
            *gold_option,
            "-o",
            "x.csv",
        ).code
        == 0
    )
    _, rows = _rows((tmp_path / "x.csv").read_text())
    result = mlc.combine(panel, method=method, gold=None if gold is None else answers)
    expected = result.make_label_indicator(metric).astype(int).tolist()
    assert [rows[name] for name in names] == expected


def test_the_best_k_labels_as_label_sets(run, panel):
    files = ("a.csv", "b.csv", "c.csv")
    assert run("combine", *files, "--decide", "top-k", "-o", "x.csv").code == 2
    done = run("combine", *files, "--decide", "top-k", "--top-k", "2", "-o", "x.csv")
    assert done.code == 0
    _, rows = _rows((panel / "x.csv").read_text())
    assert [sum(row) for row in rows.values()] == [2, 2, 2]


def test_a_wrong_metric_gets_a_suggestion(run, panel):
    ran = run("combine", "a.csv", "--decide", "microf1", "-o", "x.csv")
    assert ran.code == 2
    assert "did you mean 'micro-f1'" in ran.err


@pytest.mark.parametrize(
    "options",
    [
        ["--threshold", "0.3"],
        ["--decide", "f1", "--threshold", "0"],
        ["--empty", "top"],
    ],
)
def test_options_of_a_rule_need_the_rule(run, panel, options):
    ran = run("combine", "a.csv", "b.csv", *options, "-o", "x.csv")
    assert ran.code == 2
    assert "found no --decide" in ran.err
    assert not (panel / "x.csv").exists()


def test_tags_as_json_lines(run, panel):
    run(
        "combine",
        "a.csv",
        "b.csv",
        "c.csv",
        "--method",
        "mv",
        "--decide",
        "instances",
        "-o",
        "x.jsonl",
    )
    lines = [json.loads(line) for line in (panel / "x.jsonl").read_text().splitlines()]
    assert [sorted(line["labels"]) for line in lines] == [
        ["sport"],
        ["news", "war"],
        ["news"],
    ]


def test_the_best_labels_ranked(run, panel):
    ran = run(
        "combine",
        "a.csv",
        "b.csv",
        "c.csv",
        "--method",
        "mv",
        "--layout",
        "ranked",
        "--top-k",
        "2",
        "-o",
        "x.csv",
    )
    assert ran.code == 0
    rows = [line.split(",") for line in (panel / "x.csv").read_text().splitlines()]
    assert rows[0] == ["instance", "rank", "label", "score"]
    assert [row[:3] for row in rows[1:3]] == [["1", "1", "sport"], ["1", "2", "news"]]
    assert len(rows) == 1 + 3 * 2


def test_an_output_is_replaced_only_by_force(run, panel):
    (panel / "x.csv").write_text("mine")
    ran = run("combine", "a.csv", "b.csv", "-o", "x.csv")
    assert ran.code == 2
    assert "x.csv" in ran.err
    assert "--force" in ran.err
    assert (panel / "x.csv").read_text() == "mine"
    assert run("combine", "a.csv", "b.csv", "-o", "x.csv", "--force").code == 0
    assert (panel / "x.csv").read_text() != "mine"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["nothere.csv"], ["nothere.csv"]),
        (["a.csv", "--method", "mlcmr"], ["found 'mlcmr'", "did you mean 'mlcm_r'"]),
        (["a.csv", "--families", "none.csv"], ["none.csv"]),
        (["a.csv", "--format", "cvs"], ["cvs", "csv"]),
        (["a.csv", "-o", "x.cvs"], ["x.cvs", "csv"]),
        (["a.csv", "-o", "no/such/folder/x.csv"], ["no/such/folder"]),
        (["a.csv", "--top-k", "0"], ["--top-k"]),
        ([], ["FILE"]),
    ],
)
def test_bad_calls(run, panel, args, words):
    ran = run("combine", *args)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1
    for word in words:
        assert word in ran.err
    assert sorted(path.name for path in panel.iterdir()) == [
        "a.csv",
        "b.csv",
        "c.csv",
        "truth.csv",
    ]


@pytest.mark.parametrize("case", BAD_FILES, ids=lambda case: case.name)
def test_bad_files_end_with_one_line_and_no_output(run, tmp_path, case):
    if case.needs_user and os.geteuid() == 0:
        pytest.skip("root may read everything")
    (tmp_path / "files").mkdir()
    paths = case.make(tmp_path / "files")
    ran = run("combine", *paths, "--strict", "--output", "out.csv")
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1
    for word in case.words:
        assert word in ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["files"]


def test_models_that_look_wrong_are_named(run, tmp_path):
    quality = [0.8, 0.8, 0.8, 0]
    panel, _ = mlc.datasets.make_panel(
        500, 6, 4, quality=quality, shared_errors=0, random_state=0
    )
    for name, scores in zip("abcd", panel.to_array(), strict=True):
        write_table(
            tmp_path / f"{name}.csv",
            ScoreTable(name, scores, [f"i{i}" for i in range(500)], list("uvwxyz")),
        )
    ran = run("combine", "a.csv", "b.csv", "c.csv", "d.csv", "-o", "out.csv")
    assert ran.err.startswith("d is random: its correlation with other models is ")
    assert len(ran.err.splitlines()) == 2


def test_a_format_is_for_files_whose_names_do_not_tell(shell, panel):
    (panel / "t.tsv").write_text("id\tsport\tnews\n1\t1\t0\n2\t0\t1\n")
    ran = shell(
        "cat a.csv | mlconsensus combine - t.tsv --format csv --labels intersection"
    )
    assert ran.code == 0
    assert ran.out.splitlines()[0] == "instance,sport,news"


def test_an_input_is_not_overwritten_by_the_output(run, panel):
    before = (panel / "a.csv").read_text()
    ran = run("combine", "a.csv", "b.csv", "-o", "a.csv", "--force")
    assert ran.code == 2
    assert "found among the input files too" in ran.err
    assert (panel / "a.csv").read_text() == before


@pytest.mark.parametrize(
    ("metric", "options"),
    [("f1", []), ("micro_f1", []), ("hamming", []), ("top-k", ["--k", "2"])],
)
def test_decide_writes_the_label_sets_of_a_metric(run, panel, metric, options):
    files = ("a.csv", "b.csv", "c.csv")
    done = run("decide", *files, "--metric", metric, *options, "-o", "x.csv")
    assert done.code == 0
    _, rows = _rows((panel / "x.csv").read_text())
    consensus = mlc.combine(mlc.read_predictions([panel / file for file in files]))
    k = 2 if options else None
    expected = consensus.make_label_indicator(metric, k=k).astype(int).tolist()
    assert [rows[name] for name in consensus.instances] == expected


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "neither --metric nor --gold"),
        (["--metric", "f2"], "did you mean 'f1'"),
        (["--metric", "top-k"], "expected --k K with --metric top-k"),
        (["--metric", "f1", "--k", "2"], "found 2 with --metric f1"),
        (["--metric", "f1", "--recall", "0.9"], "found a guarantee as well"),
        (["--gold", "truth.csv", "--k", "2"], "found no --metric top-k"),
    ],
)
def test_decide_needs_one_goal(run, panel, options, words):
    ran = run("decide", "a.csv", "b.csv", *options, "-o", "x.csv")
    assert ran.code == 2
    assert words in ran.err
    assert not (panel / "x.csv").exists()
