"""A summary as one page of HTML that needs no other file and no network."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any

from ...terminal import shown
from ..findings import findings, plural
from ..summary import Summary
from .changes import changes_section, explanations
from .judged import judged_section
from .labels import labels_section
from .markup import Html, el, join
from .models import models_section
from .origin import origin_section
from .panel import panel_section


def to_html(summary: Summary) -> str:
    """Render a summary as a page.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> from mlconsensus.report import summarise
    >>> page = to_html(summarise(mlc.combine([[[1, 0]]], method="mv")))
    >>> page[:15], "http://" in page, "https://" in page
    ('<!doctype html>', False, False)
    """
    script = _file("page.js")
    panel, origin = summary.panel, summary.origin
    sections = [
        ("panel", "The panel", panel_section(panel)),
        ("models", "Models", models_section(summary.models)),
        ("labels", "Labels", labels_section(summary.labels)),
        ("changes", "What consensus changed", changes_section(summary.changes, origin.method)),
        ("truth", "Against the truth", judged_section(summary.judged)),
        ("origin", "How it was made", origin_section(origin)),
    ]
    data = {
        "models": [shown(name, 60) for name in summary.models.order],
        "labels": [shown(name, 60) for name in summary.labels.order],
        "matrices": {
            "models": summary.models.agreement.round(3).tolist(),
            "labels": summary.labels.correlation.round(3).tolist(),
        },
        "method": origin.method,
        "explanations": explanations(summary.changes),
    }
    return Template(_file("page.html")).substitute(
        style=_file("page.css"),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        title=f"Consensus of {plural(panel.n_models, 'model')}",
        sizes=f"{plural(panel.n_instances, 'instance')} × {plural(panel.n_labels, 'label')}",
        method=join(el("strong", origin.method), f": {origin.reason}."),
        findings=join(*(el("li", sentence) for sentence in findings(summary))),
        links=join(*(el("li", el("a", title, href=f"#{key}")) for key, title, _ in sections)),
        sections=join(*(_section(key, title, body) for key, title, body in sections)),
        data=_embedded(data),
        version=origin.versions["mlconsensus"],
    )


def _section(key: str, title: str, body: Html) -> Html:
    return el("section", el("h2", title, id=f"{key}-title"), body, id=key, aria_labelledby=f"{key}-title")


def _embedded(data: Any) -> Html:
    """Write JSON that can stand inside a script element: nothing in it can end the element or open a comment."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Html(text)


@cache
def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
