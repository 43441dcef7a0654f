r"""Majority voting (MV): the mean of the models' scores.

.. math:: \bar Y = \frac{1}{m} \sum_{k=1}^m Y^k \qquad\text{(Eq. averaging)}

The mean is over the models that made a prediction, weighted if the user gives weights.
A pair without any prediction gets the label's prior: the mean of all predictions of the
label in `fit`, or 0 for a label without any prediction.

Xie, Kong, Gao, Fan, Yu: Multilabel Consensus Classification.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from ..execution.statistics import Axes
from ..linalg.sparse_scores import SparseScores, to_scores
from ..predictions import FloatArray
from ..predictions.blocks import PredictionBlock
from ..predictions.validation import Weights
from .base import BaseCombiner, PredictionsLike
from .contributions import Contributions, of_label


@dataclass(frozen=True, kw_only=True)
class MajorityVoteStatistics:
    """Sums over instances."""

    # Sum of the scores.
    score_sum: Annotated[FloatArray, Axes("l", least=0)]
    # Number of predictions, times the models' weights.
    n_predictions: Annotated[FloatArray, Axes("l", least=0)]


@dataclass(frozen=True, kw_only=True)
class MajorityVoteSolution:
    """The scores of pairs without predictions."""

    # Mean score of each label.
    prior: Annotated[FloatArray, Axes("l", least=0, most=1)]


class MajorityVote(BaseCombiner):
    """Majority voting: the mean of the models' scores.

    Parameters
    ----------
    weights : sequence or mapping, default=None
        Weight of each model, in their order or by name. By default all are equal.

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
    solves_at_once = True

    def __init__(self, weights: Weights = None) -> None:
        self.weights = weights

    def _compute_statistics(self, block: PredictionBlock) -> MajorityVoteStatistics:
        """Return the sum of the scores and the number of predictions of each label."""
        return MajorityVoteStatistics(
            score_sum=block.sum_scores().sum_over_instances(),
            n_predictions=block.count_predictions().sum_over_instances(),
        )

    def _solve(self, statistics: MajorityVoteStatistics) -> MajorityVoteSolution:
        """Return the prior of each label."""
        count = statistics.n_predictions
        prior = np.divide(
            statistics.score_sum, count, out=np.zeros(len(count)), where=count > 0
        )
        # Rounding can leave the range.
        return MajorityVoteSolution(prior=np.clip(prior, 0, 1))

    @staticmethod
    def _apply(
        block: PredictionBlock, solution: MajorityVoteSolution
    ) -> FloatArray | SparseScores:
        """Return the mean scores; Eq. averaging."""
        mean = block.compute_mean_scores(solution.prior)
        if block.info.weights is not None:
            # Sums of weights are rounded.
            mean = mean.map(np.clip, 0, 1)
        return to_scores(mean)

    @staticmethod
    def _contributions(
        block: PredictionBlock, solution: MajorityVoteSolution, label: int
    ) -> Contributions:
        """Return each model's score of the label, divided by their number."""
        scores, is_present = block.get_instance(0)
        count = is_present[:, label].sum()
        if count == 0:
            return Contributions(
                baseline=float(solution.prior[label]),
                predictions=np.zeros(scores.shape),
            )

        shares = scores[:, label] / count
        return Contributions(
            baseline=0.0, predictions=of_label(shares, label, scores.shape)
        )


def majority_vote(predictions: PredictionsLike, weights: Weights = None) -> FloatArray:
    """Return the mean of the models' scores.

    Parameters
    ----------
    predictions : Predictions or array-like of shape (m, n, l)
        `Predictions`, or anything that its constructor takes.
    weights : sequence or mapping, default=None
        Weight of each model, in their order or by name. By default all are equal.

    Returns
    -------
    ndarray of shape (n, l)
        Higher scores are more relevant.
    """
    return MajorityVote(weights=weights).fit_transform(predictions)
