r"""MLCM-a's statistics in private.

The mean prediction :math:`\bar y` of an instance is scaled down to a norm of at most `C` (`clip`); :math:`z` is the
result in units of `C`, of norm at most 1. With it go the number of instances and the share `s` of cells that were
spoken about, all in one vector, in which the smaller parts are scaled so that they cost the Gram matrix little noise:

.. math:: \left(\tfrac14,\; \tfrac14 s,\; \tfrac14 z,\; z z^\top\right), \qquad
    \|\cdot\|_2 \le \sqrt{3/16 + \|z\|_2^4} \le \sqrt{19}/4 .

A cell about which no model spoke counts as 0.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import linalg

from ...arithmetic.products import FloatArray, column_sums, gram, mean, row_sums, scaled, votes
from ...combiners.mlcm_a import Statistics
from ...estimators import Combiner
from ...panel.predictions import Predictions
from .noise import flat, on_grid, unflat

_PART = 1 / 4
SENSITIVITY = math.sqrt(1 + 3 * _PART**2)


class Sums(NamedTuple):
    """Sums over instances, in units of the clip."""

    n_instances: float  # ()
    spoken: float  # () of the shares of the models' weight that spoke
    total: FloatArray  # (l,) Σ z
    gram: FloatArray  # (l, l) Σ zᵀz


def sums(block: Predictions, clip: float) -> Sums:
    """Add up the products of the clipped mean predictions, rounded down to where sums are exact."""
    _, n, l = block.shape
    said = votes(block)
    average = mean(said, np.zeros(l))
    norms = np.sqrt(row_sums(average * average))
    z = on_grid(scaled(average, 1 / np.maximum(norms, clip)))
    spoken = on_grid(np.broadcast_to(said.heard, (n, l)).mean(axis=1) / _weight(block.weights, len(block.models)))
    return Sums(float(n), float(spoken.sum()), column_sums(z), gram(z))


def to_vector(sums: Sums) -> FloatArray:
    """Write the sums as a vector to which one instance adds no more than the sensitivity."""
    smaller = np.array([sums.n_instances, sums.spoken, *sums.total])
    return np.concatenate([_PART * smaller, flat(sums.gram)])


def from_vector(vector: FloatArray, m: int, l: int, weights: FloatArray | None, clip: float) -> Statistics:
    """Make statistics of the noisy vector."""
    n, share, *total = (vector[: l + 2] / _PART).tolist()
    products, none = clip**2 * unflat(vector[l + 2 :], l), np.zeros((l, l))
    spoken = share * _weight(weights, m) * l
    return Statistics(n, spoken, np.full(l, n), clip * np.array(total), products, none, none)


def cleared(combiner: Combiner, statistics: Statistics) -> Statistics:
    """Give the sums back what noise took from them: counts that are possible, and a Gram matrix that is one.

    Its negative eigenvalues are set to 0, and then its negative numbers, since predictions are not negative.
    """
    l, m = len(combiner.labels_), len(combiner.models_)
    n = max(statistics.n_instances, 1.0)
    most = _weight(combiner.weights_, m) * n * l
    values, vectors = linalg.eigh(statistics.known_gram)
    return Statistics(
        n,
        min(max(statistics.spoken, most / m), most),
        np.full(l, n),
        np.clip(statistics.total, 0, n),
        np.maximum((vectors * np.maximum(values, 0)) @ vectors.T, 0),
        statistics.cross_gram,
        statistics.unknown_gram,
    )


def _weight(weights: FloatArray | None, m: int) -> float:
    return float(m) if weights is None else float(weights.sum())
