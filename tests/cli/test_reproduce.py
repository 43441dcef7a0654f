"""`mlconsensus reproduce`."""

import errno
import json
import os

import pytest

pytest_plugins = ["shared_data"]

QUICK = [
    "--repeats",
    "1",
    "--models",
    "3",
    "--folds",
    "3",
    "--jobs",
    "1",
    "--cache",
    "cache",
]


def test_the_table(run, data_folder, tmp_path):
    ran = run("reproduce", "medical", *QUICK, "--json", "a.json", "--markdown", "a.md")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(
        "1 repeat of 3 models in 3 folds, seed 0; binary relevance with linear SVMs"
    )
    for row in ("BM", "MV", "BGCM", "MLCM-r", "MLCM-a"):
        assert f"\n{row} " in ran.out
    result = json.loads((tmp_path / "a.json").read_text())
    assert result["medical"]["MV"]["micro_auc"]["paper"] == 0.9321
    assert (tmp_path / "a.md").read_text().startswith("# Reproduction with `svm`")
    again = run("reproduce", "medical", *QUICK)
    assert again.out == ran.out
    damaged = next((tmp_path / "cache").rglob("*.npz"))
    damaged.write_bytes(b"")
    again = run("reproduce", "medical", *QUICK)
    assert again.out == ran.out
    assert "found a damaged file of the cache; it is computed again" in again.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["medcal"],
            "data set: found 'medcal', expected one of enron, .*; did you mean "
            "'medical'?",
        ),
        (
            ["medical", "--learner", "tree"],
            "learner: found 'tree', expected one of svm, .*; did you mean 'trees'?",
        ),
        (
            ["medical", "--repeats", "0"],
            "repeats: found 0, expected a whole number of at least 1",
        ),
        (["medical", "--jobs", "0"], "jobs: found 0, expected a number of processes"),
        (
            ["medical", "--json", "there.json"],
            "there.json: found an existing file, expected none",
        ),
    ],
)
def test_bad_arguments(run, tmp_path, arguments, message):
    (tmp_path / "there.json").touch()
    ran = run("reproduce", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    assert message.split(".*")[0] in ran.err
    assert message.split(".*")[-1] in ran.err


def test_no_network_and_no_file(run, toy, server, tmp_path):
    (server[0] / "toy.arff").unlink()
    ran = run("reproduce", "toy", *QUICK, "--json", "a.json")
    assert (ran.code, ran.out) == (2, "")
    assert "found the answer 404" in ran.err
    assert ran.err.count("\n") == 1
    assert not (tmp_path / "a.json").exists()


def test_a_full_disk(run, data_folder, tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    ran = run("reproduce", "medical", *QUICK, "--json", "a.json")
    assert (ran.code, ran.out) == (2, "")
    assert "no space left on device" in ran.err
    assert ran.err.count("\n") == 1
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
