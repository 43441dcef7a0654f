"""Who is accused: copies, random and inverted raters, at a false discovery rate of 1 % among all that are tested.

docs/diagnostics.md derives the tests and has their error rates on simulated panels.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from scipy import special, stats

from ..linalg.annotations import Annotations
from ..linalg.block_sums import ratio
from ..predictions import BoolArray, FloatArray
from ..text import shown
from .pairwise import FEW, PairwiseStatistics, Reliability, compute_product_scale

FALSE_DISCOVERIES = 0.01
_Z = 1.96  # 95 % intervals

# A random rater agrees with the others less than half as much as these do among
# themselves, and not clearly at all; an inverted one disagrees by more than a quarter
# of it.
_WEAK = 0.6
_INVERTED = -0.25
# Kin and easy instances let honest raters differ less often than independent errors
# would: half as often is ordinary. A copy differs less often than that beyond chance,
# and by its interval less than a quarter as often.
_KIN = 0.5
_COPY = 0.25
# Raters that correlate more than this do not do so by being right: nobody is. Without
# it, copies in a panel of two or three would be taken for raters that never err.
_MOST_RELIABLE = 0.98


class FlaggedModel(NamedTuple):
    """One rater, or two, and what speaks against them."""

    kind: Literal["random", "inverted", "copy"]
    raters: tuple[str, ...]
    sentence: str
    instances: int  # that the rater shares with others, or the two with each other
    cells: int  # of these, that both sides spoke about
    # correlation with the others; of two: how often they differ, by how often was to be
    # expected
    statistic: float
    low: float  # of its 95 % interval
    high: float
    expected: float  # what is usual among those others; of two: 1
    p_value: float
    q_value: float  # false discovery rate at which it would still be named


def suspects(
    met: PairwiseStatistics,
    reliability: Reliability,
    said: Annotations,
    names: tuple[str, ...],
) -> tuple[FlaggedModel, ...]:
    """Name raters whom the evidence is against: random, inverted, copies.

    Parameters
    ----------
    met, reliability, said
        Sums of what the raters said about the same instances, what follows for each,
        and what they said.
    names
        Of the raters.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> from mlconsensus.linalg.annotations import make_annotations
    >>> from mlconsensus.inspection.pairwise import estimate_reliability, compute_pairwise_statistics
    >>> panel, _ = mlc.datasets.make_panel(quality=[0.8, 0.8, 0.8, 0.8, 0], shared_errors=0, random_state=0)
    >>> said = make_annotations(panel)
    >>> met = compute_pairwise_statistics(said)
    >>> [(one.kind, one.raters) for one in suspects(met, estimate_reliability(met), said, panel.models)]
    [('random', ('model_4',))]
    """
    each = (
        _raters(met, reliability, names),
        _constant(met, said, names),
        _copies(met, reliability, said, names),
    )
    return tuple(found for kind in each for found in kind)


def _constant(
    met: PairwiseStatistics, said: Annotations, names: tuple[str, ...]
) -> Iterator[FlaggedModel]:
    """Find raters whose answers never vary, where answers at the others' rates would."""
    fields = said.spoke, said.scores, said.scores.astype(np.float64) ** 2
    spoke, total, squared = map(said.of_raters, fields)
    same = (squared - ratio(total**2, spoke, 0.0)).sum(axis=1) <= 1e-9 * (
        1 + squared.sum(axis=1)
    )
    rate = (total.sum(axis=0) - total + 0.5) / (spoke.sum(axis=0) - spoke + 1)
    p = np.exp(
        (special.xlogy(total, rate) + special.xlogy(spoke - total, 1 - rate)).sum(
            axis=1
        )
    )
    q = _adjusted(p, same)
    seen = np.diag(met.instances)
    for k in np.flatnonzero((q <= FALSE_DISCOVERIES) & same & (seen >= FEW)).tolist():
        yes = int((total[k] >= spoke[k] / 2)[spoke[k] > 0].sum())
        known = int((spoke[k] > 0).sum())
        always = f"says yes to {yes:,} of {known:,} labels, whatever the instance: its answers never vary"
        sentence = f"{shown(names[k])} {always} over {int(seen[k]):,} instances"
        counts = int(seen[k]), int(met.cells[k, k])
        yield FlaggedModel(
            "random",
            (names[k],),
            sentence,
            *counts,
            0,
            0,
            0,
            0,
            float(p[k]),
            float(q[k]),
        )


