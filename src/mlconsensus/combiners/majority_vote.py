r"""Majority voting (MV): the mean of the models' scores.

.. math:: \bar Y = \frac{1}{m} \sum_{k=1}^m Y^k \qquad\text{(Eq. averaging)}

The mean is taken over the models that spoke. A cell about which none did gets the label's prior, its mean
over all that was said in `fit`; a label of which nobody ever spoke gets 0.

Xie, Kong, Gao, Fan, Yu: Multilabel Consensus Classification.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..engines.local import gather, spread
from ..kernels import FloatArray, column_sums, mean, ratio, votes
from ..predictions import Predictions, as_predictions
from .base import Combiner


class Statistics(NamedTuple):
    """Sums over instances."""

    total: Any  # (l,) sum of all scores
    heard: Any  # (l,) how many scores that is


def statistics(block: Predictions) -> Statistics:
    """Add up what was said about each label."""
    total, heard = votes(block)
    n, l = total.shape
    return Statistics(column_sums(total), np.broadcast_to(heard, (n, l)).sum(axis=0))


def solve(statistics: Statistics) -> FloatArray:
    """Find each label's prior (l,)."""
    return ratio(statistics.total, statistics.heard, 0.0)


def apply(block: Predictions, prior: FloatArray) -> FloatArray:
    """Average the models that spoke; Eq. averaging."""
    average = mean(votes(block), prior)
    return np.asarray(average.toarray() if sparse.issparse(average) else average)


def majority_vote(predictions: Any) -> FloatArray:
    """Score labels by the mean of the models that spoke.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.majority_vote([[[1, 0, 1]], [[1, 0, 0]]])
    array([[1. , 0. , 0.5]])
    """
    panel = as_predictions(predictions)
    prior = solve(gather(panel, statistics))
    return spread(panel, lambda block: apply(block, prior))


class MajorityVote(Combiner):
    """Majority voting: the mean of the models that spoke.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.MajorityVote().fit_transform([[[1, 0, 1]], [[1, 0, 0]]])
    array([[1. , 0. , 0.5]])
    """

    def _statistics(self, block: Predictions) -> Statistics:
        return statistics(block)

    def _solve(self, statistics: Statistics) -> FloatArray:
        return solve(statistics)

    def _apply(self, block: Predictions, solution: FloatArray) -> FloatArray:
        return apply(block, solution)
