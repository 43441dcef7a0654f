r"""Correction of consensus scores by gold labels.

For a pair of instance and label with the consensus score s, the log odds
:math:`t = \operatorname{logit}(s)` and the predictions :math:`y_k` of the models, gold
labels are modeled by

.. math::

    \operatorname{logit} P(\text{relevant}) =
        a + b t + c s + g_j + h_j v(t) + \sum_k w_k (y_k - s) \qquad (4)

The curve (a, b, c) recalibrates the score, w changes the weights of models, and g and h
change the level of a label's log odds and how steeply they rise. The priors are
:math:`w_k \sim N(0, \tau^2)`, :math:`g_j, h_j \sim N(0, \sigma^2)`, a and c
:math:`\sim N(0, 3^2)`, and :math:`b \sim N(1, 1)`. The fits for all :math:`\tau` and
:math:`\sigma` are averaged by their evidence (Laplace's approximation). If w or g is
more likely to be 0 than not, it is set to 0.

Pairs of one instance are not independent. The likelihood is therefore raised to the
power :math:`\eta \le 1`: the variance of the gradient with respect to w that the model
expects, divided by the variance between instances.

==================  =====================  =========================================
symbol              variable               shape
==================  =====================  =========================================
:math:`a, b, c`     ``curve``              (3,)
:math:`w`           ``model_weights``      (m,)
:math:`g, h`        ``label_shifts``       (2, l)
:math:`\eta`        ``power``              number
==================  =====================  =========================================
"""

from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse
from scipy.special import expit

from ..predictions import FloatArray, IntArray
from ..predictions.blocks import PredictionBlock

# Standard deviations of w: log odds that a full vote of one model adds. The first
# stands for w = 0.
_TAUS = (1e-5, 0.1, 0.3, 1.0, 3.0)
# Standard deviations of g and h, likewise.
_SIGMAS = (1e-5, 0.1, 0.3, 1.0)
# Prior probability that w, or g, is 0.
_PRIOR_ABSENT = 0.3
# Scores of 0 and 1 have odds of 1 to 200.
_MARGIN = 0.005
# Prior of the curve (a, b, c).
_CURVE_MEAN = (0.0, 1.0, 0.0)
_CURVE_DEVIATION = (3.0, 1.0, 3.0)
# Smallest number of relevant and of irrelevant gold pairs.
_MIN_PAIRS = 3


@dataclass(frozen=True, kw_only=True)
class GoldCorrection:
    """What gold labels changed."""

    curve: FloatArray  # (3,) a, b and c
    model_weights: FloatArray  # (m,) w
    label_shifts: FloatArray  # (2, l) g and h

    def correct(self, scores: FloatArray) -> FloatArray:
        """Return the log odds of scores (n, l) without the models' part of (4)."""
        clipped = np.clip(scores, 0, 1)
        log_odds = _compute_log_odds(clipped)
        a, b, c = self.curve
        level, slope = self.label_shifts
        shifts = level + slope * _compute_slope(log_odds)
        return np.asarray(a + b * log_odds + c * clipped + shifts)


def _compute_log_odds(scores: FloatArray) -> FloatArray:
    """Return the log odds of scores in [0, 1], none of them infinite."""
    return np.asarray(np.log((scores + _MARGIN) / (1 - scores + _MARGIN)))


def _compute_slope(log_odds: FloatArray) -> FloatArray:
    """Return v, which increases from 0 to 2 with the log odds."""
    largest = np.log((1 + _MARGIN) / _MARGIN)
    return np.asarray(log_odds / largest + 1)


def apply_correction(
    block: PredictionBlock, scores: FloatArray, correction: GoldCorrection
) -> FloatArray:
    """Return the probabilities that follow from scores and gold labels; Eq. (4).

    Parameters
    ----------
    block : PredictionBlock
        Predictions of the models, without weights.
    scores : ndarray of shape (n, l)
        Consensus scores without gold labels.
    correction : GoldCorrection
        What gold labels changed.

    Returns
    -------
    ndarray of shape (n, l)
        Values in [0, 1].
    """
    weights = np.repeat(correction.model_weights[:, np.newaxis], block.n_labels, axis=1)
    from_models = block.sum_scores(weights).to_array()
    n_weighted = block.count_predictions(weights).to_array()
    difference = from_models - n_weighted * np.clip(scores, 0, 1)
    return np.asarray(expit(correction.correct(scores) + difference))


