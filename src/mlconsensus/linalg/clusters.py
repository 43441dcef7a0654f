"""Clusterings of instances: sums and paths between their clusters."""

from typing import Any

import numpy as np

from .block_sums import BoolArray, FloatArray, scaled


def pair_sums(C: Any, weights: FloatArray) -> FloatArray:
    """Return Σ_i w_iℓ c_i c_i' for each label, (l, c, c).

    `C` is the membership of instances in clusters (n, c); weights are (n, l).

    Examples
    --------
    >>> from scipy import sparse
    >>> pair_sums(sparse.csr_array([[1.0, 0.0, 1.0]]), np.array([[0.5]])).tolist()
    [[[0.5, 0.0, 0.5], [0.0, 0.0, 0.0], [0.5, 0.0, 0.5]]]
    """
    n_clusters = C.shape[1]
    sums = np.zeros((weights.shape[1], n_clusters, n_clusters))
    for label, label_weights in enumerate(weights.T):
        sums[label] = (scaled(C, label_weights).T @ C).toarray()
    return sums


def reaching(anchored: BoolArray, between: FloatArray) -> BoolArray:
    """Tell from which nodes (…, c) a path over `between` (…, c, c) leads to one that is `anchored`.

    Examples
    --------
    >>> reaching(np.array([True, False, False]), np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]])).tolist()
    [True, True, False]
    """
    while True:
        further = anchored | ((between > 0) & anchored[..., None, :]).any(axis=-1)
        if (further == anchored).all():
            return anchored

        anchored = further
