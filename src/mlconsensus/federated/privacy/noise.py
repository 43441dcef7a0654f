"""Gaussian noise from OpenDP, which samples it exactly, and its scale for (ε, δ).

A release is private only if one instance cannot add more than the sensitivity to the
numbers that the computer really sums. So contributions are rounded down to a grid on
which sums and products are exact in float64 (`round_to_grid`).
"""

from collections.abc import Callable, Sequence
from types import ModuleType

import numpy as np
from scipy import sparse

from ...errors import InputError, needed
from ...linalg.matrix_types import DenseOrCSR
from ...predictions import FloatArray

MAX_INSTANCES = 2**28

# Numbers on a grid of 2⁻¹² have products on a grid of 2⁻²⁴, and sums of these are exact
# up to 2⁵³ · 2⁻²⁴ = 2²⁹.
_GRID = 2.0**12
_BELOW = 1 - 2.0**-30  # rounding can have added less than this before
# Noise is drawn on a grid of 2⁻⁴⁰. This is coarser than OpenDP's default, and six times
# as fast.
_NOISE_GRID_EXPONENT = -40
_SLACK = 1 + 2.0**-20  # scaling exact sums below 2²⁹ rounds them by less than this


def round_to_grid(values: DenseOrCSR) -> DenseOrCSR:
    """Round numbers down to multiples of 2⁻¹².

    Parameters
    ----------
    values : ndarray or csr_array
        Numbers that are not negative.

    Returns
    -------
    ndarray or csr_array

    Examples
    --------
    >>> round_to_grid(np.array([1 / 3])) * 2**12
    array([1365.])
    """
    if sparse.issparse(values):
        rounded = round_to_grid(values.data)
        return sparse.csr_array(
            (rounded, values.indices, values.indptr), shape=values.shape
        )
    return np.floor(values * (_BELOW * _GRID)) / _GRID


def find_noise_scale(
    epsilon: float, delta: float, sensitivity: float, size: int
) -> float:
    """Find the least standard deviation that makes a release private.

    Parameters
    ----------
    epsilon, delta : float
        ε and δ of the release.
    sensitivity : float
        The most that one instance adds, in Euclidean norm.
    size : int
        Number of released numbers.

    Returns
    -------
    float

    Examples
    --------
    >>> 4 < find_noise_scale(1.0, 1e-6, 1.0, 10) < 5
    True
    """
    dp = _import_opendp()

    def is_private(scale: float) -> bool:
        try:
            mechanism = _make_gaussian(dp, scale, size)
            approximate = dp.c.make_zCDP_to_approxDP(mechanism)
            release = dp.c.make_fix_delta(approximate, delta=delta)
            return bool(release.check(sensitivity * _SLACK, (epsilon, delta)))
        except dp.OpenDPException:  # numbers overflow
            return False

    try:
        return float(dp.binary_search(is_private, bounds=(0.0, None)))
    except ValueError:
        raise InputError(
            where="privacy",
            found=f"ε = {epsilon:g}, δ = {delta:g}, for which OpenDP finds no noise",
            expected="larger numbers",
        ) from None


def add_noise(values: FloatArray, scale: float) -> FloatArray:
    """Add Gaussian noise to each of the values.

    Parameters
    ----------
    values : ndarray of shape (k,)
        Exact sums.
    scale : float
        Standard deviation of the noise.

    Returns
    -------
    ndarray of shape (k,)
    """
    release = _make_gaussian(_import_opendp(), scale, len(values))
    return np.array(release(np.ascontiguousarray(values, dtype=np.float64)))


def _make_gaussian(
    dp: ModuleType, scale: float, size: int
) -> Callable[[FloatArray], Sequence[float]]:
    """Make OpenDP's measurement of `size` numbers with Gaussian noise."""
    numbers = dp.atom_domain(T=float, nan=False)
    domain = dp.vector_domain(numbers, size=size)
    metric = dp.l2_distance(T=float)
    mechanism: Callable[[FloatArray], Sequence[float]] = dp.m.make_gaussian(
        domain, metric, scale=scale, k=_NOISE_GRID_EXPONENT
    )
    return mechanism


def _import_opendp() -> ModuleType:
    """Import OpenDP and enable the features that its authors call contributed."""
    dp = needed("opendp.prelude", "privacy", "privacy")
    dp.enable_features("contrib")
    return dp
