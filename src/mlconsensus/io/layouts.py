"""`ModelTable`s → frames to be written: wide, long or ranked."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import polars as pl
from scipy import sparse

from ..linalg.block_sums import dense
from ..linalg.sparse_scores import KEPT, Cells
from ..predictions import Array, ScoreTable
from .columns import roles

_BLOCK_CELLS = 2**22  # what a writer holds at a time

Layout = Literal["wide", "long", "ranked"]


def blocks(table: ScoreTable, layout: Layout) -> Iterator[pl.DataFrame]:
    """Walk a table as frames to be written one below the other; missing scores are null.

    Examples
    --------
    >>> table = ScoreTable("a", np.array([[0.5, np.nan]]), ["1"], ["x", "y"])
    >>> [block.rows() for block in blocks(table, "wide")], [block.rows() for block in blocks(table, "long")]
    ([[('1', 0.5, None)]], [[('1', 'x', 0.5), ('1', 'y', None)]])
    """
    n, l = table.scores.shape
    instances, labels = (
        pl.Series([str(name) for name in given], dtype=pl.String)
        for given in named(table)
    )
    matrix = table.scores
    if layout == "long" and sparse.issparse(matrix) and not isinstance(matrix, Cells):
        matrix = listed(matrix)

    size = max(
        1,
        _BLOCK_CELLS // (KEPT if isinstance(matrix, Cells) and layout != "wide" else l),
    )
    for start in range(0, n, size):
        yield block(
            matrix[start : start + size],
            instances[start : start + size],
            labels,
            layout,
        )


def block(
    scores: Any, instances: pl.Series, labels: pl.Series, layout: Layout
) -> pl.DataFrame:
    """Return some rows of a table as a frame.

    Examples
    --------
    >>> block(np.array([[0.5]]), pl.Series(["7"]), pl.Series(["x"]), "long").rows()
    [('7', 'x', 0.5)]
    """
    return {"wide": _wide_block, "long": _long_block, "ranked": _ranked_block}[layout](
        scores, instances, labels
    )


def listed(matrix: Any) -> Any:
    """Store zeros in a CSR matrix so that a list of its entries names all rows and columns, in order.

    All of the first row is stored, and the first cell of each empty row.

    Examples
    --------
    >>> listed(sparse.csr_array([[0.0, 0.5], [0.0, 0.0]])).nnz
    3
    """
    cells = matrix.tocoo()
    first = np.arange(matrix.shape[1])
    empty = np.flatnonzero(np.diff(matrix.indptr) == 0)
    row = np.concatenate([cells.row, np.zeros_like(first), empty])
    column = np.concatenate([cells.col, first, np.zeros_like(empty)])
    values = np.concatenate(
        [cells.data, np.zeros(len(first) + len(empty), dtype=cells.data.dtype)]
    )
    return sparse.csr_array(
        (values, (row, column)), shape=matrix.shape
    )  # adds up what is there twice


def named(table: ScoreTable) -> tuple[Sequence[Any] | Array, Sequence[Any] | Array]:
    """Return the instances' and labels' names, those that `Predictions` gives where the table has none.

    Examples
    --------
    >>> named(ScoreTable("a", np.zeros((2, 1))))
    (range(0, 2), ['label_0'])
    """
    n, l = table.scores.shape
    return (
        range(n) if table.instances is None else table.instances,
        [f"label_{at}" for at in range(l)] if table.labels is None else table.labels,
    )


def _wide_block(part: Any, rows: pl.Series, labels: pl.Series) -> pl.DataFrame:
    cells = np.asfortranarray(dense(part))
    taken = set(labels)
    # A label may itself be called "instance", and the header must not look like a long
    # table's.
    usual = ("instance", "id", *(f"id_{k}" for k in range(len(taken) + 1)))
    first = next(
        name for name in usual if name not in taken and not roles([name, *labels])
    )
    return pl.DataFrame(
        [
            rows.alias(first),
            *(_nullable(cells[:, at]).alias(label) for at, label in enumerate(labels)),
        ]
    )


def _long_block(part: Any, rows: pl.Series, labels: pl.Series) -> pl.DataFrame:
    if sparse.issparse(part):
        cells = part.tocoo()
        at_row = cells.row
        at_column = cells.col
        values = cells.data
    else:
        at_row, at_column = (at.ravel() for at in np.indices(part.shape))
        values = part.ravel()

    names = {"instance": rows.gather(at_row), "label": labels.gather(at_column)}
    return pl.DataFrame({**names, "score": _nullable(values)})


def _ranked_block(part: Any, rows: pl.Series, labels: pl.Series) -> pl.DataFrame:
    if isinstance(part, Cells):
        given = part
    else:
        given = dense(part)

    listed = (
        _long_block(given, rows, labels)
        .drop_nulls("score")
        .with_columns(at=pl.col("instance").rle_id())
    )
    best = listed.sort("at", "score", descending=[False, True], maintain_order=True)
    return best.select(
        "instance",
        pl.int_range(1, pl.len() + 1).over("at").alias("rank"),
        "label",
        "score",
    )


def _nullable(values: Array) -> pl.Series:
    if values.dtype.kind in "biu":
        return pl.Series(
            values.astype(np.bool_ if values.dtype.kind == "b" else np.uint8)
        )

    wide = values.astype(np.float64, copy=False)  # text must not round a float32
    return pl.Series(
        wide, nan_to_null=bool(np.isnan(wide.min())) if len(wide) else False
    )
