r"""Effective number of models: how many independent models the vote is worth.

If the errors of two models have the mean correlation :math:`\bar\varepsilon`, the mean
vote of `m` models varies as that of

.. math:: \frac{m}{1 + (m - 1) \bar\varepsilon}

models with independent errors (Kish's design effect). If there are families, this holds
for the members of each family, with the correlation of their errors (`families`), and
then for the families. Between families, an error is a deviation from the majority. Errors of the majority itself cannot be detected without ground truth, so that
the number is an upper estimate. docs/diagnostics.md compares it with the ground truth.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from ..linalg.block_sums import ratio
from ..metrics.estimate import Estimate
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

    return _describe_number(m, estimate, low, high)


def combine_families(
    m: int, between: EffectiveModels, of_families: Sequence[Estimate], n_alone: int
) -> EffectiveModels:
    r"""Combine the effective numbers of models in each family, and of the families.

    Parameters
    ----------
    m : int
        Number of models.
    between : EffectiveModels
        Effective number of families, estimated with one model of each.
    of_families : sequence of Estimate
        Effective number of models in each family of at least two models.
    n_alone : int
        Number of models without relations.

    Returns
    -------
    EffectiveModels
        With the errors of two families correlated by :math:`\varepsilon`,
        :math:`N / (1 + (N - 1) \varepsilon)` for the sum `N` over families.

    Examples
    --------
    >>> between = EffectiveModels(estimate=3.0, low=3.0, high=3.0, sentence="")
    >>> family = Estimate(value=1.2, standard_error=0.1, low=1.1, high=1.3)
    >>> print(combine_families(5, between, [family], 2))
    5 models are worth at most 3.2 independent models (95 % interval 3.1 to 3.3)
    """
    n_families = n_alone + len(of_families)
    values = np.array(
        [[family.value, family.low, family.high] for family in of_families]
    )
    within = n_alone + values.sum(axis=0)

    # Kish's formula, solved for the correlation of the errors of two families
    numbers = np.array([between.estimate, between.low, between.high])
    correlation = np.zeros(3)
    if n_families > 1:
        correlation = (n_families / numbers - 1) / (n_families - 1)

    estimate, low, high = (within / (1 + (within - 1) * correlation)).tolist()
    return _describe_number(m, estimate, low, high)


def _describe_number(
    m: int, estimate: float, low: float, high: float
) -> EffectiveModels:
    """Return the effective number of models with a sentence if it is informative."""
    sentence = ""
    if low > 1 or high < _UNINFORMATIVE_SHARE * m:
        sentence = (
            f"{m:,} models are worth at most {estimate:.1f} independent models "
            f"(95 % interval {low:.1f} to {high:.1f})"
        )
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
