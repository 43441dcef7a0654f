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

That is a walk that stops at group node `j` with probability :math:`\alpha/(\alpha + d_j)`, which falls to 0 as more
instances are connected to the node. A walk with a constant `restart` probability `r` is the same system with an anchor
of its own for each node, :math:`\alpha_j = d_j\, r/(1-r)` in place of :math:`\alpha`, and does not depend on `n`.

Rows of `Q` and `U` are distributions over labels. An instance without any edge (no model predicted a label for it) has
no row in the equations; it gets the label prior: the share of all edges that lead to each label.

Xie, Kong, Gao, Fan, Yu: Multilabel Consensus Classification.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from ..engines.local import gather, spread
from ..errors import InputError
from ..kernels import FloatArray, connections, gram, product, ratio, row_sums, scaled
from ..parameters import fraction, positive
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


def solve(statistics: Statistics, alpha: float = 2.0, restart: float | None = None) -> Solution:
    """Solve Eq. cm_closed_sol_q as one symmetric positive definite system."""
    m, l = statistics.walk.shape[:2]
    walk = statistics.walk.reshape(m * l, m * l)
    degrees = walk.sum(axis=1)  # the diagonal of D_v
    anchors = np.full(m * l, positive(alpha, "alpha")) if restart is None else _anchors(degrees, restart)
    system = np.diag(anchors + degrees) - walk
    own_label = np.tile(np.eye(l), (m, 1))  # B
    groups = linalg.solve(system, anchors[:, None] * own_label, assume_a="pos", overwrite_a=True, overwrite_b=True)
    edges = degrees.reshape(m, l).sum(axis=0)
    return Solution(groups, ratio(edges, edges.sum(), 1 / l))


def _anchors(degrees: FloatArray, restart: float) -> FloatArray:
    """Find the α of each node that makes its stopping probability α/(α + d) the constant `restart`."""
    stop = fraction(restart, "restart")
    if not 0 < stop < 1:
        raise InputError(f"restart: found {restart!r}, expected a number strictly between 0 and 1")
    return np.where(degrees > 0, degrees * stop / (1 - stop), 1.0)  # a node without edges stays at home whatever α is


def apply(block: Predictions, solution: Solution) -> FloatArray:
    """Mix the distributions of the group nodes that each instance is connected to; Eq. cm_closed_sol_u."""
    A = connections(block)
    degrees = row_sums(A)
    scores = product(scaled(A, ratio(np.ones(len(block)), degrees, 0.0)), solution.groups)
    scores[degrees == 0] = solution.prior
    return scores


def mlcm_r(predictions: Any, alpha: float = 2.0, restart: float | None = None) -> FloatArray:
    """Score labels by a random walk from what the models predicted; rows sum to 1.

    Parameters
    ----------
    predictions
        `Predictions`, or anything that its constructor takes.
    alpha
        How strongly each group node is held to its own label: a walk stops at group node `j` with probability
        ``alpha / (alpha + d_j)``, where ``d_j`` is the weight of its edges.
    restart
        Stop with this probability at every node, in place of `alpha`.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.mlcm_r([[[1, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 0, 1]]]).round(2)
    array([[0.67, 0.33, 0.  ],
           [0.  , 0.  , 1.  ]])
    """
    panel = as_predictions(predictions)
    solution = solve(gather(panel, statistics), alpha, restart)
    return spread(panel, lambda block: apply(block, solution))


class MLCMr(Combiner):
    """MLCM-r: a random walk over instances and (model, label) groups, for ranking loss.

    Parameters
    ----------
    alpha
        How strongly each group node is held to its own label; positive. With many instances the walk forgets where it
        began, and popular labels win the top place.
    restart
        Probability strictly between 0 and 1 of stopping at each step, in place of `alpha`; does not depend on
        how many instances there are.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.MLCMr(alpha=2.0).fit_transform([[[1, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 0, 1]]]).round(2)
    array([[0.67, 0.33, 0.  ],
           [0.  , 0.  , 1.  ]])
    """

    def __init__(self, alpha: float = 2.0, restart: float | None = None) -> None:
        self.alpha = alpha
        self.restart = restart

    def _check_parameters(self) -> None:
        positive(self.alpha, "alpha")
        if self.restart is not None:
            _anchors(np.ones(1), self.restart)

    def _statistics(self, block: Predictions) -> Statistics:
        return statistics(block)

    def _solve(self, statistics: Statistics) -> Solution:
        return solve(statistics, self.alpha, self.restart)

    def _apply(self, block: Predictions, solution: Solution) -> FloatArray:
        return apply(block, solution)
