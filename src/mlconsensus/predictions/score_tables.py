"""Tables of scores as users give them: one for each model, with or without names.

This is the only place that validates scores. `table_alignment` matches the tables of
several models by name.
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Never

import numpy as np
from scipy import sparse

from ..errors import InputError
from .alignment import as_names
from .array_types import Array, Frame, IntArray, Matrix, NamesLike
from .model_scores import StoredMatrix, as_matrix


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """One model's scores as a file or a frame has them, before they are aligned.

    Parameters
    ----------
    model : str
        Name of the model.
    scores : array-like, sparse matrix or StoredMatrix of shape (n_k, l_k)
        Its scores.
    instances, labels : sequence, default=None
        Names of the rows and columns. By default they have no names.
    file : str, default=None
        File of the table, for messages.
    named : ndarray of shape (l_k,), default=None
        How often a file of lists names each label. By default the columns of a table
        are the labels that the model knows.
    listed : sequence, default=None
        All instances that the file lists, if some of them have no scores.
    knows_all : bool, default=False
        Whether the model chose from the labels of all models, so that a label that its
        table does not have has the score 0.
    """

    model: str
    scores: Matrix
    instances: NamesLike = None
    labels: NamesLike = None
    _: KW_ONLY
    file: str | None = None
    named: IntArray | None = None
    listed: NamesLike = None
    knows_all: bool = False

    @property
    def where(self) -> str:
        """Name of the table in messages."""
        return self.file or f"model {self.model!r}"

    def to_frame(self, library: str = "pandas") -> Frame:
        """Return the scores as a DataFrame.

        Parameters
        ----------
        library : {"pandas", "polars"}, default="pandas"
            In pandas, the instances are the index. In Polars, they are the first
            column.

        Returns
        -------
        pandas.DataFrame or polars.DataFrame

        Examples
        --------
        >>> table = ScoreTable("a", np.array([[0.5, 1.0]]), ["i"], ["x", "y"])
        >>> table.to_frame().loc["i", "y"]
        np.float64(1.0)
        """
        if library not in ("pandas", "polars"):
            raise InputError(
                where="library", found=repr(library), expected="'pandas' or 'polars'"
            )

        instances = np.asarray(self.instances).tolist()
        labels = list(self.labels)
        scores = np.asarray(self.scores)
        if library == "pandas":
            import pandas as pd

            index = pd.Index(instances, name="instance")
            return pd.DataFrame(scores, index=index, columns=labels)

        import polars as pl

        if "instance" in labels:
            raise InputError(
                where="labels",
                found="'instance', which the column of names is called",
                expected="another name",
            )

        frame = pl.DataFrame(scores, schema=labels, orient="row")
        return frame.insert_column(0, pl.Series("instance", instances))


def make_tables(scores: object, models: object) -> list[ScoreTable]:
    """Make a table of each model from any form that `Predictions` accepts.

    Parameters
    ----------
    scores : array-like of shape (m, n, l), sequence or mapping
        The scores of all models.
    models : sequence of str or None
        Names of the models.

    Returns
    -------
    list of m ScoreTable

    Examples
    --------
    >>> tables = make_tables({"ann": [[1, 0]], "bob": [[0, 1]]}, None)
    >>> [table.model for table in tables]
    ['ann', 'bob']
    """
    if isinstance(scores, Mapping):
        if models is not None:
            raise InputError(
                where="models",
                found="models=… next to a mapping, which names its own",
                expected="one of the two",
            )

        models = [str(name) for name in scores]
        matrices = list(scores.values())
    else:
        matrices = _split_models(scores)
        if models is None:
            models = [f"model_{k}" for k in range(len(matrices))]

    names = as_names(models, "models").tolist()
    if not matrices:
        raise InputError(where="predictions", found="no model", expected="at least one")
    if len(names) != len(matrices):
        raise InputError(
            where="models",
            found=f"{len(names)} names",
            expected=f"one for each of {len(matrices)} models",
        )

    tables = []
    for name, matrix in zip(names, matrices, strict=True):
        tables.append(make_table(matrix, str(name)))
    return tables


def _split_models(scores: object) -> list[object]:
    """Return the matrix of each model from a sequence or an array (m, n, l)."""
    if isinstance(scores, (list, tuple)):
        return list(scores)

    if sparse.issparse(scores) or is_frame(scores) or np.ndim(scores) == 2:  # type: ignore[arg-type]
        raise InputError(
            where="predictions",
            found="a single matrix",
            expected="one for each model: put it in a list for a panel of one model",
        )
    if not hasattr(scores, "__array__"):
        raise InputError(
            where="predictions",
            found=type(scores).__name__,
            expected="an array (m, n, l), a sequence of m matrices (n, l), "
            "or a mapping from model name to matrix",
        )

    array: Array
    if isinstance(scores, np.ma.MaskedArray):
        array = scores
    else:
        array = np.asarray(scores)

    if array.ndim != 3:
        raise InputError(
            where="predictions",
            found=f"{array.ndim} dimensions",
            expected="3: models, instances, labels",
        )
    return list(array)


def is_frame(table: object) -> bool:
    """Return whether this is a DataFrame of pandas or Polars, or a table of Arrow.

    Examples
    --------
    >>> is_frame([[1, 0]])
    False
    """
    return hasattr(type(table), "columns")


def make_table(scores: object, model: str, file: str | None = None) -> ScoreTable:
    """Make a table of one model's scores or of ground truth.

    Parameters
    ----------
    scores : DataFrame, array-like or sparse matrix of shape (n, l)
        The index of pandas names the instances. In other frames the first column does
        if it holds no numbers, or is called ``instance`` or ``id``. Everything else
        has no names.
    model : str
        Name of the model.
    file : str, default=None
        File of the scores, for messages.

    Returns
    -------
    ScoreTable

    Examples
    --------
    >>> import polars as pl
    >>> table = make_table(pl.DataFrame({"id": [7, 8], "x": [True, None]}), "a")
    >>> table.instances, table.labels, table.scores.tolist()
    ([7, 8], ['x'], [[1.0], [nan]])
    """
    if not is_frame(scores):
        return ScoreTable(model, scores, file=file)

    where = file or f"model {model!r}"
    if hasattr(scores, "iloc"):
        return _read_pandas(scores, model, file, where)
    return _read_polars(as_polars(scores, where), model, file, where)


def _read_pandas(frame: Frame, model: str, file: str | None, where: str) -> ScoreTable:
    """Make a table of a pandas DataFrame; empty cells are NaN."""
    array: Array = frame.to_numpy()
    if array.dtype.kind not in "biuf":
        array = np.empty(frame.shape)
        for position, (name, column) in enumerate(frame.items()):
            if not _has_numbers(column):
                raise InputError(
                    where=f"{where}, column {str(name)!r}",
                    found=f"{column.dtype} values",
                    expected="numbers",
                )
            array[:, position] = column.to_numpy(np.float64, na_value=np.nan)

    return ScoreTable(model, array, frame.index, frame.columns, file=file)


def _has_numbers(column: Frame) -> bool:
    """Return whether a column of pandas holds only numbers and gaps."""
    kind = column.dtype.kind
    if kind != "O":
        return kind in "biuf"
    return all(isinstance(cell, Real | np.bool_) for cell in column.dropna())


def _read_polars(frame: Frame, model: str, file: str | None, where: str) -> ScoreTable:
    """Make a table of a Polars DataFrame; empty cells are NaN."""
    import polars as pl

    if frame.width == 0:
        raise InputError(where=where, found="no column", expected="at least one label")

    text_columns = []
    for name, dtype in frame.schema.items():
        if not dtype.is_numeric() and dtype not in (pl.Boolean, pl.Null):
            text_columns.append(name)

    # The names of the instances.
    instances = None
    first = frame.columns[0]
    if first in text_columns or first.lower() in ("instance", "id"):
        instances = frame[first].to_list()
        frame = frame.drop(first)
        if first in text_columns:
            text_columns.remove(first)

    if text_columns:
        name = text_columns[0]
        raise InputError(
            where=f"{where}, column {name!r}",
            found=f"{frame[[name]].dtypes} values",
            expected="numbers",
        )

    # NumPy has no such integers.
    array = frame.cast({pl.Int128: pl.Float64}).to_numpy()
    if array.dtype.kind == "O":
        array = frame.cast(pl.Float64).to_numpy()
    return ScoreTable(model, array, instances, frame.columns, file=file)


def as_polars(table: Frame, where: str) -> Frame:
    """Return a frame of Polars, lazy or not, or a table of Arrow as a Polars frame.

    Parameters
    ----------
    table : DataFrame, LazyFrame or pyarrow.Table
        What the user gave.
    where : str
        Its place, for error messages.

    Returns
    -------
    polars.DataFrame

    Examples
    --------
    >>> import polars as pl
    >>> as_polars(pl.LazyFrame({"x": [1]}), "frame").columns
    ['x']
    """
    import polars as pl

    expected = "a frame of pandas, Polars or Arrow"
    if not is_frame(table):
        raise InputError(where=where, found=type(table).__name__, expected=expected)

    try:
        if isinstance(table, pl.LazyFrame):
            return table.collect()
        return pl.DataFrame(table)
    except (TypeError, ValueError, pl.exceptions.PolarsError) as unfit:
        reason = str(unfit).splitlines()[0]
        raise InputError(where=where, found=reason, expected=expected) from None


def check_scores(table: ScoreTable) -> tuple[Matrix, bool]:
    """Check the scores of one model.

    Parameters
    ----------
    table : ScoreTable
        The model's table.

    Returns
    -------
    matrix : ndarray or csr_array of shape (n_k, l_k)
        The scores, in canonical format if they are sparse.
    has_nan : bool
        Whether single scores are missing.

    Examples
    --------
    >>> check_scores(ScoreTable("a", [[0.5, np.nan]]))
    (array([[0.5, nan]]), True)
    """
    where = table.where
    if isinstance(table.scores, StoredMatrix):
        # It is checked when it is read.
        return table.scores, False

    matrix: Matrix
    if sparse.issparse(table.scores):
        matrix = canonical_csr(table.scores)
        values = matrix.data
    else:
        matrix = _as_dense(table.scores, where)
        values = matrix

    if matrix.dtype.kind not in "biuf":
        raise InputError(
            where=where,
            found=f"{matrix.dtype} values",
            expected="bool, 0/1 integers or floats in [0, 1]",
        )
    if matrix.ndim != 2:
        raise InputError(
            where=where,
            found=f"{matrix.ndim} dimensions",
            expected="2: instances, labels",
        )
    for size, what in zip(matrix.shape, ("instance", "label"), strict=True):
        if size == 0:
            raise InputError(where=where, found=f"no {what}", expected="at least one")

    has_nan, is_in_range = _check_range(values)
    if not is_in_range:
        _raise_out_of_range(table, matrix)
    return matrix, has_nan


def _as_dense(scores: Matrix, where: str) -> Array:
    """Return scores as a read-only array of a type that is supported."""
    is_list = isinstance(scores, list) and len(scores) > 0
    if is_list and all(np.ndim(label_scores) == 2 for label_scores in scores):
        scores = _stack_probabilities(scores, where)

    array: Array = as_matrix(scores, where)
    if array.dtype.kind == "f" and array.dtype.char not in "fd":
        if array.dtype.itemsize < 4:
            array = array.astype(np.float32)
        else:
            array = array.astype(np.float64)

    view = array.view()
    view.flags.writeable = False
    return view


def _stack_probabilities(scores: list[Matrix], where: str) -> Array:
    """Return an array (n, l) of what `predict_proba` returns: (n, 2) of each label."""
    for label, probabilities in enumerate(scores):
        if np.shape(probabilities)[1] != 2:
            raise InputError(
                where=f"{where}, label {label}",
                found="probabilities of one class",
                expected="two: of no and of yes",
            )

    of_yes = [np.asarray(probabilities)[:, 1] for probabilities in scores]
    array: Array = as_matrix(of_yes, where)
    return array.T


def canonical_csr(matrix: Matrix) -> Matrix:
    """Return a sparse matrix as CSR with sorted columns, and each cell once.

    Parameters
    ----------
    matrix : sparse matrix of shape (n, l)
        It is not changed.

    Returns
    -------
    csr_array of shape (n, l)

    Examples
    --------
    >>> matrix = sparse.coo_array(([0.5], ([0], [1])), shape=(1, 2))
    >>> canonical_csr(matrix).indptr.tolist()
    [0, 1]
    """
    csr = sparse.csr_array(matrix)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()

    return csr


def _check_range(values: Array) -> tuple[bool, bool]:
    """Return whether there is a NaN, and whether all else is in [0, 1]."""
    if values.dtype.kind == "b" or values.size == 0:
        return False, True

    # Two passes, without temporary arrays.
    low = values.min()
    high = values.max()
    has_nan = bool(np.isnan(low))
    if has_nan:
        low = np.fmin.reduce(values, axis=None)
        high = np.fmax.reduce(values, axis=None)

    return has_nan, not (low < 0 or high > 1)


def _raise_out_of_range(table: ScoreTable, matrix: Matrix) -> Never:
    """Raise an error that names the first score outside of [0, 1]."""
    cells = sparse.coo_array(matrix)
    first = np.flatnonzero((cells.data < 0) | (cells.data > 1))[0]
    row = int(cells.row[first])
    column = int(cells.col[first])

    instance: object = row
    if table.instances is not None:
        instance = list(table.instances)[row]

    label = f"label_{column}"
    if table.labels is not None:
        label = str(list(table.labels)[column])

    expected = "a number in [0, 1] or NaN"
    if cells.dtype.kind in "iu":
        expected = "0 or 1"

    raise InputError(
        where=f"model {table.model!r}, instance {instance!r}, label {label!r}",
        found=cells.data[first],
        expected=expected,
    )
