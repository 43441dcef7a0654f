"""Truth matched by name to what it is to judge, and checked."""

from collections.abc import Iterable
from typing import Any, NamedTuple, cast

import numpy as np
from scipy import sparse

from ..arithmetic.many import ManyScores
from ..arithmetic.products import dense
from ..errors import expect
from ..panel import MOST_DENSE, IntArray, ModelTable, Names, canonical_csr, truth_table, with_names


class Matched(NamedTuple):
    """The truth about the instances and labels that both sides have, and where these stand in what is judged."""

    truth: Any  # (n', l') of bool; CSR where labels are many
    rows: IntArray  # (n',)
    columns: IntArray  # (l',)
    note: str  # what was left out, in one sentence; empty if nothing was

    def of(self, values: Any) -> Any:
        """Take from scores or label sets (n, l) those that the truth is about.

        Examples
        --------
        >>> as_matched([[1, 0]], np.array(["i"]), ("x", "y")).of(np.array([[0.9, 0.1]])).tolist()
        [[0.9, 0.1]]
        """
        if isinstance(values, ManyScores):
            return ManyScores(values.above[self.rows][:, self.columns], values.default[self.columns])
        return values[self.rows][:, self.columns]


def match_truth(table: ModelTable, instances: Iterable[Any], labels: Iterable[Any]) -> Matched:
    """Restrict the truth to the instances and labels that are judged.

    Examples
    --------
    >>> table = ModelTable("truth", [[0, 1], [1, 1]], ["i", "j"], ["x", "y"])
    >>> found = match_truth(table, ["j", "k"], ["y", "x", "z"])
    >>> found.truth.tolist(), found.rows.tolist(), found.columns.tolist()
    ([[True, True]], [0], [0, 1])
    >>> found.note
    'judged on 1 of 2 instances and 2 of 3 labels; the truth has 1 more instances'
    """
    known: Any = sparse.csr_array(table.scores) if sparse.issparse(table.scores) else np.asarray(table.scores)
    expect(known.dtype.kind in "biuf", table.model, known.dtype, "only 0 and 1 in the truth")
    said = known.data if sparse.issparse(known) else known
    strange = said[(said != 0) & (said != 1)]
    expect(not strange.size, table.model, next(iter(strange), None), "only 0 and 1 in the truth")
    instances, labels = list(instances), list(labels)
    judged = ModelTable("judged", None, instances, labels, "what is judged")
    table = with_names([judged, table._replace(file=table.file or table.model)])[1]
    rows, true_rows = _common(instances, table.instances, table.model)
    columns, true_columns = _common(labels, table.labels, table.model)
    n, l = known.shape
    if table.named is not None:  # a list, which says no to every label that it never names: an empty column is theirs
        known = sparse.hstack([known, sparse.csr_array((n, 1), dtype=known.dtype)], format="csr")
        every = np.full(len(labels), l)
        every[columns] = true_columns
        l += len(labels) - len(columns)
        columns, true_columns = np.arange(len(labels)), every
    sides = ("instance", len(rows), len(instances), n), ("label", len(columns), len(labels), l)
    truth = known[true_rows][:, true_columns].astype(np.bool_)
    return Matched(truth if len(columns) > MOST_DENSE else dense(truth), rows, columns, _note(*sides))


def as_matched(truth: Any, instances: Names, labels: tuple[str, ...]) -> Matched:
    """Match whatever holds the truth: a DataFrame by its names, an array (n, l) by position.

    Examples
    --------
    >>> as_matched([[1, 0]], np.array(["i"]), ("x", "y")).truth.tolist()
    [[True, False]]
    """
    if isinstance(truth, Matched):
        return truth
    return match_truth(truth_table(truth, "truth", instances, labels), instances.tolist(), labels)


def _note(*sides: tuple[str, int, int, int]) -> str:
    """Say what was left out on either side: (noun, in common, judged, in the truth)."""
    judged = [f"{common:,} of {judged:,} {noun}s" for noun, common, judged, _ in sides]
    more = [f"{known - common:,} more {noun}s" for noun, common, _, known in sides if known > common]
    said = [f"judged on {' and '.join(judged)}"] if any(side[1] < side[2] for side in sides) else []
    return "; ".join(said + ([f"the truth has {' and '.join(more)}"] if more else []))


def _common(given: list[Any], truth: Any, where: str) -> tuple[IntArray, IntArray]:
    """Find where the names that both sides have stand in each."""
    judged, known = [str(name) for name in given], [str(name) for name in truth]
    lookup = {name: at for at, name in enumerate(known)}
    pairs = [(at, lookup[name]) for at, name in enumerate(judged) if name in lookup]
    none = f"none of the names that are judged (it has {known[0]!r}, …)"
    expect(bool(pairs), where, none, f"some such as {judged[0]!r}")
    both = np.array(pairs, dtype=np.int64)
    return both[:, 0], both[:, 1]


def truth_and_scores(truth: Any, scores: Any) -> tuple[Any, Any]:
    """Check that truth is binary, scores are finite, and both have one shape; give truth as bool, scores as floats.

    Of sparse scores, which become `ManyScores`, and of those the truth is CSR.
    """
    if hasattr(truth, "iloc") and hasattr(scores, "iloc"):
        for axis in ("index", "columns"):
            true, judged = getattr(truth, axis), getattr(scores, axis)
            same = true.is_unique and len(true) == len(judged) and set(true) == set(judged)
            expect(same, "scores", f"another {axis} than that of the truth", "the same names, each once")
        truth = truth.loc[scores.index, scores.columns]
    if sparse.issparse(scores):
        scores = ManyScores(canonical_csr(scores).astype(np.float64), np.zeros(scores.shape[1]))
    many = isinstance(scores, ManyScores)
    known, found = _binary(truth, "truth", many), cast("Any", scores if many else np.asarray(scores))
    fits = found.shape == known.shape and known.ndim == 2
    expect(fits, "scores", f"shape {found.shape}", f"{known.shape} as the truth has")
    expect(0 not in found.shape, "scores", f"shape {found.shape}", "at least one instance and one label")
    values = found.above.data if many else found
    expect(values.dtype.kind in "biuf", "scores", f"{values.dtype} values", "numbers")
    finite = values.dtype.kind != "f" or bool(np.isfinite([values.min(initial=0), values.max(initial=0)]).all())
    expect(finite, "scores", "NaN or infinity", "finite numbers")
    as_they_are = many or found.dtype in (np.float32, np.float64)
    return known, found if as_they_are else found.astype(np.float64)


def truth_and_sets(truth: Any, label_sets: Any) -> tuple[Any, Any]:
    """Check that truth and label sets are binary and have one shape; give both as bool, CSR where label sets are."""
    many = sparse.issparse(label_sets)
    known = truth_and_scores(truth, label_sets)[0]
    return known, _binary(label_sets, "label sets", many)


def _binary(given: Any, what: str, many: bool) -> Any:
    """Check that a matrix is one of 0 and 1, and return it as bool, or as CSR of bool."""
    matrix: Any = sparse.csr_array(given) if many else dense(given)
    values = matrix.data if many else matrix
    binary = values.dtype.kind == "b" or (values.dtype.kind in "iuf" and bool(((values == 0) | (values == 1)).all()))
    expect(binary, what, "values other than 0 and 1", "a binary matrix (n, l)")
    matrix = matrix.astype(np.bool_, copy=many)
    if many:
        matrix.eliminate_zeros()
    return matrix
