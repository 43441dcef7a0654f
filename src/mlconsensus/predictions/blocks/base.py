"""Blocks of predictions, and the sums that every combiner is built from.

A block holds the predictions of m models for n instances and l labels. Its layout
depends on the data: `DenseBlock` where most models saw most instances, `SparseBlock`
where each instance was seen by a few of many models or has a few of many labels.
Combiners only use the sums that `PredictionBlock` declares, so each of them is written
once.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from ..array_types import BoolArray, FloatArray, IntArray, Matrix
from ..gold_labels import Gold
from .pair_values import PairValues
from .vote_patterns import VotePatterns


@dataclass(frozen=True, kw_only=True)
class ModelProducts:
    """Products of two models' predictions, summed over instances, for each label."""

    scores: FloatArray  # (l, m, m) score of one model times score of the other
    presence_and_score: (
        FloatArray  # (l, m, m) presence of the first, score of the other
    )
    presence: FloatArray  # (l, m, m) presence of both


@dataclass(frozen=True, kw_only=True)
class PairwiseProducts:
    """Products of two models' centered scores, summed over instances and labels.

    Only the instance-label pairs count that both models predicted. The matrices are
    arrays, or CSR for a crowd of more than 4,096 models.
    """

    products: Matrix  # (m, m) centered score of one model times that of the other
    squares: Matrix  # (m, m) squared centered score of the first
    n_pairs: Matrix  # (m, m) number of instance-label pairs


@dataclass(frozen=True, kw_only=True)
class ClusterSums:
    """Predictions of the instances in each cluster, summed for each label."""

    scores: FloatArray  # (l, m, c)
    presence: FloatArray  # (l, m, c)


@dataclass(frozen=True, kw_only=True)
class InstanceInfo:
    """What a block knows about its instances besides predictions."""

    weights: FloatArray | None = None  # (m,) weight of each model; None: all are 1
    gold: Gold | None = None  # gold labels of some instances
    clusters: IntArray | None = None  # (n, q) cluster of each instance, -1: none
    n_clusters: int = 0


