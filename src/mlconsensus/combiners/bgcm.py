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
from ..kernels import FloatArray, column_sums, ratio, votes
from ..model_scores import Matrix
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
    cells = list(block.cells())
    heard = votes(block).heard
    share = 1 / heard if isinstance(heard, float) else ratio(np.ones((n, l)), heard, 0.0)
    values = [_float(scores) for scores, _ in cells]
    weighted = [scores * share for scores in values]
    yes_yes, said_yes, said_said = (np.empty((l, m, m)) for _ in range(3))
    for k in range(m):
        for j in range(k, m):
            yes_yes[:, k, j] = yes_yes[:, j, k] = _overlap(weighted[k], values[j])
        if isinstance(heard, float):  # all spoke everywhere: s = 1 and d = m
            said_yes[:, :, k] = column_sums(weighted[k])[:, None]
            said_said[:, :, k] = n / m
            continue
        for j, (_, said) in enumerate(cells):
            said_k, said_j = (np.ones((n, l)) if mask is None else mask for mask in (cells[k][1], said))
            said_yes[:, j, k] = _overlap(weighted[k], said_j)
            said_said[:, j, k] = _overlap(said_k * share, said_j)
    return Statistics(yes_yes, said_yes, said_said)


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
    _, n, l = block.shape
    heard = votes(block).heard
    scores = np.zeros((n, l))
    for (values, said), yes, no in zip(block.cells(), solution.yes, solution.no, strict=True):
        scores += _float(values) * (yes - no)  # a·yes + (s − a)·no
        scores += no if said is None else said * no
    return scores / heard if isinstance(heard, float) else ratio(scores, heard, solution.prior)


def _float(values: Matrix) -> Matrix:
    return values.astype(np.float64, copy=False)


def _overlap(one: Matrix, other: Matrix) -> FloatArray:
    """Sum the products of two matrices over instances, label by label."""
    if sparse.issparse(one) or sparse.issparse(other):
        return column_sums(one * other)
    return np.asarray(np.einsum("il,il->l", one, other, dtype=np.float64))


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

    def _statistics(self, block: Predictions) -> Statistics:
        return statistics(block)

    def _solve(self, statistics: Statistics) -> Solution:
        return solve(statistics, self.alpha)

    def _apply(self, block: Predictions, solution: Solution) -> FloatArray:
        return apply(block, solution)
