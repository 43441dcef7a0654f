"""The labels of a panel: how they go together according to the consensus, and which are disputed."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from ..linalg.block_sums import ratio
from ..predictions import BoolArray, FloatArray, IntArray

MOST_LABELS = 40  # in the heat map; more would not be readable
_MOST_PAIRS = 10  # at either end
_LEAST_TOGETHER = 3  # instances that have both, or would by chance; fewer prove nothing


class LabelRow(NamedTuple):
    """One label, by consensus and by voting."""

    name: str
    consensus: int  # instances to which the consensus gives it
    added: int  # of them those to which voting does not
    dropped: int  # instances to which voting gives it and the consensus does not
    # mean squared difference of two models' scores: how often they differ, if they
    # decide
    dispute: float


class Pair(NamedTuple):
    """Two labels that go together, or do not."""

    one: str
    other: str
    together: int  # instances that have both
    # instances that would have both if they had nothing to do with each other
    expected: float
    correlation: float


class LabelsSummary(NamedTuple):
    """How labels go together in the label sets of the consensus."""

    rows: tuple[LabelRow, ...]
    order: tuple[str, ...]  # rows and columns of the heat map, like beside like
    correlation: FloatArray
    pairs: tuple[
        Pair, ...
    ]  # those that go together most, closest first, and of many those that do least
    n_pairs: int  # that are frequent enough to tell; the others are between these


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
    size = np.sqrt(
        count * (n - count)
    )  # of a label's column once it is centred, times √n
    # Correlation of columns of 0 and 1; 0 where one is constant.
    correlation = np.minimum(
        ratio(n * together - np.outer(count, count), np.outer(size, size), 0.0), 1.0
    )
    np.fill_diagonal(correlation, 1.0)
    expected = np.outer(count, count) / n
    enough = np.maximum(together, expected) >= _LEAST_TOGETHER
    kept = np.flatnonzero(count > 0)
    if len(kept) > MOST_LABELS:
        kept = kept[
            strongest(np.where(enough, correlation, 0)[np.ix_(kept, kept)], MOST_LABELS)
        ]

    kept = kept[ordered(correlation[np.ix_(kept, kept)])]
    # A label that all instances have goes with none more than with another.
    at = np.argwhere(np.triu(enough & np.outer(size, size).astype(bool), k=1))
    closest = at[np.argsort(-correlation[at[:, 0], at[:, 1]], kind="stable")].tolist()
    pairs = (
        Pair(
            names[i],
            names[j],
            int(together[i, j]),
            float(expected[i, j]),
            float(correlation[i, j]),
        )
        for i, j in ends(closest, 2 * _MOST_PAIRS)
    )
    columns = (count.astype(np.int64), added, dropped, dispute)
    rows = map(LabelRow, names, *(column.tolist() for column in columns))
    order = tuple(names[j] for j in kept)
    return LabelsSummary(
        tuple(rows), order, correlation[np.ix_(kept, kept)], tuple(pairs), len(closest)
    )


def ends(rows: Sequence[Any], most: int) -> list[Any]:
    """Keep at most so many rows, half from the beginning and half from the end.

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
