"""Frames to be written of score tables: wide, long or ranked."""

from collections.abc import Iterator, Sequence
from itertools import chain, count
from typing import Literal

import numpy as np
import polars as pl
from scipy import sparse

from ..linalg.block_sums import dense
from ..linalg.sparse_scores import KEPT, Cells
from ..predictions import Array, Matrix, ScoreTable
from .columns import find_roles

_BLOCK_CELLS = 2**22  # cells that a writer holds at a time

Layout = Literal["wide", "long", "ranked"]
Names = Sequence[object] | Array  # of instances or labels


def iterate_blocks(table: ScoreTable, layout: Layout) -> Iterator[pl.DataFrame]:
    """Iterate over the rows of a table as frames to be written one after the other.

    Parameters
    ----------
    table : ScoreTable
        The scores of one model.
    layout : {"wide", "long", "ranked"}
        Arrangement of rows and columns.

    Yields
    ------
    DataFrame
        Missing scores are null.

    Examples
    --------
    >>> table = ScoreTable("a", np.array([[0.5, np.nan]]), ["1"], ["x", "y"])
    >>> [block.rows() for block in iterate_blocks(table, "wide")]
    [[('1', 0.5, None)]]
    >>> [block.rows() for block in iterate_blocks(table, "long")]
    [[('1', 'x', 0.5), ('1', 'y', None)]]
    """
    n_rows, n_labels = table.scores.shape
    instance_names, label_names = get_names(table)
    instances = _make_text(instance_names)
    labels = _make_text(label_names)

    matrix = table.scores
    is_selection = isinstance(matrix, Cells)
    if layout == "long" and sparse.issparse(matrix) and not is_selection:
        matrix = store_explicit_zeros(matrix)

    cells_per_row = n_labels
    if is_selection and layout != "wide":
        cells_per_row = KEPT

    size = max(1, _BLOCK_CELLS // cells_per_row)
    for start in range(0, n_rows, size):
        stop = start + size
        yield make_block(matrix[start:stop], instances[start:stop], labels, layout)


def _make_text(names: Names) -> pl.Series:
    """Return names as a Polars series of text."""
    return pl.Series(list(map(str, names)), dtype=pl.String)


def make_block(
    scores: Matrix, instances: pl.Series, labels: pl.Series, layout: Layout
) -> pl.DataFrame:
    """Return rows of a table as a frame.

    Parameters
    ----------
    scores : ndarray or sparse array of shape (n, l)
        The scores; NaN is missing.
    instances : Series of str, length n
        Names of the instances.
    labels : Series of str, length l
        Names of the labels.
    layout : {"wide", "long", "ranked"}
        Arrangement of rows and columns.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> scores = np.array([[0.5]])
    >>> make_block(scores, pl.Series(["7"]), pl.Series(["x"]), "long").rows()
    [('7', 'x', 0.5)]
    """
    if layout == "wide":
        return _make_wide_block(scores, instances, labels)
    if layout == "long":
        return _make_long_block(scores, instances, labels)
    return _make_ranked_block(scores, instances, labels)


def store_explicit_zeros(matrix: Matrix) -> Matrix:
    """Store zeros in a CSR matrix, so that its entries name all rows and columns.

    The entire first row is stored, and the first cell of each empty row. A list of the
    entries then has all instances and labels in their order.

    Parameters
    ----------
    matrix : csr_array of shape (n, l)
        The scores.

    Returns
    -------
    csr_array of shape (n, l)

    Examples
    --------
    >>> store_explicit_zeros(sparse.csr_array([[0.0, 0.5], [0.0, 0.0]])).nnz
    3
    """
    cells = matrix.tocoo()
    all_columns = np.arange(matrix.shape[1])
    empty_rows = np.flatnonzero(np.diff(matrix.indptr) == 0)
    n_zeros = len(all_columns) + len(empty_rows)

    row = np.concatenate([cells.row, np.zeros_like(all_columns), empty_rows])
    column = np.concatenate([cells.col, all_columns, np.zeros_like(empty_rows)])
    values = np.concatenate([cells.data, np.zeros(n_zeros, dtype=cells.data.dtype)])

    # The constructor adds up values of the same cell.
    return sparse.csr_array((values, (row, column)), shape=matrix.shape)


def get_names(table: ScoreTable) -> tuple[Names, Names]:
    """Return the names of instances and labels, or default names as in `Predictions`.

    Parameters
    ----------
    table : ScoreTable
        The scores of one model.

    Returns
    -------
    instances, labels : sequences of length n and l

    Examples
    --------
    >>> get_names(ScoreTable("a", np.zeros((2, 1))))
    (range(0, 2), ['label_0'])
    """
    n_instances, n_labels = table.scores.shape
    instances = table.instances
    if instances is None:
        instances = range(n_instances)

    labels = table.labels
    if labels is None:
        labels = [f"label_{position}" for position in range(n_labels)]

    return instances, labels


def _make_wide_block(
    scores: Matrix, instances: pl.Series, labels: pl.Series
) -> pl.DataFrame:
    """Return a frame with a row for each instance and a column for each label."""
    cells = np.asfortranarray(dense(scores))
    columns = [instances.alias(_choose_id_column(labels))]
    for position, label in enumerate(labels):
        columns.append(_make_nullable(cells[:, position]).alias(label))

    return pl.DataFrame(columns)


def _choose_id_column(labels: pl.Series) -> str:
    """Return a name for the column of instances that no label has.

    The header must not look like that of a long table.
    """
    label_set = set(labels)
    name = "instance"
    alternatives = chain(["id"], map("id_{}".format, count()))
    while name in label_set or find_roles([name, *labels]):
        name = next(alternatives)

    return name


def _make_long_block(
    scores: Matrix, instances: pl.Series, labels: pl.Series
) -> pl.DataFrame:
    """Return a frame with a row for each cell, or each stored cell if sparse."""
    if sparse.issparse(scores):
        cells = scores.tocoo()
        row = cells.row
        column = cells.col
        values = cells.data
    else:
        row, column = np.indices(scores.shape).reshape(2, -1)
        values = scores.ravel()

    return pl.DataFrame(
        {
            "instance": instances.gather(row),
            "label": labels.gather(column),
            "score": _make_nullable(values),
        }
    )


def _make_ranked_block(
    scores: Matrix, instances: pl.Series, labels: pl.Series
) -> pl.DataFrame:
    """Return a long frame with the labels of each instance from best to worst."""
    if not isinstance(scores, Cells):
        scores = dense(scores)

    cells = _make_long_block(scores, instances, labels).drop_nulls("score")
    cells = cells.with_columns(group=pl.col("instance").rle_id())
    ranked = cells.sort("group", "score", descending=[False, True], maintain_order=True)
    rank = pl.int_range(1, pl.len() + 1).over("group").alias("rank")
    return ranked.select("instance", rank, "label", "score")


def _make_nullable(values: Array) -> pl.Series:
    """Return scores as a Polars series with null for NaN."""
    if values.dtype.kind == "b":
        return pl.Series(values.astype(np.bool_))
    if values.dtype.kind in "iu":
        return pl.Series(values.astype(np.uint8))

    # Text must not round a float32.
    numbers = values.astype(np.float64, copy=False)
    has_nan = len(numbers) > 0 and bool(np.isnan(numbers.min()))
    return pl.Series(numbers, nan_to_null=has_nan)
