r"""MLCM-a: averaging regularized by the labels' precision matrix, for microAUC.

Algorithm 1 starts from :math:`Y = \bar Y` and alternates `T` times

.. math::

    \Omega = \tfrac1n Y^\top Y, \qquad
    Y = m \bar Y (\Omega^{-1} + m I)^{-1} \qquad\text{(Eq. averaging\_omega)}

Every iterate commutes with :math:`G = \bar Y^\top \bar Y / n = V \operatorname{diag}(g)
V^\top`, so one eigendecomposition serves any `T`: with :math:`w_0 = g`,

.. math::

    h_t = \frac{m w_{t-1}}{1 + m w_{t-1}}, \quad w_t = g h_t^2, \quad Y = \bar Y V
    \operatorname{diag}(h_T) V^\top .

Written so, nothing is inverted that may be singular (labels never predicted, l > n).
For :math:`T \to \infty`, :math:`x = m w` is the larger root of :math:`x^2 + (2 - m g) x
+ 1 = 0` where :math:`m g \ge 4`, and 0 elsewhere.

The mean is over the models that made a prediction. A pair without any prediction gets
the label's prior, and `m` is the mean number (with weights: the mean weight) of the
models that predicted a pair. With nothing missing and no weights, this is the paper's
algorithm without any change.

Gold labels: where all labels of some instances are known, the linear map :math:`W` from
means to consensus is fitted to them. It is shrunk towards the unsupervised map `F`, on
the scale `c` that fits best, as if `F` was right on :math:`\tau` more instances:

.. math::

    \min_W \sum_{i\,\text{gold}} \|y_i - \bar y_i W\|^2
        + \tau \operatorname{tr} (W - cF)^\top G (W - cF), \\
    W = cF + (S + \tau G)^{-1} (C - cSF), \quad
    c = \frac{\langle F, C\rangle}{\langle F, SF\rangle}

with :math:`S = \sum \bar y_i^\top \bar y_i` and :math:`C = \sum \bar y_i^\top y_i`
over the gold instances. :math:`\tau` maximizes the evidence of
:math:`y_{ij} \sim N(\bar y_i W_j, \sigma_j^2)` with
:math:`W_j - cF_j \sim N(0, \sigma_j^2 G^{-1}/\tau)` (empirical Bayes).

==================  =====================  =======================================
symbol              variable               shape
==================  =====================  =======================================
:math:`\bar Y`      ``mean_scores``        (n, l)
:math:`G`           ``gram / n``           (l, l)
:math:`g, V`        ``eigenvalues``,       (l,), (l, l)
                    ``eigenvectors``
:math:`h`           ``shrinkage``          (l,)
:math:`F`           ``label_map``          (l, l)
:math:`m`           ``models_per_pair``    mean number of predictions of a pair
==================  =====================  =======================================

Xie, Kong, Gao, Fan, Yu: Multilabel Consensus Classification.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np
from scipy import linalg

from ..execution.statistics import Axes, get_present
from ..linalg.block_sums import dense, ratio
from ..linalg.gram import (
    Gram,
    as_gram,
    compute_mean_gram,
    compute_uncovered_grams,
)
from ..linalg.label_map import (
    LabelMap,
    apply_label_map,
    decompose_gram,
    get_map_column,
    shrink_labels,
)
from ..linalg.sparse_scores import SparseScores
from ..predictions import BoolArray, FloatArray
from ..predictions.blocks import PredictionBlock
from ..predictions.validation import Weights, whole
from .base import BaseCombiner, PredictionsLike
from .contributions import Contributions

# Candidates for tau: the number of instances that the unsupervised map counts as.
_TAUS = tuple(np.geomspace(1e5, 200, 26))
# Squared error of a label that is assumed in addition to the observed one.
_NOISE = 0.05


@dataclass(frozen=True, kw_only=True)
class MLCMaStatistics:
    """Sums over instances.

    `z` is the mean score of a pair, or 0 for a pair without predictions; `u` is 1 for a
    pair without predictions and 0 for others.
    """

    n_instances: Annotated[float, Axes("", least=0)]
    # Number of predictions, times the models' weights.
    n_predictions: Annotated[float, Axes("", least=0)]
    # Number of instances with at least one prediction of the label.
    n_covered: Annotated[FloatArray, Axes("l", least=0)]
    # Sum of z.
    mean_sum: Annotated[FloatArray, Axes("l", least=0)]
    # Sum of the products of z.
    gram: Annotated[Gram | FloatArray, Axes("l l", symmetric=True, least=0)]
    # Sum of the products of u and z; None if u is 0.
    cross_gram: Annotated[FloatArray | None, Axes("l l", least=0)] = None
    # Sum of the products of u; None if u is 0.
    uncovered_gram: Annotated[
        FloatArray | None, Axes("l l", symmetric=True, least=0)
    ] = None
    # Number of instances whose labels are all gold labels.
    n_gold_instances: Annotated[float | None, Axes("", least=0)] = None
    # S: the products of z over gold instances.
    gold_gram: Annotated[FloatArray | None, Axes("l l", symmetric=True, least=0)] = None
    # C: the products of z and gold labels.
    gold_cross: Annotated[FloatArray | None, Axes("l l", least=0)] = None
    # Number of gold instances that have the label.
    n_gold_positive: Annotated[FloatArray | None, Axes("l", least=0)] = None

    def with_unknown_labels(self, labels: BoolArray) -> Self:
        """Return the statistics of predictions in which some labels are missing.

        Parameters
        ----------
        labels : ndarray of shape (l,) of bool
            The labels without any prediction. Their sums are 0.

        Returns
        -------
        MLCMaStatistics
        """
        n_uncovered = self.n_instances - self.n_covered
        is_missing = labels[:, np.newaxis]
        uncovered_gram = self.uncovered_gram
        cross_gram = self.cross_gram
        if uncovered_gram is None or cross_gram is None:
            uncovered_gram = np.zeros((len(labels), len(labels)))
            cross_gram = np.zeros_like(uncovered_gram)

        uncovered_gram = np.where(labels, n_uncovered[:, np.newaxis], uncovered_gram)
        uncovered_gram = np.where(is_missing, n_uncovered, uncovered_gram)
        cross_gram = np.where(is_missing, self.mean_sum, cross_gram)
        return replace(self, cross_gram=cross_gram, uncovered_gram=uncovered_gram)


@dataclass(frozen=True, kw_only=True)
class MLCMaSolution:
    """The linear map from mean scores to consensus scores."""

    # F or W; a `HeadTailMap` for large label spaces.
    label_map: Annotated[LabelMap, Axes("l l")]
    # Mean score of each label, for pairs without predictions.
    prior: Annotated[FloatArray, Axes("l", least=0, most=1)]


class MLCMa(BaseCombiner):
    """MLCM-a: averaging regularized by the labels' precision matrix, for microAUC.

    Parameters
    ----------
    n_iter : int or None, default=1
        Number of iterations of Algorithm 1; None for their limit in closed form.
    weights : sequence or mapping, default=None
        Weight of each model, in their order or by name. By default all are equal.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> first = [[1, 1, 0], [0, 0, 1]]
    >>> second = [[1, 0, 0], [0, 0, 1]]
    >>> mlc.MLCMa(n_iter=1).fit_transform([first, second]).round(2)
    array([[0.56, 0.28, 0.  ],
           [0.  , 0.  , 0.5 ]])
    """

    Statistics = MLCMaStatistics
    Solution = MLCMaSolution
    identifier = "mlcm_a"
    name = "MLCM-a"
    takes_many = True
    pairs_labels = True
    in_float32 = ("label_map", "prior")

    def __init__(self, n_iter: int | None = 1, weights: Weights = None) -> None:
        self.n_iter = n_iter
        self.weights = weights

    def check(self) -> None:
        """Raise an error for parameters that have no solution."""
        if self.n_iter is not None:
            whole(self.n_iter, "n_iter", 0, 10**5)

    def _compute_statistics(self, block: PredictionBlock) -> MLCMaStatistics:
        """Return the sums of one block, those of gold instances separately."""
        total = block.sum_scores()
        count = block.count_predictions()
        mean = total.divide(count, default=0.0)
        is_uncovered = count.map(np.equal, 0)

        statistics = MLCMaStatistics(
            n_instances=block.n_instances,
            n_predictions=count.sum_over_instances().sum(),
            n_covered=block.n_instances - is_uncovered.sum_over_instances(),
            mean_sum=mean.sum_over_instances(),
            gram=compute_mean_gram(total, count),
        )
        uncovered_grams = compute_uncovered_grams(mean, is_uncovered)
        if uncovered_grams is not None:
            cross_gram, uncovered_gram = uncovered_grams
            statistics = replace(
                statistics, cross_gram=cross_gram, uncovered_gram=uncovered_gram
            )

        gold = block.gold
        if gold is None:
            return statistics

        is_complete = ~np.isnan(gold.answers).any(axis=1)
        gold_labels = gold.answers[is_complete]
        if len(gold_labels) == 0:
            return statistics

        gold_means = dense(mean.to_matrix()[gold.at[is_complete]])
        return replace(
            statistics,
            n_gold_instances=len(gold_labels),
            gold_gram=gold_means.T @ gold_means,
            gold_cross=gold_means.T @ gold_labels,
            n_gold_positive=gold_labels.sum(axis=0),
        )

    def _solve(self, statistics: MLCMaStatistics) -> MLCMaSolution:
        """Return the label map of Algorithm 1 after `n_iter` iterations."""
        prior = ratio(statistics.mean_sum, statistics.n_covered, 0.0)
        n_instances = statistics.n_instances
        models_per_pair = statistics.n_predictions / (n_instances * len(prior))

        gram = _fill_uncovered_pairs(statistics, prior)
        label_map = shrink_labels(
            gram, models_per_pair / n_instances, self._compute_shrinkage, self.n_iter
        )
        if statistics.n_gold_instances is not None:
            label_map = _fit_to_gold_labels(np.asarray(label_map), statistics, gram)
        return MLCMaSolution(label_map=label_map, prior=prior)

    def _compute_shrinkage(self, signal: FloatArray) -> FloatArray:
        """Return h after `n_iter` iterations; `signal` is m * g."""
        if self.n_iter is None:
            return _find_shrinkage_limit(signal)
        return _iterate_shrinkage(signal, whole(self.n_iter, "n_iter", 0))

    @staticmethod
    def _apply(
        block: PredictionBlock, solution: MLCMaSolution
    ) -> FloatArray | SparseScores:
        """Map the mean scores to consensus scores; Eq. averaging_omega."""
        mean = block.compute_mean_scores(solution.prior)
        return apply_label_map(mean, solution.label_map)

    @staticmethod
    def _contributions(
        block: PredictionBlock, solution: MLCMaSolution, label: int
    ) -> Contributions:
        """Return what each prediction of one instance adds to the label's score.

        The priors of pairs without predictions are the baseline.
        """
        scores, is_present = block.get_instance(0)
        factors = get_map_column(solution.label_map, label, block.n_labels)
        counts = is_present.sum(axis=0)
        baseline = (solution.prior * factors)[counts == 0].sum()
        return Contributions(
            baseline=float(baseline),
            predictions=ratio(scores, counts, 0.0) * factors,
        )


def mlcm_a(
    predictions: PredictionsLike, n_iter: int | None = 1, weights: Weights = None
) -> FloatArray:
    """Return the consensus scores of MLCM-a.

    Parameters
    ----------
    predictions : Predictions or array-like of shape (m, n, l)
        `Predictions`, or anything that its constructor takes.
    n_iter : int or None, default=1
        Number of iterations of Algorithm 1; None for their limit in closed form.
    weights : sequence or mapping, default=None
        Weight of each model, in their order or by name. By default all are equal.

    Returns
    -------
    ndarray of shape (n, l)
        Higher scores are more relevant.
    """
    return MLCMa(n_iter=n_iter, weights=weights).fit_transform(predictions)


def _fill_uncovered_pairs(statistics: MLCMaStatistics, prior: FloatArray) -> Gram:
    """Return the Gram matrix in which pairs without predictions have the prior."""
    gram = as_gram(statistics.gram)
    if statistics.uncovered_gram is None:
        return gram

    # z + u * prior, multiplied out.
    cross = prior[:, np.newaxis] * get_present(statistics.cross_gram)
    uncovered = np.outer(prior, prior) * statistics.uncovered_gram
    return as_gram(np.asarray(gram) + cross + cross.T + uncovered)


def _iterate_shrinkage(signal: FloatArray, n_iter: int) -> FloatArray:
    """Iterate h = x / (1 + x), x = m g h**2, starting with x = m g = `signal`."""
    signal = np.maximum(signal, 0.0)  # negative only by rounding
    weight = signal
    shrinkage = np.ones_like(signal)
    for _ in range(n_iter):
        shrinkage = weight / (1 + weight)
        weight = signal * shrinkage**2
    return shrinkage


def _find_shrinkage_limit(signal: FloatArray) -> FloatArray:
    """Return the limit of the iteration: the larger root of x**2 + (2 - mg) x + 1.

    The limit is 0 where m g < 4.
    """
    half = np.maximum(signal, 4.0) / 2 - 1
    weight = half + np.sqrt(np.maximum(half**2 - 1, 0.0))
    return np.where(signal >= 4, weight / (1 + weight), 0.0)


def _fit_to_gold_labels(
    label_map: FloatArray,
    statistics: MLCMaStatistics,
    gram: Gram,
) -> FloatArray:
    """Return W, the label map fitted to gold labels."""
    eigenvalues, eigenvectors = decompose_gram(gram)
    eigenvalues = eigenvalues / statistics.n_instances
    n_gold_instances = get_present(statistics.n_gold_instances)
    gold_gram = get_present(statistics.gold_gram)
    gold_cross = get_present(statistics.gold_cross)
    n_gold_positive = get_present(statistics.n_gold_positive)

    # Directions in which G is the identity and S is diagonal.
    is_positive = eigenvalues > 1e-10 * max(float(eigenvalues.max()), 1e-300)
    whitening = eigenvectors[:, is_positive] / np.sqrt(eigenvalues[is_positive])
    gold_eigenvalues, rotation = linalg.eigh(whitening.T @ gold_gram @ whitening)
    gold_eigenvalues = np.maximum(gold_eigenvalues, 0)
    directions = whitening @ rotation

    # cF: the unsupervised map on the scale that fits best.
    mapped = gold_gram @ label_map
    fit = (label_map * gold_cross).sum()
    scale = max(float(ratio(fit, (label_map * mapped).sum(), 1.0)), 1e-3)
    label_map = scale * label_map

    # C - cSF, and the squared errors of cF.
    residual = gold_cross - scale * mapped
    explained = (label_map * (gold_cross + residual)).sum(axis=0)
    squared_error = n_gold_positive - explained
    projected = directions.T @ residual

    def compute_evidence(tau: float) -> float:
        reduction = (1 / (gold_eigenvalues + tau)) @ projected**2
        variance = np.maximum(squared_error - reduction, 0) + _NOISE
        complexity = len(label_map) * np.log1p(gold_eigenvalues / tau).sum()
        return float(-complexity - n_gold_instances * np.log(variance).sum())

    tau = max(_TAUS, key=compute_evidence)
    correction = directions @ (projected / (gold_eigenvalues + tau)[:, np.newaxis])
    return np.asarray(label_map + correction)
