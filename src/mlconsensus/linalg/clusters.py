"""Clusterings of instances, as the nodes of a graph that group nodes of models are in, too."""

from typing import Any

import numpy as np
from scipy import sparse

from ..predictions import Predictions
from .block_sums import BoolArray, FloatArray, scaled


def memberships(block: Predictions) -> Any:
    """Tell as 1 or 0 which clusters each instance is in, as CSR (n, c); c is 0 where the panel has no clusterings.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel = mlc.Predictions([[[1], [0]]]).with_clusterings({"k-means": ["left", "right"]})
    >>> memberships(panel).toarray().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    inside = block.members >= 0
    starts = np.concatenate([[0], np.cumsum(inside.sum(axis=1))])
    ones = np.ones(int(starts[-1]))
    return sparse.csr_array(
        (ones, block.members[inside], starts), shape=(len(block), len(block.clusters))
    )


def pair_sums(C: Any, weights: FloatArray) -> FloatArray:
    """Compute Σ_i w_iℓ c_i c_i' for each label, as (l, c, c), from memberships (n, c) and weights (n, l).

    Examples
    --------
    >>> pair_sums(sparse.csr_array([[1.0, 0.0, 1.0]]), np.array([[0.5]])).tolist()
    [[[0.5, 0.0, 0.5], [0.0, 0.0, 0.0], [0.5, 0.0, 0.5]]]
    """
    c = C.shape[1]
    return np.array([(scaled(C, own).T @ C).toarray() for own in weights.T]).reshape(
        -1, c, c
    )


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
