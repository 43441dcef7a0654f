"""Markup by construction: whatever is not markup already is escaped, so that a name can never become any."""

from __future__ import annotations

from html import escape
from typing import Any

from ...terminal import shown

_EMPTY = {"input"}  # elements without an end tag
_LONG = 36  # columns of a name in a table
_LONGEST = 10_000  # characters of a name that is unfolded


class Html(str):
    """Text that is markup, as opposed to text that is data."""

    __slots__ = ()


def el(tag: str, *children: Any, **attributes: Any) -> Html:
    """Build an element; children that are not `Html` are escaped, as are all attributes.

    Underscores in attributes stand for hyphens, and one at the end for nothing; ``True`` gives an attribute without a
    value, ``None`` and ``False`` give none.

    Examples
    --------
    >>> el("p", "a < b", el("br_", "!"), class_="big", data_v=1, hidden=True, title=None)
    '<p class="big" data-v="1" hidden>a &lt; b<br_>!</br_></p>'
    """
    given = "".join(
        f" {name.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(str(value))}"')
        for name, value in attributes.items()
        if value is not None and value is not False
    )
    return Html(f"<{tag}{given}>" + ("" if tag in _EMPTY else f"{join(*children)}</{tag}>"))


def join(*children: Any) -> Html:
    """Put pieces one after the other; what is not `Html` is escaped.

    Examples
    --------
    >>> join("<", el("b", "x"))
    '&lt;<b>x</b>'
    """
    return Html("".join(child if isinstance(child, Html) else escape(str(child)) for child in children))


def name(given: object, most: int = _LONG) -> Html:
    r"""Show a name: long ones cut short with the beginning of the rest on hover, control characters escaped.

    Examples
    --------
    >>> name("<b>")
    '<bdi>&lt;b&gt;</bdi>'
    >>> name("abcdefgh\n", 5)
    '<bdi title="abcdefgh\\n">abcd…</bdi>'
    """
    short, whole = shown(given, most), shown(given, 400)
    return el("bdi", short, title=None if short == whole else whole)


def whole_name(given: object, most: int = _LONG) -> Html:
    """Show a name where it has its own row: a long one unfolds.

    Examples
    --------
    >>> whole_name("sport")
    '<bdi>sport</bdi>'
    >>> whole_name("abcdefgh", 5)
    '<details class="long"><summary><bdi>abcd…</bdi></summary><bdi>abcdefgh</bdi></details>'
    """
    text = str(given)
    short, whole = shown(text, most), shown(text[:_LONGEST], 10 * _LONGEST)
    if short == whole:
        return el("bdi", short)
    more = f"… and {len(text) - _LONGEST:,} more characters" if len(text) > _LONGEST else ""
    return el("details", el("summary", el("bdi", short)), el("bdi", whole), more, class_="long")
