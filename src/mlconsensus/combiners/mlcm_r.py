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

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np
from scipy import sparse

from ..errors import InputError
from ..execution.statistics import Axes
from ..linalg.block_sums import (
    FloatArray,
    connections,
    product,
    ratio,
    row_sums,
    scaled,
)
from ..linalg.clusters import memberships, reaching
from ..linalg.gram import Gram, as_gram
from ..linalg.random_walk import RandomWalkMap, solved, walked
from ..linalg.sparse_scores import MOST_NAMED, Said, SparseScores, best
from ..predictions import BoolArray, IntArray, Predictions
from ..predictions.validation import Weights, fraction, positive
from .base import BaseCombiner, PredictionsLike
from .contributions import Contributions, statements

# gamma / alpha: weight of a gold instance relative to the mean group node.
GOLD = 0.5
# A sum of scores below this is treated as 0: edges would vanish in float32.
_SMALLEST_DEGREE = 1e-30


class MLCMrStatistics(NamedTuple):
    """Sums over instances; `C` is the membership of instances in clusters."""

    # Aᵀ D_n⁻¹ A, whose row sums are D_v; pieces of D_n^-½ A for large label spaces.
    walk: Annotated[Any, Axes("m l m l", symmetric=True, least=0)]
    # Aᵀ D_n⁻¹ C; 0 without clusterings.
    to_clusters: Annotated[Any, Axes("ml c", least=0)] = 0
    # Cᵀ D_n⁻¹ C; 0 without clusterings.
    clusters: Annotated[Any, Axes("c c", symmetric=True, least=0)] = 0
    # Aᵀ D_n⁻¹ Y; 0 without gold labels.
    to_gold: Annotated[Any, Axes("ml l", least=0)] = 0
    # Cᵀ D_n⁻¹ Y; 0 without gold labels.
    clusters_to_gold: Annotated[Any, Axes("c l", least=0)] = 0


