"""Lists of statements "model, instance, label, score", the common form of long tables and tag lists.

A model that lists an instance has judged it on every label that the model lists anywhere: what it leaves out is 0.
Instances and labels that it never lists are missing. A score that is there but empty is missing too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..errors import InputError
from ..panel.alignment import Names
from ..panel.model_tables import ModelTable
from .files import Place

Codes = NDArray[np.int64]

# Above this share of cells that are not 0, a dense matrix is both smaller and faster than a sparse one.
_DENSE = 0.3


class Statements(NamedTuple):
    """Statements as positions in lists of names, in the order of the file."""

    models: Codes  # (s,)
    instances: Codes  # (s,)
    labels: Codes  # (s,) -1: no label, the instance is merely listed
    scores: NDArray[np.float64]  # (s,) NaN: missing
    model_names: list[str]
    instance_names: Names
    label_names: Names


def tables(said: Statements, place: Place) -> list[ModelTable]:
    """Make one table a model.

    Examples
    --------
    >>> text = np.dtypes.StringDType()
    >>> said = Statements(*np.array([[0, 0, 0], [0, 1, 2], [0, 1, -1]]), np.array([1.0, 0.5, 0.0]),
    ...                   ["a"], np.array(["i", "j", "k"], text), np.array(["x", "y"], text))
    >>> tables(said, Place("a.jsonl", "line", int))[0].scores
    array([[1. , 0. ],
           [0. , 0.5],
           [0. , 0. ]])
    """
    return [_table(k, model, said, place) for k, model in enumerate(said.model_names)]


def compact(matrix: Any) -> Any:
    """Return a CSR matrix dense where that is both smaller and faster.

    Examples
    --------
    >>> compact(sparse.csr_array([[0.5, 0.0]]))
    array([[0.5, 0. ]])
    """
    return matrix.toarray() if matrix.nnz > _DENSE * matrix.shape[0] * matrix.shape[1] else matrix


def _table(k: int, model: str, said: Statements, place: Place) -> ModelTable:
    own = np.flatnonzero(said.models == k)
    instances, rows = np.unique(said.instances[own], return_inverse=True)
    of_labels = said.labels[own] >= 0
    labels, columns = np.unique(said.labels[own][of_labels], return_inverse=True)
    if len(labels) == 0:
        raise InputError(f"{place.file}: found no label from model {model!r}, expected at least one")
    kept = own[of_labels]
    cells = sparse.coo_array((said.scores[kept], (rows[of_labels], columns)), shape=(len(instances), len(labels)))
    matrix = cells.tocsr()
    if matrix.nnz < len(kept):  # two statements on one cell were added
        first, second = _twice(cells)
        raise InputError(
            f"{place(int(kept[second]))}: found label {said.label_names[said.labels[kept[second]]]!r} "
            f"of instance {said.instance_names[said.instances[kept[second]]]!r} again "
            f"(first in {place.short(int(kept[first]))}), expected each pair once"
        )
    matrix.eliminate_zeros()
    return ModelTable(model, compact(matrix), said.instance_names[instances], said.label_names[labels])


def _twice(cells: sparse.coo_array) -> tuple[int, int]:
    """Return the positions of the first pair that is there a second time."""
    key = cells.row.astype(np.int64) * cells.shape[1] + cells.col
    order = np.argsort(key, kind="stable")
    again = order[1:][key[order][1:] == key[order][:-1]]
    second = int(again.min())
    return int(np.argmax(key == key[second])), second
