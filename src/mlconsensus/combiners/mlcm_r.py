r"""MLCM-r: a random walk over one graph of instances and (model, label) group nodes, for ranking loss.

An instance is connected to group node :math:`j = (k, \ell)` by the score that model `k`
gives it for label :math:`\ell`. With the connection matrix :math:`A` (n × v, v = m·l),
:math:`D_n` and :math:`D_v` the diagonal matrices of its row and column sums, and
:math:`B` (v × l) saying which label each group node stands for,

.. math::

    Q = (I - D_\lambda D_v^{-1} A^\top D_n^{-1} A)^{-1} D_{1-\lambda} B \qquad\text{(Eq.
    cm\_closed\_sol\_q)}

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

Known answers are sources (docs/theory.md says why instances are not simply held to
them): an instance is rewarded for agreeing with its labels more than with the usual
ones, by :math:`2 \gamma \langle u_i, y_i - \bar y \rangle` in the objective, where
:math:`y_i` shares 1 among the labels that instance `i` is known to have and :math:`\bar
y` is the mean over such instances. The matrix stays as it is:

.. math:: (\alpha I + D_v - A^\top D_n^{-1} A)\, Q = \alpha B + \gamma A^\top D_n^{-1} (Y - \bar Y), \qquad
    \gamma = \alpha / 2

Rows of `Q` and `U` are distributions over labels. An instance without any edge (no
model predicted a label for it) has no row in the equations; it gets the label prior:
the share of all edges that lead to each label.

Xie, Kong, Gao, Fan, Yu: Multilabel Consensus Classification.
"""

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
from ..predictions import Predictions
from ..predictions.validation import Weights, fraction, positive
from .base import BaseCombiner, PredictionsLike
from .contributions import Contributions, statements

GOLD = 0.5  # γ/α: how loud a known instance is beside the mean group node
_FAINT = 1e-30  # a sum of scores below it


class MLCMrStatistics(NamedTuple):
    """Sums over instances."""

    walk: Annotated[
        Any, Axes("m l m l", symmetric=True, least=0)
    ]  # Aᵀ D_n⁻¹ A, or pieces of D_n^-½ A; row sums: D_v
    to_clusters: Annotated[Any, Axes("ml c", least=0)] = (
        0  # Aᵀ D_n⁻¹ C, where the panel has clusterings
    )
    clusters: Annotated[Any, Axes("c c", symmetric=True, least=0)] = 0  # Cᵀ D_n⁻¹ C
    to_gold: Annotated[Any, Axes("ml l", least=0)] = (
        0  # Aᵀ D_n⁻¹ Y, where answers are known
    )
    clusters_to_gold: Annotated[Any, Axes("c l", least=0)] = 0  # Cᵀ D_n⁻¹ Y


class MLCMrSolution(NamedTuple):
    """The distributions over labels of all that can be walked from."""

    groups: Annotated[
        Any, Axes("ml l", least=0, most=1, distribution=True)
    ]  # Q, of each group node; or `Walked`
    prior: Annotated[
        FloatArray, Axes("l", least=0, most=1, distribution=True)
    ]  # of an instance without edges
    clusters: Annotated[
        FloatArray | None, Axes("c l", least=0, most=1, distribution=True)
    ] = None  # Q, of each cluster


def _edges(block: Predictions, root: Any) -> list[Any]:
    """Return the connections of a block of many labels, m CSR matrices (n, l), divided by (the root of) row sums."""
    found = Said.by(block)
    weights = np.max(found.known, axis=1)
    per_edge = _per_edge(
        root(
            sum(w * row_sums(own) for own, w in zip(found.parts, weights, strict=True))
        ),
        np.float64,
    )
    return [
        scaled(own, w * per_edge) for own, w in zip(found.parts, weights, strict=True)
    ]


def _per_degree(restart: float) -> float:
    """Find the α/d of a node that makes its stopping probability α/(α + d) the constant `restart`."""
    stop = fraction(restart, "restart")
    if not (0 < stop < 1):
        raise InputError(
            where="restart",
            found=repr(restart),
            expected="a number strictly between 0 and 1",
        )

    return stop / (1 - stop)


