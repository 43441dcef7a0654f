r"""Ranking metrics: how well scores rank relevant labels above irrelevant ones.

Ties. Each metric is its expected value if equal scores are put in random order. For
microAUC and ranking loss, a tied pair counts one half. For one-error, it is the share
of irrelevant labels among those tied at the top. The definitions that the paper prints
treat ties differently; they are in `mlconsensus.reproduction.printed_metrics`.

Instances without a relevant label, or without an irrelevant one, have no pair to rank.
As in scikit-learn, their ranking loss is 0 and their average precision is 1. One-error
counts an instance without a relevant label as an error, because any first label is
wrong. MicroAUC is NaN if all instance-label pairs of the truth are equal.
"""

from collections.abc import Callable

from numpy.typing import ArrayLike

from ..predictions import FloatArray, Matrix
from . import _rank_counts
from ._rank_counts import Scores, TieGroups
from .ground_truth import check_truth_and_scores

RANKING_METRICS = ("micro_auc", "one_error", "ranking_loss", "average_precision")
LOWER_IS_BETTER = frozenset({"one_error", "ranking_loss", "hamming_loss"})


def micro_auc(truth: ArrayLike, scores: ArrayLike) -> float:
    """Compute the area under the ROC curve over all instance-label pairs.

    It is the probability that a relevant pair has a higher score than an irrelevant
    one. Ties count one half.

    Parameters
    ----------
    truth : array-like or sparse matrix of shape (n, l)
        Relevant labels, as in `evaluate`.
    scores : array-like, sparse matrix or SparseScores of shape (n, l)
        Scores, as in `evaluate`.

    Returns
    -------
    float
        A number in [0, 1]; NaN if all instance-label pairs of the truth are equal.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.metrics.micro_auc([[1, 0], [0, 1]], [[0.9, 0.2], [0.4, 0.4]])
    0.875
    """
    checked_truth, checked_scores = check_truth_and_scores(truth, scores)
    return compute_micro_auc(checked_truth, checked_scores)


def one_error(truth: ArrayLike, scores: ArrayLike) -> float:
    """Compute the share of instances whose first label is irrelevant.

    If several labels have the highest score, one of them is drawn at random.

    Parameters
    ----------
    truth : array-like or sparse matrix of shape (n, l)
        Relevant labels, as in `evaluate`.
    scores : array-like, sparse matrix or SparseScores of shape (n, l)
        Scores, as in `evaluate`.

    Returns
    -------
    float
        A number in [0, 1].

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.metrics.one_error([[1, 0], [0, 1]], [[0.9, 0.2], [0.4, 0.4]])
    0.25
    """
    return _average(_rank_counts.compute_one_error, truth, scores)


def ranking_loss(truth: ArrayLike, scores: ArrayLike) -> float:
    """Compute the mean share of label pairs of an instance in the wrong order.

    A label pair has a relevant and an irrelevant label. Ties count one half.

    Parameters
    ----------
    truth : array-like or sparse matrix of shape (n, l)
        Relevant labels, as in `evaluate`.
    scores : array-like, sparse matrix or SparseScores of shape (n, l)
        Scores, as in `evaluate`.

    Returns
    -------
    float
        A number in [0, 1].

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.metrics.ranking_loss([[1, 0], [0, 1]], [[0.9, 0.2], [0.4, 0.4]])
    0.25
    """
    return _average(_rank_counts.compute_ranking_loss, truth, scores)


def average_precision(truth: ArrayLike, scores: ArrayLike) -> float:
    """Compute the label ranking average precision (LRAP).

    For each relevant label, it is the share of relevant labels among the labels ranked
    down to it, averaged over relevant labels and then over instances. Without ties it
    equals scikit-learn's ``label_ranking_average_precision_score``. With ties it is
    the expected value over random orders of tied labels.

    Parameters
    ----------
    truth : array-like or sparse matrix of shape (n, l)
        Relevant labels, as in `evaluate`.
    scores : array-like, sparse matrix or SparseScores of shape (n, l)
        Scores, as in `evaluate`.

    Returns
    -------
    float
        A number in [0, 1].

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> precision = mlc.metrics.average_precision([[1, 0, 1]], [[0.9, 0.5, 0.2]])
    >>> precision == (1 / 1 + 2 / 3) / 2
    True
    """
    return _average(_rank_counts.compute_average_precision, truth, scores)


def compute_ranking_metrics(truth: Matrix, scores: Scores) -> dict[str, float]:
    """Compute all ranking metrics of checked input.

    Parameters
    ----------
    truth : ndarray of bool or csr_array of shape (n, l)
        As `check_truth_and_scores` returns it.
    scores : ndarray or SparseScores of shape (n, l)
        As `check_truth_and_scores` returns them.

    Returns
    -------
    dict of str to float
        The metrics by the names in `RANKING_METRICS`.
    """
    means = _rank_counts.average_over_instances(
        truth,
        scores,
        _rank_counts.compute_one_error,
        _rank_counts.compute_ranking_loss,
        _rank_counts.compute_average_precision,
    )
    values = [compute_micro_auc(truth, scores), *means]
    return dict(zip(RANKING_METRICS, values, strict=True))


def compute_micro_auc(truth: Matrix, scores: Scores, tied: float = 0.5) -> float:
    """Compute the micro AUC of checked input.

    Parameters
    ----------
    truth : ndarray of bool or csr_array of shape (n, l)
        As `check_truth_and_scores` returns it.
    scores : ndarray or SparseScores of shape (n, l)
        As `check_truth_and_scores` returns them.
    tied : float, default=0.5
        Weight of a tied pair.

    Returns
    -------
    float
        A number in [0, 1], or NaN.
    """
    pairs = _rank_counts.count_ordered_pairs(truth, scores)
    if pairs.total == 0:
        return float("nan")
    return (pairs.won + tied * pairs.tied) / pairs.total


def is_better(metric: str, one: float, other: float) -> bool:
    """Return whether the value `one` of a metric is better than the value `other`.

    Parameters
    ----------
    metric : str
        Name of the metric.
    one, other : float
        The values.

    Returns
    -------
    bool

    Examples
    --------
    >>> is_better("ranking_loss", 0.1, 0.2), is_better("micro_auc", 0.1, 0.2)
    (True, False)
    """
    if metric in LOWER_IS_BETTER:
        return one < other
    return one > other


def _average(
    metric: Callable[[TieGroups], FloatArray], truth: ArrayLike, scores: ArrayLike
) -> float:
    """Check the input, and average a metric over instances."""
    checked_truth, checked_scores = check_truth_and_scores(truth, scores)
    means = _rank_counts.average_over_instances(checked_truth, checked_scores, metric)
    return means[0]
