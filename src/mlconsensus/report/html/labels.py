"""The section "Labels"."""

from __future__ import annotations

import numpy as np

from ...terminal import shown
from ..labels import LabelsSummary
from .charts import heat_map
from .markup import Html, el, join, name, whole_name
from .panel import MOST_ROWS
from .tables import Cell, Column, bar, table


def labels_section(labels: LabelsSummary) -> Html:
    """Show which labels go together, and which are disputed."""
    return join(el("h3", "Which labels go together"), _together(labels), el("h3", "All labels"), _all(labels))


def _together(labels: LabelsSummary) -> Html:
    if len(labels.order) < 2:
        used = "only one label" if labels.order else "no label"
        return el("p", f"The consensus gives {used} to any instance, so that none can go together.", class_="empty")
    best = "".join(
        f" {shown(pair.one, 24)} with {shown(pair.other, 24)}, {pair.correlation:.2f}." for pair in labels.pairs[:3]
    )
    about = f"How {len(labels.order)} labels go together, as correlations." + (f" Closest:{best}" if best else "")
    hidden = len(labels.rows) - len(labels.order)
    unused = sum(row.consensus == 0 for row in labels.rows)
    which = (
        f" Left out are {hidden:,} labels that no instance has." if hidden and hidden == unused
        else f" Shown are the {len(labels.order)} with the strongest ties of {len(labels.rows):,}." if hidden
        else ""
    )  # fmt: skip
    apart = labels.correlation[~np.eye(len(labels.order), dtype=np.bool_)]
    limit = max(0.05, float(np.abs(apart).max()))
    return join(
        el(
            "p",
            "Correlation of two labels in the label sets of the consensus: above 0 they come together more often than "
            f"chance lets expect, below 0 less often. Labels that go together stand side by side.{which}",
        ),
        el("div", heat_map("labels", labels.order, labels.correlation, about, limit), _pairs(labels), class_="beside"),
    )


def _pairs(labels: LabelsSummary) -> Html:
    if not labels.pairs:
        return el("p", "No two labels come together more often than chance lets expect.", class_="empty")
    columns = [
        Column("Label", number=False),
        Column("With", number=False),
        Column("Together", about="Instances that have both"),
        Column("By chance", about="Instances that would have both if they had nothing to do with each other"),
        Column("Correlation"),
    ]
    rows = [
        [
            Cell(name(pair.one)),
            Cell(name(pair.other)),
            Cell(f"{pair.together:,}", pair.together),
            Cell(f"{pair.expected:,.1f}", pair.expected),
            Cell(f"{pair.correlation:.2f}", pair.correlation),
        ]
        for pair in labels.pairs
    ]
    return table("Labels that go together most", columns, rows, what="pairs", search=False, sorted_by=4, rows_shown=8)


def _all(labels: LabelsSummary) -> Html:
    ranked = sorted(labels.rows, key=lambda row: -row.dispute)
    shown_rows = ranked[:MOST_ROWS]
    most = max((row.dispute for row in ranked), default=0.0) or 1.0
    columns = [
        Column("Label", number=False),
        Column(
            "Disputed", about="Mean squared difference of two models' scores: how often they differ, if they decide"
        ),
        Column("Instances", about="To which the consensus gives the label"),
        Column("Added", about="Instances to which only the consensus gives it, not voting"),
        Column("Dropped", about="Instances to which only voting gives it, not the consensus"),
    ]
    rows = [
        [
            Cell(whole_name(row.name)),
            Cell(bar(row.dispute / most, f"{row.dispute:.1%}", "warm"), row.dispute, "bars"),
            Cell(f"{row.consensus:,}", row.consensus),
            Cell(f"+{row.added:,}" if row.added else "0", row.added, "up" if row.added else None),
            Cell(f"−{row.dropped:,}" if row.dropped else "0", row.dropped, "down" if row.dropped else None),
        ]
        for row in shown_rows
    ]
    less = f" Shown are the {MOST_ROWS:,} most disputed of {len(ranked):,}." if len(ranked) > MOST_ROWS else ""
    return join(
        table("Labels, most disputed first", columns, rows, what="labels", sorted_by=1),
        el(
            "p",
            "A label is disputed as far as two models differ on it. Added and dropped are against voting for label "
            f"sets of the same sizes; where voting is tied, nothing counts as changed.{less}",
            class_="note",
        ),
    )
