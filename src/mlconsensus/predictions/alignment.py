"""Names of instances and labels, and maps from each model's order to a common one.

Names are NumPy arrays of integers or text. Files may list ten million instances, so
readers use a Polars series of text, which takes a fraction of the memory and time;
`as_array` converts it to an array in the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..errors import InputError
from .array_types import Array, IntArray, Names, NamesLike

if TYPE_CHECKING:
    import polars as pl

How = Literal["union", "intersection"]
# for each model, the position of each common name in the model's order (-1: absent)
Maps = list[IntArray | None]

_TEXT = np.dtypes.StringDType()
# how gaps of Python, NumPy and pandas are written
_GAPS = {"", "None", "nan", "NaT", "<NA>"}


def as_names(names: NamesLike, where: str) -> Names:
    """Convert names to an array of unique integers or texts.

    Dates and other objects become their ``str()``.

    Parameters
    ----------
    names : array-like of shape (count,)
        The names.
    where : str
        Their place, for error messages.

    Returns
    -------
    ndarray of shape (count,)
        A read-only array of int64 or of text.

    Examples
    --------
    >>> as_names(["b", "a"], "labels").tolist()
    ['b', 'a']
    """
    _check_ordered(names, where)
    if not hasattr(names, "__array__"):
        names = _as_list(names, where)
    raw = _as_flat_array(names, where)
    if raw.dtype.kind == "O":
        names = raw

    unique_names = _convert_names(names, raw, where)
    listed = unique_names.tolist()
    if unique_names.dtype.kind != "i" and not _GAPS.isdisjoint(listed):
        _check_gaps(names, where)

    repetition = first_again(listed)
    if repetition is not None:
        first, second = repetition
        raise InputError(
            where=where,
            found=f"{listed[first]!r} at positions {first}, {second}",
            expected="each name once",
        )

    unique_names.flags.writeable = False
    return unique_names


def _check_ordered(names: object, where: str) -> None:
    """Check that names are not a single text or a set."""
    if isinstance(names, str):
        raise InputError(
            where=where, found=f"the single text {names!r}", expected="a list of names"
        )
    if isinstance(names, set | frozenset):
        raise InputError(
            where=where, found="a set, which has no order", expected="a list of names"
        )


def _as_list(names: NamesLike, where: str) -> list[object]:
    """Convert an iterable to a list."""
    try:
        return list(names)
    except (TypeError, ValueError):
        raise InputError(
            where=where, found=repr(names), expected="a flat list of names"
        ) from None


def _as_flat_array(names: NamesLike, where: str) -> Array:
    """Convert names to an array of one dimension without NaN; dates to objects."""
    try:
        raw = np.asarray(names)
    except (TypeError, ValueError):
        raise InputError(
            where=where, found=repr(names), expected="a flat list of names"
        ) from None

    if raw.ndim != 1:
        raise InputError(
            where=where,
            found=f"{raw.ndim} dimensions",
            expected="a flat list of names",
        )

    if raw.dtype.kind == "f" and np.isnan(raw).any():
        raise InputError(
            where=where,
            found=f"NaN at position {np.isnan(raw).argmax()}",
            expected="a name",
        )

    # NumPy and pandas write dates in two ways.
    if raw.dtype.kind == "M":
        return np.array(raw.astype("M8[us]").tolist(), dtype=object)
    return raw


def _convert_names(names: NamesLike, raw: Array, where: str) -> Names:
    """Convert names, and the array NumPy makes of them, to int64 or text."""
    if _is_integral(raw):
        return np.array(raw, dtype=np.int64)

    # A list that mixes numbers and text must not become text by way of floats.
    is_mixed = raw.dtype.kind in "Om" or not hasattr(names, "__array__")
    try:
        if is_mixed:
            return np.array(list(map(str, names)), dtype=_TEXT)
        return np.array(raw, dtype=_TEXT)
    except UnicodeEncodeError as broken:
        raise InputError(
            where=where,
            found=ascii(broken.object),
            expected="a name that can be written as UTF-8",
        ) from None


def _is_integral(raw: Array) -> bool:
    """Return whether all are integers of int64, also those that are floats."""
    if raw.dtype.kind not in "iuf" or not (raw == np.floor(raw)).all():
        return False
    return bool(raw.min(initial=0) >= -(2.0**63) and raw.max(initial=0) < 2.0**63)


def _check_gaps(names: NamesLike, where: str) -> None:
    """Raise an error for the first missing name."""
    for position, name in enumerate(names):
        if is_missing(name):
            raise InputError(
                where=where,
                found=f"{name!r} at position {position}",
                expected="a name",
            )


def is_missing(name: object) -> bool:
    """Return whether a name is empty, None, or a gap of NumPy or pandas."""
    if isinstance(name, str | None):
        return not name
    return str(name) in _GAPS


def as_array(names: NamesLike) -> Names:
    """Return names as an array, also those of a Polars series.

    Examples
    --------
    >>> as_array(as_names(["b", "a"], "labels")).tolist()
    ['b', 'a']
    """
    if isinstance(names, np.ndarray):
        return names
    return np.array(names.to_list(), dtype=_TEXT)


def first_again(names: NamesLike) -> tuple[int, int] | None:
    """Return the first two positions of the first repeated name, or ``None``.

    Examples
    --------
    >>> first_again(["b", "a", "b"])
    (0, 2)
    """
    if hasattr(names, "hash"):
        return _find_repetition(names)

    first: dict[object, int] = {}
    for position, name in enumerate(names):
        if first.setdefault(name, position) != position:
            return first[name], position

    return None


def _find_repetition(series: pl.Series) -> tuple[int, int] | None:
    """Return what `first_again` does, for a Polars series."""
    # Equal hashes are rare unless names are equal.
    hashes = np.sort(series.hash().to_numpy())
    if (hashes[1:] != hashes[:-1]).all():
        return None

    is_repeated = ~series.is_first_distinct()
    if not is_repeated.any():
        return None
    second = is_repeated.to_numpy().argmax()
    first = (series == series[int(second)]).to_numpy().argmax()
    return int(first), int(second)


def align(
    names: Sequence[NamesLike],
    how: How,
    where: str,
    listed: Sequence[NamesLike] = (),
) -> tuple[NamesLike, Maps]:
    """Find the common names and their positions in each model's order (-1: absent).

    ``None`` in place of positions means that the model's order is the common one. The
    union also has the names that are `listed` for a model besides its own.

    Examples
    --------
    >>> a, b = as_names(["x", "y"], "a"), as_names(["y", "z"], "b")
    >>> common, maps = align([a, b], "union", "labels")
    >>> common.tolist(), [positions.tolist() for positions in maps]
    (['x', 'y', 'z'], [[0, 1, -1], [-1, 0, 1]])
    """
    if how not in ("union", "intersection"):
        raise InputError(
            where=where, found=repr(how), expected="'union' or 'intersection'"
        )

    all_names = list(names)
    for k, listed_names in enumerate(listed):
        if listed_names is not None:
            all_names[k] = listed_names
    if all(_same(other, names[0]) for other in (*names[1:], *all_names)):
        return names[0], [None] * len(names)

    # Importing Polars takes a tenth of a second, which one common order does not need.
    import polars as pl

    series = [_series(names_of_model) for names_of_model in (*names, *all_names)]
    dtypes = {model_series.dtype for model_series in series}
    if len(dtypes) > 1:
        series = [model_series.cast(pl.String) for model_series in series]

    model_names = series[: len(names)]
    if how == "intersection":
        common = model_names[0]
        for other in model_names[1:]:
            common = common.filter(common.is_in(other.implode()))
    else:
        common = pl.concat(series[len(names) :]).unique(maintain_order=True)

    if len(common) == 0:
        raise InputError(
            where=where, found="none that all models share", expected="at least one"
        )

    maps = [_positions(common, model_series) for model_series in model_names]
    if not isinstance(names[0], np.ndarray):
        return common, maps
    if common.dtype.is_integer():
        array = common.to_numpy()
    else:
        array = as_array(common)

    array.flags.writeable = False
    return array, maps


def _same(one: NamesLike, other: NamesLike) -> bool:
    """Return whether two lists of names are equal, in the same order."""
    if one is other:
        return True
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(as_array(one), as_array(other))
    return bool(one.equals(other))


def in_common(one: NamesLike, other: NamesLike) -> bool:
    """Return whether two lists of names share any name, as number or as text.

    Examples
    --------
    >>> in_common(as_names([1, 2], "a"), as_names(["2"], "b"))
    True
    """
    if _same(one, other):
        return True

    first = _series(one).cast(str)
    second = _series(other).cast(str)
    return bool(first.is_in(second.implode()).any())


def _series(names: NamesLike, where: str = "names") -> pl.Series:
    """Convert names to a Polars series."""
    import polars as pl

    if isinstance(names, pl.Series):
        return names
    if not isinstance(names, np.ndarray):
        names = as_names(names, where)
    if names.dtype.kind == "i":
        return pl.Series(names)
    return pl.Series(names.tolist())


def positions_of(wanted: NamesLike, names: NamesLike, where: str = "names") -> IntArray:
    """Return the positions of the wanted names, numbers or text; -1: absent.

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
    rows = (
        wanted.alias("name")
        .to_frame()
        .join(listed, on="name", how="left", maintain_order="left")["row"]
    )
    return rows.cast(int).fill_null(-1).to_numpy()  # type: ignore[no-any-return]


def _positions(common: NamesLike, names: NamesLike) -> IntArray | None:
    """Return the positions of common names in a model's; ``None``: the same order."""
    rows = positions_of(common, names)
    if len(rows) == len(names) and np.array_equal(rows, np.arange(len(names))):
        return None
    return rows
