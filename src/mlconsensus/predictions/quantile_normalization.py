r"""One scale for models whose scores live on different ones, found without any truth.

A model that says 0.02 where another says 0.9 may mean the same: scores are comparable
within a model, not between models. Each model's scores are mapped, in their order, to
what the models say at the same rank: with :math:`F_k` the share of the scores of model
`k` below a value, and :math:`Q_k` its inverse,

.. math:: a \mapsto Q^*(F_k(a)), \qquad Q^*(u) = \operatorname{median}_k Q_k(u)

so that models of one scale keep it, and one that is apart comes to the others. A 0
stays 0, since it is a plain no (and sparse stays sparse). Models that say but yes and
no have no scale: they are left alone, and not asked for the median.

The shares come from a histogram whose bins are as fine near 0 and 1 as floats are,
relative to the distance: 128 bins for each halving of it. Counts add up, so this is one
more pass of statistics → merge → solve → apply.
"""

from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse, special

from .alignment import Array, FloatArray, IntArray

# of a float32 that a bin leaves out: what is left are 8 bits of exponent and 7 of
# mantissa
_BITS = 16
_HALF = int(np.float32(0.5).view(np.uint32)) >> _BITS  # the bin that 0.5 begins
N_BINS = 2 * _HALF + 1
_SHARES = special.expit(
    np.linspace(-16, 16, 1025)
)  # ranks at which quantiles are compared, most of them at the ends


class Statistics(NamedTuple):
    """Sums over instances."""

    # (m, N_BINS) how many of each model's scores fall into each bin; 0 for decisions
    counts: Any


class Knots(NamedTuple):
    """A rising function, linear between its knots; where all are 0, the scores stay as they are."""

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
            return self._replace(to=rescaled(self.to, *other))
        return other


class Scales(NamedTuple):
    """For each model, the function that brings its scores to the panel's scale."""

    at: FloatArray  # (m, knots)
    to: FloatArray  # (m, knots)

    def of_each(self) -> list[Knots]:
        """Return the models' functions one by one."""
        return [Knots(at, to) for at, to in zip(self.at, self.to, strict=True)]


def statistics(block: Any) -> Statistics:
    """Count each model's scores by size.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> statistics(mlc.Predictions([[[0.0, 0.5, 0.5]], [[True, False, True]]])).counts.sum(axis=1)
    array([3., 0.])
    """
    counts = np.zeros((len(block.models), N_BINS))
    if block.many:
        for own, (values, seen, known) in zip(counts, block.apart(), strict=True):
            own += np.bincount(_bins(values.data), minlength=N_BINS)
            own[0] += seen.sum() * known.sum() - values.nnz

        return Statistics(counts)

    for own, (values, spoken) in zip(counts, block.cells(), strict=True):
        if values.dtype.kind != "f":
            continue
        if sparse.issparse(values):
            said = values.data
            own[0] = (np.prod(values.shape) if spoken is None else spoken.sum()) - len(
                said
            )
        else:
            if spoken is None:
                said = values.ravel()
            else:
                said = values[spoken]

        own += np.bincount(_bins(said), minlength=N_BINS)

    return Statistics(counts)


def solve(statistics: Statistics) -> Scales:
    """Map each model's quantiles to the median of all models'.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random((500, 4))
    >>> scales = solve(statistics(mlc.Predictions([truth, truth, truth**4])))
    >>> [round(float(np.interp(0.5**power, *knots)), 2) for power, knots in zip((1, 1, 4), scales.of_each())]
    [0.5, 0.5, 0.5]
    """
    counts = statistics.counts
    scaled = np.flatnonzero(counts[:, 1:-1].any(axis=1))
    at, to = np.zeros((2, len(counts), len(_SHARES) + 2))
    if len(scaled) < 2:
        return Scales(at, to)

    shares = np.cumsum(counts[scaled], axis=1)
    shares /= shares[:, -1:]
    upper = _upper_edges()
    quantiles = np.array([np.interp(_SHARES, own, upper) for own in shares])
    common = np.median(quantiles, axis=0)
    for model, own, quantile in zip(scaled, shares, quantiles, strict=True):
        # A plain no stays 0, and what it would stand for at its rank is taken off the
        # rest.
        if own[0] > 0:
            zero = np.interp(own[0] / 2, _SHARES, common)
        else:
            zero = 0.0

        raised = (
            np.maximum(common - zero, 0) * common[-1] / max(common[-1] - zero, 1e-300)
        )
        knots, first = np.unique(quantile, return_index=True)
        last = np.append(first[1:], len(quantile)) - 1
        inner = np.flatnonzero((knots > 0) & (knots < 1))
        end = 1 + len(inner)
        at[model, 1:end], at[model, end:] = knots[inner], 1
        to[model, 1:end] = (raised[first] + raised[last])[
            inner
        ] / 2  # of scores often given, the middle
        to[model, end:] = (
            raised[-1]
            if own[-2] == 1
            else np.interp((own[-2] + 1) / 2, _SHARES, raised)
        )

    return Scales(at, to)


def rescaled(values: Any, at: FloatArray, to: FloatArray) -> Any:
    """Bring one model's scores, dense or CSR, to the panel's scale.

    Examples
    --------
    >>> rescaled(np.array([[0.0, 0.1]]), np.array([0.0, 0.2, 1.0]), np.array([0.0, 0.8, 1.0]))
    array([[0. , 0.4]])
    """
    if not at.any() or values.dtype.kind != "f":
        return values
    if sparse.issparse(values):
        return sparse.csr_array(
            (np.interp(values.data, at, to), values.indices, values.indptr),
            shape=values.shape,
        )

    return np.interp(values, at, to)


def _bins(scores: Array) -> IntArray:
    """Find the bin of each score in [0, 1], numbered by size."""
    low = (np.minimum(scores, 1 - scores) + 0.0).astype(np.float32).view(
        np.uint32
    ) >> _BITS  # -0.0 + 0.0 is 0.0
    return np.asarray(np.where(scores <= 0.5, low, 2 * _HALF - low), dtype=np.int64)


def _upper_edges() -> FloatArray:
    """Return where each bin ends (N_BINS,)."""
    below = (
        (np.arange(_HALF + 1, dtype=np.uint32) << _BITS)
        .view(np.float32)
        .astype(np.float64)
    )
    rising = np.concatenate(
        [below[1:], [0.5], 1 - below[-2::-1]]
    )  # bin b of the lower half ends where b + 1 begins
    rising[0] = 0.0
    return rising
