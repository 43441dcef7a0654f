"""Parquet, wide or long."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO

import polars as pl

from ..errors import InputError
from ..predictions import ModelTable
from . import frames
from .files import Place, Source, first_line
from .formats import Layout


def read(source: Source) -> list[ModelTable]:
    """Read the table of each model in a Parquet file.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> file = io.BytesIO()
    >>> write(file, ModelTable("a", np.array([[True, False]]), ["007"], ["sports", "law"]), "long")
    >>> read(Source("a.parquet", "a", file.getvalue))[0].labels.tolist()
    ['sports', 'law']
    """
    content = source.content()
    try:
        frame = pl.read_parquet(content, glob=False, hive_partitioning=False)
        index = _pandas_index(pl.read_parquet_metadata(content))
        if isinstance(index, range):
            frame = frame.insert_column(0, pl.Series("\0index", list(index)))
    except (pl.exceptions.PolarsError, OSError, ValueError) as fault:
        raise InputError(
            f"{source.name}: found broken Parquet data ({first_line(fault)}), expected a Parquet file"
        ) from None
    if isinstance(index, str) and index in frame.columns:
        frame = frame.select(index, pl.exclude(index))
    return frames.tables(frame, frame.columns, source.model, Place(source.name, "row", lambda row: row + 1))


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
    frames.whole(table, layout).write_parquet(file)


def _pandas_index(metadata: Mapping[str, str]) -> str | range | None:
    """Return the column that holds a pandas frame's index, which pandas writes last, or a range that it only names.

    An unnamed range from 0 is what a frame has that was given no index: it says nothing.
    """
    columns = json.loads(metadata.get("pandas", "{}")).get("index_columns", [])
    if len(columns) != 1:
        return None
    if isinstance(columns[0], str):
        return columns[0]
    index = range(columns[0]["start"], columns[0]["stop"], columns[0]["step"])
    return None if columns[0]["name"] is None and index == range(len(index)) else index
