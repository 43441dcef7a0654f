"""A summary as a page, as text and as JSON; `templates` has one file a section of the page, and one for the text."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ..evaluation.metrics import LABEL_SET_METRICS, RANKING_METRICS
from ..tables import best_rows, metrics_table, plain, title
from ..terminal import plural, shown, table
from .changes import ChangesSummary, Reason
from .charts import SHADES, heat, lines
from .findings import actions, figure, findings, warnings
from .judged import JudgedSummary
from .summary import Summary

if TYPE_CHECKING:
    from jinja2 import Environment

_METRICS = (*RANKING_METRICS, *LABEL_SET_METRICS)
_MOST_ROWS = 2000  # of any table of the page


def to_json(summary: Summary) -> str:
    """Render all of a summary as JSON: names in full, figures to the last digit, null where a figure has no value.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> from mlconsensus.report import summarise
    >>> json.loads(to_json(summarise(mlc.combine([[[1, 0]]]))))["panel"]["n_labels"]
    2
    """
    return json.dumps(plain(summary), indent=1, allow_nan=False) + "\n"


def to_text(summary: Summary) -> str:
    """Render the main points of a summary for a terminal, a screen or two.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> from mlconsensus.report import summarise
    >>> print(to_text(summarise(mlc.combine([[[1, 0]]], method="mv"))).splitlines()[0])
    Consensus of 1 model: 1 instance × 2 labels
    """
    rows: dict[str, dict[str, float]] = {}
    for row in summary.judged.results if summary.judged else ():
        rows.setdefault(shown(row.name), row.metrics)
    template = _templates().get_template("report.txt.j2")
    results = metrics_table(rows) if rows else ""
    said = {"actions": actions(summary), "findings": findings(summary), "results": results}
    return template.render(summary._asdict(), **said)


def to_html(summary: Summary) -> str:
    """Render a summary as one page that needs no other file and no network.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> from mlconsensus.report import summarise
    >>> page = to_html(summarise(mlc.combine([[[1, 0]]], method="mv")))
    >>> page[:15], "http://" in page, "https://" in page
    ('<!doctype html>', False, False)
    """
    from markupsafe import Markup

    folder = files(__package__) / "templates"
    style, script = ((folder / name).read_text("utf-8") for name in ("page.css", "page.js"))
    models, labels = summary.models, summary.labels
    data = {
        "models": [shown(name, 60) for name in models.order],
        "labels": [shown(name, 60) for name in labels.order],
        "matrices": {"models": models.agreement.round(3).tolist(), "labels": labels.correlation.round(3).tolist()},
        "method": summary.origin.method,
        "explanations": _explanations(summary.changes),
    }
    template = _templates().get_template("page.html.j2")
    return template.render(
        summary._asdict(),
        style=Markup(style),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        actions=actions(summary),
        findings=findings(summary),
        warnings=warnings(summary.models),
        best=_best(summary.judged),
        data=data,
    )


@cache
def _templates() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("mlconsensus.report"),
        autoescape=lambda name: name != "report.txt.j2",  # a name is text, whatever it is made of
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    made.filters |= {"figure": figure, "plural": plural, "shown": shown, "aligned": _aligned}
    made.globals |= {"heat": heat, "lines": lines, "shades": SHADES, "most_rows": _MOST_ROWS}
    made.globals["metrics"] = {metric: title(metric) for metric in _METRICS}
    return made


def _aligned(text: str, left: int = 1) -> str:
    """Lay out as a table what has tabs between cells; no name that is shown has a tab or a line end in it."""
    heads, *rows = (line.split("\t") for line in text.strip("\n").split("\n"))
    return table(heads, rows, left)


def _best(judged: JudgedSummary | None) -> dict[str, set[int]]:
    """Find the rows that hold the best of each metric."""
    rows = {str(at): row.metrics for at, row in enumerate(judged.results if judged else ())}
    return {metric: set(map(int, best_rows(rows, metric))) for metric in _METRICS}


def _explanations(changes: ChangesSummary) -> dict[str, Any]:
    """Return what the script needs to show explanations: names once, then lists of positions and figures."""
    places: dict[str, int] = {}

    def place(text: object) -> int:
        return places.setdefault(shown(text, 40), len(places))

    def reason(found: Reason) -> list[Any]:
        parts = [
            [place(part.model), place(part.label), *map(_digits, (part.said, part.contribution, part.vote))]
            for part in found.parts
        ]
        figures = (found.score, found.vote, found.baseline, found.remainder, found.others, found.total)
        return [place(found.label), found.change, found.scale, found.n_others, [*map(_digits, figures)], parts]

    reasons = [[reason(found) for found in row.reasons] for row in changes.instances]
    return {"names": list(places), "reasons": reasons}


def _digits(value: float | None) -> float | None:
    """Keep as many digits as the page shows, and one to spare."""
    return round(value, 5) if value is not None and math.isfinite(value) else None
