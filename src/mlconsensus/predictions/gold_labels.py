"""Gold: answers that are known, of some instances or of some cells, matched to a panel by name."""

from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, nearest
from .alignment import Array, FloatArray, IntArray, as_names, positions_of
from .model_scores import AlignedScores, as_matrix
from .score_tables import ScoreTable, checked, is_frame, table_of, with_names

# a column that `ask` writes: with what probability an instance was asked about
CHANCE = "inclusion probability"


class Gold(NamedTuple):
    """Known answers: about which of the panel's instances, and what they are."""

    at: IntArray  # (g,) positions of the instances, rising
    answers: (
        FloatArray  # (g, l) 1: yes, 0: no, NaN: not known; no row without an answer
    )

    def among(self, positions: IntArray) -> AlignedScores:
        """See the answers through instances that stand at these positions of the panel."""
        rows = np.minimum(np.searchsorted(self.at, positions), len(self.at) - 1)
        rows = np.where(self.at[rows] == positions, rows, -1)
        return AlignedScores(matrix=self.answers, rows=rows, has_nan=True)

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


def extract_gold_labels(part: AlignedScores) -> Gold | None:
    """Collect what is known of some instances and labels; ``None``: nothing."""
    at = np.flatnonzero(np.asarray(part.rows) >= 0)
    values, known = part.take(at).cells()
    some = np.asarray(known).any(axis=1)
    if some.any():
        return Gold(at[some], np.where(np.asarray(known), values, np.nan)[some])
    return None


def truth_table(given: Any, what: str, instances: Any, labels: Any) -> ScoreTable:
    """Name the rows and columns of whatever holds truth: a DataFrame by its own names, an array (n, l) by position.

    Examples
    --------
    >>> truth_table([[1, 0]], "gold", ["i"], ["x", "y"]).instances
    ['i']
    """
    if isinstance(given, ScoreTable):
        return given
    if is_frame(given):
        return table_of(given, what, what)

    known = as_matrix(given, what)
    expected = (len(instances), len(labels))
    if known.shape != expected:
        raise InputError(
            where=what, found=f"shape {known.shape}", expected=str(expected)
        )

    return ScoreTable(what, known, instances, labels, what)


def split_chances(table: ScoreTable) -> tuple[ScoreTable, FloatArray | None]:
    """Take the column with which probability each instance was asked about out of a table, if it has one.

    Examples
    --------
    >>> table, chances = split_chances(ScoreTable("gold", [[0.1, 1.0]], ["i"], [CHANCE, "x"]))
    >>> table.labels, table.scores.tolist(), chances.tolist()
    (['x'], [[1.0]], [0.1])
    """
    if table.labels is None:
        names = []
    else:
        names = [str(name) for name in table.labels]

    if CHANCE not in names:
        return table, None

    matrix = checked(table)[0]
    at = names.index(CHANCE)
    values = np.asarray(
        matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=np.float64
    )
    found = values[:, at]
    where = f"{table.file or table.model}, column {CHANCE!r}"
    seldom = (
        "0, nothing or less than one in 10¹⁵"  # as for weights, which are 1 over it
    )
    if not (bool((found >= 1e-15).all())):
        raise InputError(
            where=where, found=seldom, expected="a number above 0 in every row"
        )

    return table._replace(
        scores=np.delete(values, at, axis=1), labels=[*names[:at], *names[at + 1 :]]
    ), found


def gold_of(given: Any, instances: Any, labels: tuple[str, ...]) -> Gold:
    """Match known answers to a panel's instances and labels, and check that something can be learned from them.

    Examples
    --------
    >>> known = ScoreTable("gold", [[1.0, np.nan], [0.0, 1.0]], ["k", "i"], ["y", "z"])
    >>> gold_of(known, ["i", "j", "k"], ("x", "y", "z"))
    Gold(at=array([0, 2]), answers=array([[nan,  0.,  1.],
           [nan,  1., nan]]))
    """
    table = split_chances(truth_table(given, "gold", instances, labels))[0]
    judged = ScoreTable("panel", None, instances, labels, "the panel")
    table = with_names([judged, table._replace(file=table.file or table.model)])[1]
    where = str(table.file)
    matrix = checked(table)[0]
    answers = np.asarray(
        matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=np.float64
    )
    at = _found(table.instances, instances, where, "instance")
    columns = _found(table.labels, labels, where, "label")
    known = np.asarray(~np.isnan(answers))
    odd = answers[known & (answers != 0) & (answers != 1)]
    if odd.size:
        raise InputError(
            where=where,
            found=next(iter(odd), None),
            expected="only 1 (yes), 0 (no) and empty cells (not known)",
        )
    if not (bool(known.any())):
        raise InputError(where=where, found="no answer", expected="some that are known")

    advice = "some no, too: what is empty or left out is not known, so write 0 where the answer is no"
    if not (bool((answers == 0).any())):
        raise InputError(where=where, found="only yes", expected=advice)

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
