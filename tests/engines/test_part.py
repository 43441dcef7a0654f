"""The folder of what is done so far: one at a time works in it, and whoever was killed keeps nobody out."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import mlconsensus as mlc
from mlconsensus.engines.part import emptied, held

HOLDS = """
import pathlib, sys, time
from mlconsensus.engines.part import held
with held(pathlib.Path(sys.argv[1]), "out.csv"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path):
    return tmp_path / ".out.csv.part"


def test_another_process_is_kept_out_until_the_first_is_killed(folder):
    with subprocess.Popen([sys.executable, "-c", HOLDS, str(folder)], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        (folder / "rows").write_text("half")
        with pytest.raises(mlc.InputError, match=r"^out\.csv: found other work on it"), held(folder, "out.csv"):
            pass
        os.kill(process.pid, signal.SIGKILL)
    with held(folder, "out.csv"):
        assert (folder / "rows").read_text() == "half"
        emptied(folder)
        with pytest.raises(mlc.InputError, match="found other work"), held(folder, "out.csv"):
            pass
    assert not folder.exists()


def test_what_is_left_stays(folder):
    with held(folder, "out.csv"):
        (folder / "rows").write_text("half")
    assert [path.name for path in folder.iterdir()] == ["rows"]


def test_many_at_once_are_let_in_one_by_one(folder):
    """Also while the one before removes the folder."""
    inside, most, done = [], [], []

    def work(me):
        until = time.monotonic() + 30
        while len(done) < 200 and time.monotonic() < until:
            try:
                with held(folder, "out.csv"):
                    inside.append(me)
                    (folder / "rows").write_text(str(me))
                    most.append(len(inside))
                    time.sleep(1e-4)
                    assert (folder / "rows").read_text() == str(me)
                    emptied(folder)
                    inside.remove(me)
                    done.append(me)
            except mlc.InputError:
                time.sleep(1e-4)

    threads = [threading.Thread(target=work, args=(me,)) for me in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) >= 200
    assert max(most) == 1
    assert not folder.exists()


def test_a_link_to_another_folder_is_not_emptied(tmp_path, folder):
    (tmp_path / "mine").mkdir()
    folder.symlink_to(tmp_path / "mine")
    with pytest.raises(FileExistsError), held(folder, "out.csv"):
        pass


def test_a_file_system_without_locks_keeps_nobody_out(folder, monkeypatch):
    def unsupported(*args):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", unsupported)
    with held(folder, "out.csv"), held(folder, "out.csv"):
        assert folder.exists()
    assert not folder.exists()
