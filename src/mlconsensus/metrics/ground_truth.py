"""Truth matched by name to what it is to judge, and checked."""

from typing import Any, NamedTuple, cast

import numpy as np
from scipy import sparse

from ..errors import InputError
from ..linalg.block_sums import BoolArray, dense
from ..linalg.sparse_scores import SparseScores
from ..predictions import (
    MAX_DENSE_LABELS,
    IntArray,
    ScoreTable,
    as_matrix,
    canonical_csr,
    positions_of,
    table_of,
    truth_table,
    with_names,
)
from ..text import plural


class MatchedTruth(NamedTuple):
    """The truth about the instances and labels that both sides have, and where these stand in what is judged."""

    truth: Any  # (n', l') of bool; CSR where labels are many
    rows: IntArray  # (n',)
    columns: IntArray  # (l',)
    note: str  # what was left out, in one sentence; empty if nothing was

    def select(self, values: Any) -> Any:
        """Take from scores or label sets (n, l) those that the truth is about.

        Examples
        --------
        >>> match_truth([[1, 0]], np.array(["i"]), ("x", "y")).select(np.array([[0.9, 0.1]])).tolist()
        [[0.9, 0.1]]
        """
        if isinstance(values, SparseScores):
            return SparseScores(
                values.above[self.rows][:, self.columns], values.default[self.columns]
            )

        return values[self.rows][:, self.columns]

    def restrict(self, rows: BoolArray, columns: BoolArray) -> "MatchedTruth":
        """Restrict it to some of the instances (n,) and labels (l,) that are judged.

        Examples
        --------
        >>> match_truth([[1, 0]], np.array(["i"]), ("x", "y")).restrict(np.array([True]), np.array([False, True])).truth
        array([[False]])
        """
        at = np.flatnonzero(rows[self.rows])
        of = np.flatnonzero(columns[self.columns])
        return MatchedTruth(
            self.truth[at][:, of], self.rows[at], self.columns[of], self.note
        )


def match_truth_table(table: ScoreTable, instances: Any, labels: Any) -> MatchedTruth:
    """Restrict the truth to the instances and labels that are judged.

    Examples
    --------
    >>> table = ScoreTable("truth", [[0, 1], [1, 1]], ["i", "j"], ["x", "y"])
    >>> found = match_truth_table(table, ["j", "k"], ["y", "x", "z"])
    >>> found.truth.tolist(), found.rows.tolist(), found.columns.tolist()
    ([[True, True]], [0], [0, 1])
    >>> found.note
    'judged on 1 of 2 instances and 2 of 3 labels; the truth has 1 more instance'
    """
    known: Any = (
        sparse.csr_array(table.scores)
        if sparse.issparse(table.scores)
        else np.asarray(table.scores)
    )
    if 0 in known.shape:
        raise InputError(
            where=table.model,
            found=f"shape {known.shape}",
            expected="at least one instance and one label",
        )
    if known.dtype.kind not in "biuf":
        raise InputError(
            where=table.model, found=known.dtype, expected="only 0 and 1 in the truth"
        )
    if sparse.issparse(known):
        said = known.data
    else:
        said = known

    strange = said[(said != 0) & (said != 1)]
    if strange.size:
        raise InputError(
            where=table.model,
            found=next(iter(strange), None),
            expected="only 0 and 1 in the truth",
        )

    judged = ScoreTable("judged", None, instances, labels, "what is judged")
    table = with_names(
        [judged, table._replace(scores=known, file=table.file or table.model)]
    )[1]
    table = add_unnamed_labels(table, judged)
    rows, true_rows = _common(instances, table.instances, table.model)
    columns, true_columns = _common(labels, table.labels, table.model)
    n, l = table.scores.shape
    sides = (
        ("instance", len(rows), len(instances), n),
        ("label", len(columns), len(labels), l),
    )
    truth = table.scores[true_rows][:, true_columns].astype(np.bool_)
    return MatchedTruth(
        truth if len(columns) > MAX_DENSE_LABELS else dense(truth),
        rows,
        columns,
        _note(*sides),
    )


def add_unnamed_labels(table: ScoreTable, other: ScoreTable) -> ScoreTable:
    """Give a list the labels of another table that it never names: it says no to them. Other tables stay as they are.

    Examples
    --------
    >>> truth = ScoreTable("truth", [[1, 1]], ["i"], ["x", "y"])
    >>> add_unnamed_labels(ScoreTable("a", sparse.csr_array([[1]]), ["i"], ["x"], named=[1]), truth).scores.toarray()
    array([[1, 0]])
    """
    if table.named is None or other.labels is None:
        return table

    more = np.flatnonzero(positions_of(other.labels, table.labels) < 0)
    if len(more) == len(
        other.labels
    ):  # they have nothing in common, which is said where they are matched
        return table

    labels = [*map(str, table.labels), *(str(other.labels[at]) for at in more)]
    none = sparse.csr_array(
        (table.scores.shape[0], len(more)), dtype=table.scores.dtype
    )
    return table._replace(
        scores=sparse.hstack([table.scores, none], format="csr"), labels=labels
    )


def describe_empty_instances(truth: Any) -> str:
    """Say of how many instances (n, l) no label is relevant (NaN: not known); nothing if of none.

    Examples
    --------
    >>> describe_empty_instances(np.array([[0, 0], [0, 1]]))
    '1 instance without a relevant label: any that is put first there is one error'
    """
    empty = int((truth.sum(axis=1) == 0).sum())
    return (
        f"{plural(empty, 'instance')} without a relevant label: any that is put first there is one error"
        * (empty > 0)
    )


