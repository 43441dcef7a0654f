"""What users give for each model, checked and aligned by name. The only place that validates data."""

import warnings
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..errors import InputError, InputWarning
from .alignment import (
    Array,
    BoolArray,
    How,
    IntArray,
    Maps,
    Names,
    align,
    as_names,
    in_common,
)
from .model_scores import AlignedScores, Matrix, StoredMatrix, as_matrix

# instances, with fewer of which nobody can tell what a list leaves out by chance
FEWEST_FOR_RARE_LABELS = 50
# times that a label would be named, from which on it is no chance that it never is
_EXPECTED = 5


class ScoreTable(NamedTuple):
    """One model's scores as a file or a frame gives them, before they are aligned with the others."""

    model: str
    scores: Any  # dense, scipy.sparse or `StoredMatrix` (n_k, l_k)
    instances: Any = (
        None  # a sequence, an array or a Polars series of names; None: unnamed
    )
    labels: Any = None
    file: str | None = None  # where it comes from, for messages
    # (l_k,) how often a list names each label; None: it is a table, whose columns are
    # what it knows
    named: Any = None
    # all instances that its file lists, where of some nothing was said; in the panel
    # they are too
    listed: Any = None

    @property
    def where(self) -> str:
        """What messages call the table."""
        return self.file or f"model {self.model!r}"

    def to_frame(self, library: str = "pandas") -> Any:
        """Return the scores as a DataFrame: of pandas with the instances as index, of Polars with them as first column.

        Examples
        --------
        >>> ScoreTable("a", np.array([[0.5, 1.0]]), ["i"], ["x", "y"]).to_frame().loc["i", "y"]
        np.float64(1.0)
        """
        if library not in ("pandas", "polars"):
            raise InputError(
                where="library", found=repr(library), expected="'pandas' or 'polars'"
            )

        ids = np.asarray(self.instances).tolist()
        labels = list(self.labels)
        scores = np.asarray(self.scores)
        if library == "pandas":
            import pandas as pd

            return pd.DataFrame(
                scores, index=pd.Index(ids, name="instance"), columns=labels
            )

        import polars as pl

        if "instance" in labels:
            raise InputError(
                where="labels",
                found="'instance', which the column of names is called",
                expected="another name",
            )

        return pl.DataFrame(scores, schema=labels, orient="row").insert_column(
            0, pl.Series("instance", ids)
        )


def tables_of(scores: Any, models: Any) -> list[ScoreTable]:
    """Take apart the forms that `Predictions` accepts.

    Examples
    --------
    >>> [table.model for table in tables_of({"ann": [[1, 0]], "bob": [[0, 1]]}, None)]
    ['ann', 'bob']
    """
    if isinstance(scores, Mapping):
        if models is not None:
            raise InputError(
                where="models",
                found="models=… beside a mapping, which names its own",
                expected="one of the two",
            )

        models = [str(name) for name in scores]
        matrices = list(scores.values())
    else:
        matrices = _matrices(scores)
        if models is None:
            models = [f"model_{k}" for k in range(len(matrices))]

    names = [str(name) for name in as_names(models, "models").tolist()]
    if not (bool(matrices)):
        raise InputError(where="predictions", found="no model", expected="at least one")

    each = f"one for each of {len(matrices)} models"
    if len(names) != len(matrices):
        raise InputError(where="models", found=f"{len(names)} names", expected=each)
    return [
        table_of(matrix, name) for name, matrix in zip(names, matrices, strict=True)
    ]


def _matrices(scores: Any) -> list[Any]:
    if isinstance(scores, (list, tuple)):
        return list(scores)

    single = sparse.issparse(scores) or is_frame(scores) or np.ndim(scores) == 2
    one_each = "one for each model: put it in a list for a panel of one model"
    if single:
        raise InputError(
            where="predictions", found="a single matrix", expected=one_each
        )

    forms = "an array (m, n, l), a sequence of m matrices (n, l), or a mapping from model name to matrix"
    if not (hasattr(scores, "__array__")):
        raise InputError(
            where="predictions", found=type(scores).__name__, expected=forms
        )
    array: Array = np.asanyarray(scores)
    if not isinstance(scores, np.ma.MaskedArray):
        array = np.asarray(scores)

    if array.ndim != 3:
        raise InputError(
            where="predictions",
            found=f"{array.ndim} dimensions",
            expected="3: models, instances, labels",
        )

    return list(array)


