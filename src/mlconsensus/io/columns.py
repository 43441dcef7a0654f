"""Columns of names and of scores, whatever the format: what may stand in them, and what messages say of the rest."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn

import numpy as np
import polars as pl

from ..errors import InputError, nearest
from ..execution.memory import check_size
from ..predictions import Array, first_again
from .files import Place
from .options import ReadOptions

# What plays which part in a long table, and what people call it.
ROLES = {
    "model": ("model", "annotator", "worker", "rater", "source"),
    "instance": ("instance", "item", "task", "id", "document"),
    "label": ("label", "tag", "class"),
    "score": ("score", "probability", "confidence"),
}
_ROLE = {name: role for role, usual in ROLES.items() for name in usual}
_LONG = frozenset({"instance", "label", "score"})

_ROWS = 2**20  # names that are looked at at a time
MISSING = (
    "",
    "na",
    "n/a",
    "nan",
    "null",
    "none",
)  # in any case, with or without spaces around

# Whether what is read is the truth or a consensus. Predictions are in [0, 1]; what was
# made of them need not be.
judged: ContextVar[bool] = ContextVar("judged", default=False)
_LARGEST = float(np.finfo(np.float64).max)


def roles(
    columns: Sequence[str], rules: ReadOptions = ReadOptions(), name: str = ""
) -> list[str | None]:
    """Tell what part each column plays in a long table, ``None``: none; an empty list if the table is a wide one.

    A table is a long one if it has the columns that the rules name, or if every column
    is called as is usual for some part, at least an instance, a label, and a model or a
    score.

    Examples
    --------
    >>> roles(["task", "worker", "label"]), roles(["instance", "sports", "politics"])
    (['instance', 'model', 'label'], [])
    >>> roles(["who", "item", "tag", "when"], ReadOptions(columns={"model": "who"}))
    ['model', 'instance', 'label', None]
    """
    given = {column: role for role, column in rules.columns.items()}
    named = any(column in given for column in columns)
    # What `--layout ranked` adds says nothing that the scores do not say.
    ranked = ["instance", "rank", "label", "score"]
    if list(columns) == ranked:
        return ["instance", None, "label", "score"]

    usual = [
        column
        if rules.strict and column in ROLES
        else _ROLE.get(column.strip().lower())
        for column in columns
    ]
    if not named:
        known = {role for role in usual if role}
        whole = (
            len(known) == len(columns)
            and known >= {"instance", "label"}
            and len(known) > 2
        )
        if rules.strict:
            whole = whole and list(columns) == usual and known >= _LONG
        if whole:
            return usual
        return []

    absent = next((column for column in given if column not in columns), None)
    if absent is not None:
        raise InputError(
            where=name,
            found=f"no column {absent!r}",
            expected=f"it, as columns says{nearest(str(absent), columns)}",
        )

    found = [given.get(column) for column in columns]
    for role in set(ROLES) - set(given.values()):
        same = [
            at for at, other in enumerate(usual) if other == role and found[at] is None
        ]
        if len(same) == 1:
            found[same[0]] = role

    for role in ("instance", "label"):
        if role not in found:
            raise InputError(
                where=name,
                found=f"no column for the {role}",
                expected=f"columns to say which ({role}=…)",
            )

    return found


def check_columns(columns: Sequence[str], name: str) -> None:
    """Refuse a header that cannot be that of a wide or long table.

    Examples
    --------
    >>> check_columns(["id", "x", "x"], "a.csv")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: a.csv, columns 2 and 3: found 'x' twice, expected each label once
    """
    if again := first_again(columns[1:]):
        first, second = again
        column = columns[first + 1]
        if column.replace(".", "", 1).isdigit():
            hint = "; is the header line missing?"
        else:
            hint = ""

        where = f"{name}, columns {first + 2} and {second + 2}"
        raise InputError(
            f"{where}: found {column!r} twice, expected each label once{hint}"
        )

    if columns:
        only = f"only the column {columns[0]!r}"
    else:
        only = "no column"

    if not (len(columns) > 1):
        raise InputError(
            where=name, found=only, expected="an instance id and at least one label"
        )

    for at, column in enumerate(columns[1:], 2):
        if not (bool(column.strip())):
            raise InputError(
                where=f"{name}, column {at}",
                found="an empty name",
                expected="that of a label",
            )


def row_size(rows: pl.DataFrame | pl.LazyFrame) -> int:
    """Return how many bytes a row takes in memory, text not counted.

    Examples
    --------
    >>> row_size(pl.DataFrame({"0": ["a"], "1": [0.5], "2": [True]}))
    25
    """
    kinds = rows.lazy().collect_schema().dtypes()
    return sum(
        16 if kind == pl.String else 1 if kind in (pl.Boolean, pl.UInt8, pl.Int8) else 8
        for kind in kinds
    )


def matrix(frame: pl.DataFrame, columns: Sequence[str], place: Place) -> Array:
    """Make one matrix of the columns of scores; the frame is used up.

    Parameters
    ----------
    frame
        One column a label, called by their positions ``"1"``, ``"2"``, … in the file.
    columns
        What the file calls all its columns; the first is that of the instances.
    place
        Where the rows stand.

    Examples
    --------
    >>> matrix(pl.DataFrame({"1": [True, False]}), ["id", "x"], Place("a.parquet", "row", int))
    array([[ True],
           [False]])
    """
    kind = _dtype(frame)
    if kind is np.bool_:
        return _from_bits(frame)

    out = np.empty((frame.height, frame.width), dtype=kind, order="F")
    for at, label in enumerate(columns[1:]):
        # Column by column, letting go of each: the whole is never there twice.
        out[:, at] = scores_of(
            frame.drop_in_place(str(at + 1)), label, place, columns
        ).to_numpy()

    return out


def _from_bits(frame: pl.DataFrame) -> Array:
    """Lay open the bits of decisions that Arrow keeps; `to_numpy` goes bit by bit, at ten times the cost.

    Arrow's stream is a message of names, one of cells, each with its size in front, and
    8 bytes that end it. The cells follow the second, column by column, each filled up
    to a multiple of 64 bytes.
    """
    stream = io.BytesIO()
    n = frame.height
    frame.rechunk().write_ipc_stream(stream, compression="uncompressed")
    data = np.frombuffer(stream.getvalue(), np.uint8)
    at = 0
    for _ in range(2):
        at += 8 + int(data[at + 4 : at + 8].view("<i4")[0])

    width = -(-n // 512) * 64
    if len(data) - at - 8 != width * frame.width:  # more is kept than bits
        return frame.to_numpy()

    bits = np.unpackbits(
        data[at:-8].reshape(-1, width), axis=1, count=n, bitorder="little"
    )
    return bits.view(np.bool_).T


def text_of(cells: pl.Series, column: str, place: Place) -> pl.Series:
    """Return a column of text or whole numbers as text.

    Examples
    --------
    >>> text_of(pl.Series([7, None]), "id", Place("a.parquet", "row", int)).to_list()
    ['7', None]
    """
    if cells.dtype in (pl.Categorical, pl.Enum) or cells.dtype.is_integer():
        cells = cells.cast(pl.String)

    text = cells.dtype == pl.String
    if not (text):
        raise InputError(
            where=f"{place.file}, column {column!r}",
            found=f"{cells.dtype} values",
            expected="text or whole numbers",
        )

    return cells


def names(cells: pl.Series, column: str, place: Place) -> pl.Series:
    """Return names as text; none may be empty.

    Examples
    --------
    >>> names(pl.Series([7, 8]), "id", Place("a.parquet", "row", int)).to_list()
    ['7', '8']
    """
    cells = text_of(cells, column, place)
    check_size(
        int(cells.str.len_bytes().sum()), f"{place.file}, column {column!r}", "of text"
    )
    for start in range(
        0, len(cells), _ROWS
    ):  # in pieces: ten million names take memory
        blank = cells[start : start + _ROWS].fill_null("").str.strip_chars() == ""
        if blank.any():
            where = place(start + int(blank.to_numpy().argmax()))
            raise InputError(
                f"{where}, column {column!r}: found nothing, expected a name"
            )

    return cells


def scores_of(
    cells: pl.Series, column: str, place: Place, columns: Sequence[str]
) -> pl.Series:
    """Check one column of scores; text becomes numbers.

    Examples
    --------
    >>> scores_of(pl.Series(["0.5", "NA"]), "x", Place("a.csv", "line", int), ["id", "x"]).to_list()
    [0.5, None]
    """
    where = f"column {column!r}"
    if cells.dtype == pl.String:
        check_size(
            int(cells.str.len_bytes().sum()), f"{place.file}, {where}", "of text"
        )
        numbers, bad = _from_text(cells)
        if bad is not None:
            raise_bad_score(f"{place(bad)}, {where}", cells[bad], meant_long(columns))
    else:
        right = cells.dtype.is_numeric() or cells.dtype in (pl.Boolean, pl.Null)
        if not (right):
            raise InputError(
                where=f"{place.file}, {where}",
                found=f"{cells.dtype} values",
                expected="numbers from 0 to 1",
            )
        if cells.dtype.is_decimal() or cells.dtype == pl.Null:
            numbers = cells.cast(pl.Float64)
        else:
            numbers = cells

    outside = _first_outside(numbers)
    if outside is not None:
        raise_bad_score(f"{place(outside)}, {where}", cells[outside])
    return numbers


def meant_long(columns: Sequence[str]) -> str:
    """Say how long tables are read, where columns look as if this were meant for one.

    Examples
    --------
    >>> meant_long(["worker", "task", "label", "time"])
    '; a long file has the columns instance, label, score, or --columns names them'
    """
    if roles(columns):
        return ""

    known = {_ROLE.get(column.strip().lower()) for column in columns} - {None}
    if len(known) >= 2:
        return "; a long file has the columns instance, label, score, or --columns names them"
    return ""


def _dtype(frame: pl.DataFrame) -> type[np.generic]:
    """Choose the smallest type that holds all columns exactly; a missing cell needs a float's NaN."""
    kinds = set(frame.dtypes)
    if all(kind == pl.Boolean or kind.is_integer() for kind in kinds):
        if any(frame.null_count().row(0)):
            return np.float32
        if kinds == {pl.Boolean}:
            return np.bool_
        return np.uint8

    if kinds == {pl.Float32}:
        return np.float32
    return np.float64


