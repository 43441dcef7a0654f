r"""MLCM-r: a random walk over instances and (model, label) groups, for ranking loss.

An instance is connected to group node :math:`j = (k, \ell)` by the score that model `k`
gives it for label :math:`\ell`. With the connection matrix :math:`A` (n × v, v = m·l),
:math:`D_n` and :math:`D_v` the diagonal matrices of its row and column sums, and
:math:`B` (v × l) saying which label each group node stands for,

.. math::

    Q = (I - D_\lambda D_v^{-1} A^\top D_n^{-1} A)^{-1} D_{1-\lambda} B
        \qquad\text{(Eq. cm\_closed\_sol\_q)}

    U = D_n^{-1} A Q \qquad\text{(Eq. cm\_closed\_sol\_u)}

with :math:`D_\lambda = D_v (\alpha I + D_v)^{-1}`. Multiplying the first by
:math:`\alpha I + D_v` gives one symmetric positive definite system, which is what is
solved here:

.. math:: (\alpha I + D_v - A^\top D_n^{-1} A)\, Q = \alpha B

That is a walk that stops at group node `j` with probability :math:`\alpha/(\alpha +
d_j)`, which falls to 0 as more instances are connected to the node. A walk with a
constant `restart` probability `r` is the same system with an anchor of its own for each
node, :math:`\alpha_j = d_j\, r/(1-r)` in place of :math:`\alpha`, and does not depend
on `n`.

A model of weight `w` has edges and anchors `w` times as strong, which is what `w`
copies of it would have. Clusterings are group nodes without an anchor (:math:`\alpha_j
= 0`): a walk passes through them and never stops there.

Gold labels are sources (docs/theory.md explains why instances are not simply fixed to
them): an instance is rewarded for agreeing with its gold labels more than with the
average ones, by :math:`2 \gamma \langle u_i, y_i - \bar y \rangle` in the objective.
:math:`y_i` divides 1 among the gold labels of instance `i`, and :math:`\bar y` is the
mean over gold instances. The matrix does not change:

.. math::

    (\alpha I + D_v - A^\top D_n^{-1} A)\, Q
        = \alpha B + \gamma A^\top D_n^{-1} (Y - \bar Y), \qquad
    \gamma = \alpha / 2

Rows of `Q` and `U` are distributions over labels. An instance without any edge (no
model predicted a label for it) has no row in the equations; it gets the label prior:
the share of all edges that lead to each label.

Xie, Kong, Gao, Fan, Yu: Multilabel Consensus Classification.
"""

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from numpy.typing import DTypeLike

from ..errors import InputError
from ..execution.statistics import Axes, get_present
from ..linalg.block_sums import join_columns, product, ratio, row_sums, scale_rows
from ..linalg.clusters import find_connected
from ..linalg.gram import Gram, as_gram, compute_walk
from ..linalg.random_walk import (
    Distributions,
    get_distribution_column,
    mix_distributions,
    solve_random_walk,
)
from ..linalg.sparse_scores import SparseScores
from ..predictions import BoolArray, FloatArray
from ..predictions.blocks import PredictionBlock
from ..predictions.validation import Weights, fraction, positive
from .base import BaseCombiner, PredictionsLike
from .contributions import Contributions

# gamma / alpha: weight of a gold instance relative to the mean group node.
GOLD = 0.5
# A sum of scores below this is treated as 0: edges would vanish in float32.
_SMALLEST_DEGREE = 1e-30


