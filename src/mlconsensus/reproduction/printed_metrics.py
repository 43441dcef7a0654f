"""The metrics as the paper prints them.

They differ from `mlconsensus.metrics` in ties, and in what is averaged.
"""

from functools import partial

from numpy.typing import ArrayLike

from ..metrics._rank_counts import (
    TieGroups,
    average_over_instances,
    compute_ranking_loss,
    sum_reciprocal_ranks,
)
from ..metrics.ground_truth import check_truth_and_scores
from ..metrics.ranking import compute_micro_auc
from ..predictions import FloatArray


def micro_auc_printed(truth: ArrayLike, scores: ArrayLike) -> float:
    """Compute the microAUC as the paper prints it: ties count as wrong.

    Parameters
    ----------
    truth : array-like or sparse matrix of shape (n, l)
        Relevant labels, as in `mlconsensus.metrics.evaluate`.
    scores : array-like, sparse matrix or SparseScores of shape (n, l)
        Scores, as in `mlconsensus.metrics.evaluate`.

    Returns
    -------
    float
        A number in [0, 1]; NaN if all instance-label pairs of the truth are equal.

    Examples
    --------
    >>> micro_auc_printed([[1, 0], [0, 1]], [[0.9, 0.2], [0.4, 0.4]])
    0.75
    """
    checked_truth, checked_scores = check_truth_and_scores(truth, scores)
    return compute_micro_auc(checked_truth, checked_scores, tied=0.0)


def ranking_loss_printed(truth: ArrayLike, scores: ArrayLike) -> float:
    """Compute the ranking loss as the paper prints it.

    It is a sum over instances, and ties count as wrong.

    Parameters
    ----------
    truth : array-like or sparse matrix of shape (n, l)
        Relevant labels, as in `mlconsensus.metrics.evaluate`.
    scores : array-like, sparse matrix or SparseScores of shape (n, l)
        Scores, as in `mlconsensus.metrics.evaluate`.

    Returns
    -------
    float
        A number in [0, n].

    Examples
    --------
    >>> ranking_loss_printed([[1, 0], [0, 1]], [[0.9, 0.2], [0.4, 0.4]])
    1.0
    """
    checked_truth, checked_scores = check_truth_and_scores(truth, scores)
    metric = partial(compute_ranking_loss, tied=1.0)
    mean = average_over_instances(checked_truth, checked_scores, metric)[0]
    return mean * len(checked_scores)


def average_precision_printed(truth: ArrayLike, scores: ArrayLike) -> float:
    """Compute the average precision as the paper prints it.

    The precision is averaged over every number of retrieved labels.

    Parameters
    ----------
    truth : array-like or sparse matrix of shape (n, l)
        Relevant labels, as in `mlconsensus.metrics.evaluate`.
    scores : array-like, sparse matrix or SparseScores of shape (n, l)
        Scores, as in `mlconsensus.metrics.evaluate`.

    Returns
    -------
    float
        A number in [0, 1].

    Examples
    --------
    >>> precision = average_precision_printed([[1, 0]], [[0.9, 0.2]])
    >>> precision == (1 / 1 + 1 / 2) / 2
    True
    """
    checked_truth, checked_scores = check_truth_and_scores(truth, scores)
    metric = _compute_precision_at_all_ranks
    return average_over_instances(checked_truth, checked_scores, metric)[0]


def _compute_precision_at_all_ranks(groups: TieGroups) -> FloatArray:
    """Average the precision of each instance (n,) over all ranks.

    A relevant label counts from its own rank on, so a group adds to the precision at
    its own ranks and at all ranks below it.
    """
    reciprocals = sum_reciprocal_ranks(groups)
    from_group = reciprocals.within + reciprocals.within_by_place
    precision = groups.relevant * (from_group / groups.size + reciprocals.below)
    return groups.sum_by_instance(precision) / groups.n_labels
