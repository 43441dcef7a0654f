"""Plain text for a terminal: escaped names, counts, and tables.

Names come from the user's files and may contain anything. They are escaped before they
are printed, so that they cannot move the cursor or send commands to the terminal.
"""

from collections.abc import Iterable, Sequence

# Not printable on their own, but words and emoji break without them.
_JOINERS = "\u200c\u200d"


def safe(text: object) -> str:
    r"""Return text on one line, with all control characters escaped.

    Characters that move the cursor, change the writing direction or start a terminal
    command are replaced by their escape sequences.

    Parameters
    ----------
    text : object
        Converted by `str`.

    Returns
    -------
    str

    Examples
    --------
    >>> safe("red\x1b[31m"), safe("a\nb"), safe("\u202eevil")
    ('red\\x1b[31m', 'a\\nb', '\\u202eevil')
    """
    return "".join(map(_escape, str(text)))


def _escape(character: str) -> str:
    """Return the character, or its escape sequence if it is not printable."""
    if character.isprintable() or character in _JOINERS:
        return character
    return character.encode("unicode_escape").decode()


def shown(name: object, most: int = 40) -> str:
    r"""Return a name as safe text of at most `most` terminal columns.

    Long names are cut in the middle, because similar names often differ at the end.

    Parameters
    ----------
    name : object
        Converted by `str`.
    most : int, default=40
        Largest width in terminal columns.

    Returns
    -------
    str

    Examples
    --------
    >>> shown("a\nb"), shown("abcdefgh", 5)
    ('a\\nb', 'abc…h')
    """
    from rich.cells import cell_len, set_cell_size

    text = safe(name)
    if cell_len(text) <= most:
        return text

    # The end of the name gets at most a quarter of the width.
    start = len(text) - most // 4
    while cell_len(text[start:]) > most // 4:
        start += 1

    end = text[start:]
    beginning = set_cell_size(text, most - 1 - cell_len(end))
    return f"{beginning.rstrip()}…{end.lstrip()}"


def plural(count: int, noun: str) -> str:
    """Return a count with its noun in singular or plural.

    Parameters
    ----------
    count : int
        How many there are.
    noun : str
        In singular; its plural must end with "s".

    Returns
    -------
    str

    Examples
    --------
    >>> plural(1, "label"), plural(2000, "label")
    ('1 label', '2,000 labels')
    """
    ending = "" if count == 1 else "s"
    return f"{count:,} {noun}{ending}"


def sizes(shape: Sequence[int]) -> str:
    """Return the shape of predictions as text.

    Parameters
    ----------
    shape : sequence of int
        Numbers of models, instances and labels.

    Returns
    -------
    str

    Examples
    --------
    >>> sizes((5, 2000, 1))
    '5 models × 2,000 instances × 1 label'
    """
    return " × ".join(map(plural, shape, ("model", "instance", "label")))


def table(
    heads: Sequence[str], rows: Iterable[Sequence[object]], n_left: int = 1
) -> str:
    r"""Return a table as plain text, without colors, borders or wrapped lines.

    Parameters
    ----------
    heads : sequence of str
        Titles of the columns.
    rows : iterable of sequences
        Cells; each is converted to safe text.
    n_left : int, default=1
        Number of leading columns that are aligned left; the others are aligned right.

    Returns
    -------
    str

    Examples
    --------
    >>> print(table(["model", "labels"], [["ana", 1.25], ["b\tob", 12]]))
    model  labels
    ana      1.25
    b\tob      12
    """
    from rich.cells import cell_len

    cells = [list(heads)]
    for row in rows:
        cells.append([safe(cell) for cell in row])

    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for row_cells in cells:
        padded = []
        for column, (cell, width) in enumerate(zip(row_cells, widths, strict=True)):
            padding = " " * (width - cell_len(cell))
            if column < n_left:
                padded.append(cell + padding)
            else:
                padded.append(padding + cell)

        lines.append("  ".join(padded).rstrip())

    return "\n".join(lines)
