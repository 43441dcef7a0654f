"""Patterns of votes: which of a cell's models said yes, as one small number.

Where all models decide and few enough of them do, a label knows only ``2**m`` kinds of
cells. What a method makes of a cell that depends on its own label's votes alone is then
worked out once for each kind, counted and looked up.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from ..predictions import Matrix, Predictions
from .block_sums import FloatArray, cheaper, connections, folded

_MOST_MODELS = 12


def codes(block: Predictions) -> Matrix | None:
    """Give the pattern of votes of each cell a number (n, l), in which bit k is set where model k said yes.

    CSR where nearly nobody says yes. ``None`` where models were silent, gave scores, or
    are too many for so few instances.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> codes(mlc.Predictions([[[1, 0]] * 16, [[1, 1]] * 16]))[0]
    array([3, 2], dtype=uint8)
    """
    m, n, _ = block.shape
    if m > _MOST_MODELS or 4 * 2**m > n or not block.complete:
        return None

    found: Any = 0
    for values, _ in reversed(list(block.cells())):
        if sparse.issparse(values):
            said = values.data
        else:
            said = values

        if said.dtype != np.bool_ and not ((said == 0) | (said == 1)).all():
            return None

        found = found + found + values.astype(np.uint8 if m <= 8 else np.uint16)

    return cheaper(found)


def answers(block: Predictions, dtype: Any = np.float64) -> Matrix:
    """Return patterns of votes (n, l), or what `connections` gives (n, m·l) where there are none.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> answers(mlc.Predictions([[[0.5, 0]], [[1, 1]]])).tolist()
    [[0.5, 0.0, 1.0, 1.0]]
    """
    if block.has_scores or block.weights is not None:
        found = None
    else:
        found = codes(block)

    if found is None:
        return connections(block, dtype)
    return found


def pooled(A: Matrix, weights: FloatArray) -> Matrix:
    """Add up the models' `answers` about each cell with the models' weights (m, l): Σ_k w_kℓ a_ikℓ (n, l).

    Examples
    --------
    >>> pooled(np.array([[3, 2]], dtype=np.uint8), np.array([[2.0, 2.0], [4.0, 4.0]])).tolist()
    [[6.0, 4.0]]
    """
    if A.dtype.kind != "u":
        return folded(A, weights)
    return looked_up(A, (bits(len(weights)).astype(weights.dtype) @ weights).T)


def by_model(A: Matrix, m: int) -> Iterator[Matrix]:
    """Walk the models' `answers`, (n, l) each.

    Examples
    --------
    >>> [own.tolist() for own in by_model(np.array([[3, 2]], dtype=np.uint8), 2)]
    [[[1.0, 0.0]], [[1.0, 1.0]]]
    """
    l = A.shape[1] // m
    if sparse.issparse(A):
        columns = A.tocsc()
    else:
        columns = A

    for k in range(m):
        if A.dtype.kind != "u":
            yield columns[:, k * l : (k + 1) * l]
        elif sparse.issparse(A):
            at = np.flatnonzero((columns.data >> k & 1) != 0)
            own = (
                np.ones(len(at)),
                columns.indices[at],
                np.searchsorted(at, columns.indptr).astype(np.int32),
            )
            yield sparse.csc_array(own, shape=A.shape)
        else:
            yield (A >> k & 1).astype(np.float64)


def counts(found: Matrix, kinds: int) -> FloatArray:
    """Count how often each pattern, or other whole number below `kinds`, occurs for each label (l, kinds).

    Examples
    --------
    >>> counts(np.array([[1, 0], [1, 1]], dtype=np.uint16), 2)
    array([[0., 2.],
           [1., 1.]])
    """
    n, l = found.shape
    if sparse.issparse(found):
        cells = np.bincount(
            found.indices.astype(np.int64) * kinds + found.data, minlength=l * kinds
        ).reshape(l, kinds)
        cells[:, 0] = n - cells[:, 1:].sum(axis=1)
        return cells.astype(np.float64)

    # Label by label, counts stay where they are quick to reach: three times as fast as
    # all at once.
    return np.array(
        [np.bincount(own, minlength=kinds) for own in np.ascontiguousarray(found.T)],
        dtype=np.float64,
    )


def bits(m: int) -> FloatArray:
    """Tell as 1 or 0 who said yes in each pattern (2**m, m).

    Examples
    --------
    >>> bits(2).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    """
    return ((np.arange(2**m)[:, None] >> np.arange(m)) & 1).astype(np.float64)


def looked_up(found: Matrix, table: FloatArray) -> Matrix:
    """Give each cell what the table (l, 2**m) has for its label and pattern; without any vote it must have 0.

    Examples
    --------
    >>> looked_up(np.array([[1, 0]], dtype=np.uint16), np.array([[0.0, 0.2], [0.0, 0.4]]))
    array([[0.2, 0. ]])
    """
    pattern, label = (
        (found.data, found.indices)
        if sparse.issparse(found)
        else (found, np.arange(len(table)))
    )
    values = table.ravel()[label.astype(np.int64) * table.shape[1] + pattern]
    if sparse.issparse(found):
        return sparse.csr_array((values, found.indices, found.indptr), found.shape)
    return values
