"""Feather (Arrow's file format), wide or long."""

from typing import IO

import polars as pl

from ...execution.memory import check_size
from ...predictions import ScoreTable
from .. import layouts
from ..columns import row_size
from ..files import InputFile, Place
from ..layouts import Layout
from .registry import Keep, NamedFrame


def read(file: InputFile, keep: Keep = pl.LazyFrame.collect) -> NamedFrame:
    """Read the rows of a Feather file.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> packed = io.BytesIO()
    >>> write(packed, ScoreTable("a", np.array([[0.5, np.nan]]), ["007"], ["sports", "law"]), "wide")
    >>> read(InputFile("a.feather", "a", packed.getvalue)).rows.rows()
    [('007', 0.5, None)]
    """
    rows = pl.scan_ipc(file.content(), glob=False)
    columns = rows.collect_schema().names()
    check_size(
        rows.select(pl.len()).collect().item() * row_size(rows),
        file.name,
        "of cells",
        0.5,
    )
    rows = keep(rows.rename({column: str(at) for at, column in enumerate(columns)}))
    return NamedFrame(rows, columns, Place(file.name, "row", lambda row: row + 1))


def write(file: IO[bytes], table: ScoreTable, layout: Layout) -> None:
    """Write one table as Feather.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> file = io.BytesIO()
    >>> write(file, ScoreTable("a", np.array([[0.5]]), ["007"], ["sports"]), "long")
    >>> pl.read_ipc(file.getvalue()).rows()
    [('007', 'sports', 0.5)]
    """
    pl.concat(layouts.blocks(table, layout)).write_ipc(file)
