import importlib.util
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mlconsensus as mlc
from mlconsensus.cli import main
from mlconsensus.cli.demo import run_demo
from mlconsensus.datasets.support_tickets import FOLDER

ROOT = Path(__file__).parents[1]


def test_the_files_come_from_the_committed_script(tmp_path):
    spec = importlib.util.spec_from_file_location(
        "make_demo_files", ROOT / "tools" / "make_demo_files.py"
    )
    script = importlib.util.module_from_spec(spec)
    sys.modules["make_demo_files"] = script
    spec.loader.exec_module(script)
    script.make_files(tmp_path)
    names = sorted(path.name for path in FOLDER.iterdir())
    assert names == ["answers.jsonl", "tickets.csv", "truth.jsonl"]
    for name in names:
        assert (tmp_path / name).read_bytes() == (FOLDER / name).read_bytes()
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 300_000


def test_support_tickets_have_their_truth_and_their_texts():
    tickets = mlc.datasets.load_support_tickets()
    assert tickets.predictions.shape == (6, 300, 12)
    assert tickets.truth.shape == (300, 12)
    assert tickets.truth.any(axis=1).all()
    export = tickets.predictions.labels.index("export")
    is_export = np.array(["export" in text.lower() for text in tickets.texts])
    assert is_export.sum() > 20
    assert tickets.truth[is_export, export].all()


def test_the_demo_writes_the_input_and_the_results(tmp_path):
    text = run_demo(tmp_path / "demo")
    folder = tmp_path / "demo"
    assert sorted(path.name for path in folder.iterdir()) == [
        "answers.jsonl",
        "consensus.csv",
        "label-sets.csv",
        "report.html",
        "tickets.csv",
        "truth.jsonl",
    ]
    consensus = mlc.combine(mlc.read_predictions(folder / "answers.jsonl"))
    written = mlc.io.read_table(folder / "consensus.csv")
    np.testing.assert_array_equal(written.scores, consensus.scores)
    label_sets = mlc.io.read_table(folder / "label-sets.csv").scores
    np.testing.assert_array_equal(
        label_sets, consensus.make_label_indicator(empty="top")
    )
    for method in mlc.COMBINERS:
        assert f"\n{method.replace('_', '-')} " in text
    for path in folder.iterdir():
        assert f"\n  {path.name} " in text


def test_the_demo_says_what_can_be_checked(tmp_path):
    """The printed findings are those that the simulation put in."""
    text = " ".join(run_demo(tmp_path / "demo").split())
    assert re.search(r"6 models are worth at most [345]\.\d independent models", text)
    assert "aurora-cold and aurora-hot behave like one model" in text
    assert "birch-1 and birch-2 behave like one model" in text
    assert text.count("To check:") == 1
    assert "To check: cobalt-mini is weak" in text
    assert text.count("CONSENSUS") == 3


def test_lines_of_the_demo_fit_a_terminal(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for line in run_demo("mlconsensus-demo", ".venv/bin/mlconsensus").splitlines():
        assert len(line) <= 88


def test_a_folder_with_something_in_it_is_left_alone(tmp_path):
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(mlc.InputError, match="found something there already"):
        run_demo(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_what_to_try_next_can_be_pasted(tmp_path, monkeypatch):
    """A shell splits all lines; the first runs in its own process, the others here."""
    monkeypatch.chdir(tmp_path)
    program = shlex.quote(sys.executable) + " -m mlconsensus"
    text = run_demo(tmp_path / "it's my $demo", program=program)
    lines = text.split("Try next:\n\n")[1].splitlines()
    assert len(lines) == 3
    done = subprocess.run(
        lines[0], shell=True, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    parted = subprocess.run(
        "\n".join(f"printf '%s\\0' {line}; echo" for line in lines),
        shell=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    for words in parted.stdout.splitlines():
        python, _, name, *args = words.rstrip("\0").split("\0")
        assert (python, name) == (sys.executable, "mlconsensus")
        with pytest.raises(SystemExit) as end:
            main(args)
        assert end.value.code == 0
    assert (tmp_path / "sets.csv").is_file()


def test_commands_to_try_name_the_program_as_it_was_called(
    tmp_path, monkeypatch, capsys
):
    """The demo prints `mlconsensus` if it is on the path, and its full path if not."""
    script = Path(sys.executable).parent / "mlconsensus"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(script), "demo"])
    for path, name in (
        (f"{script.parent}:/usr/bin:/bin", "mlconsensus"),
        ("/usr/bin:/bin", str(script)),
    ):
        shutil.rmtree(tmp_path / "mlconsensus-demo", ignore_errors=True)
        monkeypatch.setenv("PATH", path)
        with pytest.raises(SystemExit):
            main(["demo"])
        assert f"\n  {name} compare mlconsensus-demo/" in capsys.readouterr().out