@dataclass(frozen=True, kw_only=True)
class MLCMrStatistics:
    """Sums over instances; `C` is the membership of instances in clusters."""

    # Aᵀ D_n⁻¹ A, whose row sums are D_v; pieces of D_n^-½ A for large label spaces.
    walk: Annotated[Gram | FloatArray, Axes("m l m l", symmetric=True, least=0)]
    # Aᵀ D_n⁻¹ C; None without clusterings.
    to_clusters: Annotated[FloatArray | None, Axes("ml c", least=0)] = None
    # Cᵀ D_n⁻¹ C; None without clusterings.
    clusters: Annotated[FloatArray | None, Axes("c c", symmetric=True, least=0)] = None
    # Aᵀ D_n⁻¹ Y; None without gold labels.
    to_gold: Annotated[FloatArray | None, Axes("ml l", least=0)] = None
    # Cᵀ D_n⁻¹ Y; None without gold labels.
    clusters_to_gold: Annotated[FloatArray | None, Axes("c l", least=0)] = None


@dataclass(frozen=True, kw_only=True)
class MLCMrSolution:
    """Distributions over labels."""

    # Q, one row per group node; a `RandomWalkMap` for large label spaces.
    groups: Annotated[Distributions, Axes("ml l", least=0, most=1, distribution=True)]
    # Distribution of an instance without edges.
    prior: Annotated[FloatArray, Axes("l", least=0, most=1, distribution=True)]
    # Q, one row per cluster.
    clusters: Annotated[
        FloatArray | None, Axes("c l", least=0, most=1, distribution=True)
    ] = None


