"""The text of ARFF files, dense or sparse → attributes and one sparse matrix.

Rows of plain numbers, which is what data sets are made of, go through the table library; all others, and those with a
fault, are taken apart line by line, which is some twenty times slower and knows the line of a fault.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from ..errors import InputError
from .text import check_text, raise_undecodable

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_ATTRIBUTES = re.compile(
    rf"^[ \t]*@attribute[ \t]+({_QUOTED}|[^\s{{]+)[ \t]*(\{{.*\}}|[a-z]\S*(?: \S.*)?)[ \t\r]*$", re.I | re.M
)
_RELATION = re.compile(rf"^[ \t]*@relation[ \t]+({_QUOTED}|.*?)[ \t\r]*$", re.I | re.M)
_DATA = re.compile(rb"^[ \t]*@data[ \t\r]*$", re.I | re.M)
_VALUE = re.compile(rf"\s*({_QUOTED}|[^,\s'\"]+)\s*(?:,|$)", re.S)
_ENTRY = re.compile(rf"\s*(\d+)\s+({_QUOTED}|[^,\s'\"]+)\s*(?:,|$)", re.S)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
_NUMERIC = ("numeric", "real", "integer")
_TEXT = ("string", "date")
_PLAIN = b"0123456789+-.eE?{}, \t\n"


class Attribute(NamedTuple):
    """One column of an ARFF file.

    Examples
    --------
    >>> Attribute("sports", ["0", "1"]).is_text
    False
    """

    name: str
    levels: list[str] | None  # the values of a nominal attribute, in order
    is_text: bool = False


class Arff(NamedTuple):
    """An ARFF file's content."""

    relation: str
    attributes: list[Attribute]
    values: Any  # csr_array (n, attributes): numbers, positions of nominal values, NaN where missing; no text
    texts: dict[int, list[str]]  # of attributes of text, by their position


def parse(data: bytes, name: str) -> Arff:
    r"""Parse an ARFF file.

    Examples
    --------
    >>> text = b"@relation r\n@attribute 'a b' numeric\n@attribute c {0,1}\n@data\n{0 0.5,1 1}\n{1 ?}\n"
    >>> arff = parse(text, "a.arff")
    >>> [attribute.name for attribute in arff.attributes], arff.values.toarray().tolist()
    (['a b', 'c'], [[0.5, 1.0], [0.0, nan]])
    """
    check_text(data, name)
    mark = _DATA.search(data)
    if mark is None:
        raise InputError(f"{name}: found no @data line, expected an ARFF file")
    try:
        head = data[: mark.start()].decode("utf-8-sig")
        body = data[mark.end() :]
        relation = _RELATION.search(head)
        attributes = _attributes(head, name)
        entries = _plain_entries(body, attributes) or _entries(body.decode(), attributes, head.count("\n") + 1, name)
    except UnicodeDecodeError:
        raise_undecodable(data, name)
    if entries.n == 0:
        raise InputError(f"{name}: found no row after @data, expected at least one")
    starts = np.searchsorted(entries.rows, np.arange(entries.n + 1))
    matrix = sparse.csr_array((entries.values, entries.columns, starts), shape=(entries.n, len(attributes)))
    matrix.sort_indices()
    matrix.eliminate_zeros()
    return Arff(unquoted(relation[1]) if relation else "", attributes, matrix, entries.texts)


