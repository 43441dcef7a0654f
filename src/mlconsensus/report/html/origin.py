"""The section "How it was made"."""

from __future__ import annotations

from ...terminal import shown
from ..origin import Origin
from .markup import Html, el, join, name
from .tables import Cell, Column, table


def origin_section(origin: Origin) -> Html:
    """Show what it takes to make the report again."""
    facts = [
        ("Method", f"{origin.method}, since {origin.reason}"),
        ("Parameters", ", ".join(f"{key} = {shown(value, 200)}" for key, value in origin.parameters.items()) or "none"),
        ("Versions", ", ".join(f"{what} {number}" for what, number in origin.versions.items())),
    ]
    line = el("pre", el("code", shown(origin.command, 10_000)), tabindex="0")
    command = [el("h3", "Command"), line] if origin.command else []
    columns = [Column("Input", number=False), Column("Bytes"), Column("SHA-256", number=False, sort=False)]
    rows = [
        [
            Cell(name(found.name)),
            "in memory" if found.size is None else Cell(f"{found.size:,}", found.size),
            el("code", found.sha256, class_="hash"),
        ]
        for found in origin.inputs
    ]
    return join(
        el("dl", *(join(el("dt", what), el("dd", said)) for what, said in facts), class_="facts"),
        *command,
        table("What went in", columns, rows, what="inputs", search=False, rows_shown=50),
        el("p", "The same input gives the same report, to the byte.", class_="note"),
    )
