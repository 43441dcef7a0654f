r"""BGCM, label by label: a bipartite graph of instances and (model, class) nodes.

For label :math:`\ell`, an instance is connected to the "yes" node of model `k` by the
score `a` that the model gives it, and to its "no" node by :math:`1 - a`; to neither if
the prediction is missing. The optimum of Eq. cm_objective is that of MLCM-r's system,
with :math:`v = 2m` group nodes and :math:`d_i` the number of predictions:

.. math:: (\alpha I + D_v - A^\top D_n^{-1} A)\, Q = \alpha B, \qquad U = D_n^{-1} A Q

The `l` systems are solved as one batch, and the score is `U`'s share of "yes". An
instance without predictions has no edge; it gets the label's prior, the share of "yes"
in all predictions (0 without any). A model of weight `w` has edges and anchors `w`
times as strong. Clusterings are group nodes without an anchor, and each counts as one
prediction.

Gold labels are sources, as in `mlcm_r`: :math:`\gamma A^\top D_n^{-1} (y - \bar y)`
is added to :math:`\alpha B`.

Gao, Liang, Fan, Sun, Han: Graph-based consensus maximization among multiple supervised
and unsupervised models. Xie, Kong, Gao, Fan, Yu: Multilabel Consensus Classification.
"""

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from ..execution.statistics import Axes, get_present
from ..linalg.block_sums import product, ratio, row_sums
from ..linalg.clusters import find_connected, sum_pairs
from ..linalg.sparse_scores import SparseScores, to_scores
from ..predictions import FloatArray, IntArray
from ..predictions.blocks import DenseValues, PairValues, PredictionBlock
from ..predictions.validation import Weights, positive
from .base import BaseCombiner, PredictionsLike
from .contributions import Contributions, of_label
from .mlcm_r import GOLD


@dataclass(frozen=True, kw_only=True)
class BGCMStatistics:
    """Sums over instances for each label.

    `a` is a score and `s` is 1 where the model made a prediction, both times the
    model's weight; `c` is 1 for the clusters of the instance; `d` is the number of
    predictions of the pair; `y` is 1 for a positive and `g` for any gold label.
    """

    # Σ a_k a_k' / d
    scores: Annotated[FloatArray, Axes("l m m", symmetric=True, least=0)]
    # Σ s_k a_k' / d
    presence_scores: Annotated[FloatArray, Axes("l m m", least=0)]
    # Σ s_k s_k' / d
    presence: Annotated[FloatArray, Axes("l m m", symmetric=True, least=0)]
    # Σ a_k c / d; None without clusterings.
    scores_in_clusters: Annotated[FloatArray | None, Axes("l m c", least=0)] = None
    # Σ s_k c / d; None without clusterings.
    presence_in_clusters: Annotated[FloatArray | None, Axes("l m c", least=0)] = None
    # Σ c c' / d; None without clusterings.
    clusters: Annotated[FloatArray | None, Axes("l c c", symmetric=True, least=0)] = (
        None
    )
    # Σ y a / d, Σ y s / d, Σ g a / d, Σ g s / d; None without gold labels.
    to_gold: Annotated[FloatArray | None, Axes("? m l", least=0)] = None
    # Σ y c / d, Σ g c / d; None without gold labels.
    clusters_to_gold: Annotated[FloatArray | None, Axes("? c l", least=0)] = None


@dataclass(frozen=True, kw_only=True)
class BGCMSolution:
    """For each label, the probability of "yes" at each group node."""

    # At the models' "yes" nodes.
    yes: Annotated[FloatArray, Axes("m l", least=0, most=1)]
    # At the models' "no" nodes.
    no: Annotated[FloatArray, Axes("m l", least=0, most=1)]
    # For an instance without edges.
    prior: Annotated[FloatArray, Axes("l", least=0, most=1)]
    # At the clusters.
    clusters: Annotated[FloatArray | None, Axes("c l", least=0, most=1)] = None


