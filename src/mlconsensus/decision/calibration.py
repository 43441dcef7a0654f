r"""From scores to probabilities: a few numbers that gold instances choose, drawn to "scores are probabilities already".

.. math::

    \operatorname{logit} p_{ij} = a + b \operatorname{logit} s_{ij} + c_j, \qquad
    a \sim N(0, 1), \quad b \sim N(1, \tfrac14), \quad c_j \sim N(0, \tau^2)

by maximum a posteriori (Platt, 1999, with priors). Labels with few answers keep what
all labels have in common.
"""

from typing import Any

import numpy as np
from scipy import optimize, special

from ..predictions import FloatArray

_LEAST = 1e-3  # scores are cut to what has odds
# of the priors: of a and b, and of each c
_PRECISION = np.array([1.0, 4.0])
_OF_LABELS = 8.0


def calibrated(scores: FloatArray, gold_scores: Any, truth: Any) -> FloatArray:
    """Turn scores (n, l) into probabilities.

    Parameters
    ----------
    scores
        What is to be turned.
    gold_scores
        Scores (g, l) of instances whose truth is known, found without it.
    truth
        Their relevant labels (g, l): 1, 0, or a number between where it is only likely;
        NaN where it is not known.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random((500, 2))
    >>> truth = rng.random((500, 2)) < scores / 2  # half as often as scores say
    >>> found = calibrated(scores, scores[:200], truth[:200])
    >>> bool(np.abs(found - scores / 2).mean() < 0.05)
    True
    """
    truth = np.asarray(truth, dtype=np.float64)
    known = ~np.isnan(truth)
    x = _odds(np.asarray(gold_scores))[known]
    y = truth[known]
    label = np.nonzero(known)[1]
    l = scores.shape[1]
    start = np.array([0.0, 1.0])
    precision = np.concatenate([_PRECISION, np.full(l, _OF_LABELS)])
    middle = np.concatenate([start, np.zeros(l)])

    def loss(at: FloatArray) -> tuple[float, FloatArray]:
        odds = at[0] + at[1] * x + at[2 + label]
        away = at - middle
        over = special.expit(odds) - y
        slope = np.concatenate([[over.sum(), over @ x], np.bincount(label, over, l)])
        return (
            np.logaddexp(0, odds) - y * odds
        ).sum() + precision @ away**2 / 2, slope + precision * away

    found = optimize.minimize(loss, middle, jac=True, method="L-BFGS-B").x
    return np.asarray(special.expit(found[0] + found[1] * _odds(scores) + found[2:]))


def _odds(scores: FloatArray) -> FloatArray:
    return np.asarray(special.logit(np.clip(scores, _LEAST, 1 - _LEAST)))
