"""Linear maps of labels: how the score of one label changes those of others.

A map is a matrix (l, l). In large label spaces it does not fit into memory, and is
divided into frequent and rare labels (`HeadTailMap`).
"""

from collections.abc import Callable

import numpy as np
from scipy import linalg, sparse

from ..errors import InputError
from ..predictions import FloatArray
from ..predictions.blocks import NamedValues, PairValues
from .block_sums import dense, product
from .gram import Gram
from .head_tail_map import HeadTailMap
from .matrix_types import CSRArray, RowSlice
from .sparse_scores import SparseScores, select_best

# A linear map of labels: a matrix (l, l), or exact for frequent labels only.
LabelMap = FloatArray | HeadTailMap


def shrink_labels(
    gram: Gram,
    scale: float,
    compute_shrinkage: Callable[[FloatArray], FloatArray],
    n_iter: int | None,
) -> LabelMap:
    """Return V diag(h) V' for the eigenvectors V of a Gram matrix.

    Parameters
    ----------
    gram : Gram
        Sums of products of two labels.
    scale : float
        Factor of the eigenvalues.
    compute_shrinkage : callable
        Returns h for the scaled eigenvalues.
    n_iter : int or None
        Number of iterations behind h. In large label spaces it must be 1: the map is
        then exact for frequent labels, and of first order for the others.

    Returns
    -------
    ndarray of shape (l, l) or HeadTailMap
    """
    if gram.is_large:
        if n_iter != 1:
            raise InputError(
                where="n_iter", found=n_iter, expected="1, for a large label space"
            )
        from .head_tail_shrinkage import shrink_large_gram

        return shrink_large_gram(gram.rows, scale)

    eigenvalues, eigenvectors = decompose_gram(gram, keep_all=n_iter == 0)
    shrinkage = compute_shrinkage(scale * eigenvalues)
    label_map = (eigenvectors * shrinkage) @ eigenvectors.T

    # Labels that never occur together have 0 here, except for rounding errors that
    # would rank them at random.
    n_labels = len(label_map)
    smallest = 10 * n_labels * np.finfo(np.float64).eps * shrinkage.max()
    label_map[np.abs(label_map) < smallest] = 0.0
    return np.asarray(label_map)


def decompose_gram(gram: Gram, keep_all: bool = False) -> tuple[FloatArray, FloatArray]:
    """Return the eigenvalues and eigenvectors of a Gram matrix.

    With fewer rows than columns, all other eigenvalues are 0; they are left out unless
    `keep_all` is true.

    Parameters
    ----------
    gram : Gram
        The matrix (v, v).
    keep_all : bool, default=False
        Whether eigenvalues that must be 0 are returned, too.

    Returns
    -------
    eigenvalues : ndarray of shape (k,)
    eigenvectors : ndarray of shape (v, k)
    """
    rows = gram.rows
    if rows is not None and rows.shape[0] < rows.shape[1] and not keep_all:
        _, singular_values, directions = linalg.svd(dense(rows), full_matrices=False)
        return singular_values**2, directions.T
    eigenvalues, eigenvectors = linalg.eigh(np.array(gram), overwrite_a=True)
    return eigenvalues, eigenvectors


def apply_label_map(
    values: PairValues, label_map: LabelMap
) -> FloatArray | SparseScores:
    """Multiply pair values by a map of labels.

    Parameters
    ----------
    values : PairValues
        One value per instance-label pair.
    label_map : ndarray of shape (l, l) or HeadTailMap
        What each label adds to each other label.

    Returns
    -------
    ndarray of shape (n, l) or SparseScores
    """
    if not isinstance(label_map, HeadTailMap):
        return product(values.to_matrix(), label_map)

    default = np.zeros(values.shape[1])

    def keep_best(scores: CSRArray, rows: RowSlice) -> CSRArray:
        return select_best(scores, default)

    rows = values.to_matrix()[:, label_map.labels]
    scores = label_map.multiply_rows(rows, default, keep_best)
    if isinstance(values, NamedValues):
        scores = _fill_unseen_instances(scores, values, label_map)
    return SparseScores(scores, default)


def get_map_column(label_map: LabelMap, label: int, n_labels: int) -> FloatArray:
    """Return what each label adds to one label.

    Parameters
    ----------
    label_map : ndarray of shape (l, l) or HeadTailMap
        What each label adds to each other label.
    label : int
        Position of the label.
    n_labels : int
        Number of all labels.

    Returns
    -------
    ndarray of shape (l,)
    """
    if isinstance(label_map, HeadTailMap):
        return label_map.compute_column(label, n_labels)
    return np.asarray(label_map[:, label])


def _fill_unseen_instances(
    scores: CSRArray, values: NamedValues, label_map: HeadTailMap
) -> CSRArray:
    """Return scores (n, l) in which instances that no model saw have the prior's."""
    pairs = values.pairs
    is_unseen = np.asarray(~pairs.participation.any(axis=1))
    unseen = np.flatnonzero(is_unseen[pairs.group])
    if len(unseen) == 0:
        return scores

    # All of them have the same scores.
    prior = np.asarray(values.other[pairs.group[unseen[0]]], dtype=np.float64)
    prior_scores = sparse.csr_array(label_map.multiply_row(prior)[np.newaxis])
    prior_scores = select_best(prior_scores, np.zeros(values.shape[1]))

    # Append the row once, and take it for each of these instances.
    n_instances = len(pairs.group)
    source = np.arange(n_instances)
    source[unseen] = n_instances
    return sparse.vstack([scores, prior_scores], format="csr")[source]
