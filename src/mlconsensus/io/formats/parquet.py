"""Parquet, wide or long; a folder called ``….parquet`` is one table in parts."""

import json
from collections.abc import Mapping, Sequence
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import IO

import polars as pl

from ...errors import InputError
from ...execution.memory import check_size
from ...predictions import ScoreTable
from .. import layouts
from ..columns import compute_row_size
from ..files import InputFile, Place, open_content
from ..layouts import Layout
from .registry import Collect, Frame, NamedFrame, list_parquet_parts
from .thrift import Struct, parse_struct

_INDEX = "\0"  # a column that is not in the file

# Numbers of fields in Parquet's structures: of the footer, of a row group, of a column
# chunk and its metadata, and of the header of a page.
_FOOTER_GROUPS = 4
_GROUP_COLUMNS = 1
_GROUP_BYTES = 2
_GROUP_ROWS = 3
_CHUNK_METADATA = 3
_COLUMN_VALUES = 5
_COLUMN_FIRST_PAGE = 9
_COLUMN_DICTIONARY = 11
_PAGE_DECOMPRESSED_BYTES = 2
_PAGE_COMPRESSED_BYTES = 3
_PAGE_DATA = 5
_PAGE_DICTIONARY = 7
_PAGE_DATA_V2 = 8
_PAGE_VALUES = 1


def read(file: InputFile, collect: Collect = pl.LazyFrame.collect) -> NamedFrame:
    """Read the rows of a Parquet file; those of a plain file stay where they are.

    Parameters
    ----------
    file : InputFile
        A file, or a folder of parts.
    collect : callable
        Runs the query if the file is in memory.

    Returns
    -------
    NamedFrame

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
    rows: pl.LazyFrame
    parts: Sequence[bytes | Path]
    is_folder = file.path is not None and file.path.is_dir()
    if file.path is not None and is_folder:
        paths = list_parquet_parts(file.path.absolute())
        rows = pl.scan_parquet(paths, glob=False, hive_partitioning=False)
        parts = paths
    else:
        content = file.get_content()
        rows = pl.scan_parquet(content, glob=False, hive_partitioning=False)
        parts = [content]

    columns = rows.collect_schema().names()
    _check_groups(parts, rows, file.name)

    # The index of pandas names the instances: it becomes the first column.
    index = find_pandas_index(pl.read_parquet_metadata(parts[0]))
    if isinstance(index, str) and index in columns:
        columns.remove(index)
        columns.insert(0, index)
    elif isinstance(index, range) and not is_folder:  # each part counts for itself
        rows = _add_range_index(rows, index, file.name)
        columns.insert(0, _INDEX)

    cells = []
    for position, column in enumerate(columns):
        cells.append(pl.col(column).alias(str(position)))

    frame: Frame
    selected = rows.select(cells)
    if isinstance(parts[0], bytes):
        frame = collect(selected)
    else:
        frame = selected

    return NamedFrame(
        rows=frame,
        columns=columns,
        place=Place(file=file.name, unit="row", number=lambda row: row + 1),
    )


def _add_range_index(rows: pl.LazyFrame, index: range, name: str) -> pl.LazyFrame:
    """Add the column of a pandas index that is only in the metadata."""
    n_rows = rows.select(pl.len()).collect().item()
    if len(index) != n_rows:
        raise InputError(
            where=name,
            found=f"an index of {len(index)}",
            expected=f"{n_rows}, as many as rows",
        )

    positions = pl.col(_INDEX).cast(pl.Int64)
    numbered = rows.with_row_index(_INDEX)
    return numbered.with_columns(positions * index.step + index.start)


def write(file: IO[bytes], table: ScoreTable, layout: Layout) -> None:
    """Write one table as Parquet.

    Parameters
    ----------
    file : binary file
        The file.
    table : ScoreTable
        The scores of one model.
    layout : {"wide", "long", "ranked"}
        Arrangement of rows and columns.

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


