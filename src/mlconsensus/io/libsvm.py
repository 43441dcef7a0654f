"""LIBSVM's multilabel text: ``3,7 1:0.5 4:1``, an instance a line, positions of labels and then features.

As predictions, the labels listed are 1 and the others 0; features are ignored. scikit-learn's loader is not used: it
skips lines that list neither labels nor features, and does not say where a fault is.
"""

from __future__ import annotations

from typing import IO, NoReturn

import numpy as np
import polars as pl

from ..errors import InputError
from ..panel.model_tables import ModelTable
from . import statements
from .files import Place, Source
from .formats import Layout
from .frames import text_array
from .text import decoded

_LINE = r"^[ \t]*((?:\d+(?:,\d+)*)?)(?:(?:^|[ \t]+)\d+:[^\s:]+)*[ \t\r]*(?:#.*)?$"


def read(source: Source) -> list[ModelTable]:
    r"""Read the label sets of a LIBSVM file; labels are called by their positions, instances have no names.

    Examples
    --------
    >>> table, = read(Source("a.svm", "a", lambda: b"3,7 1:0.5\n 2:1\n7\n"))
    >>> table.labels.tolist(), table.scores.tolist()
    (['3', '7'], [[1.0, 1.0], [0.0, 0.0], [0.0, 1.0]])
    """
    lines = pl.Series(decoded(source.read(), source.name).removesuffix("\n").split("\n"))
    place = Place(source.name, "line", lambda row: row + 1)
    listed = lines.str.extract(_LINE, 1)
    bad = listed.is_null().arg_max()
    if bad is not None and listed[bad] is None:
        raise InputError(f"{place(bad)}: found {lines[bad][:40]!r}, expected labels and features such as 3,7 1:0.5")
    tags = pl.DataFrame({"instance": np.arange(len(lines)), "label": listed.str.split(",")}).explode("label")
    codes = tags["label"].cast(pl.Int64, strict=False).fill_null(-1).to_numpy()
    used = np.unique(codes[codes >= 0])
    said = statements.Statements(
        np.zeros(len(tags), dtype=np.int64),
        tags["instance"].to_numpy(),
        np.where(codes < 0, -1, np.searchsorted(used, codes)),
        (codes >= 0).astype(np.float64),
        [source.model],
        text_array(pl.Series(range(len(lines))).cast(pl.String)),
        text_array(pl.Series(used).cast(pl.String)),
    )
    by_row = tags["instance"].to_list()
    tables = statements.tables(said, Place(source.name, "line", lambda at: by_row[at] + 1))
    return [table._replace(instances=None) for table in tables]


def write(file: IO[bytes], table: ModelTable, layout: Layout) -> NoReturn:
    """Refuse: the format has no place for names or scores.

    Examples
    --------
    >>> import io
    >>> write(io.BytesIO(), ModelTable("a", np.zeros((1, 1))), "wide")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: format: found libsvm for output, expected one that keeps names and scores...
    """
    raise InputError("format: found libsvm for output, expected one that keeps names and scores, such as csv")