def _raters(
    met: PairwiseStatistics, reliability: Reliability, names: tuple[str, ...]
) -> Iterator[FlaggedModel]:
    """Compare each rater's correlation with the others with that of the others among themselves."""
    scale = compute_product_scale(met.squares)
    product = (met.products * (scale > 0)).sum(axis=1)
    size = scale.sum(axis=1)
    # What varies from instance to instance. Few can look steadier than they are, so
    # half is what is usual.
    variance = np.maximum(
        met.with_others - ratio(product**2, np.diag(met.instances), 0.0), 0
    )
    usual = variance.sum() / max(float(size.sum()), 1e-12) * size
    own = ratio(product, size, 0.0)
    error = ratio(np.sqrt((variance + np.maximum(variance, usual)) / 2), size, 9.0)
    # What is usual: the others' typical reliability times that of those whom the rater
    # met, known without it. Beside inverted or random raters nobody agrees with
    # anybody, and nothing follows.
    rest = size.sum() - 2 * size
    usual_square = ratio(
        product.sum() - 2 * product, np.where(rest > 1e-9 * size.sum(), rest, 0), 0.0
    )
    typical = np.sqrt(np.maximum(usual_square, 0))
    others = typical * ratio(
        (scale * np.clip(reliability.without.T, -1, 1)).sum(axis=1), size, 0.0
    )
    others_error = typical * ratio(
        np.sqrt(((scale * reliability.error.T) ** 2).sum(axis=1)), size, 1.0
    )
    low, high = (np.clip(own + sign * _Z * error, -1, 1) for sign in (-1, 1))
    kinds: tuple[tuple[Literal["random", "inverted"], float, str, BoolArray], ...] = (
        (
            "random",
            _WEAK,
            "answers as if at random",
            (low <= 0) & (own > _INVERTED * others),
        ),
        ("inverted", _INVERTED, "says the opposite of the others", own < 0),
    )
    for kind, share, says, also in kinds:
        spread = np.maximum(np.hypot(error, share * others_error), 1e-9)
        p = special.stdtr(
            np.maximum(np.diag(met.instances) - 1, 1), (own - share * others) / spread
        )
        q = _adjusted(np.where(others > 2 * others_error, p, 1.0), size > 0)
        for k in np.flatnonzero((q <= FALSE_DISCOVERIES) & also).tolist():
            seen = int(met.instances[k, k])
            cells = int(met.cells[k, k])
            sentence = (
                f"{shown(names[k])} {says}: over {seen:,} instances its correlation with the others is {own[k]:z.2f} "
                f"({low[k]:z.2f} to {high[k]:z.2f}), where {others[k]:z.2f} is usual"
            )
            figures = (float(figure[k]) for figure in (own, low, high, others, p, q))
            yield FlaggedModel(kind, (names[k],), sentence, seen, cells, *figures)


def _copies(
    met: PairwiseStatistics,
    reliability: Reliability,
    said: Annotations,
    names: tuple[str, ...],
) -> Iterator[FlaggedModel]:
    """Compare how often two raters differ with what their agreement with the others lets expect."""
    scale = compute_product_scale(met.squares)
    square = met.squares + met.squares.T
    differ = np.maximum(square - 2 * met.products, 0)
    # Raters with errors of their own correlate by the product of their reliabilities,
    # which follow from how they correlate with third raters; the benefit of doubt is a
    # standard error each.
    r = reliability.without
    at_most = np.minimum(np.abs(r) + reliability.error, 1)
    agree = np.where(r * r.T < 0, 0, np.minimum(at_most * at_most.T, _MOST_RELIABLE))
    expected = np.maximum(square - 2 * agree * scale, 0)
    # Differences come in clusters, an instance each: the mean size of the one that a
    # difference is in. It is no less than a yes of one beside a no of the other makes,
    # however near to theirs the scores of third raters are.
    size = ratio(met.spread.sum(axis=1), differ.sum(axis=1), 1.0)
    sure = said.of_raters(np.abs(2 * said.scores - said.spoke)).sum(
        axis=1
    )  # 1 a cell from those that decide
    sure = ratio(sure, said.of_raters(said.spoke).sum(axis=1), 0.0)
    size = np.maximum(np.maximum.outer(size, size), np.outer(sure, sure))
    # Chernoff's bound for sums that are never negative, from their mean and mean
    # square.
    left = np.minimum(ratio(differ, _KIN * expected, 1.0), 1)
    p = np.exp(-_KIN * expected / size * (1 - left + special.xlogy(left, left)))
    q = _adjusted(p, np.triu(scale) > 0)
    # Anscombe's, as for counts
    found = ratio(differ, expected, 1.0)
    root = np.sqrt(differ / size + 3 / 8)
    ends = (
        size * np.maximum(np.maximum(root + by, 0) ** 2 - 3 / 8, 0)
        for by in (-_Z / 2, _Z / 2)
    )
    low, high = (ratio(end, expected, 1.0) for end in ends)
    for k, j in np.argwhere(
        (q <= FALSE_DISCOVERIES) & (high < _COPY) & (met.instances >= FEW)
    ).tolist():
        seen = int(met.instances[k, j])
        cells = int(met.cells[k, j])
        alike, either = _alike(said, k, j)
        sentence = (
            f"{shown(names[j])} answers as {shown(names[k])} does in {alike:.1%} of {either:,} cells where either says "
            f"yes ({seen:,} shared instances): they differ {found[k, j]:.0%} ({low[k, j]:.0%} to {high[k, j]:.0%}) as "
            "often as raters with errors of their own would"
        )
        figures = (
            float(figure[k, j]) for figure in (found, low, high, np.ones_like(p), p, q)
        )
        yield FlaggedModel(
            "copy", (names[k], names[j]), sentence, seen, cells, *figures
        )


def _adjusted(p: FloatArray, tested: BoolArray) -> FloatArray:
    """Turn p-values to false discovery rates, as Benjamini and Hochberg do; 1 where nothing was tested."""
    q = np.ones(p.shape)
    q[tested] = stats.false_discovery_control(p[tested])
    return q


def _alike(said: Annotations, one: int, other: int) -> tuple[float, int]:
    """Tell in which share of the cells where either of two raters says yes both do, and how many cells these are."""
    rows = [np.flatnonzero(said.rater == rater) for rater in (one, other)]
    _, first, second = np.intersect1d(
        said.instance[rows[0]], said.instance[rows[1]], True, return_indices=True
    )
    here = rows[0][first]
    there = rows[1][second]
    a, b = (
        said.scores[at] * (said.spoke[here] & said.spoke[there]) for at in (here, there)
    )
    either = float(np.maximum(a, b).sum())
    return float(np.minimum(a, b).sum()) / max(either, 1e-12), round(either)
