r"""Calibration: convert scores to probabilities with the help of gold labels.

.. math::

    \operatorname{logit} p_{ij} = a + b \operatorname{logit} s_{ij} + c_j, \qquad
    a \sim N(0, 1), \quad b \sim N(1, \tfrac14), \quad c_j \sim N(0, \tau^2)

The coefficients are maximum a posteriori estimates (Platt scaling, 1999, with priors).
The priors are centered at "scores are probabilities". Labels with few gold labels keep
an offset :math:`c_j` near 0.

==================  ===========================
symbol              variable
==================  ===========================
:math:`a`           ``coefficients[0]``
:math:`b`           ``coefficients[1]``
:math:`c`           ``coefficients[2:]``, (l,)
==================  ===========================
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from ..predictions import FloatArray

_MIN_SCORE = 1e-3  # scores are clipped to [_MIN_SCORE, 1 - _MIN_SCORE]: finite log-odds
# Precisions of the priors of a and b, and of each c (1 / τ²)
_PRECISION = np.array([1.0, 4.0])
_LABEL_PRECISION = 8.0


def calibrate_scores(
    scores: FloatArray, gold_scores: ArrayLike, truth: ArrayLike
) -> FloatArray:
    """Convert scores to probabilities.

    Parameters
    ----------
    scores : ndarray of shape (n, l)
        Scores to convert.
    gold_scores : array-like of shape (g, l)
        Scores of the instances with gold labels, fitted without these.
    truth : array-like of shape (g, l)
        Gold labels: 1, 0, or a probability; NaN where there is none.

    Returns
    -------
    ndarray of shape (n, l)
        Probabilities.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random((500, 2))
    >>> truth = rng.random((500, 2)) < scores / 2  # half as often as the scores
    >>> probabilities = calibrate_scores(scores, scores[:200], truth[:200])
    >>> bool(np.abs(probabilities - scores / 2).mean() < 0.05)
    True
    """
    truth = np.asarray(truth, dtype=np.float64)
    is_known = ~np.isnan(truth)
    x = _compute_log_odds(np.asarray(gold_scores))[is_known]
    y = truth[is_known]
    label = np.nonzero(is_known)[1]
    n_labels = scores.shape[1]

    prior_mean = np.concatenate([[0.0, 1.0], np.zeros(n_labels)])
    prior_precision = np.concatenate([_PRECISION, np.full(n_labels, _LABEL_PRECISION)])

    def compute_loss(coefficients: FloatArray) -> tuple[float, FloatArray]:
        """Return the negative log posterior and its gradient."""
        log_odds = coefficients[0] + coefficients[1] * x + coefficients[2 + label]
        deviation = coefficients - prior_mean
        negative_log_likelihood = (np.logaddexp(0, log_odds) - y * log_odds).sum()
        penalty = prior_precision @ deviation**2 / 2

        residual = special.expit(log_odds) - y
        label_gradient = np.bincount(label, residual, n_labels)
        gradient = np.concatenate([[residual.sum(), residual @ x], label_gradient])
        return (
            negative_log_likelihood + penalty,
            gradient + prior_precision * deviation,
        )

    result = optimize.minimize(compute_loss, prior_mean, jac=True, method="L-BFGS-B")
    intercept = result.x[0]
    slope = result.x[1]
    label_offset = result.x[2:]
    log_odds = intercept + slope * _compute_log_odds(scores) + label_offset
    return np.asarray(special.expit(log_odds))


def _compute_log_odds(scores: FloatArray) -> FloatArray:
    """Return the log-odds of clipped scores."""
    return np.asarray(special.logit(np.clip(scores, _MIN_SCORE, 1 - _MIN_SCORE)))
