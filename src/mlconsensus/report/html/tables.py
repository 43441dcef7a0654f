"""Tables of a page: with a caption, sorted by a click on a heading, searched by their first column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from .markup import Html, el, join

_ROWS_SHOWN = 12  # before "show all"


class Column(NamedTuple):
    """A heading, and whether the cells below are figures."""

    title: Any
    number: bool = True
    about: str | None = None  # what it means, on hover
    sort: bool = True


class Cell(NamedTuple):
    """What a cell shows, and the value by which it sorts if that is not what it shows."""

    shows: Any
    value: float | str | None = None
    class_: str | None = None


def table(
    caption: Any,
    columns: Sequence[Column],
    rows: Iterable[Sequence[Any]],
    *,
    what: str = "rows",
    search: bool = True,
    sorted_by: int | None = None,
    rows_shown: int = _ROWS_SHOWN,
    id: str | None = None,
) -> Html:
    """Build a table; `what` says what its rows are, for the search field and the count of rows.

    Examples
    --------
    >>> "<td>&lt;b&gt;</td>" in table("Names", [Column("name", number=False)], [["<b>"]])
    True
    """
    body = [_row(columns, row, at) for at, row in enumerate(rows)]
    head = el("tr", *(_heading(column, at == sorted_by) for at, column in enumerate(columns)))
    whole = el("table", el("caption", caption), el("thead", head), el("tbody", *body), id=id, data_shown=rows_shown)
    field: Any = ""
    if search and len(body) > 1:
        field = el(
            "label",
            el("span", f"Search {what}"),
            el("input", type="search", autocomplete="off", spellcheck="false"),
            class_="search",
        )
    status = el("p", class_="status", role="status")
    scroll = el("div", whole, class_="scroll")
    return el("div", field, scroll, status, class_="table", data_rows=what)


def bar(share: float, text: str, kind: str = "") -> Html:
    """Show a share of 1 as a bar beside its figure.

    Examples
    --------
    >>> bar(0.25, "25%")
    '<span class="bar"><i style="--v:0.25"></i></span><span>25%</span>'
    """
    length = f"--v:{min(max(share, 0.0), 1.0):.3g}"
    return join(el("span", el("i", style=length), class_=f"bar {kind}".strip()), el("span", text))


def _row(columns: Sequence[Column], row: Sequence[Any], at: int) -> Html:
    cells: list[Html] = []
    for column, given in zip(columns, row, strict=True):
        cell = given if isinstance(given, Cell) else Cell(given)
        kinds = " ".join(kind for kind in ("num" if column.number else "", cell.class_ or "") if kind)
        tag = "td" if cells or len(columns) == 1 else "th"
        cells.append(
            el(tag, cell.shows, scope="row" if tag == "th" else None, class_=kinds or None, data_v=_value(cell.value))
        )
    return el("tr", *cells, data_at=at)


def _heading(column: Column, sorts: bool) -> Html:
    inside = el("button", column.title, type="button", class_="sort") if column.sort else column.title
    return el(
        "th",
        inside,
        scope="col",
        class_="num" if column.number else None,
        title=column.about,
        aria_sort="descending" if sorts else None,
    )


def _value(value: float | str | None) -> str | None:
    return f"{value:.6g}" if isinstance(value, float) else None if value is None else str(value)
