"""What the consensus changed against voting: labels added and dropped, and why, instance by instance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..consensus import Consensus
from ..explain import Explanation, Part
from ..kernels import FloatArray

MOST_MOVED = 200  # instances in the report that moved most
MOST_INSTANCES = 300  # with those of an even sample of the others
_MOST_EXPLAINED = 4  # labels of an instance
_MOST_PARTS = 8  # of an explanation; the others are added up
_ROWS_AT_ONCE = 2**20  # cells, so that what is sorted stays small
_SAME = 1e-12  # votes closer than this are tied


class Departure(NamedTuple):
    """How the label sets of the consensus differ from those that voting would give, of the same sizes.

    Voting cuts each instance's labels where it has as many as the consensus gives. A label at the cut is one that
    voting ties with others for the last places: to take it or leave it settles a tie and changes nothing.
    """

    cut: FloatArray  # (n,) vote of the last label that voting would give; inf where there is none
    overruled: FloatArray  # (n,) how far the votes of added and dropped labels are from the cut, summed
    tied: NDArray[np.bool_]  # (n,) whether voting could not decide which labels come last
    added: NDArray[np.int64]  # (l,) instances to which only the consensus gives a label
    dropped: NDArray[np.int64]  # (l,) instances to which only voting does


@dataclass(frozen=True)
class Reason:
    """Why one label of an instance has its score: what remains of an `Explanation` for a reader."""

    label: str
    change: str  # "added", "dropped", or "first" of the consensus
    score: float
    vote: float
    scale: str  # of the figures below: "score" or "log-odds"
    baseline: float
    remainder: float
    total: float
    parts: tuple[Part, ...]  # the largest
    n_others: int
    others: float  # what the other parts sum to


@dataclass(frozen=True)
class InstanceRow:
    """What the consensus says of one instance, and how voting differs."""

    name: str
    labels: tuple[str, ...]  # of the consensus, from the highest score to the lowest
    added: tuple[str, ...]
    dropped: tuple[str, ...]
    overruled: float
    tied: bool
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class ChangesSummary:
    """How far the consensus departs from voting."""

    n_instances: int
    n_changed: int  # instances with labels added or dropped
    n_added: int
    n_dropped: int
    n_tied: int  # instances where voting could not decide
    moved: float  # share of instances whose first label is none of those that voting puts first
    order_kept: float  # mean rank correlation with voting
    n_moved_shown: int  # how many of the instances below are those that moved most; the others are an even sample
    instances: tuple[InstanceRow, ...]


def departure(vote: FloatArray, chosen: NDArray[np.bool_]) -> Departure:
    """Compare the consensus's label sets (n, l) with the majority vote (n, l).

    Examples
    --------
    >>> vote = np.array([[0.9, 0.6, 0.1], [0.5, 0.5, 0.0]])
    >>> chosen = np.array([[True, False, True], [False, True, False]])
    >>> found = departure(vote, chosen)
    >>> found.added.tolist(), found.dropped.tolist(), found.overruled.tolist(), found.tied.tolist()
    ([0, 0, 1], [0, 0, 0], [0.5, 0.0], [False, True])
    """
    n, l = vote.shape
    cut, overruled, tied = np.empty(n), np.empty(n), np.empty(n, dtype=np.bool_)
    added, dropped = np.zeros(l, dtype=np.int64), np.zeros(l, dtype=np.int64)
    step = max(1, _ROWS_AT_ONCE // l)
    for first in range(0, n, step):
        at = slice(first, first + step)
        cut[at] = _cuts(vote[at], chosen[at].sum(axis=1))
        more, less = _differences(vote[at], chosen[at], cut[at])
        overruled[at] = np.where(more | less, np.abs(vote[at] - cut[at][:, None]), 0).sum(axis=1)
        above, at_cut = vote[at] > cut[at][:, None] + _SAME, np.abs(vote[at] - cut[at][:, None]) <= _SAME
        tied[at] = above.sum(axis=1) + at_cut.sum(axis=1) > chosen[at].sum(axis=1)
        added += more.sum(axis=0)
        dropped += less.sum(axis=0)
    return Departure(cut, overruled, tied, added, dropped)


def summarise_changes(consensus: Consensus, found: Departure) -> ChangesSummary:
    """Choose the instances to show, and explain each.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, _ = mlc.datasets.make_panel(n_instances=50, random_state=0)
    >>> consensus = mlc.combine(panel)
    >>> changes = summarise_changes(consensus, departure(consensus.vote, consensus.labels))
    >>> len(changes.instances), changes.instances[0].overruled >= changes.instances[1].overruled
    (50, True)
    """
    moved = np.argsort(-found.overruled, kind="stable")[:MOST_MOVED]
    moved = moved[found.overruled[moved] > 0]
    others = np.setdiff1d(np.arange(len(found.overruled)), moved)
    others = others[evenly(len(others), MOST_INSTANCES - len(moved))]
    shown = np.concatenate([moved, others])
    diagnostics = consensus.diagnostics
    return ChangesSummary(
        len(found.overruled),
        int((found.overruled > 0).sum()),
        int(found.added.sum()),
        int(found.dropped.sum()),
        int(found.tied.sum()),
        diagnostics.moved,
        diagnostics.order_kept,
        len(moved),
        _rows(consensus, found, shown),
    )


def _cuts(vote: FloatArray, count: NDArray[np.int64]) -> FloatArray:
    """Find the vote of each instance's last label, if it gets `count` labels."""
    ranked = np.sort(vote, axis=1)[:, ::-1]
    last = np.take_along_axis(ranked, np.maximum(count - 1, 0)[:, None], axis=1)[:, 0]
    return np.where(count > 0, last, np.inf)


