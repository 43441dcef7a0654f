r"""Statistics in a form whose sensitivity is known: how much one instance can add to them, in Euclidean norm.

Each method's sums are a symmetric matrix and, beside it, some counts. A quarter of the
counts goes into the released vector, so that they cost the matrix little noise.
docs/privacy.md has the proofs.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from ...combiners.mlcm_a import MLCMaStatistics
from ...combiners.mlcm_r import MLCMrStatistics
from ...linalg.block_sums import (
    FloatArray,
    column_sums,
    connections,
    gram,
    mean,
    ratio,
    row_sums,
    scaled,
    votes,
)
from ...predictions import Predictions
from .noise import on_grid

_PART = 1 / 4


class PrivateSums(NamedTuple):
    """Sums over instances; each adds a matrix of norm at most 1, and at most 3 as the squared norm of the counts."""

    counts: FloatArray  # (k,)
    gram: FloatArray  # (v, v)


def to_vector(sums: PrivateSums) -> FloatArray:
    """Write sums as a vector of the same norm: the matrix's upper triangle, √2 times beside the diagonal.

    Examples
    --------
    >>> to_vector(PrivateSums(np.array([8.0]), np.array([[3.0, 1.0], [1.0, 2.0]]))).round(3)
    array([2.   , 3.   , 1.414, 2.   ])
    """
    rows, columns = np.triu_indices(len(sums.gram))
    return np.concatenate(
        [
            _PART * sums.counts,
            sums.gram[rows, columns] * np.where(rows == columns, 1, math.sqrt(2)),
        ]
    )


def from_vector(vector: FloatArray, size: int) -> PrivateSums:
    """Undo `to_vector`, given the size v of the matrix.

    Examples
    --------
    >>> from_vector(np.array([2.0, 3.0, 2**0.5, 2.0]), 2).gram
    array([[3., 1.], [1., 2.]])
    """
    rows, columns = np.triu_indices(size)
    counts, upper = np.split(vector, [len(vector) - len(rows)])
    matrix = np.empty((size, size))
    matrix[rows, columns] = matrix[columns, rows] = upper / np.where(
        rows == columns, 1, math.sqrt(2)
    )
    return PrivateSums(counts / _PART, matrix)


class PrivateMLCMr:
    r"""MLCM-r's walk.

    An instance with edges :math:`a \in [0, w]^v`, where `w` is the largest weight of a
    model (1 without weights), adds :math:`a a^\top / |a|_1` to it. Divided by `w` that
    is :math:`b b^\top` with :math:`b = a/\sqrt{w |a|_1}`, of Frobenius norm
    :math:`\|b\|_2^2 = \|a\|_2^2/(w |a|_1) \le 1`, since :math:`a_j^2 \le w a_j`.
    Decisions reach 1.
    """

    sensitivity = 1.0
    clips = False

    def sums(self, weights: FloatArray, clip: float, block: Predictions) -> PrivateSums:
        """Add up what each instance contributes in units of the largest weight, rounded down to where sums are exact.

        Parameters
        ----------
        weights
            How much each model counts (m,).
        clip
            Not needed here.
        block
            Predictions of some instances.
        """
        A = connections(block.weighted(weights))
        b = on_grid(
            scaled(
                A, ratio(np.ones(len(block)), np.sqrt(weights.max() * row_sums(A)), 0.0)
            )
        )
        return PrivateSums(np.empty(0), gram(b))

    def statistics(
        self, noisy: PrivateSums, weights: FloatArray, clip: float
    ) -> MLCMrStatistics:
        """Make statistics of noisy sums, given how much each model counts (m,)."""
        m = len(weights)
        v = len(noisy.gram)
        return MLCMrStatistics(weights.max() * noisy.gram.reshape(m, v // m, m, v // m))

    def cleared(
        self, statistics: MLCMrStatistics, weights: FloatArray
    ) -> MLCMrStatistics:
        """Set numbers below 0, which only noise can make, to 0.

        A symmetric matrix without them is all that the walk needs: it is a graph, its
        Laplacian plus the anchors is positive definite, and rows of `Q` are
        distributions.
        """
        return MLCMrStatistics(np.maximum(statistics.walk, 0))


class PrivateMLCMa:
    r"""MLCM-a's products of means.

    The mean prediction :math:`\bar y` of an instance is scaled down to a norm of at
    most `C` (`clip`); :math:`z` is the result in units of `C`, of norm at most 1.
    Counts are the number of instances, the share `s` of cells that were spoken about,
    and `z`:

    .. math:: \left(\tfrac14,\; \tfrac14 s,\; \tfrac14 z,\; z z^\top\right), \qquad
        \|\cdot\|_2 \le \sqrt{3/16 + \|z\|_2^4} \le \sqrt{19}/4 .

    A cell about which no model spoke counts as 0.
    """

    sensitivity = math.sqrt(1 + 3 * _PART**2)
    clips = True

    def sums(self, weights: FloatArray, clip: float, block: Predictions) -> PrivateSums:
        """Add up the products of the clipped mean predictions, rounded down to where sums are exact.

        Parameters
        ----------
        weights
            How much each model counts (m,).
        clip
            The norm that means are scaled down to.
        block
            Predictions of some instances.
        """
        _, n, l = block.shape
        said = votes(block.weighted(weights))
        average = mean(said, np.zeros(l))
        norms = np.sqrt(row_sums(average * average))
        z = on_grid(scaled(average, 1 / np.maximum(norms, clip)))
        spoken = on_grid(
            np.broadcast_to(said.heard, (n, l)).mean(axis=1) / weights.sum()
        )
        return PrivateSums(np.array([n, spoken.sum(), *column_sums(z)]), gram(z))

    def statistics(
        self, noisy: PrivateSums, weights: FloatArray, clip: float
    ) -> MLCMaStatistics:
        """Make statistics of noisy sums, given how much each model counts (m,)."""
        n = noisy.counts[0]
        share = noisy.counts[1]
        total = noisy.counts[2:]
        l = len(total)
        spoken = share * weights.sum() * l
        return MLCMaStatistics(
            float(n), float(spoken), np.full(l, n), clip * total, clip**2 * noisy.gram
        )

    def cleared(
        self, statistics: MLCMaStatistics, weights: FloatArray
    ) -> MLCMaStatistics:
        """Give the sums back what noise took from them: counts that are possible, and a Gram matrix that is one.

        Its negative eigenvalues are set to 0, and then its negative numbers, since
        predictions are not negative.
        """
        n = max(statistics.n_instances, 1.0)
        l = len(statistics.total)
        most = weights.sum() * n * l
        spoken = min(max(statistics.spoken, most / len(weights)), most)
        values, vectors = linalg.eigh(statistics.known_gram)
        products = np.maximum((vectors * np.maximum(values, 0)) @ vectors.T, 0)
        return MLCMaStatistics(
            n, spoken, np.full(l, n), np.clip(statistics.total, 0, n), products
        )


# Methods by the name that files have for them.
PRIVATE: dict[str, Any] = {"MLCM-r": PrivateMLCMr(), "MLCM-a": PrivateMLCMa()}
