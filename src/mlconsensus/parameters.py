"""Checks of the numbers that users set."""

from __future__ import annotations

import math
from numbers import Integral, Real

from .errors import InputError


def positive(value: object, name: str) -> float:
    """Return `value` as a finite float above 0.

    Examples
    --------
    >>> positive(2, "alpha")
    2.0
    """
    number = _number(value)
    if not (math.isfinite(number) and number > 0):
        raise InputError(f"{name}: found {value!r}, expected a finite number above 0")
    return number


def whole(value: object, name: str, least: int) -> int:
    """Return `value` as an int of at least `least`.

    Examples
    --------
    >>> whole(3, "k", 1)
    3
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise InputError(f"{name}: found {value!r}, expected a whole number of at least {least}")
    return int(value)


def fraction(value: object, name: str) -> float:
    """Return `value` as a float in [0, 1].

    Examples
    --------
    >>> fraction(0.5, "threshold")
    0.5
    """
    number = _number(value)
    if not 0 <= number <= 1:
        raise InputError(f"{name}: found {value!r}, expected a number in [0, 1]")
    return number


def _number(value: object) -> float:
    return float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