class PredictionBlock(ABC):
    """Predictions of m models for n instances and l labels.

    Every prediction counts as often as the weight of its model, which is 1 unless the
    user gives weights.
    """

    n_models: int
    n_instances: int
    n_labels: int
    info: InstanceInfo

    @abstractmethod
    def sum_scores(self, weights: FloatArray | None = None) -> PairValues:
        """Sum the models' scores of each instance-label pair.

        Parameters
        ----------
        weights : ndarray of shape (m, l), default=None
            Weight of each model on each label. By default all weights are 1.

        Returns
        -------
        PairValues
        """

    @abstractmethod
    def count_predictions(self, weights: FloatArray | None = None) -> PairValues:
        """Sum the weights of the models that made a prediction for each pair."""

    @abstractmethod
    def sum_scores_by_model(self, values: PairValues | None = None) -> FloatArray:
        """Sum pair values times each model's scores over instances, (m, l)."""

    @abstractmethod
    def count_predictions_by_model(
        self, values: PairValues | None = None
    ) -> FloatArray:
        """Sum pair values over the pairs that each model predicted, (m, l)."""

    @abstractmethod
    def multiply_models(self, values: PairValues) -> ModelProducts:
        """Sum pair values times the products of two models' predictions."""

    @abstractmethod
    def sum_squares_by_model(self) -> FloatArray:
        """Sum each model's squared scores over instances, (m, l), without weights."""

    @abstractmethod
    def pairwise_products(self, means: FloatArray) -> PairwiseProducts:
        """Sum the products of two models' scores minus their means, without weights.

        Parameters
        ----------
        means : ndarray of shape (m, l)
            Mean score of each model and label.

        Returns
        -------
        PairwiseProducts
        """

    @abstractmethod
    def sum_label_products(self, weights: FloatArray, means: FloatArray) -> FloatArray:
        """Sum the products of two labels within each model, (l, l).

        Parameters
        ----------
        weights : ndarray of shape (m, l)
            Factor of each model's centered scores.
        means : ndarray of shape (m, l)
            Mean score of each model and label.

        Returns
        -------
        ndarray of shape (l, l)
            Sum over instances and models of the products of ``weights * (scores -
            means)`` for two labels. Missing predictions add nothing.
        """

    @abstractmethod
    def count_label_products(self, weights: FloatArray) -> FloatArray:
        """Sum the products of two labels' weights where a model predicted both, (l, l).

        The same as `sum_label_products` with 1 for each prediction.
        """

    @abstractmethod
    def raise_scores(self, power: int) -> Self:
        """Return the same block with each score raised to a power, without weights."""

    @abstractmethod
    def merge_models(self, shares: Matrix) -> Self:
        """Return a block in which families take the place of their members.

        Parameters
        ----------
        shares : ndarray or CSR matrix of shape (g, m)
            Share of each model in each family, without user weights. The score of a
            family is the sum of its members' scores times shares, divided by the
            absolute shares of the members that made the prediction.

        Returns
        -------
        PredictionBlock
            A block of g models.
        """

    @abstractmethod
    def sum_by_cluster(self, values: PairValues) -> ClusterSums:
        """Sum pair values times predictions over the instances of each cluster."""

    @abstractmethod
    def connection_matrix(self, dtype: DTypeLike = np.float64) -> Matrix:
        """Return the paper's A (n, m * l): edges from instances to (model, label)."""

    @abstractmethod
    def vote_patterns(self, is_selected: BoolArray | None = None) -> VotePatterns:
        """Count the distinct patterns of yes and no votes for each label.

        Parameters
        ----------
        is_selected : ndarray of shape (n, l) of bool, default=None
            The instance-label pairs to count. By default all are counted.

        Returns
        -------
        VotePatterns
        """

    @abstractmethod
    def binarize(self) -> Self:
        """Return the same block with yes (1) and no (0) votes, all of weight 1."""

    @abstractmethod
    def get_instance(self, instance: int) -> tuple[FloatArray, FloatArray]:
        """Return the scores and the presence of one instance's predictions, (m, l)."""

    @property
    def is_large(self) -> bool:
        """Whether scores of all pairs would not fit into memory."""
        return False

    @property
    def weights(self) -> FloatArray:
        """Weight of each model, shape (m,)."""
        if self.info.weights is None:
            return np.ones(self.n_models)
        return self.info.weights

    @property
    def gold(self) -> Gold | None:
        """Gold labels of some instances, or None."""
        return self.info.gold

    @property
    def n_clusters(self) -> int:
        """Number of clusters in the clusterings of the instances."""
        return self.info.n_clusters

    def sum_predictions(self, for_yes: FloatArray, for_no: FloatArray) -> PairValues:
        """Sum for each pair what its predictions count.

        A score `a` counts ``a * for_yes + (1 - a) * for_no``.

        Parameters
        ----------
        for_yes, for_no : ndarray of shape (m, l)
            What the scores 1 and 0 of each model and label count.

        Returns
        -------
        PairValues
        """
        from_scores = self.sum_scores(for_yes - for_no)
        return from_scores.map(np.add, self.count_predictions(for_no))

    def compute_mean_scores(self, default: FloatArray | float) -> PairValues:
        """Average the models' scores of each pair; Eq. averaging.

        Parameters
        ----------
        default : ndarray of shape (l,) or float
            Value for pairs without predictions.

        Returns
        -------
        PairValues
        """
        return self.sum_scores().divide(self.count_predictions(), default)

    def membership_matrix(self) -> Matrix:
        """Return which clusters each instance belongs to, CSR (n, c) of ones."""
        shape = (self.n_instances, self.n_clusters)
        clusters = self.info.clusters
        if clusters is None or self.n_clusters == 0:
            return sparse.csr_array(shape)

        is_member = clusters >= 0
        starts = np.append(0, np.cumsum(is_member.sum(axis=1)))
        ones = np.ones(int(starts[-1]))
        return sparse.csr_array((ones, clusters[is_member], starts), shape=shape)

    def _weigh(self, weights: FloatArray | None) -> FloatArray | None:
        """Return weights (m, l) times those of the models, or None if all are 1."""
        if self.info.weights is None:
            return weights
        model_weights = np.asarray(self.info.weights)[:, np.newaxis]
        if weights is None:
            return np.repeat(model_weights, self.n_labels, axis=1)
        return weights * model_weights
