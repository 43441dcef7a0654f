r"""The map :math:`F = K (I + K)^{-1}` of a large sparse Gram matrix `K`, with a bound on its error.

The labels with the largest sums of `K`, the head `H`, are worked out exactly; of the others, the tail `T`, `K` is
small, since each is rare. With :math:`B = K_{TH}`, :math:`E = K_{TT}`, `D` the diagonal of :math:`I + E`, and
:math:`X = (I + E)^{-1} B \approx D^{-1} B`, the Schur complement :math:`S = I + K_{HH} - B^\top X` gives

.. math:: F_{HH} = I - S^{-1}, \quad F_{TH} = X S^{-1}, \quad
    F_{TT} \approx I - D^{-1} + D^{-1} (E - \operatorname{diag} E) D^{-1} - X S^{-1} X^\top .

What is left out is of the order of :math:`\|E\|^2`. A row is multiplied by it where it can matter: all labels of the
head get their scores, those of the tail that the row has, and others as far as labels of the tail bring them up.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse

from ..errors import InputError
from .many import KEPT, ManyScores, best, in_pieces
from .products import FloatArray

_HEAD = 1024  # labels that are worked out exactly
_NEAR = 4096  # labels of the tail that hear of each other by way of the head
_LEAST = 1e-5  # smaller entries between labels of the tail are not stored
_TAIL = 0.5  # sums of the tail's part of K beyond which the series does not converge quickly


class Headed(NamedTuple):
    """The map, and by how much an entry of it can be wrong."""

    head: Any  # (h,) positions of the labels of the head, the most frequent first
    columns: FloatArray  # (l, h) what each label adds to those of the head
    tail: Any  # CSR (l, l) what labels of the tail add to each other
    bound: float

    def applied(self, cells: Any) -> ManyScores:
        """Multiply the rows of a CSR matrix (n, l) by the map."""
        default = np.zeros(cells.shape[1])
        parts = [self._applied(cells[rows], default) for rows in in_pieces(len(self.head) * np.diff(cells.indptr))]
        return ManyScores(sparse.vstack(parts, format="csr"), default)

    def column(self, label: int) -> FloatArray:
        """Return what each label adds to one (l,)."""
        place = np.flatnonzero(self.head == label)
        if len(place):
            return np.asarray(self.columns[:, place[0]])
        out = self.tail[:, [label]].toarray()[:, 0]
        out[self.head] = self.columns[label]
        return np.asarray(out)

    def _applied(self, cells: Any, default: FloatArray) -> Any:
        n, l = cells.shape
        shown = cells @ self.columns
        place = np.full(l, -1)
        place[self.head] = np.arange(len(self.head))
        # What named labels of the head add to named labels of the tail, pair by pair.
        at, rows = place[cells.indices], np.repeat(np.arange(n), np.diff(cells.indptr))
        first = np.concatenate([[0], np.cumsum(np.bincount(rows[at >= 0], minlength=n))])
        heads, amounts = at[at >= 0], cells.data[at >= 0]
        row, label = rows[at < 0], cells.indices[at < 0]
        times = np.diff(first)[row]
        pair = np.repeat(first[row] - (np.cumsum(times) - times), times) + np.arange(times.sum())
        brought = amounts[pair] * self.columns[np.repeat(label, times), heads[pair]]
        added = np.bincount(np.repeat(np.arange(len(row)), times), brought, len(row))
        named = sparse.csr_array((added, (row, label)), shape=(n, l))
        last = max(0, shown.shape[1] - KEPT)
        lowest = np.partition(shown, last, axis=1)[:, last, None]
        i, h = np.nonzero((shown >= lowest) & (shown != 0))
        popular = sparse.csr_array((shown[i, h], (i, self.head[h])), shape=(n, l))
        return best(cells @ self.tail + named + popular, default)


def shrunk(K: Any, head: int = _HEAD) -> Headed:
    """Work out K (I + K)⁻¹ for a CSR matrix K without negative entries or eigenvalues.

    Examples
    --------
    >>> K = sparse.csr_array([[1.0, 0.1, 0.0], [0.1, 0.05, 0.0], [0.0, 0.0, 0.02]])
    >>> exact = K.toarray() @ np.linalg.inv(np.eye(3) + K.toarray())
    >>> found = shrunk(K, head=1)
    >>> bool(abs(found.column(1) - exact[:, 1]).max() <= found.bound < 0.02)
    True
    """
    l = K.shape[0]
    order = np.argsort(-np.asarray(K.sum(axis=1)).ravel(), kind="stable")
    H, T = order[:head], np.sort(order[head:])
    rows = K[T]
    B, E = rows[:, H], rows[:, T]
    rho = float(np.asarray(E.sum(axis=1)).max(initial=0))
    if rho > _TAIL:
        raise InputError(
            f"MLCM-a: found {len(T):,} labels beside the {head:,} most frequent that go together too often "
            f"({rho:.2g}), expected at most {_TAIL:g}; --method filter takes such panels"
        )
    own = 1 / (1 + E.diagonal())  # D⁻¹
    X = own[:, None] * B.toarray()
    columns = np.empty((l, len(H)))
    factor = linalg.cho_factor(np.eye(len(H)) + K[H][:, H].toarray() - B.T @ X, check_finite=False)  # S
    columns[H] = np.eye(len(H)) - linalg.cho_solve(factor, np.eye(len(H)))
    columns[T] = linalg.cho_solve(factor, X.T, check_finite=False).T
    size = np.sqrt((X**2).sum(axis=1))
    near = np.argsort(-size, kind="stable")[:_NEAR]
    near = near[size[near] * size.max(initial=0) > _LEAST]
    beyond = float(np.delete(size, near).max(initial=0)) * float(size.max(initial=0))
    E.setdiag(0)
    scale = sparse.diags_array(own)
    by_head = columns[T[near]] @ X[near].T
    i, j = np.nonzero(np.abs(by_head) >= _LEAST)
    among = scale @ E @ scale + sparse.diags_array(1 - own)
    among = (among - sparse.csr_array((by_head[i, j], (near[i], near[j])), shape=among.shape)).tocoo()
    kept = np.abs(among.data) >= _LEAST
    tail = sparse.csr_array((among.data[kept], (T[among.row[kept]], T[among.col[kept]])), shape=(l, l))
    # What is left of (I + E)⁻¹ is at most ρ² where it stands alone, and less where it is multiplied.
    bound = _LEAST + beyond + rho**2 / (1 - rho) + 2 * rho * float(np.abs(columns[T]).max(initial=0))
    return Headed(H, columns, tail, bound)
