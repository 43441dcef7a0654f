"""Parquet, wide or long."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import polars as pl

from ..errors import InputError
from ..panel.model_tables import ModelTable
from . import frames
from .files import Place, Source, first_line
from .folders import parts
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
    content: Any = source.content() if source.path is None or not source.path.is_dir() else parts(source.path)
    with sound(source.name):
        frame = pl.read_parquet(content, glob=False, hive_partitioning=False)
        index = pandas_index(content)
        if isinstance(index, range):
            frame = frame.insert_column(0, pl.Series("\0index", list(index)))
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


@contextmanager
def sound(name: str) -> Iterator[None]:
    """Refuse a file that the table library cannot read.

    Examples
    --------
    >>> with sound("a.parquet"):
    ...     _ = pl.read_parquet(b"no")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: a.parquet: found broken Parquet data (...), expected a Parquet file
    """
    try:
        yield
    except InputError:
        raise
    except (pl.exceptions.PolarsError, OSError, ValueError) as fault:
        raise InputError(f"{name}: found broken Parquet data ({first_line(fault)}), expected a Parquet file") from None


def pandas_index(content: bytes | Path | list[Path]) -> str | range | None:
    """Return the column that holds a pandas frame's index, which pandas writes last, or a range that it only names.

    An unnamed range from 0 is what a frame has that was given no index: it says nothing. In a table of several files,
    a range that each file counts for itself says nothing either.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> pl.DataFrame({"x": [1]}).write_parquet(file)
    >>> pandas_index(file.getvalue()) is None
    True
    """
    first = content[0] if isinstance(content, list) else content
    index = _pandas_index(pl.read_parquet_metadata(first))
    return None if isinstance(content, list) and len(content) > 1 and isinstance(index, range) else index


def _pandas_index(metadata: Mapping[str, str]) -> str | range | None:
    columns = json.loads(metadata.get("pandas", "{}")).get("index_columns", [])
    if len(columns) != 1:
        return None
    if isinstance(columns[0], str):
        return columns[0]
    index = range(columns[0]["start"], columns[0]["stop"], columns[0]["step"])
    return None if columns[0]["name"] is None and index == range(len(index)) else index
