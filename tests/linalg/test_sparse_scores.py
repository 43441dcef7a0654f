"""Scores of many labels: the best of what is stored and what is not."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from mlconsensus.errors import InputError
from mlconsensus.execution.threads import ResourceLimits
from mlconsensus.linalg import label_map, sparse_scores
from mlconsensus.linalg.sparse_scores import SparseScores


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 9), fill=st.floats(0, 1))
def test_the_best_labels_are_those_of_the_whole_table(seed, k, fill):
    rng = np.random.default_rng(seed)
    above = np.round(rng.normal(size=(6, 9)), 1) * (rng.random((6, 9)) < fill)
    default = np.round(rng.random(9), 1)  # with ties
    scores = SparseScores(sparse.csr_array(above), default)
    table = scores.toarray()
    labels, result = scores.top(k)
    expected = np.argsort(-table, axis=1, kind="stable")[:, :k]
    np.testing.assert_allclose(result, np.take_along_axis(table, expected, axis=1))
    np.testing.assert_array_equal(labels, expected)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_what_is_left_out_is_not_among_the_best(seed):
    rng = np.random.default_rng(seed)
    above = rng.normal(size=(5, 20)) * (rng.random((5, 20)) < 0.7)
    default = rng.random(20)
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(sparse_scores, "KEPT", 4)
        selected = sparse_scores.best(sparse.csr_array(above), default)
    assert selected.nnz < np.count_nonzero(above)
    complete = SparseScores(sparse.csr_array(above), default)
    subset = SparseScores(selected, default)
    np.testing.assert_allclose(subset.top(4)[1], complete.top(4)[1])


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 9))
def test_the_kth_best_of_rows_of_all_sizes(seed, k):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 20, 30) ** 2
    starts = np.append(0, np.cumsum(sizes))
    scores = np.round(rng.random(sizes.sum()), 1)
    rows = [np.sort(scores[a:b])[::-1] for a, b in pairwise(starts)]
    expected = [row[k - 1] if len(row) > k else -np.inf for row in rows]
    subsample_for_diagnostics = []
    partition = np.partition
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(
            np,
            "partition",
            lambda table, *more, **how: (
                subsample_for_diagnostics.append(table.size),
                partition(table, *more, **how),
            )[1],
        )
        np.testing.assert_array_equal(
            sparse_scores.kth_best(starts, scores, k), expected
        )
    assert sum(subsample_for_diagnostics) <= 2 * len(
        scores
    )  # one long row does not make all others long


def test_tables_that_do_not_fit_are_refused(monkeypatch):
    monkeypatch.setattr(sparse_scores, "get_limits", lambda: ResourceLimits(memory=8))
    with pytest.raises(InputError, match="top\\(k\\) gives the best"):
        SparseScores(sparse.csr_array((2, 2)), np.zeros(2)).toarray()


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    head=st.integers(2, 40),
    n_kept=st.sampled_from([3, 100]),
)
def test_the_map_is_within_its_bound(seed, head, n_kept):
    rng = np.random.default_rng(seed)
    l = 40
    rows = sparse.csr_array(
        (rng.random((200, l)) < 1 / np.arange(2, l + 2)) * rng.random((200, l))
    )
    K = (rows.T @ rows).tocsr() * (3 / 200)
    exact = K.toarray() @ np.linalg.inv(np.eye(l) + K.toarray())
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(
            label_map, "KEPT", n_kept
        )  # how many others a label of the tail brings up
        result = label_map.shrunk(
            np.arange(l),
            K[:head].toarray(),
            K.diagonal()[head:],
            [(slice(0, l), K[head:, head:])],
        )
    complete = np.stack([result.column(label, l) for label in range(l)], axis=1)
    assert np.abs(complete - exact).max() <= result.bound
    assert result.bound < 0.2 or head < 10
    one = rng.random(l)
    np.testing.assert_allclose(
        result.whole(one), one @ complete, atol=1e-5
    )  # with a tail, single precision


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), head=st.integers(1, 12))
def test_rows_are_multiplied_where_it_matters(seed, head):
    rng = np.random.default_rng(seed)
    rows = sparse.csr_array((rng.random((50, 12)) < 0.3) * rng.random((50, 12)))
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(label_map, "HEAD", head)
        changed.setattr(label_map, "EXACT", head)
        order, h = label_map.head_first(rows.sum(axis=0))
    with_all = np.concatenate(
        [block for _, block in label_map.with_head(rows, order, h)]
    )
    pieces = [*label_map.among_tail(order, h, rows)]
    complete = (rows.T @ rows).toarray()[np.ix_(order, order)]
    np.testing.assert_allclose(with_all, complete[:h])
    tail = [(subset, block) for subset, (block,) in pieces]
    assert all(
        np.allclose(block.toarray(), complete[h:, h:][subset]) for subset, block in tail
    )
    assert sum(block.shape[0] for _, block in tail) == len(order) - h
    scales = {"before": rng.random(len(order)), "after": rng.random(len(order))}
    result = label_map.shrunk(order, with_all, complete.diagonal()[h:], tail)._replace(
        **scales
    )
    moved = result.applied(
        rows[:, order], np.zeros(12), lambda block, _: block
    ).toarray()
    dense = np.stack([result.column(label, 12) for label in range(12)], axis=1)
    position = (rows.toarray() > 0) | (np.arange(12) == order[:h, None]).any(axis=0)
    np.testing.assert_allclose(
        moved[position], (rows.toarray() @ dense)[position], atol=1e-6
    )  # with a tail, single precision


def test_a_label_of_the_tail_brings_up_so_many_others_at_most(monkeypatch):
    l = 300
    K = sparse.csr_array(np.full((l, l), 1e-3) + np.diag(np.full(l, 0.1)))
    monkeypatch.setattr(label_map, "NEIGHBOURS", 7)
    K.data[:] = np.abs(K.data) * (
        1 + np.random.default_rng(0).random(K.nnz) / 10
    )  # no two alike
    result = label_map.shrunk(
        np.arange(l), np.eye(1, l), K.diagonal()[1:], [(slice(0, l), K[1:, 1:])]
    )
    assert (np.diff(result.tail.indptr)[1:] == 8).all()  # and itself
