"""Parquet, wide or long; a folder called ``….parquet`` is one table in parts."""

import json
from collections.abc import Mapping
from mmap import ACCESS_READ, mmap
from typing import IO, Any

import polars as pl

from ...errors import InputError
from ...execution.memory import check_size
from ...predictions import ScoreTable
from .. import layouts
from ..columns import compute_row_size
from ..files import InputFile, Place, open_content
from ..layouts import Layout
from .registry import Collect, Frame, NamedFrame, list_parquet_parts

# Bytes of Thrift's types true, false, byte and double; a text has its size before it.
_SIZES = {1: 0, 2: 0, 3: 1, 7: 8}


def read(file: InputFile, collect: Collect = pl.LazyFrame.collect) -> NamedFrame:
    """Read the rows of a Parquet file; those of a plain file stay where they are.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> packed = io.BytesIO()
    >>> table = ScoreTable("a", np.array([[True, False]]), ["007"], ["sports", "law"])
    >>> write(packed, table, "long")
    >>> file = InputFile(name="a.parquet", model="a", read=packed.getvalue)
    >>> read(file).rows.rows()
    [('007', 'sports', True), ('007', 'law', False)]
    """
    content: Any = (
        file.get_content()
        if file.path is None or not file.path.is_dir()
        else list_parquet_parts(file.path.absolute())
    )
    rows = pl.scan_parquet(content, glob=False, hive_partitioning=False)
    columns = rows.collect_schema().names()
    _check_groups(content if isinstance(content, list) else [content], rows, file.name)
    index = find_pandas_index(
        pl.read_parquet_metadata(content[0] if isinstance(content, list) else content)
    )
    if isinstance(index, range) and isinstance(content, list):
        index = None  # each part counts for itself
    if isinstance(index, range):
        n = rows.select(pl.len()).collect().item()
        if len(index) != n:
            raise InputError(
                where=file.name,
                found=f"an index of {len(index)}",
                expected=f"{n}, as many as rows",
            )

        rows = rows.with_row_index("\0").with_columns(
            pl.col("\0").cast(pl.Int64) * index.step + index.start
        )
        columns = ["\0", *columns]

    order = sorted(
        columns, key=lambda column: column != index
    )  # the index first, where it is a column
    rows = rows.rename({column: str(order.index(column)) for column in columns})
    rows = rows.select(str(position) for position in range(len(order)))
    frame: Frame = rows
    if isinstance(content, bytes):
        frame = collect(rows)
    return NamedFrame(
        rows=frame,
        columns=order,
        place=Place(file=file.name, unit="row", number=lambda row: row + 1),
    )


def write(file: IO[bytes], table: ScoreTable, layout: Layout) -> None:
    """Write one table as Parquet.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> file = io.BytesIO()
    >>> write(file, ScoreTable("a", np.array([[0.5]]), ["007"], ["sports"]), "wide")
    >>> pl.read_parquet(file.getvalue()).columns
    ['instance', 'sports']
    """
    pl.concat(layouts.iterate_blocks(table, layout)).write_parquet(file)


def _check_groups(content: list[Any], rows: pl.LazyFrame, name: str) -> None:
    """Check that each row group fits into memory, where it is decoded as one.

    A few bytes can stand for any number of rows, and the number that a footer gives for
    all need not be theirs.
    """
    groups: list[
        Any
        # of each, 1 are the columns, 2 is the size in bytes and 3 the number of rows
    ] = []
    pages = [0]
    for part in content:
        with open_content(part) as file:
            data = memoryview(
                part
                if isinstance(part, bytes)
                else mmap(file.fileno(), 0, access=ACCESS_READ)
            )

        footer_groups = parse_thrift_struct(
            data, len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        )[0][4]
        pages += [
            _largest_page(data, column[3], name)
            for group in footer_groups
            for column in group[1]
        ]
        groups += footer_groups

    largest = max(
        (max(group[2], group[3] * compute_row_size(rows)) for group in groups),
        default=0,
    )
    check_size(max(largest, *pages), name, "in one group of rows")
    n = sum(group[3] for group in groups)
    n_footer = rows.select(pl.len()).collect().item()
    if n != n_footer:
        raise InputError(
            where=name,
            found=f"groups of {n:,} rows in all",
            expected=f"{n_footer:,}, as the footer says",
        )


