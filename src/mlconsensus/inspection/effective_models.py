r"""Effective number of models: how many independent models the vote is worth.

If the errors of two models have the mean correlation :math:`\bar\varepsilon`, the mean
vote of `m` models varies as that of

.. math:: \frac{m}{1 + (m - 1) \bar\varepsilon}

models with independent errors (Kish's design effect). An error is a deviation from the
majority. Errors of the majority itself cannot be detected without ground truth, so that
the number is an upper estimate. docs/diagnostics.md compares it with the ground truth.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from ..linalg.block_sums import ratio
from ..predictions import FloatArray
from .pairwise import GROUPS

# An interval from 1 to more than this share of the models is not informative.
_UNINFORMATIVE_SHARE = 0.9


@dataclass(frozen=True, kw_only=True)
class EffectiveModels:
    """Effective number of models with its 95 % interval; an upper estimate.

    The interval covers sampling error only. Errors of the majority are not visible in
    it. Its lower end is 1 if there are too few models to estimate their errors.
    """

    estimate: float
    low: float
    high: float
    sentence: str  # empty if the interval is too wide to be informative

    def __str__(self) -> str:
        return self.sentence


def estimate_effective_models(
    m: int, departures: FloatArray, copied: float = 0.0
) -> EffectiveModels:
    """Estimate the effective number of models.

    The interval comes from the jackknife over groups of instances.

    Parameters
    ----------
    m : int
        Number of models.
    departures : ndarray of shape (groups, 4, 2, l)
        Sums of `sum_deviations` for each group of instances.
    copied : float, default=0.0
        Share of the pairs of models that are duplicates. The correlation of errors is
        at least this share.

    Returns
    -------
    EffectiveModels

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> from mlconsensus.linalg.annotations import make_annotations
    >>> from mlconsensus.inspection.pairwise import compute_pairwise_statistics
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random((1000, 5)) < 0.3
    >>> independent = mlc.Predictions(truth ^ (rng.random((6, 1000, 5)) < 0.1))
    >>> statistics = compute_pairwise_statistics(make_annotations(independent))
    >>> print(estimate_effective_models(6, statistics.departures))
    6 models are worth at most 6.0 independent models (95 % interval 5.8 to 6.0)
    """
    total = departures.sum(axis=0)
    n_pairs, deviations, _, _ = total
    if deviations.any():
        # The correlation is at least that of the duplicates. Raising it to this bound
        # does not move it away from the true correlation.
        correlation = max(_correlate_errors(total), copied)
        margin = _compute_jackknife_margin(departures)
        correlations = correlation + np.array([0, margin, -margin])
    else:
        # Either all models agree everywhere (1), or no pair has four models (0).
        correlations = np.array([n_pairs.any(), 1, 0])

    # The effective number falls with the correlation, so its ends are swapped.
    correlations = np.clip(correlations, copied, 1)
    estimate, low, high = (m / (1 + (m - 1) * correlations)).tolist()

    is_informative = low > 1 or high < _UNINFORMATIVE_SHARE * m
    if is_informative:
        sentence = (
            f"{m:,} models are worth at most {estimate:.1f} independent models "
            f"(95 % interval {low:.1f} to {high:.1f})"
        )
    else:
        sentence = ""

    return EffectiveModels(estimate=estimate, low=low, high=high, sentence=sentence)


def _compute_jackknife_margin(departures: FloatArray) -> float:
    """Return half the width of the 95 % interval of the correlation of errors."""
    total = departures.sum(axis=0)
    replicates = [_correlate_errors(total - group) for group in departures]
    standard_error = np.sqrt((GROUPS - 1) * np.var(replicates))
    quantile = special.stdtrit(GROUPS - 1, 0.975)
    return float(standard_error * quantile)


def _correlate_errors(sums: FloatArray) -> float:
    """Return the correlation of two models' deviations, centered by label and majority.

    `sums` (4, 2, l) are those of `sum_deviations`.
    """
    n_pairs, deviation, square, product = sums
    mean = ratio(deviation, n_pairs, 0.0)
    covariance = (product - mean * deviation).sum()
    variance = (square - mean * deviation).sum()
    return float(covariance / max(variance, 1e-12))
