"""Reports: one summary, rendered as a page, as text or as JSON.

The folder `templates` has one file per section of the page.
"""

import base64
import dataclasses
import hashlib
import json
import math
import os
from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Literal, cast, get_args

from ..errors import InputError, nearest, one_of
from ..io.files import atomic_write
from ..metrics.label_sets import LABEL_SET_METRICS
from ..metrics.ranking import RANKING_METRICS
from ..metrics.tables import find_best_rows, format_metrics_table, plain, title
from ..text import plural, shown, sizes, table
from .changes import ChangesSummary, Reason
from .charts import SHADES, heat, lines
from .findings import actions, figure, findings, introduce, warnings
from .labels import ends
from .summary import Summary

if TYPE_CHECKING:
    from jinja2 import Environment

Format = Literal["html", "json", "text"]
_SUFFIXES: dict[str, Format] = {
    ".html": "html",
    ".htm": "html",
    ".json": "json",
    ".txt": "text",
}
_METRICS = (*RANKING_METRICS, *LABEL_SET_METRICS)
# Full names of methods whose names are acronyms.
_FULL_NAMES = {
    "MV": "majority voting",
    "DS": "Dawid–Skene",
    "BGCM": "bipartite graph-based consensus maximization",
    "MLCM-r": "multilabel consensus maximization for ranking",
    "MLCM-a": "multilabel consensus maximization for microAUC",
    "Weighted": "weighted consensus",
    "BM": "mean of the models",
}
# Rows of any table of the page.
_MAX_ROWS = 2000
# Rows of models in the table of metrics of the text.
_MAX_MODEL_ROWS = 10
# Characters of names in the page's charts, and in its explanations.
_MAX_NAME_LENGTH = 60
_MAX_EXPLANATION_NAME_LENGTH = 40
_FRAME_STYLE = "width:100%;height:720px;border:1px solid #8888;border-radius:8px"


class Report:
    """A report about a consensus, as a page, as text or as JSON.

    A notebook shows the page.

    Parameters
    ----------
    summary : Summary
        All data of the report.

    Attributes
    ----------
    summary : Summary
        All data of the report.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, _ = mlc.datasets.make_panel(n_instances=50, random_state=0)
    >>> report = mlc.combine(panel, method="weighted").report()
    >>> report
    <Report: 5 models × 50 instances × 20 labels by weighted_consensus>
    """

    def __init__(self, summary: Summary) -> None:
        self.summary = summary

    def __repr__(self) -> str:
        panel = self.summary.panel
        shape = (panel.n_models, panel.n_instances, panel.n_labels)
        return f"<Report: {sizes(shape)} by {self.summary.origin.method}>"

    def _repr_html_(self) -> str:
        # In a frame, the page's style and that of the notebook stay apart.
        page = escape(self.to_html())
        return (
            '<iframe title="Consensus report" sandbox="allow-scripts" '
            f'style="{_FRAME_STYLE}" srcdoc="{page}"></iframe>'
        )

    def to_html(self) -> str:
        """Return a page that needs no other file and no network.

        Returns
        -------
        str

        Examples
        --------
        >>> import mlconsensus as mlc
        >>> page = mlc.combine([[[1, 0]]], method="mv").report().to_html()
        >>> page[:15], "http://" in page, "https://" in page
        ('<!doctype html>', False, False)
        """
        from markupsafe import Markup

        folder = files(__package__) / "templates"
        style = (folder / "page.css").read_text("utf-8")
        script = (folder / "page.js").read_text("utf-8")
        digest = hashlib.sha256(script.encode()).digest()

        # The best values of each metric, which the page prints in bold.
        evaluation = self.summary.judged
        results = {}
        if evaluation is not None:
            for position, row in enumerate(evaluation.results):
                results[position] = row.metrics
        best_rows = {metric: find_best_rows(results, metric) for metric in _METRICS}

        return self._render(
            "page.html.j2",
            style=Markup(style),
            script=Markup(script),
            script_hash=base64.b64encode(digest).decode(),
            warnings=warnings(self.summary.models),
            best=best_rows,
            data=_make_script_data(self.summary),
        )

    def to_json(self) -> str:
        """Return the summary as JSON.

        Names and numbers are complete; null is a number without a value.

        Returns
        -------
        str

        Examples
        --------
        >>> import mlconsensus as mlc
        >>> json.loads(mlc.combine([[[1, 0]]]).report().to_json())["panel"]["n_labels"]
        2
        """
        return json.dumps(plain(self.summary), indent=1, allow_nan=False) + "\n"

    def to_text(self) -> str:
        """Return the main points for a terminal, a screen or two.

        Returns
        -------
        str

        Examples
        --------
        >>> import mlconsensus as mlc
        >>> report = mlc.combine([[[1, 0]]], method="mv").report()
        >>> print(report.to_text().splitlines()[0])
        Consensus of 1 model: 1 instance × 2 labels
        """
        # Methods first, then the first models.
        methods = []
        models = []
        if self.summary.judged is not None:
            for row in self.summary.judged.results:
                if row.kind == "model":
                    models.append(row)
                else:
                    methods.append(row)

        metrics: dict[str, dict[str, float]] = {}
        for row in methods + models[:_MAX_MODEL_ROWS]:
            metrics.setdefault(shown(row.name), row.metrics)

        results = ""
        if metrics:
            results = format_metrics_table(metrics)
        return self._render("report.txt.j2", results=results)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        format: Format | None = None,
        force: bool = False,
    ) -> None:
        """Write the report to a file.

        Parameters
        ----------
        path : str or path-like
            The file. Its suffix is that of the format: ``.html``, ``.json`` or
            ``.txt``.
        format : {"html", "json", "text"}, default=None
            The format, regardless of the suffix.
        force : bool, default=False
            Whether to replace a file that exists.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import mlconsensus as mlc
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "report.html"
        >>> mlc.combine([[[1, 0]]]).report().save(path)
        >>> path.read_text(encoding="utf-8")[:15]
        '<!doctype html>'
        """
        renderers = {
            "html": self.to_html,
            "json": self.to_json,
            "text": self.to_text,
        }
        render = renderers[choose_report_format(path, format)]
        content = render().encode("utf-8")
        with atomic_write(path, force) as file:
            file.write(content)

    def _render(self, template: str, **variables: object) -> str:
        """Render a template with all fields of the summary and other variables."""
        variables["actions"] = actions(self.summary)
        variables["findings"] = findings(self.summary)
        variables["introduction"] = introduce(self.summary)
        for field in dataclasses.fields(self.summary):
            variables[field.name] = getattr(self.summary, field.name)
        return _load_templates().get_template(template).render(variables)


