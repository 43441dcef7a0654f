"""Tables of a table library ↔ `ModelTable`: wide (an instance a row, a label a column) and long (a statement a row)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from ..errors import InputError
from ..panel.alignment import Names
from ..panel.model_tables import ModelTable
from . import scores, statements
from .bits import unpacked
from .files import Place
from .formats import Layout

LONG = frozenset({"instance", "label", "score"})

_BLOCK_CELLS = 2**22  # what a writer holds at a time
_last_text: tuple[pl.Series, Names] = (pl.Series([], dtype=pl.String), np.array([], dtype=np.dtypes.StringDType()))
_WHOLE = frozenset({pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.Int8, pl.Int16, pl.Int32, pl.Int64})


def is_long(columns: Sequence[str]) -> bool:
    """Tell by its columns whether a table is a long one.

    Examples
    --------
    >>> is_long(["label", "instance", "score", "model"]), is_long(["instance", "sports", "politics"])
    (True, False)
    """
    return len(columns) == len(set(columns)) and set(columns) - {"model"} == LONG


def check_columns(columns: Sequence[str], name: str) -> None:
    """Refuse a header that cannot be that of a wide or long table.

    Examples
    --------
    >>> check_columns(["id", "x", "x"], "a.csv")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: a.csv, columns 2 and 3: found 'x' twice, expected each label once
    """
    for column, times in Counter(columns[1:]).items():
        if times > 1:
            first = columns.index(column, 1)
            second = columns.index(column, first + 1)
            raise InputError(
                f"{name}, columns {first + 1} and {second + 1}: found {column!r} twice, expected each label once"
                + ("; is the header line missing?" if column.replace(".", "", 1).isdigit() else "")
            )
    if len(columns) < 2:
        raise InputError(
            f"{name}: found only the column {columns[0]!r}, expected an instance id and at least one label"
        )
    unnamed = [at for at, column in enumerate(columns) if at > 0 and not column.strip()]
    if unnamed:
        raise InputError(f"{name}, column {unnamed[0] + 1}: found an empty name, expected that of a label")


def tables(frame: pl.DataFrame, columns: Sequence[str], model: str, place: Place) -> list[ModelTable]:
    """Make the table of each model in a frame; the frame is used up.

    Parameters
    ----------
    frame
        Its columns may have any names.
    columns
        What the file calls them.
    model
        What the model is called if no column says so.
    place
        Where the rows stand.

    Examples
    --------
    >>> frame = pl.DataFrame({"id": ["1", "2"], "x": [0.5, None]})
    >>> tables(frame, frame.columns, "a", Place("a.csv", "row", int))[0].scores
    array([[0.5],
           [nan]])
    """
    check_columns(columns, place.file)
    if frame.height == 0:
        raise InputError(f"{place.file}: found a header and no rows, expected at least one")
    frame.columns = [str(at) for at in range(frame.width)]
    if is_long(columns):
        return _long(frame.rename(dict(zip(frame.columns, columns, strict=True))), model, place)
    return [_wide(frame, columns, model, place)]


def _wide(frame: pl.DataFrame, columns: Sequence[str], model: str, place: Place) -> ModelTable:
    ids = names(frame.drop_in_place("0"), columns[0] or "instance", place)
    again = ~ids.is_first_distinct()
    if again.any():
        second = again.arg_max()
        assert second is not None
        first = (ids == ids[second]).arg_max()
        assert first is not None
        raise InputError(
            f"{place(second)}: found the instance {ids[second]!r} again (first in {place.short(first)}), "
            "expected each once"
        )
    out = matrix(frame, columns, place)
    return ModelTable(model, out, text_array(ids), np.array(columns[1:], dtype=np.dtypes.StringDType()))


def matrix(frame: pl.DataFrame, columns: Sequence[str], place: Place) -> NDArray[Any]:
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
        return unpacked(frame)
    out = np.empty((frame.height, frame.width), dtype=kind, order="F")
    for at, label in enumerate(columns[1:]):
        # Column by column, letting go of each: the whole is never there twice.
        out[:, at] = scores_of(frame.drop_in_place(str(at + 1)), label, place, columns).to_numpy()
    return out


def _long(frame: pl.DataFrame, model: str, place: Place) -> list[ModelTable]:
    numbers = scores_of(frame["score"], "score", place, frame.columns)
    codes, listed = {}, {}
    for column in ("instance", "label", "model"):
        if column in frame.columns:
            cells = names(frame[column], column, place)
            listed[column] = cells.unique(maintain_order=True)
            codes[column] = cells.cast(pl.Enum(listed[column])).to_physical().to_numpy().astype(np.int64)
        else:
            listed[column], codes[column] = pl.Series([model]), np.zeros(frame.height, dtype=np.int64)
    said = statements.Statements(
        codes["model"],
        codes["instance"],
        codes["label"],
        numbers.cast(pl.Float64).to_numpy().astype(np.float64, copy=False),
        listed["model"].to_list(),
        text_array(listed["instance"]),
        text_array(listed["label"]),
    )
    return statements.tables(said, place)


def names(cells: pl.Series, column: str, place: Place) -> pl.Series:
    """Return names as text; none may be empty.

    Examples
    --------
    >>> names(pl.Series([7, 8]), "id", Place("a.parquet", "row", int)).to_list()
    ['7', '8']
    """
    if cells.dtype in (pl.Categorical, pl.Enum) or cells.dtype in _WHOLE:
        cells = cells.cast(pl.String)
    if cells.dtype != pl.String:
        raise InputError(f"{place.file}, column {column!r}: found {cells.dtype} values, expected text or whole numbers")
    empty = (cells.fill_null("").str.strip_chars() == "").arg_max() if len(cells) else None
    if empty is not None and not (cells[empty] or "").strip():
        raise InputError(f"{place(empty)}, column {column!r}: found nothing, expected a name")
    return cells


def text_array(cells: pl.Series) -> Names:
    """Return text as the array of names that `Predictions` keeps.

    Examples
    --------
    >>> text_array(pl.Series(["007"])).tolist()
    ['007']
    """
    global _last_text
    if not (len(cells) == len(_last_text[0]) and cells.equals(_last_text[0])):
        # Files of one panel mostly list the same instances: they are turned to Python's text and back once.
        _last_text = cells, np.array(cells.to_list(), dtype=np.dtypes.StringDType())
    return _last_text[1]


def scores_of(cells: pl.Series, column: str, place: Place, columns: Sequence[str]) -> pl.Series:
    """Check one column of scores; text becomes numbers.

    Examples
    --------
    >>> scores_of(pl.Series(["0.5", "NA"]), "x", Place("a.csv", "line", int), ["id", "x"]).to_list()
    [0.5, None]
    """
    where = f"column {column!r}"
    if cells.dtype == pl.String:
        numbers, bad = scores.from_text(cells)
        if bad is not None:
            scores.raise_bad_score(f"{place(bad)}, {where}", cells[bad], _meant_long(columns))
    elif cells.dtype == pl.Null:
        numbers = cells.cast(pl.Float64)
    elif cells.dtype.is_numeric() or cells.dtype == pl.Boolean:
        numbers = cells.cast(pl.Float64) if cells.dtype.is_decimal() else cells
    else:
        raise InputError(f"{place.file}, {where}: found {cells.dtype} values, expected numbers from 0 to 1")
    outside = scores.first_outside(numbers)
    if outside is not None:
        scores.raise_bad_score(f"{place(outside)}, {where}", cells[outside])
    return numbers


def _meant_long(columns: Sequence[str]) -> str:
    if is_long(columns):
        return ""
    known = LONG & {column.strip().lower() for column in columns}
    return "; a long file has the columns instance, label, score" if len(known) >= 2 else ""


def _dtype(frame: pl.DataFrame) -> type[np.generic]:
    """Choose the smallest type that holds all columns exactly; a missing cell needs a float's NaN."""
    kinds = set(frame.dtypes)
    if kinds <= {pl.Boolean} | _WHOLE:
        if any(frame.null_count().row(0)):
            return np.float32
        return np.bool_ if kinds == {pl.Boolean} else np.uint8
    return np.float32 if kinds == {pl.Float32} else np.float64


