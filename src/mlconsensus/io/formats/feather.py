"""Feather (Arrow's file format), wide or long."""

from typing import IO

import polars as pl

from ...execution.memory import check_size
from ...predictions import ScoreTable
from .. import layouts
from ..columns import compute_row_size
from ..files import InputFile, Place
from ..layouts import Layout
from .registry import Collect, NamedFrame


def read(file: InputFile, collect: Collect = pl.LazyFrame.collect) -> NamedFrame:
    """Read the rows of a Feather file.

    Parameters
    ----------
    file : InputFile
        The file.
    collect : callable
        Runs the query.

    Returns
    -------
    NamedFrame

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> packed = io.BytesIO()
    >>> table = ScoreTable("a", np.array([[0.5, np.nan]]), ["007"], ["sports", "law"])
    >>> write(packed, table, "wide")
    >>> file = InputFile(name="a.feather", model="a", read=packed.getvalue)
    >>> read(file).rows.rows()
    [('007', 0.5, None)]
    """
    rows = pl.scan_ipc(file.get_content(), glob=False)
    columns = rows.collect_schema().names()
    n_rows = rows.select(pl.len()).collect().item()
    check_size(n_rows * compute_row_size(rows), file.name, "of cells", 0.5)

    positions = {column: str(position) for position, column in enumerate(columns)}
    return NamedFrame(
        rows=collect(rows.rename(positions)),
        columns=columns,
        place=Place(file=file.name, unit="row", number=lambda row: row + 1),
    )


def write(file: IO[bytes], table: ScoreTable, layout: Layout) -> None:
    """Write one table as Feather.

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
    >>> write(file, ScoreTable("a", np.array([[0.5]]), ["007"], ["sports"]), "long")
    >>> pl.read_ipc(file.getvalue()).rows()
    [('007', 'sports', 0.5)]
    """
    pl.concat(layouts.iterate_blocks(table, layout)).write_ipc(file)
