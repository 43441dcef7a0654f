"""Tables → files."""

from __future__ import annotations

import os
import re
from typing import Any, get_args

import numpy as np
from scipy import sparse

from ..errors import InputError
from ..panel.model_tables import ModelTable
from .files import AnyPath, compressed, whole_file
from .formats import Layout, format_of


def write_table(
    path: AnyPath,
    table: ModelTable,
    *,
    format: str | None = None,
    layout: Layout = "wide",
    force: bool = False,
) -> None:
    """Write one table so that `read_table` gives it back exactly; the file appears whole or not at all.

    Parameters
    ----------
    path
        A file, or ``-`` for standard output.
    table
        Its scores are dense or sparse; NaN is missing.
    format
        One of `FORMATS`; by default what the suffix says, also before ``.gz`` and ``.zst``.
    layout
        ``"wide"``: a row an instance; ``"long"``: a row a score; ``"ranked"``: the same from the best of an instance to
        the worst, with its rank, without missing scores. CSV, TSV, Parquet and Feather have all three.
    force
        Whether to replace a file that exists.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "consensus.csv"
    >>> write_table(path, ModelTable("consensus", [[0.5, 0.25]], ["7"], ["law", "war"]))
    >>> print(path.read_text(), end="")
    instance,law,war
    7,0.5,0.25
    """
    form = format_of(path, format)
    if layout not in get_args(Layout):
        raise InputError(f"layout: found {layout!r}, expected 'wide', 'long' or 'ranked'")
    plain = table._replace(scores=_matrix(table.scores))
    with whole_file(path, force) as file, compressed(file, path) as packed:
        try:
            form.write(packed, plain, layout)
        except Exception as fault:
            number = re.search(r"\(os error (\d+)\)", str(fault))
            if number is None or isinstance(fault, OSError):
                raise
            # Polars has errors of its own for a full disk.
            raise OSError(int(number[1]), os.strerror(int(number[1]))) from fault


def _matrix(scores: Any) -> Any:
    if sparse.issparse(scores):
        matrix = sparse.csr_array(scores)
        matrix.sum_duplicates()
        return matrix
    return np.asarray(scores)
