"""CSV: comma-separated text, wide or long. `tsv` is the same with tabs."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import polars as pl

from ..errors import InputError
from ..predictions import ModelTable
from . import frames
from .files import Place, Source, first_line, opened
from .formats import Layout
from .text import check_text, raise_undecodable

_GLANCE = 2**16  # bytes that tell text from anything else
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
        head = file.read(_GLANCE)
        check_text(head, source.name)
        if b"\n" not in head and head.count(b"\r") > 1:
            raise InputError(f"{source.name}: found bare carriage returns as line ends, expected line feeds")
        file.seek(max(0, file.seek(0, os.SEEK_END) - 4))
        if file.read().endswith((b"\n\n", b"\n\r\n")):  # to Polars, an empty line is a row
            content = source.read().rstrip(b"\r\n")
    columns, header_lines = _header(content, source.name, separator)
    frames.check_columns(columns, source.name)
    frame = _parse(content, columns, source.name, separator)
    text = [frame.to_series(at) for at in _names(columns)]
    del content  # as bytes, a wide file can be as large as all the rest

    def line(row: int) -> int:
        within = sum(int(cells[:row].str.count_matches("\n").sum()) for cells in text)
        return header_lines + 1 + row + within

    return frames.tables(frame, columns, source.model, Place(source.name, "line", line))


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


def _parse(content: bytes | Path, columns: list[str], name: str, separator: str) -> pl.DataFrame:
    """Read all rows; names are text, scores the narrowest of whole numbers, floats and text that takes them all."""
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
            _check_widths(content, len(columns), name, separator)
        return frame
    _check_widths(content, len(columns), name, separator)
    raise InputError(f"{name}: found text that cannot be read ({first_line(fault)}), expected CSV")


def _check_widths(content: bytes | Path, width: int, name: str, separator: str) -> None:
    """Refuse the first record that does not have `width` fields, or is no CSV at all."""
    ended = 0  # the line before the record
    try:
        for record, line in _records(content, separator):
            if len(record) != width:
                others = [mark for mark in _CALLED if record and mark in record[0] and mark != separator]
                hint = f" with {_CALLED[others[0]]} in it" if len(record) == 1 and others else ""
                found = f"{len(record)} field{'s' * (len(record) > 1)}{hint}" if record else "an empty line"
                raise InputError(f"{name}, line {ended + 1}: found {found}, expected {width} fields, as the header has")
            ended = line
    except UnicodeDecodeError:
        with opened(content) as file:
            raise_undecodable(file.read(), name)
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
