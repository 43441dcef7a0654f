"""Cells of long tables that hold several labels, as forms and annotation tools write.

Examples are ``Science, Crime`` of a form with check boxes, ``law;war``, and lists as
JSON.
"""

import contextlib
import json
from dataclasses import replace

import polars as pl

from .formats.registry import NamedFrame
from .options import ReadOptions

_SEPARATORS = (";", "|", ",")


def split_label_cells(frame: NamedFrame, options: ReadOptions) -> NamedFrame:
    """Give each label of a cell a row of its own.

    Lists as JSON are always split. Texts are split at a separator if at least half of
    the cells with that separator have a part that is the label of another row, because
    the name of a label may have a comma, too. A label of the vocabulary is not split.

    Parameters
    ----------
    frame : NamedFrame
        A long table whose columns are called by their roles.
    options : ReadOptions
        Options for reading. Their log receives how many cells were split.

    Returns
    -------
    NamedFrame

    Examples
    --------
    >>> from mlconsensus.io.files import Place
    >>> rows = pl.DataFrame({"0": ["1", "2"], "1": ["law, war", "law"]})
    >>> place = Place(file="a.csv", unit="row", number=int)
    >>> frame = NamedFrame(rows=rows, columns=["instance", "label"], place=place)
    >>> split_label_cells(frame, ReadOptions()).rows.rows()
    [('1', 'law'), ('1', 'war'), ('2', 'law')]
    """
    column = str(frame.columns.index("label"))
    rows = frame.rows.lazy()
    if rows.collect_schema()[column] != pl.String:
        return frame

    counts = rows.group_by(column).len().collect()
    count_by_cell = dict(counts.filter(pl.col(column).is_not_null()).iter_rows())
    labels_by_cell = _find_labels(list(count_by_cell), options)
    if not labels_by_cell:
        return frame

    n_cells = sum(count_by_cell[cell] for cell in labels_by_cell)
    options.log.add(
        "cells with several labels split", next(iter(labels_by_cell)), n_cells
    )
    parts = pl.DataFrame(
        {"cell": list(labels_by_cell), "parts": list(labels_by_cell.values())},
        schema={"cell": pl.String, "parts": pl.List(pl.String)},
    )
    cell = pl.col(column)
    numbered = rows.with_row_index("row").join(
        parts.lazy(),
        left_on=column,
        right_on="cell",
        how="left",
        maintain_order="left",
    )
    split = numbered.with_columns(
        pl.coalesce("parts", pl.concat_list(cell)).alias(column)
    ).explode(column, empty_as_null=True)

    # Messages name the row of the file.
    def find_row(position: int) -> int:
        row: int = split.select("row").slice(position, 1).collect().item()
        return frame.place.number(row)

    result: pl.DataFrame | pl.LazyFrame = split.drop("row", "parts")
    if isinstance(frame.rows, pl.DataFrame):
        result = result.lazy().collect()
    return replace(frame, rows=result, place=replace(frame.place, number=find_row))


def _find_labels(cells: list[str], options: ReadOptions) -> dict[str, list[str]]:
    """Return the labels of each cell that holds several."""
    labels_by_cell: dict[str, list[str]] = {}
    for cell in cells:
        labels = _parse_json_list(cell)
        if labels is not None:
            labels_by_cell[cell] = labels

    single_labels = {cell.strip() for cell in cells}
    for separator in _SEPARATORS:
        candidates = {}
        for cell in cells:
            is_label = bool(options.vocabulary) and options.resolve_label(cell)
            if separator in cell and cell not in labels_by_cell and not is_label:
                parts = [part.strip() for part in cell.split(separator)]
                candidates[cell] = list(filter(None, parts))

        n_combinations = 0
        for parts in candidates.values():
            n_combinations += not single_labels.isdisjoint(parts)
        if n_combinations and n_combinations >= len(candidates) / 2:
            labels_by_cell |= candidates

    return labels_by_cell


def _parse_json_list(cell: str) -> list[str] | None:
    """Return the labels of a list as JSON, alone or as the only value of an object."""
    value = None
    if cell.startswith(("[", "{")):
        with contextlib.suppress(ValueError, RecursionError):
            value = json.loads(cell)

    if isinstance(value, dict) and len(value) == 1:
        value = next(iter(value.values()))
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return value
    return None
