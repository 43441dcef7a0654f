"""Folders among the inputs: a folder of files, or one table that was written in parts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ..errors import InputError
from .files import AnyPath, display
from .formats import FORMATS, is_told


def expanded(paths: Sequence[AnyPath]) -> list[AnyPath]:
    """Put in place of each folder the files in it, by name; one called ``….parquet`` is a table in parts, and stays.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name in ("b.csv", "a.parquet", "notes.txt"):
    ...     _ = (folder / name).write_text("")
    >>> [path.name for path in expanded([folder])]
    ['a.parquet', 'b.csv']
    """
    out: list[AnyPath] = []
    for path in paths:
        if not os.path.isdir(path) or is_told(path):
            out.append(path)
            continue
        found = [entry for entry in sorted(Path(path).iterdir()) if not _is_hidden(entry) and is_told(entry)]
        if not found:
            raise InputError(f"{display(path)}: found a folder without files of predictions, expected some in it")
        out += found
    return out


def parts(path: Path) -> list[Path]:
    """Return the files of a Parquet table: the file itself, or those in the folder, by name.

    Examples
    --------
    >>> parts(Path("a.parquet"))
    [PosixPath('a.parquet')]
    """
    if not path.is_dir():
        return [path]
    suffixes = FORMATS["parquet"].suffixes
    inside = [entry for entry in sorted(path.rglob("*")) if entry.is_file() and entry.suffix.lower() in suffixes]
    found = [entry for entry in inside if not any(map(_is_hidden, (entry, *entry.relative_to(path).parents)))]
    if not found:
        raise InputError(f"{path}: found a folder without Parquet files, expected the parts of a table")
    return found


def _is_hidden(path: Path) -> bool:
    return path.name.startswith((".", "_"))
