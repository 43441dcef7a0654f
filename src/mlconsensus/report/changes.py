"""Compare the label sets of the consensus with those of voting."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

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


@dataclass(frozen=True, kw_only=True)
class Departure:
    """How the label sets of the consensus differ from those of voting.

    Voting gives each instance the labels with most votes, as many as the consensus
    gives it. If the last label in its set and the first that is not have equally many
    votes, they are tied, and to take one or the other is not a change.
    """

    # (n,) votes that added labels lack to the last label in the set of voting, plus
    # votes that dropped labels have above the first label that is not in it
    overruled: FloatArray
    tied: BoolArray  # (n,) whether the last labels of an instance are tied
    added: IntArray  # (l,) instances to which only the consensus gives a label
    dropped: IntArray  # (l,) instances to which only voting gives it


@dataclass(frozen=True, kw_only=True)
class Reason:
    """The part of an `Explanation` of one label that the report shows."""

    label: str
    change: str  # "added", "dropped", or "first" of the consensus
    score: float
    vote: float
    scale: str  # of the numbers below: "score" or "log-odds"
    baseline: float
    remainder: float
    total: float
    parts: tuple[Part, ...]  # the largest
    n_others: int
    others: float  # sum of the other parts


@dataclass(frozen=True, kw_only=True)
class InstanceRow:
    """The label set of one instance, and its difference to voting."""

    name: str
    labels: tuple[str, ...]  # of the consensus, from the highest score to the lowest
    added: tuple[str, ...]
    dropped: tuple[str, ...]
    overruled: float
    tied: bool
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, kw_only=True)
class ChangesSummary:
    """How far the label sets of the consensus differ from those of voting."""

    n_changed: int  # instances with labels added or dropped
    n_added: int
    n_dropped: int
    n_tied: int  # instances whose last labels are tied in voting
    # share of instances whose first label is not among those that voting ranks first
    moved: float
    # number of the instances below that changed most; the others are an even sample
    n_moved_shown: int
    instances: tuple[InstanceRow, ...]


def compare_with_vote(vote: FloatArray, chosen: BoolArray) -> Departure:
    """Compare the label sets of the consensus with those of voting.

    Parameters
    ----------
    vote : ndarray of shape (n, l)
        Scores of majority voting.
    chosen : ndarray of bool of shape (n, l)
        Label sets of the consensus.

    Returns
    -------
    Departure

    Examples
    --------
    >>> vote = np.array([[0.9, 0.6, 0.1], [0.5, 0.5, 0.0]])
    >>> chosen = np.array([[True, False, True], [False, True, False]])
    >>> changes = compare_with_vote(vote, chosen)
    >>> changes.added.tolist(), changes.dropped.tolist()
    ([0, 0, 1], [0, 1, 0])
    >>> changes.overruled.tolist(), changes.tied.tolist()
    ([1.0, 0.0], [False, True])
    """

    def compare_rows(rows: slice) -> tuple[Array, ...]:
        lacking, spare, tied = compute_overruled_votes(vote[rows], chosen[rows])
        return (
            (lacking + spare).sum(axis=1),
            tied,
            (lacking > 0).sum(axis=0),
            (spare > 0).sum(axis=0),
        )

    parts = map_row_blocks(vote.shape, compare_rows)
    overruled, tied, added, dropped = zip(*parts, strict=True)
    return Departure(
        overruled=np.concatenate(overruled),
        tied=np.concatenate(tied),
        added=np.sum(added, axis=0),
        dropped=np.sum(dropped, axis=0),
    )


def summarize_changes(consensus: "Consensus", changes: Departure) -> ChangesSummary:
    """Select the instances to show, and explain them.

    Parameters
    ----------
    consensus : Consensus
        The result of `combine`.
    changes : Departure
        Its difference to voting.

    Returns
    -------
    ChangesSummary

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, _ = mlc.datasets.make_panel(n_instances=50, random_state=0)
    >>> consensus = mlc.combine(panel)
    >>> changes = compare_with_vote(consensus.vote, consensus.label_indicator)
    >>> first, second, *others = summarize_changes(consensus, changes).instances
    >>> first.overruled >= second.overruled, len(others)
    (True, 48)
    """
    n_instances = len(changes.overruled)
    n_changed = int((changes.overruled > 0).sum())
    n_moved = min(MOST_MOVED, n_changed)

    # The instances that changed most, and an even sample of the others
    moved = np.argsort(-changes.overruled, kind="stable")[:n_moved]
    others = np.setdiff1d(np.arange(n_instances), moved)
    sample = others[evenly(len(others), MOST_INSTANCES - n_moved)]
    return ChangesSummary(
        n_changed=n_changed,
        n_added=int(changes.added.sum()),
        n_dropped=int(changes.dropped.sum()),
        n_tied=int(changes.tied.sum()),
        moved=consensus.diagnostics.moved,
        n_moved_shown=n_moved,
        instances=_describe_instances(consensus, np.concatenate([moved, sample])),
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


def _describe_instances(
    consensus: "Consensus", positions: IntArray
) -> tuple[InstanceRow, ...]:
    """Return the rows of the instances at these positions."""
    scores = consensus.scores[positions]
    vote = consensus.vote[positions]
    chosen = consensus.label_indicator[positions]
    panel = consensus.predictions[positions]
    lacking, spare, tied = compute_overruled_votes(vote, chosen)
    overruled = lacking + spare
    order = np.argsort(-scores, axis=1, kind="stable")

    rows = []
    for i, name in enumerate(panel.instances.tolist()):
        # Changed labels, those against most votes first, and the first label
        changed = np.argsort(-overruled[i], kind="stable")
        changed = changed[overruled[i, changed] > 0][: _MOST_EXPLAINED - 1]
        explained = dict.fromkeys([*changed.tolist(), int(order[i, 0])])

        reasons = []
        for j in explained:
            if lacking[i, j] > 0:
                change = "added"
            elif spare[i, j] > 0:
                change = "dropped"
            else:
                change = "first"

            label = consensus.labels[j]
            why = explain(consensus.combiner, panel[[i]], name, label)
            reasons.append(_shorten(why, change, float(vote[i, j])))

        row = InstanceRow(
            name=str(name),
            labels=_name_labels(consensus, order[i], chosen[i]),
            added=_name_labels(consensus, order[i], lacking[i] > 0),
            dropped=_name_labels(consensus, order[i], spare[i] > 0),
            overruled=float(overruled[i].sum()),
            tied=bool(tied[i]),
            reasons=tuple(reasons),
        )
        rows.append(row)

    return tuple(rows)


def _name_labels(
    consensus: "Consensus", order: IntArray, is_selected: BoolArray
) -> tuple[str, ...]:
    """Return the names of the selected labels of an instance, in this order."""
    selected = order[is_selected[order]]
    return tuple(consensus.labels[j] for j in selected.tolist())


def _shorten(why: Explanation, change: str, vote: float) -> Reason:
    """Return what is shown of an explanation.

    `vote` is that of all predictions, which know the labels' mean scores.
    """
    parts = why.select_parts(_MOST_PARTS)
    n_parts = int(why.is_relevant.sum()) + len(why.clusters)
    return Reason(
        label=why.label,
        change=change,
        score=why.score,
        vote=vote,
        scale=why.scale,
        baseline=why.baseline,
        remainder=why.remainder,
        total=why.total,
        parts=tuple(parts),
        n_others=n_parts - len(parts),
        others=why.sum_others(parts),
    )