def match_truth(truth: Any, instances: Any, labels: Any) -> MatchedTruth:
    """Match whatever holds the truth: a DataFrame by its names, an array (n, l) by position.

    Examples
    --------
    >>> match_truth([[1, 0]], np.array(["i"]), ("x", "y")).truth.tolist()
    [[True, False]]
    """
    if isinstance(truth, MatchedTruth):
        return truth
    return match_truth_table(
        truth_table(truth, "truth", instances, labels), instances, labels
    )


def _note(*sides: tuple[str, int, int, int]) -> str:
    """Say what was left out on either side: (noun, in common, judged, in the truth)."""
    judged = [f"{common:,} of {judged:,} {noun}s" for noun, common, judged, _ in sides]
    more = [
        plural(known - common, f"more {noun}")
        for noun, common, _, known in sides
        if known > common
    ]
    if any(side[1] < side[2] for side in sides):
        said = [f"judged on {' and '.join(judged)}"]
    else:
        said = []

    return "; ".join(said + ([f"the truth has {' and '.join(more)}"] if more else []))


def _common(given: Any, truth: Any, where: str) -> tuple[IntArray, IntArray]:
    """Find where the names that both sides have stand in each."""
    if given is truth:
        return np.arange(len(given)), np.arange(len(given))

    at = positions_of(given, truth, where)
    none = f"none of the names that are judged (it has {str(truth[0])!r}, …)"
    if not (bool((at >= 0).any())):
        raise InputError(
            where=where, found=none, expected=f"some such as {str(given[0])!r}"
        )

    return np.flatnonzero(at >= 0), at[at >= 0]


def _by_name(truth: Any, scores: Any) -> tuple[Any, Any]:
    """Return both as matrices, the truth in the scores' order: by name where both have some, else by position."""
    true = table_of(truth, "truth", "truth")
    judged = table_of(scores, "scores", "scores")
    truth = as_matrix(true.scores, "truth")
    scores = judged.scores
    if not (isinstance(scores, SparseScores)):
        scores = as_matrix(scores, "scores")

    for axis, what in enumerate(("instances", "labels")):
        own = getattr(judged, what)
        known = getattr(true, what)
        if own is not None and known is not None:
            at = positions_of(own, known, f"{what} of truth and scores")
            same = len(at) == truth.shape[axis] and bool((at >= 0).all())
            if not (same):
                raise InputError(
                    where="scores",
                    found=f"other {what} than the truth has",
                    expected="the same names",
                )

            truth = truth.take(at, axis)

    return truth, scores


def check_partial_truth_and_scores(truth: Any, scores: Any) -> tuple[Any, Any]:
    """Check truth and scores as `check_truth_and_scores` does, but that truth may be NaN, not known; give both as floats."""
    truth, scores = map(dense, _by_name(truth, scores))
    if truth.shape != scores.shape:
        raise InputError(
            where="truth",
            found=f"shape {truth.shape}",
            expected=f"{scores.shape} as the scores have",
        )

    known, scores = check_truth_and_scores(np.nan_to_num(truth), scores)
    return np.where(np.isnan(truth), np.nan, known), scores.astype(np.float64)


def check_truth_and_scores(truth: Any, scores: Any) -> tuple[Any, Any]:
    """Check that truth is binary, scores are finite, and both have one shape; give truth as bool, scores as floats.

    Of sparse scores, which become `SparseScores`, and of those the truth is CSR.
    """
    truth, scores = _by_name(truth, scores)
    if sparse.issparse(scores):
        scores = SparseScores(
            canonical_csr(scores).astype(np.float64), np.zeros(scores.shape[1])
        )

    many = isinstance(scores, SparseScores)
    known = _binary(truth, "truth", many)
    found = cast("Any", scores if many else np.asarray(scores))
    if known.ndim != 2:
        raise InputError(
            where="truth",
            found=f"shape {known.shape}",
            expected="two dimensions: instances, labels",
        )
    if found.shape != known.shape:
        raise InputError(
            where="scores",
            found=f"shape {found.shape}",
            expected=f"{known.shape} as the truth has",
        )
    if 0 in found.shape:
        raise InputError(
            where="scores",
            found=f"shape {found.shape}",
            expected="at least one instance and one label",
        )
    if many:
        values = found.above.data
    else:
        values = found

    if values.dtype.kind not in "biuf":
        raise InputError(
            where="scores", found=f"{values.dtype} values", expected="numbers"
        )

    finite = values.dtype.kind != "f" or bool(
        np.isfinite([values.min(initial=0), values.max(initial=0)]).all()
    )
    if not (finite):
        raise InputError(
            where="scores", found="NaN or infinity", expected="finite numbers"
        )

    as_they_are = many or found.dtype in (np.float32, np.float64)
    return known, found if as_they_are else found.astype(np.float64)


def check_truth_and_label_sets(truth: Any, label_sets: Any) -> tuple[Any, Any]:
    """Check that truth and label sets are binary and have one shape; give both as bool, CSR where label sets are."""
    many = sparse.issparse(label_sets)
    known, found = check_truth_and_scores(truth, label_sets)
    return known, _binary(label_sets if many else found, "label sets", many)


def _binary(given: Any, what: str, many: bool) -> Any:
    """Check that a matrix is one of 0 and 1, and return it as bool, or as CSR of bool."""
    matrix: Any = sparse.csr_array(given) if many else dense(given)
    if many:
        values = matrix.data
    else:
        values = matrix

    binary = values.dtype.kind == "b" or (
        values.dtype.kind in "iuf" and bool(((values == 0) | (values == 1)).all())
    )
    if not (binary):
        raise InputError(
            where=what,
            found="values other than 0 and 1",
            expected="a binary matrix (n, l)",
        )

    matrix = matrix.astype(np.bool_, copy=many)
    if many:
        matrix.eliminate_zeros()
    return matrix
