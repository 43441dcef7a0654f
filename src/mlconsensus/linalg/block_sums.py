"""The arithmetic on one block of instances that combiners share, dense or sparse by what the block is.

Sparse input stays sparse: no dense array of shape (n, m·l) is made from it. Dense input
whose cells are mostly zero is turned to CSR block by block, since real predictions fill
a few percent.
"""

from collections.abc import Iterator
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from ..execution.threads import map_on_threads
from ..predictions import Matrix, Predictions

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

# Below this fill SciPy's sparse Gram matrix, which costs Σ nnz(row)², is cheaper than
# BLAS on dense rows. Measured on one core at v = 2,000: equal at a fill of 0.06
# (docs/decisions/0007).
SPARSE_FILL = 0.06

# Below so many votes a cell, their sums are multiplied faster as CSR than as a dense
# matrix (docs/decisions/0007).
_FEW_SUMS = 0.2

# How many columns of a larger Gram matrix are worked out at a time: at v = 20,000, half
# a GB as a sparse product.
_PANEL = 2048


class Votes(NamedTuple):
    """What the models of a block said together about each cell."""

    # (n, l) sum of the scores of the models that spoke, times their weights: CSR if
    # every model's matrix is CSR, small integers if every model's matrix is dense and
    # holds decisions, else float64.
    total: Matrix
    # (n, l) sum of the weights of the models that spoke (each 1 without weights); a
    # single number where all spoke.
    heard: FloatArray | float


def connections(block: Predictions, dtype: Any = np.float64) -> Matrix:
    """Build the paper's connection matrix A (n, m·l): an edge from each instance to each (model, label) group node.

    Scores, times the model's weight, are edge weights; where a model was silent there
    is no edge. Dense or CSR of `dtype`, whichever is cheaper.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> A = connections(mlc.Predictions([[[1, 0]], [[1, 0.5]]]))
    >>> A.tolist()
    [[1.0, 0.0, 1.0, 0.5]]
    """
    matrices = [values for values, _ in _weighted_cells(block)]
    if all(sparse.issparse(matrix) for matrix in matrices):
        return sparse.hstack(matrices, format="csr").astype(dtype, copy=False)

    joined = np.concatenate(
        [dense(matrix) for matrix in matrices], axis=1
    )  # rows or columns first, as they are
    if is_sparse(joined):
        return as_csr(joined, dtype)
    return np.ascontiguousarray(joined, dtype=dtype)


def spoken(block: Predictions) -> FloatArray:
    """Tell as 1 (or the model's weight) or 0 where each group node's model spoke (n, m·l).

    Examples
    --------
    >>> import numpy as np
    >>> import mlconsensus as mlc
    >>> spoken(mlc.Predictions([[[1, np.nan]], [[0, 0]]])).tolist()
    [[1.0, 0.0, 1.0, 1.0]]
    """
    where = [np.broadcast_to(own, block.shape[1:]) for _, own in _weighted_cells(block)]
    return np.concatenate(where, axis=1, dtype=np.float64)


def folded(A: Matrix, weights: FloatArray) -> Matrix:
    """Add up each label's columns of A (n, m·l) with the models' weights (m, l): Σ_k w_kℓ a_ikℓ (n, l).

    CSR where A is, and few sums are not 0.

    Examples
    --------
    >>> folded(np.array([[1.0, 0.0, 0.5, 1.0]]), np.array([[2.0, 2.0], [4.0, 4.0]])).tolist()
    [[4.0, 4.0]]
    >>> folded(sparse.csr_array([[1.0, 0.0, 0.5, 1.0] + [0.0] * 36]), np.ones((2, 20))).nnz
    3
    """
    m, l = weights.shape
    if not sparse.issparse(A):
        return np.einsum("ikl,kl->il", A.reshape(len(A), m, l), weights)

    # Columns of the same label fall on each other; A stays as it is.
    entries = (A.data * weights.ravel()[A.indices], A.indices % l, A.indptr.copy())
    return cheaper(sparse.csr_array(entries, shape=(A.shape[0], l)))


