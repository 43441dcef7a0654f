"""`combine` with files that stay on disk: by itself, when asked for, on a cluster."""

import gc
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest


def rows(text):
    return [line.split(",") for line in text.splitlines()]


def same_scores(one, other):
    (head, *result) = rows(one)
    (expected_head, *expected) = rows(other)
    assert head == expected_head
    assert [row[0] for row in result] == [row[0] for row in expected]
    cells = [
        np.array([[float(cell or "nan") for cell in row[1:]] for row in table])
        for table in (result, expected)
    ]
    np.testing.assert_allclose(*cells, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    "options",
    [[], ["--top-k", "2"], ["--decide", "instances"], ["--decide", "threshold"]],
)
def test_streaming_says_and_writes_the_same(run, panel, options):
    files = ["a.csv", "b.csv", "c.csv"]
    read = run("combine", *files, "-o", "read.csv", "--no-stream", *options)
    streamed = run("combine", *files, "-o", "streamed.csv", "--stream", *options)
    assert (read.code, streamed.code, streamed.out) == (0, 0, "")
    # How similar the result is to voting is known only in memory.
    similarity = re.compile(r"; the first label is the same as with voting .*?(?=\))")
    expected = similarity.sub("", read.err).replace("read.csv", "streamed.csv")
    assert streamed.err == expected
    same_scores((panel / "streamed.csv").read_text(), (panel / "read.csv").read_text())
    assert not [path for path in panel.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("files", [["a.csv", "b.csv"], ["a.csv", "none.csv"]])
def test_nothing_stays_out_of_reach_of_the_program_that_calls_us(run, panel, files):
    gc.unfreeze()
    run("combine", *files, "-o", "out.csv", "--stream")
    assert gc.get_freeze_count() == 0


def test_json_says_the_same(run, panel):
    read = run("combine", "a.csv", "c.csv", "-o", "x.csv", "--json")
    streamed = run(
        "combine", "a.csv", "c.csv", "-o", "x.csv", "--json", "--stream", "--force"
    )
    result = json.loads(streamed.out)
    expected = json.loads(read.out)
    assert expected.pop("reason").startswith(result.pop("reason"))
    assert result == expected


def test_what_would_not_fit_is_streamed(run, panel, monkeypatch):
    monkeypatch.setattr("mlconsensus.execution.memory.available_memory", lambda: 100)
    monkeypatch.setenv("MLCONSENSUS_LIMIT", "1")
    ran = run("combine", "a.csv", "b.csv", "-o", "x.parquet")
    assert ran.code == 0
    assert ran.err.startswith(
        "streaming: the files would take more than half of the memory that is free"
    )
    assert pl.read_parquet(panel / "x.parquet").shape == (3, 4)
    for others in (
        ["-o", "x.jsonl"],
        ["-o", "y.csv", "--no-stream"],
        ["-o", "z.csv", "--decide", "f1"],
        [],
    ):
        ran = run("combine", "a.csv", "b.csv", *others)
        assert ran.code == 0
        assert "streaming" not in ran.err


def test_folders(run, panel):
    (panel / "more").mkdir()
    for name in ("a.csv", "b.csv"):
        (panel / name).rename(panel / "more" / name)
    (panel / "more" / "readme.txt").write_text("not a file of predictions")
    (panel / "c.parquet").mkdir()
    frame = pl.read_csv(panel / "c.csv", schema_overrides={"id": pl.String})
    frame[:1].write_parquet(panel / "c.parquet" / "part-0.parquet")
    frame[1:].write_parquet(panel / "c.parquet" / "part-1.parquet")
    assert (
        run("combine", "more", "c.parquet", "-o", "read.csv", "--no-stream").code == 0
    )
    assert (
        run("combine", "more", "c.parquet", "-o", "streamed.csv", "--stream").code == 0
    )
    alone = run("combine", "more/a.csv", "more/b.csv", "c.csv")
    same_scores((panel / "read.csv").read_text(), alone.out)
    same_scores((panel / "streamed.csv").read_text(), alone.out)
    ran = run("combine", "more", "-o", "more/a.csv", "--force")
    assert "more/a.csv: found among the input files too" in ran.err
    (panel / "empty").mkdir()
    assert (
        "empty: found a folder without files of predictions"
        in run("combine", "empty").err
    )


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (
            ["a.csv", "--stream"],
            "standard output: found it as the place of a streamed consensus",
        ),
        (
            ["a.csv", "--stream", "-o", "x.jsonl"],
            "x.jsonl: found a format that cannot be written block by block",
        ),
        (
            ["a.csv", "--stream", "-o", "x.csv", "--decide", "f1"],
            "--decide f1: found with a panel to be streamed",
        ),
        (
            ["a.csv", "--dask", "--no-stream", "-o", "x.csv"],
            "--dask: found together with --no-stream",
        ),
        (
            ["a.csv", "-o", "x.csv", "--dask", "b.csv"],
            "--dask: found 'b.csv', expected an address",
        ),
        (
            ["a.csv", "nothere.csv", "-o", "x.csv", "--stream"],
            "nothere.csv: found no such file",
        ),
    ],
)
def test_bad_calls(run, panel, args, words):
    ran = run("combine", *args)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1
    assert words in ran.err
    assert sorted(path.name for path in panel.iterdir()) == [
        "a.csv",
        "b.csv",
        "c.csv",
        "truth.csv",
    ]


@pytest.mark.slow
def test_a_cluster_of_this_machines_own(tmp_path):
    pytest.importorskip("distributed")
    (tmp_path / "a.csv").write_text("id,sport,news\n1,1,0\n2,0,1\n")
    (tmp_path / "b.csv").write_text("id,news,sport\n2,1,1\n1,0,1\n")
    command = [
        str(Path(sys.executable).with_name("mlconsensus")),
        "combine",
        "a.csv",
        "b.csv",
        "-o",
        "x.csv",
        "--dask",
    ]
    done = subprocess.run(
        [*command, "--method", "mv"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines() == [
        "combined 2 models × 2 instances × 2 labels with majority_vote (the method was "
        "requested) → x.csv"
    ]
    assert (
        tmp_path / "x.csv"
    ).read_text() == "instance,sport,news\n1,1.0,0.0\n2,0.5,1.0\n"
