"""Where raters met: sums over the instances that two of them spoke about, at a cost in proportion to what was said."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..linalg.annotations import Annotations
from ..linalg.block_sums import FloatArray, ratio
from ..predictions import IntArray

GROUPS = 10  # of instances, for the jackknife
FEW = 10  # shared instances, below which how two raters agree is mostly chance
_AT_ONCE = 2**21  # numbers in the largest array of one step


class PairwiseStatistics(NamedTuple):
    """Sums over instances; `x` is a score minus its rater's mean on the label, `d` = Σ_ℓ (x_k − x_q)²."""

    dispute: FloatArray  # (l,) mean squared difference of two raters' scores
    # (groups of instances, 4, 2, l) what `departing` adds up, for the jackknife
    departures: FloatArray
    with_others: FloatArray  # (m,) Σ_i (Σ_q Σ_ℓ x_k x_q)², over raters q ≠ k
    of_pairs: float  # Σ_i Σ_k Σ_q (Σ_ℓ x_k x_q)²
    products: FloatArray  # (m, m) Σ x_k x_q
    squares: FloatArray  # (m, m) Σ x_k² over the cells that q spoke about too
    cells: FloatArray  # (m, m) how many cells both spoke about
    instances: FloatArray  # (m, m) and how many instances
    spread: FloatArray  # (m, m) Σ_i d²


def compute_pairwise_statistics(said: Annotations) -> PairwiseStatistics:
    """Add up what raters said about the same instances.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> from mlconsensus.linalg.annotations import make_annotations
    >>> found = compute_pairwise_statistics(make_annotations(mlc.Predictions([[[1], [0]], [[1], [0]], [[0], [np.nan]]])))
    >>> found.products[0, 1], found.cells[0].tolist(), found.dispute.round(2).tolist()
    (np.float64(0.5), [2.0, 2.0, 1.0], [0.5])
    """
    m, _, l = said.shape
    of_two = np.zeros((5, m, m))
    departures = np.zeros((GROUPS, 4, 2, l))
    (apart, pairs) = np.zeros((2, l))
    mean = said.mean
    with_others = np.zeros(m)
    of_pairs = 0.0
    for group, rows in together(said, l):
        who = said.rater[rows]
        w = said.spoke[rows].astype(np.float64)
        a = said.scores[rows].astype(np.float64)
        spoke = w.sum(axis=1)
        total = a.sum(axis=1)
        squared = (a**2).sum(axis=1)
        departures[group] += departing(spoke, total, squared)
        apart += (spoke * squared - total**2).sum(axis=0)
        pairs += (spoke * (spoke - 1) / 2).sum(axis=0)
        x = (a - mean[who]) * w
        other = w.transpose(0, 2, 1)
        product = x @ x.transpose(0, 2, 1)
        own = x**2 @ other
        both = w @ other
        differ = own + own.transpose(0, 2, 1) - 2 * product
        at = (who[:, :, None] * m + who[:, None, :]).ravel()
        for total, brought in zip(
            of_two, (product, own, both, both > 0, differ**2), strict=True
        ):
            np.add.at(total.reshape(-1), at, brought.ravel())

        product *= 1 - np.eye(who.shape[1])
        np.add.at(with_others, who.ravel(), (product.sum(axis=2) ** 2).ravel())
        of_pairs += float((product**2).sum())

    dispute = np.maximum(ratio(apart, pairs, 0.0), 0)
    return PairwiseStatistics(dispute, departures, with_others, of_pairs, *of_two)


def departing(spoke: FloatArray, total: FloatArray, squared: FloatArray) -> FloatArray:
    """Add up how far raters depart from the majority's yes or no, alone and two at a time.

    Parameters
    ----------
    spoke, total, squared
        How many raters spoke about each cell (n, l), the sum of their scores, and of
        the squares.

    Returns
    -------
    ndarray (4, 2, l): cells, mean departure, mean square, mean product of two, where
    the majority says no and yes. Cells with fewer than four raters are left out: two
    cannot depart from a majority of three.
    """
    says = total >= spoke / 2
    far = np.where(says, spoke - total, total)
    square = np.where(says, spoke - 2 * total + squared, squared)
    told = spoke > 3
    many = np.maximum(spoke, 4)
    of_cell = np.stack(
        [
            np.ones_like(far),
            far / many,
            square / many,
            (far**2 - square) / (many * (many - 1)),
        ]
    )
    return np.stack(
        [(of_cell * (told & (says == yes))).sum(axis=1) for yes in (False, True)],
        axis=1,
    )


def scale_of(squares: FloatArray) -> FloatArray:
    """Tell what products (m, m) would be of raters that always move together; 0 for a rater with itself."""
    scale = np.sqrt(squares * squares.T) * (1 - np.eye(len(squares)))
    return np.where(scale > 1e-12, scale, 0.0)


class Reliability(NamedTuple):
    """How each rater correlates with what raters have in common."""

    of_each: FloatArray  # (m,)
    without: (
        FloatArray  # (m, m) of rater k, were it not for what it has in common with q
    )
    error: FloatArray  # (m, m) its standard error, 1 where k met nobody but q


def common_factor(met: PairwiseStatistics, rounds: int = 100) -> Reliability:
    """Find how far raters can be relied on: two with errors of their own agree by the product of their reliabilities.

    Each pair counts by how sure its agreement is, and beyond one standard error in
    least absolute deviations, so that copies stand out in place of bending the fit.
    """
    scale = scale_of(met.squares)
    agreement = ratio(met.products, scale, 0.0)
    all_pairs = max(float(scale.sum()), 1e-12)
    error = np.maximum(
        np.sqrt(ratio(np.full_like(scale, met.of_pairs / all_pairs), scale, 0.0)), 1e-3
    )
    r = np.full(
        len(scale), np.sqrt(max(float(met.products[scale > 0].sum()) / all_pairs, 1e-6))
    )
    for _ in range(rounds):
        weight = (scale > 0) / (error * (np.abs(agreement - r[:, None] * r) + error))
        fitted = weight * agreement * r
        known = weight * r**2
        r = (r + np.clip(ratio(fitted.sum(axis=1), known.sum(axis=1), 0.0), -1, 1)) / 2

    fitted, known = (
        field.sum(axis=1, keepdims=True) - field for field in (fitted, known)
    )
    known = np.where(known > 1e-9, known, 0.0)
    if r.sum() >= 0:
        sign = 1
    else:
        sign = -1

    without = ratio(fitted, known, 0.0)
    error = ratio(np.ones_like(known), np.sqrt(known), 1.0)
    return Reliability(sign * r, sign * without, error)


def together(said: Annotations, l: int) -> Iterator[tuple[int, IntArray]]:
    """Yield groups of instances with equally many speakers, as rows (instances, speakers) of the sheets."""
    order = np.argsort(said.instance, kind="stable")
    _, first, speakers = np.unique(
        said.instance[order], return_index=True, return_counts=True
    )
    group = np.arange(len(first)) % GROUPS
    for s in np.unique(speakers[speakers > 1]).tolist():
        size = max(1, _AT_ONCE // (s * max(s, l)))
        for g in range(GROUPS):
            starts = first[(speakers == s) & (group == g)]
            for at in range(0, len(starts), size):
                yield g, order[starts[at : at + size, None] + np.arange(s)]
