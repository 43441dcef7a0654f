"""From scores to label sets: rules that say which labels of each instance to keep."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError
from ..linalg.block_sums import mean, row_sums, votes
from ..linalg.sparse_scores import SparseScores, many_means
from ..metrics._rank_counts import map_row_blocks
from ..predictions import Array, BoolArray, FloatArray, IntArray, as_predictions
from ..predictions.validation import whole

Empty = Literal["keep", "top"]


def cardinalities(predictions: Any) -> FloatArray:
    """How many labels the models gave each instance on average (n,), each cell averaged over those that spoke.

    Parameters
    ----------
    predictions
        `Predictions`, or anything that its constructor takes.

    Returns
    -------
    ndarray (n,).

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.decision.cardinalities([[[1, 1, 0]], [[1, 0, 0]]])
    array([1.5])
    """
    return np.concatenate([row_sums(block) for block in vote_shares(predictions)])


def top_k(scores: Any, k: int) -> Any:
    """Keep the `k` labels of highest score of each instance; ties go to the label that comes first.

    Parameters
    ----------
    scores
        Consensus scores (n, l).
    k
        How many labels each instance should have.

    Returns
    -------
    ndarray (n, l) of bool; CSR of `SparseScores`.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.decision.top_k([[0.2, 0.9, 0.5]], 2)
    array([[False,  True,  True]])
    """
    scores = _score_matrix(scores)
    return match_instances(scores, np.full(len(scores), whole(k, "k", 0)))


class Top(NamedTuple):
    """The best labels of each instance, best first."""

    labels: Array  # (n, k) names
    scores: FloatArray  # (n, k)


def top_labels(scores: Any, names: Sequence[str], k: int) -> Top:
    """Name the `k` labels of highest score of each instance, best first; ties go to the label that comes first.

    Parameters
    ----------
    scores
        Consensus scores (n, l), an array or `SparseScores`.
    names
        The labels' names (l,).
    k
        How many.

    Examples
    --------
    >>> top_labels(np.array([[0.2, 0.9, 0.5]]), ["x", "y", "z"], 2).labels.tolist()
    [['y', 'z']]
    """
    k = whole(k, "k", 1)
    if isinstance(scores, SparseScores):
        order, best = scores.top(k)
    else:
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        best = np.take_along_axis(scores, order, axis=1)

    return Top(np.array(names, dtype=np.dtypes.StringDType())[order], best)


def threshold(scores: Any, at_least: float = 0.5, *, empty: Empty = "keep") -> Any:
    """Keep the labels whose score is at least a number.

    Parameters
    ----------
    scores
        Consensus scores (n, l).
    at_least
        The number.
    empty
        What becomes of an instance that would get no label: ``"keep"`` it empty, or
        give it the ``"top"`` one.

    Returns
    -------
    ndarray (n, l) of bool.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.decision.threshold([[0.2, 0.9, 0.5], [0.1, 0.3, 0.2]], empty="top")
    array([[False,  True,  True],
           [False,  True, False]])
    """
    if isinstance(scores, SparseScores):
        return match_instances(scores, row_sums(scores.at_least(at_least)), empty=empty)

    scores = _score_matrix(scores)
    return _filled(scores, scores >= at_least, empty)


def match_instances(
    scores: Any, cardinality: ArrayLike, *, empty: Empty = "keep"
) -> Any:
    """Keep, for each instance, as many labels as the models gave it on average; the default of `predict`.

    Parameters
    ----------
    scores
        Consensus scores (n, l).
    cardinality
        How many labels each instance should have (n,), rounded half up; see
        `cardinalities`.
    empty
        What becomes of an instance that would get no label: ``"keep"`` it empty, or
        give it the ``"top"`` one.

    Returns
    -------
    ndarray (n, l) of bool; CSR of `SparseScores`.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.decision.match_instances([[0.2, 0.9, 0.5], [0.1, 0.3, 0.2]], [1.5, 0.4])
    array([[False,  True,  True],
           [False, False, False]])
    """
    scores = _score_matrix(scores)
    counts = np.asarray(cardinality, dtype=np.float64)
    size = len(scores)
    each = f"({size},): one number for each of the instances"
    if counts.shape != (size,):
        raise InputError(where="counts", found=f"shape {counts.shape}", expected=each)

    wanted = np.floor(counts + 0.5).astype(np.int64)
    if isinstance(scores, SparseScores):
        return scores.cells(np.maximum(wanted, int(empty == "top"))).astype(np.bool_)
    return _filled(scores, _top(scores, wanted), empty)


def best_f1(probabilities: ArrayLike, *, empty: Empty = "keep") -> Any:
    """Keep the labels above the threshold whose label sets have the highest F1 that the probabilities lead to expect.

    Parameters
    ----------
    probabilities
        How likely each label is (n, l), as in `Consensus.probabilities`; the threshold
        is one for all instances.
    empty
        What becomes of an instance that would get no label: ``"keep"`` it empty, or
        give it the ``"top"`` one.

    Returns
    -------
    ndarray (n, l) of bool.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.decision.best_f1([[0.9, 0.4, 0.1], [0.1, 0.2, 0.1]])
    array([[ True,  True, False],
           [False, False, False]])
    """
    return threshold(
        probabilities,
        np.nextafter(compute_f1_threshold(_score_matrix(probabilities)), 2),
        empty=empty,
    )


def compute_f1_threshold(probabilities: FloatArray) -> float:
    """Find above which probability cells are to be kept for the highest F1 to be expected.

    Examples
    --------
    >>> compute_f1_threshold(np.array([1.0, 0.5, 0.5, 0.0]))
    0.4
    """
    likely = np.clip(probabilities, 0, 1)
    total = likely.sum()
    last = -1.0
    least = 0.0
    while (
        least > last
        # F1 = 2 Σ kept / (number kept + Σ all) is highest where what is above F1 / 2 is
        # kept; it rises
    ):
        kept = likely[likely > least]  # to that from below (Dinkelbach, 1967)
        last = least
        least = float(kept.sum() / max(kept.size + total, 1))

    return least


def match_total(scores: Any, total: int, *, empty: Empty = "keep") -> Any:
    """Keep the labels of the highest scores of all instances, about `total` of them: equal scores are treated alike.

    Parameters
    ----------
    scores
        Consensus scores (n, l).
    total
        How many labels all instances should have together.
    empty
        What becomes of an instance that would get no label: ``"keep"`` it empty, or
        give it the ``"top"`` one.

    Returns
    -------
    ndarray (n, l) of bool; CSR of `SparseScores`.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.decision.match_total([[0.2, 0.9, 0.5], [0.1, 0.3, 0.2]], 3)
    array([[False,  True,  True],
           [False,  True, False]])
    """
    many = isinstance(scores, SparseScores)
    if many:
        values = scores.stored.data
    else:
        values = _score_matrix(scores).ravel()

    out = len(values) - min(whole(total, "total", 0), len(values))
    if out == len(values):
        least = np.inf
    else:
        least = np.partition(values, out)[out]

    above = (values > least).sum()
    level = (values == least).sum()
    if (
        2 * (len(values) - out - above) < level
    ):  # most of those that are level with the last would be too many
        least = np.nextafter(least, np.inf)
    if many:  # labels that nobody named are not given
        least = max(least, np.nextafter(scores.default.max(), np.inf))
    return threshold(scores, least, empty=empty)


def vote_shares(predictions: Any) -> Iterator[Any]:
    """Yield the mean prediction of each block, 0 where nobody spoke."""
    panel = as_predictions(predictions)
    none = np.zeros(panel.shape[2])
    return (
        many_means(block, none).above if block.many else mean(votes(block), none)
        for block in panel.blocks()
    )


def _score_matrix(scores: Any) -> Any:
    if isinstance(scores, SparseScores):
        return scores

    matrix = np.asarray(scores, dtype=np.float64)
    if matrix.ndim != 2:
        raise InputError(
            where="scores",
            found=f"{matrix.ndim} dimensions",
            expected="2: instances, labels",
        )
    if matrix.size and np.isnan(matrix.max()):
        raise InputError(where="scores", found="NaN", expected="numbers")
    return matrix


def _top(scores: FloatArray, wanted: IntArray) -> BoolArray:
    """Mark the ``wanted[i]`` highest scores of row i; ties go to the first."""
    l = scores.shape[1]
    chosen = np.empty(scores.shape, dtype=np.bool_)
    wanted = np.clip(wanted, 0, l)

    def mark(rows: slice) -> None:
        falling = np.negative(scores[rows], order="C")
        most = wanted[rows, None]
        # Whole sorts are vectorised, and cheaper than partitions by each row's own
        # number.
        lowest = np.take_along_axis(
            np.sort(falling, axis=1), np.maximum(most - 1, 0), axis=1
        )
        kept = falling <= lowest
        over = np.flatnonzero(
            kept.sum(axis=1) > most[:, 0]
        )  # ties at the lowest, or nothing wanted
        ties = falling[over] == lowest[over]
        surplus = kept[over].sum(axis=1, keepdims=True) - most[over]
        left = ties.sum(axis=1, keepdims=True) - surplus
        kept[over] &= ~ties | (np.cumsum(ties, axis=1) <= left)
        chosen[rows] = kept

    if chosen.size:
        map_row_blocks(scores.shape, mark)
    return chosen


def _filled(scores: FloatArray, chosen: BoolArray, empty: Empty) -> BoolArray:
    if empty not in ("keep", "top"):
        raise InputError(where="empty", found=repr(empty), expected="'keep' or 'top'")
    if empty == "top":
        lacking = np.flatnonzero(~chosen.any(axis=1))
        chosen[lacking, scores[lacking].argmax(axis=1)] = True

    return chosen
