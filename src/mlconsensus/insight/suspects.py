"""Who is accused: copies, random and inverted raters, at a false discovery rate of 1 % among all that are tested.

docs/diagnostics.md derives the tests and has their error rates on simulated panels.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..arithmetic.products import FloatArray, ratio
from .meetings import Meetings, Reliability, Sheets, scale_of

FALSE_DISCOVERIES = 0.01
_Z = 1.96  # 95 % intervals

# A random rater agrees with the others less than half as much as these do among themselves, and not clearly at all; an
# inverted one disagrees by more than a quarter of it.
_WEAK, _INVERTED = 0.6, -0.25
# Kin and easy instances let honest raters differ less often than independent errors would: half as often is ordinary.
# A copy differs less often than that beyond chance, and less than a quarter as often as it was found.
_KIN, _COPY = 0.5, 0.25
# Raters that correlate more than this do not do so by being right: nobody is. Without it, copies in a panel of two or
# three would be taken for raters that never err.
MOST_RELIABLE = 0.98


class Suspect(NamedTuple):
    """One rater, or two, and what speaks against them."""

    kind: Literal["random", "inverted", "copy"]
    raters: tuple[str, ...]
    instances: int  # that the rater shares with others, or the two with each other
    cells: int  # of these, that both sides spoke about
    statistic: float  # correlation with the others; of two: how often they differ, by how often was to be expected
    interval: tuple[float, float]  # 95 %
    expected: float  # correlation of the others among themselves; of two: 1
    p_value: float
    q_value: float  # false discovery rate at which it would still be named
    sentence: str


def suspects(met: Meetings, reliability: Reliability, said: Sheets, names: tuple[str, ...]) -> tuple[Suspect, ...]:
    """Name raters whom the evidence is against: random, inverted, copies.

    Parameters
    ----------
    met, reliability, said
        Sums of what the raters said about the same instances, what follows for each, and what they said.
    names
        Of the raters.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> from mlconsensus.insight.meetings import common_factor, meet, sheets
    >>> panel, _ = mlc.datasets.make_panel(quality=[0.8, 0.8, 0.8, 0.8, 0], shared_errors=0, random_state=0)
    >>> said = sheets(panel)
    >>> met = meet(said)
    >>> [(one.kind, one.raters) for one in suspects(met, common_factor(met), said, panel.models)]
    [('random', ('model_4',))]
    """
    scale = scale_of(met.squares)
    sums = _Sums(np.where(scale > 0, met.products, 0), scale)
    return (*_raters(met, sums, names), *_copies(met, reliability, sums, said, names))


class _Sums(NamedTuple):
    products: FloatArray  # (m, m) of different raters
    scale: FloatArray  # (m, m) what they would be of raters that always move together


def _raters(met: Meetings, sums: _Sums, names: tuple[str, ...]) -> list[Suspect]:
    """Compare each rater's correlation with the others with that of the others among themselves."""
    product, size = (field.sum(axis=1) for field in sums)
    own, error = ratio(product, size, 0.0), ratio(_deviation(met, product, size), size, np.inf)
    rest = _without(size.sum(), 2 * size)
    others = ratio(product.sum() - 2 * product, rest, 0.0)
    others_error = ratio(np.full_like(rest, np.sqrt(met.of_all)), rest, np.inf)
    tested = np.isfinite(error) & np.isfinite(others_error)
    low, high = (np.clip(own + sign * _Z * np.where(tested, error, 0), -1, 1) for sign in (-1, 1))
    accused = []
    by_kind: tuple[tuple[Literal["random", "inverted"], float, str, NDArray[np.bool_]], ...] = (
        ("random", _WEAK, "answers as if at random", (low <= 0) & (own > _INVERTED * others)),
        ("inverted", _INVERTED, "says the opposite of the others", own < 0),
    )
    for kind, share, says, also in by_kind:
        spread = np.sqrt(np.where(tested, error**2 + (share * others_error) ** 2, 1))
        p = np.where(others > 2 * others_error, special.ndtr((own - share * others) / spread), 1.0)
        q = _adjusted(p, tested)
        for k in np.flatnonzero((q <= FALSE_DISCOVERIES) & also):
            seen, cells = int(met.instances[k, k]), int(met.cells[k, k])
            sentence = (
                f"{names[k]} {says}: over {seen:,} instances its correlation with the others is {own[k]:.2f} "
                f"({low[k]:.2f} to {high[k]:.2f}), theirs with each other {others[k]:.2f}"
            )
            interval = float(low[k]), float(high[k])
            figures = float(own[k]), interval, float(others[k]), float(p[k]), float(q[k])
            accused.append(Suspect(kind, (names[k],), seen, cells, *figures, sentence))
    return accused


