"""A report: one summary, shown in a notebook, printed, or saved as a file."""

import os
from html import escape
from typing import Any, Literal

from ..errors import expect, nearest, one_of
from ..io.files import whole_file
from ..terminal import sizes
from .render import to_html, to_json, to_text
from .summary import Summary

Format = Literal["html", "json", "text"]
_RENDER = {"html": to_html, "json": to_json, "text": to_text}
_SUFFIXES: dict[str, Format] = {".html": "html", ".htm": "html", ".json": "json", ".txt": "text"}


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
        # In a frame of its own, the page neither takes the notebook's style nor gives it one.
        page = escape(self.to_html())
        style = "width:100%;height:720px;border:1px solid #8888;border-radius:8px"
        return f'<iframe title="Consensus report" sandbox="allow-scripts" style="{style}" srcdoc="{page}"></iframe>'

    def to_html(self) -> str:
        """Return a page that needs no other file and no network."""
        return to_html(self.summary)

    def to_json(self) -> str:
        """Return the whole summary as JSON."""
        return to_json(self.summary)

    def to_text(self) -> str:
        """Return the main points for a terminal."""
        return to_text(self.summary)

    def save(self, path: str | os.PathLike[str], *, format: Format | None = None, force: bool = False) -> None:
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
        rendered = _RENDER[report_format(path, format)](self.summary).encode("utf-8")
        with whole_file(path, force) as file:
            file.write(rendered)


def report_format(path: str | os.PathLike[str], format: str | None = None) -> Format:
    """Say how a report is to be written: as `format` says, else as the suffix does; to standard output as text.

    Examples
    --------
    >>> report_format("report.html"), report_format("report.html", "text"), report_format("-")
    ('html', 'text', 'text')
    """
    suffix = os.path.splitext(os.fspath(path))[1].lower()
    wanted: Any = format or ("text" if os.fspath(path) == "-" else _SUFFIXES.get(suffix))
    known = f"one of {', '.join(_SUFFIXES)}{nearest(suffix, _SUFFIXES)}"
    expect(wanted is not None, os.fspath(path), f"the suffix {suffix!r}", known)
    one_of(wanted, _RENDER, "format")
    return wanted  # type: ignore[no-any-return]
