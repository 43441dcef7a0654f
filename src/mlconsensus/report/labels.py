"""Summary of the labels: their correlations in the consensus, and disputes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy import sparse
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from ..linalg.block_sums import ratio
from ..predictions import BoolArray, FloatArray, IntArray

Row = TypeVar("Row")

MOST_LABELS = 40  # in the heat map; more would not be readable
_MOST_PAIRS = 10  # at either end
_LEAST_TOGETHER = 3  # instances that have both, or would by chance; fewer prove nothing


@dataclass(frozen=True, kw_only=True)
class LabelRow:
    """One label, by consensus and by voting."""

    name: str
    consensus: int  # instances to which the consensus gives it
    added: int  # of them those to which voting does not
    dropped: int  # instances to which voting gives it and the consensus does not
    # mean squared difference of two models' scores: how often they differ, if they
    # decide
    dispute: float


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two labels that go together, or do not."""

    one: str
    other: str
    together: int  # instances that have both
    # instances that would have both if they had nothing to do with each other
    expected: float
    correlation: float


@dataclass(frozen=True, kw_only=True)
class LabelsSummary:
    """How labels go together in the label sets of the consensus."""

    rows: tuple[LabelRow, ...]
    order: tuple[str, ...]  # rows and columns of the heat map, similar ones together
    correlation: FloatArray
    # Those with the highest correlation; of many, also those with the lowest
    pairs: tuple[Pair, ...]
    n_pairs: int  # number of pairs that are frequent enough


def summarize_labels(
    names: tuple[str, ...],
    chosen: BoolArray,
    added: IntArray,
    dropped: IntArray,
    dispute: FloatArray,
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
    >>> summarize_labels(("a", "b", "c"), chosen, zero, zero, np.zeros(3)).pairs[0]
    Pair(one='a', other='b', together=3, expected=2.25, correlation=1.0)
    """
    n = len(chosen)
    sets = sparse.csr_array(chosen, dtype=np.float64)  # few labels each
    together = (sets.T @ sets).toarray()
    count = together.diagonal()
    expected = np.outer(count, count) / n

    # Correlation of columns of 0 and 1; 0 where one is constant
    deviation = np.sqrt(count * (n - count))  # of a column, times n
    scale = np.outer(deviation, deviation)
    covariance = n * together - np.outer(count, count)
    correlation = np.minimum(ratio(covariance, scale, 0.0), 1.0)
    np.fill_diagonal(correlation, 1.0)

    # Labels of the heat map
    is_frequent = np.maximum(together, expected) >= _LEAST_TOGETHER
    selected = np.flatnonzero(count > 0)
    if len(selected) > MOST_LABELS:
        similarity = np.where(is_frequent, correlation, 0)[np.ix_(selected, selected)]
        selected = selected[strongest(similarity, MOST_LABELS)]
    selected = selected[ordered(correlation[np.ix_(selected, selected)])]

    # Pairs, without labels that all instances have
    candidates = np.argwhere(np.triu(is_frequent & (scale != 0), k=1))
    similarity = correlation[candidates[:, 0], candidates[:, 1]]
    closest = candidates[np.argsort(-similarity, kind="stable")].tolist()
    pairs = []
    for i, j in ends(closest, 2 * _MOST_PAIRS):
        pair = Pair(
            one=names[i],
            other=names[j],
            together=int(together[i, j]),
            expected=float(expected[i, j]),
            correlation=float(correlation[i, j]),
        )
        pairs.append(pair)

    rows = []
    for j, name in enumerate(names):
        row = LabelRow(
            name=name,
            consensus=int(count[j]),
            added=int(added[j]),
            dropped=int(dropped[j]),
            dispute=float(dispute[j]),
        )
        rows.append(row)

    return LabelsSummary(
        rows=tuple(rows),
        order=tuple(names[j] for j in selected),
        correlation=correlation[np.ix_(selected, selected)],
        pairs=tuple(pairs),
        n_pairs=len(closest),
    )


def ends(rows: Sequence[Row], most: int) -> list[Row]:
    """Return at most so many rows, half from the beginning and half from the end.

    Examples
    --------
    >>> ends("abcdef", 4), ends("abc", 4)
    (['a', 'b', 'e', 'f'], ['a', 'b', 'c'])
    """
    if len(rows) <= most:
        return [*rows]
    return [*rows[: most // 2], *rows[-(most // 2) :]]


def ordered(similarity: FloatArray) -> IntArray:
    """Order things so that similar ones are neighbours: the leaves of a tree that joins the most similar first.

    Examples
    --------
    >>> ordered(np.array([[1, 0, 0.9], [0, 1, 0], [0.9, 0, 1]])).tolist()
    [1, 2, 0]
    """
    if len(similarity) < 3:
        return np.arange(len(similarity))

    apart = np.maximum(1 - (similarity + similarity.T) / 2, 0)
    np.fill_diagonal(apart, 0)
    tree = linkage(
        squareform(apart, checks=False), method="average", optimal_ordering=True
    )
    return np.asarray(leaves_list(tree), dtype=np.intp)


def strongest(similarity: FloatArray, most: int) -> IntArray:
    """Choose the `most` things that have the strongest tie, for better or worse, with any other.

    Examples
    --------
    >>> strongest(np.array([[1, 0.1, -0.9], [0.1, 1, 0], [-0.9, 0, 1]]), 2).tolist()
    [0, 2]
    """
    ties = np.abs(similarity - np.diag(np.diag(similarity))).max(axis=1)
    return np.sort(np.argsort(-ties, kind="stable")[:most])
