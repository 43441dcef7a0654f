"""LIBSVM's multilabel text: ``3,7 1:0.5 4:1``, an instance a line, positions of labels and then features.

As predictions, the labels listed are 1 and the others 0; features are ignored. scikit-learn's loader is not used: it
skips lines that list neither labels nor features, and does not say where a fault is.
"""

import numpy as np
import polars as pl

from ..errors import InputError
from ..panel import ModelTable
from . import frames
from .files import InputFile, Place
from .formats import Keep, NamedFrame
from .text import decoded

_LINE = r"^[ \t]*((?:\d+(?:,\d+)*)?)(?:(?:^|[ \t]+)\d+:[^\s:]+)*[ \t\r]*(?:#.*)?$"


def read(file: InputFile, keep: Keep = pl.LazyFrame.collect) -> list[ModelTable]:
    r"""Read the label sets of a LIBSVM file; labels are called by their positions, instances have no names.

    Examples
    --------
    >>> table, = read(InputFile("a.svm", "a", lambda: b"3,7 1:0.5\n 2:1\n7\n"))
    >>> table.labels.tolist(), table.scores.tolist()
    (['3', '7'], [[1.0, 1.0], [0.0, 0.0], [0.0, 1.0]])
    """
    lines = pl.Series(decoded(file.read(), file.name).removesuffix("\n").split("\n"))
    listed = lines.str.extract(_LINE, 1)
    if listed.null_count():
        bad = int(listed.is_null().arg_max() or 0)
        where, expected = f"{file.name}, line {bad + 1}", "labels and features such as 3,7 1:0.5"
        raise InputError(f"{where}: found {lines[bad][:40]!r}, expected {expected}")
    tags = pl.DataFrame({"0": range(len(lines)), "1": listed.str.split(",")}).explode("1")
    tags = tags.with_columns(pl.col("0").cast(pl.String), (pl.col("1") != "").cast(pl.Float64).alias("2"))
    rows = tags.with_columns(pl.col("1").replace("", None))
    place = Place(file.name, "line", lambda row: int(tags["0"][row]) + 1)
    (table,) = frames.tables(NamedFrame(rows, ["instance", "label", "score"], place, bare=True), file.model)
    order = np.argsort([int(label) for label in table.labels])
    return [table._replace(scores=table.scores[:, order], labels=table.labels[order], instances=None)]
