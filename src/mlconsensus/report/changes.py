"""What the consensus changed against voting: labels added and dropped, and why, instance by instance."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..inspection.explanations import Explanation, Part, explain
from ..metrics._rank_counts import map_row_blocks
from ..predictions import Array, BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from ..consensus import Consensus

MOST_MOVED = 200  # instances in the report that moved most
MOST_INSTANCES = 300  # with those of an even sample of the others
_MOST_EXPLAINED = 4  # labels of an instance
_MOST_PARTS = 8  # of an explanation; the others are added up
_SAME = 1e-12  # votes closer than this are tied


class Departure(NamedTuple):
    """How the label sets of the consensus differ from those that voting would give, of the same sizes.

    Voting gives each instance the labels of most votes, as many as the consensus gives
    it. Where the last label that it gives and the first that it leaves out have the
    same votes, it cannot decide between them: to take one or the other changes nothing.
    """

    # (n,) how far added labels are below the last one in and dropped ones above the
    # first out
    overruled: FloatArray
    # (n,) whether voting cannot decide which labels of an instance come last
    tied: BoolArray
    added: IntArray  # (l,) instances to which only the consensus gives a label
    dropped: IntArray  # (l,) instances to which only voting does


class Reason(NamedTuple):
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


class InstanceRow(NamedTuple):
    """What the consensus says of one instance, and how voting differs."""

    name: str
    labels: tuple[str, ...]  # of the consensus, from the highest score to the lowest
    added: tuple[str, ...]
    dropped: tuple[str, ...]
    overruled: float
    tied: bool
    reasons: tuple[Reason, ...]


class ChangesSummary(NamedTuple):
    """How far the consensus departs from voting."""

    n_changed: int  # instances with labels added or dropped
    n_added: int
    n_dropped: int
    n_tied: int  # instances where voting could not decide
    # share of instances whose first label is none of those that voting puts first
    moved: float
    # how many of the instances below are those that moved most; the others are an even
    # sample
    n_moved_shown: int
    instances: tuple[InstanceRow, ...]


def departure(vote: FloatArray, chosen: BoolArray) -> Departure:
    """Compare the consensus's label sets (n, l) with the majority vote (n, l).

    Examples
    --------
    >>> vote = np.array([[0.9, 0.6, 0.1], [0.5, 0.5, 0.0]])
    >>> chosen = np.array([[True, False, True], [False, True, False]])
    >>> found = departure(vote, chosen)
    >>> found.added.tolist(), found.dropped.tolist(), found.overruled.tolist(), found.tied.tolist()
    ([0, 0, 1], [0, 1, 0], [1.0, 0.0], [False, True])
    """

    def of_some(rows: slice) -> tuple[Array, ...]:
        lacking, spare, tied = compute_overruled_votes(vote[rows], chosen[rows])
        return (
            (lacking + spare).sum(axis=1),
            tied,
            (lacking > 0).sum(axis=0),
            (spare > 0).sum(axis=0),
        )

    overruled, tied, added, dropped = zip(
        *map_row_blocks(vote.shape, of_some), strict=True
    )
    return Departure(
        np.concatenate(overruled),
        np.concatenate(tied),
        np.sum(added, axis=0),
        np.sum(dropped, axis=0),
    )


def summarize_changes(consensus: "Consensus", found: Departure) -> ChangesSummary:
    """Choose the instances to show, and explain each.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, _ = mlc.datasets.make_panel(n_instances=50, random_state=0)
    >>> consensus = mlc.combine(panel)
    >>> changes = summarize_changes(consensus, departure(consensus.vote, consensus.label_indicator))
    >>> len(changes.instances), changes.instances[0].overruled >= changes.instances[1].overruled
    (50, True)
    """
    n_changed = int((found.overruled > 0).sum())
    moved = np.argsort(-found.overruled, kind="stable")[: min(MOST_MOVED, n_changed)]
    others = np.setdiff1d(np.arange(len(found.overruled)), moved)
    shown = np.concatenate(
        [moved, others[evenly(len(others), MOST_INSTANCES - len(moved))]]
    )
    added, dropped, tied = (
        int(part.sum()) for part in (found.added, found.dropped, found.tied)
    )
    first = consensus.diagnostics.moved
    return ChangesSummary(
        n_changed, added, dropped, tied, first, len(moved), _rows(consensus, shown)
    )


def compute_overruled_votes(
    vote: FloatArray, chosen: BoolArray
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Find the votes (n, l) that each added label lacks, and that each dropped one has to spare; 0 for all others.

    And whether voting cannot decide which labels of an instance come last (n,).

    Examples
    --------
    >>> compute_overruled_votes(np.array([[0.75, 0.5, 0.25]]), np.array([[True, False, True]]))
    (array([[0.  , 0.  , 0.25]]), array([[0.  , 0.25, 0.  ]]), array([False]))
    """
    # The votes of the last label in and of the first out, if voting gives as many as
    # the consensus does.
    ranked = np.pad(
        -np.sort(-vote, axis=1),
        ((0, 0), (1, 1)),
        constant_values=((0, 0), (np.inf, -np.inf)),
    )
    last_in, first_out = np.take_along_axis(
        ranked, chosen.sum(axis=1)[:, None] + np.arange(2), axis=1
    ).T[:, :, None]
    apart = (
        np.where(chosen, last_in - vote, 0.0),
        np.where(chosen, 0.0, vote - first_out),
    )
    lacking, spare = (np.where(votes > _SAME, votes, 0.0) for votes in apart)
    return lacking, spare, (last_in <= first_out + _SAME)[:, 0]


