"""Gold labels: reference labels of some instances, matched to predictions by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import sparse

from ..errors import InputError, nearest
from .alignment import as_names, positions_of
from .array_types import Array, FloatArray, IntArray, Matrix, Names
from .model_scores import AlignedScores, as_matrix
from .score_tables import ScoreTable, check_scores, is_frame, make_table
from .table_alignment import add_names

# The column of `ask` with the probability of an instance to be asked about.
CHANCE = "inclusion probability"
# Inverse probabilities are weights, which must not be larger than this.
_LARGEST_WEIGHT = 1e15


class Gold(NamedTuple):
    """Gold labels of some instances of the predictions."""

    at: IntArray  # (g,) positions of the instances, rising
    # (g, l) 1: yes, 0: no, NaN: unknown; every row has a known label
    answers: FloatArray

    def among(self, positions: IntArray) -> AlignedScores:
        """Return the gold labels of the instances at some positions.

        Parameters
        ----------
        positions : ndarray of shape (n,)
            Position of each instance in the predictions that the gold labels are of.

        Returns
        -------
        AlignedScores
            The gold labels as scores of one more model.
        """
        rows = np.minimum(np.searchsorted(self.at, positions), len(self.at) - 1)
        rows = np.where(self.at[rows] == positions, rows, -1)
        return AlignedScores(matrix=self.answers, rows=rows, has_nan=True)

    def instead_of(self, values: Array) -> Array:
        """Replace scores or label sets (n, l) by gold labels where these are known.

        Examples
        --------
        >>> gold = Gold(np.array([0]), np.array([[0, np.nan]]))
        >>> gold.instead_of(np.array([[0.7, 0.2]]))
        array([[0. , 0.2]])
        """
        row, label = np.nonzero(~np.isnan(self.answers))
        values = values.copy()
        values[self.at[row], label] = self.answers[row, label]
        return values


def extract_gold_labels(part: AlignedScores) -> Gold | None:
    """Return the gold labels of some instances and labels; ``None``: there are none.

    Parameters
    ----------
    part : AlignedScores
        The gold labels, as `Gold.among` returns them.

    Returns
    -------
    Gold or None
    """
    instances = np.flatnonzero(np.asarray(part.rows) >= 0)
    values, is_present = part.take(instances).cells()
    is_known = np.asarray(is_present)
    has_known = is_known.any(axis=1)
    if not has_known.any():
        return None

    answers = np.where(is_known, values, np.nan)
    return Gold(instances[has_known], answers[has_known])


def truth_table(
    truth: object,
    what: str,
    instances: Names | Sequence[object],
    labels: Names | Sequence[object],
) -> ScoreTable:
    """Name the rows and columns of ground truth or gold labels.

    Parameters
    ----------
    truth : ScoreTable, DataFrame or array-like of shape (n, l)
        A frame has its own names. The rows and columns of an array are matched by
        position.
    what : str
        What it is, for error messages.
    instances, labels : sequence
        Names of the predictions.

    Returns
    -------
    ScoreTable

    Examples
    --------
    >>> truth_table([[1, 0]], "gold", ["i"], ["x", "y"]).instances
    ['i']
    """
    if isinstance(truth, ScoreTable):
        return truth
    if is_frame(truth):
        return make_table(truth, what, what)

    matrix = as_matrix(truth, what)
    expected = (len(instances), len(labels))
    if matrix.shape != expected:
        raise InputError(
            where=what, found=f"shape {matrix.shape}", expected=str(expected)
        )

    return ScoreTable(what, matrix, instances, labels, file=what)


def split_chances(table: ScoreTable) -> tuple[ScoreTable, FloatArray | None]:
    """Take the probabilities to be asked about out of a table.

    Parameters
    ----------
    table : ScoreTable
        Gold labels, possibly with the column that `ask` writes.

    Returns
    -------
    table : ScoreTable
        The table without this column.
    chances : ndarray of shape (n,) or None
        Probability of each instance; ``None`` without such a column.

    Examples
    --------
    >>> table = ScoreTable("gold", [[0.1, 1.0]], ["i"], [CHANCE, "x"])
    >>> table, chances = split_chances(table)
    >>> table.labels, table.scores.tolist(), chances.tolist()
    (['x'], [[1.0]], [0.1])
    """
    if table.labels is None:
        return table, None
    names = [str(name) for name in table.labels]
    if CHANCE not in names:
        return table, None

    column = names.index(CHANCE)
    values = _as_float_array(check_scores(table)[0])
    chances = values[:, column]
    if not (chances >= 1 / _LARGEST_WEIGHT).all():
        raise InputError(
            where=f"{table.file or table.model}, column {CHANCE!r}",
            found="0, nothing or less than one in 10¹⁵",
            expected="a number above 0 in every row",
        )

    del names[column]
    scores = np.delete(values, column, axis=1)
    return replace(table, scores=scores, labels=names), chances


def gold_of(
    gold: object, instances: Names | Sequence[object], labels: tuple[str, ...]
) -> Gold:
    """Match gold labels to the instances and labels of predictions, and check them.

    Parameters
    ----------
    gold : ScoreTable, DataFrame or array-like of shape (n, l)
        1, 0 and NaN (unknown).
    instances, labels : sequence
        Names of the predictions.

    Returns
    -------
    Gold

    Examples
    --------
    >>> gold = ScoreTable("gold", [[1.0, np.nan], [0.0, 1.0]], ["k", "i"], ["y", "z"])
    >>> gold_of(gold, ["i", "j", "k"], ("x", "y", "z"))
    Gold(at=array([0, 2]), answers=array([[nan,  0.,  1.],
           [nan,  1., nan]]))
    """
    table, _ = split_chances(truth_table(gold, "gold", instances, labels))
    where = table.file or table.model
    panel = ScoreTable("panel", None, instances, labels, file="the panel")
    table = add_names([panel, replace(table, file=where)])[1]
    values = _as_float_array(check_scores(table)[0])
    rows = _find_names(table.instances, instances, where, "instance")
    columns = _find_names(table.labels, labels, where, "label")
    _check_values(values, where)

    # Instances in the order of the predictions, without those of unknown labels only.
    answers = np.full((len(values), len(labels)), np.nan)
    answers[:, columns] = values
    has_known = np.any(~np.isnan(values), axis=1)
    order = np.argsort(rows)
    order = order[has_known[order]]
    return Gold(rows[order], answers[order])


def _as_float_array(matrix: Matrix) -> FloatArray:
    """Return a matrix as a dense array of float64."""
    if sparse.issparse(matrix):
        matrix = matrix.toarray()
    return np.asarray(matrix, dtype=np.float64)


def _check_values(values: FloatArray, where: str) -> None:
    """Check that gold labels are 1, 0 and NaN, with at least one known and one 0."""
    known_values = values[~np.isnan(values)]
    other_values = known_values[(known_values != 0) & (known_values != 1)]
    if other_values.size:
        raise InputError(
            where=where,
            found=other_values[0],
            expected="only 1 (yes), 0 (no) and empty cells (not known)",
        )
    if known_values.size == 0:
        raise InputError(where=where, found="no answer", expected="some that are known")
    if known_values.all():
        raise InputError(
            where=where,
            found="only yes",
            expected="some no, too: an empty or missing cell is unknown, so write 0 "
            "for labels that are not relevant",
        )


def _find_names(
    names: object, names_of_panel: Names | Sequence[object], where: str, what: str
) -> IntArray:
    """Return the positions of names in the predictions; others are an error."""
    wanted = as_names(names, f"{where}, {what}s")
    positions = positions_of(wanted, names_of_panel)
    unknown = wanted[positions < 0].tolist()
    if not unknown:
        return positions

    first = str(unknown[0])
    more = ""
    if len(unknown) > 1:
        more = f" and {len(unknown) - 1:,} more"
    hint = nearest(first, map(str, names_of_panel[:1000]))
    raise InputError(
        f"{where}: found the {what} {first!r}{more}, which no model has, "
        f"expected some of the panel{hint}"
    )
