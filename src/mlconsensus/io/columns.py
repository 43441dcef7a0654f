"""Checks of columns of names and of scores, for all formats."""

import io
from collections.abc import Iterable, Sequence
from typing import NoReturn, overload

import numpy as np
import polars as pl

from ..errors import InputError, nearest
from ..execution.memory import check_size
from ..predictions import Array, BoolArray, first_again
from .files import Place
from .options import UNIT_RANGE, ReadOptions, ValueRange

# Names that are recognized for each role of a column in a long table.
ROLES = {
    "model": ("model", "annotator", "worker", "rater", "source"),
    "instance": ("instance", "item", "task", "id", "document"),
    "label": ("label", "tag", "class"),
    "score": ("score", "probability", "confidence"),
}
_ROLE_BY_NAME: dict[str, str] = {}
for _role, _names in ROLES.items():
    _ROLE_BY_NAME |= dict.fromkeys(_names, _role)

_STRICT_ROLES = frozenset({"instance", "label", "score"})
_RANKED_COLUMNS = ["instance", "rank", "label", "score"]

# Text of a missing score, in lower case and without spaces around it.
MISSING = ("", "na", "n/a", "nan", "null", "none")

_ROWS = 2**20  # names that are checked at a time
_LENIENT_OPTIONS = ReadOptions()


def find_roles(
    columns: Sequence[str], options: ReadOptions = _LENIENT_OPTIONS, name: str = ""
) -> list[str | None]:
    """Return the role of each column in a long table.

    A table is long if it has the columns in ``options.columns``, or if every column has
    a recognized name, and there are at least an instance, a label, and a model or a
    score.

    Parameters
    ----------
    columns : sequence of str
        The header.
    options : ReadOptions, default=ReadOptions()
        `columns` and `strict` are used.
    name : str, default=""
        Name of the file in messages.

    Returns
    -------
    list of str or None
        Role of each column, ``None`` if it has none. The list is empty if the table is
        wide.

    Examples
    --------
    >>> find_roles(["task", "worker", "label"])
    ['instance', 'model', 'label']
    >>> find_roles(["instance", "sports", "politics"])
    []
    >>> options = ReadOptions(columns={"model": "who"})
    >>> find_roles(["who", "item", "tag", "when"], options)
    ['model', 'instance', 'label', None]
    """
    # The rank of a ranked table follows from its scores.
    if list(columns) == _RANKED_COLUMNS:
        return ["instance", None, "label", "score"]

    recognized_roles = _recognize_roles(columns, options.strict)
    has_named_column = not set(options.columns.values()).isdisjoint(columns)
    if has_named_column:
        return _complete_roles(columns, recognized_roles, options, name)

    if _is_long(columns, recognized_roles, options.strict):
        return recognized_roles
    return []


def _recognize_roles(columns: Iterable[str], is_strict: bool) -> list[str | None]:
    """Return the role of each column by its name."""
    roles: list[str | None] = []
    for column in columns:
        if is_strict and column in ROLES:
            roles.append(column)
        else:
            roles.append(_ROLE_BY_NAME.get(column.strip().lower()))

    return roles


def _is_long(columns: Sequence[str], roles: list[str | None], is_strict: bool) -> bool:
    """Return whether recognized columns make a long table."""
    distinct_roles = set(roles) - {None}
    if len(distinct_roles) != len(columns) or len(distinct_roles) < 3:
        return False
    if is_strict:
        return list(columns) == roles and distinct_roles >= _STRICT_ROLES
    return distinct_roles >= {"instance", "label"}


def _complete_roles(
    columns: Sequence[str],
    recognized_roles: list[str | None],
    options: ReadOptions,
    name: str,
) -> list[str | None]:
    """Return the roles that the options name, and others where only one column fits."""
    role_by_column: dict[str, str] = {}
    for role, column in options.columns.items():
        role_by_column[column] = role
        if column not in columns:
            raise InputError(
                where=name,
                found=f"no column {column!r}",
                expected=f"it, as columns says{nearest(str(column), columns)}",
            )

    roles = [role_by_column.get(column) for column in columns]
    candidates = list(recognized_roles)
    for position, named_role in enumerate(roles):
        if named_role is not None:
            candidates[position] = None

    for role in set(ROLES) - set(role_by_column.values()):
        if candidates.count(role) == 1:
            roles[candidates.index(role)] = role

    for role in ("instance", "label"):
        if role not in roles:
            raise InputError(
                where=name,
                found=f"no column for the {role}",
                expected=f"columns to say which ({role}=…)",
            )

    return roles