class MLCMr(BaseCombiner):
    """MLCM-r: a random walk over instances and (model, label) groups, for ranking loss.

    Parameters
    ----------
    alpha : float, default=2.0
        How strongly each group node is tied to its own label. With many instances the
        walk forgets where it started, and frequent labels get the first rank.
    restart : float, default=None
        Probability of stopping at each step, between 0 and 1, in place of `alpha`. It
        does not depend on the number of instances.
    weights : sequence or mapping, default=None
        Weight of each model, in their order or by name. By default all are equal.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> first = [[1, 1, 0], [0, 0, 1]]
    >>> second = [[1, 0, 0], [0, 0, 1]]
    >>> mlc.MLCMr(alpha=2.0).fit_transform([first, second]).round(2)
    array([[0.67, 0.33, 0.  ],
           [0.  , 0.  , 1.  ]])
    """

    Statistics = MLCMrStatistics
    Solution = MLCMrSolution
    identifier = "mlcm_r"
    name = "MLCM-r"
    takes_many = True
    pairs_labels = True
    additive = False  # one more edge changes the share of all others
    uses_clusterings = True
    comparable = False  # scores of an instance add up to 1
    in_float32 = ("groups", "prior", "clusters")

    def __init__(
        self, alpha: float = 2.0, restart: float | None = None, weights: Weights = None
    ) -> None:
        self.alpha = alpha
        self.restart = restart
        self.weights = weights

    def check(self) -> None:
        """Raise an error for parameters that have no solution."""
        positive(self.alpha, "alpha")
        if self.restart is not None:
            _convert_restart(self.restart)

    def _compute_statistics(self, block: PredictionBlock) -> MLCMrStatistics:
        """Return what each instance contributes to the walk between group nodes."""
        connection_matrix = block.connection_matrix()
        membership = block.membership_matrix()
        degrees = row_sums(connection_matrix) + row_sums(membership)
        inverse_degrees = _invert_degrees(degrees, np.float64)

        rows = scale_rows(connection_matrix, np.sqrt(inverse_degrees))
        statistics = MLCMrStatistics(walk=compute_walk(rows, block))

        if block.n_clusters > 0:
            weighted_membership = scale_rows(membership, inverse_degrees).T
            statistics = replace(
                statistics,
                to_clusters=product(weighted_membership, connection_matrix).T,
                clusters=product(weighted_membership, membership),
            )

        gold = block.gold
        if gold is not None:
            # Each gold instance divides 1 among its labels.
            gold_labels = np.nan_to_num(gold.answers)
            n_gold_labels = gold_labels.sum(axis=1, keepdims=True)
            shares = ratio(gold_labels, n_gold_labels, 0.0)
            shares = shares * inverse_degrees[gold.at, np.newaxis]
            statistics = replace(
                statistics,
                to_gold=product(connection_matrix[gold.at].T, shares),
                clusters_to_gold=product(membership[gold.at].T, shares),
            )
        return statistics

    def _solve(self, statistics: MLCMrStatistics) -> MLCMrSolution:
        """Solve Eq. cm_closed_sol_q as one symmetric positive definite system."""
        n_models, n_labels = statistics.walk.shape[:2]
        n_groups = n_models * n_labels
        has_clusters = statistics.clusters is not None
        walk = as_gram(statistics.walk)
        if has_clusters:
            walk = as_gram(_join_clusters(statistics, n_groups))

        # D_v, and the share of all edges that lead to each label.
        degrees = walk.sum_rows()
        edges = degrees[:n_groups].reshape(n_models, n_labels).sum(axis=0)
        prior = ratio(edges, edges.sum(), 1 / n_labels)

        # α: each group node is tied to its own label.
        anchors = self._compute_anchors(degrees[:n_groups], n_models, n_labels)
        source = self._compute_source(statistics, anchors, n_models, n_labels)
        if not has_clusters:
            groups = solve_random_walk(walk, anchors, n_labels, source)
            return MLCMrSolution(groups=groups, prior=prior)

        # A cluster without a path to any label is tied to the prior.
        has_label = np.asarray(get_present(statistics.to_clusters).any(axis=0))
        is_isolated = ~find_connected(has_label, get_present(statistics.clusters))
        walk = as_gram(_disconnect(np.asarray(walk), n_groups, is_isolated))
        tied_to_prior = is_isolated[:, np.newaxis] * prior
        zeros = np.zeros((n_groups, n_labels))
        source = _add(source, np.concatenate([zeros, tied_to_prior]))
        distributions = np.asarray(
            solve_random_walk(
                walk, anchors, n_labels, source, anchors_without_label=is_isolated
            )
        )
        return MLCMrSolution(
            groups=distributions[:n_groups],
            prior=prior,
            clusters=distributions[n_groups:],
        )

    def _compute_source(
        self,
        statistics: MLCMrStatistics,
        anchors: FloatArray,
        n_models: int,
        n_labels: int,
    ) -> FloatArray | None:
        """Return what gold labels add to the right-hand side, or None."""
        if statistics.to_gold is None:
            return None
        total_weight = n_labels * self._get_weights(n_models).sum()
        gamma = GOLD * anchors.sum() / total_weight
        return np.asarray(gamma * _compute_gold_source(statistics))

    def _get_weights(self, n_models: int) -> FloatArray:
        """Return the models' weights (m,)."""
        if self.weights_ is None:
            return np.ones(n_models)
        return self.weights_

    def _compute_anchors(
        self, degrees: FloatArray, n_models: int, n_labels: int
    ) -> FloatArray:
        """Return alpha of each group node, times the weight of its model."""
        if self.restart is None:
            anchors = self.alpha * np.repeat(self._get_weights(n_models), n_labels)
        else:
            anchors = degrees * _convert_restart(self.restart)

        # A node without edges keeps its own label for every alpha.
        return np.where(anchors > 1e-300, anchors, 1.0)

    @staticmethod
    def _apply(
        block: PredictionBlock, solution: MLCMrSolution
    ) -> FloatArray | SparseScores:
        """Mix the distributions of the connected group nodes; Eq. cm_closed_sol_u."""
        dtype = solution.prior.dtype
        edges = block.connection_matrix(dtype)
        distributions = solution.groups
        if block.n_clusters > 0:
            # Clusters are further group nodes.
            edges = join_columns(edges, block.membership_matrix().astype(dtype))
            clusters = np.asarray(solution.clusters)
            distributions = np.concatenate([distributions, clusters])

        inverse_degrees = _invert_degrees(row_sums(edges), dtype)
        edges = scale_rows(edges, inverse_degrees)
        return mix_distributions(edges, distributions, solution.prior)

    @staticmethod
    def _contributions(
        block: PredictionBlock, solution: MLCMrSolution, label: int
    ) -> Contributions:
        """Return the share of each edge in the mixture of one instance."""
        scores, _ = block.get_instance(0)
        is_member = block.membership_matrix()[:1].toarray()[0]
        degree = scores.sum() + is_member.sum()
        if degree <= _SMALLEST_DEGREE:
            return Contributions(
                baseline=float(solution.prior[label]),
                predictions=np.zeros_like(scores),
            )

        clusters = None
        if block.n_clusters > 0:
            clusters = is_member * np.asarray(solution.clusters)[:, label] / degree

        probabilities = get_distribution_column(solution.groups, label, scores.size)
        shares = scores * probabilities.reshape(scores.shape) / degree
        return Contributions(baseline=0.0, predictions=shares, clusters=clusters)


