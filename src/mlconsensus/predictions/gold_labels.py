"""Gold: answers that are known, of some instances or of some cells, matched to a panel by name."""

from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, expect, nearest
from .alignment import Array, FloatArray, IntArray, as_names, positions_of
from .model_scores import ModelScores, as_matrix
from .score_tables import ModelTable, checked, is_frame, table_of, with_names

CHANCE = "inclusion probability"  # a column that `ask` writes: with what probability an instance was asked about


class Gold(NamedTuple):
    """Known answers: about which of the panel's instances, and what they are."""

    at: IntArray  # (g,) positions of the instances, rising
    answers: (
        FloatArray  # (g, l) 1: yes, 0: no, NaN: not known; no row without an answer
    )

    def among(self, positions: IntArray) -> ModelScores:
        """See the answers through instances that stand at these positions of the panel."""
        rows = np.minimum(np.searchsorted(self.at, positions), len(self.at) - 1)
        return ModelScores(
            self.answers, np.where(self.at[rows] == positions, rows, -1), None, True
        )

    def instead_of(self, values: Array) -> Array:
        """Put the answers in place of scores or label sets (n, l).

        Examples
        --------
        >>> Gold(np.array([0]), np.array([[0, np.nan]])).instead_of(np.array([[0.7, 0.2]]))
        array([[0. , 0.2]])
        """
        row, label = np.nonzero(~np.isnan(self.answers))
        values = values.copy()
        values[self.at[row], label] = self.answers[row, label]
        return values


def known_answers(part: ModelScores) -> Gold | None:
    """Collect what is known of some instances and labels; ``None``: nothing."""
    at = np.flatnonzero(np.asarray(part.rows) >= 0)
    values, known = part.take(at).cells()
    some = np.asarray(known).any(axis=1)
    return (
        Gold(at[some], np.where(np.asarray(known), values, np.nan)[some])
        if some.any()
        else None
    )


def truth_table(given: Any, what: str, instances: Any, labels: Any) -> ModelTable:
    """Name the rows and columns of whatever holds truth: a DataFrame by its own names, an array (n, l) by position.

    Examples
    --------
    >>> truth_table([[1, 0]], "gold", ["i"], ["x", "y"]).instances
    ['i']
    """
    if isinstance(given, ModelTable):
        return given
    if is_frame(given):
        return table_of(given, what, what)
    known, expected = as_matrix(given, what), (len(instances), len(labels))
    expect(known.shape == expected, what, f"shape {known.shape}", str(expected))
    return ModelTable(what, known, instances, labels, what)


def split_chances(table: ModelTable) -> tuple[ModelTable, FloatArray | None]:
    """Take the column with which probability each instance was asked about out of a table, if it has one.

    Examples
    --------
    >>> table, chances = split_chances(ModelTable("gold", [[0.1, 1.0]], ["i"], [CHANCE, "x"]))
    >>> table.labels, table.scores.tolist(), chances.tolist()
    (['x'], [[1.0]], [0.1])
    """
    names = [] if table.labels is None else [str(name) for name in table.labels]
    if CHANCE not in names:
        return table, None
    matrix, at = checked(table)[0], names.index(CHANCE)
    values = np.asarray(
        matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=np.float64
    )
    found, where = values[:, at], f"{table.file or table.model}, column {CHANCE!r}"
    seldom = (
        "0, nothing or less than one in 10¹⁵"  # as for weights, which are 1 over it
    )
    expect(bool((found >= 1e-15).all()), where, seldom, "a number above 0 in every row")
    return table._replace(
        scores=np.delete(values, at, axis=1), labels=[*names[:at], *names[at + 1 :]]
    ), found


def gold_of(given: Any, instances: Any, labels: tuple[str, ...]) -> Gold:
    """Match known answers to a panel's instances and labels, and check that something can be learned from them.

    Examples
    --------
    >>> known = ModelTable("gold", [[1.0, np.nan], [0.0, 1.0]], ["k", "i"], ["y", "z"])
    >>> gold_of(known, ["i", "j", "k"], ("x", "y", "z"))
    Gold(at=array([0, 2]), answers=array([[nan,  0.,  1.],
           [nan,  1., nan]]))
    """
    table = split_chances(truth_table(given, "gold", instances, labels))[0]
    judged = ModelTable("panel", None, instances, labels, "the panel")
    table = with_names([judged, table._replace(file=table.file or table.model)])[1]
    where, matrix = str(table.file), checked(table)[0]
    answers = np.asarray(
        matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=np.float64
    )
    at, columns = (
        _found(table.instances, instances, where, "instance"),
        _found(table.labels, labels, where, "label"),
    )
    known = np.asarray(~np.isnan(answers))
    odd = answers[known & (answers != 0) & (answers != 1)]
    expect(
        not odd.size,
        where,
        next(iter(odd), None),
        "only 1 (yes), 0 (no) and empty cells (not known)",
    )
    expect(bool(known.any()), where, "no answer", "some that are known")
    advice = "some no, too: what is empty or left out is not known, so write 0 where the answer is no"
    expect(bool((answers == 0).any()), where, "only yes", advice)
    whole = np.full((len(answers), len(labels)), np.nan)
    whole[:, columns] = answers
    order = np.argsort(at)
    order = order[np.asarray(known.any(axis=1))[order]]
    return Gold(at[order], whole[order])


def _found(given: Any, names: Any, where: str, what: str) -> IntArray:
    """Find where the names of known answers stand in the panel; refuse others."""
    own = as_names(given, f"{where}, {what}s")
    at = positions_of(own, names)
    strange = [str(own[k]) for k in np.flatnonzero(at < 0).tolist()]
    if strange:
        found = f"{strange[0]!r}" + f" and {len(strange) - 1:,} more" * (
            len(strange) > 1
        )
        hint = nearest(strange[0], map(str, names[:1000]))
        raise InputError(
            f"{where}: found the {what} {found}, which no model has, expected some of the panel{hint}"
        )
    return at
