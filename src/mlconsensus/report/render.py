"""A report: one summary, as a page, a text or JSON; `templates` has one file a section of the page."""

import base64
import dataclasses
import hashlib
import json
import math
import os
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any, Literal, get_args

from ..errors import InputError, nearest, one_of
from ..io.files import atomic_write
from ..metrics.label_sets import LABEL_SET_METRICS
from ..metrics.ranking import RANKING_METRICS
from ..metrics.tables import find_best_rows, format_metrics_table, plain, title
from ..text import plural, shown, sizes, table
from .changes import ChangesSummary, Reason
from .charts import SHADES, heat, lines
from .findings import actions, figure, findings, warnings
from .labels import ends
from .summary import Summary

Format = Literal["html", "json", "text"]
_SUFFIXES: dict[str, Format] = {
    ".html": "html",
    ".htm": "html",
    ".json": "json",
    ".txt": "text",
}
_METRICS = (*RANKING_METRICS, *LABEL_SET_METRICS)
_MOST_ROWS = 2000  # of any table of the page


class Report:
    """What a consensus is made of, as a page, a text or JSON; a notebook shows the page.

    Attributes
    ----------
    summary
        All that the report says.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, _ = mlc.datasets.make_panel(n_instances=50, random_state=0)
    >>> report = mlc.combine(panel, method="filter").report()
    >>> report
    <Report: 5 models × 50 instances × 20 labels by Filter>
    """

    def __init__(self, summary: Summary) -> None:
        self.summary = summary

    def __repr__(self) -> str:
        panel = self.summary.panel
        shape = panel.n_models, panel.n_instances, panel.n_labels
        return f"<Report: {sizes(shape)} by {self.summary.origin.method}>"

    def _repr_html_(self) -> str:
        # In a frame of its own, the page neither takes the notebook's style nor gives
        # it one.
        page = escape(self.to_html())
        style = "width:100%;height:720px;border:1px solid #8888;border-radius:8px"
        return f'<iframe title="Consensus report" sandbox="allow-scripts" style="{style}" srcdoc="{page}"></iframe>'

    def to_html(self) -> str:
        """Return a page that needs no other file and no network.

        Examples
        --------
        >>> import mlconsensus as mlc
        >>> page = mlc.combine([[[1, 0]]], method="mv").report().to_html()
        >>> page[:15], "http://" in page, "https://" in page
        ('<!doctype html>', False, False)
        """
        from markupsafe import Markup

        folder = files(__package__) / "templates"
        summary = self.summary
        style, script = (
            (folder / name).read_text("utf-8") for name in ("page.css", "page.js")
        )
        models = summary.models
        labels = summary.labels
        judged = summary.judged
        data = {
            "models": [shown(name, 60) for name in models.order],
            "labels": [shown(name, 60) for name in labels.order],
            "matrices": {
                "models": models.agreement.round(3).tolist(),
                "labels": labels.correlation.round(3).tolist(),
            },
            "method": summary.origin.method,
            "explanations": _explanations(summary.changes),
        }
        results = {
            at: row.metrics for at, row in enumerate(judged.results if judged else ())
        }
        return self._rendered(
            "page.html.j2",
            style=Markup(style),
            script=Markup(script),
            script_hash=base64.b64encode(
                hashlib.sha256(script.encode()).digest()
            ).decode(),
            warnings=warnings(models),
            best={metric: find_best_rows(results, metric) for metric in _METRICS},
            data=data,
        )

    def to_json(self) -> str:
        """Return all of the summary as JSON: names in full, figures to the last digit, null where one has no value.

        Examples
        --------
        >>> import mlconsensus as mlc
        >>> json.loads(mlc.combine([[[1, 0]]]).report().to_json())["panel"]["n_labels"]
        2
        """
        return json.dumps(plain(self.summary), indent=1, allow_nan=False) + "\n"

    def to_text(self) -> str:
        """Return the main points for a terminal, a screen or two.

        Examples
        --------
        >>> import mlconsensus as mlc
        >>> print(mlc.combine([[[1, 0]]], method="mv").report().to_text().splitlines()[0])
        Consensus of 1 model: 1 instance × 2 labels
        """
        rows: dict[str, dict[str, float]] = {}
        if self.summary.judged:
            results = self.summary.judged.results
        else:
            results = ()

        models = [row for row in results if row.kind == "model"]
        for row in [*(row for row in results if row.kind != "model"), *models[:10]]:
            rows.setdefault(shown(row.name), row.metrics)

        return self._rendered(
            "report.txt.j2", results=format_metrics_table(rows) if rows else ""
        )

    def _rendered(self, template: str, **more: Any) -> str:
        summary = self.summary
        more |= {"actions": actions(summary), "findings": findings(summary)}
        for field in dataclasses.fields(summary):
            more[field.name] = getattr(summary, field.name)
        return str(_templates().get_template(template).render(more))

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        format: Format | None = None,
        force: bool = False,
    ) -> None:
        """Write the report; the suffix says how (``.html``, ``.json``, ``.txt``) unless `format` does.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import mlconsensus as mlc
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "report.html"
        >>> mlc.combine([[[1, 0]]]).report().save(path)
        >>> path.read_text(encoding="utf-8")[:15]
        '<!doctype html>'
        """
        rendered: str = getattr(self, f"to_{choose_report_format(path, format)}")()
        with atomic_write(path, force) as file:
            file.write(rendered.encode("utf-8"))


