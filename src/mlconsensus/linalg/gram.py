r"""Gram matrices :math:`R^\top R` of rows that come block by block.

A Gram matrix is stored in the smaller of two forms:

- With fewer rows than columns, the rows `R` (r, v). Systems of equations can then be
  solved with one equation per row.
- With more rows, the product (v, v).

If the product would not fit into memory, or is much larger than sparse rows as in a
crowd, the rows stay, and solvers multiply by :math:`R` and :math:`R^\top`.
"""

import math
from typing import Self

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from ..execution.threads import get_limits
from ..predictions import Array, FloatArray
from ..predictions.blocks import NamedValues, PairValues, PredictionBlock
from .block_sums import dense, gram
from .matrix_types import CSRArray, DenseOrCSR

# Matrices of this size that are in memory at once: the product, what is added to it,
# and the solver's copy.
_N_COPIES = 3
# The rows of a product of more columns stay if the product has so many times as many
# entries: multiplying by the rows is then cheaper than any solver for the product.
_MIN_COLUMNS = 4096
_ENTRIES_PER_STORED = 64
# Integers up to here are exact in float32.
_EXACT_FLOAT32 = 2**24
# In large label spaces, an instance with more labels than this does not show which
# labels occur together.
MOST_NAMED = 1000


class Gram:
    """The Gram matrix of rows. The sum of two is the Gram matrix of all their rows.

    Parameters
    ----------
    pieces : tuple of matrices of shape (r, v)
        Rows that are not in the product yet.
    product : ndarray of shape (v, v) or None
        Product of all other rows, if there are any.
    shape : tuple of int
        Shape of the matrix as an array: (v, v), or a shape of the same size such as
        (m, l, m, l).
    is_large : bool, default=False
        Whether the product would not fit into memory, so that rows are never
        multiplied.

    Examples
    --------
    >>> few = Gram.from_rows(np.array([[1.0, 2.0, 0.0]]))
    >>> few.rows is not None, np.asarray(few + few).tolist()
    (True, [[2.0, 4.0, 0.0], [4.0, 8.0, 0.0], [0.0, 0.0, 0.0]])
    >>> (few + few + few).rows is None
    True
    """

    __slots__ = ("_pieces", "_product", "is_large", "shape")

    def __init__(
        self,
        pieces: tuple[DenseOrCSR, ...],
        product: FloatArray | None,
        shape: tuple[int, ...],
        is_large: bool = False,
    ) -> None:
        self.is_large = is_large
        self.shape = shape
        self._pieces = pieces
        self._product = product

    @classmethod
    def from_rows(
        cls,
        rows: DenseOrCSR,
        shape: tuple[int, ...] | None = None,
        is_large: bool = False,
    ) -> Self:
        """Make the Gram matrix of rows.

        Parameters
        ----------
        rows : matrix of shape (r, v)
            Dense or CSR.
        shape : tuple of int, default=None
            Shape of the matrix as an array, such as (m, l, m, l). By default (v, v).
        is_large : bool, default=False
            Whether the matrix would not fit into memory: its rows are stored, except
            those with too many entries. They must be CSR.

        Returns
        -------
        Gram
        """
        if shape is None:
            n_columns = rows.shape[1]
            shape = (n_columns, n_columns)
        if is_large:
            return cls((_drop_long_rows(rows, shape),), None, shape, is_large=True)
        return cls((rows,), None, shape)._compact()

    @property
    def rows(self) -> DenseOrCSR | None:
        """The rows (r, v), or None if only their product is stored."""
        if self._product is None:
            return _stack(self._pieces)
        return None

    def __add__(self, other: "Gram | FloatArray | int") -> Self:
        if isinstance(other, int):  # 0, with which `sum` starts
            return self

        other = as_gram(other)
        product = self._product
        if product is None:
            product = other._product
        elif other._product is not None:
            product = product + other._product

        pieces = self._pieces + other._pieces
        return type(self)(pieces, product, self.shape, self.is_large)._compact()

    __radd__ = __add__

    def __array__(
        self, dtype: DTypeLike | None = None, copy: bool | None = None
    ) -> Array:
        matrix = self._multiply().reshape(self.shape)
        return matrix.astype(dtype or np.float64, copy=bool(copy))

    def sum_rows(self) -> FloatArray:
        """Return the sum of each row of the matrix, shape (v,).

        Examples
        --------
        >>> Gram.from_rows(np.array([[1.0, 2.0, 0.0]])).sum_rows()
        array([3., 6., 0.])
        """
        rows = self.rows
        if rows is None:
            return np.asarray(self._multiply().sum(axis=1))
        return np.asarray(rows.T @ np.asarray(rows.sum(axis=1)).ravel())

    def _multiply(self) -> FloatArray:
        """Return the product of all rows, shape (v, v)."""
        if not self._pieces and self._product is not None:
            return self._product

        product = gram(_stack(self._pieces))
        if self._product is not None:
            product += self._product
        return product

    def _compact(self) -> Self:
        """Return the matrix in the smaller of its two forms."""
        if self.is_large:
            return self

        n_columns = math.isqrt(math.prod(self.shape))
        n_rows = sum(piece.shape[0] for piece in self._pieces)
        if n_rows < n_columns:
            return self

        needed_memory = _N_COPIES * 8 * n_columns**2
        is_too_large = needed_memory > get_limits().memory
        if self._product is None and (is_too_large or self._has_few_entries(n_columns)):
            return self
        return type(self)((), self._multiply(), self.shape)

    def _has_few_entries(self, n_columns: int) -> bool:
        """Return whether the rows are much smaller than their product."""
        if n_columns < _MIN_COLUMNS or not all(map(sparse.issparse, self._pieces)):
            return False
        n_stored = sum(piece.nnz for piece in self._pieces)
        return bool(_ENTRIES_PER_STORED * n_stored < n_columns**2)


