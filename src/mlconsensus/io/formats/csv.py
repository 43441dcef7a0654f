"""CSV and TSV: text with a separator between columns, wide or long."""

import csv
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
import polars as pl

from ...errors import InputError
from ...predictions import ScoreTable
from .. import columns as cells
from .. import layouts
from ..encoding import check_text, decode_text
from ..files import InputFile, Place, get_first_line, open_content, reader_errors
from ..layouts import Layout
from .annotation_tools import is_short_label_studio
from .registry import Collect, Frame, NamedFrame

_HEAD = 2**16  # bytes that show whether a file is text
_PIECE = 2**24  # bytes that are read at a time
_SEPARATOR_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_SEPARATOR_HINTS = {",": " (--format csv reads it)", "\t": " (--format tsv reads it)"}
# Types of scores, and whether they have decimal commas; the first that fits is used.
_ScoreTypes = tuple[tuple[type[pl.DataType], bool], ...]
_SCORE_TYPES: _ScoreTypes = (
    (pl.UInt8, False),
    (pl.Float64, False),
    (pl.String, False),
)
_SCORE_TYPES_OF_SEMICOLONS: _ScoreTypes = (
    (pl.UInt8, False),
    (pl.Float64, False),
    (pl.Float64, True),
    (pl.String, False),
)
_YES_MARKS = ("x", "yes", "✓", "✔", "☑")
_NO_MARK = "no"
_BOM = b"\xef\xbb\xbf"
_SEPARATOR_LINE = re.compile(rb"sep=([,;\t|])\r?\n")  # as Excel writes it


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
        tail = opening.read()

    # Polars reads an empty line at the end as a row.
    if tail.endswith((b"\n\n", b"\n\r\n")):
        content = file.read().rstrip(b"\r\n")

    check_text(head, file.name)
    n_lines_before = 0
    separator_line = _SEPARATOR_LINE.match(head.removeprefix(_BOM))
    if separator_line is not None and not file.options.strict:
        content = file.read().removeprefix(_BOM)[separator_line.end() :]
        separator = separator_line[1].decode()
        n_lines_before = 1

    has_line_feeds = b"\n" in head or head.count(b"\r") < 2
    if not has_line_feeds:
        raise InputError(
            where=file.name,
            found="bare carriage returns as line ends",
            expected="line feeds",
        )

    if separator == "," and not file.options.strict:
        separator = _find_semicolons(content, file)
    columns, n_header_lines = _read_header(content, file.name, separator)
    n_header_lines += n_lines_before
    text_columns = _list_text_columns(columns, file)
    rows = _parse_rows(
        content,
        columns,
        text_columns,
        name=file.name,
        separator=separator,
        collect=collect,
    )
    if not file.options.strict:
        rows, columns = _drop_empty_end(rows, columns, file)
        rows = _convert_marks(rows, columns, text_columns, file)
        text_columns = [name for name in text_columns if int(name) < len(columns)]

    def find_line(row: int) -> int:
        """Return the line on which a row begins; names may contain line ends."""
        line_ends = pl.col(text_columns).str.count_matches("\n", literal=True)
        counts = rows.lazy().slice(0, row).select(line_ends.sum()).collect().row(0)
        return n_header_lines + 1 + row + sum(map(int, counts))

    return NamedFrame(
        rows=rows,
        columns=columns,
        place=Place(file=file.name, unit="line", number=find_line),
    )


def _find_semicolons(content: bytes | Path, file: InputFile) -> str:
    """Return a semicolon if the header has semicolons and no commas, else a comma.

    Spreadsheets write semicolons in countries with decimal commas.
    """
    columns, _ = next(_iterate_records(content, ",", file.name), ([], 0))
    if len(columns) != 1 or ";" not in columns[0]:
        return ","

    file.options.log.add("files with semicolons between columns", file.name)
    return ";"


