"""Gram matrices in the smaller of two forms."""

import numpy as np
import pytest
from scipy import sparse

from mlconsensus.execution import threads
from mlconsensus.linalg.gram import Gram, as_gram

RNG = np.random.default_rng(0)
ROWS = RNG.random((12, 5)) * (RNG.random((12, 5)) < 0.5)


@pytest.mark.parametrize(
    "form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"]
)
@pytest.mark.parametrize(
    "sizes", [[12], [2, 10], [2, 2, 8], [1] * 12, [4, 8], [6, 6], [11, 1]]
)
def test_pieces_add_up(form, sizes):
    pieces = np.split(ROWS, np.cumsum(sizes)[:-1])
    total = sum((Gram.of(form(piece)) for piece in pieces), 0)
    np.testing.assert_allclose(np.asarray(total), ROWS.T @ ROWS, atol=1e-14)
    np.testing.assert_allclose(total.sums(), (ROWS.T @ ROWS).sum(axis=1), atol=1e-13)
    assert total.rows is None


def test_rows_are_kept_while_they_are_few():
    few = Gram.of(ROWS[:2]) + Gram.of(sparse.csr_array(ROWS[2:4]))
    np.testing.assert_array_equal(few.rows, ROWS[:4])
    assert (few + Gram.of(ROWS[4:5])).rows is None


def test_rows_are_kept_where_the_product_would_not_fit(monkeypatch):
    monkeypatch.setattr(
        threads._bound, "limits", threads.ResourceLimits(memory=3 * 8 * 25 - 1)
    )
    many = Gram.of(ROWS[:6]) + Gram.of(ROWS[6:])
    np.testing.assert_array_equal(many.rows, ROWS)
    np.testing.assert_allclose(many.sums(), (ROWS.T @ ROWS).sum(axis=1))
    monkeypatch.setattr(
        threads._bound, "limits", threads.ResourceLimits(memory=3 * 8 * 25)
    )
    assert (many + Gram.of(ROWS[:1])).rows is None


def test_shape_is_how_it_is_seen():
    seen = Gram.of(RNG.random((3, 6)), (2, 3, 2, 3))
    assert seen.shape == np.asarray(seen).shape == (2, 3, 2, 3)
    assert as_gram(np.asarray(seen)).sums().shape == (6,)


def test_arrays_and_nothing_can_be_added():
    gram = Gram.of(ROWS[:2])
    inputs = np.eye(5)
    for total in (gram + inputs, as_gram(inputs) + gram):
        np.testing.assert_allclose(np.asarray(total), ROWS[:2].T @ ROWS[:2] + np.eye(5))
    assert gram + 0 is gram