def fit_correction(
    predictions: FloatArray, scores: FloatArray, gold: FloatArray
) -> GoldCorrection | None:
    """Fit (4) to gold labels.

    Parameters
    ----------
    predictions : ndarray of shape (m, n, l)
        Predictions of the models for instances with gold labels, NaN if missing.
    scores : ndarray of shape (n, l)
        Consensus scores without gold labels.
    gold : ndarray of shape (n, l)
        1 for relevant labels, 0 for others, NaN if unknown.

    Returns
    -------
    GoldCorrection or None
        None if there are too few gold labels, or if neither the weights of models nor
        labels are likely to need a correction.
    """
    n_models, _, n_labels = predictions.shape
    instance, label = np.nonzero(~np.isnan(gold))
    relevant = gold[instance, label]
    n_relevant = relevant.sum()
    if min(n_relevant, len(relevant) - n_relevant) < _MIN_PAIRS:
        return None

    # Features of the curve, of the models and of the labels.
    score = np.clip(scores[instance, label], 0, 1)
    log_odds = _compute_log_odds(score)
    curve = np.column_stack([np.ones(len(score)), log_odds, score - score.mean()])
    differences = np.nan_to_num(predictions[:, instance, label] - score).T
    pair = np.arange(len(label))
    levels = sparse.csr_array(
        (np.ones(len(pair)), (pair, label)), shape=(len(pair), n_labels)
    )
    slopes = sparse.csr_array(
        (_compute_slope(log_odds), (pair, label)), shape=(len(pair), n_labels)
    )
    features = sparse.hstack([curve, differences, levels, slopes], format="csr")

    # Fits for all tau and sigma, each of which starts from the one before.
    power = _compute_power(curve, differences, relevant, instance)
    mean = np.append(_CURVE_MEAN, np.zeros(n_models + 2 * n_labels))
    coefficients = np.empty((len(_TAUS), len(_SIGMAS), len(mean)))
    log_evidence = np.empty((len(_TAUS), len(_SIGMAS)))
    start = mean
    for row, tau in enumerate(_TAUS):
        for column, sigma in enumerate(_SIGMAS):
            deviation = np.repeat([tau, sigma], [n_models, 2 * n_labels])
            precision = np.append(_CURVE_DEVIATION, deviation) ** -2.0
            fit = _fit_logistic(
                features, relevant, mean, precision, power=power, start=start
            )
            coefficients[row, column], log_evidence[row, column] = fit
            start = coefficients[row, column]

    probability = _compute_probabilities(log_evidence)
    if probability[0, 0] == 1:
        return None
    average = np.tensordot(probability, coefficients, axes=2)
    average[0] -= average[2] * score.mean()
    return GoldCorrection(
        curve=average[:3],
        model_weights=average[3 : 3 + n_models],
        label_shifts=average[3 + n_models :].reshape(2, n_labels),
    )


def _compute_power(
    curve: FloatArray, differences: FloatArray, relevant: FloatArray, instance: IntArray
) -> float:
    """Return the power of the likelihood, at most 1, for dependent pairs.

    The expected variance of the gradient of w, with the curve eliminated, divided by
    its variance between instances; about half of it for many pairs per instance.
    """
    features = sparse.csr_array(curve)
    precision = np.power(_CURVE_DEVIATION, -2.0)
    mean = np.asarray(_CURVE_MEAN)
    coefficients, _ = _fit_logistic(
        features, relevant, mean, precision, power=1.0, start=mean
    )
    probability = expit(curve @ coefficients)
    curvature = (probability * (1 - probability))[:, np.newaxis]

    # What remains of the differences after a weighted regression on the curve.
    root = np.sqrt(curvature)
    projection = linalg.lstsq(root * curve, root * differences)[0]
    remaining = differences - curve @ projection

    instances, number = np.unique(instance, return_inverse=True)
    n_instances = len(instances)
    gradient = np.zeros((n_instances, differences.shape[1]))
    np.add.at(gradient, number, remaining * (relevant - probability)[:, np.newaxis])
    between = gradient.var(axis=0).sum() * n_instances**2 / max(n_instances - 1, 1)
    expected = (remaining**2 * curvature).sum()
    pairs_per_instance = len(relevant) / n_instances
    power = min(1.0, float(expected / max(between, 1e-9)))
    return power * (1 + 1 / pairs_per_instance) / 2


def _fit_logistic(
    features: sparse.csr_array,
    relevant: FloatArray,
    mean: FloatArray,
    precision: FloatArray,
    *,
    power: float,
    start: FloatArray,
) -> tuple[FloatArray, float]:
    """Fit a logistic regression with a normal prior by Newton's method.

    Returns
    -------
    coefficients : ndarray of shape (k,)
        The mode of the posterior.
    log_evidence : float
        Laplace's approximation.
    """

    def compute_log_posterior(coefficients: FloatArray) -> float:
        log_odds = features @ coefficients
        log_likelihood = (relevant * log_odds - np.logaddexp(0, log_odds)).sum()
        log_prior = -precision @ (coefficients - mean) ** 2 / 2
        return float(power * log_likelihood + log_prior)

    coefficients = start
    value = compute_log_posterior(coefficients)
    change = np.inf
    while change > 1e-6:
        probability = expit(features @ coefficients)
        curvature = power * probability * (1 - probability)
        weighted = sparse.diags_array(curvature) @ features
        hessian = (features.T @ weighted).toarray() + np.diag(precision)
        gradient = power * (features.T @ (relevant - probability))
        gradient -= precision * (coefficients - mean)
        factor = linalg.cho_factor(hessian)
        step = linalg.cho_solve(factor, gradient)

        # Halve the step until the posterior does not decrease.
        while compute_log_posterior(coefficients + step) < value - 1e-9:
            step = step / 2
        coefficients = coefficients + step
        new_value = compute_log_posterior(coefficients)
        change = new_value - value
        value = new_value

    log_determinant = 2 * np.log(np.diag(factor[0])).sum()
    log_evidence = value + (np.log(precision).sum() - log_determinant) / 2
    return coefficients, float(log_evidence)


def _compute_probabilities(log_evidence: FloatArray) -> FloatArray:
    """Return the posterior probability of each tau and sigma, (5, 4).

    If w, or g, is more likely to be 0 than not, it is 0.
    """
    tau_prior = np.full(len(_TAUS), (1 - _PRIOR_ABSENT) / (len(_TAUS) - 1))
    sigma_prior = np.full(len(_SIGMAS), (1 - _PRIOR_ABSENT) / (len(_SIGMAS) - 1))
    tau_prior[0] = _PRIOR_ABSENT
    sigma_prior[0] = _PRIOR_ABSENT
    probability = np.exp(log_evidence - log_evidence.max())
    probability *= np.outer(tau_prior, sigma_prior)
    probability /= probability.sum()
    if probability[1:].sum() < 0.5:
        probability[1:] = 0
    if probability[:, 1:].sum() < 0.5 * probability.sum():
        probability[:, 1:] = 0
    return np.asarray(probability / probability.sum())
