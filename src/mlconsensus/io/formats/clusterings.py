"""Tables of two columns: instances and their clusters, or names and labels."""

import polars as pl

from ...errors import InputError
from ...predictions import first_again
from ..encoding import check_text
from ..files import AnyPath, display, read_bytes, reader_errors
from .registry import Format, format_of


def read_clustering(path: AnyPath) -> dict[str, str]:
    r"""Read which cluster each instance is in, from CSV, TSV or Parquet.

    The first column names the instances, the second their clusters. An instance with an
    empty cell is not in a cluster.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    dict of str to str
        Cluster of each instance.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "k-means.csv"
    >>> _ = path.write_text("id,cluster\n007,left\n008,right\n009,\n")
    >>> read_clustering(path)
    {'007': 'left', '008': 'right'}
    """
    return read_pairs(path, "instance", "cluster")


def read_pairs(path: AnyPath, key: str, value: str) -> dict[str, str]:
    r"""Read a CSV, TSV or Parquet table of two columns as a mapping.

    Rows without a second cell are left out.

    Parameters
    ----------
    path : str or path-like
        The file; its first row names the columns.
    key, value : str
        Names of the columns in messages.

    Returns
    -------
    dict of str to str

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

    frame = _read_text_frame(path, form)
    if frame.width != 2:
        raise InputError(
            where=name,
            found=f"{frame.width} columns",
            expected=f"2: the {key} and its {value}",
        )

    cells = frame.select(pl.all().fill_null("").str.strip_chars())
    keys, values = cells.get_columns()
    repetition = first_again(keys)
    if repetition is not None:
        row = repetition[1]
        raise InputError(
            where=f"{name}, row {row + 1}",
            found=f"the {key} {keys[row]!r} again",
            expected="each once",
        )

    pairs = cells.filter(values != "").rows()
    if not pairs:
        raise InputError(
            where=name, found=f"no {key} with a {value}", expected="at least one"
        )

    return dict(pairs)


def _read_text_frame(path: AnyPath, form: Format) -> pl.DataFrame:
    """Read a table whose cells are all text."""
    name = display(path)
    data = read_bytes(path)
    with reader_errors(name, form.title):
        if form.name == "parquet":
            return pl.read_parquet(data).cast(pl.String)

        check_text(data, name)
        separator = form.options["separator"]
        return pl.read_csv(data, infer_schema=False, separator=separator)