@dataclass(frozen=True, kw_only=True)
class _Systems:
    """The labels' linear systems before they are solved, for v nodes."""

    walk: FloatArray  # (l, v, v) Aᵀ D_n⁻¹ A
    anchors: FloatArray  # (l, v)
    right_side: FloatArray  # (l, v)


class BGCM(BaseCombiner):
    """BGCM label by label: consensus of the models on yes and no.

    Parameters
    ----------
    alpha : float, default=2.0
        How strongly each group node is tied to its own class.
    weights : sequence or mapping, default=None
        Weight of each model, in their order or by name. By default all are equal.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> first = [[1, 1], [0, 0]]
    >>> second = [[1, 0], [0, 0]]
    >>> mlc.BGCM(alpha=2.0).fit_transform([first, second]).round(2)
    array([[1.  , 0.49],
           [0.  , 0.09]])
    """

    Statistics = BGCMStatistics
    Solution = BGCMSolution
    identifier = "bgcm"
    name = "BGCM"
    takes_many = True
    pairs_models = True
    uses_clusterings = True

    def __init__(self, alpha: float = 2.0, weights: Weights = None) -> None:
        self.alpha = alpha
        self.weights = weights

    def check(self) -> None:
        """Raise an error for parameters that have no solution."""
        positive(self.alpha, "alpha")

    def _compute_statistics(self, block: PredictionBlock) -> BGCMStatistics:
        """Return the sums of products of two models' predictions."""
        share = _count_edges(block).map(_invert)
        products = block.multiply_models(share)
        statistics = BGCMStatistics(
            scores=products.scores,
            presence_scores=products.presence_and_score,
            presence=products.presence,
        )
        if block.n_clusters > 0:
            cluster_sums = block.sum_by_cluster(share)
            statistics = replace(
                statistics,
                scores_in_clusters=cluster_sums.scores,
                presence_in_clusters=cluster_sums.presence,
                clusters=sum_pairs(block.membership_matrix(), share.to_array()),
            )
        if block.gold is not None:
            to_gold, clusters_to_gold = _sum_gold_labels(block, share.to_array())
            statistics = replace(
                statistics, to_gold=to_gold, clusters_to_gold=clusters_to_gold
            )
        return statistics

    def _solve(self, statistics: BGCMStatistics) -> BGCMSolution:
        """Solve the systems of all labels, each with 2m nodes and the clusters."""
        n_models = statistics.scores.shape[1]
        has_clusters = statistics.clusters is not None
        has_more = has_clusters or statistics.to_gold is not None
        is_named = statistics.presence_scores.any(axis=(1, 2))
        if not is_named.all() and not has_more:
            return self._solve_named_labels(statistics, np.flatnonzero(is_named))

        systems, prior = self._make_systems(statistics)
        if statistics.to_gold is not None:
            source = GOLD * self.alpha * _compute_gold_source(statistics)
            systems = replace(systems, right_side=systems.right_side + source)

        # (alpha I + D_v - A' D_n^-1 A) Q = alpha B; rounding can leave [0, 1].
        degrees = systems.walk.sum(axis=2)
        diagonal = (systems.anchors + degrees)[:, :, np.newaxis]
        n_nodes = systems.walk.shape[1]
        matrices = diagonal * np.eye(n_nodes) - systems.walk
        solutions = np.linalg.solve(matrices, systems.right_side[..., np.newaxis])
        probabilities = np.clip(solutions[..., 0].T, 0, 1)

        clusters = None
        if statistics.clusters is not None:
            clusters = probabilities[2 * n_models :]
        return BGCMSolution(
            yes=probabilities[:n_models],
            no=probabilities[n_models : 2 * n_models],
            prior=prior,
            clusters=clusters,
        )

    def _solve_named_labels(
        self, statistics: BGCMStatistics, named: IntArray
    ) -> BGCMSolution:
        """Solve for the labels that some model named; no walk reaches other labels."""
        n_labels, n_models, _ = statistics.scores.shape
        yes = np.ones((n_models, n_labels))
        no = np.zeros((n_models, n_labels))
        prior = np.zeros(n_labels)
        if len(named) > 0:
            named_statistics = BGCMStatistics(
                scores=statistics.scores[named],
                presence_scores=statistics.presence_scores[named],
                presence=statistics.presence[named],
            )
            solution = self._solve(named_statistics)
            yes[:, named] = solution.yes
            no[:, named] = solution.no
            prior[named] = solution.prior
        return BGCMSolution(yes=yes, no=no, prior=prior)

    def _make_systems(self, statistics: BGCMStatistics) -> tuple[_Systems, FloatArray]:
        """Return the walks, anchors and right-hand sides, and the labels' priors."""
        n_labels, n_models, _ = statistics.scores.shape
        yes_yes = statistics.scores
        presence_yes = statistics.presence_scores

        # "no" is s - a, so products with it are differences.
        yes_no = presence_yes.transpose(0, 2, 1) - yes_yes
        no_no = statistics.presence - presence_yes - yes_no
        walk = np.block([[yes_yes, yes_no], [yes_no.transpose(0, 2, 1), no_no]])

        # alpha B: a model's "yes" node is tied to 1 and its "no" node to 0.
        weights = np.ones(n_models) if self.weights_ is None else self.weights_
        model_anchors = np.tile(self.alpha * weights, 2)
        model_anchors = np.where(model_anchors > 0, model_anchors, 1.0)
        anchors = np.tile(model_anchors, (n_labels, 1))
        right_side = anchors * np.repeat([1.0, 0.0], n_models)

        systems = _Systems(walk=walk, anchors=anchors, right_side=right_side)
        if statistics.clusters is not None:
            return _add_clusters(systems, statistics)
        return systems, _compute_prior(walk, n_models)

    @staticmethod
    def _apply(
        block: PredictionBlock, solution: BGCMSolution
    ) -> FloatArray | SparseScores:
        """Average the probabilities of "yes" at the nodes that the models chose."""
        # a * yes + (s - a) * no
        total = block.sum_predictions(solution.yes, solution.no)
        if block.n_clusters > 0:
            membership = block.membership_matrix()
            from_clusters = product(membership, np.asarray(solution.clusters))
            total = total.map(np.add, DenseValues(from_clusters))

        mean = total.divide(_count_edges(block), solution.prior)
        return to_scores(mean.map(_clip_probabilities))

    @staticmethod
    def _contributions(
        block: PredictionBlock, solution: BGCMSolution, label: int
    ) -> Contributions:
        """Return the share of each prediction in the mean of one instance."""
        scores, is_present = block.get_instance(0)
        is_member = block.membership_matrix()[:1].toarray()[0]
        n_edges = is_present[:, label].sum() + is_member.sum()
        if n_edges == 0:
            return Contributions(
                baseline=float(solution.prior[label]),
                predictions=np.zeros_like(scores),
            )

        yes = scores[:, label]
        no = is_present[:, label] - yes
        shares = yes * solution.yes[:, label] + no * solution.no[:, label]
        clusters = None
        if block.n_clusters > 0:
            clusters = is_member * np.asarray(solution.clusters)[:, label] / n_edges
        return Contributions(
            baseline=0.0,
            predictions=of_label(shares / n_edges, label, scores.shape),
            clusters=clusters,
        )


