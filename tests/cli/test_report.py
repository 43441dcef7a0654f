import hashlib
import json
import shlex

import pytest


@pytest.mark.parametrize(
    ("output", "start"),
    [("r.html", "<!doctype html>"), ("r.json", "{"), ("r.txt", "Consensus of 3")],
)
def test_report(run, panel, output, start):
    ran = run(
        "report", "a.csv", "b.csv", "c.csv", "--truth", "truth.csv", "--output", output
    )
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.splitlines()[-1] == (
        "reported on 3 models × 3 instances × 3 labels with weighted_consensus → "
        f"{output}"
    )
    assert (panel / output).read_text(encoding="utf-8").startswith(start)


def test_to_standard_output(run, panel):
    text = run("report", "a.csv", "b.csv", "c.csv").out
    assert text.startswith("Consensus of 3 models: 3 instances × 3 labels\n")
    assert "Evaluation with ground truth" not in text
    assert (
        json.loads(run("report", "a.csv", "b.csv", "--output-format", "json").out)[
            "panel"
        ]["n_models"]
        == 2
    )
    assert run("report", "a.csv", "b.csv", "--output-format", "html").out.startswith(
        "<!doctype html>"
    )


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
    result = json.loads(run("report", *args, "--output-format", "json").out)["origin"]
    command = (
        "mlconsensus report a.csv 'd e.csv' --labels intersection --truth "
        "truth.csv --method mlcm-r"
    )
    assert (result["command"], result["method"]) == (command, "mlcm_r")
    assert result["reason"].startswith("the method was requested; the first label ")
    assert result["reason_codes"] == ["requested"]
    assert result["parameters"]["alpha"] == "2.0"
    assert [(scores["name"], scores["sha256"]) for scores in result["inputs"]] == [
        (name, hashlib.sha256((panel / path).read_bytes()).hexdigest())
        for name, path in (
            ("a.csv", "a.csv"),
            ("d e.csv", "b.csv"),
            ("truth.csv", "truth.csv"),
        )
    ]


def test_standard_input_is_hashed_as_the_panel(shell, panel):
    ran = shell(
        "cat a.csv | mlconsensus report - b.csv --format csv --output-format json"
    )
    inputs = json.loads(ran.out)["origin"]["inputs"]
    assert [scores["name"] for scores in inputs] == [
        "the panel, with standard input",
        "b.csv",
    ]
    assert inputs[0]["size"] is None


def test_what_was_asked_for_about_members_is_written_down(run, panel):
    (panel / "k.csv").write_text("id,cluster\n1,x\n2,y\n3,y\n")
    args = [
        "--weight",
        "a=2",
        "--weight",
        "b=0.5",
        "--clustering",
        panel / "k.csv",
        "--rescale",
        "--format",
        "csv",
    ]
    result = json.loads(
        run(
            "report",
            "a.csv",
            "b.csv",
            *args,
            "--method",
            "mlcm-r",
            "--output-format",
            "json",
        ).out
    )["origin"]
    assert shlex.split(result["command"])[2:4] == ["a.csv", "b.csv"]
    for words in (
        "--format csv",
        "--weight a=2 --weight b=0.5",
        "--clustering k.csv",
        "--rescale",
        "--method mlcm-r",
    ):
        assert words in result["command"]
    assert "--output-format" not in result["command"].split()


def test_a_folder_of_files(run, panel):
    (panel / "in").mkdir()
    for name in ("a.csv", "b.csv"):
        (panel / "in" / name).write_bytes((panel / name).read_bytes())
    (panel / "in" / "notes.txt").write_text("not read")
    ran = run("report", "in", "--output", "r.json")
    assert (ran.code, ran.out) == (0, "")
    inputs = json.loads((panel / "r.json").read_text())["origin"]["inputs"]
    assert [(scores["name"], scores["sha256"]) for scores in inputs] == [
        (name, hashlib.sha256((panel / name).read_bytes()).hexdigest())
        for name in ("a.csv", "b.csv")
    ]


def test_a_table_in_parts(run, panel):
    pl = pytest.importorskip("polars")
    (panel / "d.parquet").mkdir()
    for position, part in enumerate(
        ({"id": ["1", "2"], "sport": [1, 0]}, {"id": ["3"], "sport": [0]})
    ):
        pl.DataFrame(part).write_parquet(panel / "d.parquet" / f"{position}.parquet")
    inputs = json.loads(
        run("report", "a.csv", "d.parquet", "--output-format", "json").out
    )["origin"]["inputs"]
    assert [scores["name"] for scores in inputs] == [
        "a.csv",
        "d.parquet/0.parquet",
        "d.parquet/1.parquet",
    ]


def test_the_same_bytes_wherever_it_is_written(run, panel):
    for output in ("one.html", "two.html"):
        run("report", "a.csv", "b.csv", "c.csv", "--output", output)
    assert (panel / "one.html").read_bytes() == (panel / "two.html").read_bytes()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (
            ["--output", "r.pdf"],
            "r.pdf: found the suffix '.pdf', expected one of .html, .htm, .json, .txt",
        ),
        (
            ["--output", "a.csv", "--output-format", "html"],
            "a.csv: found an existing file",
        ),
        (
            [
                "--output",
                "truth.csv",
                "--truth",
                "truth.csv",
                "--output-format",
                "html",
                "--force",
            ],
            "found among the input files",
        ),
        (["--output", "no/r.html"], "no/r.html: found no folder"),
        (
            ["--output", "folder.html"],
            "folder.html: found a folder, expected a file to write",
        ),
        (["--output", ""], "output: found an empty name, expected a file to write"),
        (["--output", "r.html", "--method", "mlcmr"], "did you mean 'mlcm_r'?"),
        (
            ["--output", "r.html", "--truth", "other.csv"],
            "found none of the names that are judged",
        ),
        (["--output", "r.html", "--truth", "gone.csv"], "gone.csv: found no such file"),
        (["--output", "r.html", "--output-format", "pdf"], "'pdf'"),
    ],
)
def test_bad_input(run, panel, args, words):
    (panel / "other.csv").write_text("id,sport\n8,1\n")
    (panel / "folder.html").mkdir()
    before = {path: path.read_bytes() for path in panel.iterdir() if path.is_file()}
    ran = run("report", "a.csv", "b.csv", "c.csv", *args)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err.splitlines()[-1]
    assert {
        path: path.read_bytes() for path in panel.iterdir() if path.is_file()
    } == before


def test_force(run, panel):
    (panel / "r.html").write_text("old")
    assert run("report", "a.csv", "b.csv", "--output", "r.html").code == 2
    assert run("report", "a.csv", "b.csv", "--output", "r.html", "--force").code == 0
    assert (panel / "r.html").read_text(encoding="utf-8").startswith("<!doctype html>")
