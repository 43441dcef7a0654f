"""CSV: comma-separated text, wide or long. `tsv` is the same with tabs."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

import polars as pl

from ..errors import InputError
from ..panel.model_tables import ModelTable
from . import frames
from .files import Place, Source, first_line, opened
from .formats import Layout
from .text import check_text, raise_undecodable

_GLANCE = 2**16  # bytes that tell text from anything else
_LONGEST = 2**26  # bytes within which quoted text that goes over line ends must be closed
_CALLED = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


def read(source: Source, separator: str = ",") -> list[ModelTable]:
    r"""Read the table of each model in a CSV file.

    Examples
    --------
    >>> table, = read(Source("a.csv", "a", lambda: b"id,sports,law\n007,1,0\n008,,1\n"))
    >>> table.instances.tolist(), table.labels.tolist(), table.scores.tolist()
    (['007', '008'], ['sports', 'law'], [[1.0, 0.0], [nan, 1.0]])
    """
    content = source.content()
    with opened(content) as file:
        _glance(file.read(_GLANCE), source.name)
        file.seek(max(0, file.seek(0, os.SEEK_END) - 4))
        if file.read().endswith((b"\n\n", b"\n\r\n")):  # to Polars, an empty line is a row
            content = source.read().rstrip(b"\r\n")
    columns, header_lines = _header(content, source.name, separator)
    frames.check_columns(columns, source.name)
    frame = _parse(content, columns, source.name, separator)
    del content  # as bytes, a wide file can be as large as all the rest
    return frames.tables(frame, columns, source.model, _place(frame, columns, source.name, header_lines))


def pieces(path: Path, name: str, separator: str = ",", size: int = 2**24) -> Iterator[Piece]:
    r"""Walk a file, some `size` bytes at a time.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("id,x\n" + "7,1\n" * 3)
    >>> [(piece.columns, piece.frame.rows(), piece.place(0)) for piece in pieces(path, "a.csv", size=8)]
    [(['id', 'x'], [('7', 1), ('7', 1)], 'a.csv, line 2'), (['id', 'x'], [('7', 1)], 'a.csv, line 4')]
    """
    with path.open("rb") as file:
        _glance(file.read(_GLANCE), name)
    columns, before = _header(path, name, separator)
    frames.check_columns(columns, name)
    head = separator.join(str(at) for at in range(len(columns))).encode() + b"\n"
    with path.open("rb") as file:
        for _ in range(before):
            file.readline()
        carried, data = b"", file.read(size)
        while carried or data:
            following = file.read(size)
            text, carried = _whole_rows(carried + data) if following else ((carried + data).rstrip(b"\r\n"), b"")
            data = following
            if text:
                frame = _parse(head + text, columns, name, separator, before - 1)
                yield Piece(frame, columns, _place(frame, columns, name, before))
                before += text.count(b"\n")
            if len(carried) > _LONGEST:
                _check_closed(carried, name, before)


class Piece(NamedTuple):
    """Some rows of a file."""

    frame: pl.DataFrame  # columns are called by their positions
    columns: list[str]
    place: Place


def _whole_rows(text: bytes) -> tuple[bytes, bytes]:
    """Cut after the last line end that is not within quotes; empty lines before it may be the end of the file."""
    end = text.rfind(b"\n") + 1
    quotes = text.count(b'"', 0, end)
    while quotes % 2:
        line = text.rfind(b"\n", 0, text.rfind(b'"', 0, end)) + 1
        quotes -= text.count(b'"', line, end)
        end = line
    filled = len(text[:end].rstrip(b"\r\n"))
    end = text.find(b"\n", filled, end) + 1 if filled else 0
    return text[:end], text[end:]


def _check_closed(carried: bytes, name: str, before: int) -> None:
    """Refuse a record that goes on over line ends, as only quoted text does; a long line alone may be one."""
    record = carried.lstrip(b"\r\n")
    if b"\n" in record:
        line = before + 1 + carried.count(b"\n", 0, len(carried) - len(record))
        raise InputError(
            f"{name}, line {line}: found a stray or unclosed quote (open after {len(record):,} bytes), expected CSV"
        )


def _glance(head: bytes, name: str) -> None:
    check_text(head, name)
    if b"\n" not in head and head.count(b"\r") > 1:
        raise InputError(f"{name}: found bare carriage returns as line ends, expected line feeds")


def _place(frame: pl.DataFrame, columns: list[str], name: str, before: int) -> Place:
    """Tell on which line of the file each row begins, `before` lines being before the first."""
    text = [frame.to_series(at) for at in _names(columns)]

    def line(row: int) -> int:
        within = sum(int(cells[:row].str.count_matches("\n").sum()) for cells in text)
        return before + 1 + row + within

    return Place(name, "line", line)


def write(file: IO[bytes], table: ModelTable, layout: Layout, separator: str = ",") -> None:
    r"""Write one table as CSV: scores so that they read back exactly, missing ones as empty cells.

    Examples
    --------
    >>> import numpy as np
    >>> file = io.BytesIO()
    >>> write(file, ModelTable("a", np.array([[1.0, 0.1]]), ["007"], ["sports", "law"]), "wide")
    >>> file.getvalue()
    b'instance,sports,law\n007,1.0,0.1\n'
    """
    for at, block in enumerate(frames.blocks(table, layout)):
        block.with_columns(pl.col(pl.Boolean).cast(pl.UInt8)).write_csv(
            file, include_header=at == 0, separator=separator
        )


def _names(columns: list[str]) -> list[int]:
    """Return the positions of the columns that hold names, not scores."""
    if frames.is_long(columns):
        return [at for at, column in enumerate(columns) if column != "score"]
    return [0]


def _header(content: bytes | Path, name: str, separator: str) -> tuple[list[str], int]:
    """Return the names of the columns, and how many lines they take."""
    try:
        columns, lines = next(_records(content, separator))
    except UnicodeDecodeError:
        with opened(content) as file:
            raise_undecodable(file.read(), name)
    except csv.Error as fault:
        raise InputError(f"{name}, line 1: found {first_line(fault)!r}, expected a header line") from None
    if not any(column.strip() for column in columns):
        raise InputError(f"{name}, line 1: found an empty line, expected a header line")
    others = [mark for mark in _CALLED if mark in columns[0] and mark != separator]
    if len(columns) == 1 and others:
        remedy = {",": " (--format csv reads it)", "\t": " (--format tsv reads it)"}.get(others[0], "")
        raise InputError(
            f"{name}, line 1: found {_CALLED[others[0]]} between columns{remedy}, expected {_CALLED[separator]}"
        )
    return columns, lines


def _parse(content: bytes | Path, columns: list[str], name: str, separator: str, before: int = 0) -> pl.DataFrame:
    """Read all rows; names are text, scores the narrowest of whole numbers, floats and text that takes them all.

    The content begins with a header; `before` lines of the file come before it.
    """
    text = set(_names(columns))
    fault: Exception | None = None
    for kind in (pl.UInt8, pl.Float64, pl.String):  # a type that does not fit fails at the first such cell
        schema = {str(at): pl.String if at in text else kind for at in range(len(columns))}
        try:
            frame = pl.read_csv(content, glob=False, has_header=False, skip_rows=1, schema=schema, separator=separator)
        except pl.exceptions.PolarsError as unread:
            fault = unread
            continue
        # Polars fills rows that are too short with nulls. Without quotes, the separators tell them from empty cells.
        separators = (frame.width - 1) * (frame.height + 1)
        if frame.to_series(-1).null_count() and (
            _count(content, b'"') or _count(content, separator.encode()) != separators
        ):
            _check_widths(content, len(columns), name, separator, before)
        return frame
    _check_widths(content, len(columns), name, separator, before)
    raise InputError(f"{name}: found text that cannot be read ({first_line(fault)}), expected CSV")


def _check_widths(content: bytes | Path, width: int, name: str, separator: str, before: int) -> None:
    """Refuse the first record that does not have `width` fields, or is no CSV at all."""
    ended = before  # the line before the record
    try:
        for record, line in _records(content, separator):
            if len(record) != width:
                others = [mark for mark in _CALLED if record and mark in record[0] and mark != separator]
                hint = f" with {_CALLED[others[0]]} in it" if len(record) == 1 and others else ""
                found = f"{len(record)} field{'s' * (len(record) > 1)}{hint}" if record else "an empty line"
                raise InputError(f"{name}, line {ended + 1}: found {found}, expected {width} fields, as the header has")
            ended = before + line
    except UnicodeDecodeError:
        with opened(content) as file:
            raise_undecodable(file.read(), name, before)
    except csv.Error as fault:
        raise InputError(
            f"{name}, line {ended + 1}: found a stray or unclosed quote ({first_line(fault)}), expected CSV"
        ) from None


def _records(content: bytes | Path, separator: str) -> Iterator[tuple[list[str], int]]:
    """Walk the records, each with the line on which it ends; slow, for the header and for finding faults."""
    with io.TextIOWrapper(opened(content), encoding="utf-8-sig", newline="") as text:
        reader = csv.reader(text, delimiter=separator, strict=True)
        for record in reader:
            yield record, reader.line_num


def _count(content: bytes | Path, mark: bytes) -> int:
    with opened(content) as file:
        return sum(part.count(mark) for part in iter(lambda: file.read(2**24), b""))