def mlcm_r(
    predictions: PredictionsLike,
    alpha: float = 2.0,
    restart: float | None = None,
    weights: Weights = None,
) -> FloatArray:
    """Return the consensus scores of MLCM-r.

    Parameters
    ----------
    predictions : Predictions or array-like of shape (m, n, l)
        `Predictions`, or anything that its constructor takes.
    alpha : float, default=2.0
        How strongly each group node is tied to its own label.
    restart : float, default=None
        Probability of stopping at each step, between 0 and 1, in place of `alpha`.
    weights : sequence or mapping, default=None
        Weight of each model, in their order or by name. By default all are equal.

    Returns
    -------
    ndarray of shape (n, l)
        Higher scores are more relevant. The scores of an instance add up to 1.
    """
    combiner = MLCMr(alpha=alpha, restart=restart, weights=weights)
    return combiner.fit_transform(predictions)


def _join_clusters(statistics: MLCMrStatistics, n_groups: int) -> FloatArray:
    """Return the walk between group nodes and clusters as one matrix."""
    between_groups = np.asarray(statistics.walk).reshape(n_groups, n_groups)
    to_clusters = get_present(statistics.to_clusters)
    between_clusters = get_present(statistics.clusters)
    return np.block([[between_groups, to_clusters], [to_clusters.T, between_clusters]])


def _disconnect(walk: FloatArray, n_groups: int, is_isolated: BoolArray) -> FloatArray:
    """Return the walk without the edges of isolated clusters."""
    nodes = n_groups + np.flatnonzero(is_isolated)
    walk[nodes] = 0
    walk[:, nodes] = 0
    return walk


def _compute_gold_source(statistics: MLCMrStatistics) -> FloatArray:
    """Return Aᵀ D_n⁻¹ (Y - Ȳ), with the rows of clusters below those of groups."""
    to_gold = np.concatenate([statistics.to_gold, statistics.clusters_to_gold])
    n_labels = to_gold.shape[1]
    mean_share = ratio(to_gold.sum(axis=0), np.full(n_labels, to_gold.sum()), 0.0)
    return np.asarray(to_gold - np.outer(to_gold.sum(axis=1), mean_share))


def _add(source: FloatArray | None, more: FloatArray) -> FloatArray:
    """Add two right-hand sides, of which the first may be absent."""
    if source is None:
        return more
    return source + more


def _convert_restart(restart: float) -> float:
    """Return alpha / degree for which each step stops with probability `restart`."""
    probability = fraction(restart, "restart")
    if not 0 < probability < 1:
        raise InputError(
            where="restart",
            found=repr(restart),
            expected="a number strictly between 0 and 1",
        )
    return probability / (1 - probability)


def _invert_degrees(degrees: FloatArray, dtype: DTypeLike) -> FloatArray:
    """Return 1 / degree, or 0 for an instance without edges."""
    is_connected = degrees > _SMALLEST_DEGREE
    zero = np.zeros((), dtype=dtype)
    return ratio(np.ones(len(degrees)), np.where(is_connected, degrees, 0), zero)