def _check_groups(parts: Sequence[bytes | Path], rows: pl.LazyFrame, name: str) -> None:
    """Check that each row group fits into memory, where it is decoded as one.

    A few bytes can stand for any number of rows, and the number of rows in the footer
    may differ from that of the groups.
    """
    row_size = compute_row_size(rows)
    n_rows = 0
    largest = 0
    for part in parts:
        data = _map_bytes(part)
        for group in _parse_footer(data).get_structs(_FOOTER_GROUPS):
            n_group_rows = group.get_int(_GROUP_ROWS)
            n_rows += n_group_rows
            largest = max(largest, group.get_int(_GROUP_BYTES), n_group_rows * row_size)
            for column in group.get_structs(_GROUP_COLUMNS):
                metadata = column.get_struct(_CHUNK_METADATA)
                largest = max(largest, _find_largest_page(data, metadata, name))

    check_size(largest, name, "in one group of rows")
    n_footer_rows = rows.select(pl.len()).collect().item()
    if n_rows != n_footer_rows:
        raise InputError(
            where=name,
            found=f"groups of {n_rows:,} rows in all",
            expected=f"{n_footer_rows:,}, as the footer says",
        )


def _map_bytes(part: bytes | Path) -> memoryview:
    """Return the bytes of a file without reading those that are not used."""
    if isinstance(part, bytes):
        return memoryview(part)
    with open_content(part) as file:
        return memoryview(mmap(file.fileno(), 0, access=ACCESS_READ))


def _parse_footer(data: memoryview) -> Struct:
    """Return the footer, which ends with its size and four bytes that mark Parquet."""
    size = int.from_bytes(data[-8:-4], "little")
    footer, _ = parse_struct(data, len(data) - 8 - size)
    return footer


def _find_largest_page(data: memoryview, column: Struct, name: str) -> int:
    """Return the decompressed size of the largest page of a column in a row group.

    Polars allocates memory for the number of values in the header of a page, and ends
    the process if there is none. No page may have more values than its column, which
    begins with its dictionary or, without one, with its first page.
    """
    if _COLUMN_DICTIONARY in column:
        position = column.get_int(_COLUMN_DICTIONARY)
    else:
        position = column.get_int(_COLUMN_FIRST_PAGE)

    n_remaining = column.get_int(_COLUMN_VALUES)
    largest = 0
    while n_remaining > 0:
        page, position = parse_struct(data, position)
        decompressed_size = page.get_int(_PAGE_DECOMPRESSED_BYTES)
        compressed_size = page.get_int(_PAGE_COMPRESSED_BYTES)
        n_values = _get_page_header(page).get_int(_PAGE_VALUES)

        is_dictionary = _PAGE_DICTIONARY in page
        max_values = n_remaining
        if is_dictionary:
            max_values = decompressed_size

        if not (0 <= n_values <= max_values and compressed_size >= 0):
            raise InputError(
                where=name,
                found=f"a page of {n_values:,} values",
                expected=f"at most {max_values:,}",
            )

        position += compressed_size
        if not is_dictionary:
            n_remaining -= n_values

        largest = max(largest, decompressed_size)

    return largest


def _get_page_header(page: Struct) -> Struct:
    """Return the header of a page of values, a dictionary, or a page of Parquet 2."""
    for kind in (_PAGE_DATA, _PAGE_DICTIONARY):
        if kind in page:
            return page.get_struct(kind)
    return page.get_struct(_PAGE_DATA_V2)


def find_pandas_index(metadata: Mapping[str, str]) -> str | range | None:
    """Return the column of a pandas index, or a range that is only in the metadata.

    An unnamed range from 0 is the default index of a frame, which is not a name.

    Parameters
    ----------
    metadata : mapping of str to str
        Metadata of a Parquet file.

    Returns
    -------
    str, range or None
        ``None`` without an index of names.

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
