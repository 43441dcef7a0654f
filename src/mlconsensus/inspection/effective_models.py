r"""How many raters with errors of their own would give as steady a mean vote as this panel.

With the mean correlation :math:`\bar\varepsilon` of two raters' errors, the mean of `m`
raters varies as that of :math:`m / (1 + (m - 1) \bar\varepsilon)` independent ones
(Kish's design effect). An error is a departure from the majority: what the majority
gets wrong cannot be seen without truth, so that the number is an upper estimate.
docs/diagnostics.md compares it with the truth.
"""

from typing import NamedTuple

import numpy as np
from scipy import special

from ..linalg.block_sums import FloatArray, ratio
from .pairwise import GROUPS

_MOST = 0.9  # of the raters; an interval from one voice to more than these says nothing


class Voices(NamedTuple):
    """An effective number of raters, as far as departures from the majority show it: an upper estimate."""

    estimate: float
    # of its 95 % interval, which covers chance and not what the majority hides; 1: too
    # few raters to tell
    low: float
    high: float
    sentence: str  # empty where the interval is so wide that it says nothing

    def __str__(self) -> str:
        return self.sentence


def count_voices(m: int, departures: FloatArray, copied: float = 0.0) -> Voices:
    """Count independent voices, with an interval from the jackknife over groups of instances.

    Parameters
    ----------
    m
        Number of raters.
    departures
        What `departing` added up in each group of instances (groups, 4, 2, l).
    copied
        Share of the pairs of raters that are copies: at least so much do errors go
        together.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> from mlconsensus.linalg.annotations import make_annotations
    >>> from mlconsensus.inspection.pairwise import compute_pairwise_statistics
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random((1000, 5)) < 0.3
    >>> own_errors = truth ^ (rng.random((6, 1000, 5)) < 0.1)
    >>> print(count_voices(6, compute_pairwise_statistics(make_annotations(mlc.Predictions(own_errors))).departures))
    6 models speak with at most 6.0 independent voices (95 % interval 5.8 to 6.0)
    """
    total = departures.sum(axis=0)
    if total[1].any():
        without = [_shared_errors(total - group) for group in departures]
        error = np.sqrt((GROUPS - 1) * np.var(without)) * special.stdtrit(
            GROUPS - 1, 0.975
        )
        # The correlation can be no lower than copies have it; moved there, it is
        # nowhere farther from the true one.
        shared = max(_shared_errors(total), copied) + np.array([0, error, -error])
    else:  # nobody ever departs, or nobody could
        shared = np.array([total[0].any(), 1, 0])

    estimate, low, high = (m / (1 + (m - 1) * np.clip(shared, copied, 1))).tolist()
    said = f"{m:,} models speak with at most {estimate:.1f} independent voices (95 % interval {low:.1f} to {high:.1f})"
    return Voices(estimate, low, high, said if low > 1 or high < _MOST * m else "")


def _shared_errors(sums: FloatArray) -> float:
    """Find the correlation of two raters' departures, each label's yes and no by itself."""
    cells, far, square, product = sums
    mean = ratio(far, cells, 0.0)
    return float((product - mean * far).sum() / max((square - mean * far).sum(), 1e-12))
