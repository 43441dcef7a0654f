r"""Estimates of ranking metrics, with intervals, from instances with gold labels.

A ranking metric :math:`\theta` of a method is estimated from gold instances, which were
sampled with inclusion probabilities :math:`\pi_i`. A gold instance thus represents
:math:`w_i = 1/\pi_i` instances. Its influence :math:`\psi_i` is how much it changes the
estimate: for a mean, its value minus the mean; for microAUC, a ratio of sums over
instance-label pairs, Hoeffding's projection (DeLong, DeLong, Clarke-Pearson, 1988, with
instances in place of pairs). A consensus without gold labels gives probabilities of the
labels, and these the expected metric of *all* instances, :math:`\tilde\theta`, and
influences :math:`\tilde\psi`:

.. math::

    \hat\theta = \theta_w + \lambda (\tilde\theta - \tilde\theta_w), \qquad
    \widehat{\operatorname{var}} = \sum_i \frac{(1 - \pi_i) w_i^2}{(\sum_j w_j)^2}
    \Bigl(\frac{\psi_i - \lambda \tilde\psi_i}{1 - h_i}\Bigr)^2

This is prediction-powered inference with the :math:`\lambda` of least variance (PPI++;
Angelopoulos, Duchi, Zrnic, 2023), in the form of the regression estimator of survey
sampling (Särndal, Swensson, Wretman, 1992, 6.4), which takes into account that the gold
instances are a sample of finitely many. Residuals are leave-one-out residuals
(:math:`h_i` is the leverage). Half an instance as extreme as the most extreme one is
added, because few instances distinguish two methods, and Wald's interval is too short
then. If the expected metrics do not reduce the variance, :math:`\lambda = 0`, which is
the plain interval. docs/gold-figures.md shows the measured coverage.

==========================================  ==========================  ===========
symbol                                      variable                    shape
==========================================  ==========================  ===========
:math:`\theta_w`                            ``value``                   (4,)
:math:`\psi`                                ``influence``               (4, g)
:math:`\tilde\theta - \tilde\theta_w`       ``expected_shift``          (4,)
:math:`\tilde\psi`                          ``expected_influence``      (4, g)
:math:`w`                                   ``weight``                  (g,)
:math:`1 - \pi`                             ``unseen``                  (g,)
:math:`\lambda`, :math:`h`                  ``lambda_``, ``leverage``   scalar, (g,)
==========================================  ==========================  ===========
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ..linalg.block_sums import ratio
from ..predictions import BoolArray, FloatArray
from . import _rank_counts
from .estimate import Estimate
from .ranking import LOWER_IS_BETTER, RANKING_METRICS

LEVEL = 0.9  # of the intervals
# Number of instances as extreme as the most extreme one that are added.
_EXTREME = 0.5
# Smallest share 1 - h by which a residual is divided.
_MIN_RESIDUAL_SHARE = 0.05
# Standard errors below this are 0, except for rounding.
_NO_ERROR = 1e-12


@dataclass(frozen=True, kw_only=True)
class GoldEvaluation:
    """The four ranking metrics of a method on ``g`` gold instances.

    The symbols are in the module's docstring. The difference of two evaluations is
    paired.
    """

    value: FloatArray  # (4,)
    influence: FloatArray  # (4, g)
    expected_shift: FloatArray  # (4,)
    expected_influence: FloatArray  # (4, g)
    weight: FloatArray  # (g,)
    unseen: FloatArray  # (g,)
    is_proportion: bool = True  # whether the metrics are in [0, 1]

    def subtract(self, other: Self) -> Self:
        """Subtract the metrics of another method on the same instances.

        Parameters
        ----------
        other : GoldEvaluation
            Evaluation of the other method.

        Returns
        -------
        GoldEvaluation
            Positive differences are better for each metric.
        """
        sign = np.ones(len(RANKING_METRICS))
        for index, metric in enumerate(RANKING_METRICS):
            if metric in LOWER_IS_BETTER:
                sign[index] = -1.0

        column = sign[:, np.newaxis]
        expected_influence = self.expected_influence - other.expected_influence
        return replace(
            self,
            value=sign * (self.value - other.value),
            influence=column * (self.influence - other.influence),
            expected_shift=sign * (self.expected_shift - other.expected_shift),
            expected_influence=column * expected_influence,
            is_proportion=False,
        )

    def compute_estimates(self) -> dict[str, Estimate]:
        """Estimate each metric, or each difference, with its interval.

        Returns
        -------
        dict of str to Estimate
            By the names in `RANKING_METRICS`.
        """
        estimates = {}
        for index, metric in enumerate(RANKING_METRICS):
            estimates[metric] = self._estimate(index)

        return estimates

    def _estimate(self, index: int) -> Estimate:
        """Estimate one metric or difference."""
        influence = self.influence[index]
        expected = self.expected_influence[index]
        weight = self.weight / self.weight.sum()
        variance_weight = self.unseen * weight**2

        # λ of least variance.
        covariance = variance_weight @ (influence * expected)
        lambda_ = float(ratio(covariance, variance_weight @ expected**2, 0.0))

        # Variance without and with the expected metrics.
        extreme = _EXTREME * variance_weight.mean() * np.abs(influence).max() ** 2
        plain = extreme + _compute_variance(influence, weight, variance_weight)
        squares = weight * expected**2
        leverage = weight + ratio(squares, squares.sum(), 0.0)
        residual = influence - lambda_ * expected
        powered = extreme + _compute_variance(residual, leverage, variance_weight)

        value = float(self.value[index])
        variance = plain
        if powered < plain:
            value += lambda_ * float(self.expected_shift[index])
            variance = powered
        if self.is_proportion:
            value = float(np.clip(value, 0, 1))

        # Without unseen instances there is no uncertainty.
        standard_error = float(np.sqrt(variance))
        low = value
        high = value
        if self.unseen.any():
            n_effective = 1 / float(weight @ weight)
            low, high = _compute_interval(
                value, standard_error, n_effective, self.is_proportion
            )

        n_gold = len(self.weight)
        return Estimate(
            value=value,
            standard_error=standard_error,
            low=low,
            high=high,
            effective_gold=float(n_gold * ratio(plain, standard_error**2, 1.0)),
        )


def _compute_variance(
    residual: FloatArray, leverage: FloatArray, variance_weight: FloatArray
) -> float:
    """Compute the variance from leave-one-out residuals (g,)."""
    share = np.maximum(1 - leverage, _MIN_RESIDUAL_SHARE)
    return float((residual / share) ** 2 @ variance_weight)


def evaluate_on_gold(
    truth: ArrayLike,
    scores: FloatArray,
    probabilities: FloatArray | None = None,
    inclusion: FloatArray | None = None,
) -> GoldEvaluation:
    """Evaluate scores on the instances with gold labels.

    Parameters
    ----------
    truth : array-like of shape (n, l)
        Relevant labels as 1 and 0; NaN where the gold label is missing.
    scores : ndarray of shape (n, l)
        Scores that were computed without these gold labels.
    probabilities : ndarray of shape (n, l), default=None
        Probabilities of the labels, also computed without these gold labels. By
        default, there are no expected metrics.
    inclusion : ndarray of shape (n,), default=None
        Probability with which each instance was sampled to get gold labels. By
        default, it is unknown. The estimates are then for the gold instances and
        instances like them, and no other instance is used.

    Returns
    -------
    GoldEvaluation

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, truth = mlc.datasets.make_panel(random_state=0)
    >>> is_gold = np.arange(len(truth)) < 100  # instances are in random order
    >>> gold = np.where(is_gold[:, np.newaxis], truth, np.nan)
    >>> vote = mlc.majority_vote(panel)
    >>> probabilities = mlc.weighted_consensus(panel)
    >>> inclusion = np.full(len(truth), 0.1)
    >>> evaluation = evaluate_on_gold(gold, vote, probabilities, inclusion)
    >>> loss = evaluation.compute_estimates()["ranking_loss"]
    >>> loss.low < mlc.metrics.ranking_loss(truth, vote) < loss.high
    True
    >>> loss.effective_gold > 100
    True
    """
    truth = np.asarray(truth, dtype=np.float64)
    is_known = ~np.isnan(truth)
    gold = np.flatnonzero(is_known.any(axis=1))
    gold_scores = scores[gold]
    if inclusion is None:
        weight = np.ones(len(gold))
        unseen = np.ones(len(gold))
    else:
        # An instance of which half the labels have gold labels is half seen.
        share_known = is_known[gold].mean(axis=1)
        weight = 1 / inclusion[gold]
        unseen = np.maximum(1 - inclusion[gold] * share_known, 0)

    # Metrics by the gold labels.
    relevant = truth[gold] == 1
    irrelevant = truth[gold] == 0
    metrics = compute_instance_metrics(relevant, irrelevant, gold_scores)
    value, influence = _compute_values(
        metrics, relevant, irrelevant, gold_scores, weight
    )

    # Expected metrics, of all instances and of the gold instances.
    expected_shift = np.zeros(len(RANKING_METRICS))
    expected_influence = np.zeros((len(RANKING_METRICS), len(gold)))
    if inclusion is not None and probabilities is not None:
        p = np.clip(probabilities, 0, 1)
        expected = compute_expected_metrics(p, scores)
        value_all, _ = _compute_values(expected, p, 1 - p, scores, np.ones(len(scores)))
        value_gold, expected_influence = _compute_values(
            expected[:, gold], p[gold], 1 - p[gold], gold_scores, weight
        )
        expected_shift = value_all - value_gold

    return GoldEvaluation(
        value=value,
        influence=influence,
        expected_shift=expected_shift,
        expected_influence=expected_influence,
        weight=weight,
        unseen=unseen,
    )


def compute_instance_metrics(
    relevant: BoolArray, irrelevant: BoolArray, scores: FloatArray
) -> FloatArray:
    """Compute the metrics of each instance over the labels with a known truth.

    Labels whose truth is unknown for all instances are left out.

    Parameters
    ----------
    relevant, irrelevant : ndarray of bool of shape (n, l)
        Known truth; both are False where it is unknown.
    scores : ndarray of shape (n, l)
        Higher is more relevant.

    Returns
    -------
    ndarray of shape (3, n)
        One-error, ranking loss and average precision. NaN if they depend on unknown
        labels: if it is unknown whether the first label is relevant, or if no relevant
        label is known.
    """
    has_known = (relevant | irrelevant).any(axis=0)
    relevant = relevant[:, has_known]
    irrelevant = irrelevant[:, has_known]
    scores = scores[:, has_known]
    is_known = relevant | irrelevant

    # One-error, among the labels that are tied at the top.
    is_first = scores == scores.max(axis=1, keepdims=True)
    n_wrong = (is_first & irrelevant).sum(axis=1)
    one_error = ratio(n_wrong, (is_first & is_known).sum(axis=1), np.nan)

    # Unknown labels are ranked last, and their pairs do not count.
    known_scores = np.where(is_known, scores, -np.inf)
    groups = _rank_counts.find_tie_groups(relevant, known_scores)
    n_counted = irrelevant.shape[1] - groups.n_relevant
    n_irrelevant = np.maximum(irrelevant.sum(axis=1), 1)
    loss = _rank_counts.compute_ranking_loss(groups) * (n_counted / n_irrelevant)
    precision = _rank_counts.compute_average_precision(groups)

    can_rank = is_known.all(axis=1) | relevant.any(axis=1)
    ranked = np.where(can_rank, np.stack([loss, precision]), np.nan)
    return np.vstack([one_error, ranked])


def compute_expected_metrics(
    probabilities: FloatArray, scores: FloatArray
) -> FloatArray:
    """Compute the expected metrics of each instance.

    Each sum over labels is replaced by its expectation.

    Parameters
    ----------
    probabilities : ndarray of shape (n, l)
        Probabilities that the labels are relevant.
    scores : ndarray of shape (n, l)
        Higher is more relevant.

    Returns
    -------
    ndarray of shape (3, n)
        One-error, ranking loss and average precision.
    """
    order = np.argsort(-scores, axis=1, kind="stable")
    p = np.take_along_axis(probabilities, order, axis=1)
    n_labels = p.shape[1]
    n_above = np.arange(n_labels)
    relevant_above = np.cumsum(p, axis=1) - p
    n_relevant = p.sum(axis=1)

    wrong_pairs = (p * (n_above - relevant_above)).sum(axis=1)
    n_pairs = n_relevant * (n_labels - n_relevant)
    precision = (p * (1 + relevant_above) / (1 + n_above)).sum(axis=1)
    return np.stack(
        [
            1 - p[:, 0],
            ratio(wrong_pairs, n_pairs, 0.0),
            ratio(precision, n_relevant, 1.0),
        ]
    )


def _compute_values(
    metrics: FloatArray,
    relevant: FloatArray | BoolArray,
    irrelevant: FloatArray | BoolArray,
    scores: FloatArray,
    weight: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Compute the four metrics (4,), and the influence of each instance (4, g).

    ``metrics`` (3, g) are those of instances, NaN if unknown. ``relevant`` and
    ``irrelevant`` (g, l) are 0/1 or probabilities.
    """
    weight = weight / weight.sum()

    # MicroAUC: won pairs by total pairs, and the projection of both.
    column = weight[:, np.newaxis]
    won = _rank_counts.sum_won_pairs(scores, relevant * column, irrelevant * column)
    mass = np.array([relevant.sum(axis=1), irrelevant.sum(axis=1)]) * weight  # (2, g)
    total = mass.sum(axis=1, keepdims=True)  # (2, 1)
    n_pairs = total.prod()
    auc = ratio(won[0].sum(), n_pairs, np.nan)
    share_won = ratio(won, n_pairs, 0.0)
    share_mass = ratio(mass, total, 0.0)
    by_side = share_won - np.nan_to_num(auc) * share_mass
    auc_influence = by_side.sum(axis=0) / weight

    # Means over the instances with a known metric.
    is_known = ~np.isnan(metrics)
    share = np.where(is_known.all(axis=1), 1.0, is_known @ weight)
    mean = ratio(np.where(is_known, metrics, 0.0) @ weight, share, np.nan)
    deviation = np.where(is_known, metrics - mean[:, np.newaxis], 0.0)
    mean_influence = ratio(deviation, share[:, np.newaxis], 0.0)
    return np.append(auc, mean), np.vstack([auc_influence, mean_influence])


def _compute_interval(
    value: float, standard_error: float, n_effective: float, is_proportion: bool
) -> tuple[float, float]:
    """Compute the ends of the interval.

    The distribution of a proportion is skewed near 0 and 1. Its interval is symmetric
    in log-odds, and reaches 0 or 1 if the plain interval does.
    """
    quantile = special.stdtrit(max(n_effective - 1, 1), (1 + LEVEL) / 2)
    half = standard_error * float(quantile)
    has_no_error = standard_error < _NO_ERROR
    if has_no_error:
        # All instances are equal: the largest share of others that can be missed.
        half = 1 - ((1 - LEVEL) / 2) ** (1 / n_effective)

    low = value - half
    high = value + half
    if not is_proportion:
        return low, high

    if not has_no_error:
        margin = min(standard_error, 0.5)
        p = float(np.clip(value, margin, 1 - margin))
        log_odds = special.logit(p)
        half_log_odds = half / (p * (1 - p))
        if low > 0:
            low = float(special.expit(log_odds - half_log_odds))
        if high < 1:
            high = float(special.expit(log_odds + half_log_odds))

    return max(low, 0.0), min(high, 1.0)
