"""Long tables, LLM answers and label names on the command line."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

DATA = Path(__file__).parent.parent / "data"


@pytest.fixture
def data(tmp_path):
    shutil.copytree(DATA, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_columns(data, run):
    done = run(
        "combine",
        "export.csv",
        "--columns",
        "model=who,instance=text_id",
        "--method",
        "mv",
        "-o",
        "out.csv",
    )
    assert done.code == 0, done.err
    assert done.err.splitlines()[0] == "columns left out: 2 ('when', 'comment')"
    out = pl.read_csv("out.csv")
    assert out.columns == ["instance", "sports", "politics", "weather"]
    assert out.rows() == [("d1", 1.0, 0.0, 0.0), ("d2", 0.0, 1.0, 1.0)]
    for columns, word in [
        ("who", "such as label=tag"),
        ("model=who,model=x", "'model' twice"),
        ("x=who", "'x'"),
    ]:
        refused = run("combine", "export.csv", "--columns", columns)
        assert refused.code == 2
        assert word in refused.err


def test_answers_of_language_models(data, run):
    with open("more.jsonl", "w") as file:
        file.write(
            '{"instance": "d1", "labels": ["Sport"]}\nSorry!\n{"instance": "d4", '
            '"labels": ["Weather", "cats"]}\n'
        )
    done = run("combine", "answers.jsonl", "more.jsonl", "-o", "out.csv")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "more.jsonl, line 2: found no JSON" in done.err
    assert "(--skip-bad leaves them out)" in done.err
    assert not (data / "out.csv").exists()
    (data / "aliases.csv").write_text("name,stands for\nsport,sports\n")
    (data / "labels.txt").write_text("politics\nsports\nweather\n")
    names = ["--vocabulary", "labels.txt", "--aliases", "aliases.csv", "--ignore-case"]
    for stream in ([], ["--stream"]):
        done = run(
            "combine",
            "answers.jsonl",
            "more.jsonl",
            "--skip-bad",
            *names,
            *stream,
            "--force",
            "-o",
            "out.csv",
        )
        assert done.code == 0, done.err
        line, *_ = done.err.splitlines()
        assert "answers without labels read as missing: 2" in line
        assert "bad answers left out: 1 ('more.jsonl, line 2')" in line
        assert "labels called otherwise: 2 ('Sport', 'Weather')" in line
        assert "labels outside the vocabulary left out: 1 ('cats')" in line
        assert pl.read_csv("out.csv").columns == [
            "instance",
            "sports",
            "politics",
            "weather",
        ]
    assert (
        "found the key 'id'"
        in run("combine", "answers.jsonl", "more.jsonl", "--strict").err
    )


def test_the_truth_is_read_as_the_panel_is(data, run):
    (data / "a.csv").write_text("id,Law,war\n1,1,0\n2,0,1\n")
    (data / "b.csv").write_text("id,law,War\n1,1,0\n2,1,1\n")
    (data / "truth.csv").write_text("annotator,item,label\ngold,1,LAW\ngold,2,WAR\n")
    done = run(
        "compare",
        "a.csv",
        "b.csv",
        "--truth",
        "truth.csv",
        "--ignore-case",
        "--each-model",
    )
    assert done.code == 0, done.err
    assert done.out.splitlines()[1].split()[:2] == [
        "a",
        "1.0000*",
    ]  # it says what is true
    report = run(
        "report",
        "a.csv",
        "b.csv",
        "--truth",
        "truth.csv",
        "--ignore-case",
        "-o",
        "out.json",
    )
    assert report.code == 0, report.err


def test_labels_that_look_alike_and_their_aliases(data, run):
    (data / "a.csv").write_text("id,Politics,colour,sports \n1,1,0,1\n2,1,1,0\n")
    (data / "b.csv").write_text(
        "id,politics,color,sports,war\n1,1,1,0,0\n2,0,1,1,1\n3,0,0,1,1\n"
    )
    assert "found no label" in run("combine", "a.csv", "b.csv").err
    done = run("labels", "a.csv", "b.csv", "--suggest", "aliases.csv")
    assert done.code == 0, done.err
    assert done.out.splitlines()[0].split() == [
        "name",
        "looks",
        "like",
        "similarity",
        "used",
        "that",
        "one",
    ]
    # The name that is used more often stays.
    pairs = {("politics", "Politics"), ("sports ", "sports"), ("colour", "color")}
    assert set(pl.read_csv("aliases.csv").rows()) == pairs
    assert {
        (one["name"], one["stands_for"])
        for one in json.loads(run("labels", "a.csv", "b.csv", "--json").out)
    } == pairs
    assert (
        run(
            "combine", "a.csv", "b.csv", "--aliases", "aliases.csv", "-o", "out.csv"
        ).code
        == 0
    )
    assert pl.read_csv("out.csv").columns == [
        "instance",
        "Politics",
        "color",
        "sports",
        "war",
    ]
    assert run("labels", "a.csv", "b.csv", "--aliases", "aliases.csv").err.endswith(
        "no two of 4 labels look alike\n"
    )
    refused = run("labels", "a.csv", "--suggest", "a.csv", "--force")
    assert (refused.code, "among the input files" in refused.err) == (2, True)
