"""Annotation tools on the command line: their exports in, what they import out."""

import json
from pathlib import Path

import pytest

DATA = Path(__file__).parent.parent / "data"


@pytest.mark.parametrize("stream", ["--stream", "--no-stream"])
def test_every_export_is_combined(run, stream):
    files = ["doccano_ann.jsonl", "prodigy_binary.jsonl", "argilla.jsonl"]
    for name in [*files, "label_studio.json", "annif/tfidf"]:
        ran = run("combine", DATA / name, stream, "-o", "out.csv", "--force")
        assert ran.code == 0
    ran = run(
        "combine",
        DATA / "annif" / "tfidf",
        DATA / "annif" / "mllm",
        stream,
        "-o",
        "out.csv",
        "--force",
    )
    assert ran.err.splitlines()[-1].startswith(
        "combined 2 models × 2 instances × 3 labels"
    )
    ran = run(
        "compare",
        DATA / "annif" / "tfidf",
        DATA / "annif" / "mllm",
        "--truth",
        DATA / "annif" / "gold",
    )
    assert ran.code == 0


def test_label_studio_and_back(run, tmp_path):
    export = DATA / "label_studio.json"
    columns = "label=topics,instance=text"
    ran = run(
        "combine",
        export,
        "--columns",
        columns,
        "--output-format",
        "label-studio",
        "-o",
        "predictions.json",
    )
    assert ran.code == 0
    tasks = json.loads((tmp_path / "predictions.json").read_text())
    assert [task["data"] for task in tasks] == [
        {"text": "Parliament votes on the budget"},
        {"text": "A cup of tea"},
    ]
    assert all(0 < task["predictions"][0]["score"] <= 1 for task in tasks)
    ran = run("agreement", export, "--columns", columns, "--json")
    assert json.loads(ran.out)["models"]


def test_a_format_that_is_forced_on_other_files_is_refused_in_one_line(run):
    ran = run("combine", DATA / "answers.jsonl", "--format", "label-studio")
    assert (ran.code, ran.out) == (2, "")
    assert "answers.jsonl: found no answer that can be read" in ran.err


def test_one_model_is_one(run, tmp_path):
    (tmp_path / "a.csv").write_text("id,x\n1,1\n")
    ran = run("combine", "a.csv", "-o", "out.csv")
    assert ran.err.startswith(
        "combined 1 model × 1 instance × 1 label with weighted_consensus"
    )


def test_what_is_written_ranked_can_be_judged(run, panel):
    assert (
        run(
            "combine",
            "a.csv",
            "b.csv",
            "--layout",
            "ranked",
            "--top-k",
            "2",
            "-o",
            "top.tsv",
        ).code
        == 0
    )
    assert run("evaluate", "top.tsv", "--truth", "truth.csv").code == 0
