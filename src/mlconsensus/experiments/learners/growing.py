"""Exact decision trees on sparse features: entries are sorted once, and partitioned from node to node.

What grows is the tree of scikit-learn's ``DecisionTreeClassifier`` (Gini impurity, until leaves are pure), up to the
choice among equally good splits, which is random there and here. A node costs as much as its instances have entries,
not as much as there are features. `grow` is plain Python that Numba compiles.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...errors import InputError


class Entries(NamedTuple):
    """The non-zero cells of a feature matrix (n, d), sorted by feature, then value."""

    rows: NDArray[np.int32]
    features: NDArray[np.int32]
    values: NDArray[np.float32]
    n: int
    d: int


class Tree(NamedTuple):
    """A grown tree, node by node; the root is node 0."""

    feature: NDArray[np.int32]  # that the node asks about; -1: a leaf
    threshold: NDArray[np.float32]  # at most this: go left
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    label: NDArray[np.bool_]  # the majority of the node's instances

    def predict(self, features: sparse.csr_array) -> NDArray[np.bool_]:
        """Predict instances by walking them all down the tree, level by level."""
        by_column = features.astype(np.float32).tocsc()
        at = np.zeros(features.shape[0], dtype=np.intp)
        pending = np.flatnonzero(self.feature[at] >= 0)
        while len(pending):
            node = at[pending]
            values = np.asarray(by_column[pending, self.feature[node]]).ravel()
            at[pending] = np.where(values <= self.threshold[node], self.left[node], self.right[node])
            pending = pending[self.feature[at[pending]] >= 0]
        return self.label[at]


def sorted_entries(features: sparse.csr_array) -> Entries:
    """Sort the entries of a feature matrix, in the precision that scikit-learn's trees have.

    Examples
    --------
    >>> sorted_entries(sparse.csr_array([[0.0, 2.0], [3.0, 1.0]]))[:3]
    (array([1, 1, 0], dtype=int32), array([0, 1, 1], dtype=int32), array([3., 1., 2.], dtype=float32))
    """
    cells = features.tocoo()
    values = cells.data.astype(np.float32)
    order = np.lexsort((cells.row, values, cells.col))
    n, d = features.shape
    return Entries(cells.row[order].astype(np.int32), cells.col[order].astype(np.int32), values[order], n, d)


def grow_tree(entries: Entries, targets: NDArray[np.bool_], rng: np.random.Generator) -> Tree:
    """Grow one tree until its leaves are pure, or cannot be split.

    Examples
    --------
    >>> features = sparse.csr_array(np.eye(4))
    >>> targets = np.array([True, False, False, True])
    >>> grow_tree(sorted_entries(features), targets, np.random.default_rng(0)).predict(features)
    array([ True, False, False,  True])
    """
    order = rng.permutation(max(entries.d, 1)).astype(np.int32)
    made = _compiled()(entries.rows, entries.features, entries.values, targets, order)
    return Tree(*made)


@cache
def _compiled() -> Callable[..., Any]:
    try:
        import numba
    except ModuleNotFoundError:
        raise InputError(
            "learner trees: found no package to compile with, expected numba: pip install 'mlconsensus[experiments]'"
        ) from None
    compiled: Callable[..., Any] = numba.njit(cache=True, nogil=True)(grow)
    return compiled


def grow(rows: Any, features: Any, values: Any, targets: Any, order: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Grow a tree from sorted entries; among equally good features the one that `order`, turned by node, puts first."""
    n, m, d = len(targets), len(rows), len(order)
    rows, features, values = rows.copy(), features.copy(), values.copy()
    spare_rows, spare_features, spare_values = np.empty_like(rows), np.empty_like(features), np.empty_like(values)
    samples, spare_samples = np.arange(n), np.empty(n, np.int64)
    goes_left = np.zeros(n, np.bool_)
    room = max(2 * n, 1)
    node_feature, node_threshold = np.full(room, -1, np.int32), np.zeros(room, np.float32)
    node_left, node_right = np.zeros(room, np.int32), np.zeros(room, np.int32)
    node_label = np.zeros(room, np.bool_)
    stack = [(0, 0, n, 0, m)]  # node, its samples from and to, its entries from and to
    nodes = 1
    while len(stack) > 0:
        node, first_sample, last_sample, first_entry, last_entry = stack.pop()
        total, positive = last_sample - first_sample, 0
        for i in range(first_sample, last_sample):
            if targets[samples[i]]:
                positive += 1
        node_label[node] = 2 * positive > total
        if positive == 0 or positive == total:
            continue

        # The best split: for each feature its values in ascending order, the many zeros in their place as one.
        best, best_feature, best_rank, best_threshold = -1.0, -1, d, np.float32(0)
        entry = first_entry
        while entry < last_entry:
            feature, end, present = features[entry], entry, 0
            while end < last_entry and features[end] == feature:
                if targets[rows[end]]:
                    present += 1
                end += 1
            zeros, zeros_positive = total - (end - entry), positive - present
            rank = order[(feature + 7919 * node) % d]
            below, below_positive, at = 0, 0, entry
            previous, any_below, zeros_done = np.float32(0), False, zeros == 0
            while at < end or not zeros_done:
                if not zeros_done and (at >= end or values[at] > 0):
                    value, count, count_positive = np.float32(0), zeros, zeros_positive
                    zeros_done = True
                else:
                    value, count, count_positive = values[at], 0, 0
                    while at < end and values[at] == value:
                        count += 1
                        if targets[rows[at]]:
                            count_positive += 1
                        at += 1
                if any_below:
                    above, above_positive = total - below, positive - below_positive
                    below_negative, above_negative = below - below_positive, above - above_positive
                    # Largest where the weighted Gini impurity of the two parts is smallest.
                    score = (below_positive * below_positive + below_negative * below_negative) / below + (
                        above_positive * above_positive + above_negative * above_negative
                    ) / above
                    if score > best + 1e-9 or (score > best - 1e-9 and rank < best_rank):
                        best, best_feature, best_rank = score, feature, rank
                        best_threshold = previous + (value - previous) / np.float32(2)
                any_below, previous = True, value
                below += count
                below_positive += count_positive
            entry = end
        if best_feature < 0:
            continue

        # Which side each sample goes to; then samples and entries are parted, each side in its old order.
        for i in range(first_sample, last_sample):
            goes_left[samples[i]] = best_threshold >= 0
        for i in range(first_entry, last_entry):
            if features[i] == best_feature:
                goes_left[rows[i]] = values[i] <= best_threshold
        middle_sample, spare = first_sample, 0
        for i in range(first_sample, last_sample):
            if goes_left[samples[i]]:
                samples[middle_sample] = samples[i]
                middle_sample += 1
            else:
                spare_samples[spare] = samples[i]
                spare += 1
        samples[middle_sample:last_sample] = spare_samples[:spare]
        middle_entry, spare = first_entry, 0
        for i in range(first_entry, last_entry):
            if goes_left[rows[i]]:
                rows[middle_entry], features[middle_entry], values[middle_entry] = rows[i], features[i], values[i]
                middle_entry += 1
            else:
                spare_rows[spare], spare_features[spare], spare_values[spare] = rows[i], features[i], values[i]
                spare += 1
        rows[middle_entry:last_entry] = spare_rows[:spare]
        features[middle_entry:last_entry] = spare_features[:spare]
        values[middle_entry:last_entry] = spare_values[:spare]
        node_feature[node], node_threshold[node] = best_feature, best_threshold
        node_left[node], node_right[node] = nodes, nodes + 1
        stack.append((nodes, first_sample, middle_sample, first_entry, middle_entry))
        stack.append((nodes + 1, middle_sample, last_sample, middle_entry, last_entry))
        nodes += 2
    return node_feature[:nodes], node_threshold[:nodes], node_left[:nodes], node_right[:nodes], node_label[:nodes]
