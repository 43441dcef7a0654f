"""Score tables of the frames that the formats' modules read.

In a long frame, a model that lists an instance has predicted all labels that the model
lists anywhere: pairs that it does not list have the score 0. Predictions for instances
and labels that it never lists are missing. A row with an empty score is a missing
prediction, too; if the label is empty as well, the model abstains on the instance.

Predictions may come in any order and be larger than memory. They become a sparse matrix
without a dense step by a counting sort: one pass counts the predictions of each
instance by each model, the next pass puts each prediction into the next free position
of its instance and model.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NoReturn

import numpy as np
import polars as pl
from scipy import sparse

from ..errors import EmptyFileError, InputError
from ..execution.memory import check_size
from ..predictions import (
    Array,
    BoolArray,
    FloatArray,
    IntArray,
    Matrix,
    ScoreTable,
    first_again,
)
from . import on_disk
from .columns import (
    cast_to_text,
    check_columns,
    check_names,
    check_scores,
    compute_row_size,
    find_roles,
    make_matrix,
    suggest_long_format,
)
from .files import Place
from .formats.registry import Frame, NamedFrame
from .label_cells import split_label_cells
from .label_names import merge_columns_by_max
from .on_disk import StringIndexer
from .options import DEFAULT_OPTIONS, ReadOptions, ValueRange

_ROWS = 2**22  # predictions that are processed at a time


@dataclass(frozen=True, kw_only=True)
class CodedPredictions:
    """Predictions whose names are replaced by positions among all names."""

    start: int  # row of the first one in the file
    model: Array  # (r,)
    instance: Array  # (r,)
    label: Array  # (r,) -1: the row only lists the instance
    score: FloatArray  # (r,) NaN: missing

    def compute_rows(self, n_instances: int) -> Array:
        """Return the row of each prediction in a matrix of models times instances.

        Parameters
        ----------
        n_instances : int
            Number of instances of the panel.

        Returns
        -------
        ndarray of shape (r,)
        """
        return self.model * np.int64(n_instances) + self.instance


IteratePredictions = Callable[[], Iterator[CodedPredictions]]


@dataclass(frozen=True, kw_only=True)
class IndexedPredictions:
    """Predictions of a long frame, and the names that their positions stand for."""

    iterate: IteratePredictions  # starts again with each call
    models: pl.Series | None  # (m,) None: the frame has no column of models
    instances: pl.Series  # (n,)
    labels: pl.Series  # (l,)


@dataclass(frozen=True, kw_only=True)
class LoadedFrame:
    """A frame whose rows are in memory or in scratch files, with the roles of columns.

    Parameters
    ----------
    frame : NamedFrame
        The columns of a long table are called by their roles; there is always one of
        scores.
    is_long : bool
        Whether the table is long.
    lists_labels : bool
        Whether a long table may list labels without scores.
    scratch : Path or None
        Folder for scores that remain on disk; ``None`` if they are in memory.
    """

    frame: NamedFrame
    is_long: bool
    lists_labels: bool
    scratch: Path | None


@dataclass(frozen=True, kw_only=True)
class _Counts:
    """Sums of the first pass over m models, n instances and l labels."""

    row_starts: IntArray  # (m * n + 1,) first prediction of each matrix row
    is_predicted: BoolArray  # (m, n) whether the model does not abstain
    is_listed: BoolArray  # (m, l) whether the model predicts the label


def load_frame(
    frame: NamedFrame,
    options: ReadOptions = DEFAULT_OPTIONS,
    scratch: Path | None = None,
) -> LoadedFrame:
    """Find the roles of a frame's columns, and bring its rows into memory or to disk.

    Parameters
    ----------
    frame : NamedFrame
        Rows of a file.
    options : ReadOptions
        Options for reading.
    scratch : Path, default=None
        A new folder for scores that remain on disk. By default they are in memory.

    Returns
    -------
    LoadedFrame

    Examples
    --------
    >>> rows = pl.DataFrame({"0": ["1"], "1": ["ann"], "2": ["law"]})
    >>> place = Place(file="a.csv", unit="row", number=int)
    >>> columns = ["task", "worker", "label"]
    >>> frame = NamedFrame(rows=rows, columns=columns, place=place)
    >>> loaded = load_frame(frame, ReadOptions())
    >>> loaded.is_long, loaded.frame.columns
    (True, ['instance', 'model', 'label', 'score'])
    """
    file = frame.place.file
    check_columns(frame.columns, file)
    roles = find_roles(frame.columns, options, file)
    is_long = bool(roles)
    lists_labels = frame.allows_missing_label or "score" not in roles
    if is_long:
        _log_columns_left_out(frame, roles, options)
        if "score" not in roles and not options.strict:
            frame = _split_cells(frame, roles, options)
        frame = _select_roles(frame, roles, options)

    n_rows = _count_rows(frame.rows)
    if n_rows == 0:
        raise EmptyFileError(
            where=file, found="a header and no rows", expected="at least one"
        )

    rows: Frame
    if scratch is None:
        check_size(n_rows * compute_row_size(frame.rows), file, "of cells", 0.5)
        rows = frame.rows.lazy().collect()
    else:
        rows = on_disk.keep_on_disk(frame.rows, scratch)

    return LoadedFrame(
        frame=replace(frame, rows=rows),
        is_long=is_long,
        lists_labels=lists_labels,
        scratch=scratch,
    )


def make_tables(
    loaded: LoadedFrame,
    model: str,
    options: ReadOptions = DEFAULT_OPTIONS,
    previous_names: object = None,
) -> list[ScoreTable]:
    """Make the table of each model in a frame.

    Parameters
    ----------
    loaded : LoadedFrame
        Result of `load_frame`.
    model : str
        Name of the model for tables without a column of models.
    options : ReadOptions
        Options for reading.
    previous_names : Series, default=None
        Names of the instances of the table before. Most files of a panel list the same
        instances, which are then checked and stored once.

    Returns
    -------
    list of ScoreTable
        Instances are a Polars series of names. If there is a scratch folder, scores
        are matrices on disk.

    Examples
    --------
    >>> rows = pl.DataFrame({"0": ["1", "2"], "1": [0.5, None]})
    >>> place = Place(file="a.csv", unit="row", number=int)
    >>> frame = NamedFrame(rows=rows, columns=["id", "x"], place=place)
    >>> make_tables(load_frame(frame), "a")[0].scores
    array([[0.5],
           [nan]])
    """
    if loaded.is_long:
        return _make_long_tables(loaded, model, options)
    return [_make_wide_table(loaded.frame, model, options, previous_names)]


def _count_rows(rows: Frame) -> int:
    """Return the number of rows."""
    n_rows: int = rows.lazy().select(pl.len()).collect().item()
    return n_rows


def _make_wide_table(
    frame: NamedFrame, model: str, options: ReadOptions, previous_names: object
) -> ScoreTable:
    """Make the table of a wide frame."""
    rows = frame.rows
    columns = frame.columns
    place = frame.place
    names = rows.lazy().select("0").collect().to_series()
    instances = _check_instances(names, columns, place, previous_names)

    scores: Matrix
    if isinstance(rows, pl.DataFrame):
        scores = make_matrix(rows.drop("0"), columns, place, options.value_range)
    else:
        scores = on_disk.ParquetMatrix(rows, columns, place, len(names))

    return ScoreTable(
        model=model,
        scores=scores,
        instances=instances,
        labels=np.array(columns[1:], dtype=np.dtypes.StringDType()),
        file=place.file,
    )


def _check_instances(
    names: pl.Series, columns: list[str], place: Place, previous_names: object
) -> pl.Series:
    """Return the names of instances as text; each must occur once."""
    if (
        isinstance(previous_names, pl.Series)
        and names.dtype == pl.String
        and names.equals(previous_names)
    ):
        return previous_names

    names = check_names(names, columns[0] or "instance", place)
    again = first_again(names)
    if again:
        first, second = again
        hint = suggest_long_format(columns)
        raise InputError(
            where=place(second),
            found=(
                f"the instance {names[second]!r} again"
                f" (first in {place.describe_row(first)})"
            ),
            expected=f"each once in {columns[0]!r}, the column of ids{hint}",
        )

    return names


def _log_columns_left_out(
    frame: NamedFrame, roles: list[str | None], options: ReadOptions
) -> None:
    """Log the columns that have no role."""
    for column, role in zip(frame.columns, roles, strict=True):
        if role is None and column != "rank":
            options.log.add("columns left out", column)


def _split_cells(
    frame: NamedFrame, roles: list[str | None], options: ReadOptions
) -> NamedFrame:
    """Split cells with several labels; columns without roles keep their names."""
    columns = frame.columns
    named_columns = []
    for column, role in zip(columns, roles, strict=True):
        named_columns.append(role or column)

    split = split_label_cells(replace(frame, columns=named_columns), options)
    return replace(split, columns=columns)


def _select_roles(
    frame: NamedFrame, roles: list[str | None], options: ReadOptions
) -> NamedFrame:
    """Select the columns with roles; without a column of scores, each score is 1."""
    columns: list[str] = []
    cells: list[pl.Expr] = []
    for position, role in enumerate(roles):
        if role is not None:
            cells.append(pl.col(str(position)).alias(str(len(columns))))
            columns.append(role)

    if "score" not in columns:
        label = pl.col(str(roles.index("label"))).cast(pl.String)
        is_blank = label.is_null() | (label.str.strip_chars() == "")
        score = (~is_blank).cast(pl.Float64)
        cells.append(score.alias(str(len(columns))))
        columns.append("score")

    return replace(
        frame,
        rows=frame.rows.select(cells),
        columns=columns,
        allows_missing_label=frame.allows_missing_label or not options.strict,
    )


def _make_long_tables(
    loaded: LoadedFrame, model: str, options: ReadOptions
) -> list[ScoreTable]:
    """Make the table of each model in a long frame."""
    place = loaded.frame.place
    predictions = index_predictions(loaded, options.value_range)
    models = [model]
    if predictions.models is not None:
        models = predictions.models.to_list()

    # Count and sort the predictions.
    counts = _count_predictions(predictions, len(models), place.file)
    matrix = _sort_predictions(predictions.iterate, counts, loaded.scratch)
    if not matrix.has_canonical_format:
        matrix = _deduplicate(matrix, predictions, place, options)

    # A list of labels is complete, even if other tables are only partly known.
    is_complete = loaded.lists_labels and (matrix.data == 1).all()
    has_gaps = options.partial and not is_complete

    # Instances on which all models abstain are part of the panel.
    all_instances: pl.Series | None = predictions.instances
    if counts.is_predicted.any(axis=0).all():
        all_instances = None

    tables = []
    for position, name in enumerate(models):
        is_predicted = counts.is_predicted[position]
        is_listed = counts.is_listed[position]
        if not is_predicted.any():
            options.log.add("models without an answer left out", name)
            continue
        if not is_listed.any():
            raise InputError(
                where=place.file,
                found=f"no label from model {name!r}",
                expected="at least one",
            )

        model_matrix = _select_model(matrix, position, is_predicted, is_listed)
        label_counts = None
        if has_gaps:
            model_matrix = _mark_missing(model_matrix)
        else:
            label_counts = _count_positive(model_matrix)

        model_labels = predictions.labels.filter(pl.Series(is_listed)).to_list()
        table = ScoreTable(
            model=name,
            scores=_store_matrix(model_matrix, loaded.scratch, position),
            instances=predictions.instances.filter(pl.Series(is_predicted)),
            labels=np.array(model_labels, dtype=np.dtypes.StringDType()),
            file=place.file,
            named=label_counts,
            listed=all_instances,
        )
        tables.append(table)

    return tables


def index_predictions(
    loaded: LoadedFrame, value_range: ValueRange
) -> IndexedPredictions:
    """Check the rows of a long frame, and replace names by positions.

    Parameters
    ----------
    loaded : LoadedFrame
        Result of `load_frame`.
    value_range : (float, float)
        Lowest and highest score.

    Returns
    -------
    IndexedPredictions
        Names are in the order in which they first occur.
    """
    frame = loaded.frame
    indexers = {}
    for column in frame.columns:
        if column != "score":
            indexers[column] = StringIndexer()

    iterate: IteratePredictions
    iterate = partial(_code_predictions, frame, indexers, value_range)
    if loaded.scratch is None:
        iterate = partial(iter, list(iterate()))
    else:
        deque(iterate(), maxlen=0)  # all names must be numbered before they are counted

    for column, indexer in indexers.items():
        size = int(indexer.names.str.len_bytes().sum())
        check_size(size, f"{frame.place.file}, column {column!r}", "of text")

    models = None
    if "model" in indexers:
        models = indexers["model"].names

    return IndexedPredictions(
        iterate=iterate,
        models=models,
        instances=indexers["instance"].names,
        labels=indexers["label"].names,
    )


def _code_predictions(
    frame: NamedFrame, indexers: dict[str, StringIndexer], value_range: ValueRange
) -> Iterator[CodedPredictions]:
    """Iterate over the predictions in a long frame, and number new names."""
    if isinstance(frame.rows, pl.DataFrame):
        batches = frame.rows.iter_slices(_ROWS)
    else:
        batches = on_disk.iterate_batches(frame.rows, size=_ROWS)

    start = 0
    for batch in batches:
        batch.columns = frame.columns
        place = frame.place.shift(start)

        codes = {"model": np.broadcast_to(np.int32(0), batch.height)}
        for column, indexer in indexers.items():
            text = cast_to_text(batch[column], column, place)
            codes[column] = indexer.index(text)
            is_optional = frame.allows_missing_label and column == "label"
            if not is_optional:
                _check_has_name(codes[column], column, place)

        cells = batch["score"]
        numbers = check_scores(
            cells, "score", place, frame.columns, value_range=value_range
        )
        scores = numbers.cast(pl.Float64)
        _check_has_no_score(scores, codes["label"], place)

        yield CodedPredictions(
            start=start,
            model=codes["model"],
            instance=codes["instance"],
            label=codes["label"],
            score=scores.to_numpy(),
        )
        start += batch.height


def _check_has_name(codes: Array, column: str, place: Place) -> None:
    """Check that all rows have a name."""
    has_no_name = codes < 0
    if has_no_name.any():
        raise InputError(
            where=f"{place(int(has_no_name.argmax()))}, column {column!r}",
            found="nothing",
            expected="a name",
        )


def _check_has_no_score(scores: pl.Series, labels: Array, place: Place) -> None:
    """Check that rows without a label have no score other than 0."""
    has_score = (scores.fill_nan(None).fill_null(0) != 0).to_numpy()
    is_bad = (labels < 0) & has_score
    if is_bad.any():
        raise InputError(
            where=f"{place(int(is_bad.argmax()))}, column 'label'",
            found="nothing next to a score",
            expected="a name",
        )


def _count_predictions(
    predictions: IndexedPredictions, n_models: int, file: str
) -> _Counts:
    """Count the predictions of each instance by each model."""
    n_instances = len(predictions.instances)
    n_labels = len(predictions.labels)
    n_rows = n_models * n_instances
    check_size(
        24 * n_rows,
        file,
        f"for the answers of {n_models:,} models about {n_instances:,} instances",
        0.9,
    )
    counts = np.zeros(n_rows + 1, dtype=np.int64)
    is_predicted = np.zeros(n_rows, dtype=np.bool_)
    is_listed = np.zeros((n_models, max(1, n_labels)), dtype=np.bool_)
    for batch in predictions.iterate():
        rows = batch.compute_rows(n_instances)
        has_label = batch.label >= 0
        has_score = ~np.isnan(batch.score)
        # A model abstains if a row has neither a label nor a score.
        is_predicted[rows[has_label | has_score]] = True
        is_listed[batch.model[has_label], batch.label[has_label]] = True
        np.add.at(counts, rows[has_label] + 1, 1)

    # A model without any label has predicted 0 for all labels of the others.
    has_no_label = ~is_listed.any(axis=1, keepdims=True)
    is_listed |= is_listed.any(axis=0) & has_no_label
    return _Counts(
        row_starts=np.cumsum(counts),
        is_predicted=is_predicted.reshape(n_models, n_instances),
        is_listed=is_listed,
    )


def _sort_predictions(
    iterate: IteratePredictions, counts: _Counts, scratch: Path | None
) -> Matrix:
    """Put predictions into a CSR matrix with a row for each model and instance."""
    row_starts = counts.row_starts
    n_instances = counts.is_predicted.shape[1]
    n_labels = counts.is_listed.shape[1]
    n_predictions = int(row_starts[-1])
    index_dtype: type[np.signedinteger] = np.int64
    if max(n_predictions, n_labels) < 2**31:
        index_dtype = np.int32

    columns_path = None
    scores_path = None
    if scratch is not None:
        columns_path = scratch / "columns.npy"
        scores_path = scratch / "scores.npy"

    columns = on_disk.create_array(n_predictions, index_dtype, columns_path)
    scores = on_disk.create_array(n_predictions, np.float64, scores_path)
    next_free = row_starts[:-1].copy()  # next free position of each row
    for batch in iterate():
        rows = batch.compute_rows(n_instances)
        order = np.flatnonzero(batch.label >= 0)
        order = order[np.argsort(rows[order], kind="stable")]

        # Predictions of the same row are adjacent now: they take adjacent positions.
        sorted_rows = rows[order]
        first = np.flatnonzero(np.diff(sorted_rows, prepend=-1))
        distinct_rows = sorted_rows[first]
        n_adjacent = np.diff(first, append=len(order))
        offset = np.repeat(next_free[distinct_rows] - first, n_adjacent)
        positions = offset + np.arange(len(order))
        next_free[distinct_rows] += n_adjacent

        columns[positions] = batch.label[order]
        scores[positions] = batch.score[order]

    matrix = sparse.csr_array(
        (scores, columns, row_starts.astype(index_dtype)),
        shape=(len(row_starts) - 1, n_labels),
    )
    matrix.sort_indices()
    return matrix


def _deduplicate(
    matrix: Matrix, predictions: IndexedPredictions, place: Place, options: ReadOptions
) -> Matrix:
    """Keep repeated predictions once; they must not have different scores."""
    if options.strict:
        _raise_repeated(matrix, predictions, place)

    columns = np.arange(matrix.shape[1])
    highest = merge_columns_by_max(matrix, columns)
    lowest = -merge_columns_by_max(-matrix, columns)
    if not np.array_equal(highest.data, lowest.data, equal_nan=True):
        _raise_repeated(matrix, predictions, place)

    n_repeated = matrix.nnz - highest.nnz
    options.log.add("statements that come again read once", times=n_repeated)
    return highest


def _select_model(
    matrix: Matrix, position: int, is_predicted: BoolArray, is_listed: BoolArray
) -> Matrix:
    """Return the rows of one model: only instances and labels that it predicts.

    The column indices of `matrix` are changed in place, which saves memory.
    """
    n_instances = len(is_predicted)
    first_row = position * n_instances
    last_row = first_row + n_instances
    start = matrix.indptr[first_row]
    stop = matrix.indptr[last_row]
    row_starts = matrix.indptr[first_row:last_row][is_predicted]
    row_starts = np.append(row_starts, stop) - start

    columns = matrix.indices[start:stop]
    if not is_listed.all():
        new_columns = (np.cumsum(is_listed) - 1).astype(columns.dtype)
        for piece_start in range(0, len(columns), _ROWS):
            piece = slice(piece_start, piece_start + _ROWS)
            columns[piece] = new_columns[columns[piece]]

    return sparse.csr_array(
        (matrix.data[start:stop], columns, row_starts),
        shape=(len(row_starts) - 1, int(is_listed.sum())),
        copy=False,
    )


def _mark_missing(matrix: Matrix) -> Matrix:
    """Return a matrix with NaN in all cells that are not stored."""
    cells = matrix.tocoo()
    scores = np.full(matrix.shape, np.nan)
    scores[cells.row, cells.col] = cells.data
    return sparse.csr_array(scores)


def _count_positive(matrix: Matrix) -> IntArray:
    """Count the scores above 0 of each label, shape (l,)."""
    is_positive = matrix.data > 0
    return np.bincount(matrix.indices[is_positive], minlength=matrix.shape[1])


def _store_matrix(matrix: Matrix, scratch: Path | None, position: int) -> Matrix:
    """Return a matrix in its smaller layout, or in files of a scratch folder."""
    if scratch is None:
        return on_disk.compact_matrix(matrix)
    return on_disk.SparseFile.create(matrix, scratch / str(position))


def _raise_repeated(
    matrix: Matrix, predictions: IndexedPredictions, place: Place
) -> NoReturn:
    """Raise the error for the first pair of instance and label that comes twice."""
    n_instances = len(predictions.instances)
    n_rows, n_labels = matrix.shape

    # Equal cells are adjacent, since columns are sorted.
    row = np.repeat(np.arange(n_rows), np.diff(matrix.indptr))
    cells = row * n_labels + matrix.indices
    repeated_cells = cells[1:][cells[1:] == cells[:-1]]
    repeated_row, label = divmod(int(repeated_cells[0]), n_labels)

    file_rows: list[int] = []
    for batch in predictions.iterate():
        is_same_row = batch.compute_rows(n_instances) == repeated_row
        is_same = is_same_row & (batch.label == label)
        file_rows += (batch.start + np.flatnonzero(is_same)).tolist()

    first, second = file_rows[:2]
    label_name = predictions.labels[label]
    instance_name = predictions.instances[repeated_row % n_instances]
    raise InputError(
        where=place(second),
        found=(
            f"label {label_name!r} of instance {instance_name!r} again"
            f" (first in {place.describe_row(first)})"
        ),
        expected="each pair once",
    )
