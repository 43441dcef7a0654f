"""The examples do what their README says."""

import contextlib
import importlib.util
import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from mlconsensus.cli.main import cli

EXAMPLES = Path(__file__).parent.parent / "examples"
IN_TURN = threading.Lock()  # a process has one current folder
NEWS = [
    "newsroom.csv",
    "agency.tsv",
    "archive.parquet",
    "readers.jsonl",
    "startup.csv.gz",
]


def mlconsensus(folder, *args):
    command = [Path(sys.executable).with_name("mlconsensus"), *args]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=True
    )


@pytest.mark.parametrize("name", ["news", "llm_panel"])
def test_the_files_are_what_the_script_makes(name, tmp_path):
    shutil.copy(EXAMPLES / name / "make.py", tmp_path)
    subprocess.run([sys.executable, "make.py"], cwd=tmp_path, check=True)
    made = sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".parquet")
    assert made == sorted(
        p.name
        for p in (EXAMPLES / name).iterdir()
        if p.suffix not in (".parquet", ".md")
    )
    for file in made:
        assert (tmp_path / file).read_bytes() == (
            EXAMPLES / name / file
        ).read_bytes(), file


def test_news(tmp_path):
    done = mlconsensus(
        EXAMPLES / "news", "combine", *NEWS, "--output", str(tmp_path / "out.csv")
    )
    assert "20.8% of the 5 × 300 × 13 predictions are missing" in done.stderr
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert len(lines) == 301
    output = json.loads(
        in_process(
            EXAMPLES / "news", "compare", *NEWS, "--truth", "truth.csv", "--json"
        ).stdout
    )
    assert output["MV"]["ranking_loss"] < output["BM"]["ranking_loss"]


def in_process(folder, *args):
    """Run a command in this process, which is faster than a new one."""
    with IN_TURN, contextlib.chdir(folder):
        ran = CliRunner().invoke(cli, list(args))
    assert ran.exit_code == 0, ran.output
    return ran


def test_llm_panel(tmp_path):
    folder = EXAMPLES / "llm_panel"
    in_process(
        folder,
        "combine",
        "answers.jsonl",
        "--decide",
        "f1",
        "--output",
        str(tmp_path / "tags.jsonl"),
    )
    tags = [
        json.loads(line) for line in (tmp_path / "tags.jsonl").read_text().splitlines()
    ]
    assert len(tags) == 120
    assert all(isinstance(line["labels"], list) for line in tags)
    output = json.loads(
        in_process(
            folder, "compare", "answers.jsonl", "--truth", "truth.jsonl", "--json"
        ).stdout
    )
    assert (
        output["MLCM-a"]["ranking_loss"]
        < output["MV"]["ranking_loss"]
        < output["BM"]["ranking_loss"]
    )


@pytest.fixture
def hospitals(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES / "three_hospitals"))
    spec = importlib.util.spec_from_file_location(
        "three_hospitals", EXAMPLES / "three_hospitals" / "run.py"
    )
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    return example


def test_hospitals_that_work_at_the_same_time_print_whole_lines(hospitals, monkeypatch):
    written = []
    monkeypatch.setattr(hospitals.subprocess, "run", lambda *args, **options: None)
    monkeypatch.setattr(
        sys, "stdout", SimpleNamespace(write=written.append, flush=lambda: None)
    )
    hospitals.mlconsensus(Path("north"), "apply", "together.model")
    assert list(filter(None, written)) == ["north$ mlconsensus apply together.model\n"]


@pytest.mark.slow
def test_three_hospitals(tmp_path, monkeypatch, hospitals):
    example = hospitals
    monkeypatch.setattr(
        example,
        "mlconsensus",
        lambda folder, *args: in_process(folder, *args, "--force"),
    )
    apart, losses = example.run(tmp_path)
    assert apart < 1e-10
    sent = sorted(path.name for path in tmp_path.iterdir() if path.is_file())
    assert (
        len(sent) == 8
    )  # three files of statistics and a model, exact and private: all that crosses
    for name in sent:
        content = (tmp_path / name).read_bytes()
        assert not any(
            hospital in content for hospital in (b"north", b"south", b"west")
        )
        assert len(content) < 10_000
    for result in losses.values():
        assert result["together"] < result["majority voting"]
        assert result["private, ε = 1"] < result["majority voting"]


def test_adjudication(capsys):
    spec = importlib.util.spec_from_file_location(
        "adjudication", EXAMPLES / "adjudication" / "run.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main()
    lines = [
        line.split() for line in capsys.readouterr().out.splitlines() if "█" in line
    ]
    asked = [float(line[2]) for line in lines if line[1] == "answers"]
    at_random = [float(line[2]) for line in lines if line[:2] == ["at", "random"]]
    assert len(asked) == 4
    assert max(asked[2:]) < asked[1] < asked[0]
    assert all(one < other for one, other in zip(asked[1:], at_random, strict=True))
