r"""MLCM-r: a random walk over one graph of instances and (model, label) group nodes, for ranking loss.

An instance is connected to group node :math:`j = (k, \ell)` by the score that model `k` gives it for label
:math:`\ell`. With the connection matrix :math:`A` (n × v, v = m·l), :math:`D_n` and :math:`D_v` the diagonal
matrices of its row and column sums, and :math:`B` (v × l) saying which label each group node stands for,

.. math::

    Q = (I - D_\lambda D_v^{-1} A^\top D_n^{-1} A)^{-1} D_{1-\lambda} B \qquad\text{(Eq. cm\_closed\_sol\_q)}

    U = D_n^{-1} A Q \qquad\text{(Eq. cm\_closed\_sol\_u)}

with :math:`D_\lambda = D_v (\alpha I + D_v)^{-1}`. Multiplying the first by :math:`\alpha I + D_v` gives one symmetric
positive definite system, which is what is solved here:

.. math:: (\alpha I + D_v - A^\top D_n^{-1} A)\, Q = \alpha B

Rows of `Q` and `U` are distributions over labels. An instance without any edge (no model predicted a label for it) has
no row in the equations; it gets the label prior: the share of all edges that lead to each label.

Xie, Kong, Gao, Fan, Yu: Multilabel Consensus Classification.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from ..engines.local import gather, spread
from ..kernels import FloatArray, connections, gram, product, ratio, row_sums, scaled
from ..parameters import positive
from ..predictions import Predictions, as_predictions
from .base import Combiner


class Statistics(NamedTuple):
    """Sums over instances."""

    walk: Any  # (m, l, m, l) Aᵀ D_n⁻¹ A; its row sums are D_v


class Solution(NamedTuple):
    """The distributions over labels of all that can be walked from."""

    groups: FloatArray  # (m·l, l) Q, of each group node
    prior: FloatArray  # (l,) of an instance without edges


def statistics(block: Predictions) -> Statistics:
    """Add up what each instance contributes to the walk between group nodes."""
    m, _, l = block.shape
    A = connections(block)
    walk = gram(A, ratio(np.ones(len(block)), row_sums(A), 0.0))
    return Statistics(walk.reshape(m, l, m, l))


def solve(statistics: Statistics, alpha: float = 2.0) -> Solution:
    """Solve Eq. cm_closed_sol_q as one symmetric positive definite system."""
    alpha = positive(alpha, "alpha")
    m, l = statistics.walk.shape[:2]
    walk = statistics.walk.reshape(m * l, m * l)
    degrees = walk.sum(axis=1)  # the diagonal of D_v
    system = np.diag(alpha + degrees) - walk
    anchors = np.tile(np.eye(l), (m, 1))  # B
    groups = linalg.solve(system, alpha * anchors, assume_a="pos", overwrite_a=True, overwrite_b=True)
    edges = degrees.reshape(m, l).sum(axis=0)
    return Solution(groups, ratio(edges, edges.sum(), 1 / l))


def apply(block: Predictions, solution: Solution) -> FloatArray:
    """Mix the distributions of the group nodes that each instance is connected to; Eq. cm_closed_sol_u."""
    A = connections(block)
    degrees = row_sums(A)
    scores = product(scaled(A, ratio(np.ones(len(block)), degrees, 0.0)), solution.groups)
    scores[degrees == 0] = solution.prior
    return scores


def mlcm_r(predictions: Any, alpha: float = 2.0) -> FloatArray:
    """Score labels by a random walk from what the models predicted; rows sum to 1.

    Parameters
    ----------
    predictions
        `Predictions`, or anything that its constructor takes.
    alpha
        How strongly each group node is held to its own label: a walk stops at group node `j` with probability
        ``alpha / (alpha + d_j)``, where ``d_j`` is the weight of its edges.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.mlcm_r([[[1, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 0, 1]]]).round(2)
    array([[0.67, 0.33, 0.  ],
           [0.  , 0.  , 1.  ]])
    """
    panel = as_predictions(predictions)
    solution = solve(gather(panel, statistics), alpha)
    return spread(panel, lambda block: apply(block, solution))


class MLCMr(Combiner):
    """MLCM-r: a random walk over instances and (model, label) groups, for ranking loss.

    Parameters
    ----------
    alpha
        How strongly each group node is held to its own label; positive.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.MLCMr(alpha=2.0).fit_transform([[[1, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 0, 1]]]).round(2)
    array([[0.67, 0.33, 0.  ],
           [0.  , 0.  , 1.  ]])
    """

    def __init__(self, alpha: float = 2.0) -> None:
        self.alpha = alpha

    def _statistics(self, block: Predictions) -> Statistics:
        return statistics(block)

    def _solve(self, statistics: Statistics) -> Solution:
        return solve(statistics, self.alpha)

    def _apply(self, block: Predictions, solution: Solution) -> FloatArray:
        return apply(block, solution)