def _drop_empty_end(
    rows: Frame, columns: list[str], file: InputFile
) -> tuple[Frame, list[str]]:
    """Leave out empty columns and rows at the end, which spreadsheets add."""
    log = file.options.log
    n_columns = len(columns)
    while n_columns > 1 and not columns[n_columns - 1].strip():
        n_columns -= 1
    if n_columns < len(columns):
        extra = [str(position) for position in range(n_columns, len(columns))]
        has_cells = pl.any_horizontal(pl.col(extra).is_not_null()).any()
        if rows.lazy().select(has_cells).collect().item():
            return rows, columns

        rows = rows.drop(extra)
        columns = columns[:n_columns]
        log.add("empty columns left out", times=len(extra))

    last_is_empty = pl.all_horizontal(pl.all().is_null()).last()
    if not rows.lazy().select(last_is_empty).collect().item():
        return rows, columns

    query = rows.lazy().select(pl.any_horizontal(pl.all().is_not_null()))
    is_used = query.collect().to_series().to_numpy()
    n_rows = int(np.flatnonzero(is_used).max(initial=-1)) + 1
    log.add("empty rows left out", times=len(is_used) - n_rows)
    return rows.head(n_rows), columns


def _convert_marks(
    rows: Frame, columns: list[str], text_columns: list[str], file: InputFile
) -> Frame:
    """Convert check marks to scores if the table has no other scores.

    An empty cell is a no, unless the table has cells that say so, or has gold labels of
    some instances: then it is missing.
    """
    score_columns = []
    for position in range(len(columns)):
        if str(position) not in text_columns:
            score_columns.append(str(position))

    schema = rows.lazy().collect_schema()
    if not score_columns or schema[score_columns[0]] != pl.String:
        return rows

    marks = pl.col(score_columns).str.strip_chars().str.to_lowercase()
    is_mark = marks.is_in([*_YES_MARKS, _NO_MARK, ""]) | marks.is_null()
    has_only_marks = pl.all_horizontal(is_mark).all().alias("has_only_marks")
    has_no = pl.any_horizontal(marks == _NO_MARK).any().alias("has_no")
    summary = rows.lazy().select(has_only_marks, has_no).collect()
    if not summary["has_only_marks"].item():
        return rows

    file.options.log.add("files with marks read as yes and no", file.name)
    empty_value = 0.0
    if summary["has_no"].item() or file.options.partial:
        empty_value = float("nan")

    score_by_mark = dict.fromkeys(_YES_MARKS, 1.0) | {_NO_MARK: 0.0, "": empty_value}
    texts = marks.fill_null("")
    return rows.with_columns(
        texts.replace_strict(score_by_mark, return_dtype=pl.Float64)
    )


def _list_text_columns(columns: list[str], file: InputFile) -> list[str]:
    """Return the positions of the columns of names, as text."""
    if is_short_label_studio(columns):
        return list(map(str, range(len(columns))))

    roles = cells.find_roles(columns, file.options, file.name)
    if not roles:
        return ["0"]

    positions = []
    for position, role in enumerate(roles):
        if role != "score":
            positions.append(str(position))

    return positions


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


def _read_header(
    content: bytes | Path, name: str, separator: str
) -> tuple[list[str], int]:
    """Return the names of the columns, and the number of lines that they take."""
    columns, n_lines = next(_iterate_records(content, separator, name), ([], 0))
    if not "".join(columns).strip():
        raise InputError(
            where=f"{name}, line 1", found="an empty line", expected="a header line"
        )

    other = _find_other_separator(columns, separator)
    if other is not None:
        # Files with semicolons mostly have decimal commas, too.
        points = ""
        if other == ";":
            points = ", and points in numbers such as 0.5"

        raise InputError(
            where=f"{name}, line 1",
            found=(
                f"{_SEPARATOR_NAMES[other]} between columns"
                f"{_SEPARATOR_HINTS.get(other, '')}"
            ),
            expected=f"{_SEPARATOR_NAMES[separator]}{points}",
        )

    return columns, n_lines