def check_columns(columns: Sequence[str], name: str) -> None:
    """Check that a header can be that of a wide or long table.

    Parameters
    ----------
    columns : sequence of str
        The header.
    name : str
        Name of the file in messages.

    Examples
    --------
    >>> check_columns(["id", "x", "x"], "a.csv")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: a.csv, columns 2 and 3: found 'x' twice, ...
    """
    repetition = first_again(columns[1:])
    if repetition is not None:
        first, second = repetition
        column = columns[first + 1]
        hint = ""
        if column.replace(".", "", 1).isdigit():
            hint = "; is the header line missing?"

        raise InputError(
            where=f"{name}, columns {first + 2} and {second + 2}",
            found=f"{column!r} twice",
            expected=f"each label once{hint}",
        )

    if len(columns) < 2:
        description = "no column"
        if columns:
            description = f"only the column {columns[0]!r}"

        raise InputError(
            where=name,
            found=description,
            expected="an instance id and at least one label",
        )

    for number, column in enumerate(columns[1:], 2):
        if not column.strip():
            raise InputError(
                where=f"{name}, column {number}",
                found="an empty name",
                expected="that of a label",
            )


def compute_row_size(rows: pl.DataFrame | pl.LazyFrame) -> int:
    """Return the bytes of a row in memory, without the characters of text.

    Parameters
    ----------
    rows : DataFrame or LazyFrame
        Rows of the table.

    Returns
    -------
    int

    Examples
    --------
    >>> compute_row_size(pl.DataFrame({"0": ["a"], "1": [0.5], "2": [True]}))
    25
    """
    size = 0
    for dtype in rows.lazy().collect_schema().dtypes():
        if dtype == pl.String:
            size += 16
        elif dtype in (pl.Boolean, pl.UInt8, pl.Int8):
            size += 1
        else:
            size += 8

    return size


def make_matrix(
    frame: pl.DataFrame,
    columns: Sequence[str],
    place: Place,
    value_range: ValueRange = UNIT_RANGE,
) -> Array:
    """Make a matrix of the columns of scores. The frame loses its columns.

    Parameters
    ----------
    frame : DataFrame with n rows
        One column for each label, named ``"1"``, ``"2"``, … by position in the file.
    columns : sequence of str, length l + 1
        Header of the file; the first column is that of the instances.
    place : Place
        Location of the rows, for messages.
    value_range : (float, float), default=(0, 1)
        Lowest and highest score.

    Returns
    -------
    ndarray of shape (n, l)

    Examples
    --------
    >>> place = Place(file="a.parquet", unit="row", number=int)
    >>> make_matrix(pl.DataFrame({"1": [True, False]}), ["id", "x"], place)
    array([[ True],
           [False]])
    """
    dtype = _choose_dtype(frame)
    if dtype is np.bool_:
        return _unpack_bits(frame)

    scores = np.empty((frame.height, frame.width), dtype=dtype, order="F")
    for position, label in enumerate(columns[1:]):
        # Each column is removed from the frame: the data is never in memory twice.
        cells = frame.drop_in_place(str(position + 1))
        numbers = check_scores(cells, label, place, columns, value_range=value_range)
        scores[:, position] = numbers.to_numpy()

    return scores


