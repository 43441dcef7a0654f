"""Files → tables and panels, in memory or left on disk: one way for both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from ..errors import InputError, expect
from ..panel.alignment import How, as_array
from ..panel.model_tables import ModelTable, check_overlap, with_names
from ..panel.predictions import Predictions
from . import frames, stored
from .columns import any_number
from .files import AnyPath, InputFile, guarded
from .formats import Format, format_of, input_file, input_files


def read_tables(path: AnyPath, *, format: str | None = None) -> list[ModelTable]:
    r"""Read one file: a table for each model in it.

    Parameters
    ----------
    path
        A file, or ``-`` for standard input.
    format
        One of `FORMATS`; by default what the suffix says, also before ``.gz`` and ``.zst``.

    Returns
    -------
    list of ModelTable
        `instances` or `labels` is ``None`` where the file does not name them.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "votes.csv"
    >>> _ = path.write_text("instance,label,score,model\n7,law,0.9,ann\n7,law,0.2,bob\n")
    >>> [(table.model, table.scores.tolist()) for table in read_tables(path)]
    [('ann', [[0.9]]), ('bob', [[0.2]])]
    """
    return [_with_arrays(table) for table in _tables(input_file(path), format_of(path, format))]


def read_table(path: AnyPath, *, format: str | None = None) -> ModelTable:
    """Read a file that holds one table: the truth, or a consensus, whose scores may be any finite numbers.

    Of an NPZ that holds ``truth`` beside predictions, it reads the truth.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "truth.jsonl"
    >>> _ = path.write_text('{"instance": "7", "labels": ["law"]}')
    >>> read_table(path).labels.tolist()
    ['law']
    """
    file = input_file(path)
    with any_number():
        tables = _tables(file, format_of(path, format), truth=True)
    if len(tables) > 1:
        models = ", ".join(repr(table.model) for table in tables[:3]) + (", …" if len(tables) > 3 else "")
        raise InputError(f"{file.name}: found {len(tables)} models ({models}), expected one")
    return _with_arrays(tables[0])


def read_predictions(
    paths: AnyPath | Sequence[AnyPath],
    *,
    format: str | None = None,
    instances: How = "union",
    labels: How = "union",
    models: Sequence[str] | None = None,
) -> Predictions:
    r"""Read what several models said, from one file or several, of any formats.

    Models are matched by the names of instances and labels. A model is called what its file says, else by the
    file's name without suffixes, with the folder before it where two files have the same name.

    Parameters
    ----------
    paths
        Files, or folders of them; ``-`` is standard input. A folder called ``….parquet`` is one table in parts.
    format
        One of `FORMATS`, for files whose suffix does not say it (or for all, if all suffixes do).
    instances, labels
        ``"union"`` keeps all (what a model lacks is missing), ``"intersection"`` those that all models have.
    models
        What to call the models, in the order of the files.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import mlconsensus as mlc
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "ann.csv").write_text("id,law,war\n7,1,0\n8,0,1\n")
    >>> _ = (folder / "bob.jsonl").write_text('{"instance": "7", "labels": ["law", "art"]}')
    >>> read_predictions([folder / "ann.csv", folder / "bob.jsonl"])
    <Predictions: 2 models × 2 instances × 3 labels, 6 cells missing>
    """
    tables = panel_tables(input_files(paths, format), models)
    return Predictions.from_tables(tables, instances=instances, labels=labels)


def panel_tables(
    files: Sequence[tuple[InputFile, Format]], models: Sequence[str] | None = None, scratch: Path | None = None
) -> list[ModelTable]:
    """Read the tables of a panel, each model with a name of its own, and all or none of them with names.

    Parameters
    ----------
    files
        What `input_files` gives; it may be walked only once.
    models
        What to call the models.
    scratch
        A folder for what is to stay on disk; ``None``: everything goes into memory.

    Examples
    --------
    >>> panel_tables([], models=["ann"])
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: models: found names for 1, expected for 0, as there are in the files
    """
    found: list[ModelTable] = []
    fuller: list[str] = []  # names for models that would have the same
    for k, (file, form) in enumerate(files):
        before = found[-1].instances if found else None
        for table in _tables(file, form, scratch and scratch / str(k), like=before):
            found.append(table)
            own = table.model != file.model or file.path is None  # whether the file itself names the model
            fuller.append(table.model if own else f"{file.path.absolute().parent.name}/{table.model}")  # type: ignore[union-attr]
    named = with_names(_renamed(found, fuller, models))
    check_overlap(named, "labels")
    return named


def _tables(
    file: InputFile, form: Format, scratch: Path | None = None, truth: bool = False, like: Any = None
) -> list[ModelTable]:
    keep: Callable[[pl.LazyFrame], Any] = pl.LazyFrame.collect if scratch is None else partial(stored.sunk, scratch)
    with guarded(file.name, form.title):
        found = form.read(file, keep, truth)
        tables = found if isinstance(found, list) else frames.tables(found, file.model, scratch, like)
        if scratch is None:
            return tables
        return [stored.table_on_disk(table, scratch / f"table-{k}") for k, table in enumerate(tables)]


def _with_arrays(table: ModelTable) -> ModelTable:
    return table if table.instances is None else table._replace(instances=as_array(table.instances))


def _renamed(found: list[ModelTable], fuller: list[str], models: Sequence[str] | None) -> list[ModelTable]:
    """Give every model its own name: those in `models`, or what the files say."""
    if models is not None:
        names = [str(name) for name in models]
        there = f"for {len(found)}, as there are in the files"
        expect(len(names) == len(found), "models", f"names for {len(names)}", there)
    else:
        times = Counter(table.model for table in found)
        names = [longer if times[table.model] > 1 else table.model for table, longer in zip(found, fuller, strict=True)]
    first: dict[str, int] = {}
    for k, name in enumerate(names):
        shown, before = found[k].model if models is None else name, first.setdefault(name, k)
        second = f"a second model {shown!r} (the first is in {found[before].file})"
        expect(before == k, str(found[k].file), second, "each model to have its own name")
    return [table._replace(model=name) for name, table in zip(names, found, strict=True)]
