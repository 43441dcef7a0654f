"""Reading and writing of bytes."""

import errno
import gzip
import os
import signal
import stat
import subprocess
import sys
import textwrap
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import zstandard

from mlconsensus.errors import InputError
from mlconsensus.io import files, read_table, write_table
from mlconsensus.io.files import atomic_write, read_bytes
from mlconsensus.predictions.score_tables import ScoreTable

TABLE = ScoreTable("t", np.full((3, 2), 0.5), ["1", "2", "3"], ["a", "b"])


def test_compression_is_recognized_by_content(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(gzip.compress(b"text"))
    assert read_bytes(tmp_path / "a.csv") == b"text"
    (tmp_path / "a.csv").write_bytes(
        zstandard.compress(b"te") + zstandard.compress(b"xt")
    )
    assert read_bytes(tmp_path / "a.csv") == b"text"


def test_pipe_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "pipe.csv"
    os.mkfifo(path)
    writer = threading.Thread(
        target=path.write_bytes, args=(b"id,a,b\n1,0.5,\n2,x,1\n",)
    )
    writer.start()
    with pytest.raises(InputError, match=r"pipe\.csv, line 3, column 'a': found 'x'"):
        read_table(path)
    writer.join()


def test_output_appears_only_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    with atomic_write(path) as file:
        file.write(b"some")
        assert not path.exists()
    assert path.read_bytes() == b"some"
    assert os.listdir(tmp_path) == ["out.csv"]


def test_output_has_the_permissions_of_a_new_file(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "output"):
        pass
    (tmp_path / "new").touch()
    output_mode = (tmp_path / "output").stat().st_mode
    new_mode = (tmp_path / "new").stat().st_mode
    assert stat.S_IMODE(output_mode) == stat.S_IMODE(new_mode)


def test_an_error_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("before")
    with pytest.raises(TypeError), atomic_write(path, force=True) as file:
        file.write(b"half") + file.write("text")  # type: ignore[arg-type]
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["out.csv"]


def test_existing_output_needs_force(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    write_table(path, TABLE)
    with pytest.raises(
        InputError,
        match=r"found an existing file, expected none \(--force or force=True ",
    ):
        write_table(path, TABLE)
    write_table(path, TABLE, force=True)


def test_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.csv").touch()
    (tmp_path / "link.csv").symlink_to("real.csv")
    write_table(tmp_path / "link.csv", TABLE, force=True)
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text().startswith("instance,a,b\n")


def test_device_is_written_to_and_not_replaced() -> None:
    write_table("/dev/null", TABLE, format="csv", force=True)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.parametrize("name", ["csv", "parquet", "feather", "jsonl", "npz"])
def test_full_disk(name: str) -> None:
    big = replace(
        TABLE,
        scores=np.random.default_rng(0).random((3000, 20)),
        instances=None,
        labels=None,
    )
    with pytest.raises(
        InputError,
        match="/dev/full: found '.*no space left on device.*', expected a place to",
    ):
        write_table("/dev/full", big, format=name)


def test_full_disk_at_the_end_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(InputError, match="found 'no space left on device', expected"):
        write_table(tmp_path / "out.csv", TABLE)
    assert os.listdir(tmp_path) == []


def test_no_permission_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(files.os, "open", refuse)
    with pytest.raises(
        InputError, match=r"out\.csv: found no permission, expected a place to write to"
    ):
        write_table(tmp_path / "out.csv", TABLE)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("folder", "found a folder, expected a file to write"),
        ("none/out", "found no folder '.*none', expected it to exist"),
    ],
)
def test_bad_targets(tmp_path: Path, path: str, words: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=words):
        write_table(tmp_path / path, TABLE, format="csv")


def test_a_bad_request_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="layout: found 'tall', expected 'wide', 'long' or 'ranked'"
    ):
        write_table(tmp_path / "out.csv", TABLE, layout="tall")
    with pytest.raises(
        InputError,
        match="format: found 'cvs', expected one of csv, .*; did you mean 'csv'",
    ):
        write_table(tmp_path / "out.csv", TABLE, format="cvs")
    with pytest.raises(
        InputError,
        match=r"out\.arff: found the suffix '\.arff', expected one of \.csv, ",
    ):
        write_table(tmp_path / "out.arff", TABLE)
    with pytest.raises(
        InputError, match="output: found an empty name, expected a file to write"
    ):
        write_table("", TABLE, format="csv")
    with pytest.raises(InputError, match="found no format, expected one of csv"):
        write_table("-", TABLE)
    assert os.listdir(tmp_path) == []


def test_killed_process_leaves_no_output(tmp_path: Path) -> None:
    program = f"""
        import time
        from mlconsensus.io.files import atomic_write
        with atomic_write({str(tmp_path / "out.csv")!r}) as file:
            file.write(b"half")
            file.flush()
            print("ready", flush=True)
            time.sleep(60)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not (tmp_path / "out.csv").exists()

    # The hidden file of the first process does not prevent another write.
    with atomic_write(tmp_path / "out.csv") as file:
        file.write(b"whole")
    assert (tmp_path / "out.csv").read_bytes() == b"whole"
