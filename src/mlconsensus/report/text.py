"""A summary as text for a terminal: the main points, a screen or two."""

from __future__ import annotations

from collections.abc import Sequence

from ..evaluation.metrics import RANKING_METRICS
from ..tables import metrics_table
from ..terminal import padded, shown, width
from .changes import ChangesSummary
from .findings import figure, findings, plural
from .judged import JudgedSummary
from .labels import LabelsSummary
from .models import ModelsSummary
from .origin import Origin
from .panel import PanelSummary
from .summary import Summary

_MOST = 10  # rows of a table


def to_text(summary: Summary) -> str:
    """Render the main points of a summary.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> from mlconsensus.report import summarise
    >>> print(to_text(summarise(mlc.combine([[[1, 0]]], method="mv"))).splitlines()[0])
    Consensus of 1 model: 1 instance × 2 labels
    """
    panel, origin = summary.panel, summary.origin
    sizes = f"{plural(panel.n_instances, 'instance')} × {plural(panel.n_labels, 'label')}"
    title = f"Consensus of {plural(panel.n_models, 'model')}: {sizes}"
    how = f"Combined by {origin.method}, since {origin.reason}."
    sections = [
        ("The panel", _panel(panel)),
        ("Models", _models(summary.models)),
        ("Labels", _labels(summary.labels)),
        ("What consensus changed", _changes(summary.changes)),
        ("Against the truth", _judged(summary.judged)),
        ("How it was made", _origin(origin)),
    ]
    parts = [title, "\n".join(f"- {sentence}" for sentence in [how, *findings(summary)])]
    parts += [f"{heading}\n{'=' * len(heading)}\n{body}" for heading, body in sections]
    return "\n\n".join(parts) + "\n"


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]], names: int = 1) -> str:
    """Align columns: the first `names` to the left, the others to the right."""
    cells = [list(heads), *([shown(cell, 40) for cell in row] for row in rows[:_MOST])]
    widths = [max(width(row[at]) for row in cells) for at in range(len(heads))]
    lines = [
        "  ".join(
            padded(cell, most) if at < names else " " * (most - width(cell)) + cell
            for at, (cell, most) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
    left = len(rows) - _MOST
    return "\n".join([*lines, *([f"… and {left:,} more"] if left > 0 else [])])


def _panel(panel: PanelSummary) -> str:
    rows = [
        (model.name, f"{model.cardinality:.2f}", f"{model.instances:,}", f"{model.labels:,}", f"{model.missing:.1%}")
        for model in panel.models
    ]
    return _table(("model", "labels per instance", "instances seen", "labels known", "missing"), rows)


def _models(models: ModelsSummary) -> str:
    rows = [
        (
            row.name,
            "–" if row.nearest is None else f"{shown(row.nearest, 24)} ({figure(row.agreement)})",
            shown(row.remark, 40),
            figure(row.reliability),
        )
        for row in models.rows
    ]
    return _table(("model", "agrees most with", "to look at", "reliability"), rows, names=3)


def _labels(labels: LabelsSummary) -> str:
    rows = [
        (row.name, f"{row.dispute:.1%}", f"{row.consensus:,}", f"{row.added:,}", f"{row.dropped:,}")
        for row in sorted(labels.rows, key=lambda row: -row.dispute)
    ]
    pairs = [
        (pair.one, pair.other, f"{pair.together:,}", f"{pair.expected:,.1f}", f"{pair.correlation:.2f}")
        for pair in labels.pairs
    ]
    together = _table(("label", "with", "together", "by chance", "correlation"), pairs, names=2)
    disputed = _table(("label", "disputed", "instances", "added", "dropped"), rows)
    return disputed + (
        f"\n\n{together}" if pairs else "\n\nNo two labels come together more often than chance lets expect."
    )


def _changes(changes: ChangesSummary) -> str:
    rows = [
        (row.name, _names(row.added, "+"), _names(row.dropped, "−"), f"{row.overruled:.2f}")
        for row in changes.instances
        if row.overruled
    ]
    if not rows:
        return "No instance gets other labels than voting gives it."
    return _table(("instance", "added", "dropped", "overruled"), rows, names=3)


def _names(names: Sequence[str], sign: str) -> str:
    return ", ".join(f"{sign}{shown(name, 16)}" for name in names[:3])


def _judged(judged: JudgedSummary | None) -> str:
    if judged is None:
        return "No truth was given; --truth FILE shows how good every method and model is."
    rows: dict[str, dict[str, float]] = {}
    for row in judged.results:
        rows.setdefault(shown(row.name, 40), row.metrics)
    sampled = f"\nover an even sample of {judged.n_sampled:,} of {judged.n_instances:,} instances"
    return metrics_table(rows, RANKING_METRICS) + (sampled if judged.n_sampled < judged.n_instances else "")


def _origin(origin: Origin) -> str:
    parameters = ", ".join(f"{key} = {value}" for key, value in origin.parameters.items()) or "none"
    return "\n".join(
        [
            *([f"command: {shown(origin.command, 10_000)}"] if origin.command else []),
            f"parameters: {parameters}",
            "versions: " + ", ".join(f"{what} {number}" for what, number in origin.versions.items()),
            *(f"{shown(found.name)}: sha256 {found.sha256}" for found in origin.inputs),
        ]
    )
