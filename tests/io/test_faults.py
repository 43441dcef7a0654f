"""Writes that fail: each system call in turn, a kill at each of them, and file systems that are full or read-only."""

import builtins
import contextlib
import errno
import os
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import mlconsensus as mlc
from mlconsensus.cli import main
from mlconsensus.errors import InputError
from mlconsensus.io import files, write_table
from mlconsensus.io.files import atomic_write
from mlconsensus.io.write import write_blocks
from mlconsensus.predictions.score_tables import ScoreTable

NAMES = [f"i{k}" for k in range(300)]
TABLE = ScoreTable(
    "t", np.random.default_rng(0).random((300, 10)), NAMES, list("abcdefghij")
)
CALLS = (
    "open",
    "fsync",
    "close",
    "link",
    "replace",
)  # of `os`, beside what is done to the open file


class Calls:
    """The system calls of a write, counted; one of them is made to do something else."""

    def __init__(self, monkeypatch, at, instead):
        self.made, self.at, self.instead = 0, at, instead
        for name in CALLS:
            monkeypatch.setattr(files.os, name, self.around(getattr(os, name)))
        monkeypatch.setattr(files, "open", self.opened, raising=False)

    def around(self, call):
        def counted(*args, **options):
            self.made += 1
            if self.made - 1 == self.at:
                self.instead()
            return call(*args, **options)

        return counted

    def opened(self, *args, **options):
        file = builtins.open(*args, **options)  # noqa: SIM115
        return Watched(file, self.around)


class Watched:
    """An open file whose writes are counted."""

    def __init__(self, file, around):
        self.file, self.write, self.flush = file, around(file.write), around(file.flush)

    def __enter__(self):
        return self

    def __exit__(self, *fault):
        self.file.close()

    def __getattr__(self, name):
        return getattr(self.file, name)


def scanned(folder):
    path = folder / "in.csv"
    if not path.exists():
        write_table(path, TABLE)
    return mlc.scan_predictions(path)


WRITES = {
    "csv": lambda folder, force: write_table(folder / "out.csv", TABLE, force=force),
    "gzip": lambda folder, force: write_table(
        folder / "out.csv.gz", TABLE, force=force
    ),
    "zstd": lambda folder, force: write_table(
        folder / "out.csv.zst", TABLE, force=force
    ),
    "parquet": lambda folder, force: write_table(
        folder / "out.parquet", TABLE, force=force
    ),
    "npz": lambda folder, force: write_table(folder / "out.npz", TABLE, force=force),
    "state": lambda folder, force: mlc.save(
        mlc.MajorityVote().fit([[[1, 0]]]), folder / "out.model", force=force
    ),
    "streamed": lambda folder, force: mlc.write_consensus(
        scanned(folder), folder / "out.csv", method="mv", force=force
    ),
}


def outputs(folder):
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.name != "in.csv"
    }


@pytest.mark.parametrize("force", [False, True], ids=["new", "over another"])
@pytest.mark.parametrize("kind", WRITES)
def test_whatever_fails_there_is_all_or_what_was_there(
    tmp_path, monkeypatch, kind, force
):
    write = WRITES[kind]
    scanned(tmp_path)
    write(tmp_path, force)
    complete = outputs(tmp_path)
    (name,) = complete
    (tmp_path / name).unlink()
    if force:
        before = {name: b"before"}
    else:
        before = {}
    refused = 0
    for number in (errno.ENOSPC, errno.EIO, errno.EINTR):
        for position in range(200):
            for path in tmp_path.glob("out*"):
                path.unlink()
            for own, content in before.items():
                (tmp_path / own).write_bytes(content)

            def fail(number=number):
                raise OSError(number, os.strerror(number))

            message = ""
            with monkeypatch.context() as patched:
                calls = Calls(patched, position, fail)
                try:
                    write(tmp_path, force)
                    assert outputs(tmp_path) == complete
                except InputError as fault:
                    refused += 1
                    message = str(fault)
            if message:
                assert f"{name}: found" in message
                assert "\n" not in message
                assert outputs(tmp_path) in (before, complete)
            if calls.made <= position:
                break
        assert position < 199  # until nothing was left that could fail
    assert refused > 9


