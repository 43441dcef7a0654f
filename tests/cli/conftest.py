import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from mlconsensus.cli import main


class Ran(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(capfd, monkeypatch, tmp_path):
    """Run the command line in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*args):
        capfd.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(arg) for arg in args])
        out, err = capfd.readouterr()
        return Ran(end.value.code, out, err)

    return run


@pytest.fixture
def shell(tmp_path):
    """Run a line of shell with the real, installed command, in an empty folder."""
    env = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    env |= {
        name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ
    }  # what this process tests

    def shell(line):
        done = subprocess.run(
            line, shell=True, cwd=tmp_path, capture_output=True, text=True, env=env
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return shell


@pytest.fixture
def panel(tmp_path):
    """Three small CSV files that differ in labels and instances, and the truth."""
    (tmp_path / "a.csv").write_text("id,sport,news,war\n1,1,0,0\n2,0,1,1\n3,0,1,0\n")
    (tmp_path / "b.csv").write_text("id,news,sport\n3,1,0\n1,0,1\n2,1,0\n")
    (tmp_path / "c.csv").write_text("id,war,news,sport\n1,0,0,1\n2,1,1,\n")
    (tmp_path / "truth.csv").write_text(
        "id,sport,news,war\n1,1,0,0\n2,0,1,1\n3,0,1,0\n"
    )
    return tmp_path