def _largest_page(data: memoryview, column: dict[int, Any], name: str) -> int:
    """Return the decompressed size of the largest page of a column in a row group.

    Polars takes memory for as many values as a page says it has, and ends the process
    if there is none: no page may have more than its column (5), which begins at its
    dictionary (11) or, without one, at its first page (9).
    """
    position = column.get(11, column[9])
    n_remaining = column[5]
    largest = 0
    while n_remaining > 0:
        page, position = parse_thrift_struct(data, position)
        # A page of values, a dictionary, or a page as Parquet 2 has it.
        values = (page.get(5) or page.get(7) or page[8])[1]
        if 7 in page:
            most = page[2]
        else:
            most = n_remaining

        if not (0 <= values <= most and page[3] >= 0):
            raise InputError(
                where=name,
                found=f"a page of {values:,} values",
                expected=f"at most {most:,}",
            )

        position += page[3]
        if 7 not in page:
            n_remaining -= values

        largest = max(largest, page[2])

    return largest


def parse_thrift_struct(data: bytes | memoryview, start: int = 0) -> tuple[Any, int]:
    r"""Parse a structure of Thrift's compact protocol, as in a Parquet footer.

    Polars does not return these numbers.

    Parameters
    ----------
    data : bytes or memoryview
        The file.
    start : int, default=0
        Where the structure begins.

    Returns
    -------
    The fields by their numbers, where what is no number, list or structure is ``None``;
    and where it ends.

    Examples
    --------
    >>> parse_thrift_struct(b"\x15\x04\x19\x25\x02\x04\x00")
    ({1: 2, 2: [1, 2]}, 7)
    """
    position = start

    def read_varint() -> int:
        nonlocal position
        number = 0
        shift = 0
        byte = data[position]
        while byte > 127 and shift < 63:
            number |= (byte & 127) << shift
            shift += 7
            position += 1
            byte = data[position]

        position += 1
        return number | byte << shift

    def read_struct() -> dict[int, Any]:
        nonlocal position
        fields = {}
        number = 0
        while head := data[position]:
            number += head >> 4
            position += 1
            fields[number] = read_value(head & 15)

        position += 1
        return fields

    def read_value(kind: int) -> Any:
        nonlocal position
        if kind in (4, 5, 6):
            zigzag = read_varint()
            return zigzag >> 1 ^ -(zigzag & 1)
        if kind == 12:
            return read_struct()

        size = _SIZES.get(kind)
        if kind == 9:
            head = data[position]
            position += 1
            size = head >> 4
            if head > 239:
                size = read_varint()
            if head & 15 > 2:
                return [read_value(head & 15) for _ in range(size)]

        if size is None:
            size = read_varint()

        position += size
        return None

    fields = read_struct()
    return fields, position


def find_pandas_index(metadata: Mapping[str, str]) -> str | range | None:
    """Return the column of a pandas index, or a range that is only in the metadata.

    An unnamed range from 0 is what a frame has that was given no index: it says
    nothing.

    Examples
    --------
    >>> find_pandas_index({"pandas": '{"index_columns": ["id"]}'})
    'id'
    """
    pandas_metadata = json.loads(metadata.get("pandas", "{}"))
    columns = pandas_metadata.get("index_columns", [])
    if not columns:
        return None

    first = columns[0]
    if len(columns) > 1 or isinstance(first, str):
        column: str = first
        return column

    index = range(first["start"], first["stop"], first["step"])
    if first["name"] is None and index == range(len(index)):
        return None
    return index
