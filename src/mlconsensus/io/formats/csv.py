"""CSV and TSV: text with a separator between columns, wide or long."""

import csv
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import polars as pl

from ...errors import InputError
from ...predictions import ScoreTable
from .. import columns as cells
from .. import layouts
from ..encoding import check_text, decode_text
from ..files import InputFile, Place, first_line, open_content, reader_errors
from ..layouts import Layout
from .registry import Collect, NamedFrame

_GLANCE = 2**16  # bytes that tell text from anything else
_CALLED = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


def read(
    file: InputFile, collect: Collect = pl.LazyFrame.collect, separator: str = ","
) -> NamedFrame:
    r"""Read the rows of a CSV file: names as text, scores as the narrowest of numbers and text that takes them all.

    Examples
    --------
    >>> text = b"id,sports,law\n007,1,0\n008,,1\n"
    >>> frame = read(InputFile(name="a.csv", model="a", read=lambda: text))
    >>> frame.columns, frame.rows.rows(), frame.place(0)
    (['id', 'sports', 'law'], [('007', 1, 0), ('008', None, 1)], 'a.csv, line 2')
    """
    content = file.get_content()
    with open_content(content) as opening:
        head = opening.read(_GLANCE)
        opening.seek(max(0, opening.seek(0, os.SEEK_END) - 4))
        if opening.read().endswith(
            (b"\n\n", b"\n\r\n")
        ):  # to Polars, an empty line is a row
            content = file.read().rstrip(b"\r\n")

    check_text(head, file.name)
    ended = b"\n" in head or head.count(b"\r") < 2
    if not (ended):
        raise InputError(
            where=file.name,
            found="bare carriage returns as line ends",
            expected="line feeds",
        )

    columns, header_lines = _header(content, file.name, separator)
    parts = cells.find_roles(columns, file.options, file.name)
    text = [str(at) for at, part in enumerate(parts) if part != "score"] or ["0"]
    rows = _parsed(content, columns, text, file.name, separator, collect)

    def find_line(row: int) -> int:
        """Return the line on which a row begins; names may contain line ends."""
        ends = pl.col(text).str.count_matches("\n", literal=True).sum()
        within = rows.lazy().slice(0, row).select(ends).collect().row(0)
        return header_lines + 1 + row + sum(int(count) for count in within)

    return NamedFrame(
        rows=rows,
        columns=columns,
        place=Place(file=file.name, unit="line", number=find_line),
    )


def write(
    file: IO[bytes], table: ScoreTable, layout: Layout, separator: str = ","
) -> None:
    r"""Write one table as CSV: scores so that they read back exactly, missing ones as empty cells.

    Examples
    --------
    >>> import numpy as np
    >>> file = io.BytesIO()
    >>> write(file, ScoreTable("a", np.array([[1.0, 0.1]]), ["007"], ["sports", "law"]), "wide")
    >>> file.getvalue()
    b'instance,sports,law\n007,1.0,0.1\n'
    """
    for at, block in enumerate(layouts.iterate_blocks(table, layout)):
        numbers = block.with_columns(pl.col(pl.Boolean).cast(pl.UInt8))
        numbers.write_csv(file, include_header=at == 0, separator=separator)


def _header(content: bytes | Path, name: str, separator: str) -> tuple[list[str], int]:
    """Return the names of the columns, and how many lines they take."""
    columns, lines = next(_records(content, separator, name), ([], 0))
    if not (any(column.strip() for column in columns)):
        raise InputError(
            where=f"{name}, line 1", found="an empty line", expected="a header line"
        )
    if other := _other_mark(columns, separator):
        remedy = {
            ",": " (--format csv reads it)",
            "\t": " (--format tsv reads it)",
        }.get(other, "")
        found = f"{_CALLED[other]} between columns{remedy}"
        points = ", and points in numbers such as 0.5" * (
            other == ";"
        )  # those who write the one write 0,5
        raise InputError(
            f"{name}, line 1: found {found}, expected {_CALLED[separator]}{points}"
        )

    return columns, lines


def _other_mark(record: list[str], separator: str) -> str:
    """Return what else may separate the fields of a record that has but one."""
    others = [
        mark
        for mark in _CALLED
        if mark != separator and len(record) == 1 and mark in record[0]
    ]
    if others:
        return others[0]
    return ""


def _parsed(
    content: bytes | Path,
    columns: list[str],
    text: list[str],
    name: str,
    separator: str,
    collect: Collect,
) -> Any:
    source: Any = content
    for kind in (
        pl.UInt8,
        pl.Float64,
        pl.String,
    ):  # a type that does not fit fails at the first such cell
        schema = {
            str(at): pl.String if str(at) in text else kind
            for at in range(len(columns))
        }
        try:
            with reader_errors(name, "CSV"):
                options: Any = {
                    "glob": False,
                    "has_header": False,
                    "skip_rows": 1,
                    "separator": separator,
                }
                rows = collect(pl.scan_csv(source, schema=schema, **options))
        except InputError as unread:
            fault = str(unread)
            continue

        # Polars fills rows that are too short with nulls. Without quotes, the
        # separators tell them from empty cells.
        last = (
            rows.lazy()
            .select(pl.len(), pl.last().is_null().any().alias("empty"))
            .collect()
        )
        height, has_empty = last.row(0)
        expected = (len(columns) - 1) * (height + 1)
        if has_empty and (
            _count(content, b'"') or _count(content, separator.encode()) != expected
        ):
            _check_widths(content, len(columns), name, separator)

        return rows

    _check_widths(content, len(columns), name, separator)
    raise InputError(fault)


def _check_widths(content: bytes | Path, width: int, name: str, separator: str) -> None:
    """Refuse the first record that does not have `width` fields, or is no CSV at all."""
    ended = 0  # the line before the record
    for record, line in _records(content, separator, name):
        if len(record) != width:
            other = _other_mark(record, separator)
            if other:
                hint = f" with {_CALLED[other]} in it"
            else:
                hint = ""

            if record:
                found = f"{len(record)} field{'s' * (len(record) > 1)}{hint}"
            else:
                found = "an empty line"

            raise InputError(
                f"{name}, line {ended + 1}: found {found}, expected {width} fields, as the header has"
            )

        ended = line


def _records(
    content: bytes | Path, separator: str, name: str
) -> Iterator[tuple[list[str], int]]:
    """Walk the records, each with the line on which it ends; slow, for the header and for finding faults."""
    ended = 0
    with io.TextIOWrapper(
        open_content(content), encoding="utf-8-sig", newline=""
    ) as text:
        reader = csv.reader(text, delimiter=separator, strict=True)
        try:
            for record in reader:
                ended = reader.line_num
                yield record, ended
        except UnicodeDecodeError:
            with open_content(content) as file:
                decode_text(file.read(), name)  # says where

            raise
        except csv.Error as fault:
            where = f"{name}, line {ended + 1}"
            why = first_line(fault)
            raise InputError(
                f"{where}: found a stray or unclosed quote ({why}), expected CSV"
            ) from None


def _count(content: bytes | Path, mark: bytes) -> int:
    with open_content(content) as file:
        return sum(part.count(mark) for part in iter(lambda: file.read(2**24), b""))
