"""A clustering from a file: a table of instances and the cluster that each is in."""

from __future__ import annotations

import csv
import os

import polars as pl

from ..errors import InputError
from .files import display, guarded, read_bytes
from .formats import format_of
from .text import decoded


def read_clustering(path: str | os.PathLike[str]) -> dict[str, str]:
    r"""Read which cluster each instance is in, from CSV, TSV or Parquet.

    The first column names the instances, the second their clusters; with an empty cell an instance is in none.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "k-means.csv"
    >>> _ = path.write_text("id,cluster\n007,left\n008,right\n009,\n")
    >>> read_clustering(path)
    {'007': 'left', '008': 'right'}
    """
    name, kind = display(path), format_of(path, None).name
    if kind == "parquet":
        with guarded(name, "Parquet"):
            frame = pl.read_parquet(read_bytes(path))
        rows = [[str(cell) if cell is not None else "" for cell in row] for row in [frame.columns, *frame.rows()]]
    elif kind in ("csv", "tsv"):
        text = decoded(read_bytes(path), name)
        rows = [row for row in csv.reader(text.splitlines(), delimiter="\t" if kind == "tsv" else ",") if row]
    else:
        raise InputError(f"{name}: found the format {kind}, expected a clustering as csv, tsv or parquet")
    found: dict[str, str] = {}
    for line, row in enumerate(rows, start=1):
        if len(row) != 2:
            raise InputError(f"{name}, line {line}: found {len(row)} columns, expected 2: the instance and its cluster")
        instance, cluster = (cell.strip() for cell in row)
        if line == 1:
            continue  # what the columns are called
        if instance in found:
            raise InputError(f"{name}, line {line}: found the instance {instance!r} again, expected each once")
        if cluster:
            found[instance] = cluster
    if not found:
        raise InputError(f"{name}: found no instance with a cluster, expected at least one")
    return found
