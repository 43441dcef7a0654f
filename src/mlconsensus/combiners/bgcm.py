r"""BGCM, label by label: one bipartite graph for each label, its group nodes the (model, class) pairs.

For label :math:`\ell` an instance is connected to the "yes" node of model `k` by the
score `a` that the model gives it, and to its "no" node by :math:`1 - a`; to neither
where the model was silent. The optimum of Eq. cm_objective is that of MLCM-r's system,
with :math:`v = 2m` group nodes and :math:`d_i` the number of models that spoke:

.. math:: (\alpha I + D_v - A^\top D_n^{-1} A)\, Q = \alpha B, \qquad U = D_n^{-1} A Q

The `l` systems are solved as one batch, and the score is `U`'s share of "yes". An
instance that no model spoke about has no edge; it gets the label's prior, the share of
all that was said which was "yes" (0 where nothing was). A model of weight `w` has edges
and anchors `w` times as strong. Clusterings are group nodes without an anchor, and each
counts among the models that spoke.

Known answers are sources, as in `mlcm_r`: :math:`\gamma A^\top D_n^{-1} (y - \bar y)`
is added to :math:`\alpha B`.

Gao, Liang, Fan, Sun, Han: Graph-based consensus maximization among multiple supervised
and unsupervised models. Xie, Kong, Gao, Fan, Yu: Multilabel Consensus Classification.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from ..execution.statistics import Axes
from ..linalg import block_sums, vote_patterns
from ..linalg.block_sums import (
    FloatArray,
    connections,
    folded,
    label_grams,
    ratio,
    row_sums,
    spoken,
)
from ..linalg.clusters import memberships, pair_sums, reaching
from ..linalg.sparse_scores import Said, SparseScores, at_cells
from ..predictions import Predictions
from ..predictions.validation import Weights, positive
from .base import BaseCombiner, PredictionsLike
from .contributions import Contributions, of_label, statements
from .mlcm_r import GOLD


class BGCMStatistics(NamedTuple):
    """Sums over instances, for each label and pair of models; `a` is a score, `s` is 1 where the model spoke.

    Both are multiplied by the model's weight; `c` is 1 for the clusters that the
    instance is in.
    """

    yes_yes: Annotated[Any, Axes("l m m", symmetric=True, least=0)]  # Σ a_k a_k' / d
    said_yes: Annotated[Any, Axes("l m m", least=0)]  # Σ s_k a_k' / d
    said_said: Annotated[Any, Axes("l m m", symmetric=True, least=0)]  # Σ s_k s_k' / d
    yes_in: Annotated[Any, Axes("l m c", least=0)] = (
        0  # Σ a_k c / d, where the panel has clusterings
    )
    said_in: Annotated[Any, Axes("l m c", least=0)] = 0  # Σ s_k c / d
    in_in: Annotated[Any, Axes("l c c", symmetric=True, least=0)] = 0  # Σ c c' / d
    to_gold: Annotated[Any, Axes("? m l", least=0)] = (
        0  # Σ y a / d, Σ y s / d, Σ k a / d, Σ k s / d; k: known
    )
    in_gold: Annotated[Any, Axes("? c l", least=0)] = 0  # Σ y c / d, Σ k c / d


class BGCMSolution(NamedTuple):
    """For each label, how likely "yes" is at each group node."""

    yes: Annotated[
        FloatArray, Axes("m l", least=0, most=1)
    ]  # at the models' "yes" nodes
    no: Annotated[FloatArray, Axes("m l", least=0, most=1)]  # at the models' "no" nodes
    prior: Annotated[
        FloatArray, Axes("l", least=0, most=1)
    ]  # of an instance without edges
    clusters: Annotated[FloatArray | None, Axes("c l", least=0, most=1)] = (
        None  # at the clusters
    )


def _many_sums(found: Said, l: int) -> BGCMStatistics:
    """Add up at the cells that somebody named, and where anybody could have spoken."""
    m = len(found.parts)
    cells = found.folded(np.ones_like(found.known))
    share = ratio(np.ones(cells.nnz), found.spread(found.known, cells), 0.0)
    yes = [
        at_cells(own, cells) * found.known[k][cells.indices]
        for k, own in enumerate(found.parts)
    ]
    rows = np.repeat(np.arange(cells.shape[0]), np.diff(cells.indptr))
    yes_yes, said_yes, said_said = np.zeros((3, l, m, m))
    for k, q in np.ndindex(m, m):
        spoke = found.seen[rows, k] * found.known[k][cells.indices]
        said_yes[:, k, q] = np.bincount(cells.indices, share * spoke * yes[q], l)
        yes_yes[:, k, q] = (
            np.bincount(cells.indices, share * yes[k] * yes[q], l)
            if k <= q
            else yes_yes[:, q, k]
        )

    for seen, at in found.groups():
        spoke = (found.known * seen[:, None]).T  # (l, m)
        per = ratio(np.full(l, float(len(at))), spoke.sum(axis=1), 0.0)
        said_said += per[:, None, None] * spoke[:, :, None] * spoke[:, None, :]

    return BGCMStatistics(yes_yes, said_yes, said_said)


def _plain(block: Predictions) -> bool:
    """Tell whether all models spoke everywhere and count alike, and no clusterings stand beside them."""
    return (
        block.complete
        and block.weights is None
        and not block.clusters
        and block.gold is None
    )


class BGCM(BaseCombiner):
    """BGCM label by label: consensus of the models on yes and no, each label by itself.

    Parameters
    ----------
    alpha
        How strongly each group node is held to its own class; positive.
    weights
        How much each model counts, in their order or by name; ``None``: all alike.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.BGCM(alpha=2.0).fit_transform([[[1, 1], [0, 0]], [[1, 0], [0, 0]]]).round(2)
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
        """Refuse settings that no solution can be found with."""
        positive(self.alpha, "alpha")

    def _compute_statistics(self, block: Predictions) -> BGCMStatistics:
        """Add up how often each pair of models says the same of each label."""
        m, n, l = block.shape
        if block.many:
            return _many_sums(Said.by(block), l)
        if _plain(block):  # s = 1 and d = m
            if (found := vote_patterns.codes(block)) is not None:
                who = vote_patterns.bits(m)
                both = (who[:, :, None] * who[:, None, :]).reshape(-1, m * m)
                together = (vote_patterns.counts(found, 2**m) @ both).reshape(l, m, m)
                yes = np.einsum("jkk->jk", together)  # votes are 0 or 1: Σ a² = Σ a
            else:
                A = connections(block)
                together = block_sums.own_label_grams(A, l)
                yes = block_sums.column_sums(A).reshape(m, l).T

            return BGCMStatistics(
                together / m,
                np.repeat(yes[:, None, :] / m, m, axis=1),
                np.full((l, m, m), n / m),
            )

        A = block_sums.dense(connections(block))
        said = spoken(block)
        C = memberships(block)
        share = ratio(
            np.ones((n, l)), folded(said, np.ones((m, l))) + row_sums(C)[:, None], 0.0
        )
        grams = BGCMStatistics(
            *(
                label_grams(one, other, share)
                for one, other in ((A, A), (said, A), (said, said))
            )
        )
        if (gold := block.gold) is not None:
            sides = [
                side * share[gold.at]
                for side in (np.nan_to_num(gold.answers), ~np.isnan(gold.answers))
            ]
            each = [
                (X[gold.at].reshape(-1, m, l) * side[:, None]).sum(axis=0)
                for side in sides
                for X in (A, said)
            ]
            inside = [block_sums.product(C[gold.at].T, side) for side in sides]
            grams = grams._replace(to_gold=np.array(each), in_gold=np.array(inside))

        if not block.clusters:
            return grams

        yes_in, said_in = (
            (C.T @ (X * np.tile(share, m))).reshape(-1, m, l).transpose(2, 1, 0)
            for X in (A, said)
        )
        return grams._replace(yes_in=yes_in, said_in=said_in, in_in=pair_sums(C, share))

    def _solve(self, statistics: BGCMStatistics) -> BGCMSolution:
        """Solve the labels' systems of 2m nodes, and one for each cluster, as one batch."""
        yes_yes, said_yes, said_said = statistics[:3]
        l, m, _ = yes_yes.shape
        some = np.flatnonzero(said_yes.any(axis=(1, 2)))
        if len(some) < l and all(
            np.ndim(each) == 0 for each in statistics[3:]
        ):  # a walk from no comes to no named yes
            likely = np.repeat([1.0, 0.0], m)[:, None] * np.ones(l)
            prior = np.zeros(l)
            if len(some):
                own = self._solve(
                    BGCMStatistics(*(each[some] for each in statistics[:3]))
                )
                likely[:, some] = np.concatenate(own[:2])
                prior[some] = own.prior

            return BGCMSolution(likely[:m], likely[m:], prior)

        yes_no = said_yes.transpose(0, 2, 1) - yes_yes  # Σ a_k (s_k' − a_k') / d
        no_no = said_said - said_yes - said_yes.transpose(0, 2, 1) + yes_yes
        walk = np.block([[yes_yes, yes_no], [yes_no.transpose(0, 2, 1), no_no]])
        anchors = np.tile(
            self.alpha * (np.ones(m) if self.weights_ is None else self.weights_), 2
        )
        anchors = np.tile(np.where(anchors > 0, anchors, 1.0), (l, 1))  # (l, nodes)
        held = anchors * np.repeat([1.0, 0.0], m)  # α times B's column for "yes"
        clustered = np.ndim(statistics.in_in) > 0
        if clustered:
            to_clusters = np.concatenate(
                [statistics.yes_in, statistics.said_in - statistics.yes_in], axis=1
            )
            walk = np.block(
                [
                    [walk, to_clusters],
                    [to_clusters.transpose(0, 2, 1), statistics.in_in],
                ]
            )

        degrees = walk.sum(axis=2)  # (l, nodes) the diagonals of D_v
        prior = ratio(degrees[:, :m].sum(axis=1), degrees[:, : 2 * m].sum(axis=1), 0.0)
        if clustered:
            # Clusters that no walk to a model's node leaves from hold to the prior.
            lost = ~reaching(np.asarray(to_clusters.any(axis=1)), statistics.in_in)
            kept = np.concatenate([np.ones((l, 2 * m)), ~lost], axis=1)
            walk = walk * kept[:, :, None] * kept[:, None, :]
            degrees = degrees * kept
            anchors = np.concatenate([anchors, lost], axis=1)
            held = np.concatenate([held, lost * prior[:, None]], axis=1)

        if np.ndim(statistics.to_gold):
            of_a = statistics.to_gold[::2]
            of_s = statistics.to_gold[1::2]
            inside = statistics.in_gold
            yes, known = np.concatenate([of_a, of_s - of_a, inside], axis=1).transpose(
                0, 2, 1
            )
            usual = ratio(yes.sum(axis=1), known.sum(axis=1), 0.0)
            held = held + GOLD * self.alpha * (
                yes - usual[:, None] * known
            )  # γ Aᵀ D_n⁻¹ (y − ȳ)

        system = (anchors + degrees)[:, :, None] * np.eye(walk.shape[1]) - walk
        likely = np.clip(
            np.linalg.solve(system, held[..., None])[..., 0].T, 0, 1
        )  # rounding leaves that range
        return BGCMSolution(
            likely[:m], likely[m : 2 * m], prior, likely[2 * m :] if clustered else None
        )

    @staticmethod
    def _apply(block: Predictions, solution: BGCMSolution) -> Any:
        """Average over the models that spoke how likely "yes" is at the nodes that they chose."""
        m, _, l = block.shape
        moved = solution.yes - solution.no
        always = solution.no.sum(axis=0)
        if block.many:
            every = Said.by(block)
            default = np.clip(
                ratio(
                    (every.known * solution.no).sum(axis=0),
                    every.known.sum(axis=0),
                    solution.prior,
                ),
                0,
                1,
            )
            cells = every.folded(every.known * moved)
            likely = cells.data + every.spread(every.known * solution.no, cells)
            cells.data = (
                np.clip(ratio(likely, every.spread(every.known, cells), 0.0), 0, 1)
                - default[cells.indices]
            )
            return SparseScores(cells, default)

        if _plain(block):
            share = 1 / m
        else:
            share = 1.0

        scores = block_sums.dense(
            vote_patterns.pooled(vote_patterns.answers(block), moved * share)
        )  # a·yes + (s − a)·no
        if _plain(block):
            scores += always * share
            return np.clip(scores, 0, 1, out=scores)

        said = spoken(block)
        C = memberships(block)
        scores += folded(said, solution.no)
        if block.clusters:
            scores += block_sums.product(C, np.asarray(solution.clusters))
        return np.clip(
            ratio(
                scores,
                folded(said, np.ones((m, l))) + row_sums(C)[:, None],
                solution.prior,
            ),
            0,
            1,
        )

    @staticmethod
    def _contributions(
        block: Predictions, solution: BGCMSolution, label: int
    ) -> Contributions:
        """Take the mean of the block's one instance apart: how likely "yes" is at the nodes that each model chose."""
        scores, said = statements(block)
        inside = memberships(block[:1]).toarray()[0]
        heard = said[:, label].sum() + inside.sum()
        if heard:
            baseline = 0.0
        else:
            baseline = float(solution.prior[label])

        heard = heard or 1.0
        yes = scores[:, label]
        no = (said - scores)[:, label]
        likely = yes * solution.yes[:, label] + no * solution.no[:, label]
        if block.clusters:
            clusters = inside * np.asarray(solution.clusters)[:, label] / heard
        else:
            clusters = None

        return Contributions(
            baseline, of_label(likely / heard, label, scores.shape), clusters=clusters
        )


def bgcm(
    predictions: PredictionsLike, alpha: float = 2.0, weights: Weights = None
) -> FloatArray:
    """Return the consensus scores of `BGCM`.

    Parameters
    ----------
    predictions
        `Predictions`, or anything that its constructor takes.
    alpha
        How strongly each group node is held to its own class; positive.
    weights
        How much each model counts, in their order or by name; ``None``: all alike.

    Returns
    -------
    ndarray of shape (n, l)
        Higher scores are more relevant.
    """
    return BGCM(alpha=alpha, weights=weights).fit_transform(predictions)
