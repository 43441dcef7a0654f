"""Maps of labels that are divided into a head and a tail."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from mlconsensus.linalg import head_tail_map, head_tail_shrinkage
from mlconsensus.linalg.head_tail_map import order_by_frequency
from mlconsensus.linalg.head_tail_shrinkage import (
    iterate_head_products,
    iterate_tail_products,
    shrink_head_and_tail,
)


def make_dense(label_map, n_labels):
    """Return all columns of a map, shape (l, l)."""
    columns = []
    for label in range(n_labels):
        columns.append(label_map.compute_column(label, n_labels))
    return np.stack(columns, axis=1)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), n_head=st.integers(2, 40))
def test_the_error_is_within_the_bound(seed, n_head):
    rng = np.random.default_rng(seed)
    n_labels = 40
    frequency = 1 / np.arange(2, n_labels + 2)
    is_named = rng.random((200, n_labels)) < frequency
    rows = sparse.csr_array(is_named * rng.random((200, n_labels)))
    gram = (rows.T @ rows).tocsr() * (3 / 200)
    exact = gram.toarray() @ np.linalg.inv(np.eye(n_labels) + gram.toarray())

    label_map = shrink_head_and_tail(
        np.arange(n_labels),
        gram[:n_head].toarray(),
        gram.diagonal()[n_head:],
        [(slice(0, n_labels), gram[n_head:, n_head:])],
    )
    complete = make_dense(label_map, n_labels)
    assert np.abs(complete - exact).max() <= label_map.bound
    assert label_map.bound < 0.2 or n_head < 10

    # With a tail, the map is float32.
    row = rng.random(n_labels)
    np.testing.assert_allclose(label_map.multiply_row(row), row @ complete, atol=1e-5)


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    head_size=st.integers(1, 12),
    n_best=st.sampled_from([3, 100]),
)
def test_rows_are_multiplied_where_it_matters(seed, head_size, n_best):
    rng = np.random.default_rng(seed)
    is_named = rng.random((50, 12)) < 0.3
    rows = sparse.csr_array(is_named * rng.random((50, 12)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(head_tail_map, "HEAD_SIZE", head_size)
        patch.setattr(head_tail_map, "MAX_EXACT_LABELS", head_size)
        order, n_head = order_by_frequency(rows.sum(axis=0))

    # The products, in pieces, are those of the Gram matrix.
    gram = (rows.T @ rows).toarray()[np.ix_(order, order)]
    pieces = [products for _, products in iterate_head_products(rows, order, n_head)]
    head = np.concatenate(pieces)
    np.testing.assert_allclose(head, gram[:n_head])
    tail = []
    for labels, (products,) in iterate_tail_products(order, n_head, rows):
        expected = gram[n_head:, n_head:][labels]
        np.testing.assert_allclose(products.toarray(), expected)
        tail.append((labels, products))
    assert sum(products.shape[0] for _, products in tail) == len(order) - n_head

    # All labels of the head, and those of a row, have their scores.
    label_map = shrink_head_and_tail(order, head, gram.diagonal()[n_head:], tail)
    label_map = replace(
        label_map,
        input_scale=rng.random(len(order)),
        output_scale=rng.random(len(order)),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(head_tail_map, "KEPT", n_best)
        result = label_map.multiply_rows(
            rows[:, order], np.zeros(12), lambda scores, _: scores
        )
    is_head = np.isin(np.arange(12), order[:n_head])
    is_certain = rows.toarray() > 0
    if n_best == 100:
        is_certain |= is_head
    expected = rows.toarray() @ make_dense(label_map, 12)
    np.testing.assert_allclose(
        result.toarray()[is_certain], expected[is_certain], atol=1e-6
    )


def test_a_label_of_the_tail_has_at_most_so_many_neighbors(monkeypatch):
    n_labels = 300
    gram = sparse.csr_array(np.full((n_labels, n_labels), 1e-3))
    gram.setdiag(0.101)
    monkeypatch.setattr(head_tail_shrinkage, "MAX_NEIGHBORS", 7)
    # No two entries are equal.
    gram.data *= 1 + np.random.default_rng(0).random(gram.nnz) / 10
    label_map = shrink_head_and_tail(
        np.arange(n_labels),
        np.eye(1, n_labels),
        gram.diagonal()[1:],
        [(slice(0, n_labels), gram[1:, 1:])],
    )

    # And the label itself.
    n_neighbors = np.diff(label_map.tail.indptr)[1:]
    assert (n_neighbors == 8).all()
