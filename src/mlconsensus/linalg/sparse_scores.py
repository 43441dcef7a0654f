"""Panels of many labels of which models name a few: what was said, and scores that are stored only where it matters.

A cell that nobody named has the score of its label that silence and noes give, its
default; it is the same for all instances. No array of instances × labels is made, nor
one of labels × labels.
"""

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from ..errors import InputError
from ..execution.threads import get_limits
from ..predictions import Array, FloatArray, Predictions
from ..predictions.blocks import NamedValues, PairValues
from .block_sums import dense, ratio

# the best labels of an instance, which have scores of their own; ranks beyond these are
# not kept
KEPT = 100
MOST_NAMED = (
    1000  # labels that an instance may have to count where products of two are added up
)
_AT_ONCE = 2**22  # products that are added up at a time


class Said(NamedTuple):
    """What a block says, model by model, and who could have spoken where.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> found = Said.by(mlc.Predictions([[[1, 0.5]], [[1, 0]]]))
    >>> found.folded(found.known).toarray(), found.seen
    (array([[2. , 0.5]]), array([[1., 1.]]))
    """

    parts: tuple[Any, ...]  # m CSR matrices (n, l), the scores
    seen: FloatArray  # (n, m) 1 where the model has the instance
    known: FloatArray  # (m, l) the model's weight where it knows the label, else 0

    @classmethod
    def by(cls, block: Predictions) -> Self:
        """Take a block apart."""
        parts, seen, known = zip(*block.apart(), strict=True)
        if block.weights is None:
            weights = np.ones(len(parts))
        else:
            weights = block.weights

        return cls(parts, np.stack(seen, axis=1), np.array(known) * weights[:, None])

    def sums(self, power: int = 1) -> FloatArray:
        """Add up each model's scores of each label, to some power (m, l)."""
        return np.array(
            [
                np.bincount(own.indices, own.data**power, own.shape[1])
                for own in self.parts
            ]
        )

    def folded(self, weights: FloatArray, rows: Any = slice(None)) -> Any:
        """Add up the models' scores with weights (m, l), at the cells that somebody named: CSR (n, l)."""
        return reduce(
            add,
            (
                by_label(own[rows], w)
                for own, w in zip(self.parts, weights, strict=True)
            ),
        )

    def spread(self, values: FloatArray, cells: Any) -> FloatArray:
        """Add up values (m, l) over the models that have seen the instance, at each stored cell of a CSR matrix."""
        if self.seen.all():
            return np.asarray(values.sum(axis=0)[cells.indices])

        rows = np.repeat(np.arange(cells.shape[0]), np.diff(cells.indptr))
        each = zip(self.seen.T, values, strict=True)
        return np.asarray(sum(seen[rows] * own[cells.indices] for seen, own in each))

    def groups(self) -> Iterator[tuple[FloatArray, Array]]:
        """Yield each set of models that has seen some instances (m,), and the positions of these."""
        kinds, which = np.unique(self.seen, axis=0, return_inverse=True)
        order = np.argsort(which.ravel(), kind="stable")
        yield from zip(
            kinds,
            np.split(order, np.cumsum(np.bincount(which.ravel()))[:-1]),
            strict=True,
        )


def by_label(A: Any, weights: FloatArray) -> Any:
    """Multiply a CSR matrix (n, l) by the labels' weights (l,)."""
    return sparse.csr_array(
        (A.data * weights[A.indices], A.indices, A.indptr), shape=A.shape
    )


class Cells(sparse.csr_array):  # type: ignore[misc]
    """Some cells of a table (n, l), to be written as they are: those that are not stored are left out."""


