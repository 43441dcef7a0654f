"""The section "What consensus changed"."""

from __future__ import annotations

from typing import Any

from ...terminal import shown
from ..changes import ChangesSummary, InstanceRow, Reason
from .markup import Html, el, join, name
from .panel import tiles
from .tables import Cell, Column, bar, table

_MOST_CHIPS = 8


def changes_section(changes: ChangesSummary, method: str) -> Html:
    """Show how far label sets moved, and instance by instance why."""
    n = changes.n_instances
    return join(
        tiles(
            [
                (f"{changes.n_changed / n:.1%}", f"of instances get other labels ({changes.n_changed:,})"),
                (f"{changes.n_added:,}", "labels added"),
                (f"{changes.n_dropped:,}", "labels dropped"),
                (f"{changes.n_tied / n:.1%}", f"of instances are tied by voting ({changes.n_tied:,})"),
                (f"{changes.moved:.1%}", "of instances get another first label"),
            ]
        ),
        el(
            "p",
            "Voting gives each instance as many labels as the consensus does, those of most votes. Where it ties "
            "labels for the last places, taking one or the other changes nothing.",
        ),
        el("h3", "Instances"),
        el("p", f"{_which(changes)} Open one to see which model's which statement made the scores."),
        _instances(changes),
        el(
            "p",
            "Overruled: the votes that added labels lack to be among those that voting gives, and that dropped ones "
            "have to spare, added up. Each explanation is an exact sum: where it starts and what each statement "
            f"pushes up or down make the score by {method}.",
            class_="note",
        ),
    )


def explanations(changes: ChangesSummary) -> dict[str, Any]:
    """Return what the script needs to show explanations: names once, then lists of positions and figures."""
    places: dict[str, int] = {}

    def place(text: object) -> int:
        return places.setdefault(shown(text, 40), len(places))

    def reason(found: Reason) -> list[Any]:
        parts = [
            [place(part.model), place(part.label), _digits(part.said), _digits(part.contribution), _digits(part.vote)]
            for part in found.parts
        ]
        figures = (found.score, found.vote, found.baseline, found.remainder, found.others, found.total)
        return [
            place(found.label), found.change, found.scale, found.n_others, [_digits(f) for f in figures], parts,
        ]  # fmt: skip

    reasons = [[reason(found) for found in row.reasons] for row in changes.instances]
    return {"names": list(places), "reasons": reasons}


def _which(changes: ChangesSummary) -> str:
    moved, shown_ = changes.n_moved_shown, len(changes.instances)
    if shown_ == changes.n_instances:
        return "All instances, those that moved most first."
    if moved == shown_:
        return f"The {moved:,} that moved most of {changes.n_instances:,}."
    first = f"The {moved:,} that moved most, and an" if moved else "An"
    return f"{first} even sample of {shown_ - moved:,} of the others, of {changes.n_instances:,} in all."


def _instances(changes: ChangesSummary) -> Html:
    most = max((row.overruled for row in changes.instances), default=0.0) or 1.0
    columns = [
        Column("Instance", number=False),
        Column("Labels", number=False, sort=False),
        Column("Overruled", about="Votes that added labels lack and dropped ones have to spare"),
    ]
    rows = [
        [
            Cell(_button(row), row.name[:200]),
            Cell(_chips(row)),
            Cell(bar(row.overruled / most, f"{row.overruled:.2f}"), row.overruled, "bars"),
        ]
        for row in changes.instances
    ]
    caption = "Labels of the consensus: + added, − dropped against voting"
    return table(caption, columns, rows, what="instances", sorted_by=2, id="instances")


def _button(row: InstanceRow) -> Html:
    return el("button", name(row.name, 40), type="button", class_="why", aria_expanded="false")


def _chips(row: InstanceRow) -> Html:
    chips = [_chip(label, "added" if label in row.added else "") for label in row.labels[:_MOST_CHIPS]]
    chips += [_chip(label, "dropped") for label in row.dropped[:_MOST_CHIPS]]
    more = max(0, len(row.labels) - _MOST_CHIPS) + max(0, len(row.dropped) - _MOST_CHIPS)
    if more:
        chips.append(el("span", f"{more:,} more", class_="note"))
    if not chips:
        chips.append(el("span", "none", class_="note"))
    if row.tied and not (row.added or row.dropped):
        chips.append(el("span", "tied by voting", class_="note"))
    return el("span", *chips, class_="chips")


def _chip(label: str, change: str) -> Html:
    sign: Any = ""
    if change:
        sign = join(
            el("span", "+" if change == "added" else "−", aria_hidden="true"), el("span", change, class_="sr"), " "
        )
    tag = "del" if change == "dropped" else "span"
    return el(tag, sign, name(label, 24), class_=f"chip {change}".strip())


def _digits(figure: float | None) -> float | None:
    """Keep as many digits as the page shows, and one to spare."""
    return None if figure is None or figure != figure or abs(figure) == float("inf") else round(figure, 5)