@contextmanager
def judging() -> Iterator[None]:
    """Read the truth or a consensus: every finite number counts as a score, and archives give the truth in them.

    Examples
    --------
    >>> with judging():
    ...     outside(-0.1), outside(float("inf"))
    (False, True)
    """
    token = judged.set(True)
    try:
        yield
    finally:
        judged.reset(token)


def outside(found: Any) -> Any:
    """Tell of a number, or of each in an array or series, whether it cannot be a score; NaN can.

    Examples
    --------
    >>> outside(1.5), outside(np.array([0.5, np.nan, -1.0])).tolist()
    (True, [False, False, True])
    """
    low, high = (-_LARGEST, _LARGEST) if judged.get() else (0.0, 1.0)
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
        lists = "; lists of tags are read from JSON lines and Parquet" * (
            found[:1] == "[" or ";" in found or "|" in found
        )
        raise InputError(
            f"{where}: found {found[:40]!r}, expected a number from 0 to 1{others}{hint or lists}"
        )

    if found in (float("inf"), float("-inf")):
        too_large = " (or a number too large)"
    else:
        too_large = ""

    # Text is parsed as floats; a whole number shall look like one.
    raise InputError(
        f"{where}: found {str(found).removesuffix('.0')}{too_large}, expected a number from 0 to 1"
    )


