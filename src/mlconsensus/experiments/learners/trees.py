"""Binary relevance with decision trees, which differ more from shuffle to shuffle than linear models do."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .base import BoolArray, Learner, binary_relevance, fold_by_fold
from .growing import Entries, Tree, grow_tree, sorted_entries


def fit_tree(features: Entries, targets: BoolArray, rng: np.random.Generator) -> Tree:
    """Grow one tree until its leaves are pure.

    Examples
    --------
    >>> seen, unseen = for_trees(sparse.csr_array(np.eye(4)), sparse.csr_array(np.eye(4)))
    >>> fit_tree(seen, np.array([True, False, False, False]), np.random.default_rng(0)).predict(unseen).tolist()
    [True, False, False, False]
    """
    return grow_tree(features, targets, rng)


def for_trees(seen: sparse.csr_array, unseen: sparse.csr_array) -> tuple[Entries, Any]:
    """Sort the entries of the seen features, once for the trees of all labels.

    Examples
    --------
    >>> for_trees(sparse.csr_array([[1.0]]), sparse.csr_array([[2.0]]))[0].values
    array([1.], dtype=float32)
    """
    return sorted_entries(seen), unseen


TREES = Learner(
    "binary relevance with decision trees", fold_by_fold(binary_relevance(fit_tree, for_trees)), labels_at_once=16
)