def _find_other_separator(record: list[str], separator: str) -> str | None:
    """Return another separator in a record that has only one field."""
    if len(record) != 1:
        return None

    for other in _SEPARATOR_NAMES:
        if other != separator and other in record[0]:
            return other

    return None


def _parse_rows(
    content: bytes | Path,
    columns: list[str],
    text_columns: list[str],
    *,
    name: str,
    separator: str,
    collect: Collect,
) -> Frame:
    """Parse the rows with the first type of scores that fits all of them."""
    message = ""
    score_types = _SCORE_TYPES
    if separator == ";":
        score_types = _SCORE_TYPES_OF_SEMICOLONS

    # A type that does not fit fails at the first such cell.
    for score_dtype, has_decimal_comma in score_types:
        schema: dict[str, type[pl.DataType]] = {}
        for position in range(len(columns)):
            schema[str(position)] = score_dtype
        for column in text_columns:
            schema[column] = pl.String

        try:
            with reader_errors(name, "CSV"):
                query = pl.scan_csv(
                    content,
                    schema=schema,
                    glob=False,
                    has_header=False,
                    skip_rows=1,
                    separator=separator,
                    decimal_comma=has_decimal_comma,
                )
                rows = collect(query)
        except InputError as error:
            message = str(error)
            continue

        if _may_have_short_rows(rows, content, len(columns), separator):
            _check_widths(content, len(columns), name, separator)
        return rows

    _check_widths(content, len(columns), name, separator)
    raise InputError(message)


def _may_have_short_rows(
    rows: Frame, content: bytes | Path, n_columns: int, separator: str
) -> bool:
    """Return whether rows may have fewer fields than the header.

    Polars fills such rows with nulls. If there are no quotes, the number of separators
    tells them from empty cells.
    """
    has_empty_cell = pl.last().is_null().any().alias("has_empty_cell")
    summary = rows.lazy().select(pl.len(), has_empty_cell).collect()
    n_rows, is_suspicious = summary.row(0)
    if not is_suspicious:
        return False

    n_expected = (n_columns - 1) * (n_rows + 1)
    has_quotes = _count_bytes(content, b'"') > 0
    return has_quotes or _count_bytes(content, separator.encode()) != n_expected


def _check_widths(content: bytes | Path, width: int, name: str, separator: str) -> None:
    """Raise an error for the first record that does not have `width` fields."""
    previous_line = 0  # the line on which the record before ends
    for record, line in _iterate_records(content, separator, name):
        if len(record) != width:
            hint = ""
            other = _find_other_separator(record, separator)
            if other is not None:
                hint = f" with {_SEPARATOR_NAMES[other]} in it"

            if len(record) == 1:
                description = f"1 field{hint}"
            elif record:
                description = f"{len(record)} fields{hint}"
            else:
                description = "an empty line"

            raise InputError(
                where=f"{name}, line {previous_line + 1}",
                found=description,
                expected=f"{width} fields, as the header has",
            )

        previous_line = line


def _iterate_records(
    content: bytes | Path, separator: str, name: str
) -> Iterator[tuple[list[str], int]]:
    """Iterate over the records and the lines on which they end; this is slow."""
    last_line = 0
    with io.TextIOWrapper(
        open_content(content), encoding="utf-8-sig", newline=""
    ) as text:
        reader = csv.reader(text, delimiter=separator, strict=True)
        try:
            for record in reader:
                last_line = reader.line_num
                yield record, last_line
        except UnicodeDecodeError:
            # The error of `decode_text` names the line.
            with open_content(content) as file:
                decode_text(file.read(), name)
            raise
        except csv.Error as error:
            reason = get_first_line(error)
            raise InputError(
                where=f"{name}, line {last_line + 1}",
                found=f"a stray or unclosed quote ({reason})",
                expected="CSV",
            ) from None


def _count_bytes(content: bytes | Path, byte: bytes) -> int:
    """Return the number of times that a byte occurs."""
    count = 0
    with open_content(content) as file:
        while piece := file.read(_PIECE):
            count += piece.count(byte)

    return count