def as_gram(matrix: Gram | FloatArray) -> Gram:
    """Return a Gram matrix that may be an array, as in files of statistics.

    Examples
    --------
    >>> as_gram(np.eye(2)).sum_rows()
    array([1., 1.])
    """
    if isinstance(matrix, Gram):
        return matrix

    n_columns = math.isqrt(matrix.size)
    return Gram((), matrix.reshape(n_columns, n_columns), matrix.shape)


def _drop_long_rows(rows: CSRArray, shape: tuple[int, ...]) -> CSRArray:
    """Return the rows without those that have too many entries."""
    n_models = 1
    if len(shape) == 4:
        n_models = shape[0]

    n_entries = np.diff(rows.indptr)
    is_usable = n_entries <= MOST_NAMED * n_models
    if is_usable.all():
        return rows
    return rows[np.flatnonzero(is_usable)]


def _stack(pieces: tuple[DenseOrCSR, ...]) -> DenseOrCSR:
    """Join rows, as CSR if all pieces are sparse."""
    if len(pieces) == 1:
        return pieces[0]
    if all(map(sparse.issparse, pieces)):
        return sparse.vstack(pieces, format="csr")
    return np.concatenate([dense(piece) for piece in pieces])


def compute_gram(values: PairValues) -> Gram:
    """Return the Gram matrix of pair values: sums of products of two labels.

    In large label spaces, pairs that no model named count as 0.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> scores = mlc.Predictions([[[1, 0.5]]]).to_block().sum_scores()
    >>> np.asarray(compute_gram(scores)).tolist()
    [[1.0, 0.5], [0.5, 0.25]]
    """
    is_large = isinstance(values, NamedValues) and values.pairs.is_large
    return Gram.from_rows(values.to_matrix(), is_large=is_large)


def compute_walk(rows: DenseOrCSR, block: PredictionBlock) -> Gram:
    """Return the walk between group nodes, from rows (n, m * l) of a block.

    Parameters
    ----------
    rows : matrix of shape (n, m * l)
        The connection matrix, each row divided by the root of its sum.
    block : PredictionBlock
        The block of the rows.

    Returns
    -------
    Gram of shape (m, l, m, l)
    """
    shape = (block.n_models, block.n_labels, block.n_models, block.n_labels)
    return Gram.from_rows(rows, shape, is_large=block.is_large)


def compute_mean_gram(total: PairValues, count: PairValues) -> Gram:
    """Return the Gram matrix of mean scores, 0 for pairs without predictions.

    Counts of votes are multiplied in float32, which is twice as fast, while all sums
    are exact.

    Parameters
    ----------
    total : PairValues
        Sum of the scores of each pair.
    count : PairValues
        Number of predictions of each pair.

    Returns
    -------
    Gram
    """
    votes = total.to_matrix()
    n_instances, n_labels = total.shape
    if votes.dtype.kind == "u" and n_instances >= n_labels:
        counts = count.to_array()
        n_models = float(counts.flat[0])
        is_constant = not any(counts.strides)
        if is_constant and n_models**2 * n_instances < _EXACT_FLOAT32:
            products = gram(votes.astype(np.float32))
            return as_gram(products.astype(np.float64) / n_models**2)
    return compute_gram(total.divide(count, default=0.0))


def compute_uncovered_grams(
    mean: PairValues, is_uncovered: PairValues
) -> tuple[FloatArray, FloatArray] | None:
    """Return the products of pairs without predictions with means and each other.

    Parameters
    ----------
    mean : PairValues
        Mean scores, 0 for pairs without predictions.
    is_uncovered : PairValues
        True for pairs without predictions.

    Returns
    -------
    tuple of ndarray of shape (l, l), or None
        None if all pairs have predictions, or if the matrices would not fit into
        memory.
    """
    is_large = isinstance(mean, NamedValues) and mean.pairs.is_large
    if is_large or not is_uncovered.sum_over_instances().any():
        return None
    uncovered = is_uncovered.to_array()
    return uncovered.T @ dense(mean.to_matrix()), gram(uncovered)
