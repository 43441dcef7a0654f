import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mlconsensus as mlc
from mlconsensus.cli import main
from mlconsensus.cli.demo import run_demo


def test_the_demo_writes_a_panel_that_can_be_read_again(tmp_path):
    text = run_demo(tmp_path / "demo")
    names = ["ana", "bert", "carl", "dora", "emil"]
    assert sorted(path.name for path in (tmp_path / "demo").iterdir()) == [
        *(f"{n}.csv" for n in names),
        "truth.csv",
    ]
    panel = mlc.read_predictions([tmp_path / "demo" / f"{name}.csv" for name in names])
    assert panel.models == tuple(names)
    assert panel.shape == (5, 2000, 22)
    assert panel.complete
    for method in ("BM", *(kind.name for kind in mlc.COMBINERS.values())):
        assert f"\n{method} " in text


def test_a_folder_with_something_in_it_is_left_alone(tmp_path):
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(mlc.InputError, match="found something there already"):
        run_demo(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_the_readme_shows_what_the_demo_prints(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    readme = (Path(__file__).parent.parent / "README.md").read_text()
    assert (
        f"```text\n{run_demo('mlconsensus-demo', program='.venv/bin/mlconsensus')}\n```"
        in readme
    )


def test_what_to_try_next_can_be_pasted(tmp_path, monkeypatch):
    """A shell splits all lines; the first runs in its own process, the others here."""
    monkeypatch.chdir(tmp_path)
    program = shlex.quote(sys.executable) + " -m mlconsensus"
    lines = [
        line
        for line in run_demo(tmp_path / "it's my $demo", program=program).splitlines()
        if line[:2] == "  "
    ]
    assert len(lines) == 4
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
    for words in parted.stdout.splitlines()[1:]:
        python, _, name, *args = words.rstrip("\0").split("\0")
        assert (python, name) == (sys.executable, "mlconsensus")
        with pytest.raises(SystemExit) as end:
            main(args)
        assert end.value.code == 0
    assert (tmp_path / "report.html").is_file()


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
        assert f"\n  {name} evaluate consensus.csv" in capsys.readouterr().out
