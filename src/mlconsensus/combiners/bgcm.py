r"""BGCM, label by label: one bipartite graph for each label, its group nodes the (model, class) pairs.

For label :math:`\ell` an instance is connected to the "yes" node of model `k` by the score `a` that the model
gives it, and to its "no" node by :math:`1 - a`; to neither where the model was silent. The optimum of Eq.
cm_objective is that of MLCM-r's system, with :math:`v = 2m` group nodes and :math:`d_i` the number of models
that spoke:

.. math:: (\alpha I + D_v - A^\top D_n^{-1} A)\, Q = \alpha B, \qquad U = D_n^{-1} A Q

The `l` systems are solved as one batch, and the score is `U`'s share of "yes". An instance that no model spoke
about has no edge; it gets the label's prior, the share of all that was said which was "yes" (0 where nothing
was).

Gao, Liang, Fan, Sun, Han: Graph-based consensus maximization among multiple supervised and unsupervised models.
Xie, Kong, Gao, Fan, Yu: Multilabel Consensus Classification.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..engines.local import gather, spread
from ..kernels import FloatArray, column_sums, connections, label_grams, ratio, spoken, weighted_sum
from ..parameters import positive
from ..predictions import Predictions, as_predictions
from .base import Combiner


class Statistics(NamedTuple):
    """Sums over instances, for each label and pair of models; `a` is a score, `s` is 1 where the model spoke."""

    yes_yes: Any  # (l, m, m) Σ a_k a_k' / d
    said_yes: Any  # (l, m, m) Σ s_k a_k' / d
    said_said: Any  # (l, m, m) Σ s_k s_k' / d


class Solution(NamedTuple):
    """For each label, how likely "yes" is at each group node."""

    yes: FloatArray  # (m, l) at the models' "yes" nodes
    no: FloatArray  # (m, l) at the models' "no" nodes
    prior: FloatArray  # (l,) of an instance without edges


def statistics(block: Predictions) -> Statistics:
    """Add up how often each pair of models says the same of each label."""
    m, n, l = block.shape
    A, said = connections(block), spoken(block)
    if said is None:  # s = 1 and d = m
        yes = column_sums(A).reshape(m, l).T / m
        return Statistics(label_grams(A, A, l, 1 / m), np.repeat(yes[:, None, :], m, axis=1), np.full((l, m, m), n / m))
    A = A.toarray() if sparse.issparse(A) else A  # no larger than what says who spoke
    share = ratio(np.ones((n, l)), weighted_sum(said, np.ones((m, l))), 0.0)
    return Statistics(*(label_grams(one, other, l, share) for one, other in ((A, A), (said, A), (said, said))))


def solve(statistics: Statistics, alpha: float = 2.0) -> Solution:
    """Solve the labels' 2m × 2m systems as one batch."""
    alpha = positive(alpha, "alpha")
    yes_yes, said_yes, said_said = statistics
    l, m, _ = yes_yes.shape
    yes_no = said_yes.transpose(0, 2, 1) - yes_yes  # Σ a_k (s_k' − a_k') / d
    no_no = said_said - said_yes - said_yes.transpose(0, 2, 1) + yes_yes
    walk = np.block([[yes_yes, yes_no], [yes_no.transpose(0, 2, 1), no_no]])
    degrees = walk.sum(axis=2)  # (l, 2m) the diagonals of D_v
    system = (alpha + degrees)[:, :, None] * np.eye(2 * m) - walk
    anchors = np.repeat([1.0, 0.0], m)  # B's column for "yes"
    likely = np.linalg.solve(system, np.broadcast_to(alpha * anchors, (l, 2 * m))[..., None])[..., 0]
    prior = ratio(degrees[:, :m].sum(axis=1), degrees.sum(axis=1), 0.0)
    return Solution(likely[:, :m].T, likely[:, m:].T, prior)


def apply(block: Predictions, solution: Solution) -> FloatArray:
    """Average over the models that spoke how likely "yes" is at the nodes that they chose."""
    said = spoken(block)
    scores = weighted_sum(connections(block), solution.yes - solution.no)  # a·yes + (s − a)·no
    if said is None:
        return np.asarray((scores + solution.no.sum(axis=0)) / len(solution.no))
    heard = weighted_sum(said, np.ones_like(solution.no))
    return ratio(scores + weighted_sum(said, solution.no), heard, solution.prior)


def bgcm(predictions: Any, alpha: float = 2.0) -> FloatArray:
    """Score labels one by one by the consensus of the models on yes and no.

    Parameters
    ----------
    predictions
        `Predictions`, or anything that its constructor takes.
    alpha
        How strongly each group node is held to its own class; positive.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.bgcm([[[1, 1], [0, 0]], [[1, 0], [0, 0]]]).round(2)
    array([[1.  , 0.49],
           [0.  , 0.09]])
    """
    panel = as_predictions(predictions)
    solution = solve(gather(panel, statistics), alpha)
    return spread(panel, lambda block: apply(block, solution))


class BGCM(Combiner):
    """BGCM label by label: consensus of the models on yes and no, each label by itself.

    Parameters
    ----------
    alpha
        How strongly each group node is held to its own class; positive.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.BGCM(alpha=2.0).fit_transform([[[1, 1], [0, 0]], [[1, 0], [0, 0]]]).round(2)
    array([[1.  , 0.49],
           [0.  , 0.09]])
    """

    def __init__(self, alpha: float = 2.0) -> None:
        self.alpha = alpha

    def _check_parameters(self) -> None:
        positive(self.alpha, "alpha")

    def _statistics(self, block: Predictions) -> Statistics:
        return statistics(block)

    def _solve(self, statistics: Statistics) -> Solution:
        return solve(statistics, self.alpha)

    def _apply(self, block: Predictions, solution: Solution) -> FloatArray:
        return apply(block, solution)
