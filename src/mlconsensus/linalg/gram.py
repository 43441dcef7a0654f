r"""Gram matrices :math:`R^\top R` of rows that come block by block, kept in the smaller of two forms.

While there are fewer rows than columns, the rows themselves are kept: they are smaller
than their Gram matrix, and what is solved with it can be solved on their side. From
then on it is the product. Where that would not fit into memory the rows stay, and
solvers use them to multiply by the matrix without making it.
"""

import math
from typing import Any, Self

import numpy as np
from scipy import sparse

from ..execution.threads import get_limits
from ..predictions import Matrix
from ..predictions.blocks import NamedValues, PairValues, PredictionBlock
from .block_sums import FloatArray, dense, gram

# how many matrices of this size there are at once: the sum, what is added to it, and a
# solver's own
_COPIES = 3
# Integers up to here are exact in float32.
_EXACT_FLOAT32 = 2**24
# In large label spaces, an instance with more labels than this says nothing about which
# labels occur together.
MOST_NAMED = 1000


class Gram:
    """The Gram matrix of some rows; adding two gives that of all their rows.

    Examples
    --------
    >>> few = Gram.of(np.array([[1.0, 2.0, 0.0]]))
    >>> few.rows is not None, np.asarray(few + few).tolist()
    (True, [[2.0, 4.0, 0.0], [4.0, 8.0, 0.0], [0.0, 0.0, 0.0]])
    >>> (few + few + few).rows is None
    True
    """

    __slots__ = ("_pieces", "_product", "is_large", "shape")

    def __init__(
        self,
        pieces: tuple[Matrix, ...],
        product: FloatArray | None,
        shape: tuple[int, ...],
        is_large: bool = False,
    ) -> None:
        self.is_large = is_large  # whether the rows always stay as they are
        self._pieces = pieces  # rows that are not in the product yet
        self._product = product  # (v, v)
        self.shape = shape  # (v, v), or how v divides

    @classmethod
    def of(
        cls, rows: Matrix, shape: tuple[int, ...] | None = None, is_large: bool = False
    ) -> Self:
        """Make the Gram matrix of some rows.

        Parameters
        ----------
        rows
            (r, v), dense or CSR.
        shape
            How the matrix (v, v) is to be seen, such as (m, l, m, l).
        is_large
            Whether the matrix would not fit into memory: its rows are kept, except
            those with too many entries.
        """
        shape = shape or (rows.shape[1],) * 2
        if not is_large:
            return cls((rows,), None, shape)._in_smaller_form()

        n_models = shape[0] if len(shape) == 4 else 1
        n_entries = np.diff(rows.indptr)
        is_usable = n_entries <= MOST_NAMED * n_models
        if not is_usable.all():
            rows = rows[np.flatnonzero(is_usable)]
        return cls((rows,), None, shape, is_large=True)

    @property
    def rows(self) -> Matrix | None:
        """The rows (r, v), where they are what is kept."""
        if self._product is None:
            return _stacked(self._pieces)
        return None

    def __add__(self, other: Any) -> Self:
        if isinstance(other, int):  # the empty statistics
            return self

        other = as_gram(other)
        total = self._product
        if total is None:
            total = other._product
        elif other._product is not None:
            total = total + other._product

        merged = type(self)(
            self._pieces + other._pieces, total, self.shape, self.is_large
        )
        return merged._in_smaller_form()

    __radd__ = __add__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        return (
            self._multiplied()
            .reshape(self.shape)
            .astype(dtype or np.float64, copy=bool(copy))
        )

    def sums(self) -> FloatArray:
        """Return the matrix's row sums (v,).

        Examples
        --------
        >>> Gram.of(np.array([[1.0, 2.0, 0.0]])).sums()
        array([3., 6., 0.])
        """
        rows = self.rows
        if rows is None:
            return np.asarray(self._multiplied().sum(axis=1))
        return np.asarray(rows.T @ np.asarray(rows.sum(axis=1)).ravel())

    def _multiplied(self) -> FloatArray:
        if not self._pieces and self._product is not None:
            return self._product

        new = gram(_stacked(self._pieces))
        if self._product is None:
            return new
        return np.add(new, self._product, out=new)

    def _in_smaller_form(self) -> Self:
        """Multiply out what rows there are, once there are as many as columns."""
        if self.is_large:
            return self
        v = math.isqrt(math.prod(self.shape))
        few = sum(piece.shape[0] for piece in self._pieces) < v
        if few or (self._product is None and _COPIES * 8 * v**2 > get_limits().memory):
            return self
        return type(self)((), self._multiplied(), self.shape)


def as_gram(matrix: Gram | FloatArray) -> Gram:
    """Return a Gram matrix that may have come as an array, as files give it.

    Examples
    --------
    >>> as_gram(np.eye(2)).sums()
    array([1., 1.])
    """
    if isinstance(matrix, Gram):
        return matrix

    v = math.isqrt(matrix.size)
    return Gram((), matrix.reshape(v, v), matrix.shape)


def _stacked(pieces: tuple[Matrix, ...]) -> Matrix:
    if len(pieces) == 1:
        return pieces[0]
    if all(sparse.issparse(piece) for piece in pieces):
        return sparse.vstack(pieces, format="csr")
    return np.concatenate(
        [piece.toarray() if sparse.issparse(piece) else piece for piece in pieces]
    )


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
    return Gram.of(values.to_matrix(), is_large=is_large)


def compute_walk(rows: Matrix, block: PredictionBlock) -> Gram:
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
    return Gram.of(rows, shape, is_large=block.is_large)


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
