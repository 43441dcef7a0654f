"""Which formats there are, and which one a file has by its name."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, cast

from ..errors import InputError, nearest
from ..panel.model_tables import ModelTable
from .files import COMPRESSIONS, STANDARD, AnyPath, Source, display, read_bytes

Layout = Literal["wide", "long", "ranked"]


class Format(NamedTuple):
    """One file format: a module of this package with ``read(source)`` and ``write(file, table, layout)``.

    The module is imported when it is first used, so that the command line starts fast.

    Examples
    --------
    >>> FORMATS["tsv"].suffixes
    ('.tsv', '.tab')
    """

    name: str
    suffixes: tuple[str, ...]

    @property
    def module(self) -> Any:
        """The module that knows this format."""
        return importlib.import_module(f".{self.name}", __package__)

    def read(self, source: Source) -> list[ModelTable]:
        """Read the tables of all models in a file."""
        return cast("list[ModelTable]", self.module.read(source))

    def read_truth(self, source: Source) -> list[ModelTable]:
        """Read the truth where a file holds it beside predictions, else all tables."""
        read = getattr(self.module, "read_truth", self.module.read)
        return cast("list[ModelTable]", read(source))

    def write(self, file: IO[bytes], table: ModelTable, layout: Layout) -> None:
        """Write one table."""
        self.module.write(file, table, layout)


FORMATS: dict[str, Format] = {
    form.name: form
    for form in (
        Format("csv", (".csv",)),
        Format("tsv", (".tsv", ".tab")),
        Format("parquet", (".parquet", ".pq")),
        Format("feather", (".feather", ".arrow")),
        Format("jsonl", (".jsonl", ".ndjson")),
        Format("npz", (".npz",)),
        Format("arff", (".arff",)),
        Format("libsvm", (".libsvm", ".svm")),
    )
}

_BY_SUFFIX = {suffix: form for form in FORMATS.values() for suffix in form.suffixes}


def format_of(path: AnyPath, name: str | None = None) -> Format:
    """Find the format of a file by the given name of a format, or else by the file's suffix.

    Examples
    --------
    >>> format_of("votes.csv.gz").name, format_of("-", "jsonl").name
    ('csv', 'jsonl')
    >>> format_of("votes.cvs")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: votes.cvs: found the suffix '.cvs', expected one of .csv, ...; did you mean 'csv'?
    """
    if name is not None:
        if name.lower() not in FORMATS:
            expected = ", ".join(FORMATS)
            raise InputError(f"format: found {name!r}, expected one of {expected}{nearest(name, FORMATS)}")
        return FORMATS[name.lower()]
    if os.fspath(path) == STANDARD:
        raise InputError("standard input or output: found no format, expected one of " + ", ".join(FORMATS))
    suffix = Path(_uncompressed(path)).suffix.lower()
    if suffix not in _BY_SUFFIX:
        found = f"the suffix {suffix!r}" if suffix else "no suffix"
        raise InputError(
            f"{display(path)}: found {found}, expected one of {', '.join(_BY_SUFFIX)}"
            + nearest(suffix[1:], [known[1:] for known in _BY_SUFFIX])
        )
    return _BY_SUFFIX[suffix]


def is_told(path: AnyPath) -> bool:
    """Tell whether a file's name says its format.

    Examples
    --------
    >>> is_told("a.csv.gz"), is_told("a.txt"), is_told("-")
    (True, False, False)
    """
    return os.fspath(path) != STANDARD and Path(_uncompressed(path)).suffix.lower() in _BY_SUFFIX


def source_of(path: AnyPath) -> Source:
    """Tell where a file's bytes come from and what its model is called: its name without suffixes.

    Examples
    --------
    >>> source_of("run/tagger.v2.csv.gz").model
    'tagger.v2'
    """
    if os.fspath(path) == STANDARD:
        return Source(display(path), "stdin", lambda: read_bytes(path))
    stem = Path(_uncompressed(path)).stem
    return Source(display(path), stem, lambda: read_bytes(path), Path(path))


def _uncompressed(path: AnyPath) -> str:
    name = Path(path).name
    return name[: -len(Path(name).suffix)] if Path(name).suffix.lower() in COMPRESSIONS else name
