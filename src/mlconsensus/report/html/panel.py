"""The section "The panel"."""

from __future__ import annotations

from ..panel import PanelSummary
from .markup import Html, el, join, whole_name
from .tables import Cell, Column, bar, table

MOST_ROWS = 2000  # of any table


def panel_section(panel: PanelSummary) -> Html:
    """Show sizes, and what each model said of how much."""
    most = max((model.cardinality for model in panel.models), default=0.0) or 1.0
    rows = [
        [
            Cell(whole_name(model.name)),
            Cell(bar(model.cardinality / most, f"{model.cardinality:.2f}"), model.cardinality, "bars"),
            Cell(f"{model.instances:,}", model.instances),
            Cell(f"{model.labels:,}", model.labels),
            Cell(f"{model.missing:.1%}", model.missing),
            Cell("0 or 1" if model.decides else "scores", class_="short"),
        ]
        for model in panel.models[:MOST_ROWS]
    ]
    columns = [
        Column("Model", number=False),
        Column("Labels per instance", about="Sum of its scores over an instance about which it spoke"),
        Column("Instances seen"),
        Column("Labels known"),
        Column("Missing", about="Share of the panel's instances and labels about which it said nothing"),
        Column("Says", number=False),
    ]
    return join(
        tiles(
            [
                (f"{panel.n_models:,}", "model" if panel.n_models == 1 else "models"),
                (f"{panel.n_instances:,}", "instance" if panel.n_instances == 1 else "instances"),
                (f"{panel.n_labels:,}", "label" if panel.n_labels == 1 else "labels"),
                (f"{panel.missing:.1%}", "of the predictions missing"),
                (f"{panel.cardinality:.2f}", "labels per instance, on average"),
                *([(f"{panel.n_clusterings:,}", "clusterings")] if panel.n_clusterings else []),
            ]
        ),
        table("What each model said", columns, rows, what="models", search=False),
        el(
            "p",
            "What a model has not seen or does not know is silence, and counts neither as yes nor as no.",
            class_="note",
        ),
    )


def tiles(figures: list[tuple[str, str]]) -> Html:
    """Show a few figures in large type."""
    return el("dl", *(el("div", el("dt", about), el("dd", figure)) for figure, about in figures), class_="tiles")