def test_who_is_second_does_not_win(tmp_path):
    path = tmp_path / "out.csv"
    late = atomic_write(path)
    late.__enter__().write(b"late")
    with atomic_write(path) as early:
        early.write(b"early")
    with pytest.raises(InputError, match=r"out\.csv: found 'file exists', expected"):
        late.__exit__(None, None, None)
    assert outputs(tmp_path) == {"out.csv": b"early"}
    with atomic_write(path, force=True) as file:
        file.write(b"late")
    assert outputs(tmp_path) == {"out.csv": b"late"}


def test_a_file_system_without_links(tmp_path, monkeypatch):
    def refuse(*args):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(files.os, "link", refuse)
    WRITES["csv"](tmp_path, False)
    with pytest.raises(InputError, match="an existing file"):
        WRITES["csv"](tmp_path, False)
    assert list(outputs(tmp_path)) == ["out.csv"]


# Each child ends itself at another call; one process forks them all, which spares them
# the imports.
KILLED = """
import os, signal, sys
from pathlib import Path
from mlconsensus.io import files
folder, name = Path(sys.argv[1]), "out.csv"
def count(call):
    def counted(*args, **options):
        global made
        made += 1
        if made - 1 == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*args, **options)
    return counted
for own in ("open", "fsync", "close", "link", "replace"):
    setattr(files.os, own, count(getattr(os, own)))
ends = set()
for force in (False, True):
    for at in range(100):
        made = -10**9
        (folder / name).unlink(missing_ok=True)
        if force:
            (folder / name).write_bytes(b"before")
        child = os.fork()
        if not child:
            made = 0
            with files.atomic_write(folder / name, force) as file:
                for _ in range(3):
                    file.write(b"all")
                    file.flush()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        left = (folder / name).read_bytes() if (folder / name).exists() else b""
        assert left in (b"allallall", b"before" if force else b""), left
        ends.add((os.WIFSIGNALED(status), left))
        if not os.WIFSIGNALED(status):
            break
print(sorted(ends))
"""


def test_a_kill_at_each_call_leaves_all_or_what_was_there(tmp_path):
    program = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(KILLED), tmp_path]
    ran = subprocess.run(
        program, capture_output=True, text=True, timeout=100, check=False
    )
    assert ran.stderr == ""
    complete = b"allallall"
    assert ran.stdout.strip() == str(
        [(False, complete), (True, b""), (True, complete), (True, b"before")]
    )


@pytest.fixture
def small(tmp_path):
    """A file system of 128 kB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k", "none", folder]
    mounted = subprocess.run(mount, capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("only root may mount a file system")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize("kind", WRITES)
def test_a_file_system_that_is_full(small, monkeypatch, kind):
    panel = scanned(small)  # its scratch files are elsewhere
    monkeypatch.setitem(globals(), "scanned", lambda folder: panel)
    (small / "in.csv").unlink()
    with (
        contextlib.suppress(OSError),
        (small / "ballast").open("wb", buffering=0) as ballast,
    ):
        while ballast.write(bytes(4096)):
            pass
    if kind != "state":  # which is small
        os.truncate(small / "ballast", (small / "ballast").stat().st_size - 4096)
    for force in (False, True):
        with pytest.raises(InputError, match="no space left on device"):
            WRITES[kind](small, force)
        assert os.listdir(small) == ["ballast"]


def test_a_file_system_that_is_read_only(small, tmp_path, monkeypatch, capsys):
    scanned(small)
    (small / "out.csv").write_text("before")
    subprocess.run(["mount", "-o", "remount,ro", small], check=True)
    with pytest.raises(
        InputError, match="found 'read-only file system', expected a place to write to"
    ):
        WRITES["csv"](small, True)
    assert (small / "out.csv").read_text() == "before"
    monkeypatch.setattr("tempfile.tempdir", str(small))  # where scratch files go
    with pytest.raises(SystemExit) as end:
        main(
            [
                "combine",
                str(small / "in.csv"),
                "--stream",
                "-o",
                str(tmp_path / "out.csv"),
            ]
        )
    assert end.value.code == 2
    output = capsys.readouterr().err
    assert "found 'read-only file system', expected" in output
    assert output.count("\n") == 1


def test_a_disk_that_is_full_under_workers_is_named(tmp_path):
    def each(*work):
        raise pl.exceptions.ComputeError(
            "parquet: underlying IO error: File too large (os error 27)"
        )

    panel = SimpleNamespace(labels=("x",), map_shares=each)
    with pytest.raises(
        InputError,
        match=r"f\.parquet: found 'file too large', expected a place to write to",
    ):
        write_blocks(tmp_path / "f.parquet", panel, lambda block: block)
    assert not list(tmp_path.iterdir())