def is_frame(given: Any) -> bool:
    """Tell whether something is a DataFrame, of pandas or Polars, or a table of Arrow's: its columns have names."""
    return hasattr(type(given), "columns")


def table_of(given: Any, model: str, file: str | None = None) -> ScoreTable:
    """Make a table of one model's scores, or of truth: of a frame with its names, of all else without.

    In pandas the index names the instances. Elsewhere the first column does if it holds
    no numbers, or is called ``instance`` or ``id``; without such a column instances
    have no names.

    Examples
    --------
    >>> import polars as pl
    >>> table_of(pl.DataFrame({"id": [7, 8], "x": [True, None]}), "a")
    ScoreTable(model='a', scores=array([[ 1.], [nan]]), instances=[7, 8], labels=['x'], file=None, ...)
    """
    if not is_frame(given):
        return ScoreTable(model, given, file=file)

    where = file or f"model {model!r}"
    if hasattr(given, "iloc"):
        return ScoreTable(
            model, _numbers(given, where), given.index, given.columns, file
        )

    import polars as pl

    frame = as_polars(given, where)
    ids = None
    if not (frame.width > 0):
        raise InputError(where=where, found="no column", expected="at least one label")

    odd = [
        name
        for name, kind in frame.schema.items()
        if not (kind.is_numeric() or kind in (pl.Boolean, pl.Null))
    ]
    first = frame.columns[0]
    if first in odd or first.lower() in ("instance", "id"):
        ids = frame[first].to_list()
        frame = frame.drop(first)
        odd = [name for name in odd if name != first]

    if odd:
        raise InputError(
            where=f"{where}, column {''.join(odd[:1])!r}",
            found=f"{frame[odd[:1]].dtypes} values",
            expected="numbers",
        )

    array = frame.cast({pl.Int128: pl.Float64}).to_numpy()  # NumPy has no such integers
    if array.dtype.kind == "O":
        array = frame.cast(pl.Float64).to_numpy()
    return ScoreTable(model, array, ids, frame.columns, file)


def as_polars(given: Any, where: str) -> Any:
    """Return a frame of Polars, lazy or not, or a table of Arrow's as a frame of Polars.

    Examples
    --------
    >>> import polars as pl
    >>> as_polars(pl.LazyFrame({"x": [1]}), "frame").columns
    ['x']
    """
    import polars as pl

    kinds = "a frame of pandas, Polars or Arrow"
    if not (is_frame(given)):
        raise InputError(where=where, found=type(given).__name__, expected=kinds)

    try:
        if isinstance(given, pl.LazyFrame):
            return given.collect()
        return pl.DataFrame(given)
    except (TypeError, ValueError, pl.exceptions.PolarsError) as unfit:
        raise InputError(
            f"{where}: found {str(unfit).splitlines()[0]}, expected {kinds}"
        ) from None


def _numbers(frame: Any, where: str) -> Array:
    """Return the cells of a pandas frame, NaN where they are empty, of whatever kind its columns are."""
    array: Array = frame.to_numpy()
    if array.dtype.kind in "biuf":
        return array

    array = np.empty(frame.shape)
    for at, (name, column) in enumerate(frame.items()):
        kind = column.dtype.kind
        right = kind in "biuf" or (
            kind == "O"
            and all(isinstance(cell, Real | np.bool_) for cell in column.dropna())
        )
        if not (right):
            raise InputError(
                where=f"{where}, column {str(name)!r}",
                found=f"{column.dtype} values",
                expected="numbers",
            )

        array[:, at] = column.to_numpy(np.float64, na_value=np.nan)

    return array


def aligned(
    tables: list[ScoreTable], how_instances: How, how_labels: How
) -> tuple[tuple[str, ...], Names, tuple[str, ...], tuple[AlignedScores, ...]]:
    """Check all tables, and give the names of models, instances and labels, and each model's scores seen through them.

    Examples
    --------
    >>> aligned([ScoreTable("a", [[1, 0]], labels=["x", "y"])], "union", "union")[:3]
    (('a',), array([0]), ('x', 'y'))
    """
    fit = [checked(table) for table in tables]
    sizes = [matrix.shape for matrix, _ in fit]
    labels, columns = panel_names(
        tables, "labels", [size[1] for size in sizes], how_labels
    )
    instances, rows = panel_names(
        tables, "instances", [size[0] for size in sizes], how_instances
    )
    if len(instances) >= FEWEST_FOR_RARE_LABELS:
        columns = _rarely_named(tables, columns, sizes)

    parts = tuple(
        AlignedScores(matrix=matrix, rows=rows[k], columns=columns[k], has_nan=has_nan)
        for k, (matrix, has_nan) in enumerate(fit)
    )
    if tables[0].labels is None:
        names = tuple(f"label_{j}" for j in range(len(labels)))
    else:
        names = tuple(map(str, labels.tolist()))

    return tuple(table.model for table in tables), instances, names, parts


