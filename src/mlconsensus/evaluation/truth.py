"""Matching a truth file to what it is to judge, by name."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.products import dense
from ..errors import expect
from ..panel.alignment import IntArray, Names
from ..panel.gold import truth_table
from ..panel.model_tables import ModelTable, with_names


class Matched(NamedTuple):
    """The truth about the instances and labels that both sides have, and where these stand in what is judged."""

    truth: NDArray[np.bool_]  # (n', l')
    rows: IntArray  # (n',)
    columns: IntArray  # (l',)
    note: str  # what was left out, in one sentence; empty if nothing was


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
    known = np.asarray(dense(table.scores))
    expect(known.dtype.kind in "biuf", table.model, known.dtype, "only 0 and 1 in the truth")
    strange = known[(known != 0) & (known != 1)]
    expect(not strange.size, table.model, next(iter(strange), None), "only 0 and 1 in the truth")
    instances, labels = list(instances), list(labels)
    judged = ModelTable("judged", None, instances, labels, "what is judged")
    table = with_names([judged, table._replace(file=table.file or table.model)])[1]
    rows, true_rows = _common(instances, table.instances, table.model)
    columns, true_columns = _common(labels, table.labels, table.model)
    left_out = _note(
        ("instance", len(rows), len(instances), len(known)), ("label", len(columns), len(labels), known.shape[1])
    )
    return Matched(known[np.ix_(true_rows, true_columns)].astype(np.bool_), rows, columns, left_out)


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
