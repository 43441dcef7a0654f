"""Names of instances and labels, and how the models' own orders map onto the panel's.

Names are NumPy arrays of whole numbers or text. Files may list ten million instances,
so readers give theirs as a Polars series of text, which takes a fraction of the memory
and time; `as_array` turns it to an array in the end.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

Array = NDArray[Any]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
# (count,) of int64 or of StringDType; while files are read, a Polars series of text
Names = Array
How = Literal["union", "intersection"]
Maps = list[
    IntArray | None
]  # for each model, where the panel's names stand in its own order (-1: nowhere)

_TEXT = np.dtypes.StringDType()
_GAPS = {
    "",
    "None",
    "nan",
    "NaT",
    "<NA>",
}  # how gaps of Python, NumPy and pandas are written


def as_names(given: Any, where: str) -> Names:
    """Turn what names a user gave into an array of unique integers or strings: dates and the like as str() has them.

    Examples
    --------
    >>> as_names(["b", "a"], "labels").tolist()
    ['b', 'a']
    """
    if isinstance(given, str):
        raise InputError(
            where=where, found=f"the single text {given!r}", expected="a list of names"
        )
    if isinstance(given, set | frozenset):
        raise InputError(
            where=where, found="a set, which has no order", expected="a list of names"
        )

    try:
        if not (hasattr(given, "__array__")):
            given = list(given)

        found = np.asarray(given)
    except (TypeError, ValueError):
        raise InputError(
            f"{where}: found {given!r}, expected a flat list of names"
        ) from None

    if found.ndim != 1:
        raise InputError(
            where=where,
            found=f"{found.ndim} dimensions",
            expected="a flat list of names",
        )
    if found.dtype.kind == "f":
        gaps = np.isnan(found)
        if gaps.any():
            raise InputError(
                where=where,
                found=f"NaN at position {gaps.argmax() if gaps.any() else 0}",
                expected="a name",
            )

    if found.dtype.kind == "M":  # NumPy and pandas write dates in two ways
        found = np.array(found.astype("M8[us]").tolist(), dtype=object)
    if found.dtype.kind == "O":
        given = found

    # Whole numbers, also those that a join or a gap turned to floats, unless they are
    # beyond int64.
    whole = found.dtype.kind in "iuf" and bool((found == np.floor(found)).all())
    whole = (
        whole and found.min(initial=0) >= -(2.0**63) and found.max(initial=0) < 2.0**63
    )
    # A list that mixes numbers and text must not be turned to text by way of floats.
    mixed = not whole and (found.dtype.kind in "Om" or not hasattr(given, "__array__"))
    try:
        each: Any = [str(name) for name in given] if mixed else found
        names = np.array(each, dtype=np.int64 if whole else _TEXT)
    except UnicodeEncodeError as broken:
        raise InputError(
            f"{where}: found {broken.object!a}, expected a name that can be written as UTF-8"
        ) from None

    listed = names.tolist()
    if not whole and not _GAPS.isdisjoint(listed):
        for at, name in enumerate(given):
            if is_missing(name):
                raise InputError(
                    f"{where}: found {name!r} at position {at}, expected a name"
                )
    if again := first_again(listed):
        first, second = again
        raise InputError(
            f"{where}: found {listed[first]!r} at positions {first}, {second}, expected each name once"
        )

    names.flags.writeable = False
    return names


def is_missing(name: Any) -> bool:
    """Tell whether a name is none: empty, None, or what NumPy and pandas have for a gap."""
    if isinstance(name, str | None):
        return not name
    return str(name) in _GAPS


def as_array(names: Any) -> Names:
    """Return names as an array, whatever they are kept in.

    Examples
    --------
    >>> as_array(as_names(["b", "a"], "labels")).tolist()
    ['b', 'a']
    """
    if isinstance(names, np.ndarray):
        return names
    return np.array(names.to_list(), dtype=_TEXT)


def first_again(names: Any) -> tuple[int, int] | None:
    """Return where the first name that comes again stands first and second; ``None`` if each is there once.

    Examples
    --------
    >>> first_again(["b", "a", "b"])
    (0, 2)
    """
    if hasattr(
        names, "hash"
    ):  # a Polars series: equal hashes are rare unless names are equal
        hashes = np.sort(names.hash().to_numpy())
        if (hashes[1:] != hashes[:-1]).all():
            again = None
        else:
            again = ~names.is_first_distinct()

        if again is None or not again.any():
            return None
        return int(names.index_of(names[again.arg_max()])), int(again.arg_max())

    first: dict[Any, int] = {}
    for at, name in enumerate(names):
        if first.setdefault(name, at) != at:
            return first[name], at

    return None


def align(
    names: Sequence[Any], how: How, where: str, listed: Sequence[Any] = ()
) -> tuple[Any, Maps]:
    """Find the panel's names and, for each model, where they stand in its own order (-1: nowhere).

    ``None`` in place of a map means that the model's order is the panel's. What is
    `listed` beside a model's names, the union has too.

    Examples
    --------
    >>> a, b = as_names(["x", "y"], "a"), as_names(["y", "z"], "b")
    >>> panel, maps = align([a, b], "union", "labels")
    >>> panel.tolist(), [m.tolist() for m in maps]
    (['x', 'y', 'z'], [[0, 1, -1], [-1, 0, 1]])
    """
    if how not in ("union", "intersection"):
        raise InputError(
            where=where, found=repr(how), expected="'union' or 'intersection'"
        )

    wider = [
        own if more is None else more
        for own, more in zip(names, listed or names, strict=True)
    ]
    if all(_same(other, names[0]) for other in (*names[1:], *wider)):
        return names[0], [None] * len(names)

    # a tenth of a second to import, which panels of one order do without
    import polars as pl

    series = [_series(own) for own in (*names, *wider)]
    if len({own.dtype for own in series}) > 1:
        series = [own.cast(pl.String) for own in series]

    series, every = series[: len(names)], series[len(names) :]
    if how == "intersection":
        panel = series[0]
    else:
        panel = pl.concat(every).unique(maintain_order=True)

    for own in series[1:] if how == "intersection" else ():
        panel = panel.filter(panel.is_in(own.implode()))

    if not (len(panel) > 0):
        raise InputError(
            where=where, found="none that all models share", expected="at least one"
        )

    maps = [_positions(panel, own) for own in series]
    if not isinstance(names[0], np.ndarray):
        return panel, maps
    if panel.dtype.is_integer():
        out = panel.to_numpy()
    else:
        out = as_array(panel)

    out.flags.writeable = False
    return out, maps


def _same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(as_array(one), as_array(other))
    return bool(one.equals(other))


def in_common(one: Any, other: Any) -> bool:
    """Tell whether two lists of names have any name in common, be it as a number or as text.

    Examples
    --------
    >>> in_common(as_names([1, 2], "a"), as_names(["2"], "b"))
    True
    """
    if _same(one, other):
        return True

    mine, others = (_series(names).cast(str) for names in (one, other))
    return bool(mine.is_in(others.implode()).any())


def _series(names: Any, where: str = "names") -> Any:
    import polars as pl

    if not (isinstance(names, np.ndarray) or hasattr(names, "hash")):
        names = as_names(names, where)
    if isinstance(names, np.ndarray):
        return pl.Series(names if names.dtype.kind == "i" else names.tolist())
    return names


def positions_of(wanted: Any, names: Any, where: str = "names") -> IntArray:
    """Find where names stand among all, be they numbers or text; -1: nowhere.

    Examples
    --------
    >>> positions_of(["2", "b"], [1, 2])
    array([ 1, -1])
    """
    wanted = _series(wanted, where)
    names = _series(names, where)
    if wanted.dtype != names.dtype:
        wanted = wanted.cast(str)
        names = names.cast(str)

    listed = names.alias("name").to_frame().with_row_index("row")
    found = (
        wanted.alias("name")
        .to_frame()
        .join(listed, on="name", how="left", maintain_order="left")["row"]
    )
    return found.cast(int).fill_null(-1).to_numpy()  # type: ignore[no-any-return]


def _positions(panel: Any, own: Any) -> IntArray | None:
    """Find where the panel's names stand in a model's own order; ``None``: in the same order."""
    rows = positions_of(panel, own)
    if len(rows) == len(own) and np.array_equal(rows, np.arange(len(own))):
        return None
    return rows
