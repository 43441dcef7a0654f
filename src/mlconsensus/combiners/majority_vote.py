r"""Majority voting (MV): the mean of the models' scores.

.. math:: \bar Y = \frac{1}{m} \sum_{k=1}^m Y^k \qquad\text{(Eq. averaging)}

The mean is taken over the models that spoke, weighted if the user gives weights. A cell
about which none did gets the label's prior, its mean over all that was said in `fit`; a
label of which nobody ever spoke gets 0.

Xie, Kong, Gao, Fan, Yu: Multilabel Consensus Classification.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from ..execution.statistics import Axes
from ..linalg.block_sums import FloatArray, column_sums, dense, mean, ratio, votes
from ..linalg.sparse_scores import Said, many_means
from ..predictions import Predictions
from ..predictions.validation import Weights
from .base import BaseCombiner, PredictionsLike
from .contributions import Contributions, of_label, statements


class MajorityVoteStatistics(NamedTuple):
    """Sums over instances."""

    total: Annotated[Any, Axes("l", least=0)]  # sum of all scores
    heard: Annotated[Any, Axes("l", least=0)]  # how many scores that is


class MajorityVoteSolution(NamedTuple):
    """What stands in for a mean over nobody."""

    prior: Annotated[
        FloatArray, Axes("l", least=0, most=1)
    ]  # mean of all that was said about the label


class MajorityVote(BaseCombiner):
    """Majority voting: the mean of the models that spoke.

    Parameters
    ----------
    weights
        How much each model counts, in their order or by name; ``None``: all alike.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.MajorityVote().fit_transform([[[1, 0, 1]], [[1, 0, 0]]])
    array([[1. , 0. , 0.5]])
    """

    Statistics = MajorityVoteStatistics
    Solution = MajorityVoteSolution
    identifier = "majority_vote"
    name = "MV"
    takes_many = True

    def __init__(self, weights: Weights = None) -> None:
        self.weights = weights

    def _compute_statistics(self, block: Predictions) -> MajorityVoteStatistics:
        """Add up what was said about each label."""
        if block.many:
            found = Said.by(block)
            return MajorityVoteStatistics(
                found.folded(found.known).sum(axis=0),
                found.seen.sum(axis=0) @ found.known,
            )

        total, heard = votes(block)
        n, l = total.shape
        return MajorityVoteStatistics(
            column_sums(total), np.broadcast_to(heard, (n, l)).sum(axis=0)
        )

    def _solve(self, statistics: MajorityVoteStatistics) -> MajorityVoteSolution:
        """Find each label's prior."""
        return MajorityVoteSolution(
            np.clip(ratio(statistics.total, statistics.heard, 0.0), 0, 1)
        )  # rounding leaves that range

    @staticmethod
    def _apply(block: Predictions, solution: MajorityVoteSolution) -> Any:
        """Average the models that spoke; Eq. averaging."""
        if block.many:
            return many_means(block, solution.prior)

        scores = dense(mean(votes(block), solution.prior))
        # sums of weights are rounded
        if block.weights is None:
            return scores
        return np.clip(scores, 0, 1)

    @staticmethod
    def _contributions(
        block: Predictions, solution: MajorityVoteSolution, label: int
    ) -> Contributions:
        """Take the mean of the block's one instance apart: each model's own score for the label, by how many spoke."""
        scores, said = statements(block)
        heard = said[:, label].sum()
        if heard:
            baseline = 0.0
        else:
            baseline = float(solution.prior[label])

        return Contributions(
            baseline, of_label(scores[:, label] / (heard or 1.0), label, scores.shape)
        )


def majority_vote(predictions: PredictionsLike, weights: Weights = None) -> FloatArray:
    """Return the consensus scores of `MajorityVote`.

    Parameters
    ----------
    predictions
        `Predictions`, or anything that its constructor takes.
    weights
        How much each model counts, in their order or by name; ``None``: all alike.

    Returns
    -------
    ndarray of shape (n, l)
        Higher scores are more relevant.
    """
    return MajorityVote(weights=weights).fit_transform(predictions)