def evenly(count: int, most: int) -> IntArray:
    """Choose at most `most` of `count` positions, evenly spaced.

    Examples
    --------
    >>> evenly(9, 3).tolist(), evenly(2, 3).tolist()
    ([0, 4, 8], [0, 1])
    """
    if count <= most:
        return np.arange(count)
    return np.linspace(0, count - 1, max(most, 0)).round().astype(np.int64)


def _rows(consensus: "Consensus", shown: IntArray) -> tuple[InstanceRow, ...]:
    """Describe the instances that stand at some positions."""
    scores = consensus.scores[shown]
    vote = consensus.vote[shown]
    chosen = consensus.label_indicator[shown]
    lacking, spare, tied = compute_overruled_votes(vote, chosen)
    added = lacking > 0
    dropped = spare > 0
    overruled = lacking + spare
    order = np.argsort(-scores, axis=1, kind="stable")
    panel = consensus.predictions[shown]
    labels = consensus.labels
    rows = []
    for i, name in enumerate(panel.instances.tolist()):
        own, more, less = (
            tuple(labels[j] for j in order[i] if kind[i, j])
            for kind in (chosen, added, dropped)
        )
        changed = [
            j for j in np.argsort(-overruled[i], kind="stable") if overruled[i, j] > 0
        ]
        reasons = []
        for j in dict.fromkeys([*changed[: _MOST_EXPLAINED - 1], order[i, 0]]):
            if added[i, j]:
                change = "added"
            else:
                if dropped[i, j]:
                    change = "dropped"
                else:
                    change = "first"

            why = explain(consensus.combiner, panel[[i]], name, labels[j])
            reasons.append(_reason(why, change, float(vote[i, j])))

        rows.append(
            InstanceRow(
                str(name),
                own,
                more,
                less,
                float(overruled[i].sum()),
                bool(tied[i]),
                tuple(reasons),
            )
        )

    return tuple(rows)


def _reason(why: Explanation, change: str, vote: float) -> Reason:
    """Keep of an explanation what is shown; `vote` is that of the whole panel, which knows the labels' priors."""
    parts = why.select_parts(_MOST_PARTS)
    others = int(why.is_relevant.sum()) + len(why.clusters) - len(parts)
    figures = (why.scale, why.baseline, why.remainder, why.total)
    return Reason(
        why.label,
        change,
        why.score,
        vote,
        *figures,
        tuple(parts),
        others,
        why.sum_others(parts),
    )
