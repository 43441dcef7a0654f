"""The section "Models"."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...terminal import shown
from ..findings import figure, warnings
from ..models import ModelRow, ModelsSummary
from .charts import heat_map
from .markup import Html, el, join, name, whole_name
from .panel import MOST_ROWS
from .tables import Cell, Column, bar, table


def models_section(models: ModelsSummary) -> Html:
    """Show who agrees with whom, and what should be looked at."""
    told = "Near 0 a model answers at random; below 0 it says the opposite of the others."
    if models.rows[0].weight is not None and not _differ(models):
        told += " These are also the weights that the method learned."
    return join(
        _warnings(models),
        el("h3", "Who agrees with whom"),
        _about(models),
        el("div", _agreement(models), _table(models), class_="beside"),
        el(
            "p", f"Reliability: correlation of what a model says with what models have in common. {told}", class_="note"
        ),
    )


def _warnings(models: ModelsSummary) -> Any:
    found = warnings(models)
    return el("ul", *(el("li", warning) for warning in found), class_="warning") if found else ""


def _about(models: ModelsSummary) -> Html:
    if len(models.rows) < 2:
        return el("p", "One model alone has nobody to agree with.", class_="empty")
    shown_, all_ = len(models.order), len(models.rows)
    which = f" Shown are the {shown_} with the strongest ties of {all_:,}." if shown_ < all_ else ""
    return el(
        "p",
        "Correlation of what two models say, over all labels together. Models that agree stand side by side." + which,
    )


def _agreement(models: ModelsSummary) -> Any:
    k = len(models.order)
    if k < 2:
        return ""
    low = np.unravel_index(int((models.agreement + 3 * np.eye(k)).argmin()), (k, k))
    high = np.unravel_index(int((models.agreement - 3 * np.eye(k)).argmax()), (k, k))
    about = f"Agreement of {k} models, as correlations. Highest: {_pair(models, high)}. Lowest: {_pair(models, low)}."
    return heat_map("models", models.order, models.agreement, about, limit=1.0)


def _pair(models: ModelsSummary, at: tuple[np.intp, ...]) -> str:
    return f"{shown(models.order[at[0]], 24)} and {shown(models.order[at[1]], 24)}, {figure(models.agreement[at])}"


def _table(models: ModelsSummary) -> Html:
    rows = models.rows[:MOST_ROWS]
    columns: list[tuple[Column, Any]] = [
        (Column("Model", number=False), lambda row: Cell(whole_name(row.name, 28))),
        (
            Column("Reliability"),
            lambda row: Cell(bar(row.reliability, figure(row.reliability)), row.reliability, "bars"),
        ),
    ]
    if _differ(models):
        about = "What the method learned of each model"
        columns.append((Column("Weight", about=about), lambda row: Cell(figure(row.weight), row.weight)))
    if len(models.rows) > 1:
        columns.append((Column("Agrees most with", number=False), _nearest))
    if any(row.remark for row in rows):
        columns.append((Column("To look at", number=False), lambda row: Cell(el("strong", shown(row.remark, 200)))))
    return table(
        "What the others' predictions tell about each model",
        [column for column, _ in columns],
        [[cell(row) for _, cell in columns] for row in rows],
        what="models",
    )


def _differ(models: ModelsSummary) -> bool:
    """Whether the method learned weights that are not the reliabilities beside which they would stand."""
    return any(row.weight is not None and figure(row.weight) != figure(row.reliability) for row in models.rows)


def _nearest(row: ModelRow) -> Cell:
    return Cell(join(name(row.nearest, 24), f" ({figure(row.agreement)})"), row.agreement)