def _per_edge(degrees: FloatArray, kind: Any) -> FloatArray:
    """Return 1 / degree; 0 where it is so small that edges would vanish in float32: such an instance has none."""
    return ratio(np.ones(len(degrees)), np.where(degrees > _FAINT, degrees, 0), kind(0))


def _apply_many(edges: Any, found: RandomWalkMap) -> SparseScores:
    cells = edges[:, found.nodes]
    h = found.map.columns.shape[1]
    tail = np.zeros(len(found.usual))
    rest = cells @ found.rest
    tail[found.map.labels[h:]] = found.usual[found.map.labels[h:]]

    def finished(moved: Any, rows: slice) -> Any:
        moved.data += (
            np.repeat(rest[rows], np.diff(moved.indptr)) * tail[moved.indices]
            - found.usual[moved.indices]
        )
        return best(moved, found.usual)

    return SparseScores(found.map.applied(cells, tail, finished), found.usual)


class MLCMr(BaseCombiner):
    """MLCM-r: a random walk over instances and (model, label) groups, for ranking loss.

    Parameters
    ----------
    alpha
        How strongly each group node is held to its own label; positive. With many
        instances the walk forgets where it began, and popular labels win the top place.
    restart
        Probability strictly between 0 and 1 of stopping at each step, in place of
        `alpha`; does not depend on how many instances there are.
    weights
        How much each model counts, in their order or by name; ``None``: all alike.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.MLCMr(alpha=2.0).fit_transform([[[1, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 0, 1]]]).round(2)
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
    comparable = False  # they add up to 1 in each instance
    in_float32 = ("groups", "prior", "clusters")

    def __init__(
        self, alpha: float = 2.0, restart: float | None = None, weights: Weights = None
    ) -> None:
        self.alpha = alpha
        self.restart = restart
        self.weights = weights

    def check(self) -> None:
        """Refuse settings that no solution can be found with."""
        positive(self.alpha, "alpha")
        if self.restart is not None:
            _per_degree(self.restart)

    def _compute_statistics(self, block: Predictions) -> MLCMrStatistics:
        """Add up what each instance contributes to the walk between group nodes."""
        m, _, l = block.shape
        if block.many:
            edges = _edges(block, np.sqrt)
            few = np.flatnonzero(
                sum(np.diff(own.indptr) for own in edges) <= MOST_NAMED * m
            )
            return MLCMrStatistics((tuple(own[few] for own in edges),))

        A = connections(block)
        C = memberships(block)
        per_edge = _per_edge(row_sums(A) + row_sums(C), np.float64)
        found = MLCMrStatistics(Gram.of(scaled(A, np.sqrt(per_edge)), (m, l, m, l)))
        weighted = scaled(C, per_edge).T
        if block.clusters:
            found = found._replace(
                to_clusters=product(weighted, A).T, clusters=product(weighted, C)
            )
        if (gold := block.gold) is not None:
            Y = np.nan_to_num(gold.answers)
            shared = (
                ratio(Y, Y.sum(axis=1, keepdims=True), 0.0) * per_edge[gold.at, None]
            )
            found = found._replace(
                to_gold=product(A[gold.at].T, shared),
                clusters_to_gold=product(C[gold.at].T, shared),
            )

        return found

    def _solve(self, statistics: MLCMrStatistics) -> MLCMrSolution:
        """Solve Eq. cm_closed_sol_q as one symmetric positive definite system."""
        many = isinstance(statistics.walk, tuple)
        walk = statistics.walk
        m, l = (len(walk[0]), walk[0][0].shape[1]) if many else walk.shape[:2]
        if self.weights_ is None:
            each = np.ones(m)
        else:
            each = self.weights_

        v = m * l

        def anchors_of(nodes: Any, degrees: FloatArray) -> FloatArray:
            if self.restart is None:
                found = self.alpha * each[nodes // l]
            else:
                found = degrees * _per_degree(self.restart)

            return np.where(
                found > 1e-300, found, 1.0
            )  # a node without edges stays at home whatever α is

        if many:
            rows = sparse.hstack(
                [sparse.vstack(own) for own in zip(*walk, strict=True)], format="csr"
            )
            found = walked(rows, l, anchors_of)
            return MLCMrSolution(found, found.usual)

        walk = as_gram(walk)
        clustered = np.ndim(statistics.clusters) > 0
        if clustered:
            between = np.asarray(walk).reshape(v, v)
            between = np.block(
                [
                    [between, statistics.to_clusters],
                    [statistics.to_clusters.T, statistics.clusters],
                ]
            )
            walk = as_gram(between)

        degrees = walk.sums()  # the diagonal of D_v
        edges = degrees[:v].reshape(m, l).sum(axis=0)
        prior = ratio(edges, edges.sum(), 1 / l)
        anchors = anchors_of(np.arange(v), degrees[:v])
        held = anchors[:, None] * np.tile(np.eye(l), (m, 1))  # α B
        if clustered:
            # Clusters that no walk to a label leaves from hold to the prior.
            lost = ~reaching(statistics.to_clusters.any(axis=0), statistics.clusters)
            between[v:][lost] = 0
            between[:, v:][:, lost] = 0
            anchors = np.append(anchors, lost)
            held = np.concatenate([held, lost[:, None] * prior])

        if np.ndim(statistics.to_gold) > 0:
            to_gold = np.concatenate([statistics.to_gold, statistics.clusters_to_gold])
            usual = ratio(to_gold.sum(axis=0), np.full(l, to_gold.sum()), 0.0)
            gamma = GOLD * anchors[:v].sum() / (l * each.sum())
            held += gamma * (
                to_gold - np.outer(to_gold.sum(axis=1), usual)
            )  # γ Aᵀ D_n⁻¹ (Y − Ȳ)

        groups = np.maximum(solved(walk, anchors, held), 0)
        groups /= groups.sum(
            axis=1, keepdims=True
        )  # rows are distributions; rounding shows most in their sums
        return MLCMrSolution(groups[:v], prior, groups[v:] if clustered else None)

    @staticmethod
    def _apply(block: Predictions, solution: MLCMrSolution) -> Any:
        """Mix the distributions of the group nodes that each instance is connected to; Eq. cm_closed_sol_u."""
        if isinstance(solution.groups, RandomWalkMap):
            return _apply_many(
                sparse.hstack(_edges(block, np.asarray), format="csr"), solution.groups
            )

        kind = solution.groups.dtype
        A = connections(block, kind)
        C = memberships(block)
        degrees = row_sums(A) + row_sums(C)
        per_edge = _per_edge(degrees, kind.type)
        scores = product(scaled(A, per_edge), solution.groups)
        if block.clusters:
            scores += product(scaled(C, per_edge), np.asarray(solution.clusters))

        scores[per_edge == 0] = solution.prior
        return np.clip(scores, 0, 1, out=scores)

    @staticmethod
    def _contributions(
        block: Predictions, solution: MLCMrSolution, label: int
    ) -> Contributions:
        """Take the mixture of the block's one instance apart: each edge brings its share of its group node's label."""
        scores, _ = statements(block)
        inside = memberships(block[:1]).toarray()[0]
        degree = scores.sum() + inside.sum()
        if degree <= _FAINT:
            return Contributions(float(solution.prior[label]), np.zeros_like(scores))
        if block.clusters:
            clusters = inside * np.asarray(solution.clusters)[:, label] / degree
        else:
            clusters = None

        many = isinstance(solution.groups, RandomWalkMap)
        if many:
            likely = solution.groups.column(label, scores.size)
        else:
            likely = solution.groups[:, label]

        return Contributions(
            0.0, scores * likely.reshape(scores.shape) / degree, clusters=clusters
        )


def mlcm_r(
    predictions: PredictionsLike,
    alpha: float = 2.0,
    restart: float | None = None,
    weights: Weights = None,
) -> FloatArray:
    """Return the consensus scores of `MLCMr`.

    Parameters
    ----------
    predictions
        `Predictions`, or anything that its constructor takes.
    alpha
        How strongly each group node is held to its own label; positive. With many
        instances the walk forgets where it began, and popular labels win the top place.
    restart
        Probability strictly between 0 and 1 of stopping at each step, in place of
        `alpha`; does not depend on how many instances there are.
    weights
        How much each model counts, in their order or by name; ``None``: all alike.

    Returns
    -------
    ndarray of shape (n, l)
        Higher scores are more relevant.
    """
    return MLCMr(alpha=alpha, restart=restart, weights=weights).fit_transform(
        predictions
    )
