"""Ground truth: matched by name with what is evaluated, and checked."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, cast

import numpy as np
from scipy import sparse

from ..errors import InputError
from ..linalg.block_sums import dense
from ..linalg.sparse_scores import SparseScores
from ..predictions import (
    MAX_DENSE_LABELS,
    Array,
    BoolArray,
    FloatArray,
    IntArray,
    Matrix,
    Names,
    ScoreTable,
    add_names,
    as_matrix,
    canonical_csr,
    make_table,
    positions_of,
    truth_table,
)
from ..text import plural

NameList = Names | Sequence[object]


@dataclass(frozen=True, kw_only=True)
class MatchedTruth:
    """The truth of the instances and labels that are also evaluated.

    ``n`` and ``l`` are the numbers of evaluated instances and labels, ``n'`` and
    ``l'`` of those that the truth has, too.
    """

    truth: Matrix  # (n', l') of bool; CSR in large label spaces
    rows: IntArray  # (n',) positions among the evaluated instances
    columns: IntArray  # (l',) positions among the evaluated labels
    note: str  # a sentence about what was left out; may be empty

    def select(self, values: Matrix) -> Matrix:
        """Select the scores or label sets that have a truth.

        Parameters
        ----------
        values : ndarray, csr_array or SparseScores of shape (n, l)
            Values of all evaluated instances and labels.

        Returns
        -------
        ndarray, csr_array or SparseScores of shape (n', l')

        Examples
        --------
        >>> matched = match_truth([[1, 0]], np.array(["i"]), ("x", "y"))
        >>> matched.select(np.array([[0.9, 0.1]])).tolist()
        [[0.9, 0.1]]
        """
        if isinstance(values, SparseScores):
            above = values.above[self.rows][:, self.columns]
            return SparseScores(above, values.default[self.columns])

        return values[self.rows][:, self.columns]

    def restrict(self, has_instance: BoolArray, has_label: BoolArray) -> Self:
        """Restrict the truth to some of the evaluated instances and labels.

        Parameters
        ----------
        has_instance : ndarray of bool of shape (n,)
            The instances to keep.
        has_label : ndarray of bool of shape (l,)
            The labels to keep.

        Returns
        -------
        MatchedTruth

        Examples
        --------
        >>> matched = match_truth([[1, 0]], np.array(["i"]), ("x", "y"))
        >>> matched.restrict(np.array([True]), np.array([False, True])).truth
        array([[False]])
        """
        rows = np.flatnonzero(has_instance[self.rows])
        columns = np.flatnonzero(has_label[self.columns])
        return replace(
            self,
            truth=self.truth[rows][:, columns],
            rows=self.rows[rows],
            columns=self.columns[columns],
        )


def match_truth(truth: object, instances: NameList, labels: NameList) -> MatchedTruth:
    """Match the truth with the evaluated instances and labels.

    Parameters
    ----------
    truth : array-like, sparse matrix, DataFrame, ScoreTable or MatchedTruth
        A DataFrame or table is matched by its names, an array of shape (n, l) by
        position.
    instances : sequence of shape (n,)
        Names of the evaluated instances.
    labels : sequence of shape (l,)
        Names of the evaluated labels.

    Returns
    -------
    MatchedTruth

    Examples
    --------
    >>> match_truth([[1, 0]], np.array(["i"]), ("x", "y")).truth.tolist()
    [[True, False]]
    """
    if isinstance(truth, MatchedTruth):
        return truth

    table = truth_table(truth, "truth", instances, labels)
    return match_truth_table(table, instances, labels)


def match_truth_table(
    table: ScoreTable, instances: NameList, labels: NameList
) -> MatchedTruth:
    """Match a table with the truth, by name.

    Parameters
    ----------
    table : ScoreTable
        The truth, 0 and 1.
    instances : sequence of shape (n,)
        Names of the evaluated instances.
    labels : sequence of shape (l,)
        Names of the evaluated labels.

    Returns
    -------
    MatchedTruth

    Examples
    --------
    >>> table = ScoreTable("truth", [[0, 1], [1, 1]], ["i", "j"], ["x", "y"])
    >>> matched = match_truth_table(table, ["j", "k"], ["y", "x", "z"])
    >>> matched.truth.tolist(), matched.rows.tolist(), matched.columns.tolist()
    ([[True, True]], [0], [0, 1])
    >>> matched.note
    'judged on 1 of 2 instances and 2 of 3 labels; the truth has 1 more instance'
    """
    matrix = _check_truth_values(table)

    # Tables without names get those of the evaluated instances and labels.
    evaluated = ScoreTable("judged", None, instances, labels, file="what is judged")
    file = table.file or table.model
    table = add_names([evaluated, replace(table, scores=matrix, file=file)])[1]
    table = add_unnamed_labels(table, evaluated)

    rows, truth_rows = _find_common(instances, table.instances, table.model)
    columns, truth_columns = _find_common(labels, table.labels, table.model)
    truth = table.scores[truth_rows][:, truth_columns].astype(np.bool_)
    if len(columns) <= MAX_DENSE_LABELS:
        truth = dense(truth)

    n_truth, l_truth = table.scores.shape
    sides = [
        _Side("instance", len(rows), len(instances), n_truth),
        _Side("label", len(columns), len(labels), l_truth),
    ]
    return MatchedTruth(
        truth=truth, rows=rows, columns=columns, note=_describe_missing(sides)
    )


def _check_truth_values(table: ScoreTable) -> Matrix:
    """Check that a table has only 0 and 1; return it as an array or CSR matrix."""
    matrix: Matrix
    if sparse.issparse(table.scores):
        matrix = sparse.csr_array(table.scores)
        values = matrix.data
    else:
        matrix = np.asarray(table.scores)
        values = matrix

    if 0 in matrix.shape:
        raise InputError(
            where=table.model,
            found=f"shape {matrix.shape}",
            expected="at least one instance and one label",
        )
    if matrix.dtype.kind not in "biuf":
        raise InputError(
            where=table.model, found=matrix.dtype, expected="only 0 and 1 in the truth"
        )

    not_binary = values[(values != 0) & (values != 1)]
    if not_binary.size:
        raise InputError(
            where=table.model,
            found=not_binary[0],
            expected="only 0 and 1 in the truth",
        )

    return matrix


def add_unnamed_labels(table: ScoreTable, other: ScoreTable) -> ScoreTable:
    """Add the labels of another table that a list of labels never names.

    Parameters
    ----------
    table : ScoreTable
        Labels that a list does not name are irrelevant. A table that is not a list is
        returned unchanged.
    other : ScoreTable
        The table with more labels.

    Returns
    -------
    ScoreTable

    Examples
    --------
    >>> truth = ScoreTable("truth", [[1, 1]], ["i"], ["x", "y"])
    >>> listed = ScoreTable("a", sparse.csr_array([[1]]), ["i"], ["x"], named=[1])
    >>> add_unnamed_labels(listed, truth).scores.toarray()
    array([[1, 0]])
    """
    if table.named is None or other.labels is None:
        return table

    added = np.flatnonzero(positions_of(other.labels, table.labels) < 0)
    has_common_label = len(added) < len(other.labels)
    if not has_common_label:
        # The match of the two tables raises an error about this.
        return table

    labels = [str(label) for label in table.labels]
    labels += [str(other.labels[j]) for j in added]
    n_rows = table.scores.shape[0]
    zeros = sparse.csr_array((n_rows, len(added)), dtype=table.scores.dtype)
    scores = sparse.hstack([table.scores, zeros], format="csr")
    return replace(table, scores=scores, labels=labels)


def describe_empty_instances(truth: Matrix) -> str:
    """Describe how many instances have no relevant label.

    Parameters
    ----------
    truth : ndarray or csr_array of shape (n, l)
        Relevant labels; NaN where the truth is unknown.

    Returns
    -------
    str
        Empty if each instance has a relevant label.

    Examples
    --------
    >>> describe_empty_instances(np.array([[0, 0], [0, 1]]))
    '1 instance without a relevant label: whatever is ranked first is a one-error'
    """
    n_empty = int((truth.sum(axis=1) == 0).sum())
    if n_empty == 0:
        return ""

    return (
        f"{plural(n_empty, 'instance')} without a relevant label: whatever is ranked "
        "first is a one-error"
    )


@dataclass(frozen=True)
class _Side:
    """Number of instances, or of labels."""

    noun: str
    n_common: int
    n_evaluated: int
    n_truth: int


def _describe_missing(sides: list[_Side]) -> str:
    """Describe what only the truth, or only the evaluated scores have."""
    sentences = []
    if any(side.n_common < side.n_evaluated for side in sides):
        shares = []
        for side in sides:
            shares.append(f"{side.n_common:,} of {side.n_evaluated:,} {side.noun}s")

        sentences.append(f"judged on {' and '.join(shares)}")

    more = []
    for side in sides:
        n_more = side.n_truth - side.n_common
        if n_more > 0:
            more.append(plural(n_more, f"more {side.noun}"))

    if more:
        sentences.append(f"the truth has {' and '.join(more)}")

    return "; ".join(sentences)


def _find_common(
    evaluated: NameList, truth: NameList, where: str
) -> tuple[IntArray, IntArray]:
    """Return the positions of common names among the evaluated, and in the truth."""
    if evaluated is truth:
        return np.arange(len(evaluated)), np.arange(len(evaluated))

    positions = positions_of(evaluated, truth, where)
    is_common = positions >= 0
    if not is_common.any():
        raise InputError(
            where=where,
            found=f"none of the names that are judged (it has {str(truth[0])!r}, …)",
            expected=f"some such as {str(evaluated[0])!r}",
        )

    return np.flatnonzero(is_common), positions[is_common]


def check_partial_truth_and_scores(
    truth: object, scores: object
) -> tuple[FloatArray, FloatArray]:
    """Check a truth that may be unknown in places, and scores.

    Parameters
    ----------
    truth : array-like, sparse matrix or DataFrame of shape (n, l)
        Relevant labels, 0 and 1; NaN where the truth is unknown.
    scores : array-like, sparse matrix or DataFrame of shape (n, l)
        Finite numbers.

    Returns
    -------
    truth, scores : ndarray of shape (n, l)
    """
    matched_truth, matched_scores = _match_by_name(truth, scores)
    dense_truth = dense(matched_truth)
    dense_scores = dense(matched_scores)
    if dense_truth.shape != dense_scores.shape:
        raise InputError(
            where="truth",
            found=f"shape {dense_truth.shape}",
            expected=f"{dense_scores.shape} as the scores have",
        )

    binary, finite = check_truth_and_scores(np.nan_to_num(dense_truth), dense_scores)
    partial = np.where(np.isnan(dense_truth), np.nan, binary)
    return partial, cast("Array", finite).astype(np.float64)


def check_truth_and_scores(
    truth: object, scores: object
) -> tuple[Matrix, FloatArray | SparseScores]:
    """Check that truth is binary, that scores are finite, and that their shapes agree.

    Parameters
    ----------
    truth : array-like, sparse matrix or DataFrame of shape (n, l)
        Relevant labels, 0 and 1.
    scores : array-like, sparse matrix, SparseScores or DataFrame of shape (n, l)
        Finite numbers. DataFrames are matched by name if both are DataFrames.

    Returns
    -------
    truth : ndarray of bool or csr_array of shape (n, l)
        CSR if the scores are `SparseScores`.
    scores : ndarray or SparseScores of shape (n, l)
        `SparseScores` if a sparse matrix was passed.
    """
    truth, scores = _match_by_name(truth, scores)
    if sparse.issparse(scores):
        above = canonical_csr(scores).astype(np.float64)
        scores = SparseScores(above, np.zeros(above.shape[1]))

    is_sparse = isinstance(scores, SparseScores)
    binary = _check_binary(truth, "truth", is_sparse)
    if binary.ndim != 2:
        raise InputError(
            where="truth",
            found=f"shape {binary.shape}",
            expected="two dimensions: instances, labels",
        )

    if isinstance(scores, SparseScores):
        _check_scores(scores.shape, scores.above.data, binary.shape)
        return binary, scores

    array = np.asarray(scores)
    _check_scores(array.shape, array, binary.shape)
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)

    return binary, array


def _check_scores(
    shape: tuple[int, ...], values: Array, truth_shape: tuple[int, ...]
) -> None:
    """Check the shape of scores, and that their values are finite numbers."""
    if shape != truth_shape:
        raise InputError(
            where="scores",
            found=f"shape {shape}",
            expected=f"{truth_shape} as the truth has",
        )
    if 0 in shape:
        raise InputError(
            where="scores",
            found=f"shape {shape}",
            expected="at least one instance and one label",
        )
    if values.dtype.kind not in "biuf":
        raise InputError(
            where="scores", found=f"{values.dtype} values", expected="numbers"
        )

    # NaN and infinity show in the extremes, without an array of flags.
    extremes = [values.min(initial=0), values.max(initial=0)]
    if values.dtype.kind == "f" and not np.isfinite(extremes).all():
        raise InputError(
            where="scores", found="NaN or infinity", expected="finite numbers"
        )


def check_truth_and_label_sets(
    truth: object, label_sets: object
) -> tuple[Matrix, Matrix]:
    """Check that truth and label sets are binary, and that their shapes agree.

    Parameters
    ----------
    truth, label_sets : array-like, sparse matrix or DataFrame of shape (n, l)
        0 and 1.

    Returns
    -------
    truth, label_sets : ndarray of bool or csr_array of shape (n, l)
        CSR if the label sets are sparse.
    """
    checked_truth, checked_sets = check_truth_and_scores(truth, label_sets)
    if sparse.issparse(label_sets):
        return checked_truth, _check_binary(label_sets, "label sets", True)
    return checked_truth, _check_binary(checked_sets, "label sets", False)


def _match_by_name(truth: object, scores: object) -> tuple[Matrix, Matrix]:
    """Return truth and scores as matrices, the truth in the order of the scores.

    Both are matched by name if both have names, and by position otherwise.
    """
    truth_names = make_table(truth, "truth", "truth")
    score_names = make_table(scores, "scores", "scores")
    truth_matrix = as_matrix(truth_names.scores, "truth")
    score_matrix = score_names.scores
    if not isinstance(score_matrix, SparseScores):
        score_matrix = as_matrix(score_matrix, "scores")

    pairs = [
        ("instances", score_names.instances, truth_names.instances),
        ("labels", score_names.labels, truth_names.labels),
    ]
    for axis, (noun, of_scores, of_truth) in enumerate(pairs):
        if of_scores is None or of_truth is None:
            continue

        order = positions_of(of_scores, of_truth, f"{noun} of truth and scores")
        if len(order) != truth_matrix.shape[axis] or (order < 0).any():
            raise InputError(
                where="scores",
                found=f"other {noun} than the truth has",
                expected="the same names",
            )

        truth_matrix = truth_matrix.take(order, axis)

    return truth_matrix, score_matrix


def _check_binary(matrix: Matrix, where: str, is_sparse: bool) -> Matrix:
    """Check that a matrix has only 0 and 1; return it as bool, or as CSR of bool."""
    checked: Matrix
    if is_sparse:
        checked = sparse.csr_array(matrix)
        values = checked.data
    else:
        checked = dense(matrix)
        values = checked

    is_binary = values.dtype.kind == "b"
    if values.dtype.kind in "iuf":
        is_binary = bool(((values == 0) | (values == 1)).all())
    if not is_binary:
        raise InputError(
            where=where,
            found="values other than 0 and 1",
            expected="a binary matrix (n, l)",
        )

    checked = checked.astype(np.bool_, copy=is_sparse)
    if is_sparse:
        checked.eliminate_zeros()

    return checked
