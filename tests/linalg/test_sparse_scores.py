"""Scores of many labels: the best of what is stored and what is not."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from mlconsensus.errors import InputError
from mlconsensus.execution.threads import ResourceLimits
from mlconsensus.linalg import sparse_scores
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
        selected = sparse_scores.select_best(sparse.csr_array(above), default)
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
    table_sizes = []
    partition = np.partition

    def count_and_partition(table, *args, **kwargs):
        table_sizes.append(table.size)
        return partition(table, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np, "partition", count_and_partition)
        result = sparse_scores.kth_best(starts, scores, k)
    np.testing.assert_array_equal(result, expected)

    # One long row does not make all others long.
    assert sum(table_sizes) <= 2 * len(scores)


def test_tables_that_do_not_fit_are_refused(monkeypatch):
    monkeypatch.setattr(sparse_scores, "get_limits", lambda: ResourceLimits(memory=8))
    with pytest.raises(InputError, match="top\\(k\\) gives the best"):
        SparseScores(sparse.csr_array((2, 2)), np.zeros(2)).toarray()
