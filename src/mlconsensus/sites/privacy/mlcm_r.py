r"""MLCM-r's statistics in private.

An instance with edges :math:`a \in [0, w]^v`, where `w` is the largest weight of a model (1 without weights), adds
:math:`a a^\top / |a|_1` to the walk. Divided by `w` that is :math:`b b^\top` with :math:`b = a/\sqrt{w |a|_1}`, of
Frobenius norm :math:`\|b\|_2^2 = \|a\|_2^2/(w |a|_1) \le 1`, since :math:`a_j^2 \le w a_j`. Decisions reach 1 exactly.
"""

from __future__ import annotations

import numpy as np

from ...arithmetic.products import FloatArray, connections, gram, ratio, row_sums, scaled
from ...combiners.mlcm_r import Statistics
from ...estimators import Combiner
from ...panel.predictions import Predictions
from .noise import flat, on_grid, unflat

SENSITIVITY = 1.0


def sums(block: Predictions, clip: float) -> Statistics:
    """Add up what each instance contributes in units of the largest weight, rounded down to where sums are exact."""
    m, _, l = block.shape
    A = connections(block)
    b = on_grid(scaled(A, ratio(np.ones(len(block)), np.sqrt(_largest(block.weights) * row_sums(A)), 0.0)))
    return Statistics(gram(b).reshape(m, l, m, l))


def to_vector(statistics: Statistics) -> FloatArray:
    """Write the sums as a vector to which one instance adds no more than the sensitivity."""
    m, l = statistics.walk.shape[:2]
    return flat(np.asarray(statistics.walk).reshape(m * l, m * l))


def from_vector(vector: FloatArray, m: int, l: int, weights: FloatArray | None, clip: float) -> Statistics:
    """Make statistics of the noisy vector."""
    return Statistics(_largest(weights) * unflat(vector, m * l).reshape(m, l, m, l))


def cleared(combiner: Combiner, statistics: Statistics) -> Statistics:
    """Set numbers below 0, which only noise can make, to 0.

    A symmetric matrix without them is all that the walk needs: it is a graph, its Laplacian plus the anchors is
    positive definite, and rows of `Q` are distributions.
    """
    return Statistics(np.maximum(statistics.walk, 0))


def _largest(weights: FloatArray | None) -> float:
    return 1.0 if weights is None else float(weights.max())
