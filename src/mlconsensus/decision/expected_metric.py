r"""Label sets that maximize the expected value of a metric.

The probabilities :math:`p_j` of an instance's labels are taken to be independent. Y is
the set of relevant labels and S the set to choose.

============  =================================================================
metric        what is maximized
============  =================================================================
``f1``        the expected F1 of each instance, 2 \|S ∩ Y\| / (\|S\| + \|Y\|),
              which is 1 if both sets are empty: `best_f1`
``micro-f1``  F1 of all instances together: `best_micro_f1`
``hamming``   the expected number of correct instance-label pairs:
              `best_hamming`
``top-k``     the expected precision of k labels for each instance: `top_k`
============  =================================================================

Among the sets of k labels, the expected F1 is highest for the k most probable ones.
With :math:`1 / (k + 1 + N) = \int_0^1 t^{k + N} dt` it is

.. math::

    E F_1(S_k) = 2 \int_0^1 t^k \prod_i (1 - p_i + p_i t)
    \sum_{j \in S_k} \frac{p_j}{1 - p_j + p_j t} \, dt \qquad (1)

The integrand is a polynomial of degree k + l - 1 at most, which Gauss-Legendre
quadrature with l nodes integrates exactly. At most `_MAX_NODES` nodes are used; the
error is then far below the differences that matter.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ..errors import one_of
from ..linalg.matrix_types import RowSlice
from ..metrics._rank_counts import map_row_blocks
from ..predictions import BoolArray, FloatArray, IntArray
from .label_sets import Empty, check_scores, match_instances

Metric = Literal["f1", "micro-f1", "hamming", "top-k"]

METRICS: tuple[Metric, ...] = ("f1", "micro-f1", "hamming", "top-k")

_MAX_NODES = 64


def find_metric(name: str, where: str = "metric") -> Metric:
    """Return the metric that a user named.

    Parameters
    ----------
    name : str
        Upper or lower case, with hyphens or underscores.
    where : str, default="metric"
        The place of the name, for the error message.

    Returns
    -------
    str

    Examples
    --------
    >>> find_metric("Micro_F1")
    'micro-f1'
    >>> find_metric("haming")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: metric: found 'haming', expected one of f1, micro-f1,
    hamming, top-k; did you mean 'hamming'?
    """
    key = name.lower().replace("_", "-")
    one_of(key, METRICS, where)
    position = METRICS.index(key)  # type checkers do not know the names
    return METRICS[position]


def best_hamming(probabilities: ArrayLike, *, empty: Empty = "keep") -> BoolArray:
    """Select the labels that are more probable than not.

    They have the lowest expected Hamming loss.

    Parameters
    ----------
    probabilities : array-like of shape (n, l)
        Probability of each label, as in `Consensus.probabilities`.
    empty : {"keep", "top"}, default="keep"
        What happens to an instance without a label: ``"keep"`` it empty, or assign the
        most probable label (``"top"``).

    Returns
    -------
    ndarray of bool of shape (n, l)

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.decision.best_hamming([[0.9, 0.4, 0.6]])
    array([[ True, False,  True]])
    """
    matrix = check_scores(probabilities)
    counts = (matrix > 0.5).sum(axis=1)
    return np.asarray(match_instances(matrix, counts, empty=empty))


def best_f1(probabilities: ArrayLike, *, empty: Empty = "keep") -> BoolArray:
    """Select the labels of the highest expected F1 of each instance.

    F1 is that of one instance, and 1 if an instance has no relevant label and gets
    none. Labels are taken to be independent.

    Parameters
    ----------
    probabilities : array-like of shape (n, l)
        Probability of each label, as in `Consensus.probabilities`.
    empty : {"keep", "top"}, default="keep"
        What happens to an instance without a label: ``"keep"`` it empty, or assign the
        most probable label (``"top"``).

    Returns
    -------
    ndarray of bool of shape (n, l)

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.decision.best_f1([[0.9, 0.7, 0.1], [0.1, 0.2, 0.1]])
    array([[ True,  True, False],
           [False, False, False]])
    """
    matrix = check_scores(probabilities)
    clipped = np.clip(matrix, 0, 1)
    counts = np.zeros(len(matrix), dtype=np.int64)

    def count_rows(rows: RowSlice) -> None:
        counts[rows] = _find_best_counts(clipped[rows])

    if matrix.size:
        n, l = matrix.shape
        map_row_blocks((n, l * min(l, _MAX_NODES)), count_rows)

    return np.asarray(match_instances(matrix, counts, empty=empty))


def _find_best_counts(probabilities: FloatArray) -> IntArray:
    """Return the size (n,) of the sets with the highest expected F1, Eq. (1)."""
    descending = -np.sort(-probabilities, axis=1)
    l = descending.shape[1]

    # Nodes in (0, 1): of the integral over t.
    nodes, weights = np.polynomial.legendre.leggauss(min(l, _MAX_NODES))
    t = (nodes + 1) / 2
    weights = weights / 2

    # 1 - p + p t of each instance, label and node.
    p = descending[:, :, np.newaxis]
    factors = 1 - p + p * t
    products = factors.prod(axis=1, keepdims=True)

    # The sum over the k best labels, for k = 1, ..., l.
    sums = np.cumsum(p / factors, axis=1)
    k = np.arange(1, l + 1)[:, np.newaxis]
    expected = 2 * (t**k * products * sums) @ weights

    # No label is right if none is relevant.
    expected_empty = np.prod(1 - descending, axis=1, keepdims=True)
    expected = np.concatenate([expected_empty, expected], axis=1)
    return np.asarray(expected.argmax(axis=1))
