"""Score tables of the frames that the formats' modules read.

In a long frame, a model that lists an instance has predicted all labels that the model
lists anywhere: pairs that it does not list have the score 0. Predictions for instances
and labels that it never lists are missing. A row with an empty score is a missing
prediction, too; if the label is empty as well, the model abstains on the instance.

Predictions may come in any order and be larger than memory. They become a sparse matrix
without a dense step by a counting sort: one pass counts the predictions of each
instance by each model, the next pass puts each prediction into the next free position of
its instance and model.
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

from ..errors import InputError
from ..execution.memory import check_size
from ..predictions import (
    MAX_DENSE_LABELS,
    AnswerRows,
    Array,
    BoolArray,
    FloatArray,
    IntArray,
    Matrix,
    Predictions,
    ScoreTable,
    as_array,
    check_similar_labels,
    find_rare_labels,
    first_again,
)
from ..predictions.table_alignment import FEWEST_FOR_RARE_LABELS
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
from .label_names import merge_columns_by_max
from .on_disk import StringIndexer
from .options import DEFAULT_OPTIONS, ReadOptions, ValueRange

_ROWS = 2**22  # predictions that are processed at a time
# Models that saw fewer than this share of the instances on average are a crowd, if
# there are several of them.
_CROWD_FILL = 0.15
_FEWEST_CROWD_MODELS = 20


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
class _Counts:
    """Sums of the first pass over m models, n instances and l labels."""

    row_starts: IntArray  # (m * n + 1,) first prediction of each matrix row
    is_predicted: BoolArray  # (m, n) whether the model does not abstain
    is_listed: BoolArray  # (m, l) whether the model predicts the label


def make_tables(
    frame: NamedFrame,
    model: str,
    options: ReadOptions = DEFAULT_OPTIONS,
    scratch: Path | None = None,
    previous_names: object = None,
) -> list[ScoreTable]:
    """Make the table of each model in a frame.

    Parameters
    ----------
    frame : NamedFrame
        Rows of a file.
    model : str
        Name of the model if there is no column of models.
    options : ReadOptions
        Options for reading.
    scratch : Path, default=None
        A new folder for scores that remain on disk. By default they are in memory.
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
    >>> from .files import Place
    >>> rows = pl.DataFrame({"0": ["1", "2"], "1": [0.5, None]})
    >>> place = Place(file="a.csv", unit="row", number=int)
    >>> frame = NamedFrame(rows=rows, columns=["id", "x"], place=place)
    >>> make_tables(frame, "a")[0].scores
    array([[0.5],
           [nan]])
    """
    file = frame.place.file
    check_columns(frame.columns, file)
    roles = find_roles(frame.columns, options, file)
    is_long = bool(roles)
    lists_labels = frame.allows_missing_label or "score" not in roles
    if is_long:
        _log_columns_left_out(frame, roles, options)
        frame = _select_roles(frame, roles, options)

    # Bring the rows into memory or to disk.
    n_rows = _count_rows(frame.rows)
    if n_rows == 0:
        raise InputError(
            where=file, found="a header and no rows", expected="at least one"
        )

    rows: Frame
    if scratch is None:
        check_size(n_rows * compute_row_size(frame.rows), file, "of cells", 0.5)
        rows = frame.rows.lazy().collect()
    else:
        rows = on_disk.keep_on_disk(frame.rows, scratch)

    frame = replace(frame, rows=rows)
    if is_long:
        return _make_long_tables(frame, model, options, scratch, lists_labels)
    return [_make_wide_table(frame, model, options, previous_names)]


def make_crowd(frame: NamedFrame, options: ReadOptions) -> Predictions | None:
    """Make the predictions of a long frame in which each model saw a few instances.

    Parameters
    ----------
    frame : NamedFrame
        Rows of a file, in memory.
    options : ReadOptions
        Options for reading.

    Returns
    -------
    Predictions or None
        None if this is not a crowd, or if the options need the table of each model.
    """
    file = frame.place.file
    check_columns(frame.columns, file)
    roles = find_roles(frame.columns, options, file)
    has_label_options = options.aliases or options.vocabulary or options.ignore_case
    if has_label_options or options.partial or not _is_crowd(frame, roles):
        return None

    # Replace names by positions.
    selected = _select_roles(frame, roles, options)
    indexers = {name: StringIndexer() for name in selected.columns if name != "score"}
    batches = list(_code_predictions(selected, indexers, options.value_range))
    names = {column: indexer.names for column, indexer in indexers.items()}
    rows = _collect_answer_rows(batches, names)
    if rows is None or rows.n_labels > MAX_DENSE_LABELS:
        return None
    _log_columns_left_out(frame, roles, options)

    # Models that abstain on all instances are left out.
    has_rows = np.bincount(rows.model, minlength=rows.n_models) > 0
    models = names["model"].to_list()
    if not has_rows.all():
        for position in np.flatnonzero(~has_rows):
            options.log.add("models without an answer left out", models[position])
        rows = replace(
            rows,
            model=(np.cumsum(has_rows) - 1)[rows.model],
            n_models=int(has_rows.sum()),
            covered=rows.covered[has_rows],
        )
        models = [name for name, has in zip(models, has_rows, strict=True) if has]

    labels = names["label"].to_list()
    check_similar_labels(labels)
    instances = as_array(names["instance"])
    return Predictions.from_answer_rows(models, instances, labels, rows)


def _is_crowd(frame: NamedFrame, roles: list[str | None]) -> bool:
    """Return whether models saw a small part of the instances on average."""
    if "model" not in roles or not isinstance(frame.rows, pl.DataFrame):
        return False

    models = frame.rows[str(roles.index("model"))]
    instances = frame.rows[str(roles.index("instance"))]
    n_models = models.n_unique()
    if n_models < _FEWEST_CROWD_MODELS:
        return False
    n_seen = pl.DataFrame({"model": models, "instance": instances}).n_unique()
    return n_seen < _CROWD_FILL * n_models * instances.n_unique()


def _collect_answer_rows(
    batches: list[CodedPredictions], names: dict[str, pl.Series]
) -> AnswerRows | None:
    """Return the rows of a crowd, or None if a prediction comes twice."""
    n_models = len(names["model"])
    n_instances = len(names["instance"])
    n_labels = len(names["label"])
    model = np.concatenate([batch.model for batch in batches]).astype(np.int64)
    instance = np.concatenate([batch.instance for batch in batches]).astype(np.int64)
    label = np.concatenate([batch.label for batch in batches]).astype(np.int64)
    score = np.concatenate([batch.score for batch in batches])
    if n_labels == 0:
        return None

    # A model abstains if a row has neither a label nor a score.
    is_answer = (label >= 0) | ~np.isnan(score)
    keys = instance[is_answer] * n_models + model[is_answer]
    row_keys, row = np.unique(keys, return_inverse=True)

    has_label = label[is_answer] >= 0
    entry_row = row[has_label]
    entry_label = label[is_answer][has_label]
    entry_score = score[is_answer][has_label]
    scores = sparse.coo_array(
        (entry_score, (entry_row, entry_label)), shape=(len(row_keys), n_labels)
    ).tocsr()
    if scores.nnz < len(entry_score):
        return None
    scores.eliminate_zeros()

    # A model without any label has predicted 0 for all labels of the others.
    voter = model[is_answer][has_label] * n_labels + entry_label
    shape = (n_models, n_labels)
    n_voters = n_models * n_labels
    is_listed = np.bincount(voter, minlength=n_voters).reshape(shape) > 0
    counts = np.bincount(voter[entry_score > 0], minlength=n_voters).reshape(shape)
    has_no_label = ~is_listed.any(axis=1, keepdims=True)
    covered = is_listed | (is_listed.any(axis=0) & has_no_label)

    row_instance, row_model = np.divmod(row_keys, n_models)
    if n_instances >= FEWEST_FOR_RARE_LABELS:
        rows_by_model = np.bincount(row_model, minlength=n_models)
        covered |= find_rare_labels(counts, rows_by_model, covered)
    return AnswerRows(
        scores=scores,
        model=row_model,
        instance=row_instance,
        n_models=n_models,
        n_instances=n_instances,
        covered=covered,
    )


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
    frame: NamedFrame,
    model: str,
    options: ReadOptions,
    scratch: Path | None,
    lists_labels: bool,
) -> list[ScoreTable]:
    """Make the table of each model in a long frame."""
    file = frame.place.file

    # Replace names by positions.
    indexers = {name: StringIndexer() for name in frame.columns if name != "score"}
    iterate: IteratePredictions
    iterate = partial(_code_predictions, frame, indexers, options.value_range)
    if scratch is None:
        iterate = partial(iter, list(iterate()))
    else:
        deque(iterate(), maxlen=0)  # all names must be numbered before they are counted

    names = {column: indexer.names for column, indexer in indexers.items()}
    for column, column_names in names.items():
        size = int(column_names.str.len_bytes().sum())
        check_size(size, f"{file}, column {column!r}", "of text")

    models = [model]
    if "model" in names:
        models = names["model"].to_list()

    # Count and sort the predictions.
    counts = _count_predictions(
        iterate, len(models), len(names["instance"]), len(names["label"]), file
    )
    matrix = _sort_predictions(iterate, counts, scratch)
    if not matrix.has_canonical_format:
        matrix = _deduplicate(matrix, iterate, frame, names, options)

    # A list of labels is complete, even if other tables are only partly known.
    is_complete = lists_labels and (matrix.data == 1).all()
    has_gaps = options.partial and not is_complete
    return _split_by_model(
        matrix,
        counts,
        models=models,
        instances=names["instance"],
        labels=names["label"],
        file=file,
        has_gaps=has_gaps,
        options=options,
        scratch=scratch,
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
    iterate: IteratePredictions,
    n_models: int,
    n_instances: int,
    n_labels: int,
    file: str,
) -> _Counts:
    """Count the predictions of each instance by each model."""
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
    for batch in iterate():
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
    matrix: Matrix,
    iterate: IteratePredictions,
    frame: NamedFrame,
    names: dict[str, pl.Series],
    options: ReadOptions,
) -> Matrix:
    """Keep repeated predictions once; they must not have different scores."""
    if options.strict:
        _raise_repeated(matrix, iterate, frame, names)

    columns = np.arange(matrix.shape[1])
    highest = merge_columns_by_max(matrix, columns)
    lowest = -merge_columns_by_max(-matrix, columns)
    if not np.array_equal(highest.data, lowest.data, equal_nan=True):
        _raise_repeated(matrix, iterate, frame, names)

    n_repeated = matrix.nnz - highest.nnz
    options.log.add("statements that come again read once", times=n_repeated)
    return highest


def _split_by_model(
    matrix: Matrix,
    counts: _Counts,
    *,
    models: list[str],
    instances: pl.Series,
    labels: pl.Series,
    file: str,
    has_gaps: bool,
    options: ReadOptions,
    scratch: Path | None,
) -> list[ScoreTable]:
    """Make the table of each model that has made a prediction."""
    # Instances on which all models abstain are part of the panel.
    listed_instances: pl.Series | None = instances
    if counts.is_predicted.any(axis=0).all():
        listed_instances = None

    tables = []
    for position, name in enumerate(models):
        is_predicted = counts.is_predicted[position]
        is_listed = counts.is_listed[position]
        if not is_predicted.any():
            options.log.add("models without an answer left out", name)
            continue

        if not is_listed.any():
            raise InputError(
                where=file,
                found=f"no label from model {name!r}",
                expected="at least one",
            )

        model_matrix = _select_model(matrix, position, is_predicted, is_listed)
        label_counts = None
        if has_gaps:
            model_matrix = _mark_missing(model_matrix)
        else:
            is_positive = model_matrix.data > 0
            label_counts = np.bincount(
                model_matrix.indices[is_positive], minlength=model_matrix.shape[1]
            )

        scores: Matrix
        if scratch is None:
            scores = on_disk.compact_matrix(model_matrix)
        else:
            scores = on_disk.SparseFile.create(model_matrix, scratch / str(position))

        model_labels = labels.filter(pl.Series(is_listed)).to_list()
        tables.append(
            ScoreTable(
                model=name,
                scores=scores,
                instances=instances.filter(pl.Series(is_predicted)),
                labels=np.array(model_labels, dtype=np.dtypes.StringDType()),
                file=file,
                named=label_counts,
                listed=listed_instances,
            )
        )

    return tables


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


def _raise_repeated(
    matrix: Matrix,
    iterate: IteratePredictions,
    frame: NamedFrame,
    names: dict[str, pl.Series],
) -> NoReturn:
    """Raise the error for the first pair of instance and label that comes twice."""
    n_instances = len(names["instance"])
    n_rows, n_labels = matrix.shape

    # Equal cells are adjacent, since columns are sorted.
    row = np.repeat(np.arange(n_rows), np.diff(matrix.indptr))
    cells = row * n_labels + matrix.indices
    repeated_cells = cells[1:][cells[1:] == cells[:-1]]
    repeated_row, label = divmod(int(repeated_cells[0]), n_labels)

    file_rows: list[int] = []
    for batch in iterate():
        is_same_row = batch.compute_rows(n_instances) == repeated_row
        is_same = is_same_row & (batch.label == label)
        file_rows += (batch.start + np.flatnonzero(is_same)).tolist()

    first, second = file_rows[:2]
    label_name = names["label"][label]
    instance_name = names["instance"][repeated_row % n_instances]
    raise InputError(
        where=frame.place(second),
        found=(
            f"label {label_name!r} of instance {instance_name!r} again"
            f" (first in {frame.place.describe_row(first)})"
        ),
        expected="each pair once",
    )
