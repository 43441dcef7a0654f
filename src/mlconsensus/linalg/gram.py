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
from .block_sums import FloatArray, gram

# how many matrices of this size there are at once: the sum, what is added to it, and a
# solver's own
_COPIES = 3


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

    __slots__ = ("_pieces", "_product", "shape")

    def __init__(
        self,
        pieces: tuple[Matrix, ...],
        product: FloatArray | None,
        shape: tuple[int, ...],
    ) -> None:
        self._pieces = pieces  # rows that are not in the product yet
        self._product = product  # (v, v)
        self.shape = shape  # (v, v), or how v divides

    @classmethod
    def of(cls, rows: Matrix, shape: tuple[int, ...] | None = None) -> Self:
        """Make the Gram matrix of some rows.

        Parameters
        ----------
        rows
            (r, v), dense or CSR.
        shape
            How the matrix (v, v) is to be seen, such as (m, l, m, l).
        """
        return cls((rows,), None, shape or (rows.shape[1],) * 2)._in_smaller_form()

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
        products = [own for own in (self._product, other._product) if own is not None]
        if len(products) == 2:
            total = np.add(*products)
        else:
            total = next(iter(products), None)

        return type(self)(
            self._pieces + other._pieces, total, self.shape
        )._in_smaller_form()

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
