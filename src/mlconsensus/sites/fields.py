"""What the fields of a method's statistics and solution are like, found out by fitting a small random panel.

Files of statistics and models are checked against it, so that a new method or field needs no code of its own here:
which axes run over models, labels or group nodes, which sums are symmetric, and which cannot be negative.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..combiners.base import Combiner
from ..errors import InputError
from ..panel.predictions import Predictions
from .state_file import Arrays

# Numbers of models, labels, group nodes and clusters of the panel that is tried; no two alike.
_SIZES = {"m": 11, "l": 13, "m·l": 143, "c": 17}
_ALONE = "value"  # what the only array of a solution without fields is called


class Field(NamedTuple):
    """What one field is like."""

    axes: tuple[str | None, ...]  # what each runs over, of `_SIZES`; None: anything
    symmetric: bool  # whether it equals `_turned` of it
    counts: bool  # whether nothing in it is below 0
    kind: Any  # the class of a field that is no array
    optional: bool  # whether it may be left out


class Fields(NamedTuple):
    """What the fields of statistics, or of a solution, are like, and what they are put together by."""

    make: Callable[..., Any]
    by_name: Mapping[str, Field]


@cache
def fields_of(kind: type[Combiner]) -> tuple[Fields, Fields]:
    """Say what a method's statistics and solution are like.

    Examples
    --------
    >>> from mlconsensus.combiners import MLCMr
    >>> statistics, solution = fields_of(MLCMr)
    >>> statistics.by_name["walk"].axes, statistics.by_name["walk"].symmetric, solution.by_name["groups"].axes
    (('m', 'l', 'm', 'l'), True, ('m·l', 'l'))
    """
    m, l = _SIZES["m"], _SIZES["l"]
    rng = np.random.default_rng(0)
    scores = rng.random((m, 60, l))
    scores[rng.random(scores.shape) < 0.3] = np.nan
    scores[:, :2, :2] = np.nan  # also cells about which nobody spoke
    panel = Predictions(scores)
    if kind._uses_clusterings:
        panel = panel.with_clusterings({"tried": [at % _SIZES["c"] for at in range(60)]})
    combiner = kind().fit(panel)
    return _fields(combiner.statistics_), _fields(combiner.solution_)


def to_arrays(value: Any) -> Arrays:
    """Take statistics or a solution apart into named arrays.

    Examples
    --------
    >>> from mlconsensus.combiners.majority_vote import Statistics
    >>> to_arrays(Statistics(np.array([2.0]), 3))
    {'total': array([2.]), 'heard': array(3)}
    """
    arrays: Arrays = {}
    for name, part in _parts(value).items():
        if hasattr(part, "arrays"):
            arrays |= {f"{name}.{own}": array for own, array in part.arrays().items()}
        elif part is not None:
            arrays[name] = np.asarray(part)
    return arrays


def from_arrays(arrays: Arrays, fields: Fields, sizes: Mapping[str, int], where: str) -> Any:
    """Put statistics or a solution together from named arrays, after checking names, shapes and numbers.

    Parameters
    ----------
    arrays
        What `to_arrays` gave.
    fields
        What they should be like.
    sizes
        How many models ``m``, labels ``l``, group nodes ``m·l`` and clusters ``c`` there are.
    where
        Says in error messages where the arrays come from.
    """
    strange = [name for name in arrays if name.partition(".")[0] not in fields.by_name]
    if strange:
        raise InputError(f"{where}: found the array {strange[0]!r}, expected {', '.join(fields.by_name)}")
    parts = {}
    for name, field in fields.by_name.items():
        own = {key.partition(".")[2]: array for key, array in arrays.items() if key.partition(".")[0] == name}
        if not own and not field.optional:
            raise InputError(f"{where}: found no array {name!r}, expected one")
        for array in own.values():
            if not np.isfinite(array).all():
                raise InputError(f"{where}, {name}: found NaN or infinite values, expected finite numbers")
        if own and field.kind is not None:
            parts[name] = field.kind.from_arrays(own, (sizes["m"], sizes["l"]), f"{where}, {name}")
        elif own:
            parts[name] = _checked(own.get(""), field, sizes, f"{where}, {name}")
    return fields.make(**parts)


def check_counts(value: Any, fields: Fields, where: str) -> None:
    """Refuse numbers below 0 in statistics where there can be none unless noise was added."""
    for name, part in _parts(value).items():
        if fields.by_name[name].counts and np.min(part) < 0:
            raise InputError(f"{where}, {name}: found {np.min(part):g}, expected no number below 0")


def reordered(value: Any, fields: Fields, orders: Mapping[str, NDArray[np.intp]]) -> Any:
    """Put models and labels of statistics into another order.

    `orders` says for ``m``, ``l`` and ``c`` which old position each new one is taken from.
    """
    l = len(orders["l"])
    orders = {**orders, "m·l": (orders["m"][:, None] * l + orders["l"]).ravel()}
    parts = _parts(value)
    for name, part in parts.items():
        if hasattr(part, "reordered"):
            parts[name] = part.reordered(orders["m"], orders["l"])
        elif np.ndim(part):
            part = np.asarray(part)
            for axis, runs_over in enumerate(fields.by_name[name].axes):
                part = part if runs_over is None else part.take(orders[runs_over], axis=axis)
            parts[name] = part
    return fields.make(**parts)


def _parts(value: Any) -> dict[str, Any]:
    return dict(value._asdict()) if hasattr(value, "_asdict") else {_ALONE: value}


def _fields(tried: Any) -> Fields:
    defaults = getattr(type(tried), "_field_defaults", {})
    by_name = {name: _field(part, name in defaults) for name, part in _parts(tried).items()}
    return Fields(type(tried) if hasattr(tried, "_asdict") else lambda value: value, by_name)


def _field(tried: Any, optional: bool) -> Field:
    if hasattr(tried, "arrays"):
        return Field((), False, False, type(tried), optional)
    array = np.asarray(tried)
    runs_over = {size: name for name, size in _SIZES.items()}
    turned = _turned(array)
    symmetric = turned is not None and np.allclose(array, turned, rtol=1e-8, atol=0)
    return Field(tuple(map(runs_over.get, array.shape)), symmetric, bool(array.min() >= 0), None, optional)


def _turned(array: NDArray[Any]) -> NDArray[Any] | None:
    """Swap rows and columns: of (r, r), of (m, l, m, l), or of each matrix in (l, r, r); None for other shapes."""
    half = array.ndim // 2
    if array.ndim in (2, 4) and array.shape[:half] == array.shape[half:]:
        return array.transpose(*range(half, array.ndim), *range(half))
    return array.transpose(0, 2, 1) if array.ndim == 3 and array.shape[1] == array.shape[2] else None


def _checked(array: NDArray[Any] | None, field: Field, sizes: Mapping[str, int], where: str) -> Any:
    if array is None or array.dtype.kind == "u":
        raise InputError(f"{where}: found no numbers that fit, expected float64 or int64 of its own name")
    if array.shape == () and (field.axes == () or array == 0):  # 0 in place of an array: nothing was added up
        return array.item()
    expected = tuple(size if name is None else sizes[name] for name, size in zip(field.axes, array.shape, strict=False))
    if array.shape != expected or len(array.shape) != len(field.axes):
        named = " × ".join(name or "any" for name in field.axes)
        raise InputError(f"{where}: found the shape {array.shape}, expected {named or 'a single number'}")
    turned = _turned(array) if field.symmetric else None
    if turned is not None and np.abs(array - turned).max() > 1e-8 * np.abs(array).max():
        raise InputError(f"{where}: found a matrix that is not symmetric, expected a symmetric one")
    return array.astype(np.float64, copy=False)
