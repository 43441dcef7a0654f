"""Frames → `ModelTable`s: the one way from rows to the tables that a panel is made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..errors import InputError
from ..panel.alignment import first_again
from ..panel.model_tables import ModelTable
from . import statements, stored
from .columns import check_columns, is_long, matrix, names
from .formats import NamedFrame


def tables(found: NamedFrame, model: str, scratch: Path | None = None) -> list[ModelTable]:
    """Make the table of each model in a frame.

    Parameters
    ----------
    found
        What a format's module has read.
    model
        What the model is called if no column says so.
    scratch
        A folder, not there yet, for what is to stay on disk; ``None``: all goes into memory.

    Returns
    -------
    list of ModelTable
        Instances are a Polars series of names. With `scratch`, scores are matrices on disk.

    Examples
    --------
    >>> from .files import Place
    >>> frame = pl.DataFrame({"0": ["1", "2"], "1": [0.5, None]})
    >>> tables(NamedFrame(frame, ["id", "x"], Place("a.csv", "row", int)), "a")[0].scores
    array([[0.5],
           [nan]])
    """
    columns, place = found.columns, found.place
    check_columns(columns, place.file)
    rows = found.rows.lazy().select(pl.len()).collect().item()
    if rows == 0:
        raise InputError(f"{place.file}: found a header and no rows, expected at least one")
    if is_long(columns):
        return statements.tables(found, model, scratch)
    ids = names(found.rows.lazy().select("0").collect().to_series(), columns[0] or "instance", place)
    again = first_again(ids)
    if again:
        raise InputError(
            f"{place(again[1])}: found the instance {ids[again[1]]!r} again (first in {place.short(again[0])}), "
            "expected each once"
        )
    labels = np.array(columns[1:], dtype=np.dtypes.StringDType())
    if scratch is None:
        cells: Any = matrix(found.rows.lazy().collect().drop("0"), columns, place)
    else:
        cells = stored.ParquetMatrix(stored.on_disk(found.rows, scratch), columns, place, rows)
    return [ModelTable(model, cells, ids, labels, place.file)]