def quoted(text: str) -> str:
    r"""Quote a name so that `unquoted` gives it back.

    Examples
    --------
    >>> print(quoted("it's\n"))
    'it\'s\n'
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    for letter, character in _ESCAPES.items():
        escaped = escaped.replace(character, f"\\{letter}")
    return f"'{escaped}'"


def unquoted(text: str) -> str:
    r"""Take a name out of its quotes, if it has any.

    Examples
    --------
    >>> unquoted(r"'it\'s'"), unquoted("plain")
    ("it's", 'plain')
    """
    if text[:1] not in "'\"":
        return text
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), text[1:-1], flags=re.S)


def _attributes(head: str, name: str) -> list[Attribute]:
    found = _ATTRIBUTES.findall(head)
    if len(found) != len(re.findall(r"(?im)^[ \t]*@attribute\b", head)):
        lines = enumerate(head.split("\n"), 1)
        declared = ((number, line.strip()) for number, line in lines if line.strip().lower().startswith("@attribute"))
        number, line = next((number, line) for number, line in declared if not _ATTRIBUTES.fullmatch(line))
        raise InputError(f"{name}, line {number}: found {line[:60]!r}, expected @attribute name type")
    if not found:
        raise InputError(f"{name}: found no @attribute line, expected an ARFF file")
    kinds = {kind: _kind(kind, called, name) for kind, called in {kind: called for called, kind in found}.items()}
    return [Attribute(unquoted(called), *kinds[kind]) for called, kind in found]


def _kind(kind: str, called: str, name: str) -> tuple[list[str] | None, bool]:
    """Return the values of a nominal attribute, and whether it is one of text."""
    if kind.startswith("{"):
        return [unquoted(value) for value in _VALUE.findall(kind[1:-1])], False
    if kind.lower() in _NUMERIC:
        return None, False
    if kind.split()[0].lower() in _TEXT:
        return None, True
    raise InputError(
        f"{name}, attribute {called!r}: found the type {kind!r}, expected numeric, a list of values, string or date"
    )


class _Entries(NamedTuple):
    rows: NDArray[np.int64]  # (s,) not decreasing
    columns: NDArray[np.int64]  # (s,)
    values: NDArray[np.float64]  # (s,)
    n: int
    texts: dict[int, list[str]]


def _plain_entries(body: bytes, attributes: list[Attribute]) -> _Entries | None:
    """Read rows of plain numbers fast; ``None`` for any others."""
    coded = all(
        attribute.levels is None or attribute.levels == [str(at) for at in range(len(attribute.levels))]
        for attribute in attributes
    )
    body = _tidy(body)
    if not coded or any(attribute.is_text for attribute in attributes) or body.translate(None, _PLAIN):
        return None
    try:
        entries = _sparse_entries(body) if body.startswith(b"{") else _dense_entries(body, len(attributes))
    except pl.exceptions.PolarsError:
        return None
    if entries is None or not _sound(entries, attributes):
        return None
    return entries


def _tidy(body: bytes) -> bytes:
    """Drop comments, blank lines and carriage returns."""
    if b"\r" in body:
        body = body.replace(b"\r", b"")
    if b"%" in body:
        body = re.sub(rb"(?m)^[ \t]*%.*$", b"", body)
    return re.sub(rb"\n\s*\n", b"\n", body).strip()


def _close(body: bytes) -> bytes:
    """Drop spaces around separators."""
    return re.sub(rb" ?([{},\n]) ?", rb"\1", re.sub(rb"[ \t]+", b" ", body))


def _sparse_entries(body: bytes) -> _Entries | None:
    """Read rows ``{3 0.5,7 1}`` as one long table of two columns, in which a comma ends a line."""
    n = body.count(b"\n") + 1
    if b"\t" in body or body.count(b" ") > body.count(b",") + n:  # more than one space an entry
        body = _close(body)
    if body.count(b"}\n{") != n - 1 or body.count(b"{") != n or body.count(b"}") != n or not body.endswith(b"}"):
        return None
    codes = np.frombuffer(body, dtype=np.uint8)
    ends = np.flatnonzero(codes == ord("}"))
    # A row has one entry more than commas, but none if it is empty.
    counts = np.diff(np.searchsorted(np.flatnonzero(codes == ord(",")), ends), prepend=0)
    counts += codes[ends - 1] != ord("{")
    flat = body.translate(bytes.maketrans(b"\n", b","), b"{}")
    if (counts == 0).any():
        flat = re.sub(rb",{2,}", b",", flat).strip(b",")
    schema = {"column": pl.Int64, "value": pl.Float64}
    table = pl.DataFrame(schema=schema)
    if flat:
        table = pl.read_csv(
            flat, has_header=False, separator=" ", eol_char=",", quote_char=None, schema=schema, null_values="?"
        )
    missing = table["value"].is_null().sum()
    if table.height != counts.sum() or table["column"].null_count() or missing != body.count(b"?"):
        return None
    values = table["value"].fill_null(float("nan")).to_numpy()
    return _Entries(np.repeat(np.arange(n), counts), table["column"].to_numpy(), values, n, {})


def _dense_entries(body: bytes, width: int) -> _Entries | None:
    n = body.count(b"\n") + 1
    if b" " in body or b"\t" in body:
        body = _close(body)
    if not body or body.count(b",") != n * (width - 1):
        return None
    schema = {str(at): pl.Float64 for at in range(width)}
    table = pl.read_csv(body, has_header=False, quote_char=None, schema=schema, null_values="?")
    dense = table.to_numpy()
    if table.height != n or int(np.isnan(dense).sum()) != body.count(b"?"):
        return None
    rows, columns = np.nonzero(dense)
    return _Entries(rows, columns, dense[rows, columns], n, {})


def _sound(entries: _Entries, attributes: list[Attribute]) -> bool:
    """Whether positions are in range and increase within a row, and nominal values are declared."""
    rows, columns, values = entries[:3]
    if len(columns) == 0:
        return True
    if columns.min() < 0 or columns.max() >= len(attributes) or not np.isfinite(values[~np.isnan(values)]).all():
        return False
    if (np.diff(columns)[rows[1:] == rows[:-1]] <= 0).any():
        return False
    levels = np.array([np.inf if attribute.levels is None else len(attribute.levels) for attribute in attributes])
    nominal = np.isfinite(levels[columns]) & ~np.isnan(values)
    chosen = values[nominal]
    return not ((chosen < 0) | (chosen >= levels[columns[nominal]]) | (chosen != np.floor(chosen))).any()


def _entries(body: str, attributes: list[Attribute], line: int, name: str) -> _Entries:
    """Take rows apart one by one; `line` is that of ``@data``."""
    rows: list[int] = []
    columns: list[int] = []
    values: list[float] = []
    texts: dict[int, list[str]] = {at: [] for at, attribute in enumerate(attributes) if attribute.is_text}
    n = 0
    for number, row in enumerate(body.split("\n"), line):
        row = row.strip()
        if not row or row.startswith("%"):
            continue
        where = f"{name}, line {number}"
        cells = _cells(row, attributes, where)
        for at in texts:
            texts[at].append(unquoted(cells.pop(at, "?")))
        rows += [n] * len(cells)
        columns += cells
        values += [_number(token, attributes[at], where) for at, token in cells.items()]
        n += 1
    return _Entries(np.array(rows, np.int64), np.array(columns, np.int64), np.array(values, float), n, texts)


def _cells(row: str, attributes: list[Attribute], where: str) -> dict[int, str]:
    """Return the tokens of a row by the position of their attribute."""
    is_sparse = row.startswith("{") and row.endswith("}")
    inner = row[1:-1].strip() if is_sparse else row
    pattern = _ENTRY if is_sparse else _VALUE
    cells: dict[int, str] = {}
    end = 0
    while end < len(inner):
        found = pattern.match(inner, end)
        if found is None:
            expected = "position and value" if is_sparse else "a value"
            raise InputError(f"{where}: found {inner[end : end + 30]!r}, expected {expected}")
        at = int(found[1]) if is_sparse else len(cells)
        if at in cells:
            raise InputError(f"{where}: found position {at} twice, expected each once")
        if is_sparse and at >= len(attributes):
            raise InputError(f"{where}: found position {at}, expected less than {len(attributes)}")
        cells[at] = found[found.lastindex or 1]
        end = found.end()
    if not is_sparse and len(cells) != len(attributes):
        raise InputError(
            f"{where}: found a row of {len(cells)}, expected {len(attributes)} values, as there are attributes"
        )
    return cells


def _number(token: str, attribute: Attribute, where: str) -> float:
    if token == "?":
        return float("nan")
    text = unquoted(token)
    try:
        number = float(text) if attribute.levels is None else float(attribute.levels.index(text))
    except ValueError:
        number = float("nan")
    if not np.isfinite(number):
        expected = "a number" if attribute.levels is None else f"one of {', '.join(attribute.levels[:5])}"
        raise InputError(f"{where}, attribute {attribute.name!r}: found {text[:40]!r}, expected {expected} or ?")
    return number
