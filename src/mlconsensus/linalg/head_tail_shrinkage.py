r"""Shrinkage :math:`K (I + K)^{-1}` of many labels, to first order for rare labels.

The symmetric matrix `K` has no negative eigenvalues. It is divided into frequent labels
(the head `H`) and others (the tail `T`). With :math:`B = K_{TH}`, :math:`E = K_{TT}`,
`D` the diagonal of :math:`I + E`, and :math:`X = (I + E)^{-1} B \approx D^{-1} B`, the
Schur complement is

.. math:: S = I + K_{HH} - B^\top X,

and the blocks of :math:`F = K (I + K)^{-1}` are

.. math::

    F_{HH} &= I - S^{-1}, \qquad F_{TH} = X S^{-1}, \\
    F_{TT} &\approx I - D^{-1} + D^{-1} (E - \operatorname{diag} E) D^{-1}
              - X S^{-1} X^\top .

The error is of the order of :math:`\|E - \operatorname{diag} E\|^2`. Without a tail,
the result is exact.

==============================  ======================  ==============================
symbol                          variable                shape
==============================  ======================  ==============================
:math:`K_{HH}`                  ``head``                (h, h)
:math:`B^\top`                  ``cross``               (h, t)
:math:`E`                       ``tail``                (t, t), in pieces of rows
:math:`D^{-1}`                  ``inverse_diagonal``    (t,)
:math:`X`                       ``spread``              (t, h), some rows at a time
:math:`S^{-1}`                  ``inverse``             (h, h)
:math:`F_{HH}, F_{TH}`          ``columns``             (h + t, h)
:math:`F_{TT}`                  ``tail`` of the map     (t, t), the strongest entries
:math:`\rho`                    ``row_sum``             number
==============================  ======================  ==============================
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import DTypeLike
from scipy import linalg, sparse

from ..errors import InputError
from ..execution.threads import check_interrupted, map_on_threads
from ..predictions import Array, FloatArray, IntArray
from .head_tail_map import HeadTailMap, order_by_frequency
from .matrix_types import CSRArray, Entries, RowSlice
from .sparse_scores import in_pieces, kth_best

# Labels of the tail that one of them adds to directly, and by way of the head.
MAX_NEIGHBORS = 50
# Smaller entries between labels of the tail are not stored.
SMALLEST_ENTRY = 1e-5
# Labels of the tail that add to each other by way of the head.
_MAX_NEAR = 4096
# Error by rounding.
_ROUNDING_ERROR = 1e-9
# Entries of the head's rows that are computed at a time.
_PIECE_SIZE = 2**22


def choose_dtype(n_head: int, n_labels: int) -> DTypeLike:
    """Return the data type of a map.

    With a tail, rounding to float32 matters less than the first order does.

    Examples
    --------
    >>> np.dtype(choose_dtype(2, 2)).name, np.dtype(choose_dtype(2, 3)).name
    ('float64', 'float32')
    """
    if n_labels > n_head:
        return np.float32
    return np.float64


def iterate_head_products(
    rows: CSRArray, order: IntArray, n_head: int
) -> Iterator[tuple[RowSlice, FloatArray]]:
    """Yield rows of the Gram matrix that belong to the head, some at a time.

    Parameters
    ----------
    rows : csr_array of shape (n, l)
        The rows whose Gram matrix is computed.
    order : ndarray of shape (c,)
        Positions of the labels; the first are the head.
    n_head : int
        Number of labels in the head.

    Yields
    ------
    labels : slice
        Labels of the head.
    products : ndarray of shape (k, c)
        Their sums of products with all labels.

    Examples
    --------
    >>> rows = sparse.csr_array([[1.0, 2.0, 0.0]])
    >>> list(iterate_head_products(rows, np.array([1, 0]), 1))
    [(slice(0, 1, None), array([[4., 2.]]))]
    """
    ordered = rows[:, order]
    transposed = ordered[:, :n_head].T.tocsr()
    size = max(1, _PIECE_SIZE // len(order))

    def multiply(start: int) -> tuple[RowSlice, FloatArray]:
        labels = slice(start, min(n_head, start + size))
        products = (transposed[labels] @ ordered).toarray()
        return labels, check_interrupted(products)

    return map_on_threads(multiply, range(0, n_head, size))


def iterate_tail_products(
    order: IntArray, n_head: int, *matrices: CSRArray
) -> Iterator[tuple[RowSlice, tuple[CSRArray, ...]]]:
    """Yield rows of Gram matrices between labels of the tail, some at a time.

    Parameters
    ----------
    order : ndarray of shape (c,)
        Positions of the labels; the first are the head.
    n_head : int
        Number of labels in the head.
    *matrices : csr_array of shape (n, l)
        Rows, with one Gram matrix each.

    Yields
    ------
    labels : slice
        Labels of the tail.
    products : tuple of csr_array of shape (k, c - n_head)
        Their sums of products with labels of the tail, one array per matrix.

    Examples
    --------
    >>> rows = sparse.csr_array([[3.0, 2.0]])
    >>> for labels, (products,) in iterate_tail_products(np.array([1, 0]), 1, rows):
    ...     print(labels, products.toarray())
    slice(0, 1, None) [[9.]]
    """
    tails = [rows[:, order[n_head:]] for rows in matrices]
    transposed = [tail.T.tocsr() for tail in tails]

    # A label costs the entries of all rows that have it.
    n_entries = np.diff(tails[0].indptr)
    cost = np.bincount(
        tails[0].indices, np.repeat(n_entries, n_entries), len(order) - n_head
    )

    def multiply(labels: RowSlice) -> tuple[RowSlice, tuple[CSRArray, ...]]:
        products = []
        for across, tail in zip(transposed, tails, strict=True):
            products.append(check_interrupted((across[labels] @ tail).tocsr()))
        return labels, tuple(products)

    return map_on_threads(multiply, in_pieces(cost))


@dataclass(frozen=True, kw_only=True)
class _Blocks:
    """The blocks of K of the head, and the diagonal of the tail."""

    head: Array  # (h, h) K_HH
    cross: Array  # (h, t) Bᵀ
    inverse_diagonal: FloatArray  # (t,) D⁻¹
    dtype: DTypeLike  # of the map
    damping: float = 1.0  # factor of X, below 1 only if the first order is too large

    def make_pieces(self) -> list[RowSlice]:
        """Return slices of the tail, each of which takes about the same time."""
        n_head, n_tail = self.cross.shape
        return in_pieces(np.full(n_tail, n_head))

    def compute_spread(self, rows: RowSlice | IntArray) -> Array:
        """Return rows of X ≈ D⁻¹ B, shape (k, h)."""
        weights = self.damping * self.inverse_diagonal[rows, np.newaxis]
        return (weights * self.cross.T[rows]).astype(self.dtype)


def shrink_head_and_tail(
    labels: IntArray,
    head: FloatArray,
    diagonal: FloatArray,
    tail: Iterable[tuple[RowSlice, CSRArray]],
) -> HeadTailMap:
    """Return K (I + K)^-1 for a matrix K of c labels, the first h of them the head.

    Parameters
    ----------
    labels : ndarray of shape (c,)
        Positions of the labels.
    head : ndarray of shape (h, c)
        Rows of K of the head.
    diagonal : ndarray of shape (c - h,)
        Diagonal of E, the part of K between labels of the tail.
    tail : iterable of (slice, csr_array)
        Which rows of E a piece holds, and these rows.

    Returns
    -------
    HeadTailMap

    Examples
    --------
    >>> K = sparse.csr_array([[1.0, 0.1, 0.0], [0.1, 0.05, 0.0], [0.0, 0.0, 0.02]])
    >>> exact = K.toarray() @ np.linalg.inv(np.eye(3) + K.toarray())
    >>> tail = [(slice(0, 2), K[1:, 1:])]
    >>> head = K[:1].toarray()
    >>> label_map = shrink_head_and_tail(np.arange(3), head, K.diagonal()[1:], tail)
    >>> error = abs(label_map.compute_column(1, 3) - exact[:, 1]).max()
    >>> bool(error <= label_map.bound < 0.02)
    True
    """
    n_head, n_labels = head.shape
    blocks = _Blocks(
        head=head[:, :n_head],
        cross=head[:, n_head:],
        inverse_diagonal=1 / (1 + diagonal),
        dtype=choose_dtype(n_head, n_labels),
    )

    # F_HH and F_TH
    inverse, blocks = _invert_schur_complement(blocks)
    columns, spread_norms = _compute_columns(blocks, inverse)

    # F_TT
    through_head = _compute_tail_through_head(blocks, columns[n_head:], spread_norms)
    direct = _compute_direct_tail(blocks.inverse_diagonal, tail)
    entries = [through_head.entries, *direct.entries]
    values, row, column = map(np.concatenate, zip(*entries, strict=True))
    tail_map = sparse.csr_array(
        (values.astype(blocks.dtype), (n_head + row, n_head + column)),
        shape=(n_labels, n_labels),
    )

    bound = _ROUNDING_ERROR
    if n_labels > n_head:
        left_out = through_head.largest_left_out + direct.largest_left_out
        higher_orders = _bound_higher_orders(direct.row_sum)
        in_columns = 2 * direct.row_sum * float(np.abs(columns[n_head:]).max())
        bound = left_out + higher_orders + in_columns
    return HeadTailMap(labels=labels, columns=columns, tail=tail_map, bound=bound)


def _invert_schur_complement(blocks: _Blocks) -> tuple[FloatArray, _Blocks]:
    """Return S⁻¹, and the blocks with the damping for which S is positive definite.

    If the first order of the tail is too large, S is not positive definite, and X is
    halved until it is.
    """
    n_head = len(blocks.head)
    identity = np.eye(n_head)

    # BᵀX
    explained = np.zeros((n_head, n_head))
    for rows in blocks.make_pieces():
        part = blocks.cross[:, rows] @ blocks.compute_spread(rows)
        explained = explained + check_interrupted(part)

    while True:
        schur_complement = identity + blocks.head - blocks.damping * explained
        try:
            factor = linalg.cho_factor(schur_complement, check_finite=False)
        except linalg.LinAlgError:
            blocks = replace(blocks, damping=blocks.damping / 2)
        else:
            return linalg.cho_solve(factor, identity, check_finite=False), blocks


def _compute_columns(blocks: _Blocks, inverse: FloatArray) -> tuple[Array, FloatArray]:
    """Return F_HH above F_TH, shape (c, h), and the norms of the rows of X, (t,)."""
    n_head, n_tail = blocks.cross.shape
    columns = np.empty((n_head + n_tail, n_head), dtype=blocks.dtype)
    columns[:n_head] = np.eye(n_head) - inverse

    inverse = inverse.astype(blocks.dtype)
    norms = np.empty(n_tail)
    for rows in blocks.make_pieces():
        spread = blocks.compute_spread(rows)
        columns[n_head:][rows] = check_interrupted(spread @ inverse)
        norms[rows] = np.sqrt((spread**2).sum(axis=1))
    return columns, norms


@dataclass(frozen=True, kw_only=True)
class _ThroughHead:
    """The part -X S⁻¹ Xᵀ of F_TT: its strongest entries."""

    entries: Entries
    largest_left_out: float  # bound of the entries that are not stored


def _compute_tail_through_head(
    blocks: _Blocks, tail_columns: Array, spread_norms: FloatArray
) -> _ThroughHead:
    """Return -X S⁻¹ Xᵀ at the labels with the largest rows of X.

    `tail_columns` is F_TH (t, h).
    """
    # No entry is larger than the product of the norms of two rows of X.
    largest = spread_norms.max(initial=0)
    near = np.argsort(-spread_norms, kind="stable")[:_MAX_NEAR]
    near = near[spread_norms[near] * largest > SMALLEST_ENTRY]
    largest_far = float(np.delete(spread_norms, near).max(initial=0)) * float(largest)

    products = tail_columns[near] @ blocks.compute_spread(near).T
    n_near = len(near)
    strength = np.abs(products)
    starts = np.arange(n_near + 1) * n_near
    strongest = kth_best(starts, strength.ravel(), MAX_NEIGHBORS)
    smallest = np.maximum(strongest, SMALLEST_ENTRY)
    strength[strength < smallest[:, np.newaxis]] = 0

    left_out = np.abs(products) - strength
    row, column = np.nonzero(strength)
    return _ThroughHead(
        entries=(-products[row, column], near[row], near[column]),
        largest_left_out=float(left_out.max(initial=SMALLEST_ENTRY)) + largest_far,
    )


@dataclass(frozen=True, kw_only=True)
class _DirectTail:
    """The part I - D⁻¹ + D⁻¹ (E - diag E) D⁻¹ of F_TT: its strongest entries."""

    entries: list[Entries]
    largest_left_out: float  # bound of the entries that are not stored
    row_sum: float  # ρ, the largest row sum of D⁻¹ |E - diag E|


def _compute_direct_tail(
    inverse_diagonal: FloatArray, tail: Iterable[tuple[RowSlice, CSRArray]]
) -> _DirectTail:
    """Return I - D⁻¹ + D⁻¹ (E - diag E) D⁻¹, from pieces of the rows of E."""
    positions = np.arange(len(inverse_diagonal))
    entries: list[Entries] = [(1 - inverse_diagonal, positions, positions)]
    largest_left_out = SMALLEST_ENTRY
    row_sum = 0.0

    for piece, rows in tail:
        row_of_piece = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        row = positions[piece][row_of_piece]
        column = rows.indices

        # D⁻¹ (E - diag E)
        values = np.where(row == column, 0, rows.data * inverse_diagonal[row])
        row_sum = max(row_sum, float(np.bincount(row, np.abs(values), 1).max()))

        # D⁻¹ (E - diag E) D⁻¹, the strongest entries of each row
        values *= inverse_diagonal[column]
        strength = np.abs(values)
        strongest = kth_best(rows.indptr, strength, MAX_NEIGHBORS)
        smallest = np.maximum(strongest, SMALLEST_ENTRY)
        is_strong = strength >= smallest[row_of_piece]
        left_out = strength[~is_strong].max(initial=SMALLEST_ENTRY)
        largest_left_out = max(largest_left_out, float(left_out))
        entries.append((values[is_strong], row[is_strong], column[is_strong]))

    return _DirectTail(
        entries=entries, largest_left_out=largest_left_out, row_sum=row_sum
    )


def _bound_higher_orders(row_sum: float) -> float:
    """Return a bound of the terms of (I + E)^-1 from the second order on."""
    if row_sum < 0.5:
        return row_sum**2 / (1 - row_sum)
    return np.inf


def shrink_large_gram(rows: CSRArray, scale: float) -> HeadTailMap:
    """Return K (I + K)^-1, K the scaled Gram matrix of rows in a large label space."""
    # The head: products of frequent labels with all others.
    order, n_head = order_by_frequency(rows.sum(axis=0))
    n_labels = len(order)
    head = np.empty((n_head, n_labels), dtype=choose_dtype(n_head, n_labels))
    for labels, products in iterate_head_products(rows, order, n_head):
        head[labels] = products * scale

    # The tail: products of rare labels, in pieces.
    diagonal = rows.power(2).sum(axis=0)[order[n_head:]] * scale
    tail = (
        (labels, products * scale)
        for labels, (products,) in iterate_tail_products(order, n_head, rows)
    )
    label_map = shrink_head_and_tail(order, head, diagonal, tail)
    if not np.isfinite(label_map.bound):
        raise InputError(
            where="MLCM-a",
            found=f"rare labels (other than the {n_head:,} most frequent) that occur "
            "together too often",
            expected="fewer of these; the default method supports such predictions",
        )
    return label_map
