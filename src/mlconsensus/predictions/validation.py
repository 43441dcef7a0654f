"""Checks of the numbers that users set."""

import math
from collections.abc import Mapping, Sequence
from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, nearest
from .array_types import Frame

Weights = Mapping[str, float] | Sequence[float] | NDArray[np.float64] | None

# Products of two weights must neither vanish nor overflow, also in float32.
_SMALLEST_WEIGHT = 1e-15
_LARGEST_WEIGHT = 1e15


def positive(value: object, name: str) -> float:
    """Return `value` as a finite float above 0.

    Parameters
    ----------
    value : object
        What the user set.
    name : str
        Name of the parameter, for error messages.

    Returns
    -------
    float

    Examples
    --------
    >>> positive(2, "alpha")
    2.0
    """
    number = _as_number(value)
    if not 0 < number < math.inf:
        raise InputError(
            where=name, found=repr(value), expected="a finite number above 0"
        )

    return number


def whole(value: object, name: str, least: int, most: int = 10**9) -> int:
    """Return `value` as an int of at least `least` and at most `most`.

    Parameters
    ----------
    value : object
        What the user set.
    name : str
        Name of the parameter, for error messages.
    least, most : int
        The smallest and the largest valid number.

    Returns
    -------
    int

    Examples
    --------
    >>> whole(3, "k", 1)
    3
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise InputError(
            where=name,
            found=repr(value),
            expected=f"a whole number of at least {least}",
        )
    if int(value) > most:
        raise InputError(where=name, found=repr(value), expected=f"at most {most:,}")
    return int(value)


def fraction(value: object, name: str) -> float:
    """Return `value` as a float in [0, 1].

    Parameters
    ----------
    value : object
        What the user set.
    name : str
        Name of the parameter, for error messages.

    Returns
    -------
    float

    Examples
    --------
    >>> fraction(0.5, "threshold")
    0.5
    """
    number = _as_number(value)
    if not 0 <= number <= 1:
        raise InputError(where=name, found=repr(value), expected="a number in [0, 1]")
    return number


def model_weights(
    weights: Weights, models: Sequence[str]
) -> NDArray[np.float64] | None:
    """Return the weight of each model.

    Parameters
    ----------
    weights : sequence, mapping or pandas.Series
        Weights in the order of the models or by name; 1 for models that a mapping
        does not have.
    models : sequence of m str
        Names of the models.

    Returns
    -------
    ndarray of shape (m,), or None if all weights are 1

    Examples
    --------
    >>> model_weights({"b": 0.5}, ["a", "b"])
    array([1. , 0.5])
    """
    if weights is None:
        return None

    if hasattr(weights, "iloc"):
        weights = _read_series(weights)
    if isinstance(weights, Mapping):
        weights = _order_by_model(weights, models)

    expected = f"one for each of {len(models)} models"
    if not hasattr(weights, "__iter__"):
        raise InputError(where="weights", found=repr(weights), expected=expected)
    values = list(weights)
    if len(values) != len(models):
        raise InputError(where="weights", found=len(values), expected=expected)

    for weight, model in zip(values, models, strict=True):
        _check_weight(weight, f"weights, model {model!r}")
    if not any(values):
        raise InputError(
            where="weights", found="0 for every model", expected="at least one above 0"
        )

    return np.array(values, dtype=np.float64)


def _read_series(series: Frame) -> Mapping[str, float] | Sequence[float]:
    """Return a pandas Series as a mapping, or as a list if it has no names."""
    if list(series.index) == list(range(len(series))):
        return list(series)

    if not series.index.is_unique:
        raise InputError(
            where="weights", found="a name that comes again", expected="each once"
        )
    return dict(series.items())


def _order_by_model(weights: Mapping[str, float], models: Sequence[str]) -> list[float]:
    """Return weights by name in the order of the models."""
    for name in weights:
        if name not in models:
            hint = nearest(str(name), models)
            raise InputError(
                where="weights",
                found=f"one for {name!r}",
                expected=f"names of models{hint}",
            )

    return [weights.get(name, 1.0) for name in models]


def _check_weight(weight: float, where: str) -> None:
    """Check that a weight is a number that can be computed with."""
    if not 0 <= _as_number(weight) < math.inf:
        raise InputError(
            where=where, found=repr(weight), expected="a finite number of at least 0"
        )
    if weight != 0 and not _SMALLEST_WEIGHT <= weight <= _LARGEST_WEIGHT:
        raise InputError(
            where=where,
            found=repr(weight),
            expected="0 or a number from 1e-15 to 1e15",
        )


def _as_number(value: object) -> float:
    """Return a real number as a float; NaN for anything else and for huge numbers."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return math.nan
    if not abs(value) <= 1e308:  # type: ignore[operator]
        return math.nan
    return float(value)
