r"""Majority voting (MV): the mean of the models' scores.

.. math:: \bar Y = \frac{1}{m} \sum_{k=1}^m Y^k \qquad\text{(Eq. averaging)}

The mean is taken over the models that spoke, weighted if the user gives weights. A cell about which none did
gets the label's prior, its mean over all that was said in `fit`; a label of which nobody ever spoke gets 0.

Xie, Kong, Gao, Fan, Yu: Multilabel Consensus Classification.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..arithmetic.products import FloatArray, column_sums, mean, ratio, votes
from ..engines import gather, spread
from ..panel.predictions import Predictions, as_predictions
from ..parameters import Weights
from .base import Combiner
from .contributions import Contributions, of_label, statements


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


def contributions(block: Predictions, prior: FloatArray, label: int) -> Contributions:
    """Take the mean of the block's one instance apart: each model's own score for the label, by how many spoke."""
    scores, said = statements(block)
    heard = said[:, label].sum()
    if heard == 0:
        return Contributions(float(prior[label]), np.zeros_like(scores))
    return Contributions(0.0, of_label(scores[:, label] / heard, label, scores.shape))


def majority_vote(predictions: Any, weights: Weights = None) -> FloatArray:
    """Score labels by the mean of the models that spoke.

    Parameters
    ----------
    predictions
        `Predictions`, or anything that its constructor takes.
    weights
        How much each model counts: a number for each, in their order or by name. One of weight 2 counts as if it were
        there twice, of weight 0 as if it were not there; ``None``: all alike.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.majority_vote([[[1, 0, 1]], [[1, 0, 0]]])
    array([[1. , 0. , 0.5]])
    """
    panel = as_predictions(predictions).weighted(weights)
    prior = solve(gather(panel, statistics))
    return spread(panel, lambda block: apply(block, prior))


class MajorityVote(Combiner):
    """Majority voting: the mean of the models that spoke.

    Parameters
    ----------
    weights
        How much each model counts: a number for each, in their order or by name. One of weight 2 counts as if it were
        there twice, of weight 0 as if it were not there; ``None``: all alike.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.MajorityVote().fit_transform([[[1, 0, 1]], [[1, 0, 0]]])
    array([[1. , 0. , 0.5]])
    """

    def __init__(self, weights: Weights = None) -> None:
        self.weights = weights

    def _statistics(self, block: Predictions) -> Statistics:
        return statistics(block.weighted(self.weights))

    def _solve(self, statistics: Statistics) -> FloatArray:
        return solve(statistics)

    def _apply(self, block: Predictions, solution: FloatArray) -> FloatArray:
        return apply(block.weighted(self.weights), solution)

    def _contributions(self, block: Predictions, solution: FloatArray, label: int) -> Contributions:
        return contributions(block.weighted(self.weights), solution, label)
