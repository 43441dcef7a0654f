"""Putting like beside like: the order of a heat map's rows, and which rows to show where there are too many."""

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from ..arithmetic.products import FloatArray


def ordered(similarity: FloatArray) -> NDArray[np.intp]:
    """Order things so that similar ones are neighbours: the leaves of a tree that joins the most similar first.

    Examples
    --------
    >>> ordered(np.array([[1, 0, 0.9], [0, 1, 0], [0.9, 0, 1]])).tolist()
    [1, 2, 0]
    """
    if len(similarity) < 3:
        return np.arange(len(similarity))
    apart = np.maximum(1 - (similarity + similarity.T) / 2, 0)
    np.fill_diagonal(apart, 0)
    tree = linkage(squareform(apart, checks=False), method="average", optimal_ordering=True)
    return np.asarray(leaves_list(tree), dtype=np.intp)


def strongest(similarity: FloatArray, most: int) -> NDArray[np.intp]:
    """Choose the `most` things that have the strongest tie, for better or worse, with any other.

    Examples
    --------
    >>> strongest(np.array([[1, 0.1, -0.9], [0.1, 1, 0], [-0.9, 0, 1]]), 2).tolist()
    [0, 2]
    """
    ties = np.abs(similarity - np.diag(np.diag(similarity))).max(axis=1)
    return np.sort(np.argsort(-ties, kind="stable")[:most])