def _rarely_named(
    tables: list[ScoreTable], columns: Maps, sizes: list[tuple[int, int]]
) -> Maps:
    """Take a label that a list never names for a no (-2) where it is so rare in other lists that this is chance.

    A model that would name it 5 times, if it did so as often as others, names it at all
    but for one in 150 (e⁻⁵).
    """
    lists = [k for k, table in enumerate(tables) if table.named is not None]
    if not lists:
        return columns

    positions: list[Any] = []
    counts: list[Any] = []
    for k in lists:
        own_columns = columns[k]
        if own_columns is None:
            own_columns = np.arange(sizes[k][1])
        positions.append(own_columns)
        counts.append(np.where(own_columns >= 0, tables[k].named[own_columns], 0))

    is_listed = np.array([own_columns >= 0 for own_columns in positions])
    n_instances = np.array([sizes[k][0] for k in lists])
    is_rare = find_rare_labels(np.array(counts), n_instances, is_listed)
    for row, k in enumerate(lists):
        is_negative = is_rare[row] & (positions[row] == -1)
        if is_negative.any():
            columns[k] = np.where(is_negative, -2, positions[row])

    return columns


def find_rare_labels(
    counts: IntArray, n_instances: IntArray, is_listed: BoolArray
) -> BoolArray:
    """Find labels that a model does not list only because they are rare.

    A model that would list the label 5 times, if it did so as often as the others,
    lists it at least once except in one of 150 cases (e**-5).

    Parameters
    ----------
    counts : ndarray of shape (m, l)
        How often each model lists each label.
    n_instances : ndarray of shape (m,)
        Number of instances of each model.
    is_listed : ndarray of shape (m, l) of bool
        Whether the model lists the label at all.

    Returns
    -------
    ndarray of shape (m, l) of bool

    Examples
    --------
    >>> counts = np.array([[9, 1], [9, 0]])
    >>> find_rare_labels(counts, np.array([50, 50]), counts > 0)
    array([[False, False],
           [False,  True]])
    """
    n_known = n_instances @ is_listed
    rate = counts.sum(axis=0) / np.maximum(n_known, 1)
    n_expected = n_instances[:, np.newaxis] * rate
    is_rare = (rate > 0) & (n_expected < _EXPECTED)
    return np.asarray(~is_listed & is_rare)


def panel_names(
    tables: list[ScoreTable], what: str, sizes: list[int], how: How
) -> tuple[Names, Maps]:
    """Find the panel's names of instances or labels, and each model's map to them.

    Examples
    --------
    >>> tables = [ScoreTable("a", None, labels=["x"]), ScoreTable("b", None, labels=["y", "x"])]
    >>> panel_names(tables, "labels", [1, 2], "union")[1]
    [array([ 0, -1]), array([1, 0])]
    """
    given = [getattr(table, what) for table in tables]
    named = [table.model for table in tables if getattr(table, what) is not None]
    if named and len(named) < len(tables):
        without = next(table.model for table in tables if getattr(table, what) is None)
        found = f"names in model {named[0]!r} and none in model {without!r}"
        raise InputError(
            f"{what}: found {found}, expected all models to name them, or none"
        )

    if not named:
        as_first = f"{sizes[0]} as model {tables[0].model!r} has"
        for table, size in zip(tables, sizes, strict=True):
            if size != sizes[0]:
                raise InputError(
                    where=f"model {table.model!r}",
                    found=f"{size} {what}",
                    expected=as_first,
                )

        positions = np.arange(sizes[0])
        positions.flags.writeable = False
        return positions, [None] * len(tables)

    arrays: list[Names] = []
    for k, table in enumerate(tables):
        where = f"model {table.model!r}"
        same = k > 0 and given[k] is given[k - 1]
        checked_by_reader = table.file is not None and hasattr(
            given[k], "hash"
        )  # a Polars series of text
        if checked_by_reader:
            own = given[k]
        else:
            if same:
                own = arrays[-1]
            else:
                own = as_names(given[k], f"{where}, {what}")

        arrays.append(own)
        if len(arrays[-1]) != sizes[k]:
            raise InputError(
                where=where,
                found=f"{len(arrays[-1])} names of {what}",
                expected=str(sizes[k]),
            )

    check_overlap(tables, what.removesuffix("s"), arrays)
    if what == "instances":
        _check_spaces(tables, arrays)

    panel, maps = align(
        arrays,
        how,
        what,
        [table.listed for table in tables] if what == "instances" else (),
    )
    if what == "labels" and any(table.file for table in tables):
        check_similar_labels([str(label) for label in panel])
    return panel, maps


