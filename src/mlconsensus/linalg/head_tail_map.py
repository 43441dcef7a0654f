r"""Linear maps to labels in large label spaces, divided into a head and a tail.

The head has the most frequent labels. What a map adds to them is a dense array. The
tail has all other labels. What a map adds to them is a sparse matrix, in which small
entries are missing.

A row is multiplied by the map only where the result can matter: at labels of the row,
and at labels that can be among the best ones of the row.

=======================  ==================  =======================================
symbol                   variable            meaning
=======================  ==================  =======================================
:math:`c`                ``n_labels``        labels with a place in the map
:math:`h`                ``n_head``          the first of them, the head
:math:`r`                                    inputs of the map
=======================  ==================  =======================================
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ..execution.threads import check_interrupted
from ..predictions import MAX_DENSE_LABELS, Array, BoolArray, FloatArray, IntArray
from .matrix_types import CSRArray, Entries, RowSlice
from .sparse_scores import KEPT, in_pieces

# Up to this number of labels, all are in the head, and the map is exact.
MAX_EXACT_LABELS = MAX_DENSE_LABELS
# Size of the head if there are more. With 2,048, the best labels hardly changed
# (docs/decisions/large-label-spaces.md).
HEAD_SIZE = 1024
# Size of the table that marks the pairs of a row and a label.
_TABLE_SIZE = 2**20


def choose_head_size(n_labels: int) -> int:
    """Return how many of the labels that occur are in the head.

    Examples
    --------
    >>> choose_head_size(2000), choose_head_size(100_000)
    (2000, 1024)
    """
    if n_labels <= MAX_EXACT_LABELS:
        return n_labels
    return HEAD_SIZE


def order_by_frequency(counts: Array) -> tuple[IntArray, int]:
    """Return the labels from the most to the least frequent, and the head's size.

    Labels that do not occur are left out.

    Parameters
    ----------
    counts : ndarray of shape (l,)
        How often each label occurs.

    Returns
    -------
    order : ndarray of shape (c,)
        Positions of the labels.
    n_head : int
        How many of them are in the head.

    Examples
    --------
    >>> order_by_frequency(np.array([0, 1, 5]))
    (array([2, 1]), 2)
    """
    n_labels = max(1, int(np.count_nonzero(counts)))
    order = np.argsort(-counts, kind="stable")[:n_labels]
    return order, choose_head_size(n_labels)


@dataclass(frozen=True, kw_only=True)
class HeadTailMap:
    """A linear map to labels; the first labels are the head."""

    labels: IntArray  # (c,) positions of the labels
    columns: Array  # (r, h) what each input adds to the labels of the head
    tail: CSRArray  # (r, c) what each input adds to the labels of the tail
    # Whether inputs are the labels, in the same order. What the head adds to the tail
    # is then not in `tail`: it is the transpose of what the tail adds to the head.
    is_symmetric: bool = True
    bound: float = np.inf  # largest error of an entry, before it is scaled
    input_scale: FloatArray | None = None  # (c,) factors of the inputs
    output_scale: FloatArray | None = None  # (c,) factors of the results

    @property
    def n_head(self) -> int:
        """Number of labels in the head."""
        return int(self.columns.shape[1])

    def compute_column(self, label: int, n_labels: int) -> FloatArray:
        """Return what each label adds to one label.

        Parameters
        ----------
        label : int
            Position of the label.
        n_labels : int
            Number of all labels.

        Returns
        -------
        ndarray of shape (n_labels,)
        """
        out = np.zeros(n_labels)
        for position in np.flatnonzero(self.labels == label):
            if position < self.n_head:
                column = self.columns[:, position]
            else:
                column = self.tail[:, [position]].toarray()[:, 0]
                column[: self.n_head] = self.columns[position]

            column = _scale(column, self.input_scale, slice(None))
            out[self.labels] = _scale(column, self.output_scale, position)
        return out

    def multiply_row(self, row: FloatArray) -> FloatArray:
        """Multiply one row (l,) by the map, without leaving out any label."""
        values = _scale(row[self.labels], self.input_scale, slice(None))
        values = values.astype(self.columns.dtype)

        product = self.tail.T @ values
        product[: self.n_head] = values @ self.columns
        product[self.n_head :] += self.columns[self.n_head :] @ values[: self.n_head]

        out = np.zeros_like(row)
        out[self.labels] = _scale(product, self.output_scale, slice(None))
        return out

    def multiply_rows(
        self,
        rows: CSRArray,
        default: FloatArray,
        finish: Callable[[CSRArray, RowSlice], CSRArray],
    ) -> CSRArray:
        """Multiply rows by the map, in pieces.

        The result has the labels of each row, and labels that can be among its best
        ones if `default` is added.

        Parameters
        ----------
        rows : csr_array of shape (n, r)
            Values of the inputs.
        default : ndarray of shape (l,)
            What is added to the result later.
        finish : callable
            Called with each piece of the result and its slice of the rows. It returns
            what is stored of the piece.

        Returns
        -------
        csr_array of shape (n, l)
        """
        # SciPy would convert the map for each piece if data types were different.
        dtype = self.columns.dtype
        values = _scale(rows.data, self.input_scale, rows.indices).astype(dtype)
        rows = _replace_values(rows, values)
        tail = _replace_values(self.tail, self.tail.data.astype(dtype))

        # The cost of a row: its products with the tail, and its scores of the head.
        n_products = np.diff(tail.indptr)[rows.indices]
        starts = np.append(0, np.cumsum(n_products))[rows.indptr]
        results = []
        for piece in in_pieces(np.diff(starts) + self.n_head):
            product = self._multiply_piece(rows[piece], tail, default)
            results.append(finish(check_interrupted(product), piece))
        return sparse.vstack(results, format="csr")

    def _multiply_piece(
        self, rows: CSRArray, tail: CSRArray, default: FloatArray
    ) -> CSRArray:
        """Return the product of some rows (k, r) with the map, CSR (k, l)."""
        n_rows = rows.shape[0]
        n_head = self.n_head
        label_default = default[self.labels].astype(self.columns.dtype)

        # Labels of the head: all scores, and which of them can be among the best.
        head_scores = rows @ self.columns
        if self.output_scale is not None:
            head_scores *= self.output_scale[:n_head]
        ranks = head_scores + label_default[:n_head]
        smallest = _bound_best_ranks(ranks)
        np.maximum(ranks, label_default[:n_head], out=ranks)
        is_stored = (ranks >= smallest[:, np.newaxis]) & (head_scores != 0)

        # Labels of the tail that other labels add to.
        tail_scores = rows @ tail
        if self.output_scale is not None:
            tail_scores.data *= self.output_scale[tail_scores.indices]
        tail_row = _get_rows(tail_scores)
        tail_rank = np.maximum(tail_scores.data, 0) + label_default[tail_scores.indices]
        is_kept = tail_rank >= smallest[tail_row]

        # Labels of the row always have a score.
        entries: list[Entries] = []
        if self.is_symmetric:
            row = _get_rows(rows)
            is_head = rows.indices < n_head
            is_stored[row[is_head], rows.indices[is_head]] = True

            row = row[~is_head]
            label = rows.indices[~is_head]
            is_kept |= _find_common_pairs(row, label, tail_row, tail_scores.indices)
            from_head = self._add_from_head(rows[:, :n_head], row, label)
            entries.append((_scale(from_head, self.output_scale, label), row, label))

        entries.append(
            (tail_scores.data[is_kept], tail_row[is_kept], tail_scores.indices[is_kept])
        )
        head_row, head_label = np.divmod(np.flatnonzero(is_stored), n_head)
        entries.append((head_scores[head_row, head_label], head_row, head_label))

        values, row, label = map(np.concatenate, zip(*entries, strict=True))
        return sparse.csr_array(
            (values, (row, self.labels[label])), shape=(n_rows, len(default))
        )

    def _add_from_head(
        self, head_values: CSRArray, rows: Array, labels: Array
    ) -> FloatArray:
        """Return what labels of the head add to labels of the tail, for some pairs.

        `head_values` (k, h) has the rows' values of the head; `rows` and `labels` are
        the pairs.
        """
        total = np.zeros(len(rows), dtype=head_values.dtype)
        for piece in in_pieces(np.diff(head_values.indptr)[rows]):
            terms = head_values[rows[piece]]
            label = np.repeat(labels[piece], np.diff(terms.indptr))
            terms.data *= self.columns[label, terms.indices]
            total[piece] = terms.sum(axis=1)
        return total


def _scale(
    values: Array, factors: FloatArray | None, positions: Array | RowSlice | np.intp
) -> Array:
    """Multiply values by the factors at some positions, if there are factors."""
    if factors is None:
        return values
    return np.asarray(values * factors[positions])


def _replace_values(matrix: CSRArray, values: Array) -> CSRArray:
    """Return a CSR matrix with other values at the same places."""
    return sparse.csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape)


def _get_rows(matrix: CSRArray) -> IntArray:
    """Return the row of each entry of a CSR matrix."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def _bound_best_ranks(ranks: Array) -> Array:
    """Return a rank for each row that none of its best labels is below, (k,)."""
    n_rows, n_head = ranks.shape

    # The best of every four labels are enough for the bound, and fewer to sort.
    group_size = 1
    if n_head > 8 * KEPT:
        group_size = 4
    n_used = n_head // group_size * group_size
    groups = ranks[:, :n_used].reshape(n_rows, group_size, -1)
    best_of_group = groups.max(axis=1)

    position = max(0, best_of_group.shape[1] - KEPT)
    return np.asarray(np.partition(best_of_group, position, axis=1)[:, position])


def _find_common_pairs(
    rows: Array, labels: Array, other_rows: Array, other_labels: Array
) -> BoolArray:
    """Return which of the other pairs of a row and a label are among the first ones.

    A few others may be marked, too: pairs share the places of a small table.
    """
    is_marked = np.zeros(_TABLE_SIZE, dtype=np.bool_)
    is_marked[_hash_pairs(rows, labels)] = True
    return is_marked[_hash_pairs(other_rows, other_labels)]


def _hash_pairs(rows: Array, labels: Array) -> Array:
    """Return the place of each pair in a table."""
    return (rows * 1009 + labels) & (_TABLE_SIZE - 1)