class SparseScores:
    """Scores (n, l): each label's default, and by how much the cells that are stored are above it.

    Of an instance, the best labels are stored, at least 100 of those that have a score
    of their own.

    Examples
    --------
    >>> scores = SparseScores(sparse.csr_array([[0.0, 0.5, 0.0]]), np.array([0.1, 0.2, 0.3]))
    >>> scores.top(2)
    (array([[1, 2]]), array([[0.7, 0.3]]))
    >>> scores[np.array([0, 0]), np.array([1, 0])]
    array([0.7, 0.1])
    """

    def __init__(self, above: Any, default: FloatArray) -> None:
        self.above = above  # CSR (n, l)
        self.default = default  # (l,)
        self.shape: tuple[int, int] = above.shape

    @property
    def stored(self) -> Any:
        """The scores of the stored cells, as CSR (n, l)."""
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
        """Put the scores of several blocks below each other."""
        above = sparse.vstack([part.above for part in parts], format="csr")
        return cls(above, parts[0].default)

    def at_least(self, threshold: float) -> Any:
        """Return which labels of each instance reach a threshold, as CSR (n, l) of bool."""
        if (self.default >= threshold).any():
            found = f"{threshold:g}, which some labels reach where no model names them"
            raise InputError(
                f"threshold: found {found}, expected a higher one, for large label spaces"
            )

        reached = self.stored >= threshold
        reached.eliminate_zeros()
        return reached

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, tuple):  # one cell, or some: their rows and their labels
            return dense(self.above[rows]) + self.default[rows[1]]
        return SparseScores(self.above[rows], self.default)

    def cells(self, counts: Any = None) -> Cells:
        """Return the scores of the best labels of each instance, as many as `counts` says (n,); else all stored ones.

        Examples
        --------
        >>> scores = SparseScores(sparse.csr_array([[0.0, 0.5], [0.0, 0.1]]), np.array([0.1, 0.2]))
        >>> scores.cells(np.array([2, 1])).toarray()
        array([[0.1, 0.7],
               [0. , 0.3]])
        """
        if counts is None:
            return Cells(self.stored)

        labels, scores = self.top(max(1, int(np.max(counts))))
        kept = np.arange(labels.shape[1]) < np.asarray(counts)[:, None]
        out = Cells(
            (scores[kept], labels[kept], np.append(0, np.cumsum(kept.sum(axis=1)))),
            shape=self.shape,
        )
        out.sort_indices()
        return out

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.toarray(), dtype)

    def toarray(self) -> FloatArray:
        """Return all scores as an array (n, l), where that fits into memory."""
        n, l = self.shape
        fits = 8 * n * l <= get_limits().memory / 2
        if not (fits):
            raise InputError(
                where="scores",
                found=f"{n:,} × {l:,}",
                expected="fewer for one array; top(k) gives the best",
            )

        return np.asarray(self.above.toarray() + self.default)

    def top(self, k: int) -> tuple[Array, FloatArray]:
        """Return the `k` best labels of each instance and their scores (n, k), best first; ties go to the first."""
        n, l = self.shape
        k = min(k, l)
        size = max(1, _AT_ONCE // k)
        parts = [self[at : at + size]._top(k) for at in range(0, n, size)]
        return np.concatenate([own[0] for own in parts]), np.concatenate(
            [own[1] for own in parts]
        )

    def _top(self, k: int) -> tuple[Array, FloatArray]:
        n = len(self)
        cells = self.stored
        at = _best_places(cells.indptr, cells.data, k)
        rows = np.repeat(np.arange(n), np.diff(cells.indptr))[at]
        place = np.arange(len(at)) - _starts(rows, n)[rows]
        labels = np.zeros((n, k), dtype=np.intp)
        scores = np.full((n, k), -np.inf)
        labels[rows, place] = cells.indices[at]
        scores[rows, place] = cells.data[at]
        order = np.argsort(-scores, axis=1, kind="stable")  # labels are in their order
        labels = np.take_along_axis(labels, order, axis=1)
        scores = np.take_along_axis(scores, order, axis=1)
        weak = np.flatnonzero(
            scores[:, -1] <= self.default.max()
        )  # where a cell that is not stored may come before
        if len(weak):
            others = self[weak]._best_others(k)
            labels_of = np.hstack([labels[weak], others[0]])
            scores_of = np.hstack([scores[weak], others[1]])
            order = np.lexsort((labels_of, -scores_of), axis=1)[:, :k]
            labels[weak] = np.take_along_axis(labels_of, order, axis=1)
            scores[weak] = np.take_along_axis(scores_of, order, axis=1)

        return labels, scores

    def _best_others(self, k: int) -> tuple[Array, FloatArray]:
        """Return the `k` labels of the highest default that are not stored, and these (n, k); -inf: there is no more.

        The q-th best of them is behind q others and the stored ones that come before
        it.
        """
        n, l = self.shape
        falling = np.argsort(-self.default, kind="stable")
        position = np.empty(l, dtype=np.intp)
        position[falling] = np.arange(l)
        sizes = np.diff(self.above.indptr)
        rows = np.repeat(np.arange(n), sizes)
        at = position[self.above.indices]
        some = np.flatnonzero(at < k + sizes[rows])  # no other is before the k-th
        at = at[some]
        rows = rows[some]
        before = at[np.lexsort((at, rows))] - (
            np.arange(len(at)) - _starts(rows, n)[rows]
        )
        some = before < k
        passed = (
            np.bincount(rows[some] * k + before[some], minlength=n * k)
            .reshape(n, k)
            .cumsum(axis=1)
        )
        at = np.arange(k) + passed
        labels = falling[np.minimum(at, l - 1)]
        return labels, np.where(at < l, self.default[labels], -np.inf)


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
        # Pairs that no model named have the score of instances that all models saw.
        default = np.asarray(values.other[0], dtype=np.float64)
        difference = values.values - default[values.pairs.label]
        return SparseScores(values.pairs.to_csr(difference), default)
    return dense(values.to_matrix())


def many_means(block: Predictions, prior: FloatArray) -> SparseScores:
    """Average over the models that spoke at the cells that somebody named; others are 0, or the prior of a label.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> many_means(mlc.Predictions([[[1, 0]], [[1, 0.5]]]), np.zeros(2)).toarray()
    array([[1.  , 0.25]])
    """
    found = Said.by(block)
    cells = found.folded(found.known)
    default = np.where(found.known.any(axis=0), 0.0, prior)
    cells.data = np.clip(ratio(cells.data, found.spread(found.known, cells), 0.0), 0, 1)
    return SparseScores(cells, default)


def in_pieces(cost: Array) -> list[slice]:
    """Cut rows into pieces of about equal cost, given that of each (n,).

    Examples
    --------
    >>> in_pieces(np.array([2**24, 1, 1]))
    [slice(0, 1, None), slice(1, 3, None)]
    """
    total = np.cumsum(cost, dtype=np.float64)
    cuts = (
        np.searchsorted(total, np.arange(_AT_ONCE, total.max(initial=1), _AT_ONCE)) + 1
    )
    ends = np.unique(np.concatenate([[0], cuts, [len(cost)]])).tolist()
    return [slice(start, stop) for start, stop in pairwise(ends)]


def kth_best(starts: Any, scores: FloatArray, k: int) -> FloatArray:
    """Find the k-th best of each row's scores, given where in them rows start (n + 1,); -inf where there are no more.

    Examples
    --------
    >>> kth_best(np.array([0, 1, 201]), np.arange(201.0), 100).tolist()
    [-inf, 101.0]
    """
    sizes = np.diff(starts)
    lowest = np.full(len(sizes), -np.inf)
    kinds = np.where(sizes > k, np.frexp(sizes)[1], 0)
    for kind in np.unique(kinds[kinds > 0]):  # rows of about the same size at a time
        long = np.flatnonzero(kinds == kind)
        places = np.arange(sizes[long].max())
        for some in in_pieces(np.full(len(long), len(places))):
            own = long[some]
            table = scores[np.minimum(starts[own][:, None] + places, len(scores) - 1)]
            table[places >= sizes[own][:, None]] = -np.inf
            lowest[own] = np.partition(table, len(places) - k, axis=1)[
                :, len(places) - k
            ]

    return lowest


def _best_places(starts: Any, scores: FloatArray, k: int) -> Array:
    """Find where the `k` best of each row's scores stand, of equal ones the first; given where rows start (n + 1,)."""
    sizes = np.diff(starts)
    if sizes.max(initial=0) <= k:
        return np.arange(len(scores))

    rows = np.repeat(np.arange(len(sizes)), sizes)
    least = kth_best(starts, scores, k)[rows]
    better = np.flatnonzero(scores > least)
    tied = np.flatnonzero(scores == least)
    nth = np.arange(len(tied)) - _starts(rows[tied], len(sizes))[rows[tied]]
    left = k - np.bincount(rows[better], minlength=len(sizes))
    return np.sort(np.concatenate([better, tied[nth < left[rows[tied]]]]))


def _starts(rows: Any, n: int) -> Any:
    """Tell where each of n rows starts, given the row of each entry in their order."""
    return np.append(0, np.cumsum(np.bincount(rows, minlength=n)))


def best(above: Any, default: FloatArray) -> Any:
    """Keep of each row of a CSR matrix what can be among the best labels: its own, or its default that it is not."""
    n = above.shape[0]
    sizes = np.diff(above.indptr)
    if sizes.max(initial=0) <= KEPT:
        above.sort_indices()
        return above

    rows = np.repeat(np.arange(n), sizes)
    scores = above.data + default[above.indices]
    lowest = kth_best(above.indptr, scores, KEPT)
    kept = (scores >= lowest[rows]) | (default[above.indices] >= lowest[rows])
    out = sparse.csr_array(
        (above.data[kept], above.indices[kept], _starts(rows[kept], n)),
        shape=above.shape,
    )
    out.sort_indices()
    return out
