"""R's data files of the package mldr.datasets, which some data sets are published as."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import InputError
from ..io.arff import LabelledData


def read_rda(path: Path) -> LabelledData:
    """Read one data set.

    Needs the package ``rdata``, and for a short time the memory of the dense table.

    Examples
    --------
    >>> read_rda(Path("no.rda"))
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: no.rda: found ...
    """
    try:
        import rdata
    except ModuleNotFoundError:
        raise InputError(
            f"{path}: found an R data file but no package to read it with, expected rdata: "
            "pip install 'mlconsensus[datasets]'"
        ) from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # rdata does not know the class mldr, which is a list to it all the same
            content: Any = next(iter(rdata.read_rda(path).values()))
        table = content["dataset"]
        features, labels = (
            np.asarray(positions, dtype=np.intp) - 1  # R counts from 1
            for positions in (content["attributesIndexes"], content["labels"]["index"])
        )
        names = [str(name) for name in table.columns]
        return LabelledData(
            _sparse(table, features),
            _sparse(table, labels),
            [names[at] for at in features],
            [names[at] for at in labels],
        )
    except (
        OSError,
        ValueError,
        LookupError,
        StopIteration,
        TypeError,
        AttributeError,
        EOFError,
        RuntimeError,
    ) as fault:
        raise InputError(f"{path}: found {type(fault).__name__}: {fault}, expected an R data file of mldr") from None


def _sparse(table: Any, positions: np.ndarray[Any, np.dtype[np.intp]]) -> sparse.csr_array:
    """Turn columns of a data frame into CSR one by one, so that no second dense copy is made."""
    columns = [sparse.csc_array(np.asarray(table.iloc[:, at], dtype=np.float64)[:, None]) for at in positions]
    return sparse.hstack(columns, format="csr")
