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
from ..files import InputFile, Place, get_first_line, open_content, reader_errors
from ..layouts import Layout
from .registry import Collect, Frame, NamedFrame

_HEAD = 2**16  # bytes that show whether a file is text
_SEPARATOR_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


def read(
    file: InputFile, collect: Collect = pl.LazyFrame.collect, separator: str = ","
) -> NamedFrame:
    r"""Read the rows of a CSV file.

    Names are text. Scores have the smallest type that holds them all: integers, floats
    or text.

    Parameters
    ----------
    file : InputFile
        The file.
    collect : callable
        Runs the query.
    separator : str, default=","
        Character between columns.

    Returns
    -------
    NamedFrame

    Examples
    --------
    >>> text = b"id,sports,law\n007,1,0\n008,,1\n"
    >>> frame = read(InputFile(name="a.csv", model="a", read=lambda: text))
    >>> frame.columns, frame.rows.rows(), frame.place(0)
    (['id', 'sports', 'law'], [('007', 1, 0), ('008', None, 1)], 'a.csv, line 2')
    """
    content = file.get_content()
    with open_content(content) as opening:
        head = opening.read(_HEAD)
        opening.seek(max(0, opening.seek(0, os.SEEK_END) - 4))
        # Polars reads an empty line as a row.
        if opening.read().endswith((b"\n\n", b"\n\r\n")):
            content = file.read().rstrip(b"\r\n")

    check_text(head, file.name)
    has_line_feeds = b"\n" in head or head.count(b"\r") < 2
    if not has_line_feeds:
        raise InputError(
            where=file.name,
            found="bare carriage returns as line ends",
            expected="line feeds",
        )

    columns, header_lines = _header(content, file.name, separator)
    roles = cells.find_roles(columns, file.options, file.name)
    text = [str(position) for position, role in enumerate(roles) if role != "score"]
    if not roles:
        text = ["0"]

    rows = _parse_rows(
        content, columns, text, name=file.name, separator=separator, collect=collect
    )

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
    r"""Write one table as CSV.

    Scores are written exactly, missing ones as empty cells.

    Parameters
    ----------
    file : binary file
        The output.
    table : ScoreTable
        The scores of one model.
    layout : {"wide", "long", "ranked"}
        Arrangement of rows and columns.
    separator : str, default=","
        Character between columns.

    Examples
    --------
    >>> import numpy as np
    >>> file = io.BytesIO()
    >>> table = ScoreTable("a", np.array([[1.0, 0.1]]), ["007"], ["sports", "law"])
    >>> write(file, table, "wide")
    >>> file.getvalue()
    b'instance,sports,law\n007,1.0,0.1\n'
    """
    for number, block in enumerate(layouts.iterate_blocks(table, layout)):
        numbers = block.with_columns(pl.col(pl.Boolean).cast(pl.UInt8))
        numbers.write_csv(file, include_header=number == 0, separator=separator)


def _header(content: bytes | Path, name: str, separator: str) -> tuple[list[str], int]:
    """Return the names of the columns, and how many lines they take."""
    columns, lines = next(_records(content, separator, name), ([], 0))
    if not any(column.strip() for column in columns):
        raise InputError(
            where=f"{name}, line 1", found="an empty line", expected="a header line"
        )
    if other := _other_mark(columns, separator):
        remedy = {
            ",": " (--format csv reads it)",
            "\t": " (--format tsv reads it)",
        }.get(other, "")
        # Files with semicolons mostly have decimal commas, too.
        points = ""
        if other == ";":
            points = ", and points in numbers such as 0.5"

        raise InputError(
            where=f"{name}, line 1",
            found=f"{_SEPARATOR_NAMES[other]} between columns{remedy}",
            expected=f"{_SEPARATOR_NAMES[separator]}{points}",
        )

    return columns, lines


def _other_mark(record: list[str], separator: str) -> str:
    """Return another separator in a record that has only one field, else ''."""
    others = [
        mark
        for mark in _SEPARATOR_NAMES
        if mark != separator and len(record) == 1 and mark in record[0]
    ]
    if others:
        return others[0]
    return ""


def _parse_rows(
    content: bytes | Path,
    columns: list[str],
    text: list[str],
    *,
    name: str,
    separator: str,
    collect: Collect,
) -> Frame:
    """Parse the rows with the first type of scores that fits all of them."""
    source: Any = content
    # A type that does not fit fails at the first such cell.
    for dtype in (pl.UInt8, pl.Float64, pl.String):
        schema: dict[str, Any] = dict.fromkeys(map(str, range(len(columns))), dtype)
        schema |= dict.fromkeys(text, pl.String)
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
    """Raise an error for the first record that does not have `width` fields."""
    ended = 0  # the line before the record
    for record, line in _records(content, separator, name):
        if len(record) != width:
            other = _other_mark(record, separator)
            if other:
                hint = f" with {_SEPARATOR_NAMES[other]} in it"
            else:
                hint = ""

            if len(record) == 1:
                description = f"1 field{hint}"
            elif record:
                description = f"{len(record)} fields{hint}"
            else:
                description = "an empty line"

            raise InputError(
                where=f"{name}, line {ended + 1}",
                found=description,
                expected=f"{width} fields, as the header has",
            )

        ended = line


def _records(
    content: bytes | Path, separator: str, name: str
) -> Iterator[tuple[list[str], int]]:
    """Iterate over the records and the lines on which they end; this is slow."""
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
            why = get_first_line(fault)
            raise InputError(
                f"{where}: found a stray or unclosed quote ({why}), expected CSV"
            ) from None


def _count(content: bytes | Path, mark: bytes) -> int:
    """Return how often a byte occurs."""
    with open_content(content) as file:
        return sum(part.count(mark) for part in iter(lambda: file.read(2**24), b""))