def bgcm(
    predictions: PredictionsLike, alpha: float = 2.0, weights: Weights = None
) -> FloatArray:
    """Return the consensus scores of BGCM.

    Parameters
    ----------
    predictions : Predictions or array-like of shape (m, n, l)
        `Predictions`, or anything that its constructor takes.
    alpha : float, default=2.0
        How strongly each group node is tied to its own class.
    weights : sequence or mapping, default=None
        Weight of each model, in their order or by name. By default all are equal.

    Returns
    -------
    ndarray of shape (n, l)
        Higher scores are more relevant.
    """
    return BGCM(alpha=alpha, weights=weights).fit_transform(predictions)


def _count_edges(block: PredictionBlock) -> PairValues:
    """Return d, the number of predictions and of clusters of each pair."""
    count = block.count_predictions()
    if block.n_clusters == 0:
        return count
    n_clusters = row_sums(block.membership_matrix())
    return DenseValues(count.to_array() + n_clusters[:, np.newaxis])


def _clip_probabilities(probabilities: FloatArray) -> FloatArray:
    """Set values that rounding moved out of [0, 1] to its ends, in place."""
    return np.clip(probabilities, 0, 1, out=probabilities)


def _invert(count: FloatArray) -> FloatArray:
    """Return 1 / count, or 0 for a pair without predictions."""
    return ratio(np.ones_like(count), count, 0.0)