def blocks(table: ModelTable, layout: Layout) -> Iterator[pl.DataFrame]:
    """Walk a table as frames to be written one below the other; missing scores are null.

    Examples
    --------
    >>> table = ModelTable("a", np.array([[0.5, np.nan]]), ["1"], ["x", "y"])
    >>> [block.rows() for block in blocks(table, "wide")], [block.rows() for block in blocks(table, "long")]
    ([[('1', 0.5, None)]], [[('1', 'x', 0.5), ('1', 'y', None)]])
    """
    n, l = table.scores.shape
    instances, labels = (pl.Series([str(name) for name in given], dtype=pl.String) for given in named(table))
    matrix = table.scores
    if layout == "long" and sparse.issparse(matrix):
        matrix = listed(matrix)
    size = max(1, _BLOCK_CELLS // l)
    for start in range(0, n, size):
        yield block(matrix[start : start + size], instances[start : start + size], labels, layout)


def block(scores: Any, instances: pl.Series, labels: pl.Series, layout: Layout) -> pl.DataFrame:
    """Return some rows of a table as a frame.

    Examples
    --------
    >>> block(np.array([[0.5]]), pl.Series(["7"]), pl.Series(["x"]), "long").rows()
    [('7', 'x', 0.5)]
    """
    return {"wide": _wide_block, "long": _long_block, "ranked": _ranked_block}[layout](scores, instances, labels)


def whole(table: ModelTable, layout: Layout) -> pl.DataFrame:
    """Return a table as one frame.

    Examples
    --------
    >>> whole(ModelTable("a", np.array([[0.5]]), ["1"], ["x"]), "wide").columns
    ['instance', 'x']
    """
    return pl.concat(blocks(table, layout))


def listed(matrix: Any) -> Any:
    """Store zeros in a CSR matrix so that a list of its entries names all rows and columns, in order.

    All of the first row is stored, and the first cell of each empty row.

    Examples
    --------
    >>> listed(sparse.csr_array([[0.0, 0.5], [0.0, 0.0]])).nnz
    3
    """
    absent = np.setdiff1d(np.arange(matrix.shape[1]), matrix.indices[: matrix.indptr[1]])
    empty = np.flatnonzero(np.diff(matrix.indptr)[1:] == 0) + 1
    cells = matrix.tocoo()
    row = np.concatenate([cells.row, np.zeros_like(absent), empty])
    column = np.concatenate([cells.col, absent, np.zeros_like(empty)])
    values = np.concatenate([cells.data, np.zeros(len(absent) + len(empty), dtype=cells.data.dtype)])
    out = sparse.csr_array((values, (row, column)), shape=matrix.shape)
    out.sort_indices()
    return out


def named(table: ModelTable) -> tuple[Sequence[Any] | NDArray[Any], Sequence[Any] | NDArray[Any]]:
    """Return the instances' and labels' names, those that `Predictions` gives where the table has none.

    Examples
    --------
    >>> named(ModelTable("a", np.zeros((2, 1))))
    (range(0, 2), ['label_0'])
    """
    n, l = table.scores.shape
    return (
        range(n) if table.instances is None else table.instances,
        [f"label_{at}" for at in range(l)] if table.labels is None else table.labels,
    )


def _wide_block(part: Any, rows: pl.Series, labels: pl.Series) -> pl.DataFrame:
    dense = np.asfortranarray(part.toarray() if sparse.issparse(part) else part)
    taken = set(labels)
    # A label may itself be called "instance", and the header must not look like a long table's.
    first = next(
        name
        for name in ("instance", "id", *(f"id_{k}" for k in range(len(taken) + 1)))
        if name not in taken and not is_long([name, *labels])
    )
    return pl.DataFrame([rows.alias(first), *(_nullable(dense[:, at]).alias(label) for at, label in enumerate(labels))])


def _long_block(part: Any, rows: pl.Series, labels: pl.Series) -> pl.DataFrame:
    if sparse.issparse(part):
        cells = part.tocoo()
        at_row, at_column, values = cells.row, cells.col, cells.data
    else:
        at_row, at_column = (at.ravel() for at in np.indices(part.shape))
        values = part.ravel()
    return pl.DataFrame(
        {
            "instance": rows.gather(at_row),
            "label": labels.gather(at_column),
            "score": _nullable(values),
        }
    )


def _ranked_block(part: Any, rows: pl.Series, labels: pl.Series) -> pl.DataFrame:
    dense = part.toarray() if sparse.issparse(part) else part
    order = np.argsort(-dense.astype(np.float64), axis=1, kind="stable")  # missing scores come last
    scores = np.take_along_axis(dense, order, axis=1)
    rank = np.broadcast_to(np.arange(1, dense.shape[1] + 1), dense.shape)
    frame = pl.DataFrame(
        {
            "instance": rows.gather(np.repeat(np.arange(len(dense)), dense.shape[1])),
            "rank": rank.ravel(),
            "label": labels.gather(order.ravel()),
            "score": _nullable(scores.ravel()),
        }
    )
    return frame.drop_nulls("score")


def _nullable(values: NDArray[Any]) -> pl.Series:
    if values.dtype.kind == "b":
        return pl.Series(values.astype(np.bool_))
    if values.dtype.kind in "iu":
        return pl.Series(values.astype(np.uint8))
    wide = values.astype(np.float64, copy=False)  # text must not round a float32
    return pl.Series(wide, nan_to_null=bool(np.isnan(wide.min())) if len(wide) else False)
