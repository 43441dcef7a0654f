"""Weights, clusterings and one scale on the command line."""

import json

import numpy as np
import polars as pl
import pytest

import mlconsensus as mlc
from mlconsensus.io.formats.clusterings import read_clustering


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ann.csv").write_text("id,law,war\n1,1,0\n2,0,1\n3,1,1\n4,0,0\n")
    (tmp_path / "bob.csv").write_text("id,law,war\n1,0,1\n2,0,1\n3,1,0\n4,0,0\n")
    (tmp_path / "kinds.csv").write_text("id,kind\n1,a\n2,b\n3,a\n4,b\n")
    return tmp_path


def scores_of(path):
    return pl.read_csv(path).drop("instance").to_numpy()


def test_weights(files, run):
    panel = mlc.read_predictions(["ann.csv", "bob.csv"])
    assert (
        run(
            "combine",
            "ann.csv",
            "bob.csv",
            "--method",
            "mv",
            "--weight",
            "ann=3",
            "-o",
            "out.csv",
        ).code
        == 0
    )
    np.testing.assert_allclose(
        scores_of("out.csv"), mlc.majority_vote(panel, weights=[3, 1])
    )
    done = run(
        "combine",
        "ann.csv",
        "bob.csv",
        "--method",
        "mv",
        "--weight",
        "ann=3",
        "--stream",
        "-o",
        "streamed.csv",
    )
    assert done.code == 0
    np.testing.assert_allclose(
        scores_of("streamed.csv"), mlc.majority_vote(panel, weights=[3, 1])
    )
    why = run(
        "explain",
        "ann.csv",
        "bob.csv",
        "--method",
        "mv",
        "--weight",
        "ann=3",
        "--instance",
        "1",
        "--json",
    )
    assert json.loads(why.out)[0]["score"] == 0.75


def test_clusterings(files, run):
    panel = mlc.read_predictions(["ann.csv", "bob.csv"]).with_clusterings(
        {"kinds": read_clustering("kinds.csv")}
    )
    wanted = [
        "combine",
        "ann.csv",
        "bob.csv",
        "--method",
        "mlcm-r",
        "--clustering",
        "kinds.csv",
        "-o",
        "out.csv",
    ]
    assert run(*wanted).code == 0
    np.testing.assert_allclose(scores_of("out.csv"), mlc.mlcm_r(panel))
    assert not np.allclose(scores_of("out.csv")[3], scores_of("out.csv")[2])
    pl.read_csv("kinds.csv").write_parquet("kinds.parquet")
    assert (
        read_clustering("kinds.parquet")
        == read_clustering("kinds.csv")
        == {"1": "a", "2": "b", "3": "a", "4": "b"}
    )


def test_one_scale(files, run):
    rng = np.random.default_rng(0)
    for name, power in (("x", 1), ("y", 1), ("z", 5)):
        pl.DataFrame(
            {
                "id": range(50),
                "law": rng.random(50) ** power,
                "war": rng.random(50) ** power,
            }
        ).write_csv(f"{name}.csv")
    wanted = ["combine", "x.csv", "y.csv", "z.csv", "--method", "mv"]
    assert run(*wanted, "--rescale", "-o", "out.csv").code == 0
    panel = mlc.read_predictions(["x.csv", "y.csv", "z.csv"])
    np.testing.assert_allclose(
        scores_of("out.csv"), mlc.majority_vote(mlc.rescale(panel))
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--weight", "ann"],
            "--weight: found 'ann', expected a model's name, = and a number",
        ),
        (
            ["--weight", "ann=much"],
            "--weight: found 'ann=much', expected a model's name, = and a number",
        ),
        (
            ["--weight", "ann=1", "--weight", "ann=2"],
            "--weight: found 'ann' twice, expected each model once",
        ),
        (
            ["--weight", "amn=1"],
            "weights: found one for 'amn', expected names of models; did you mean "
            "'ann'?",
        ),
        (
            ["--weight", "ann=-1"],
            "weights, model 'ann': found -1.0, expected a finite number of at least 0",
        ),
        (
            ["--clustering", "kinds.csv"],
            "WeightedConsensus: found clusterings, which it cannot use, expected "
            "BGCM or MLCMr",
        ),
        (["--clustering", "none.csv"], "none.csv: found no such file"),
        (
            ["--clustering", "ann.csv"],
            "ann.csv: found 3 columns, expected 2: the instance and its cluster",
        ),
        (
            ["--clustering", "twice.csv"],
            "twice.csv, row 2: found the instance '1' again, expected each once",
        ),
        (
            ["--clustering", "empty.csv"],
            "empty.csv: found no instance with a cluster, expected at least one",
        ),
        (
            ["--clustering", "others.csv"],
            "clustering 'others': found none of the panel's instances",
        ),
        (
            ["--clustering", "kinds.jsonl"],
            "kinds.jsonl: found the format jsonl, expected a table of each instance "
            "and",
        ),
        (
            ["--clustering", "kinds.csv", "--clustering", "kinds.tsv"],
            "--clustering: found two files called 'kinds'",
        ),
        (
            ["--rescale", "--stream"],
            "--rescale: found with a panel to be streamed, expected one that fits "
            "into memory",
        ),
    ],
)
def test_bad_members(files, run, arguments, message):
    (files / "twice.csv").write_text("id,kind\n1,a\n1,b\n")
    (files / "empty.csv").write_text("id,kind\n1,\n")
    (files / "others.csv").write_text("id,kind\n77,a\n")
    (files / "kinds.jsonl").write_text("{}\n")
    (files / "kinds.tsv").write_text("id\tkind\n1\ta\n")
    done = run("combine", "ann.csv", "bob.csv", *arguments, "-o", "out.csv")
    assert done.code == 2
    assert message in done.err
    assert not (files / "out.csv").exists()
