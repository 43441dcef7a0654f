"""Arithmetic on a block gives the same whichever way it is done, and leaves the block as it is."""

import numpy as np
import pytest
from scipy import sparse

from mlconsensus.linalg import block_sums as kernels


@pytest.mark.parametrize("fill", [0.0, 0.01, 0.04, 0.5])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_of_votes_times_a_matrix(fill, dtype):
    rng = np.random.default_rng(0)
    m = 4
    n = 60
    l = 30
    dense = np.where(rng.random((n, m * l)) < fill, rng.random((n, m * l)), 0).astype(
        dtype
    )
    weights = rng.random((m, l)).astype(dtype)
    B = rng.random((l, l)).astype(dtype)
    expected = sum(dense[:, k * l : (k + 1) * l] * weights[k] for k in range(m)) @ B
    A = sparse.csr_array(dense)
    if dtype is np.float64:
        tolerance = 1e-12
    else:
        tolerance = 1e-5
    for inputs in (A, dense):
        result = kernels.product(kernels.folded(inputs, weights), B)
        assert result.dtype == dtype
        np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)
    assert (A.toarray() == dense).all()
