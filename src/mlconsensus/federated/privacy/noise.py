"""Gaussian noise from OpenDP, which samples it exactly, and the scale that (ε, δ) asks for.

A release is private only if one instance cannot add more than the sensitivity to the
numbers that the computer really adds up. So contributions are rounded down to a grid on
which sums and products are exact in float64 (`on_grid`).
"""

from typing import Any

import numpy as np
from scipy import sparse

from ...errors import InputError, needed
from ...predictions import FloatArray, Matrix

# Numbers on a grid of 2⁻¹² have products on one of 2⁻²⁴, and sums of these are exact up
# to 2⁵³ · 2⁻²⁴ = 2²⁹.
_GRID = 2.0**12
_BELOW = 1 - 2.0**-30  # more than what rounding can have added before
# noise is drawn on a grid of 2⁻⁴⁰: coarser than OpenDP's default, and six times as fast
_STEP = -40
_SLACK = 1 + 2.0**-20  # scaling exact sums below 2²⁹ rounds them by less than this
MOST_INSTANCES = 2**28


def on_grid(A: Matrix) -> Matrix:
    """Round numbers down to multiples of 2⁻¹².

    Examples
    --------
    >>> on_grid(np.array([1 / 3])) * 2**12
    array([1365.])
    """
    if sparse.issparse(A):
        return sparse.csr_array((on_grid(A.data), A.indices, A.indptr), shape=A.shape)
    return np.floor(A * (_BELOW * _GRID)) / _GRID


def noise_scale(epsilon: float, delta: float, sensitivity: float, size: int) -> float:
    """Find the least standard deviation that makes a release of `size` numbers (ε, δ)-differentially private.

    Examples
    --------
    >>> 4 < noise_scale(1.0, 1e-6, 1.0, 10) < 5
    True
    """
    dp = _opendp()

    def private(scale: float) -> bool:
        try:
            release = dp.c.make_fix_delta(
                dp.c.make_zCDP_to_approxDP(_gaussian(dp, scale, size)), delta=delta
            )
            return bool(release.check(sensitivity * _SLACK, (epsilon, delta)))
        except dp.OpenDPException:  # it gives up where numbers overflow
            return False

    try:
        return float(dp.binary_search(private, bounds=(0.0, None)))
    except ValueError:
        wanted = f"ε = {epsilon:g}, δ = {delta:g}"
        raise InputError(
            f"privacy: found {wanted}, for which OpenDP has no noise, expected other numbers"
        ) from None


def add_noise(values: FloatArray, scale: float) -> FloatArray:
    """Add Gaussian noise of standard deviation `scale` to each of the values."""
    return np.array(
        _gaussian(_opendp(), scale, len(values))(
            np.ascontiguousarray(values, dtype=np.float64)
        )
    )


def _gaussian(dp: Any, scale: float, size: int) -> Any:
    space = (
        dp.vector_domain(dp.atom_domain(T=float, nan=False), size=size),
        dp.l2_distance(T=float),
    )
    return dp.m.make_gaussian(*space, scale=scale, k=_STEP)


def _opendp() -> Any:
    dp = needed("opendp.prelude", "privacy", "privacy")
    dp.enable_features("contrib")
    return dp
