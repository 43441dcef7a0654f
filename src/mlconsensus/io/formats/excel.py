"""Excel workbooks: the first sheet, wide or long, read as CSV is."""

import io
import zipfile
from dataclasses import replace

import polars as pl

from ...errors import InputError
from ...execution.memory import check_size
from ..files import InputFile, reader_errors
from . import csv
from .registry import Collect, NamedFrame


def read(file: InputFile, collect: Collect = pl.LazyFrame.collect) -> NamedFrame:
    """Read the rows of the first sheet.

    Parameters
    ----------
    file : InputFile
        The file.
    collect : callable
        Runs the query.

    Returns
    -------
    NamedFrame
    """
    data = file.read()
    if not data.strip():
        raise InputError(where=file.name, found="an empty file", expected="a workbook")

    with reader_errors(file.name, "an Excel workbook (.xlsx)"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        check_size(size, file.name, "when unpacked")
        sheets = _read_sheets(data, file.name)

    names = list(sheets)
    for name in names[1:]:
        file.options.log.add("sheets left out", name)

    # Cells are text from here on, so that ids keep their form.
    text = sheets[names[0]].write_csv(include_header=False).encode()
    return csv.read(replace(file, read=lambda: text, path=None), collect)


def _read_sheets(data: bytes, name: str) -> dict[str, pl.DataFrame]:
    """Return the sheets that are not empty by name, all cells as text."""
    try:
        return pl.read_excel(
            io.BytesIO(data),
            sheet_id=0,
            engine="calamine",
            has_header=False,
            infer_schema_length=0,
            drop_empty_rows=False,
            drop_empty_cols=False,
            raise_if_empty=False,
        )
    except ModuleNotFoundError:
        raise InputError(
            where=name,
            found="an Excel workbook",
            expected="the package that reads it: pip install 'mlconsensus[excel]'",
        ) from None
