"""Writes that fail.

Each system call fails in turn, or the process is killed there; file systems are full or
read-only.
"""

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
# Functions of `os` that are watched, and the methods of the open file.
CALLS = ("open", "fsync", "close", "link", "replace")


class CallCounter:
    """Counts the system calls of a write; the one at a position fails."""

    def __init__(self, monkeypatch, position, fail):
        self.n_calls = 0
        self.position = position
        self.fail = fail
        for name in CALLS:
            monkeypatch.setattr(files.os, name, self.wrap(getattr(os, name)))
        monkeypatch.setattr(files, "open", self.open_watched, raising=False)

    def wrap(self, function):
        def call(*args, **options):
            self.n_calls += 1
            if self.n_calls - 1 == self.position:
                self.fail()
            return function(*args, **options)

        return call

    def open_watched(self, *args, **options):
        file = builtins.open(*args, **options)  # noqa: SIM115
        return WatchedFile(file, self.wrap)


class WatchedFile:
    """An open file whose writes are counted."""

    def __init__(self, file, wrap):
        self.file = file
        self.write = wrap(file.write)
        self.flush = wrap(file.flush)

    def __enter__(self):
        return self

    def __exit__(self, *fault):
        self.file.close()

    def __getattr__(self, name):
        return getattr(self.file, name)


def scan_table(folder):
    """Scan the table in a folder, which is written if it does not exist."""
    path = folder / "in.csv"
    if not path.exists():
        write_table(path, TABLE)
    return mlc.scan_predictions(path)


def write_state(folder, force):
    combiner = mlc.MajorityVote().fit([[[1, 0]]])
    mlc.save(combiner, folder / "out.model", force=force)


def write_stream(folder, force):
    predictions = scan_table(folder)
    mlc.write_consensus(predictions, folder / "out.csv", method="mv", force=force)


def make_table_writer(name):
    return lambda folder, force: write_table(folder / name, TABLE, force=force)


WRITES = {
    "csv": make_table_writer("out.csv"),
    "gzip": make_table_writer("out.csv.gz"),
    "zstd": make_table_writer("out.csv.zst"),
    "parquet": make_table_writer("out.parquet"),
    "npz": make_table_writer("out.npz"),
    "state": write_state,
    "streamed": write_stream,
}


def read_outputs(folder):
    """Return the content of all files except the input."""
    outputs = {}
    for path in folder.iterdir():
        if path.name != "in.csv":
            outputs[path.name] = path.read_bytes()

    return outputs


def replace_outputs(folder, outputs):
    """Remove all outputs and write others."""
    for path in folder.glob("out*"):
        path.unlink()
    for name, content in outputs.items():
        (folder / name).write_bytes(content)


@pytest.mark.parametrize("force", [False, True], ids=["new", "over another"])
@pytest.mark.parametrize("kind", WRITES)
def test_a_failed_write_leaves_the_old_or_the_new_file(
    tmp_path, monkeypatch, kind, force
):
    write = WRITES[kind]
    scan_table(tmp_path)
    write(tmp_path, force)
    complete = read_outputs(tmp_path)
    (name,) = complete
    before = {}
    if force:
        before = {name: b"before"}

    n_errors = 0
    for number in (errno.ENOSPC, errno.EIO, errno.EINTR):

        def fail(number=number):
            raise OSError(number, os.strerror(number))

        # Another call fails each time, until there are no more.
        for position in range(200):
            replace_outputs(tmp_path, before)
            message = ""
            with monkeypatch.context() as patched:
                counter = CallCounter(patched, position, fail)
                try:
                    write(tmp_path, force)
                    assert read_outputs(tmp_path) == complete
                except InputError as error:
                    n_errors += 1
                    message = str(error)

            if message:
                assert f"{name}: found" in message
                assert "\n" not in message
                assert read_outputs(tmp_path) in (before, complete)
            if counter.n_calls <= position:
                break

        assert position < 199
    assert n_errors > 9


def test_a_file_that_appears_during_a_write_is_not_replaced(tmp_path):
    path = tmp_path / "out.csv"
    late = atomic_write(path)
    late.__enter__().write(b"late")
    with atomic_write(path) as early:
        early.write(b"early")
    with pytest.raises(InputError, match=r"out\.csv: found 'file exists', expected"):
        late.__exit__(None, None, None)
    assert read_outputs(tmp_path) == {"out.csv": b"early"}
    with atomic_write(path, force=True) as file:
        file.write(b"late")
    assert read_outputs(tmp_path) == {"out.csv": b"late"}


def test_a_file_system_without_links(tmp_path, monkeypatch):
    def refuse(*args):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(files.os, "link", refuse)
    WRITES["csv"](tmp_path, False)
    with pytest.raises(InputError, match="an existing file"):
        WRITES["csv"](tmp_path, False)
    assert list(read_outputs(tmp_path)) == ["out.csv"]


# Each child ends itself at another call; one process forks them all, which spares them
# the imports.
KILLED = """
import os, signal, sys
from pathlib import Path
from mlconsensus.io import files

path = Path(sys.argv[1]) / "out.csv"

def wrap(function):
    def call(*args, **options):
        global n_calls
        n_calls += 1
        if n_calls - 1 == position:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **options)
    return call

for name in ("open", "fsync", "close", "link", "replace"):
    setattr(files.os, name, wrap(getattr(os, name)))

ends = set()
for force in (False, True):
    for position in range(100):
        n_calls = -10**9  # the parent is not killed
        path.unlink(missing_ok=True)
        before = b""
        if force:
            before = b"before"
            path.write_bytes(before)

        child = os.fork()
        if not child:
            n_calls = 0
            with files.atomic_write(path, force) as file:
                for _ in range(3):
                    file.write(b"all")
                    file.flush()
            os._exit(0)

        _, status = os.waitpid(child, 0)
        content = b""
        if path.exists():
            content = path.read_bytes()
        assert content in (b"allallall", before), content
        ends.add((os.WIFSIGNALED(status), content))
        if not os.WIFSIGNALED(status):
            break

print(sorted(ends))
"""


def test_a_killed_write_leaves_the_old_or_the_new_file(tmp_path):
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
    panel = scan_table(small)  # its scratch files are elsewhere
    monkeypatch.setitem(globals(), "scan_table", lambda folder: panel)
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
    scan_table(small)
    (small / "out.csv").write_text("before")
    subprocess.run(["mount", "-o", "remount,ro", small], check=True)
    with pytest.raises(
        InputError, match="found 'read-only file system', expected a place to write to"
    ):
        WRITES["csv"](small, True)
    assert (small / "out.csv").read_text() == "before"
    monkeypatch.setattr("tempfile.tempdir", str(small))  # where scratch files go
    output_path = str(tmp_path / "out.csv")
    with pytest.raises(SystemExit) as end:
        main(["combine", str(small / "in.csv"), "--stream", "-o", output_path])
    assert end.value.code == 2
    output = capsys.readouterr().err
    assert "found 'read-only file system', expected" in output
    assert output.count("\n") == 1


def test_errors_of_workers_name_the_output(tmp_path):
    def fail(*work):
        raise pl.exceptions.ComputeError(
            "parquet: underlying IO error: File too large (os error 27)"
        )

    panel = SimpleNamespace(labels=("x",), map_shares=fail)
    with pytest.raises(
        InputError,
        match=r"f\.parquet: found 'file too large', expected a place to write to",
    ):
        write_blocks(tmp_path / "f.parquet", panel, lambda block: block)
    assert not list(tmp_path.iterdir())
