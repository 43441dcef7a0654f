"""CSV in pieces of any size: the same rows, and faults on the same lines, as in one."""

import time

import polars as pl
import pytest

from mlconsensus.errors import InputError
from mlconsensus.io import csv, frames, read_predictions, write_table
from mlconsensus.io.sizes import needed_memory
from mlconsensus.panel.model_tables import ModelTable

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


@pytest.mark.parametrize("row", ["5,1,1", '"5, or so",1,1', '"5""",,'])
@pytest.mark.parametrize(
    ("fault", "line"), [('4,1,"', 4), ('"4,1,1', 4), ('"two\nlines",1,"', 4), ('\n\n"4,1,1', 6), ('4" nail,1,1', 4)]
)
def test_of_an_unclosed_quote_little_is_read(tmp_path, monkeypatch, fault, line, row):
    monkeypatch.setattr(csv, "_LONGEST", 1000)
    path = tmp_path / "a.csv"
    path.write_text("id,x,y\n1,1,0\n2,0,1\n" + fault + "\n" + f"{row}\n" * 10_000)
    seen, whole_rows = [], csv._whole_rows
    monkeypatch.setattr(csv, "_whole_rows", lambda text: seen.append(len(text)) or whole_rows(text))
    with pytest.raises(InputError, match=rf"^a.csv, line {line}: found a stray or unclosed quote \(open after 1,"):
        _walk(csv.pieces(path, "a.csv", size=100))
    assert max(seen) <= 1000 + 2 * 100


def test_long_lines_and_long_names_are_no_unclosed_quotes(tmp_path, monkeypatch):
    monkeypatch.setattr(csv, "_LONGEST", 100)
    path, named = tmp_path / "a.csv", ["n" * 500, "q," * 250, "two\n" * 20, "last"]
    path.write_text("id,x\n" + "".join(f'"{name}",1\n' if name != named[0] else f"{name},1\n" for name in named))
    found = [name for piece in csv.pieces(path, "a.csv", size=10) for name in piece.frame["0"]]
    assert found == named


def test_looking_for_the_end_of_a_row_takes_one_pass():
    text = b'1,"' + b"1,1\n" * 2**19
    began = time.process_time()
    assert csv._whole_rows(text) == (b"", text)
    assert time.process_time() - began < 2  # line by line it would be minutes


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "jsonl"])
def test_needed_memory_grows_with_the_file(tmp_path, suffix):
    needed = []
    for n in (100, 1000):
        path = tmp_path / f"{n}.{suffix}"
        write_table(path, ModelTable("a", [[0.5, 0.25]] * n, [f"i{at}" for at in range(n)], ["x", "y"]))
        needed.append(needed_memory([path, path]))
    assert 8 < needed[1] / needed[0] < 12
    assert needed[1] > 1000 * 2 * 8 * 2