def choose_report_format(
    path: str | os.PathLike[str], format: str | None = None
) -> Format:
    """Say how a report is to be written: as `format` says, else as the suffix does; to standard output as text.

    Examples
    --------
    >>> choose_report_format("report.html"), choose_report_format("report.html", "text"), choose_report_format("-")
    ('html', 'text', 'text')
    """
    suffix = os.path.splitext(os.fspath(path))[1].lower()
    wanted: Any = format or (
        "text" if os.fspath(path) == "-" else _SUFFIXES.get(suffix)
    )
    known = f"one of {', '.join(_SUFFIXES)}{nearest(suffix, _SUFFIXES)}"
    if wanted is None:
        raise InputError(
            where=os.fspath(path), found=f"the suffix {suffix!r}", expected=known
        )

    one_of(wanted, get_args(Format), "format")
    return wanted  # type: ignore[no-any-return]


@cache
def _templates() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("mlconsensus.report"),
        autoescape=lambda name: (
            name != "report.txt.j2"
        ),  # a name is text, whatever it is made of
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    made.filters |= {
        "figure": figure,
        "plural": plural,
        "shown": shown,
        "aligned": _aligned,
        "ends": ends,
    }
    made.globals |= {
        "heat": heat,
        "lines": lines,
        "shades": SHADES,
        "most_rows": _MOST_ROWS,
    }
    made.globals["metrics"] = {metric: title(metric) for metric in _METRICS}
    return made


def _aligned(text: str, left: int = 1) -> str:
    """Lay out as a table what has tabs between cells; no name that is shown has a tab or a line end in it."""
    heads, *rows = (line.split("\t") for line in text.strip("\n").split("\n"))
    return table(heads, rows, left)


def _explanations(changes: ChangesSummary) -> dict[str, Any]:
    """Return what the script needs to show explanations: names once, then lists of positions and figures."""
    places: dict[str, int] = {}

    def place(text: object) -> int:
        return places.setdefault(shown(text, 40), len(places))

    def reason(found: Reason) -> list[Any]:
        parts = [
            [
                place(part.model),
                place(part.label),
                *map(_digits, (part.said, part.contribution, part.vote)),
            ]
            for part in found.parts
        ]
        figures = (
            found.score,
            found.vote,
            found.baseline,
            found.remainder,
            found.others,
            found.total,
        )
        return [
            place(found.label),
            found.change,
            found.scale,
            found.n_others,
            [*map(_digits, figures)],
            parts,
        ]

    reasons = [[reason(found) for found in row.reasons] for row in changes.instances]
    return {"names": list(places), "reasons": reasons}


def _digits(value: float | None) -> float | None:
    """Keep as many digits as the page shows, and one to spare."""
    if value is not None and math.isfinite(value):
        return round(value, 5)
    return None
