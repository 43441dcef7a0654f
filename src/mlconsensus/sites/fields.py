"""Statistics and solutions as named arrays, checked against the axes that each method declares beside its fields."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

from ..combiners.method import Axes
from ..errors import InputError

Arrays = dict[str, NDArray[Any]]


class Field(NamedTuple):
    """What one field is like."""

    axes: Axes
    kind: Any  # the class of a field that is no array, such as Dawid–Skene's counts; else None
    optional: bool  # whether it may be left out


@cache
def fields_of(kind: Any) -> Mapping[str, Field]:
    """Read what the fields of a NamedTuple are declared to be.

    Examples
    --------
    >>> from mlconsensus.combiners.mlcm_r import Statistics
    >>> fields_of(Statistics)["walk"].axes
    Axes(names='m l m l', symmetric=True, least=0)
    """
    hints = get_type_hints(kind, include_extras=True)
    found = {}
    for name in kind._fields:
        declared = next(iter(getattr(hints[name], "__metadata__", ())), None)
        if declared is None:
            raise TypeError(f"{kind.__module__}.{kind.__name__}.{name} declares no Axes, which files need")
        is_array, optional = isinstance(declared, Axes), name in kind._field_defaults
        found[name] = Field(declared if is_array else Axes(""), None if is_array else declared, optional)
    return found


def to_arrays(value: Any) -> Arrays:
    """Take statistics or a solution apart into named arrays.

    Examples
    --------
    >>> from mlconsensus.combiners.majority_vote import Statistics
    >>> to_arrays(Statistics(np.array([2.0]), 3))
    {'total': array([2.]), 'heard': array(3)}
    """
    arrays: Arrays = {}
    for name, part in value._asdict().items():
        if hasattr(part, "arrays"):
            arrays |= {f"{name}.{own}": array for own, array in part.arrays().items()}
        elif part is not None:
            arrays[name] = np.asarray(part)
    return arrays


def from_arrays(arrays: Arrays, kind: Any, sizes: Mapping[str, int], where: str, noisy: bool = False) -> Any:
    """Put statistics or a solution together from named arrays, after checking names, shapes and numbers.

    Parameters
    ----------
    arrays
        What `to_arrays` gave.
    kind
        The NamedTuple they belong to.
    sizes
        How many models ``m``, labels ``l``, (model, label) pairs ``ml`` and clusters ``c`` there are.
    where
        Says in error messages where the arrays come from.
    noisy
        Whether noise was added, which may bring numbers below their least.
    """
    fields = fields_of(kind)
    strange = [name for name in arrays if name.partition(".")[0] not in fields]
    if strange:
        raise InputError(f"{where}: found the array {strange[0]!r}, expected {', '.join(fields)}")
    parts = {}
    for name, field in fields.items():
        own = {key.partition(".")[2]: array for key, array in arrays.items() if key.partition(".")[0] == name}
        if not own:
            if not field.optional:
                raise InputError(f"{where}: found no array {name!r}, expected one")
            continue
        for array in own.values():
            if not np.isfinite(array).all():
                raise InputError(f"{where}, {name}: found NaN or infinite values, expected finite numbers")
        if field.kind is not None:
            parts[name] = field.kind.from_arrays(own, (sizes["m"], sizes["l"]), f"{where}, {name}")
        else:
            parts[name] = _checked(own.get(""), field.axes, sizes, f"{where}, {name}", noisy)
    return kind(**parts)


def reordered(value: Any, orders: Mapping[str, NDArray[np.intp]]) -> Any:
    """Put models and labels of statistics into another order.

    `orders` says for ``m``, ``l`` and ``c`` which old position each new one is taken from.
    """
    orders = {**orders, "ml": (orders["m"][:, None] * len(orders["l"]) + orders["l"]).ravel()}
    parts = value._asdict()
    for name, field in fields_of(value.__class__).items():
        part = parts[name]
        if hasattr(part, "reordered"):
            parts[name] = part.reordered(orders["m"], orders["l"])
        elif np.ndim(part):
            part = np.asarray(part)
            for axis, runs_over in enumerate(field.axes.names.split()):
                part = part.take(orders[runs_over], axis=axis) if runs_over in orders else part
            parts[name] = part
    return type(value)(**parts)


def _checked(array: NDArray[Any] | None, axes: Axes, sizes: Mapping[str, int], where: str, noisy: bool) -> Any:
    if array is None or array.dtype.kind == "u":
        raise InputError(f"{where}: found no numbers that fit, expected float64 or int64 of its own name")
    names = axes.names.split()
    if axes.least is not None and not noisy and array.size and array.min() < axes.least:
        raise InputError(f"{where}: found {array.min():g}, expected no number below {axes.least:g}")
    if array.shape == () and (not names or array == 0):  # 0 in place of an array: nothing was added up
        return array.item()
    expected = tuple(sizes.get(name, size) for name, size in zip(names, array.shape, strict=False))
    if array.shape != expected or len(array.shape) != len(names):
        raise InputError(f"{where}: found the shape {array.shape}, expected {' × '.join(names) or 'a single number'}")
    if axes.symmetric and array.size:
        half = array.ndim // 2  # (r, r) and (m, l, m, l) as one matrix, (l, r, r) as a matrix for each label
        order = (0, 2, 1) if array.ndim == 3 else (*range(half, array.ndim), *range(half))
        if np.abs(array - array.transpose(order)).max() > 1e-8 * np.abs(array).max():
            raise InputError(f"{where}: found a matrix that is not symmetric, expected a symmetric one")
    return array.astype(np.float64, copy=False)