class MLCMrSolution(NamedTuple):
    """Distributions over labels."""

    # Q, one row per group node; a `RandomWalkMap` for large label spaces.
    groups: Annotated[Any, Axes("ml l", least=0, most=1, distribution=True)]
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

    def _compute_statistics(self, block: Predictions) -> MLCMrStatistics:
        """Return what each instance contributes to the walk between group nodes."""
        n_models, _, n_labels = block.shape
        if block.many:
            return _compute_sparse_statistics(block)

        # The walk between group nodes.
        connection_matrix = connections(block)
        membership = memberships(block)
        degrees = row_sums(connection_matrix) + row_sums(membership)
        inverse_degrees = _invert_degrees(degrees, np.float64)
        rows = scaled(connection_matrix, np.sqrt(inverse_degrees))
        shape = (n_models, n_labels, n_models, n_labels)
        statistics = MLCMrStatistics(walk=Gram.of(rows, shape))

        if block.clusters:
            weighted_membership = scaled(membership, inverse_degrees).T
            statistics = statistics._replace(
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
            statistics = statistics._replace(
                to_gold=product(connection_matrix[gold.at].T, shares),
                clusters_to_gold=product(membership[gold.at].T, shares),
            )
        return statistics

    def _solve(self, statistics: MLCMrStatistics) -> MLCMrSolution:
        """Solve Eq. cm_closed_sol_q as one symmetric positive definite system."""
        if isinstance(statistics.walk, tuple):
            return self._solve_large_label_space(statistics.walk)

        n_models, n_labels = statistics.walk.shape[:2]
        n_groups = n_models * n_labels
        has_clusters = np.ndim(statistics.clusters) > 0
        if has_clusters:
            walk = as_gram(_join_clusters(statistics, n_groups))
        else:
            walk = as_gram(statistics.walk)

        # D_v, and the share of all edges that lead to each label.
        degrees = walk.sums()
        edges = degrees[:n_groups].reshape(n_models, n_labels).sum(axis=0)
        prior = ratio(edges, edges.sum(), 1 / n_labels)

        # α B: each group node is tied to its own label.
        anchors = self._compute_anchors(
            np.arange(n_groups), degrees[:n_groups], n_models, n_labels
        )
        group_labels = np.tile(np.eye(n_labels), (n_models, 1))
        right_side = anchors[:, np.newaxis] * group_labels

        group_anchors = anchors
        if has_clusters:
            # A cluster without a path to any label is tied to the prior.
            has_label = statistics.to_clusters.any(axis=0)
            is_isolated = ~reaching(has_label, statistics.clusters)
            walk = as_gram(_disconnect(np.asarray(walk), n_groups, is_isolated))
            anchors = np.append(anchors, is_isolated)
            right_side = np.concatenate(
                [right_side, is_isolated[:, np.newaxis] * prior]
            )

        if np.ndim(statistics.to_gold) > 0:
            total_weight = n_labels * self._get_weights(n_models).sum()
            gamma = GOLD * group_anchors.sum() / total_weight
            right_side += gamma * _compute_gold_source(statistics)

        # Rows are distributions; rounding errors are largest in their sums.
        distributions = np.maximum(solved(walk, anchors, right_side), 0)
        distributions /= distributions.sum(axis=1, keepdims=True)
        clusters = None
        if has_clusters:
            clusters = distributions[n_groups:]
        return MLCMrSolution(distributions[:n_groups], prior, clusters)

    def _solve_large_label_space(self, walk: tuple[Any, ...]) -> MLCMrSolution:
        """Return an approximate map: exact for frequent labels only."""
        n_models = len(walk[0])
        n_labels = walk[0][0].shape[1]
        columns = [sparse.vstack(pieces) for pieces in zip(*walk, strict=True)]
        rows = sparse.hstack(columns, format="csr")

        def compute_anchors(nodes: IntArray, degrees: FloatArray) -> FloatArray:
            return self._compute_anchors(nodes, degrees, n_models, n_labels)

        groups = walked(rows, n_labels, compute_anchors)
        return MLCMrSolution(groups, groups.usual)

    def _get_weights(self, n_models: int) -> FloatArray:
        """Return the models' weights (m,)."""
        if self.weights_ is None:
            return np.ones(n_models)
        return self.weights_

    def _compute_anchors(
        self, nodes: IntArray, degrees: FloatArray, n_models: int, n_labels: int
    ) -> FloatArray:
        """Return alpha of each group node, times the weight of its model."""
        if self.restart is None:
            weights = self._get_weights(n_models)
            anchors = self.alpha * weights[nodes // n_labels]
        else:
            anchors = degrees * _convert_restart(self.restart)

        # A node without edges keeps its own label for every alpha.
        return np.where(anchors > 1e-300, anchors, 1.0)

    @staticmethod
    def _apply(block: Predictions, solution: MLCMrSolution) -> Any:
        """Mix the distributions of the connected group nodes; Eq. cm_closed_sol_u."""
        if isinstance(solution.groups, RandomWalkMap):
            edges = sparse.hstack(_compute_edges(block, np.asarray), format="csr")
            return _apply_sparse(edges, solution.groups)

        dtype = solution.groups.dtype
        connection_matrix = connections(block, dtype)
        membership = memberships(block)
        degrees = row_sums(connection_matrix) + row_sums(membership)
        inverse_degrees = _invert_degrees(degrees, dtype.type)

        scores = product(scaled(connection_matrix, inverse_degrees), solution.groups)
        if block.clusters:
            clusters = np.asarray(solution.clusters)
            scores += product(scaled(membership, inverse_degrees), clusters)

        scores[inverse_degrees == 0] = solution.prior
        return np.clip(scores, 0, 1, out=scores)

    @staticmethod
    def _contributions(
        block: Predictions, solution: MLCMrSolution, label: int
    ) -> Contributions:
        """Return the share of each edge in the mixture of one instance."""
        scores, _ = statements(block)
        is_member = memberships(block[:1]).toarray()[0]
        degree = scores.sum() + is_member.sum()
        if degree <= _SMALLEST_DEGREE:
            return Contributions(float(solution.prior[label]), np.zeros_like(scores))

        clusters = None
        if block.clusters:
            clusters = is_member * np.asarray(solution.clusters)[:, label] / degree

        if isinstance(solution.groups, RandomWalkMap):
            probabilities = solution.groups.column(label, scores.size)
        else:
            probabilities = solution.groups[:, label]

        shares = scores * probabilities.reshape(scores.shape) / degree
        return Contributions(0.0, shares, clusters=clusters)


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
    return np.block(
        [
            [between_groups, statistics.to_clusters],
            [statistics.to_clusters.T, statistics.clusters],
        ]
    )


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


def _invert_degrees(degrees: FloatArray, dtype: Any) -> FloatArray:
    """Return 1 / degree, or 0 for an instance without edges."""
    is_connected = degrees > _SMALLEST_DEGREE
    return ratio(np.ones(len(degrees)), np.where(is_connected, degrees, 0), dtype(0))


def _compute_sparse_statistics(block: Predictions) -> MLCMrStatistics:
    """Return the rows of D_n^-½ A for a large label space, without overlong ones."""
    n_models = block.shape[0]
    edges = _compute_edges(block, np.sqrt)
    n_edges = sum(np.diff(model_edges.indptr) for model_edges in edges)
    rows = np.flatnonzero(n_edges <= MOST_NAMED * n_models)
    pieces = tuple(model_edges[rows] for model_edges in edges)
    return MLCMrStatistics(walk=(pieces,))


def _compute_edges(
    block: Predictions, transform_degrees: Callable[[FloatArray], FloatArray]
) -> list[Any]:
    """Return the connections of each model in a large label space, as CSR (n, l).

    They are divided by the transformed degrees of the instances.
    """
    sparse_votes = Said.by(block)
    weights = np.max(sparse_votes.known, axis=1)
    parts = list(zip(sparse_votes.parts, weights, strict=True))

    degrees = sum(weight * row_sums(scores) for scores, weight in parts)
    inverse_degrees = _invert_degrees(transform_degrees(degrees), np.float64)
    return [scaled(scores, weight * inverse_degrees) for scores, weight in parts]


def _apply_sparse(edges: Any, groups: RandomWalkMap) -> SparseScores:
    """Mix the distributions of group nodes in a large label space."""
    connected = edges[:, groups.nodes]
    remainder = connected @ groups.rest

    # Labels of the tail share what remains of the walk, in proportion to their priors.
    head_size = groups.map.columns.shape[1]
    tail_labels = groups.map.labels[head_size:]
    tail_prior = np.zeros(len(groups.usual))
    tail_prior[tail_labels] = groups.usual[tail_labels]

    def keep_best(scores: Any, rows: slice) -> Any:
        row_remainder = np.repeat(remainder[rows], np.diff(scores.indptr))
        scores.data += row_remainder * tail_prior[scores.indices]
        scores.data -= groups.usual[scores.indices]
        return best(scores, groups.usual)

    scores = groups.map.applied(connected, tail_prior, keep_best)
    return SparseScores(scores, groups.usual)
