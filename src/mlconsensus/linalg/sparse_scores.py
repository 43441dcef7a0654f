"""Scores for large label spaces, stored only where they differ from a default.

Each label has a default: the score of an instance for which no model named the label.
It is the same for all instances. Only the scores of other instance-label pairs are
stored, so no array of instances × labels is made, nor one of labels × labels.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy import sparse

from ..errors import InputError
from ..execution.threads import get_limits
from ..predictions import Array, BoolArray, FloatArray, IntArray
from ..predictions.blocks import NamedValues, PairValues
from .block_sums import dense
from .matrix_types import CSRArray, RowSlice

# Number of best labels of an instance that keep scores of their own.
KEPT = 100
# Number of values that are computed at a time.
_AT_ONCE = 2**22

# Which instances to select: a slice, positions, or one mask entry per instance.
RowIndex = RowSlice | IntArray | BoolArray

# Instances and labels of some pairs.
PairIndex = tuple[IntArray | int, IntArray | int]


class Cells(sparse.csr_array):  # type: ignore[misc]
    """Cells of a table (n, l); those that are not stored are written as empty."""


class SparseScores:
    """Scores (n, l): the default of each label, and differences where stored.

    At least the 100 best labels of each instance are stored, as far as they have a
    score of their own.

    Parameters
    ----------
    above : csr_array of shape (n, l)
        Score minus default.
    default : ndarray of shape (l,)
        Score of each label where nothing is stored.

    Examples
    --------
    >>> above = sparse.csr_array([[0.0, 0.5, 0.0]])
    >>> scores = SparseScores(above, np.array([0.1, 0.2, 0.3]))
    >>> scores.top(2)
    (array([[1, 2]]), array([[0.7, 0.3]]))
    >>> scores[np.array([0, 0]), np.array([1, 0])]
    array([0.7, 0.1])
    """

    def __init__(self, above: CSRArray, default: FloatArray) -> None:
        self.above = above
        self.default = default
        self.shape: tuple[int, int] = above.shape

    @property
    def stored(self) -> CSRArray:
        """The scores of the stored pairs, as CSR (n, l)."""
        data = self.above.data + self.default[self.above.indices]
        return sparse.csr_array(
            (data, self.above.indices, self.above.indptr), shape=self.shape
        )

    def astype(self, dtype: DTypeLike, copy: bool = True) -> "SparseScores":
        """Return the scores in another data type, as an array does.

        Examples
        --------
        >>> scores = SparseScores(sparse.csr_array([[0.0, 0.5]]), np.array([0.1, 0.2]))
        >>> scores.astype(np.float32).toarray().dtype
        dtype('float32')
        """
        above = self.above.astype(dtype, copy=copy)
        return SparseScores(above, self.default.astype(dtype, copy=copy))

    @classmethod
    def concatenate(cls, parts: Sequence["SparseScores"]) -> "SparseScores":
        """Return the scores of several blocks of instances as one."""
        above = sparse.vstack([part.above for part in parts], format="csr")
        return cls(above, parts[0].default)

    def at_least(self, threshold: float) -> CSRArray:
        """Return which scores reach a threshold, as CSR (n, l) of bool."""
        if (self.default >= threshold).any():
            raise InputError(
                where="threshold",
                found=f"{threshold:g}, which labels reach that no model named",
                expected="a higher threshold, because of the large label space",
            )

        reached = self.stored >= threshold
        reached.eliminate_zeros()
        return reached

    def __len__(self) -> int:
        return self.shape[0]

    @overload
    def __getitem__(self, selected: RowIndex) -> "SparseScores": ...

    @overload
    def __getitem__(self, selected: PairIndex) -> FloatArray: ...

    def __getitem__(
        self, selected: RowIndex | PairIndex
    ) -> "SparseScores | FloatArray":
        if isinstance(selected, tuple):
            _, labels = selected
            return np.asarray(dense(self.above[selected]) + self.default[labels])
        return SparseScores(self.above[selected], self.default)

    def cells(self, counts: ArrayLike | None = None) -> Cells:
        """Return the scores of the best labels of each instance.

        Parameters
        ----------
        counts : array-like of shape (n,), default=None
            Number of labels per instance. By default all stored scores are returned.

        Returns
        -------
        Cells of shape (n, l)

        Examples
        --------
        >>> above = sparse.csr_array([[0.0, 0.5], [0.0, 0.1]])
        >>> scores = SparseScores(above, np.array([0.1, 0.2]))
        >>> scores.cells(np.array([2, 1])).toarray()
        array([[0.1, 0.7],
               [0. , 0.3]])
        """
        if counts is None:
            return Cells(self.stored)

        # The first `counts[i]` of the best labels of row i
        label_counts = np.asarray(counts)
        labels, scores = self.top(max(1, int(label_counts.max())))
        is_selected = np.arange(labels.shape[1]) < label_counts[:, None]
        starts = np.append(0, np.cumsum(is_selected.sum(axis=1)))

        content = (scores[is_selected], labels[is_selected], starts)
        cells = Cells(content, shape=self.shape)
        cells.sort_indices()
        return cells

    def __array__(
        self, dtype: DTypeLike | None = None, copy: bool | None = None
    ) -> Array:
        return np.asarray(self.toarray(), dtype)

    def toarray(self) -> FloatArray:
        """Return all scores as an array (n, l), if that fits into memory."""
        n, l = self.shape
        n_bytes = 8 * n * l
        if n_bytes > get_limits().memory / 2:
            raise InputError(
                where="scores",
                found=f"{n:,} × {l:,}",
                expected="fewer for one array; top(k) gives the best",
            )

        return np.asarray(self.above.toarray() + self.default)

    def top(self, k: int) -> tuple[IntArray, FloatArray]:
        """Return the best labels of each instance; the first of equal ones.

        Parameters
        ----------
        k : int
            Number of labels per instance.

        Returns
        -------
        labels : ndarray of shape (n, k)
            Positions of the labels, the best one first.
        scores : ndarray of shape (n, k)
            Their scores.
        """
        n, l = self.shape
        k = min(k, l)
        size = max(1, _AT_ONCE // k)
        labels = []
        scores = []
        for start in range(0, n, size):
            part_labels, part_scores = self[start : start + size]._find_top(k)
            labels.append(part_labels)
            scores.append(part_scores)

        return np.concatenate(labels), np.concatenate(scores)

    def _find_top(self, k: int) -> tuple[IntArray, FloatArray]:
        """Return the k best labels of each instance and their scores, (n, k)."""
        labels, scores = self._find_top_stored(k)

        # A label that is not stored can be better where its default is high enough
        rows = np.flatnonzero(scores[:, -1] <= self.default.max())
        if len(rows) == 0:
            return labels, scores

        # Merge stored labels and others by falling score, then by position
        other_labels, other_scores = self[rows]._find_top_others(k)
        merged_labels = np.hstack([labels[rows], other_labels])
        merged_scores = np.hstack([scores[rows], other_scores])
        order = np.lexsort((merged_labels, -merged_scores), axis=1)[:, :k]
        labels[rows] = np.take_along_axis(merged_labels, order, axis=1)
        scores[rows] = np.take_along_axis(merged_scores, order, axis=1)
        return labels, scores

    def _find_top_stored(self, k: int) -> tuple[IntArray, FloatArray]:
        """Return the k best stored labels of each instance; -inf if there are fewer."""
        n = len(self)
        stored = self.stored
        entries = _find_best_entries(stored.indptr, stored.data, k)
        rows = np.repeat(np.arange(n), np.diff(stored.indptr))[entries]
        columns = np.arange(len(entries)) - _compute_starts(rows, n)[rows]

        labels = np.zeros((n, k), dtype=np.intp)
        scores = np.full((n, k), -np.inf)
        labels[rows, columns] = stored.indices[entries]
        scores[rows, columns] = stored.data[entries]

        # A stable sort leaves labels of equal score in their order
        order = np.argsort(-scores, axis=1, kind="stable")
        labels = np.take_along_axis(labels, order, axis=1)
        scores = np.take_along_axis(scores, order, axis=1)
        return labels, scores

    def _find_top_others(self, k: int) -> tuple[IntArray, FloatArray]:
        """Return the k labels of highest default that are not stored, (n, k).

        The score is -inf where there are fewer. All labels are ranked by their
        default. The q-th best label that is not stored has rank q plus the number of
        stored labels that rank higher.
        """
        n, l = self.shape
        by_default = np.argsort(-self.default, kind="stable")
        rank_of_label = np.empty(l, dtype=np.intp)
        rank_of_label[by_default] = np.arange(l)

        # Drop stored labels with a rank below that of all labels to return
        n_stored = np.diff(self.above.indptr)
        rows = np.repeat(np.arange(n), n_stored)
        ranks = rank_of_label[self.above.indices]
        is_high = ranks < k + n_stored[rows]
        ranks = ranks[is_high]
        rows = rows[is_high]

        # Number of labels that are not stored and rank above each stored one
        ranks = ranks[np.lexsort((ranks, rows))]
        n_stored_above = np.arange(len(ranks)) - _compute_starts(rows, n)[rows]
        n_others_above = ranks - n_stored_above

        # Number of stored labels above the q-th label that is not stored
        is_above = n_others_above < k
        flat = rows[is_above] * k + n_others_above[is_above]
        counts = np.bincount(flat, minlength=n * k).reshape(n, k)
        other_ranks = np.arange(k) + counts.cumsum(axis=1)

        labels = by_default[np.minimum(other_ranks, l - 1)]
        scores = np.where(other_ranks < l, self.default[labels], -np.inf)
        return labels, scores


def to_scores(values: PairValues) -> FloatArray | SparseScores:
    """Return pair values as the scores of a combiner.

    Parameters
    ----------
    values : PairValues
        One value per instance-label pair.

    Returns
    -------
    ndarray of shape (n, l), or SparseScores for large label spaces
    """
    if isinstance(values, NamedValues) and values.pairs.is_large:
        # Pairs that no model named have the score of instances that all models saw
        default = np.asarray(values.other[0], dtype=np.float64)
        difference = values.values - default[values.pairs.label]
        return SparseScores(values.pairs.to_csr(difference), default)
    return dense(values.to_matrix())


def in_pieces(cost: Array) -> list[RowSlice]:
    """Cut rows into consecutive pieces of about equal cost.

    Parameters
    ----------
    cost : ndarray of shape (n,)
        Cost of each row, in values that are computed at a time.

    Returns
    -------
    list of slice

    Examples
    --------
    >>> in_pieces(np.array([2**24, 1, 1]))
    [slice(0, 1, None), slice(1, 3, None)]
    """
    total = np.cumsum(cost, dtype=np.float64)
    limits = np.arange(_AT_ONCE, total.max(initial=1), _AT_ONCE)
    cuts = np.searchsorted(total, limits) + 1
    ends = np.unique(np.concatenate([[0], cuts, [len(cost)]])).tolist()
    return [slice(start, stop) for start, stop in pairwise(ends)]


def kth_best(starts: IntArray, scores: FloatArray, k: int) -> FloatArray:
    """Find the k-th best score of each row; -inf if a row has at most k scores.

    Parameters
    ----------
    starts : ndarray of shape (n + 1,)
        Where each row begins in `scores`.
    scores : ndarray of shape (s,)
        The scores of all rows, one row after the other.
    k : int
        The rank.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> kth_best(np.array([0, 1, 201]), np.arange(201.0), 100).tolist()
    [-inf, 101.0]
    """
    sizes = np.diff(starts)
    limits = np.full(len(sizes), -np.inf)

    # Rows of about the same size at a time, as a table that is padded with -inf
    magnitudes = np.where(sizes > k, np.frexp(sizes)[1], 0)
    for magnitude in np.unique(magnitudes[magnitudes > 0]):
        long_rows = np.flatnonzero(magnitudes == magnitude)
        columns = np.arange(sizes[long_rows].max())
        position = len(columns) - k
        for piece in in_pieces(np.full(len(long_rows), len(columns))):
            rows = long_rows[piece]
            entries = starts[rows][:, None] + columns
            table = scores[np.minimum(entries, len(scores) - 1)]
            table[columns >= sizes[rows][:, None]] = -np.inf
            limits[rows] = np.partition(table, position, axis=1)[:, position]

    return limits


def _find_best_entries(starts: IntArray, scores: FloatArray, k: int) -> IntArray:
    """Return the positions in `scores` of each row's k best; the first of equal ones.

    `starts` (n + 1,) is where each row begins.
    """
    sizes = np.diff(starts)
    if sizes.max(initial=0) <= k:
        return np.arange(len(scores))

    # All scores above the k-th best, and the first of those equal to it
    rows = np.repeat(np.arange(len(sizes)), sizes)
    limits = kth_best(starts, scores, k)[rows]
    better = np.flatnonzero(scores > limits)
    tied = np.flatnonzero(scores == limits)
    tied_rows = rows[tied]
    place = np.arange(len(tied)) - _compute_starts(tied_rows, len(sizes))[tied_rows]
    n_tied_selected = k - np.bincount(rows[better], minlength=len(sizes))
    selected = tied[place < n_tied_selected[tied_rows]]
    return np.sort(np.concatenate([better, selected]))


def _compute_starts(rows: IntArray, n: int) -> IntArray:
    """Return where each of n rows begins (n + 1,), from the sorted rows of entries."""
    return np.append(0, np.cumsum(np.bincount(rows, minlength=n)))


def select_best(above: CSRArray, default: FloatArray) -> CSRArray:
    """Drop the stored scores that cannot be among the best labels of an instance.

    Parameters
    ----------
    above : csr_array of shape (n, l)
        Score minus default.
    default : ndarray of shape (l,)
        Default score of each label.

    Returns
    -------
    csr_array of shape (n, l)
        The `KEPT` best of each row remain. So do pairs whose default is among the
        best: without an entry they would have this default.
    """
    n = above.shape[0]
    sizes = np.diff(above.indptr)
    if sizes.max(initial=0) <= KEPT:
        above.sort_indices()
        return above

    rows = np.repeat(np.arange(n), sizes)
    default_scores = default[above.indices]
    scores = above.data + default_scores
    limits = kth_best(above.indptr, scores, KEPT)[rows]
    is_selected = (scores >= limits) | (default_scores >= limits)

    starts = _compute_starts(rows[is_selected], n)
    content = (above.data[is_selected], above.indices[is_selected], starts)
    selected = sparse.csr_array(content, shape=above.shape)
    selected.sort_indices()
    return selected
