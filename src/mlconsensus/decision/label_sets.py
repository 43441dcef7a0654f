"""Decision rules: label sets from consensus scores.

``n`` is the number of instances and ``l`` the number of labels.
"""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError
from ..linalg.block_sums import row_sums
from ..linalg.matrix_types import RowSlice
from ..linalg.sparse_scores import SparseScores, to_scores
from ..metrics._rank_counts import map_row_blocks
from ..predictions import (
    Array,
    BoolArray,
    FloatArray,
    IntArray,
    Matrix,
    Predictions,
    as_predictions,
)
from ..predictions.validation import whole

Empty = Literal["keep", "top"]
Scores = ArrayLike | SparseScores  # (n, l)


def cardinalities(predictions: object) -> FloatArray:
    """Compute how many labels the models predicted for each instance on average.

    Each instance-label pair is averaged over the models with a prediction.

    Parameters
    ----------
    predictions : Predictions or object
        `Predictions`, or anything that its constructor takes.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.decision.cardinalities([[[1, 1, 0]], [[1, 0, 0]]])
    array([1.5])
    """
    return np.concatenate([row_sums(block) for block in vote_shares(predictions)])


def top_k(scores: Scores, k: int) -> Matrix:
    """Select the `k` labels with the highest scores of each instance.

    The first labels are preferred among equal scores.

    Parameters
    ----------
    scores : array-like or SparseScores of shape (n, l)
        Consensus scores.
    k : int
        Number of labels of each instance.

    Returns
    -------
    ndarray of bool of shape (n, l)
        CSR if the scores are `SparseScores`.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.decision.top_k([[0.2, 0.9, 0.5]], 2)
    array([[False,  True,  True]])
    """
    matrix = check_scores(scores)
    return match_instances(matrix, np.full(len(matrix), whole(k, "k", 0)))


class Top(NamedTuple):
    """The best labels of each instance, best first."""

    labels: Array  # (n, k) names
    scores: FloatArray  # (n, k)


def top_labels(scores: Matrix, names: Sequence[str], k: int) -> Top:
    """Return the names of the `k` labels with the highest scores of each instance.

    The first labels are preferred among equal scores.

    Parameters
    ----------
    scores : ndarray or SparseScores of shape (n, l)
        Consensus scores.
    names : sequence of str
        Names of the labels (l,).
    k : int
        Number of labels of each instance.

    Returns
    -------
    Top
        Names and scores (n, k), best first.

    Examples
    --------
    >>> top_labels(np.array([[0.2, 0.9, 0.5]]), ["x", "y", "z"], 2).labels.tolist()
    [['y', 'z']]
    """
    k = whole(k, "k", 1)
    if isinstance(scores, SparseScores):
        order, top_scores = scores.top(k)
    else:
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        top_scores = np.take_along_axis(scores, order, axis=1)

    name_array = np.array(names, dtype=np.dtypes.StringDType())
    return Top(name_array[order], top_scores)


def threshold(
    scores: Scores, at_least: float = 0.5, *, empty: Empty = "keep"
) -> Matrix:
    """Select the labels whose score is at least a threshold.

    Parameters
    ----------
    scores : array-like or SparseScores of shape (n, l)
        Consensus scores.
    at_least : float, default=0.5
        The threshold.
    empty : {"keep", "top"}, default="keep"
        What happens to an instance without a label: ``"keep"`` it empty, or assign the
        label with the highest score (``"top"``).

    Returns
    -------
    ndarray of bool of shape (n, l)
        CSR if the scores are `SparseScores`.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.decision.threshold([[0.2, 0.9, 0.5], [0.1, 0.3, 0.2]], empty="top")
    array([[False,  True,  True],
           [False,  True, False]])
    """
    if isinstance(scores, SparseScores):
        counts = row_sums(scores.at_least(at_least))
        return match_instances(scores, counts, empty=empty)

    matrix = check_scores(scores)
    return _fill_empty_sets(matrix, matrix >= at_least, empty)


