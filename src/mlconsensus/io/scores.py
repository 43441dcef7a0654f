"""What counts as a score in a cell, and how a message says that one does not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..errors import InputError

MISSING = ("", "na", "n/a", "nan", "null", "none")  # in any case, with or without spaces around

# Predictions are in [0, 1]; what a combiner made of them need not be.
_limits: ContextVar[tuple[float, float]] = ContextVar("limits", default=(0.0, 1.0))


@contextmanager
def any_number() -> Iterator[None]:
    """Let every finite number count as a score while a consensus is read.

    Examples
    --------
    >>> with any_number():
    ...     outside(-0.1), outside(float("inf"))
    (False, True)
    """
    largest = float(np.finfo(np.float64).max)
    token = _limits.set((-largest, largest))
    try:
        yield
    finally:
        _limits.reset(token)


def outside(found: Any) -> Any:
    """Tell of a number, or of each in an array or series, whether it cannot be a score; NaN can.

    Examples
    --------
    >>> outside(1.5), outside(np.array([0.5, np.nan, -1.0])).tolist()
    (True, [False, False, True])
    """
    low, high = _limits.get()
    return (found < low) | (found > high)


def raise_bad_score(where: str, found: object, hint: str = "") -> NoReturn:
    """Refuse a cell.

    Examples
    --------
    >>> raise_bad_score("a.csv, line 2, column 'x'", 1.5)
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: a.csv, line 2, column 'x': found 1.5, expected a number from 0 to 1
    """
    if isinstance(found, str):
        others = ", true or false, or, where it is missing, nothing, NaN, NA, N/A, null or None"
        raise InputError(f"{where}: found {found[:40]!r}, expected a number from 0 to 1{others}{hint}")
    too_large = " (or a number too large)" if found in (float("inf"), float("-inf")) else ""
    # Text is parsed as floats; a whole number shall look like one.
    raise InputError(f"{where}: found {str(found).removesuffix('.0')}{too_large}, expected a number from 0 to 1")


def from_text(cells: pl.Series) -> tuple[pl.Series, int | None]:
    """Turn text into scores, null where missing; also the first row that is not a score.

    Examples
    --------
    >>> scores, bad = from_text(pl.Series(["0.5", "TRUE", "n/a", "yes"]))
    >>> scores.to_list(), bad
    ([0.5, 1.0, None, None], 3)
    """
    tidy = cells.fill_null("").str.strip_chars().str.to_lowercase()
    numbers = tidy.replace({"true": "1", "false": "0"}).cast(pl.Float64, strict=False)
    unread = numbers.is_null() & ~tidy.is_in(MISSING)
    return numbers, unread.arg_max() if unread.any() else None


def first_outside(cells: pl.Series) -> int | None:
    """Return the first row whose number is not in [0, 1]; NaN and null are no numbers.

    Examples
    --------
    >>> first_outside(pl.Series([0.5, None, float("nan"), -0.1]))
    3
    """
    if cells.dtype == pl.Boolean:
        return None
    if not any(outside(end) for end in (cells.min(), cells.max()) if end is not None):
        return None
    bad = outside(cells) & cells.is_not_nan() if cells.dtype.is_float() else outside(cells)
    return int(bad.fill_null(False).arg_max())


def check_array(scores: NDArray[Any], name: str) -> None:
    """Refuse an array that holds anything but scores.

    Examples
    --------
    >>> check_array(np.array([[0.5, 7.0]]), "a.npz, scores")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: a.npz, scores[0, 1]: found 7, expected a number from 0 to 1
    """
    if scores.dtype.kind not in "biuf":
        raise InputError(f"{name}: found {scores.dtype} values, expected numbers from 0 to 1")
    if scores.dtype.kind == "b" or scores.size == 0:
        return
    if any(outside(end) for end in (np.fmin.reduce(scores, axis=None), np.fmax.reduce(scores, axis=None))):
        at = tuple(int(k) for k in np.argwhere(outside(scores))[0])
        raise_bad_score(f"{name}[{', '.join(map(str, at))}]", scores[at].item())
