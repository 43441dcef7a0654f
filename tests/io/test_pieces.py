"""CSV in pieces of any size: the same rows, and faults on the same lines, as in one."""

import polars as pl
import pytest

from mlconsensus.errors import InputError
from mlconsensus.io import csv, frames, read_predictions, write_table
from mlconsensus.io.sizes import needed_memory
from mlconsensus.predictions import ModelTable

TEXT = 'id,x,"a ""label"""\r\n1,0.5,1\r\n"two\r\nlines",0,\r\n3,1,0.25\r\n"4, and more",,1\r\n'


@pytest.mark.parametrize("size", [1, 10, 33, 1000])
@pytest.mark.parametrize("end", ["", "\n", "\n\n\n"])
def test_pieces_give_the_whole(tmp_path, size, end):
    path = tmp_path / "a.csv"
    path.write_bytes((TEXT.rstrip() + end).encode())
    pieces = list(csv.pieces(path, "a.csv", size=size))
    frame = pl.concat([piece.frame.cast({"1": pl.Float64, "2": pl.Float64}) for piece in pieces])
    assert frame.rows() == [("1", 0.5, 1.0), ("two\r\nlines", 0.0, None), ("3", 1.0, 0.25), ("4, and more", None, 1.0)]
    assert {tuple(piece.columns) for piece in pieces} == {("id", "x", 'a "label"')}
    lines = [piece.place.number(row) for piece in pieces for row in range(piece.frame.height)]
    assert lines == [2, 3, 5, 6]


@pytest.mark.parametrize("size", [1, 30, 1000])
@pytest.mark.parametrize("fault", [b"4,1", b"4,1,1,1", b"4,1,\xff", b'4,1,"', b"", b"4,no,1"], ids=repr)
def test_faults_are_found_on_the_same_line(tmp_path, size, fault):
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,x,y\n1,1,0\n2,0,1\n3,0,1\n" + fault + b"\n5,1,1\n")
    with pytest.raises(InputError) as read:
        read_predictions(path)
    with pytest.raises(InputError) as walked:
        _walk(csv.pieces(path, str(path), size=size))
    assert str(walked.value) == str(read.value)


def _walk(pieces):
    for piece in pieces:
        frames.tables(piece.frame, piece.columns, "a", piece.place)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "jsonl"])
def test_needed_memory_grows_with_the_file(tmp_path, suffix):
    needed = []
    for n in (100, 1000):
        path = tmp_path / f"{n}.{suffix}"
        write_table(path, ModelTable("a", [[0.5, 0.25]] * n, [f"i{at}" for at in range(n)], ["x", "y"]))
        needed.append(needed_memory([path, path]))
    assert 8 < needed[1] / needed[0] < 12
    assert needed[1] > 1000 * 2 * 8 * 2
