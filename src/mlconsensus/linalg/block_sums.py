"""Arithmetic on matrices that are dense or CSR.

Sparse input stays sparse. A result is dense only if the name of the function or its
docstring says so.
"""

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from ..execution.threads import map_on_threads
from ..predictions import Array, FloatArray
from .matrix_types import DenseOrCSR

# Below this share of nonzero entries SciPy's sparse Gram matrix, which costs
# Σ nnz(row)², is cheaper than BLAS on dense rows. Measured on one core at v = 2,000:
# equal at a share of 0.06 (docs/decisions/sparse-products.md).
SPARSE_FILL = 0.06

# Number of columns of a large Gram matrix that are computed at a time: at v = 20,000,
# half a GB as a sparse product.
_COLUMNS_AT_ONCE = 2048


def gram(A: DenseOrCSR) -> FloatArray:
    """Compute the Gram matrix AᵀA as a dense matrix.

    Parameters
    ----------
    A : ndarray or csr_array of shape (n, v)
        The matrix.

    Returns
    -------
    ndarray of shape (v, v)

    Examples
    --------
    >>> gram(np.array([[1.0, 2.0]])).tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """
    v = A.shape[1]
    if v <= 2 * _COLUMNS_AT_ONCE:
        if sparse.issparse(A) and A.nnz >= SPARSE_FILL * A.shape[0] * v:
            A = A.toarray()
        return product(A.T, A)

    # Groups of columns on all cores; what is below the diagonal is copied
    products = np.empty((v, v))
    if sparse.issparse(A):
        A = A.tocsc()

    def fill_columns(start: int) -> None:
        stop = min(start + _COLUMNS_AT_ONCE, v)
        products[:stop, start:stop] = product(A[:, :stop].T, A[:, start:stop])
        products[start:stop, :start] = products[:start, start:stop].T

    for _ in map_on_threads(fill_columns, range(0, v, _COLUMNS_AT_ONCE)):
        pass

    return products


def scale_rows(A: DenseOrCSR, weights: FloatArray) -> DenseOrCSR:
    """Multiply row i of a matrix by ``weights[i]``.

    Parameters
    ----------
    A : ndarray or csr_array of shape (n, v)
        The matrix.
    weights : ndarray of shape (n,)
        Weight of each row.

    Returns
    -------
    ndarray or csr_array of shape (n, v)

    Examples
    --------
    >>> scale_rows(np.ones((2, 2)), np.array([1.0, 3.0])).tolist()
    [[1.0, 1.0], [3.0, 3.0]]
    """
    if not sparse.issparse(A):
        return A * weights[:, None]

    entry_weights = np.repeat(weights, np.diff(A.indptr))
    content = (A.data * entry_weights, A.indices, A.indptr)
    return sparse.csr_array(content, shape=A.shape)


def product(A: DenseOrCSR, B: DenseOrCSR) -> FloatArray:
    """Compute A·B as a dense matrix.

    Parameters
    ----------
    A : ndarray or csr_array of shape (n, v)
        The first factor.
    B : ndarray or csr_array of shape (v, w)
        The second factor.

    Returns
    -------
    ndarray of shape (n, w)

    Examples
    --------
    >>> product(sparse.csr_array([[2.0, 0.0]]), np.array([[1.0], [5.0]])).tolist()
    [[2.0]]
    """
    return dense(A @ B)


def join_columns(first: DenseOrCSR, second: DenseOrCSR) -> DenseOrCSR:
    """Put two matrices next to each other.

    Parameters
    ----------
    first : ndarray or csr_array of shape (n, v)
        The left columns.
    second : ndarray or csr_array of shape (n, w)
        The right columns.

    Returns
    -------
    ndarray or csr_array of shape (n, v + w)
        CSR if one of the two is.

    Examples
    --------
    >>> dense(join_columns(np.ones((1, 1)), sparse.csr_array([[2.0]]))).tolist()
    [[1.0, 2.0]]
    """
    if sparse.issparse(first) or sparse.issparse(second):
        return sparse.hstack([first, second], format="csr")
    return np.concatenate([first, second], axis=1)


def dense(A: DenseOrCSR) -> Array:
    """Return a matrix as a dense one.

    Parameters
    ----------
    A : ndarray or csr_array of shape (n, v)
        The matrix.

    Returns
    -------
    ndarray of shape (n, v)

    Examples
    --------
    >>> dense(sparse.csr_array([[2.0, 0.0]])).tolist()
    [[2.0, 0.0]]
    """
    if sparse.issparse(A):
        return np.asarray(A.toarray())
    return np.asarray(A)


def row_sums(A: DenseOrCSR) -> FloatArray:
    """Sum each row of a matrix.

    Parameters
    ----------
    A : ndarray or csr_array of shape (n, v)
        The matrix.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> row_sums(np.eye(2)).tolist()
    [1.0, 1.0]
    """
    return np.asarray(A.sum(axis=1), dtype=np.float64).ravel()


def column_sums(A: DenseOrCSR) -> FloatArray:
    """Sum each column of a matrix.

    Parameters
    ----------
    A : ndarray or csr_array of shape (n, v)
        The matrix.

    Returns
    -------
    ndarray of shape (v,)

    Examples
    --------
    >>> column_sums(np.eye(2)).tolist()
    [1.0, 1.0]
    """
    return np.asarray(A.sum(axis=0), dtype=np.float64).ravel()


def ratio(
    numerator: Array,
    denominator: Array | float,
    otherwise: FloatArray | float,
) -> FloatArray:
    """Divide elementwise, with another value where the denominator is 0.

    Parameters
    ----------
    numerator : ndarray
        Any shape.
    denominator : ndarray or float
        Broadcast to the shape of the numerator.
    otherwise : ndarray or float
        Value where the denominator is 0, broadcast likewise.

    Returns
    -------
    ndarray
        In float32 if `otherwise` is, else in float64.

    Examples
    --------
    >>> ratio(np.array([1.0, 0.0]), np.array([2.0, 0.0]), 7.0).tolist()
    [0.5, 7.0]
    """
    dtype: DTypeLike = np.float64
    if np.asarray(otherwise).dtype == np.float32:
        dtype = np.float32

    shape = np.shape(numerator)
    divisors = np.broadcast_to(np.asarray(denominator, dtype=np.float64), shape)
    quotients = np.array(np.broadcast_to(np.asarray(otherwise, dtype=dtype), shape))
    np.divide(numerator, divisors, out=quotients, where=divisors != 0)
    return quotients