def check_similar_labels(labels: list[str]) -> None:
    """Warn of labels that differ in case or spaces around them alone."""
    first: dict[str, str] = {}
    pairs = (
        (label, first.setdefault(label.strip().lower(), label)) for label in labels
    )
    if alike := [pair for pair in pairs if pair[0] != pair[1]]:
        said = "labels: {:,} differ from others in case or spaces alone, such as {!r} from {!r}"
        said = (
            said.format(len(alike), *alike[0])
            + ", and count as others (--ignore-case makes them one)"
        )
        warnings.warn(said, InputWarning, 2)


def _check_spaces(tables: list[ScoreTable], arrays: list[Any]) -> None:
    """Warn of names in files that differ from another file's by spaces around them alone."""
    for k, own in enumerate(arrays):
        others = [other for other in arrays if other is not own]
        if others and hasattr(own, "str"):  # a Polars series
            spaced = own.filter(own.str.starts_with(" ") | own.str.ends_with(" "))
            if len(spaced) and any(
                in_common(spaced.str.strip_chars(), other) for other in others
            ):
                said = f"{len(spaced):,} instances, such as {spaced[0]!r}, have spaces around their names"
                warnings.warn(
                    f"{tables[k].where}: {said}, and count as others than those without",
                    InputWarning,
                    2,
                )


def with_names(tables: Sequence[ScoreTable]) -> list[ScoreTable]:
    """Name instances and labels by position in tables without such names, where other tables have them.

    Without a name, an instance is its position, 0, 1, …, and a label is ``label_0``,
    ``label_1``, …. That is only safe where the other tables' names are such positions
    too; else it is refused.

    Parameters
    ----------
    tables
        Tables that are to be matched with each other.

    Examples
    --------
    >>> named = ScoreTable("a", np.zeros((1, 1)), ["1"], ["label_0"])
    >>> with_names([named, ScoreTable("b", np.zeros((2, 1)))])[1].instances.tolist()
    ['0', '1']
    """
    out = list(tables)
    for axis, what in enumerate(("instances", "labels")):
        named = [table for table in out if getattr(table, what) is not None]
        for k, table in enumerate(out if named else []):
            if getattr(table, what) is not None:
                continue

            names = [
                f"{'' if axis == 0 else 'label_'}{at}"
                for at in range(table.scores.shape[axis])
            ]
            positions = set(names)
            for other in named:
                strange = next(
                    (
                        name
                        for name in map(str, getattr(other, what))
                        if name not in positions
                    ),
                    None,
                )
                since = f"since {other.where} names {what} such as {strange!r} that are not positions in {table.where}"
                if strange is not None:
                    raise InputError(
                        where=table.where,
                        found=f"no names of {what}",
                        expected=f"them, {since}",
                    )

            own: Any = {what: np.array(names, dtype=np.dtypes.StringDType())}
            out[k] = table._replace(**own)

    return out


def check_overlap(
    tables: Sequence[ScoreTable], what: str, names: Sequence[Names]
) -> None:
    """Refuse a model that shares no instance, or no label, with any other: most likely the names do not match.

    Models of one file use one set of names, even if one of them saw what no other did.

    Parameters
    ----------
    tables
        One for each model.
    what
        ``"instance"`` or ``"label"``.
    names
        What each table calls these.

    Examples
    --------
    >>> check_overlap([ScoreTable(name, None) for name in "ab"], "label", [np.array(["x"]), np.array(["y"])])
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: model 'b': found no label in model 'b' that another model has (such as ...
    """
    for k, own in reversed(
        list(enumerate(names))
    ):  # of two that do not match, the second is named
        others = [other for j, other in enumerate(names) if j != k]
        beside = tables[k].file and any(
            table.file == tables[k].file for j, table in enumerate(tables) if j != k
        )
        if others and not beside and not any(in_common(own, other) for other in others):
            called = [
                {str(name).strip().lower() for name in some}
                for some in (own, *others)
                if what == "label"
            ]
            alike = called and called[0] & set().union(*called[1:])
            if alike:
                hint = "; but for case and spaces there are some (--ignore-case)"
            else:
                hint = ""

            raise InputError(
                f"{tables[k].where}: found no {what} in model {tables[k].model!r} that another model has (such as "
                f"{str(others[0][0])!r}; its own are such as {str(own[0])!r}), expected some in common{hint}"
            )


