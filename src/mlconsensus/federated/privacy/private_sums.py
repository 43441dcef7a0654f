r"""Statistics in a form whose sensitivity is known.

The sensitivity is the most that one instance can add, in Euclidean norm. The sums of
each method are a symmetric matrix and some counts. A quarter of the counts goes into
the released vector, so that they add little to the noise of the matrix. docs/privacy.md
has the proofs.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic

import numpy as np
from scipy import linalg

from ...combiners.mlcm_a import MLCMaStatistics
from ...combiners.mlcm_r import MLCMrStatistics
from ...execution.statistics import S
from ...linalg.block_sums import (
    column_sums,
    gram,
    ratio,
    row_sums,
    scale_rows,
)
from ...predictions import FloatArray, Predictions
from .noise import round_to_grid

_COUNT_SHARE = 1 / 4


@dataclass(frozen=True, kw_only=True)
class PrivateSums:
    """Sums over instances.

    Each instance adds a matrix of norm at most 1, and counts of squared norm at most 3.
    """

    counts: FloatArray  # (k,)
    gram: FloatArray  # (v, v)


def to_vector(sums: PrivateSums) -> FloatArray:
    """Return sums as a vector of the same norm.

    Numbers of the matrix's upper triangle are multiplied by √2, except for those on the
    diagonal.

    Parameters
    ----------
    sums : PrivateSums
        Counts of shape (k,) and a matrix of shape (v, v).

    Returns
    -------
    ndarray of shape (k + v (v + 1) / 2,)

    Examples
    --------
    >>> matrix = np.array([[3.0, 1.0], [1.0, 2.0]])
    >>> to_vector(PrivateSums(counts=np.array([8.0]), gram=matrix)).round(3)
    array([2.   , 3.   , 1.414, 2.   ])
    """
    rows, columns = np.triu_indices(len(sums.gram))
    factors = np.where(rows == columns, 1, math.sqrt(2))
    upper = sums.gram[rows, columns] * factors
    return np.concatenate([_COUNT_SHARE * sums.counts, upper])


def from_vector(vector: FloatArray, size: int) -> PrivateSums:
    """Invert `to_vector`.

    Parameters
    ----------
    vector : ndarray of shape (k + v (v + 1) / 2,)
        Counts and the upper triangle of the matrix.
    size : int
        The size v of the matrix.

    Returns
    -------
    PrivateSums

    Examples
    --------
    >>> from_vector(np.array([2.0, 3.0, 2**0.5, 2.0]), 2).gram
    array([[3., 1.], [1., 2.]])
    """
    rows, columns = np.triu_indices(size)
    factors = np.where(rows == columns, 1, math.sqrt(2))
    counts, upper = np.split(vector, [len(vector) - len(rows)])

    matrix = np.empty((size, size))
    matrix[rows, columns] = upper / factors
    matrix[columns, rows] = upper / factors
    return PrivateSums(counts=counts / _COUNT_SHARE, gram=matrix)


class PrivateMethod(ABC, Generic[S]):
    """The private statistics of one method."""

    sensitivity: ClassVar[float]  # of the released vector
    clips: ClassVar[bool]  # whether `clip` is used

    @abstractmethod
    def compute_sums(
        self, weights: FloatArray, clip: float, block: Predictions
    ) -> PrivateSums:
        """Sum the contributions of a block's instances, on the grid of exact sums.

        Parameters
        ----------
        weights : ndarray of shape (m,)
            Weight of each model.
        clip : float
            The norm that means are scaled down to, if `clips`.
        block : Predictions
            Predictions of some instances.
        """

    @abstractmethod
    def make_statistics(
        self, noisy: PrivateSums, weights: FloatArray, clip: float
    ) -> S:
        """Make the method's statistics of sums with noise."""

    @abstractmethod
    def remove_noise(self, statistics: S, weights: FloatArray) -> S:
        """Return statistics without numbers that only noise can make."""


