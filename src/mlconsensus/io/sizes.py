"""How much memory a panel would take, from a look at its files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from . import frames, parquet
from .files import AnyPath, Source, is_plain
from .folders import parts
from .formats import Format
from .reading import files_of

_SAMPLE = 2**20
_STATEMENT = 64  # bytes that one row of a long table takes while it is read
_CELL = 24  # bytes that a score of the consensus takes: itself, on its way to the file, and what is written


class _Size(NamedTuple):
    held: float  # bytes of the panel that a file becomes
    cells: float  # scores of one model


def needed_memory(paths: AnyPath | Sequence[AnyPath], format: str | None = None) -> int:
    """Estimate how many bytes of memory it takes to combine files without streaming them.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.parquet"
    >>> pl.DataFrame({"id": ["7"] * 1000, "x": [0.5] * 1000}).write_parquet(path)
    >>> needed_memory(path)
    32000
    """
    sizes = [_size(source, form) for source, form in files_of(paths, format)]
    return int(sum(size.held for size in sizes) + _CELL * max(size.cells for size in sizes))


def _size(source: Source, form: Format) -> _Size:
    path = source.path
    if path is None or not path.exists():  # what is wrong with it, the reader says
        return _Size(0, 0)
    if form.name == "parquet" and (path.is_dir() or is_plain(path)):
        return _parquet(path, source.name)
    size = sum(entry.stat().st_size for entry in path.rglob("*")) if path.is_dir() else path.stat().st_size
    if form.name in ("csv", "tsv") and is_plain(path):
        with path.open("rb") as file:
            sample = file.read(_SAMPLE)
        separators = sample.count(b"\t" if form.name == "tsv" else b",")
        return _Size(1.2 * size, size * separators / max(1, len(sample)))
    return _Size(8.0 * size, float(size))


def _parquet(path: Path, name: str) -> _Size:
    with parquet.sound(name):
        scan = pl.scan_parquet(parts(path), glob=False, hive_partitioning=False)
        schema = dict(scan.collect_schema())
        rows = scan.select(pl.len()).collect().item()
    if frames.is_long(list(schema)):
        return _Size(_STATEMENT * rows, rows)
    widths = [_width(kind) for kind in list(schema.values())[1:]]
    return _Size(rows * sum(widths), rows * len(widths))


def _width(kind: Any) -> int:
    if kind == pl.Boolean or kind.is_integer():
        return 1
    return 4 if kind == pl.Float32 else 8