def match_instances(
    scores: Scores, cardinality: ArrayLike, *, empty: Empty = "keep"
) -> Matrix:
    """Select as many labels of each instance as the models predicted on average.

    This is the default of `predict`.

    Parameters
    ----------
    scores : array-like or SparseScores of shape (n, l)
        Consensus scores.
    cardinality : array-like of shape (n,)
        Number of labels of each instance, rounded half up; see `cardinalities`.
    empty : {"keep", "top"}, default="keep"
        What happens to an instance without a label: ``"keep"`` it empty, or assign the
        label with the highest score (``"top"``).

    Returns
    -------
    ndarray of bool of shape (n, l)
        CSR if the scores are `SparseScores`.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.decision.match_instances([[0.2, 0.9, 0.5], [0.1, 0.3, 0.2]], [1.5, 0.4])
    array([[False,  True,  True],
           [False, False, False]])
    """
    matrix = check_scores(scores)
    counts = np.asarray(cardinality, dtype=np.float64)
    n = len(matrix)
    if counts.shape != (n,):
        raise InputError(
            where="counts",
            found=f"shape {counts.shape}",
            expected=f"({n},): one number for each of the instances",
        )

    # Round half up
    rounded = np.floor(counts + 0.5).astype(np.int64)
    if isinstance(matrix, SparseScores):
        fewest = int(empty == "top")
        return matrix.cells(np.maximum(rounded, fewest)).astype(np.bool_)
    return _fill_empty_sets(matrix, _select_top(matrix, rounded), empty)


def best_micro_f1(probabilities: ArrayLike, *, empty: Empty = "keep") -> Matrix:
    """Select labels with the threshold of the highest expected micro F1.

    The expected micro F1 is 2 Σ selected / (number selected + Σ all), where the sums
    are of probabilities, over all instances.

    Parameters
    ----------
    probabilities : array-like of shape (n, l)
        Probability of each label, as in `Consensus.probabilities`. All instances have
        the same threshold.
    empty : {"keep", "top"}, default="keep"
        What happens to an instance without a label: ``"keep"`` it empty, or assign the
        label with the highest score (``"top"``).

    Returns
    -------
    ndarray of bool of shape (n, l)

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.decision.best_micro_f1([[0.9, 0.4, 0.1], [0.1, 0.2, 0.1]])
    array([[ True,  True, False],
           [False, False, False]])
    """
    limit = compute_f1_threshold(check_scores(probabilities))
    return threshold(probabilities, np.nextafter(limit, 2), empty=empty)


def compute_f1_threshold(probabilities: FloatArray) -> float:
    """Compute the probability above which labels are selected for the best expected F1.

    The expected F1 of a selection is 2 Σ selected / (number selected + Σ all). It is
    highest if all probabilities above F1 / 2 are selected. The iteration increases to
    this value from below (Dinkelbach, 1967).

    Parameters
    ----------
    probabilities : ndarray
        Probabilities of labels, of any shape.

    Returns
    -------
    float

    Examples
    --------
    >>> compute_f1_threshold(np.array([1.0, 0.5, 0.5, 0.0]))
    0.4
    """
    clipped = np.clip(probabilities, 0, 1)
    total = clipped.sum()
    previous_limit = -1.0
    limit = 0.0
    while limit > previous_limit:
        selected = clipped[clipped > limit]
        previous_limit = limit
        limit = float(selected.sum() / max(selected.size + total, 1))

    return limit


