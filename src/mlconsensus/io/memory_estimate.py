"""The memory that files need if they are combined in memory."""

from pathlib import Path

import polars as pl

from .columns import find_roles, is_integral
from .files import Paths, is_plain, reader_errors
from .formats.registry import list_input_files, list_parquet_parts

# Bytes that one row of a long table takes while it is read.
_ROW_BYTES = 64
# Bytes that a score of the consensus takes: in the result, while it is converted, and
# in the text that is written.
_SCORE_BYTES = 24
# Memory for the content of a file, as a multiple of its size on disk.
_PLAIN_TEXT_FACTOR = 1.2
_OTHER_FACTOR = 8.0
_SMALLEST_CELL = 4  # bytes of a score in a file, with its separator


def estimate_memory(paths: Paths, format: str | None = None) -> int:
    """Estimate the bytes of memory that are needed to combine files in memory.

    Parameters
    ----------
    paths, format
        As in `read_predictions`.

    Returns
    -------
    int
        Number of bytes. Files that do not exist are left out.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.parquet"
    >>> pl.DataFrame({"id": ["7"] * 1000, "x": [0.5] * 1000}).write_parquet(path)
    >>> estimate_memory(path)
    32000
    """
    content_size = 0.0
    max_cells = 0.0  # of a single file
    for file, form in list_input_files(paths, format):
        path = file.path
        if path is None or not path.exists():
            continue

        if form.name == "parquet" and (path.is_dir() or is_plain(path)):
            size, n_cells = _measure_parquet(path, file.name, form.title)
        else:
            file_size = path.stat().st_size
            factor = _OTHER_FACTOR
            if form.name in ("csv", "tsv") and is_plain(path):
                factor = _PLAIN_TEXT_FACTOR

            size = factor * file_size
            n_cells = file_size / _SMALLEST_CELL

        content_size += size
        max_cells = max(max_cells, n_cells)

    return int(content_size + _SCORE_BYTES * max_cells)


def _measure_parquet(path: Path, name: str, title: str) -> tuple[float, float]:
    """Return the bytes of a Parquet table in memory, and its number of cells."""
    with reader_errors(name, title):
        parts = list_parquet_parts(path)
        query = pl.scan_parquet(parts, glob=False, hive_partitioning=False)
        schema = query.collect_schema()
        n_rows = query.select(pl.len()).collect().item()

    dtypes = schema.dtypes()[1:]
    n_cells = n_rows * len(dtypes)
    if find_roles(schema.names()):
        return n_rows * _ROW_BYTES, n_cells

    row_size = 0
    for dtype in dtypes:
        if is_integral(dtype):
            row_size += 1
        else:
            row_size += 8

    return n_rows * row_size, n_cells