def cheaper(A: Matrix) -> Matrix:
    """Return a matrix as CSR where few of its cells are not 0, else dense.

    Examples
    --------
    >>> cheaper(sparse.csr_array([[2.0]]))
    array([[2.]])
    """
    few = (A.nnz if sparse.issparse(A) else np.count_nonzero(A)) < _FEW_SUMS * A.shape[
        0
    ] * A.shape[1]
    if not sparse.issparse(A):
        if few:
            return as_csr(A, A.dtype)
        return A

    if few:
        A.sum_duplicates()
    if few:
        return A
    return A.toarray()


def votes(block: Predictions) -> Votes:
    """Add up the models' scores cell by cell, and count who spoke.

    Examples
    --------
    >>> import numpy as np
    >>> import mlconsensus as mlc
    >>> votes(mlc.Predictions([[[1, 0.5]], [[1, np.nan]]]))
    Votes(total=array([[2. , 0.5]]), heard=array([[2., 1.]]))
    """
    matrices, said = zip(*_weighted_cells(block), strict=True)
    if all(map(sparse.issparse, matrices)):
        total = reduce(add, matrices)
    else:
        total = _dense_sum([*map(dense, matrices)])

    return Votes(
        total,
        float(sum(said)) if block.complete else sum(said, np.zeros(block.shape[1:])),
    )


def mean(votes: Votes, prior: FloatArray) -> Matrix:
    """Average over the models that spoke (Eq. averaging), the prior where none did; CSR while all models speak.

    In float32 if the prior is float32.

    Examples
    --------
    >>> mean(Votes(np.array([[2.0, 0.0]]), np.array([[4.0, 0.0]])), np.array([0.1, 0.2])).tolist()
    [[0.5, 0.2]]
    """
    total, heard = votes
    if isinstance(heard, float):
        if sparse.issparse(total):
            return (total / heard).astype(prior.dtype, copy=False)
        return np.divide(total, heard, dtype=prior.dtype, casting="same_kind")

    return ratio(dense(total), heard, prior)


def gram(A: Matrix) -> FloatArray:
    """Compute AᵀA (v, v) of a matrix (n, v), densely.

    Examples
    --------
    >>> gram(np.array([[1.0, 2.0]])).tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """
    v = A.shape[1]
    if v <= 2 * _PANEL:
        if sparse.issparse(A) and A.nnz >= SPARSE_FILL * A.shape[0] * v:
            A = A.toarray()
        return product(A.T, A)

    # In panels of columns, on all cores, and only what is on or above the diagonal.
    out = np.empty((v, v))
    if sparse.issparse(A):
        A = A.tocsc()

    def fill(start: int) -> None:
        stop = min(start + _PANEL, v)
        out[:stop, start:stop] = product(A[:, :stop].T, A[:, start:stop])
        out[start:stop, :start] = out[:start, start:stop].T

    for _ in map_on_threads(fill, range(0, v, _PANEL)):
        pass

    return out


def scaled(A: Matrix, weights: FloatArray) -> Matrix:
    """Multiply row i of A by ``weights[i]``.

    Examples
    --------
    >>> scaled(np.ones((2, 2)), np.array([1.0, 3.0])).tolist()
    [[1.0, 1.0], [3.0, 3.0]]
    """
    if not sparse.issparse(A):
        return A * weights[:, None]
    return sparse.csr_array(
        (A.data * np.repeat(weights, np.diff(A.indptr)), A.indices, A.indptr),
        shape=A.shape,
    )


def product(A: Matrix, B: Matrix) -> FloatArray:
    """Compute A·B densely, whatever A and B are.

    Examples
    --------
    >>> product(sparse.csr_array([[2.0, 0.0]]), np.array([[1.0], [5.0]])).tolist()
    [[2.0]]
    """
    return dense(A @ B)


def join_columns(first: Matrix, second: Matrix) -> Matrix:
    """Put two matrices next to each other; CSR if one of them is.

    Examples
    --------
    >>> dense(join_columns(np.ones((1, 1)), sparse.csr_array([[2.0]]))).tolist()
    [[1.0, 2.0]]
    """
    if sparse.issparse(first) or sparse.issparse(second):
        return sparse.hstack([first, second], format="csr")
    return np.concatenate([first, second], axis=1)