def _sum_gold_labels(
    block: PredictionBlock, share: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the sums of gold labels with models (4, m, l) and clusters (2, c, l)."""
    gold = block.gold
    assert gold is not None
    membership = block.membership_matrix()[gold.at]

    to_models = []
    to_clusters = []
    for gold_values in (np.nan_to_num(gold.answers), ~np.isnan(gold.answers)):
        weighted = np.zeros_like(share)
        weighted[gold.at] = gold_values * share[gold.at]
        values = DenseValues(weighted)
        to_models.append(block.sum_scores_by_model(values))
        to_models.append(block.count_predictions_by_model(values))
        to_clusters.append(product(membership.T, weighted[gold.at]))
    return np.array(to_models), np.array(to_clusters)


def _compute_prior(walk: FloatArray, n_models: int) -> FloatArray:
    """Return the share of "yes" in all edges of each label."""
    degrees = walk.sum(axis=2)
    yes = degrees[:, :n_models].sum(axis=1)
    all_edges = degrees[:, : 2 * n_models].sum(axis=1)
    prior = ratio(yes, all_edges, 0.0)
    # Rounding can leave the range.
    return np.clip(prior, 0, 1)


def _add_clusters(
    systems: _Systems, statistics: BGCMStatistics
) -> tuple[_Systems, FloatArray]:
    """Return the systems with the nodes of clusters, and the labels' priors."""
    n_labels, n_models, _ = statistics.scores.shape
    yes = get_present(statistics.scores_in_clusters)
    no = get_present(statistics.presence_in_clusters) - yes
    to_clusters = np.concatenate([yes, no], axis=1)
    between = get_present(statistics.clusters)
    walk = np.block(
        [[systems.walk, to_clusters], [to_clusters.transpose(0, 2, 1), between]]
    )
    prior = _compute_prior(walk, n_models)

    # A cluster without a path to a model's node is tied to the prior.
    is_isolated = ~find_connected(np.asarray(to_clusters.any(axis=1)), between)
    is_connected = np.concatenate([np.ones((n_labels, 2 * n_models)), ~is_isolated], 1)
    walk = walk * is_connected[:, :, np.newaxis] * is_connected[:, np.newaxis]
    anchors = np.concatenate([systems.anchors, is_isolated], axis=1)
    tied_to_prior = is_isolated * prior[:, np.newaxis]
    right_side = np.concatenate([systems.right_side, tied_to_prior], axis=1)
    return _Systems(walk=walk, anchors=anchors, right_side=right_side), prior


def _compute_gold_source(statistics: BGCMStatistics) -> FloatArray:
    """Return Aᵀ D_n⁻¹ (y - ȳ) for the nodes of each label, (l, v)."""
    yes_scores, yes_presence, all_scores, all_presence = get_present(statistics.to_gold)
    yes_clusters, all_clusters = get_present(statistics.clusters_to_gold)

    positive_labels = np.concatenate(
        [yes_scores, yes_presence - yes_scores, yes_clusters]
    ).T
    all_labels = np.concatenate([all_scores, all_presence - all_scores, all_clusters]).T
    mean = ratio(positive_labels.sum(axis=1), all_labels.sum(axis=1), 0.0)
    return np.asarray(positive_labels - mean[:, np.newaxis] * all_labels)