def _from_text(cells: pl.Series) -> tuple[pl.Series, int | None]:
    """Turn text into scores, null where missing; also the first row that is not a score.

    Examples
    --------
    >>> scores, bad = _from_text(pl.Series(["0.5", "TRUE", "n/a", "yes"]))
    >>> scores.to_list(), bad
    ([0.5, 1.0, None, None], 3)
    """
    tidy = cells.fill_null("").str.strip_chars().str.to_lowercase()
    numbers = tidy.replace({"true": "1", "false": "0"}).cast(pl.Float64, strict=False)
    unread = numbers.is_null() & ~tidy.is_in(MISSING)
    return numbers, unread.arg_max() if unread.any() else None


def _first_outside(cells: pl.Series) -> int | None:
    """Return the first row whose number is not in [0, 1]; NaN and null are no numbers.

    Examples
    --------
    >>> _first_outside(pl.Series([0.5, None, float("nan"), -0.1]))
    3
    """
    if cells.dtype == pl.Boolean:
        return None
    if not any(outside(end) for end in (cells.min(), cells.max()) if end is not None):
        return None
    if cells.dtype.is_float():
        bad = outside(cells) & cells.is_not_nan()
    else:
        bad = outside(cells)

    return int(bad.fill_null(False).arg_max())


def check_array(scores: Array, name: str) -> None:
    """Refuse an array that holds anything but scores.

    Examples
    --------
    >>> check_array(np.array([[0.5, 7.0]]), "a.npz, scores")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: a.npz, scores[0, 1]: found 7, expected a number from 0 to 1
    """
    if scores.dtype.kind not in "biuf":
        raise InputError(
            where=name, found=f"{scores.dtype} values", expected="numbers from 0 to 1"
        )
    if scores.dtype.kind == "b" or scores.size == 0:
        return
    if any(
        outside(end)
        for end in (
            np.fmin.reduce(scores, axis=None),
            np.fmax.reduce(scores, axis=None),
        )
    ):
        at = tuple(int(k) for k in np.argwhere(outside(scores))[0])
        raise_bad_score(f"{name}[{', '.join(map(str, at))}]", scores[at].item())