def checked(table: ScoreTable) -> tuple[Matrix, bool]:
    """Return one model's matrix as an ndarray or canonical CSR that is fit to use, and whether it has NaN.

    Examples
    --------
    >>> checked(ScoreTable("a", [[0.5, np.nan]]))
    (array([[0.5, nan]]), True)
    """
    where = table.where
    raw = table.scores
    if isinstance(raw, StoredMatrix):  # which is checked when it is read
        return raw, False

    matrix: Matrix = canonical_csr(raw) if sparse.issparse(raw) else _dense(raw, where)
    kinds = "bool, 0/1 integers or floats in [0, 1]"
    if matrix.dtype.kind not in "biuf":
        raise InputError(where=where, found=f"{matrix.dtype} values", expected=kinds)
    if matrix.ndim != 2:
        raise InputError(
            where=where,
            found=f"{matrix.ndim} dimensions",
            expected="2: instances, labels",
        )
    if 0 in matrix.shape:
        raise InputError(
            where=where,
            found=f"no {'instance' if matrix.shape[0] == 0 else 'label'}",
            expected="at least one",
        )

    has_nan, in_range = _range(matrix.data if sparse.issparse(matrix) else matrix)
    if not in_range:
        _raise_out_of_range(table, matrix)
    return matrix, has_nan


def _dense(raw: Any, where: str) -> Array:
    if (
        isinstance(raw, list) and raw and all(np.ndim(each) == 2 for each in raw)
    ):  # what `predict_proba` may return
        odd = [j for j, each in enumerate(raw) if np.shape(each)[1] != 2]
        if odd:
            raise InputError(
                where=f"{where}, label {min(odd, default=0)}",
                found="probabilities of one class",
                expected="two: of no and of yes",
            )

        raw = as_matrix([np.asarray(each)[:, 1] for each in raw], where).T

    array: Array = as_matrix(raw, where)
    if array.dtype.kind == "f" and array.dtype.char not in "fd":
        array = array.astype(np.float32 if array.dtype.itemsize < 4 else np.float64)

    view = array.view()
    view.flags.writeable = False
    return view


def canonical_csr(raw: Any) -> Any:
    """Return a sparse matrix as CSR, columns in order and each cell once; what was given stays as it is.

    Examples
    --------
    >>> canonical_csr(sparse.coo_array(([0.5], ([0], [1])), shape=(1, 2))).indptr.tolist()
    [0, 1]
    """
    matrix = sparse.csr_array(raw)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()

    return matrix


def _range(values: Array) -> tuple[bool, bool]:
    """Whether there is a NaN, and whether all else is in [0, 1]; in two passes without temporaries."""
    if values.dtype.kind == "b" or values.size == 0:
        return False, True

    low = values.min()
    high = values.max()
    has_nan = bool(np.isnan(low))
    if has_nan:
        low = np.fmin.reduce(values, axis=None)
        high = np.fmax.reduce(values, axis=None)

    return has_nan, not (low < 0 or high > 1)


def _raise_out_of_range(table: ScoreTable, matrix: Matrix) -> None:
    cells = sparse.coo_array(matrix)
    bad = np.flatnonzero((cells.data < 0) | (cells.data > 1))[0]
    row = cells.row[bad]
    column = cells.col[bad]
    if table.instances is None:
        instance = int(row)
    else:
        instance = list(table.instances)[row]

    if table.labels is None:
        label = f"label_{column}"
    else:
        label = str(list(table.labels)[column])

    if cells.dtype.kind in "iu":
        expected = "0 or 1"
    else:
        expected = "a number in [0, 1] or NaN"

    raise InputError(
        where=f"model {table.model!r}, instance {instance!r}, label {label!r}",
        found=cells.data[bad],
        expected=expected,
    )
