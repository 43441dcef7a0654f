"""Checks of the numbers that users set."""

import math
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, nearest

Weights = Mapping[str, float] | Sequence[float] | NDArray[np.float64] | None


def positive(value: object, name: str) -> float:
    """Return `value` as a finite float above 0.

    Examples
    --------
    >>> positive(2, "alpha")
    2.0
    """
    number = _as_number(value)
    if not (0 < number < math.inf):
        raise InputError(
            where=name, found=repr(value), expected="a finite number above 0"
        )

    return number


def whole(value: object, name: str, least: int, most: int = 10**9) -> int:
    """Return `value` as an int of at least `least` and at most `most`.

    Examples
    --------
    >>> whole(3, "k", 1)
    3
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise InputError(
            f"{name}: found {value!r}, expected a whole number of at least {least}"
        )
    if not (value <= most):
        raise InputError(where=name, found=repr(value), expected=f"at most {most:,}")
    return int(value)


def fraction(value: object, name: str) -> float:
    """Return `value` as a float in [0, 1].

    Examples
    --------
    >>> fraction(0.5, "threshold")
    0.5
    """
    number = _as_number(value)
    if not (0 <= number <= 1):
        raise InputError(where=name, found=repr(value), expected="a number in [0, 1]")
    return number


def model_weights(
    weights: Weights, models: Sequence[str]
) -> NDArray[np.float64] | None:
    """Return how much each model counts (m,), given in their order or by name; ``None``: all alike.

    Examples
    --------
    >>> model_weights({"b": 0.5}, ["a", "b"])
    array([1. , 0.5])
    """
    if weights is None:
        return None

    given: Any = weights
    if hasattr(given, "iloc") and [*given.index] != [
        *range(len(given))
    ]:  # a Series of pandas, by name
        if not (given.index.is_unique):
            raise InputError(
                where="weights", found="a name that comes again", expected="each once"
            )

        weights = dict(given.items())

    if isinstance(weights, Mapping):
        for name in weights:
            hint = nearest(str(name), models)
            if name not in models:
                raise InputError(
                    where="weights",
                    found=f"one for {name!r}",
                    expected=f"names of models{hint}",
                )

        weights = [weights.get(name, 1.0) for name in models]

    if not (hasattr(weights, "__iter__")):
        raise InputError(
            where="weights",
            found=repr(weights),
            expected=f"one for each of {len(models)} models",
        )

    given = list(weights)
    if len(given) != len(models):
        raise InputError(
            where="weights",
            found=len(given),
            expected=f"one for each of {len(models)} models",
        )

    for weight, model in zip(given, models, strict=True):
        where = f"weights, model {model!r}"
        if not (0 <= _as_number(weight) < math.inf):
            raise InputError(
                where=where,
                found=repr(weight),
                expected="a finite number of at least 0",
            )
        # Products of two must neither vanish nor overflow, in float32 either.
        if not (not weight or 1e-15 <= weight <= 1e15):
            raise InputError(
                where=where,
                found=repr(weight),
                expected="0 or a number from 1e-15 to 1e15",
            )

    if not (any(given)):
        raise InputError(
            where="weights", found="0 for every model", expected="at least one above 0"
        )

    return np.array(given, dtype=np.float64)


def _as_number(value: object) -> float:
    """Return a real number as a float; NaN for anything else and for huge numbers."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return math.nan
    if not abs(value) <= 1e308:  # type: ignore[operator]
        return math.nan
    return float(value)
