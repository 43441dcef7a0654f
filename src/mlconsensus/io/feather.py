"""Feather (Arrow's file format), wide or long."""

from __future__ import annotations

import io
from typing import IO

import polars as pl

from ..errors import InputError
from ..panel.model_tables import ModelTable
from . import frames
from .files import Place, Source, first_line
from .formats import Layout


def read(source: Source) -> list[ModelTable]:
    """Read the table of each model in a Feather file.

    Examples
    --------
    >>> import numpy as np
    >>> file = io.BytesIO()
    >>> write(file, ModelTable("a", np.array([[0.5, np.nan]]), ["007"], ["sports", "law"]), "wide")
    >>> read(Source("a.feather", "a", file.getvalue))[0].scores
    array([[0.5, nan]])
    """
    try:
        frame = pl.read_ipc(io.BytesIO(source.read()))
    except (pl.exceptions.PolarsError, OSError, ValueError) as fault:
        raise InputError(
            f"{source.name}: found broken Feather data ({first_line(fault)}), expected a Feather or Arrow file"
        ) from None
    return frames.tables(frame, frame.columns, source.model, Place(source.name, "row", lambda row: row + 1))


def write(file: IO[bytes], table: ModelTable, layout: Layout) -> None:
    """Write one table as Feather.

    Examples
    --------
    >>> import numpy as np
    >>> file = io.BytesIO()
    >>> write(file, ModelTable("a", np.array([[0.5]]), ["007"], ["sports"]), "long")
    >>> pl.read_ipc(file.getvalue()).rows()
    [('007', 'sports', 0.5)]
    """
    frames.whole(table, layout).write_ipc(file)
