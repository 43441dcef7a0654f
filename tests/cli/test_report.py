import hashlib
import json

import pytest


@pytest.mark.parametrize(
    ("output", "start"), [("r.html", "<!doctype html>"), ("r.json", "{"), ("r.txt", "Consensus of 3")]
)
def test_report(run, panel, output, start):
    ran = run("report", "a.csv", "b.csv", "c.csv", "--truth", "truth.csv", "--output", output)
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.splitlines()[-1] == f"reported on 3 models × 3 instances × 3 labels with Filter → {output}"
    assert (panel / output).read_text(encoding="utf-8").startswith(start)


def test_to_standard_output(run, panel):
    text = run("report", "a.csv", "b.csv", "c.csv").out
    assert text.startswith("Consensus of 3 models: 3 instances × 3 labels\n")
    assert "No truth was given" in text
    assert json.loads(run("report", "a.csv", "b.csv", "--format", "json").out)["panel"]["n_models"] == 2
    assert run("report", "a.csv", "b.csv", "--format", "html").out.startswith("<!doctype html>")


def test_how_it_was_made(run, panel):
    (panel / "deep").mkdir()
    (panel / "deep" / "d e.csv").write_bytes((panel / "b.csv").read_bytes())
    args = [
        "a.csv",
        panel / "deep" / "d e.csv",
        "--truth",
        "truth.csv",
        "--method",
        "mlcm-r",
        "--labels",
        "intersection",
    ]
    found = json.loads(run("report", *args, "--format", "json").out)["origin"]
    command = "mlconsensus report a.csv 'd e.csv' --truth truth.csv --method mlcm-r --labels intersection"
    assert (found["command"], found["method"], found["reason"]) == (command, "MLCM-r", "it was asked for")
    assert found["parameters"]["alpha"] == "2.0"
    assert [(given["name"], given["sha256"]) for given in found["inputs"]] == [
        (name, hashlib.sha256((panel / path).read_bytes()).hexdigest())
        for name, path in (("a.csv", "a.csv"), ("d e.csv", "b.csv"), ("truth.csv", "truth.csv"))
    ]


def test_standard_input_is_hashed_as_the_panel(shell, panel):
    ran = shell("cat a.csv | mlconsensus report - b.csv --input-format csv --format json")
    inputs = json.loads(ran.out)["origin"]["inputs"]
    assert [given["name"] for given in inputs] == ["the panel, with standard input", "b.csv"]
    assert inputs[0]["size"] is None


def test_the_same_bytes_wherever_it_is_written(run, panel):
    for output in ("one.html", "two.html"):
        run("report", "a.csv", "b.csv", "c.csv", "--output", output)
    assert (panel / "one.html").read_bytes() == (panel / "two.html").read_bytes()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--output", "r.pdf"], "r.pdf: found the suffix '.pdf', expected one of .html, .htm, .json, .txt"),
        (["--output", "a.csv", "--format", "html"], "a.csv: found an existing file"),
        (
            ["--output", "truth.csv", "--truth", "truth.csv", "--format", "html", "--force"],
            "found among the input files",
        ),
        (["--output", "no/r.html"], "no/r.html: found no folder"),
        (["--output", "r.html", "--method", "mlcmr"], "did you mean 'mlcm-r'?"),
        (["--output", "r.html", "--truth", "other.csv"], "found none of the names that are judged"),
        (["--output", "r.html", "--truth", "gone.csv"], "gone.csv: found no such file"),
        (["--output", "r.html", "--format", "pdf"], "'pdf'"),
    ],
)
def test_bad_input(run, panel, args, words):
    (panel / "other.csv").write_text("id,sport\n8,1\n")
    before = {path: path.read_bytes() for path in panel.iterdir()}
    ran = run("report", "a.csv", "b.csv", "c.csv", *args)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err.splitlines()[-1]
    assert {path: path.read_bytes() for path in panel.iterdir()} == before


def test_force(run, panel):
    (panel / "r.html").write_text("old")
    assert run("report", "a.csv", "b.csv", "--output", "r.html").code == 2
    assert run("report", "a.csv", "b.csv", "--output", "r.html", "--force").code == 0
    assert (panel / "r.html").read_text(encoding="utf-8").startswith("<!doctype html>")
