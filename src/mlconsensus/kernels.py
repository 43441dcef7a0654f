"""The arithmetic on one block of instances that combiners share, dense or sparse by what the block is.

Sparse input stays sparse: no dense array of shape (n, m·l) is made from it. Dense input whose cells
are mostly zero is turned to CSR block by block, since real predictions fill a few percent.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .model_scores import Matrix
from .predictions import Predictions

FloatArray = NDArray[np.float64]

# Below this fill the sparse Gram matrix, Σ nnz(row)² at some 2e8/s, is cheaper than BLAS, n·v² at some 4e10/s.
_SPARSE_FILL = 0.05


class Votes(NamedTuple):
    """What the models of a block said together about each cell."""

    total: Matrix  # (n, l) sum of the scores of the models that spoke; CSR if every model's matrix is
    heard: FloatArray | float  # (n, l) how many models spoke; the number of models where all did


def connections(block: Predictions) -> Matrix:
    """Build the paper's connection matrix A (n, m·l): an edge from each instance to each (model, label) group node.

    Scores are edge weights; where a model was silent there is no edge. Dense float64 or CSR, whichever is cheaper.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> A = connections(mlc.Predictions([[[1, 0]], [[1, 0.5]]]))
    >>> A.tolist()
    [[1.0, 0.0, 1.0, 0.5]]
    """
    matrices = [values for values, _ in block.cells()]
    if all(sparse.issparse(matrix) for matrix in matrices):
        return sparse.hstack(matrices, format="csr") if len(matrices) > 1 else matrices[0]
    m, n, l = block.shape
    joined = np.empty((n, m * l), dtype=np.result_type(*(matrix.dtype for matrix in matrices)))
    for k, matrix in enumerate(matrices):
        joined[:, k * l : (k + 1) * l] = matrix.toarray() if sparse.issparse(matrix) else matrix
    return _cheaper(joined)


def votes(block: Predictions) -> Votes:
    """Add up the models' scores cell by cell, and count who spoke.

    Examples
    --------
    >>> import numpy as np
    >>> import mlconsensus as mlc
    >>> votes(mlc.Predictions([[[1, 0.5]], [[1, np.nan]]]))
    Votes(total=array([[2. , 0.5]]), heard=array([[2., 1.]]))
    """
    m, n, l = block.shape
    complete = block.complete
    heard = None if complete else np.zeros((n, l))
    total: Any = None
    for values, spoken in block.cells():
        total = values.astype(np.float64) if total is None else total + values
        if heard is not None:
            heard += 1.0 if spoken is None else spoken
    return Votes(_plain(total), float(m) if heard is None else heard)


def mean(votes: Votes, prior: FloatArray) -> Matrix:
    """Average over the models that spoke (Eq. averaging), the prior where none did; CSR while all models speak.

    Examples
    --------
    >>> mean(Votes(np.array([[2.0, 0.0]]), np.array([[4.0, 0.0]])), np.array([0.1, 0.2])).tolist()
    [[0.5, 0.2]]
    """
    total, heard = votes
    if isinstance(heard, float):
        return total / heard
    return ratio(total.toarray() if sparse.issparse(total) else total, heard, prior)


def gram(A: Matrix, weights: FloatArray | None = None) -> FloatArray:
    """Compute AᵀDA for a diagonal D of `weights` (the identity without), as a dense float64 matrix.

    Examples
    --------
    >>> gram(np.array([[1.0, 2.0]]), np.array([0.5])).tolist()
    [[0.5, 1.0], [1.0, 2.0]]
    """
    left = A if weights is None else scaled(A, weights)
    product = left.T @ A
    return product.toarray() if sparse.issparse(product) else np.asarray(product)


def scaled(A: Matrix, weights: FloatArray) -> Matrix:
    """Multiply row i of A by ``weights[i]``.

    Examples
    --------
    >>> scaled(np.ones((2, 2)), np.array([1.0, 3.0])).tolist()
    [[1.0, 1.0], [3.0, 3.0]]
    """
    if not sparse.issparse(A):
        return A * weights[:, None]
    return sparse.csr_array((A.data * np.repeat(weights, np.diff(A.indptr)), A.indices, A.indptr), shape=A.shape)


def product(A: Matrix, B: FloatArray) -> FloatArray:
    """Compute A·B densely, for a dense or CSR A.

    Examples
    --------
    >>> product(sparse.csr_array([[2.0, 0.0]]), np.array([[1.0], [5.0]])).tolist()
    [[2.0]]
    """
    return np.asarray(A @ B)


def row_sums(A: Matrix) -> FloatArray:
    """Sum each row of a dense or CSR matrix.

    Examples
    --------
    >>> row_sums(np.eye(2)).tolist()
    [1.0, 1.0]
    """
    return np.asarray(A.sum(axis=1), dtype=np.float64).ravel()


def column_sums(A: Matrix) -> FloatArray:
    """Sum each column of a dense or CSR matrix.

    Examples
    --------
    >>> column_sums(np.eye(2)).tolist()
    [1.0, 1.0]
    """
    return np.asarray(A.sum(axis=0), dtype=np.float64).ravel()


def ratio(numerator: FloatArray, denominator: FloatArray | float, otherwise: FloatArray | float) -> FloatArray:
    """Divide, with a defined value where the denominator is 0.

    Examples
    --------
    >>> ratio(np.array([1.0, 0.0]), np.array([2.0, 0.0]), 7.0).tolist()
    [0.5, 7.0]
    """
    below = np.broadcast_to(np.asarray(denominator, dtype=np.float64), np.shape(numerator))
    out = np.array(np.broadcast_to(np.asarray(otherwise, dtype=np.float64), np.shape(numerator)))
    return np.divide(numerator, below, out=out, where=below != 0)


def _cheaper(dense: NDArray[Any]) -> Matrix:
    if np.count_nonzero(dense) < _SPARSE_FILL * dense.size:
        return sparse.csr_array(dense).astype(np.float64)
    return dense.astype(np.float64, copy=False)


def _plain(matrix: Any) -> Matrix:
    """Undo the COO and np.matrix forms that mixed sums of dense and sparse take."""
    return matrix.tocsr() if sparse.issparse(matrix) else np.asarray(matrix)
