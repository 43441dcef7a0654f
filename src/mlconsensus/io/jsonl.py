"""JSON lines of tag lists, as annotators and language models give them.

Each line is one model's judgement of one instance: ``{"instance": "7", "labels": ["a", "b"]}`` or
``{"instance": "7", "labels": {"a": 0.9}}``, with ``"model"`` where one file holds several.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import IO, Any

import polars as pl
from scipy import sparse

from ..errors import InputError, expect, nearest
from ..panel.model_tables import ModelTable
from . import layouts
from .columns import outside, raise_bad_score
from .files import InputFile, Place, first_line
from .formats import Keep, Layout, NamedFrame
from .text import decoded

_KEYS = ("instance", "labels", "model")
_SHAPE = '{"instance": "7", "labels": ["a", "b"]} or {"instance": "7", "labels": {"a": 0.9}}'


def read(file: InputFile, keep: Keep = pl.LazyFrame.collect) -> NamedFrame:
    r"""Read tag lists as a long frame.

    Examples
    --------
    >>> lines = b'{"instance": 7, "labels": ["a", "b"]}\n{"instance": 8, "labels": {"b": 0.9}}\n'
    >>> read(InputFile("tags.jsonl", "tags", lambda: lines)).rows.rows()
    [('7', 'a', 1.0), ('7', 'b', 1.0), ('8', 'b', 0.9)]
    """
    said: list[tuple[str, str | None, float, str | None]] = []
    lines: list[int] = []  # of each statement
    seen: dict[tuple[str | None, str], int] = {}
    model: str | None = None
    for number, line in enumerate(decoded(file.read(), file.name).split("\n"), 1):
        if not line.strip():
            continue
        where = f"{file.name}, line {number}"
        before = model
        model, instance, tags = _judgement(line, where)
        if said and (model is None) != (before is None):
            found, other = ("no model", "one") if model is None else ("a model", "none")
            raise InputError(f"{where}: found {found}, expected {other}, as in the lines before")
        if (first := seen.setdefault((model, instance), number)) != number:
            again = f"the instance {instance!r} again (first in line {first})"
            raise InputError(f"{where}: found {again}, expected each once from a model")
        said += [(instance, label, score, model) for label, score in tags] or [(instance, None, 0.0, model)]
        lines += [number] * max(1, len(tags))
    columns = ["instance", "label", "score", *["model"] * (model is not None)]
    try:
        kinds = {"0": pl.String, "1": pl.String, "2": pl.Float64, "3": pl.String}
        rows = pl.DataFrame(said, schema=kinds, orient="row")[:, : len(columns)]
    except UnicodeEncodeError:
        raise InputError(f"{file.name}: found half a surrogate pair in a name, expected Unicode text") from None
    return NamedFrame(rows, columns, Place(file.name, "line", lines.__getitem__), bare=True)


def write(file: IO[bytes], table: ModelTable, layout: Layout) -> None:
    r"""Write one table as tag lists: labels alone where scores are bool, else labels with scores, ``null`` if missing.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> file = io.BytesIO()
    >>> write(file, ModelTable("a", np.array([[True, False]]), ["7"], ["x", "y"]), "wide")
    >>> write(file, ModelTable("a", np.array([[0.25, np.nan]]), ["7"], ["x", "y"]), "wide")
    >>> print(file.getvalue().decode(), end="")
    {"instance": "7", "labels": ["x"]}
    {"instance": "7", "labels": {"x": 0.25, "y": null}}
    """
    instances, labels = ([str(name) for name in names] for names in layouts.named(table))
    for instance, (columns, values) in zip(instances, _rows(table.scores), strict=True):
        if table.scores.dtype.kind == "b":
            tags: Any = [labels[at] for at, value in zip(columns, values, strict=True) if value]
        else:
            tags = {labels[at]: None if value != value else value for at, value in zip(columns, values, strict=True)}
        line = json.dumps({"instance": instance, "labels": tags}, ensure_ascii=False)
        file.write(line.encode() + b"\n")


def _rows(matrix: Any) -> Iterator[tuple[Iterable[int], list[Any]]]:
    """Walk the rows as columns and their values; a sparse row has only those that are stored."""
    if sparse.issparse(matrix):
        matrix = layouts.listed(matrix)
        for start, end in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
            yield matrix.indices[start:end].tolist(), matrix.data[start:end].tolist()
    else:
        for row in matrix:
            yield range(len(row)), row.tolist()


def _judgement(line: str, where: str) -> tuple[str | None, str, list[tuple[str, float]]]:
    try:
        found = json.loads(line, object_pairs_hook=_unique)
    except InputError as fault:
        raise InputError(f"{where}: {fault}") from None
    except (ValueError, RecursionError) as fault:
        raise InputError(f"{where}: found no JSON ({first_line(fault)}), expected {_SHAPE}") from None
    if not isinstance(found, dict):
        raise InputError(f"{where}: found {_kind(found)}, expected {_SHAPE}")
    for key in [key for key in found if key not in _KEYS]:
        hint = nearest(key, _KEYS)
        raise InputError(f"{where}: found the key {key!r}, expected instance, labels and perhaps model{hint}")
    for key in _KEYS[:2]:
        expect(key in found, where, f"no key {key!r}", _SHAPE)
    model = _name(found["model"], f"{where}, model") if "model" in found else None
    instance, tags = _name(found["instance"], f"{where}, instance"), found["labels"]
    if isinstance(tags, dict):
        scores = [_score(score, f"{where}, label {label!r}") for label, score in tags.items()]
    else:
        expect(isinstance(tags, list), f"{where}, labels", _kind(tags), "a list or an object of scores")
        scores = [1.0] * len(tags)
    within = f"{where}, labels"
    return model, instance, list(zip([_name(label, within) for label in tags], scores, strict=True))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        (twice, _), *_ = Counter(key for key, _ in pairs).most_common(1)
        raise InputError(f"found the key {twice!r} twice, expected each once")
    return found


def _name(found: Any, where: str) -> str:
    """Return a name as text; whole numbers are names too, since many annotators number instances."""
    if isinstance(found, bool) or not isinstance(found, str | int):
        raise InputError(f"{where}: found {_kind(found)}, expected text or a whole number")
    if not str(found).strip():
        raise InputError(f"{where}: found an empty text, expected a name")
    return str(found)


def _score(found: Any, where: str) -> float:
    if found is None:
        return float("nan")
    if not isinstance(found, int | float) or outside(found):
        raise_bad_score(where, found if isinstance(found, str | int | float) else _kind(found))
    return float(found)


def _kind(found: Any) -> str:
    if found is None:
        return "null"
    names = {bool: "a truth value", int: "a number", float: "a number", str: "a text", list: "a list"}
    return names.get(type(found), "an object")
