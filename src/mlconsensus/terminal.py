r"""Names in a terminal: whatever they are made of, one line each, and as many columns as asked for."""

from __future__ import annotations

import unicodedata

_JOINERS = "\u200c\u200d"  # they are not printable by themselves, but words and emoji fall apart without them


def width(text: str) -> int:
    """Count the columns that a terminal gives to `text`.

    Examples
    --------
    >>> width("sport"), width("体育"), width("e\u0301")
    (5, 4, 1)
    """
    return sum(_columns(character) for character in text)


def shown(name: object, most: int = 40) -> str:
    r"""Return a name that fills at most `most` columns of one line: long ones shortened, control characters escaped.

    Examples
    --------
    >>> shown("a\nb"), shown("abcdefgh", 5)
    ('a\\nb', 'abcd…')
    """
    escaped: list[str] = []
    columns = 0
    for character in str(name):
        piece = character if character.isprintable() or character in _JOINERS else _escape(character)
        columns += width(piece)
        if columns > most:
            return _cut(escaped, most - 1) + "…"
        escaped.append(piece)
    return "".join(escaped)


def padded(text: str, columns: int) -> str:
    """Fill up with spaces to `columns`.

    Examples
    --------
    >>> padded("体育", 6)
    '体育  '
    """
    return text + " " * (columns - width(text))


def _columns(character: str) -> int:
    if character in _JOINERS or unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _cut(pieces: list[str], most: int) -> str:
    while pieces and width("".join(pieces)) > most:
        pieces.pop()
    return "".join(pieces)
