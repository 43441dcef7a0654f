"""Text for a terminal: names are shown and never obeyed, whatever they are made of; and the one layout of tables."""

from collections.abc import Iterable, Sequence

# they are not printable by themselves, but words and emoji fall apart without them
_JOINERS = "\u200c\u200d"


def safe(text: object) -> str:
    r"""Return text of one line that moves no cursor, turns no direction and sends no command: all such is escaped.

    Examples
    --------
    >>> safe("red\x1b[31m"), safe("a\nb"), safe("\u202eevil")
    ('red\\x1b[31m', 'a\\nb', '\\u202eevil')
    """
    return "".join(
        character
        if character.isprintable() or character in _JOINERS
        else character.encode("unicode_escape").decode()
        for character in str(text)
    )


def shown(name: object, most: int = 40) -> str:
    r"""Return a name as safe text that fills at most `most` columns of one line; cut within, since names end apart.

    Examples
    --------
    >>> shown("a\nb"), shown("abcdefgh", 5)
    ('a\\nb', 'abc…h')
    """
    from rich.cells import cell_len, set_cell_size

    text = safe(name)
    if cell_len(text) <= most:
        return text

    end = next(
        text[at:]
        for at in range(len(text) - most // 4, len(text) + 1)
        if cell_len(text[at:]) <= most // 4
    )
    return set_cell_size(text, most - 1 - cell_len(end)).rstrip() + "…" + end.lstrip()


def plural(count: int, noun: str) -> str:
    """Count things.

    Examples
    --------
    >>> plural(1, "label"), plural(2000, "label")
    ('1 label', '2,000 labels')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def sizes(shape: Sequence[int]) -> str:
    """Say how large a panel is.

    Examples
    --------
    >>> sizes((5, 2000, 1))
    '5 models × 2,000 instances × 1 label'
    """
    return " × ".join(map(plural, shape, ("model", "instance", "label")))


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], left: int = 1) -> str:
    r"""Lay out a table as plain text, without colours, borders or wrapped lines, whatever it is printed to.

    Parameters
    ----------
    heads
        Titles of the columns.
    rows
        Cells; what is no safe text is escaped.
    left
        How many columns, the first ones, stand at the left of their space; the others
        stand at the right.

    Examples
    --------
    >>> print(table(["model", "labels"], [["ana", 1.25], ["b\tob", 12]]))
    model  labels
    ana      1.25
    b\tob      12
    """
    from rich.cells import cell_len, set_cell_size

    cells = [list(heads), *([safe(cell) for cell in row] for row in rows)]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        aligned = [
            set_cell_size(cell, most)
            if at < left
            else " " * (most - cell_len(cell)) + cell
            for at, (cell, most) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(aligned).rstrip())

    return "\n".join(lines)