def _differences(
    vote: FloatArray, chosen: NDArray[np.bool_], cut: FloatArray
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Mark the cells (n, l) that the consensus adds, and those that it drops."""
    return chosen & (vote < cut[:, None] - _SAME), ~chosen & (vote > cut[:, None] + _SAME)


def evenly(count: int, most: int) -> NDArray[np.int64]:
    """Choose at most `most` of `count` positions, evenly spaced.

    Examples
    --------
    >>> evenly(9, 3).tolist(), evenly(2, 3).tolist()
    ([0, 4, 8], [0, 1])
    """
    return np.arange(count) if count <= most else np.linspace(0, count - 1, max(most, 0)).round().astype(np.int64)


def _rows(consensus: Consensus, found: Departure, shown: NDArray[np.int64]) -> tuple[InstanceRow, ...]:
    """Describe the instances that stand at some positions."""
    scores, vote, chosen, cut = (
        consensus.scores[shown],
        consensus.vote[shown],
        consensus.labels[shown],
        found.cut[shown],
    )
    added, dropped = _differences(vote, chosen, cut)
    order = np.argsort(-scores, axis=1, kind="stable")
    panel = consensus.predictions[shown]
    rows = []
    for i, name in enumerate(panel.instances.tolist()):
        ranked = order[i]
        labels, more, less = (
            tuple(consensus.label_names[j] for j in ranked if kind[i, j]) for kind in (chosen, added, dropped)
        )
        overruled = np.abs(vote[i] - cut[i])
        wanted = sorted((j for j in ranked if added[i, j] or dropped[i, j]), key=lambda j: -overruled[j])
        wanted = [*wanted[: _MOST_EXPLAINED - 1], *ranked[:1]]
        reasons = tuple(
            _reason(
                consensus.combiner.explain(panel, name, consensus.label_names[j]),
                "added" if added[i, j] else "dropped" if dropped[i, j] else "first",
            )
            for j in dict.fromkeys(wanted)
        )
        at = shown[i]
        rows.append(
            InstanceRow(str(name), labels, more, less, float(found.overruled[at]), bool(found.tied[at]), reasons)
        )
    return tuple(rows)


def _reason(why: Explanation, change: str) -> Reason:
    parts, others = why.parts[:_MOST_PARTS], why.parts[_MOST_PARTS:]
    return Reason(
        why.label,
        change,
        why.score,
        why.vote,
        why.scale,
        why.baseline,
        why.remainder,
        why.total,
        tuple(parts),
        len(others),
        math.fsum(part.contribution for part in others),
    )