def _copies(
    met: Meetings, reliability: Reliability, sums: _Sums, said: Sheets, names: tuple[str, ...]
) -> list[Suspect]:
    """Compare how often two raters differ with what their agreement with the others lets expect."""
    square = met.squares + met.squares.T
    differ = np.maximum(square - 2 * met.products, 0)
    # Raters with errors of their own correlate by the product of their reliabilities, which follow from how they
    # correlate with third raters; the benefit of doubt is a standard error each.
    known = np.isfinite(reliability.error)
    at_most = np.where(known, np.abs(reliability.without) + np.where(known, reliability.error, 0), 1.0)
    agree = np.where(reliability.without * reliability.without.T < 0, 0, at_most * at_most.T)
    expected = np.maximum(square - 2 * np.minimum(agree, MOST_RELIABLE) * sums.scale, 0)
    # Disagreements come in clusters, an instance each: their mean size, seen from one of them, for the rater with the
    # larger ones.
    apart = differ.sum(axis=1)
    size = ratio(met.spread.sum(axis=1), apart, 1.0)
    size = np.maximum.outer(size, size)
    # Chernoff's bound for sums that are never negative, from their mean and mean square.
    usual = _KIN * expected
    left = np.minimum(ratio(differ, usual, 1.0), 1)
    p = np.exp(-usual / size * (1 - left + special.xlogy(left, left)))
    tested = (sums.scale > 0) & (np.arange(len(names))[:, None] < np.arange(len(names)))
    q = _adjusted(p, tested)
    accused = []
    for k, q_ in zip(*np.nonzero((q <= FALSE_DISCOVERIES) & (differ < _COPY * expected)), strict=True):
        instances, cells = int(met.instances[k, q_]), int(met.cells[k, q_])
        share, root = expected[k, q_], np.sqrt(differ[k, q_] / size[k, q_] + 3 / 8)  # Anscombe's, as of counts
        low, high = (max(float(size[k, q_] * (max(root + by, 0) ** 2 - 3 / 8) / share), 0.0) for by in (-0.98, 0.98))
        ratio_ = float(differ[k, q_] / share)
        alike, either = _alike(said, int(k), int(q_))
        sentence = (
            f"{names[q_]} answers as {names[k]} does, in {alike:.1%} of {either:,} cells where either says yes "
            f"({instances:,} shared instances): they differ {ratio_:.0%} ({low:.0%} to {high:.0%}) as often as raters "
            "with errors of their own"
        )
        figures = ratio_, (low, high), 1.0, float(p[k, q_]), float(q[k, q_])
        accused.append(Suspect("copy", (names[k], names[q_]), instances, cells, *figures, sentence))
    return accused


def _deviation(met: Meetings, product: FloatArray, size: FloatArray) -> FloatArray:
    """Find the standard deviation (m,) of the sum of products with the others; instances are what is independent.

    Few instances can look steadier than they are, so half of it is what is usual for so much said.
    """
    own = np.maximum(met.with_others - ratio(product**2, np.diag(met.instances), 0.0), 0)
    usual = own.sum() / max(float(size.sum()), 1e-12) * size
    return np.asarray(np.sqrt((own + np.maximum(own, usual)) / 2))


def _without(whole: FloatArray, part: FloatArray) -> FloatArray:
    """Subtract, with 0 where only rounding is left."""
    return np.where(whole - part > 1e-9 * whole, whole - part, 0.0)


def _adjusted(p: FloatArray, tested: NDArray[np.bool_]) -> FloatArray:
    """Turn p-values to the false discovery rates of Benjamini and Hochberg; 1 where nothing was tested."""
    q = np.ones(p.shape)
    given = p[tested]
    order = np.argsort(given, kind="stable")
    raised = given[order] * len(given) / np.arange(1, len(given) + 1)
    adjusted = np.empty(len(given))
    adjusted[order] = np.minimum(np.minimum.accumulate(raised[::-1])[::-1], 1)
    q[tested] = adjusted
    return q


def _alike(said: Sheets, one: int, other: int) -> tuple[float, int]:
    """Tell in which share of the cells where either of two raters says yes both do, and how many cells these are."""
    rows = [np.flatnonzero(said.rater == rater) for rater in (one, other)]
    first, second = (said.instance[own] for own in rows)
    _, *at = np.intersect1d(first, second, assume_unique=True, return_indices=True)
    a, b = (said.scores[own[here]].astype(np.float64) for own, here in zip(rows, at, strict=True))
    both = said.spoke[rows[0][at[0]]] & said.spoke[rows[1][at[1]]]
    most, least = (float(pick(a, b)[both].sum()) for pick in (np.maximum, np.minimum))
    return least / max(most, 1e-12), round(most)
