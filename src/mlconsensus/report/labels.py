"""The labels of a panel: how they go together according to the consensus, and which are disputed."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..arithmetic.products import BoolArray, FloatArray, ratio
from ..panel.alignment import IntArray
from .similarity import ordered, strongest

MOST_LABELS = 40  # in the heat map; more would not be readable
_MOST_PAIRS = 20
_LEAST_TOGETHER = 3  # fewer instances in common prove nothing


class LabelRow(NamedTuple):
    """One label, by consensus and by voting."""

    name: str
    consensus: int  # instances to which the consensus gives it
    added: int  # of them those to which voting does not
    dropped: int  # instances to which voting gives it and the consensus does not
    dispute: float  # mean squared difference of two models' scores: how often they differ, if they decide


class Pair(NamedTuple):
    """Two labels that go together."""

    one: str
    other: str
    together: int  # instances that have both
    expected: float  # instances that would have both if they had nothing to do with each other
    correlation: float


class LabelsSummary(NamedTuple):
    """How labels go together in the label sets of the consensus."""

    rows: tuple[LabelRow, ...]
    order: tuple[str, ...]  # rows and columns of the heat map, like beside like
    correlation: FloatArray
    pairs: tuple[Pair, ...]  # the closest, closest first


def summarise_labels(
    names: tuple[str, ...], chosen: BoolArray, added: IntArray, dropped: IntArray, dispute: FloatArray
) -> LabelsSummary:
    """Correlate the labels of the consensus.

    Parameters
    ----------
    names
        Of the labels.
    chosen
        Label sets of the consensus (n, l).
    added, dropped
        Instances (l,) to which the consensus alone, or voting alone, gives each label.
    dispute
        How far models differ on each label (l,).

    Examples
    --------
    >>> chosen = np.array([[1, 1, 0], [1, 1, 0], [1, 1, 1], [0, 0, 1]], dtype=bool)
    >>> zero = np.zeros(3, dtype=np.int64)
    >>> summarise_labels(("a", "b", "c"), chosen, zero, zero, np.zeros(3)).pairs[0]
    Pair(one='a', other='b', together=3, expected=2.25, correlation=1.0)
    """
    n = len(chosen)
    sets = sparse.csr_array(chosen, dtype=np.float64)  # few labels each: the products stay sparse
    together = sparse.csr_array(sets.T @ sets)
    count = together.diagonal()
    size = np.sqrt(count * (n - count))  # of a label's column once it is centred, times √n
    kept = _kept(together, count, size, n)
    shown = _correlations(together[kept][:, kept].toarray(), count[kept], size[kept], n)
    order = ordered(shown)
    columns = (count.astype(np.int64), added, dropped, dispute)
    rows = tuple(map(LabelRow, names, *(column.tolist() for column in columns)))
    pairs = _pairs(together, count, size, n, names)
    return LabelsSummary(rows, tuple(names[j] for j in kept[order]), shown[np.ix_(order, order)], pairs)


def _correlations(together: FloatArray, count: FloatArray, size: FloatArray, n: int) -> FloatArray:
    """Correlate columns of 0 and 1 from how often they are 1 together; 0 where a column is constant."""
    found = ratio(n * together - np.outer(count, count), np.outer(size, size), 0.0)
    np.fill_diagonal(found, 1.0)
    return found


def _kept(together: sparse.csr_array, count: FloatArray, size: FloatArray, n: int) -> NDArray[np.intp]:
    """Choose which labels the heat map shows: all that are used, or those with the strongest ties."""
    used = np.flatnonzero(count > 0)
    if len(used) <= MOST_LABELS:
        return used
    # Of thousands of labels the most frequent are looked at: a matrix of all would not fit.
    used = np.sort(used[np.argsort(-count[used], kind="stable")[:2000]])
    both = together[used][:, used].toarray()
    correlation = _correlations(both, count[used], size[used], n)
    return used[strongest(np.where(both < _LEAST_TOGETHER, 0, correlation), MOST_LABELS)]


def _pairs(
    together: sparse.csr_array, count: FloatArray, size: FloatArray, n: int, names: tuple[str, ...]
) -> tuple[Pair, ...]:
    upper = sparse.triu(together, k=1).tocoo()
    one, other, both = upper.row, upper.col, upper.data
    # A label that all instances have goes with none more than with another.
    enough = (both >= _LEAST_TOGETHER) & (size[one] * size[other] > 0)
    one, other, both = one[enough], other[enough], both[enough]
    expected = count[one] * count[other] / n
    correlation = np.minimum(n * (both - expected) / (size[one] * size[other]), 1.0)
    best = np.lexsort((other, one, -correlation))[:_MOST_PAIRS]
    return tuple(
        Pair(names[one[at]], names[other[at]], int(both[at]), float(expected[at]), float(correlation[at]))
        for at in best
        if correlation[at] > 0
    )