def dense(A: Matrix) -> NDArray[Any]:
    """Return a dense or CSR matrix as a dense one.

    Examples
    --------
    >>> dense(sparse.csr_array([[2.0, 0.0]])).tolist()
    [[2.0, 0.0]]
    """
    return np.asarray(A.toarray() if sparse.issparse(A) else A)


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


def ratio(
    numerator: FloatArray,
    denominator: FloatArray | float,
    otherwise: FloatArray | float,
) -> FloatArray:
    """Divide, with the value `otherwise` where the denominator is 0; in float32 if `otherwise` is float32.

    Examples
    --------
    >>> ratio(np.array([1.0, 0.0]), np.array([2.0, 0.0]), 7.0).tolist()
    [0.5, 7.0]
    """
    below = np.broadcast_to(
        np.asarray(denominator, dtype=np.float64), np.shape(numerator)
    )
    dtype: DTypeLike = np.float64
    if getattr(otherwise, "dtype", None) == np.float32:
        dtype = np.float32

    defaults = np.asarray(otherwise, dtype=dtype)
    out = np.array(np.broadcast_to(defaults, np.shape(numerator)))
    return np.asarray(np.divide(numerator, below, out=out, where=below != 0))


def _weighted_cells(block: Predictions) -> Iterator[tuple[Matrix, Any]]:
    """Yield for each model its scores times its weight, silence as 0, and its weight where it spoke: (n, l), or one."""
    if block.weights is None:
        weights = np.ones(len(block.models))
    else:
        weights = block.weights

    for (values, spoken), weight in zip(block.cells(), weights.tolist(), strict=True):
        said: Any = 1.0 if spoken is None else spoken
        yield (values, said) if weight == 1 else (values * weight, said * weight)


def places(A: Any, n_labels: int) -> tuple[NDArray[Any], ...]:
    """Tell the model, the label and the cell (instance · l + label) of each entry of a CSR matrix (n, m·l)."""
    model, label = np.divmod(A.indices, n_labels)
    return (
        model,
        label,
        np.repeat(np.arange(A.shape[0], dtype=np.int64) * n_labels, np.diff(A.indptr))
        + label,
    )


def is_sparse(filled: NDArray[Any]) -> bool:
    """Tell whether so few cells are not 0 that CSR makes what follows cheaper.

    Examples
    --------
    >>> is_sparse(np.zeros((9, 1))), is_sparse(np.ones((9, 1)))
    (True, False)
    """
    return bool(np.count_nonzero(filled) < SPARSE_FILL * filled.size)


def as_csr(matrix: NDArray[Any], dtype: Any) -> Matrix:
    """Turn a contiguous matrix, row by row or column by column, to CSR of `dtype`.

    Examples
    --------
    >>> as_csr(np.array([[True, False]]), np.float64).data
    array([1.])
    """
    if not matrix.flags.c_contiguous:  # half the time of turning it to rows first
        return as_csr(matrix.T, dtype).T.tocsr()

    n, width = matrix.shape
    # SciPy's own conversion goes by way of COO, at four times the cost.
    flat = matrix.ravel()
    filled = np.flatnonzero(
        flat if matrix.dtype.kind == "b" else flat != 0
    )  # bits are found at twice the speed
    starts = np.searchsorted(filled, np.arange(n + 1) * width)
    columns = filled - np.repeat(np.arange(n) * width, np.diff(starts))
    if matrix.dtype.kind == "b":
        data = np.ones(len(filled), dtype)
    else:
        data = flat[filled].astype(dtype)

    return sparse.csr_array(
        (data, columns.astype(np.int32), starts.astype(np.int32)), shape=matrix.shape
    )


def _dense_sum(matrices: list[NDArray[Any]]) -> NDArray[Any]:
    """Add up matrices; decisions are counted in small integers, many at a time."""
    dtype: DTypeLike = np.int32
    if any(values.dtype.kind == "f" for values in matrices):
        dtype = np.float64
    elif len(matrices) < 256:
        dtype = np.uint8

    total = np.zeros_like(matrices[0], dtype=dtype)
    for values in matrices:
        np.add(
            total,
            values.view(np.uint8) if values.dtype.kind == "b" else values,
            out=total,
            casting="unsafe",
        )

    return total
