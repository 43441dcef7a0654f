"""A clustering from a file: a table of instances and the cluster that each is in."""

import os

import polars as pl

from ...errors import InputError
from ...predictions import first_again
from ..encoding import check_text
from ..files import display, read_bytes, reader_errors
from .registry import format_of


def read_clustering(path: str | os.PathLike[str]) -> dict[str, str]:
    r"""Read which cluster each instance is in, from CSV, TSV or Parquet.

    The first column names the instances, the second their clusters; with an empty cell
    an instance is in none.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "k-means.csv"
    >>> _ = path.write_text("id,cluster\n007,left\n008,right\n009,\n")
    >>> read_clustering(path)
    {'007': 'left', '008': 'right'}
    """
    return read_pairs(path, "instance", "cluster")


def read_pairs(path: str | os.PathLike[str], key: str, value: str) -> dict[str, str]:
    r"""Read a CSV, TSV or Parquet table of two columns as a mapping.

    Rows without a second cell are left out.

    Parameters
    ----------
    path
        The file; its first row names the columns.
    key, value
        What messages call the columns.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "aliases.csv"
    >>> _ = path.write_text("name,stands for\ncolour,color\n")
    >>> read_pairs(path, "name", "label")
    {'colour': 'color'}
    """
    name = display(path)
    form = format_of(path, None)
    if form.name not in ("csv", "tsv", "parquet"):
        raise InputError(
            where=name,
            found=f"the format {form.name}",
            expected=f"a table of each {key} and its {value} as csv, tsv or parquet",
        )

    data = read_bytes(path)
    with reader_errors(name, form.title):
        if form.name == "parquet":
            frame = pl.read_parquet(data).cast(pl.String)
        else:
            check_text(data, name)
            frame = pl.read_csv(
                data, infer_schema=False, separator=form.options["separator"]
            )

    if frame.width != 2:
        raise InputError(
            where=name,
            found=f"{frame.width} columns",
            expected=f"2: the {key} and its {value}",
        )

    instances, clusters = (cells.fill_null("").str.strip_chars() for cells in frame)
    if again := first_again(instances):
        row = again[1]
        raise InputError(
            where=f"{name}, row {row + 1}",
            found=f"the {key} {instances[row]!r} again",
            expected="each once",
        )

    if not any(clusters):
        raise InputError(
            where=name, found=f"no {key} with a {value}", expected="at least one"
        )

    return {
        instance: cluster
        for instance, cluster in zip(instances, clusters, strict=True)
        if cluster
    }
