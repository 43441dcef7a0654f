"""Arithmetic on dense and on CSR matrices gives the same results."""

import numpy as np
import pytest
from scipy import sparse

from mlconsensus.linalg import block_sums


@pytest.fixture(params=[0.0, 0.01, 0.04, 0.5])
def matrix(request):
    rng = np.random.default_rng(0)
    values = rng.random((60, 30))
    return np.where(rng.random(values.shape) < request.param, values, 0)


def test_gram_of_both_forms(matrix, monkeypatch):
    expected = matrix.T @ matrix
    for at_once in (4, 2048):
        monkeypatch.setattr(block_sums, "_COLUMNS_AT_ONCE", at_once)
        for form in (matrix, sparse.csr_array(matrix)):
            np.testing.assert_allclose(block_sums.gram(form), expected, atol=1e-12)


def test_scaled_rows_and_sums_of_both_forms(matrix):
    weights = np.arange(60.0)
    expected = matrix * weights[:, None]
    as_csr = sparse.csr_array(matrix)
    for form in (matrix, as_csr):
        result = block_sums.scale_rows(form, weights)
        np.testing.assert_array_equal(block_sums.dense(result), expected)
        np.testing.assert_allclose(block_sums.row_sums(result), expected.sum(axis=1))
        np.testing.assert_allclose(block_sums.column_sums(result), expected.sum(axis=0))
    assert (as_csr.toarray() == matrix).all()


def test_products_and_joined_columns_of_both_forms(matrix):
    expected = matrix @ np.ones((30, 2))
    for form in (matrix, sparse.csr_array(matrix)):
        result = block_sums.product(form, np.ones((30, 2)))
        np.testing.assert_allclose(result, expected, atol=1e-12)
        joined = block_sums.join_columns(form, matrix)
        np.testing.assert_array_equal(
            block_sums.dense(joined), np.hstack([matrix, matrix])
        )


def test_ratio_keeps_single_precision():
    default = np.array([7.0, 7.0], dtype=np.float32)
    result = block_sums.ratio(np.array([1.0, 1.0]), np.array([2.0, 0.0]), default)
    assert result.dtype == np.float32
    assert result.tolist() == [0.5, 7.0]
