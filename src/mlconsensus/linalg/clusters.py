"""Clusterings of instances: sums and paths between their clusters."""

import numpy as np

from ..predictions import BoolArray, FloatArray
from .block_sums import scale_rows
from .matrix_types import CSRArray


def sum_pairs(membership: CSRArray, weights: FloatArray) -> FloatArray:
    """Return Σ_i w_iℓ c_i c_i' for each label.

    Parameters
    ----------
    membership : csr_array of shape (n, c)
        Membership of instances in clusters; its rows are c_i.
    weights : ndarray of shape (n, l)
        Weight of each instance-label pair.

    Returns
    -------
    ndarray of shape (l, c, c)

    Examples
    --------
    >>> from scipy import sparse
    >>> sum_pairs(sparse.csr_array([[1.0, 0.0, 1.0]]), np.array([[0.5]])).tolist()
    [[[0.5, 0.0, 0.5], [0.0, 0.0, 0.0], [0.5, 0.0, 0.5]]]
    """
    n_clusters = membership.shape[1]
    sums = np.zeros((weights.shape[1], n_clusters, n_clusters))
    for label, label_weights in enumerate(weights.T):
        sums[label] = (scale_rows(membership, label_weights).T @ membership).toarray()
    return sums


def find_connected(is_anchored: BoolArray, edges: FloatArray) -> BoolArray:
    """Return from which nodes a path leads to an anchored node.

    Parameters
    ----------
    is_anchored : ndarray of shape (..., c)
        Whether a path can end at a node.
    edges : ndarray of shape (..., c, c)
        Weights of the edges; those above 0 can be walked.

    Returns
    -------
    ndarray of shape (..., c)

    Examples
    --------
    >>> edges = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    >>> find_connected(np.array([True, False, False]), edges).tolist()
    [True, True, False]
    """
    is_edge = edges > 0
    is_connected = is_anchored
    while True:
        # One step further away from the anchored nodes.
        has_neighbor = (is_edge & is_connected[..., np.newaxis, :]).any(axis=-1)
        is_reached = is_connected | has_neighbor
        if (is_reached == is_connected).all():
            return is_connected
        is_connected = is_reached
