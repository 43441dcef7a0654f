r"""Quantile normalization of the scores of models, without any ground truth.

Scores are comparable within a model, but not always between models: 0.02 of one model
may mean the same as 0.9 of another. The scores of each model are mapped, in their
order, to the median of the models' scores of the same rank. With :math:`F_k` the share
of the scores of model `k` below a value, and :math:`Q_k` its inverse,

.. math:: a \mapsto Q^*(F_k(a)), \qquad Q^*(u) = \operatorname{median}_k Q_k(u)

Models of one scale keep it, and a model of another scale is mapped to that of the
others. A score of 0 stays 0, because it is a plain no (and sparse matrices stay
sparse). Models with label sets only have no scale: they stay as they are, and do not
count for the median.

The shares come from a histogram whose bins are as fine near 0 and 1 as floats are,
relative to the distance: 128 bins for each halving of it. Counts add up, so this is one
more pass of statistics, merge, solve, apply.

=============  ==============  ==========================================
symbol         variable        shape
=============  ==============  ==========================================
:math:`u`      ``_SHARES``     (1025,)
:math:`F_k`    ``shares[k]``   (N_BINS,) at the upper edges of the bins
:math:`Q_k`    ``quantiles``   (models with scores, 1025)
:math:`Q^*`    ``common``      (1025,)
=============  ==============  ==========================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from scipy import sparse, special

from .array_types import Array, FloatArray, IntArray, Matrix

if TYPE_CHECKING:
    from .predictions import Predictions

# Bits of a float32 that a bin ignores. The 8 bits of the exponent and 7 of the
# mantissa remain.
_BITS = 16
_HALF = int(np.float32(0.5).view(np.uint32)) >> _BITS  # the bin that begins at 0.5
N_BINS = 2 * _HALF + 1
# Ranks at which quantiles are compared, most of them near 0 and 1.
_SHARES = special.expit(np.linspace(-16, 16, 1025))


class Statistics(NamedTuple):
    """Sums over instances."""

    counts: FloatArray  # (m, N_BINS) scores of each model by bin; 0 for label sets


class Knots(NamedTuple):
    """An increasing function, linear between its knots; the identity if all are 0."""

    at: FloatArray  # (knots,)
    to: FloatArray  # (knots,)

    def then(self, other: Self) -> Self:
        """Return this function followed by another.

        Examples
        --------
        >>> half = Knots(np.array([0.0, 1.0]), np.array([0.0, 0.5]))
        >>> half.then(half).to
        array([0.  , 0.25])
        """
        if self.at.any():
            return self._replace(to=rescale_scores(self.to, other))
        return other


class Scales(NamedTuple):
    """For each model, the function that maps its scores to the common scale."""

    at: FloatArray  # (m, knots)
    to: FloatArray  # (m, knots)

    def of_each(self) -> list[Knots]:
        """Return the function of each model."""
        return list(map(Knots, self.at, self.to))


def count_scores(block: Predictions) -> Statistics:
    """Count the scores of each model in bins.

    Parameters
    ----------
    block : Predictions
        A block of predictions.

    Returns
    -------
    Statistics

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> block = mlc.Predictions([[[0.0, 0.5, 0.5]], [[True, False, True]]])
    >>> count_scores(block).counts.sum(axis=1)
    array([3., 0.])
    """
    counts = np.zeros((len(block.models), N_BINS))
    if block.many:
        for k, (values, is_seen, is_known) in enumerate(block.apart()):
            counts[k] = np.bincount(_find_bins(values.data), minlength=N_BINS)
            counts[k, 0] += is_seen.sum() * is_known.sum() - values.nnz

        return Statistics(counts)

    for k, (values, is_present) in enumerate(block.cells()):
        if values.dtype.kind != "f":
            continue

        n_zeros = 0
        if sparse.issparse(values):
            scores = values.data
            n_present = np.prod(values.shape)
            if is_present is not None:
                n_present = is_present.sum()
            n_zeros = n_present - len(scores)
        elif is_present is None:
            scores = values.ravel()
        else:
            scores = values[is_present]

        counts[k] = np.bincount(_find_bins(scores), minlength=N_BINS)
        counts[k, 0] += n_zeros

    return Statistics(counts)


def estimate_scales(statistics: Statistics) -> Scales:
    """Map the quantiles of each model to the median of those of all models.

    Parameters
    ----------
    statistics : Statistics
        Counts of all instances.

    Returns
    -------
    Scales

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> scores = np.random.default_rng(0).random((500, 4))
    >>> predictions = mlc.Predictions([scores, scores, scores**4])
    >>> scales = estimate_scales(count_scores(predictions))
    >>> print(f"{np.interp(0.5**4, *scales.of_each()[2]):.2f}")
    0.50
    """
    counts = statistics.counts
    scores = np.zeros((len(counts), len(_SHARES) + 2))
    targets = np.zeros_like(scores)
    models_with_scores = np.flatnonzero(counts[:, 1:-1].any(axis=1))
    if len(models_with_scores) < 2:
        return Scales(scores, targets)

    # F_k at the upper edge of each bin.
    shares = np.cumsum(counts[models_with_scores], axis=1)
    shares /= shares[:, -1:]

    # Q_k and their median Q*.
    edges = _compute_upper_edges()
    quantiles = np.array([np.interp(_SHARES, row, edges) for row in shares])
    common = np.median(quantiles, axis=0)

    for row, model in enumerate(models_with_scores):
        knots = _map_quantiles(shares[row], quantiles[row], common)
        scores[model] = knots.at
        targets[model] = knots.to

    return Scales(scores, targets)


def _map_quantiles(
    shares: FloatArray, quantiles: FloatArray, common: FloatArray
) -> Knots:
    """Map the quantiles of one model to the common ones."""
    # A score of 0 stays 0: its value at its rank is subtracted from the others.
    zero = 0.0
    if shares[0] > 0:
        zero = np.interp(shares[0] / 2, _SHARES, common)
    height = max(common[-1] - zero, 1e-300)
    targets = np.maximum(common - zero, 0) * common[-1] / height

    # A score of many predictions has several ranks; it gets the middle of its targets.
    scores, first = np.unique(quantiles, return_index=True)
    last = np.append(first[1:], len(quantiles)) - 1
    middle = (targets[first] + targets[last]) / 2
    inner = np.flatnonzero((scores > 0) & (scores < 1))

    # The target of the score 1.
    top = targets[-1]
    if shares[-2] != 1:
        top = np.interp((shares[-2] + 1) / 2, _SHARES, targets)

    # The first knot is 0, and the last is repeated as often as there is space.
    end = 1 + len(inner)
    knot_scores = np.zeros(len(_SHARES) + 2)
    knot_scores[1:end] = scores[inner]
    knot_scores[end:] = 1
    knot_targets = np.zeros_like(knot_scores)
    knot_targets[1:end] = middle[inner]
    knot_targets[end:] = top
    return Knots(knot_scores, knot_targets)


def rescale_scores(values: Matrix, knots: Knots) -> Matrix:
    """Map the scores of one model to the common scale.

    Parameters
    ----------
    values : ndarray or csr_array of shape (n, l)
        Scores; label sets are returned as they are.
    knots : Knots
        The function of the model.

    Returns
    -------
    ndarray or csr_array of shape (n, l)

    Examples
    --------
    >>> knots = Knots(np.array([0.0, 0.2, 1.0]), np.array([0.0, 0.8, 1.0]))
    >>> rescale_scores(np.array([[0.0, 0.1]]), knots)
    array([[0. , 0.4]])
    """
    if not knots.at.any() or values.dtype.kind != "f":
        return values
    if not sparse.issparse(values):
        return np.interp(values, knots.at, knots.to)

    data = np.interp(values.data, knots.at, knots.to)
    return sparse.csr_array((data, values.indices, values.indptr), shape=values.shape)


def _find_bins(scores: Array) -> IntArray:
    """Return the bin of each score in [0, 1], in the order of scores."""
    # The bits of a positive float32 increase with its value; -0.0 + 0.0 is 0.0.
    distance = (np.minimum(scores, 1 - scores) + 0.0).astype(np.float32)
    lower = distance.view(np.uint32) >> _BITS
    bins = np.where(scores <= 0.5, lower, 2 * _HALF - lower)
    return np.asarray(bins, dtype=np.int64)


def _compute_upper_edges() -> FloatArray:
    """Return where each bin ends, shape (N_BINS,)."""
    bits = np.arange(_HALF + 1, dtype=np.uint32) << _BITS
    starts = bits.view(np.float32).astype(np.float64)
    # A bin of the lower half ends where the next begins.
    edges = np.concatenate([starts[1:], [0.5], 1 - starts[-2::-1]])
    edges[0] = 0.0
    return edges