class PrivateMLCMr(PrivateMethod[MLCMrStatistics]):
    r"""The walk of MLCM-r.

    An instance with edges :math:`a \in [0, w]^v`, where `w` is the largest weight of a
    model (1 without weights), adds :math:`a a^\top / |a|_1` to it. Divided by `w` that
    is :math:`b b^\top` with :math:`b = a/\sqrt{w |a|_1}`, of Frobenius norm
    :math:`\|b\|_2^2 = \|a\|_2^2/(w |a|_1) \le 1`, since :math:`a_j^2 \le w a_j`.
    Decisions reach 1.
    """

    sensitivity = 1.0
    clips = False

    def compute_sums(
        self, weights: FloatArray, clip: float, block: Predictions
    ) -> PrivateSums:
        r"""Sum :math:`b b^\top` over the instances of a block."""
        edges = block.weighted(weights).to_block().connection_matrix()
        lengths = np.sqrt(weights.max() * row_sums(edges))
        inverse_lengths = ratio(np.ones(len(block)), lengths, 0.0)
        b = round_to_grid(scale_rows(edges, inverse_lengths))
        return PrivateSums(counts=np.empty(0), gram=gram(b))

    def make_statistics(
        self, noisy: PrivateSums, weights: FloatArray, clip: float
    ) -> MLCMrStatistics:
        """Make the walk of sums with noise."""
        n_models = len(weights)
        n_labels = len(noisy.gram) // n_models
        walk = noisy.gram.reshape(n_models, n_labels, n_models, n_labels)
        return MLCMrStatistics(walk=weights.max() * walk)

    def remove_noise(
        self, statistics: MLCMrStatistics, weights: FloatArray
    ) -> MLCMrStatistics:
        """Set numbers below 0 to 0.

        The walk needs a symmetric matrix without negative numbers, and nothing else:
        it is a graph, its Laplacian plus the anchors is positive definite, and rows of
        `Q` are distributions.
        """
        return MLCMrStatistics(walk=np.maximum(statistics.walk, 0))


class PrivateMLCMa(PrivateMethod[MLCMaStatistics]):
    r"""The products of means of MLCM-a.

    The mean prediction :math:`\bar y` of an instance is scaled down to a norm of at
    most `C` (`clip`); :math:`z` is the result in units of `C`, of norm at most 1.
    Counts are the number of instances, the share `s` of instance-label pairs with a
    prediction, and `z`:

    .. math:: \left(\tfrac14,\; \tfrac14 s,\; \tfrac14 z,\; z z^\top\right), \qquad
        \|\cdot\|_2 \le \sqrt{3/16 + \|z\|_2^4} \le \sqrt{19}/4 .

    A pair without any prediction counts as 0.
    """

    sensitivity = math.sqrt(1 + 3 * _COUNT_SHARE**2)
    clips = True

    def compute_sums(
        self, weights: FloatArray, clip: float, block: Predictions
    ) -> PrivateSums:
        r"""Sum the counts and :math:`z z^\top` over the instances of a block."""
        _, n_instances, n_labels = block.shape
        weighted = block.weighted(weights).to_block()

        # z: the clipped means.
        means = weighted.compute_mean_scores(np.zeros(n_labels)).to_matrix()
        norms = np.sqrt(row_sums(means * means))
        z = round_to_grid(scale_rows(means, 1 / np.maximum(norms, clip)))

        # s: the share of predictions that are not missing.
        n_predictions = weighted.count_predictions().to_array()
        share = round_to_grid(n_predictions.mean(axis=1) / weights.sum())

        counts = np.array([n_instances, share.sum(), *column_sums(z)])
        return PrivateSums(counts=counts, gram=gram(z))

    def make_statistics(
        self, noisy: PrivateSums, weights: FloatArray, clip: float
    ) -> MLCMaStatistics:
        """Make the statistics of MLCM-a of sums with noise."""
        n_instances = noisy.counts[0]
        share = noisy.counts[1]
        total = noisy.counts[2:]
        n_labels = len(total)
        return MLCMaStatistics(
            n_instances=float(n_instances),
            n_predictions=float(share * weights.sum() * n_labels),
            n_covered=np.full(n_labels, n_instances),
            mean_sum=clip * total,
            gram=clip**2 * noisy.gram,
        )

    def remove_noise(
        self, statistics: MLCMaStatistics, weights: FloatArray
    ) -> MLCMaStatistics:
        """Return counts that are possible, and a matrix that is a Gram matrix.

        Negative eigenvalues of the matrix are set to 0, and then its negative numbers,
        because predictions are not negative.
        """
        n_instances = max(statistics.n_instances, 1.0)
        n_labels = len(statistics.mean_sum)
        most_predictions = weights.sum() * n_instances * n_labels
        least_predictions = most_predictions / len(weights)
        n_predictions = max(statistics.n_predictions, least_predictions)

        eigenvalues, eigenvectors = linalg.eigh(statistics.gram)
        positive_part = (eigenvectors * np.maximum(eigenvalues, 0)) @ eigenvectors.T
        return MLCMaStatistics(
            n_instances=n_instances,
            n_predictions=min(n_predictions, most_predictions),
            n_covered=np.full(n_labels, n_instances),
            mean_sum=np.clip(statistics.mean_sum, 0, n_instances),
            gram=np.maximum(positive_part, 0),
        )


# Methods by the name that files have for them.
PRIVATE_METHODS: Mapping[
    str, PrivateMethod[MLCMrStatistics] | PrivateMethod[MLCMaStatistics]
] = {"mlcm_r": PrivateMLCMr(), "mlcm_a": PrivateMLCMa()}
