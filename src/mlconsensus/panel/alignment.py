"""Names of instances and labels, and how the models' own orders map onto the panel's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

Names = NDArray[Any]  # (count,) of int64 or of StringDType
IntArray = NDArray[np.int64]
How = Literal["union", "intersection"]

_TEXT = np.dtypes.StringDType()


def as_names(given: Any, where: str) -> Names:
    """Turn what names a user gave into an array of unique integers or strings.

    Examples
    --------
    >>> as_names(["b", "a"], "labels").tolist()
    ['b', 'a']
    """
    if isinstance(given, str):
        raise InputError(f"{where}: found the single text {given!r}, expected a list of names")
    found = np.asarray(given if hasattr(given, "__array__") else list(given))
    if found.dtype.kind == "f" and found.ndim == 1:
        if np.isnan(found).any():
            raise InputError(f"{where}: found NaN at position {int(np.isnan(found).argmax())}, expected a name")
        if (found == np.floor(found)).all():  # whole numbers that a join or a gap turned to floats
            found = found.astype(np.int64)
    if found.ndim != 1:
        raise InputError(f"{where}: found {found.ndim} dimensions, expected a flat list of names")
    # A list that mixes numbers and text must not be turned to text by way of floats.
    mixed = found.dtype.kind in "US" and not hasattr(given, "__array__")
    try:
        names = np.array(
            [str(name) for name in given] if mixed or found.dtype.kind == "O" else found,
            dtype=np.int64 if found.dtype.kind in "iu" else _TEXT,
        )
    except UnicodeEncodeError as broken:
        raise InputError(f"{where}: found {broken.object!a}, expected a name that can be written as UTF-8") from None
    listed = names.tolist()
    if names.dtype.kind == "T" and ("" in listed or (found.dtype.kind == "O" and any(name is None for name in given))):
        at = next(at for at, name in enumerate(given) if name is None or str(name) == "")
        raise InputError(f"{where}: found {given[at]!r} at position {at}, expected a name")
    if len(set(listed)) < len(listed):
        name, times = Counter(listed).most_common(1)[0]
        first = listed.index(name)
        second = listed.index(name, first + 1)
        more = f" and {times - 2} more" if times > 2 else ""
        raise InputError(f"{where}: found {name!r} at positions {first}, {second}{more}, expected each name once")
    names.flags.writeable = False
    return names


def align(names: Sequence[Names], how: How, where: str) -> tuple[Names, list[IntArray | None]]:
    """Find the panel's names and, for each model, where they stand in its own order (-1: nowhere).

    ``None`` in place of a map means that the model's order is the panel's.

    Examples
    --------
    >>> a, b = as_names(["x", "y"], "a"), as_names(["y", "z"], "b")
    >>> panel, maps = align([a, b], "union", "labels")
    >>> panel.tolist(), [m.tolist() for m in maps]
    (['x', 'y', 'z'], [[0, 1, -1], [-1, 0, 1]])
    """
    if how not in ("union", "intersection"):
        raise InputError(f"{where}: found {how!r}, expected 'union' or 'intersection'")
    first = names[0]
    if all(other is first or np.array_equal(other, first) for other in names[1:]):
        return first, [None] * len(names)
    if len({other.dtype for other in names}) > 1:
        names = [other.astype(_TEXT) for other in names]
    own = [{name: at for at, name in enumerate(other.tolist())} for other in names]
    if how == "union":
        listed = list({name: None for lookup in own for name in lookup})
    else:
        listed = [name for name in own[0] if all(name in lookup for lookup in own[1:])]
        if not listed:
            raise InputError(f"{where}: found none that all models share, expected at least one")
    panel = np.array(listed, dtype=names[0].dtype)
    panel.flags.writeable = False
    maps = [np.fromiter((lookup.get(name, -1) for name in listed), dtype=np.int64, count=len(listed)) for lookup in own]
    return panel, [None if np.array_equal(m, np.arange(len(own[k]))) else m for k, m in enumerate(maps)]