def choose_report_format(
    path: str | os.PathLike[str], format: str | None = None
) -> Format:
    """Return the format of a report.

    Parameters
    ----------
    path : str or path-like
        Where the report is written; ``-`` is standard output, for text.
    format : {"html", "json", "text"}, default=None
        The format, regardless of the suffix.

    Returns
    -------
    {"html", "json", "text"}

    Examples
    --------
    >>> choose_report_format("report.html"), choose_report_format("-")
    ('html', 'text')
    >>> choose_report_format("report.html", "text")
    'text'
    """
    name = os.fspath(path)
    suffix = os.path.splitext(name)[1].lower()
    if format:
        one_of(format, get_args(Format), "format")
        return cast(Format, format)
    if name == "-":
        return "text"
    if suffix not in _SUFFIXES:
        raise InputError(
            where=name,
            found=f"the suffix {suffix!r}",
            expected=f"one of {', '.join(_SUFFIXES)}{nearest(suffix, _SUFFIXES)}",
        )
    return _SUFFIXES[suffix]


@cache
def _load_templates() -> "Environment":
    """Return the templates, with the functions that they use."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("mlconsensus.report"),
        autoescape=lambda name: name != "report.txt.j2",
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {
        "separators": (",", ":"),
        "allow_nan": False,
    }
    environment.filters |= {
        "figure": figure,
        "plural": plural,
        "shown": shown,
        "aligned": _align_columns,
        "ends": ends,
    }
    environment.globals |= {
        "heat": heat,
        "lines": lines,
        "shades": SHADES,
        "most_rows": _MAX_ROWS,
        "full_names": _FULL_NAMES,
        "metrics": {metric: title(metric) for metric in _METRICS},
    }
    return environment


def _align_columns(text: str, n_left: int = 1) -> str:
    """Return lines with tabs between cells as a table; the first `n_left` go left.

    Names are printed without tabs and line ends.
    """
    cells = [line.split("\t") for line in text.strip("\n").split("\n")]
    return table(cells[0], cells[1:], n_left)


def _make_script_data(summary: Summary) -> dict[str, object]:
    """Return the data that the page's script uses."""
    models = summary.models
    labels = summary.labels
    return {
        "models": [shown(name, _MAX_NAME_LENGTH) for name in models.order],
        "labels": [shown(name, _MAX_NAME_LENGTH) for name in labels.order],
        "matrices": {
            "models": models.agreement.round(3).tolist(),
            "labels": labels.correlation.round(3).tolist(),
        },
        "method": summary.origin.method,
        "explanations": _make_explanations(summary.changes),
    }


def _make_explanations(changes: ChangesSummary) -> dict[str, list[object]]:
    """Return the explanations: a list of names, and lists that refer to it."""
    positions: dict[str, int] = {}
    reasons: list[object] = []
    for row in changes.instances:
        reasons.append([_pack_reason(reason, positions) for reason in row.reasons])
    return {"names": list(positions), "reasons": reasons}


def _pack_reason(reason: Reason, positions: dict[str, int]) -> list[object]:
    """Return a reason as a list, with positions in place of names.

    New names are added to `positions`.
    """
    parts = []
    for part in reason.parts:
        parts.append(
            [
                _get_position(part.model, positions),
                _get_position(part.label, positions),
                _round(part.prediction),
                _round(part.contribution),
                _round(part.vote),
            ]
        )

    numbers = (
        reason.score,
        reason.vote,
        reason.baseline,
        reason.remainder,
        reason.others,
        reason.total,
    )
    return [
        _get_position(reason.label, positions),
        reason.change,
        reason.scale,
        reason.n_others,
        list(map(_round, numbers)),
        parts,
    ]


def _get_position(name: object, positions: dict[str, int]) -> int:
    """Return the position of a name, which is added if it is new."""
    text = shown(name, _MAX_EXPLANATION_NAME_LENGTH)
    return positions.setdefault(text, len(positions))


def _round(value: float | None) -> float | None:
    """Round to one digit more than the page shows."""
    if value is not None and math.isfinite(value):
        return round(value, 5)
    return None