def match_total(scores: Scores, total: int, *, empty: Empty = "keep") -> Matrix:
    """Select the labels with the highest scores of all instances together.

    Equal scores are treated alike, so that the number is about `total`.

    Parameters
    ----------
    scores : array-like or SparseScores of shape (n, l)
        Consensus scores.
    total : int
        Number of labels of all instances together.
    empty : {"keep", "top"}, default="keep"
        What happens to an instance without a label: ``"keep"`` it empty, or assign the
        label with the highest score (``"top"``).

    Returns
    -------
    ndarray of bool of shape (n, l)
        CSR if the scores are `SparseScores`.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.decision.match_total([[0.2, 0.9, 0.5], [0.1, 0.3, 0.2]], 3)
    array([[False,  True,  True],
           [False,  True, False]])
    """
    if isinstance(scores, SparseScores):
        values = scores.stored.data
    else:
        values = check_scores(scores).ravel()

    # The lowest selected score
    n_selected = min(whole(total, "total", 0), len(values))
    n_rejected = len(values) - n_selected
    if n_selected == 0:
        limit = np.inf
    else:
        limit = np.partition(values, n_rejected)[n_rejected]

    # Reject all ties with it if fewer than half of them are wanted
    n_above = (values > limit).sum()
    n_tied = (values == limit).sum()
    if 2 * (n_selected - n_above) < n_tied:
        limit = np.nextafter(limit, np.inf)

    # Labels that no model predicted are not selected
    if isinstance(scores, SparseScores):
        limit = max(limit, np.nextafter(scores.default.max(), np.inf))
    return threshold(scores, limit, empty=empty)


def vote_shares(predictions: object) -> Iterator[Matrix]:
    """Yield the mean prediction of each block, 0 for pairs without a prediction.

    Parameters
    ----------
    predictions : Predictions or object
        `Predictions`, or anything that its constructor takes.

    Returns
    -------
    iterator of ndarray or csr_array of shape (b, l)
    """
    panel = as_predictions(predictions)
    return map(_compute_vote_shares, panel.blocks())


def _compute_vote_shares(block: Predictions) -> Matrix:
    """Compute the mean prediction of a block, 0 for pairs without a prediction."""
    scores = to_scores(block.to_block().compute_mean_scores(0.0))
    if isinstance(scores, SparseScores):
        # No pair without predictions has a score
        return scores.above
    return scores


def check_scores(scores: Scores) -> Matrix:
    """Return scores as a matrix, or raise an `InputError`.

    Parameters
    ----------
    scores : array-like or SparseScores of shape (n, l)
        Scores without missing values.

    Returns
    -------
    ndarray or SparseScores of shape (n, l)

    Examples
    --------
    >>> check_scores([[1, 0]])
    array([[1., 0.]])
    """
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


def _select_top(scores: FloatArray, counts: IntArray) -> BoolArray:
    """Select the ``counts[i]`` highest scores of row ``i``; the first of equal ones."""
    l = scores.shape[1]
    selected = np.empty(scores.shape, dtype=np.bool_)
    counts = np.clip(counts, 0, l)

    def select_rows(rows: RowSlice) -> None:
        # Sorting whole rows is vectorized, and cheaper than a partition of each row
        negative = np.negative(scores[rows], order="C")
        count = counts[rows, None]
        last = np.maximum(count - 1, 0)
        limit = np.take_along_axis(np.sort(negative, axis=1), last, axis=1)
        is_selected = negative <= limit

        # Too many labels: there are ties with the last one, or the count is 0
        excess_rows = np.flatnonzero(is_selected.sum(axis=1) > count[:, 0])
        is_tied = negative[excess_rows] == limit[excess_rows]
        n_selected = is_selected[excess_rows].sum(axis=1, keepdims=True)
        excess = n_selected - count[excess_rows]
        n_tied_selected = is_tied.sum(axis=1, keepdims=True) - excess
        is_first = np.cumsum(is_tied, axis=1) <= n_tied_selected
        is_selected[excess_rows] &= ~is_tied | is_first
        selected[rows] = is_selected

    if selected.size:
        map_row_blocks(scores.shape, select_rows)
    return selected


def _fill_empty_sets(scores: FloatArray, sets: BoolArray, empty: Empty) -> BoolArray:
    """Add the label with the highest score to empty label sets if `empty` is "top"."""
    if empty not in ("keep", "top"):
        raise InputError(where="empty", found=repr(empty), expected="'keep' or 'top'")
    if empty == "top":
        empty_rows = np.flatnonzero(~sets.any(axis=1))
        sets[empty_rows, scores[empty_rows].argmax(axis=1)] = True

    return sets