def _unpack_bits(frame: pl.DataFrame) -> Array:
    """Return the Boolean columns of a frame as an array (n, l).

    Polars' `to_numpy` converts bit by bit and takes ten times longer. An Arrow stream
    consists of one message with names, one with cells, each after its size, and 8 bytes
    at the end. The cells follow the second message, column by column, each column
    padded to a multiple of 64 bytes.
    """
    n_rows = frame.height
    stream = io.BytesIO()
    frame.rechunk().write_ipc_stream(stream, compression="uncompressed")
    data = np.frombuffer(stream.getvalue(), np.uint8)

    # Skip the two messages.
    start = 0
    for _ in range(2):
        message_size = int(data[start + 4 : start + 8].view("<i4")[0])
        start += 8 + message_size

    # Arrow may store a validity mask, too; then the size is different.
    column_size = -(-n_rows // 512) * 64
    if len(data) - start - 8 != column_size * frame.width:
        return frame.to_numpy()

    packed = data[start:-8].reshape(-1, column_size)
    bits = np.unpackbits(packed, axis=1, count=n_rows, bitorder="little")
    return bits.view(np.bool_).T


def cast_to_text(cells: pl.Series, column: str, place: Place) -> pl.Series:
    """Return a column of text or integers as text.

    Parameters
    ----------
    cells : Series
        Content of the column.
    column : str
        Name of the column in messages.
    place : Place
        Location of the rows, for messages.

    Returns
    -------
    Series of str

    Examples
    --------
    >>> place = Place(file="a.parquet", unit="row", number=int)
    >>> cast_to_text(pl.Series([7, None]), "id", place).to_list()
    ['7', None]
    """
    if cells.dtype in (pl.Categorical, pl.Enum) or cells.dtype.is_integer():
        return cells.cast(pl.String)
    if cells.dtype != pl.String:
        raise InputError(
            where=f"{place.file}, column {column!r}",
            found=f"{cells.dtype} values",
            expected="text or whole numbers",
        )

    return cells


def check_names(cells: pl.Series, column: str, place: Place) -> pl.Series:
    """Return names as text, and check that none is empty.

    Parameters
    ----------
    cells : Series
        Content of the column.
    column : str
        Name of the column in messages.
    place : Place
        Location of the rows, for messages.

    Returns
    -------
    Series of str

    Examples
    --------
    >>> place = Place(file="a.parquet", unit="row", number=int)
    >>> check_names(pl.Series([7, 8]), "id", place).to_list()
    ['7', '8']
    """
    names = cast_to_text(cells, column, place)
    _check_text_size(names, column, place)

    # In pieces: ten million names take much memory.
    for start in range(0, len(names), _ROWS):
        piece = names[start : start + _ROWS]
        is_blank = piece.fill_null("").str.strip_chars() == ""
        if is_blank.any():
            row = start + int(is_blank.to_numpy().argmax())
            raise InputError(
                where=f"{place(row)}, column {column!r}",
                found="nothing",
                expected="a name",
            )

    return names


def _check_text_size(cells: pl.Series, column: str, place: Place) -> None:
    """Check that the characters of a column fit into memory."""
    size = int(cells.str.len_bytes().sum())
    check_size(size, f"{place.file}, column {column!r}", "of text")


def check_scores(
    cells: pl.Series,
    column: str,
    place: Place,
    columns: Sequence[str],
    *,
    value_range: ValueRange = UNIT_RANGE,
) -> pl.Series:
    """Check a column of scores and return it as numbers.

    Parameters
    ----------
    cells : Series
        Numbers, Booleans or text.
    column : str
        Name of the column in messages.
    place : Place
        Location of the rows, for messages.
    columns : sequence of str
        Header of the file, for messages.
    value_range : (float, float), default=(0, 1)
        Lowest and highest score.

    Returns
    -------
    Series of numbers or bool
        Missing scores are null or NaN.

    Examples
    --------
    >>> place = Place(file="a.csv", unit="line", number=int)
    >>> check_scores(pl.Series(["0.5", "NA"]), "x", place, ["id", "x"]).to_list()
    [0.5, None]
    """
    where = f"column {column!r}"
    if cells.dtype == pl.String:
        _check_text_size(cells, column, place)
        numbers, bad_row = _parse_scores(cells)
        if bad_row is not None:
            hint = suggest_long_format(columns)
            raise_bad_score(f"{place(bad_row)}, {where}", cells[bad_row], hint)
    elif cells.dtype.is_decimal() or cells.dtype == pl.Null:
        numbers = cells.cast(pl.Float64)
    elif cells.dtype.is_numeric() or cells.dtype == pl.Boolean:
        numbers = cells
    else:
        raise InputError(
            where=f"{place.file}, {where}",
            found=f"{cells.dtype} values",
            expected="numbers from 0 to 1",
        )

    bad_row = _find_first_outside(numbers, value_range)
    if bad_row is not None:
        raise_bad_score(f"{place(bad_row)}, {where}", cells[bad_row])
    return numbers


def suggest_long_format(columns: Sequence[str]) -> str:
    """Return a hint for a wide table whose columns look like those of a long one.

    Parameters
    ----------
    columns : sequence of str
        The header.

    Returns
    -------
    str
        End of a message, empty if the table is long or does not look like it.

    Examples
    --------
    >>> suggest_long_format(["worker", "task", "label", "time"])
    '; a long file has the columns instance, label, score, or --columns names them'
    """
    if find_roles(columns):
        return ""

    roles = set(_recognize_roles(columns, is_strict=False)) - {None}
    if len(roles) < 2:
        return ""
    return (
        "; a long file has the columns instance, label, score, or --columns names them"
    )


def _choose_dtype(frame: pl.DataFrame) -> type[np.generic]:
    """Return the smallest type that holds all columns exactly, missing ones as NaN."""
    dtypes = set(frame.dtypes)
    if all(map(is_integral, dtypes)):
        has_missing = any(frame.null_count().row(0))
        if has_missing:
            return np.float32
        if dtypes == {pl.Boolean}:
            return np.bool_
        return np.uint8

    if dtypes == {pl.Float32}:
        return np.float32
    return np.float64


def is_integral(dtype: pl.DataType) -> bool:
    """Return whether all values of a type are integers or Booleans.

    Parameters
    ----------
    dtype : DataType
        Type of a column.

    Returns
    -------
    bool

    Examples
    --------
    >>> is_integral(pl.Boolean()), is_integral(pl.Float32())
    (True, False)
    """
    return dtype == pl.Boolean or dtype.is_integer()


@overload
def is_outside(values: float, value_range: ValueRange = UNIT_RANGE) -> bool: ...
@overload
def is_outside(values: Array, value_range: ValueRange = UNIT_RANGE) -> BoolArray: ...
@overload
def is_outside(
    values: pl.Series, value_range: ValueRange = UNIT_RANGE
) -> pl.Series: ...
def is_outside(
    values: float | Array | pl.Series, value_range: ValueRange = UNIT_RANGE
) -> bool | BoolArray | pl.Series:
    """Return whether numbers are outside the range of scores; NaN is not.

    Parameters
    ----------
    values : float, ndarray or Series
        The numbers to check.
    value_range : (float, float), default=(0, 1)
        Lowest and highest score.

    Returns
    -------
    bool, or ndarray or Series of bool

    Examples
    --------
    >>> is_outside(1.5), is_outside(np.array([0.5, np.nan, -1.0])).tolist()
    (True, [False, False, True])
    """
    low, high = value_range
    return (values < low) | (values > high)


def raise_bad_score(where: str, value: object, hint: str = "") -> NoReturn:
    """Raise the error for a cell that is not a score.

    Parameters
    ----------
    where : str
        Location of the cell.
    value : object
        Its content.
    hint : str, default=""
        End of the message if the content is text.

    Examples
    --------
    >>> raise_bad_score("a.csv, line 2, column 'x'", 1.5)
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: a.csv, line 2, column 'x': found 1.5, expected a ...
    """
    expected = "a number from 0 to 1"
    if isinstance(value, str):
        looks_like_list = value[:1] == "[" or ";" in value or "|" in value
        if not hint and looks_like_list:
            hint = "; lists of tags are read from JSON lines and Parquet"

        expected += (
            ", true or false, or, where it is missing, nothing, NaN, NA, N/A, null or"
            f" None{hint}"
        )
        raise InputError(where=where, found=repr(value[:40]), expected=expected)

    # Text is parsed as float; an integer is printed without its decimals.
    description = str(value).removesuffix(".0")
    if value in (float("inf"), float("-inf")):
        description += " (or a number too large)"

    raise InputError(where=where, found=description, expected=expected)


def _parse_scores(cells: pl.Series) -> tuple[pl.Series, int | None]:
    """Return the numbers in text, null if missing, and the first row without one.

    Examples
    --------
    >>> scores, bad_row = _parse_scores(pl.Series(["0.5", "TRUE", "n/a", "yes"]))
    >>> scores.to_list(), bad_row
    ([0.5, 1.0, None, None], 3)
    """
    text = cells.fill_null("").str.strip_chars().str.to_lowercase()
    digits = text.replace({"true": "1", "false": "0"})
    numbers = digits.cast(pl.Float64, strict=False)

    is_bad = numbers.is_null() & ~text.is_in(MISSING)
    if is_bad.any():
        return numbers, is_bad.arg_max()
    return numbers, None


def _find_first_outside(cells: pl.Series, value_range: ValueRange) -> int | None:
    """Return the first row whose number is not a score, ``None`` if there is none.

    Examples
    --------
    >>> _find_first_outside(pl.Series([0.5, None, float("nan"), -0.1]), (0.0, 1.0))
    3
    """
    if cells.dtype == pl.Boolean:
        return None

    # Most columns have no such row, which their extremes show.
    low, high = value_range
    lowest = cells.min()
    highest = cells.max()
    if not isinstance(lowest, int | float) or not isinstance(highest, int | float):
        return None  # all are missing
    if not (lowest < low or highest > high):
        return None

    is_bad = is_outside(cells, value_range)
    if cells.dtype.is_float():
        is_bad &= cells.is_not_nan()

    row = is_bad.fill_null(False).arg_max()
    assert row is not None
    return row


def check_array(scores: Array, name: str, value_range: ValueRange = UNIT_RANGE) -> None:
    """Check that an array holds only scores.

    Parameters
    ----------
    scores : ndarray
        The scores; NaN is missing.
    name : str
        Name of the array in messages.
    value_range : (float, float), default=(0, 1)
        Lowest and highest score.

    Examples
    --------
    >>> check_array(np.array([[0.5, 7.0]]), "a.npz, scores")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: a.npz, scores[0, 1]: found 7, expected a number ...
    """
    if scores.dtype.kind not in "biuf":
        raise InputError(
            where=name, found=f"{scores.dtype} values", expected="numbers from 0 to 1"
        )
    if scores.dtype.kind == "b" or scores.size == 0:
        return

    lowest = np.fmin.reduce(scores, axis=None)
    highest = np.fmax.reduce(scores, axis=None)
    if is_outside(lowest, value_range) or is_outside(highest, value_range):
        first = np.argwhere(is_outside(scores, value_range))[0]
        position = tuple(first.tolist())
        shown = ", ".join(map(str, position))
        raise_bad_score(f"{name}[{shown}]", scores[position].item())
