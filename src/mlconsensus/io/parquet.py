"""Parquet, wide or long; a folder called ``….parquet`` is one table in parts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO, Any

import polars as pl

from ..errors import expect
from ..panel.model_tables import ModelTable
from . import layouts
from .files import InputFile, Place
from .formats import Keep, Layout, NamedFrame, parts


def read(file: InputFile, keep: Keep = pl.LazyFrame.collect) -> NamedFrame:
    """Read the rows of a Parquet file; those of a plain file stay where they are.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> packed = io.BytesIO()
    >>> write(packed, ModelTable("a", np.array([[True, False]]), ["007"], ["sports", "law"]), "long")
    >>> read(InputFile("a.parquet", "a", packed.getvalue)).rows.rows()
    [('007', 'sports', True), ('007', 'law', False)]
    """
    content: Any = file.content() if file.path is None or not file.path.is_dir() else parts(file.path.absolute())
    rows = pl.scan_parquet(content, glob=False, hive_partitioning=False)
    columns = rows.collect_schema().names()
    index = pandas_index(pl.read_parquet_metadata(content[0] if isinstance(content, list) else content))
    if isinstance(index, range) and isinstance(content, list):
        index = None  # each part counts for itself
    if isinstance(index, range):
        n = rows.select(pl.len()).collect().item()
        expect(len(index) == n, file.name, f"an index of {len(index)}", f"{n}, as many as rows")
        rows = rows.with_row_index("\0").with_columns(pl.col("\0").cast(pl.Int64) * index.step + index.start)
        columns = ["\0", *columns]
    order = sorted(columns, key=lambda column: column != index)  # the index first, where it is a column
    rows = rows.rename({column: str(order.index(column)) for column in columns})
    rows = rows.select(str(at) for at in range(len(order)))
    if isinstance(content, bytes):
        rows = keep(rows)
    return NamedFrame(rows, order, Place(file.name, "row", lambda row: row + 1))


def write(file: IO[bytes], table: ModelTable, layout: Layout) -> None:
    """Write one table as Parquet.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> file = io.BytesIO()
    >>> write(file, ModelTable("a", np.array([[0.5]]), ["007"], ["sports"]), "wide")
    >>> pl.read_parquet(file.getvalue()).columns
    ['instance', 'sports']
    """
    pl.concat(layouts.blocks(table, layout)).write_parquet(file)


def pandas_index(metadata: Mapping[str, str]) -> str | range | None:
    """Return the column that holds a pandas frame's index, which pandas writes last, or a range that it only names.

    An unnamed range from 0 is what a frame has that was given no index: it says nothing.

    Examples
    --------
    >>> pandas_index({"pandas": '{"index_columns": ["id"]}'})
    'id'
    """
    columns = json.loads(metadata.get("pandas", "{}")).get("index_columns", [])
    if len(columns) != 1 or isinstance(columns[0], str):
        return columns[0] if columns else None
    index = range(columns[0]["start"], columns[0]["stop"], columns[0]["step"])
    return None if columns[0]["name"] is None and index == range(len(index)) else index
