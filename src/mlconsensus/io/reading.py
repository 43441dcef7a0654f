"""Files → tables and panels: names of models, and whether files that are read together belong together."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..errors import InputError
from ..panel.alignment import How, Names
from ..panel.model_tables import ModelTable
from ..panel.predictions import Predictions
from . import scores
from .files import STANDARD, AnyPath, Source
from .folders import expanded
from .formats import Format, format_of, is_told, source_of


class Read(NamedTuple):
    """One model's table, and where it comes from."""

    name: str  # the file, as messages say it
    path: Path | None
    named: bool  # whether the file itself names the model
    table: ModelTable


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
    return format_of(path, format).read(source_of(path))


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
    source = source_of(path)
    with scores.any_number():
        tables = format_of(path, format).read_truth(source)
    if len(tables) > 1:
        models = ", ".join(repr(table.model) for table in tables[:3]) + (", …" if len(tables) > 3 else "")
        raise InputError(f"{source.name}: found {len(tables)} models ({models}), expected one")
    return tables[0]


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
    found: list[Read] = []
    for source, form in files_of(paths, format):
        for table in form.read(source):
            shared = _share_names(table, found[-1].table) if found else table
            found.append(Read(source.name, source.path, table.model != source.model, shared))
    found = renamed(found, models)
    tables = with_names([read.table for read in found], [read.name for read in found])
    check_overlap(found, tables, "instances")
    check_overlap(found, tables, "labels")
    return Predictions.from_tables(tables, instances=instances, labels=labels)


def files_of(paths: AnyPath | Sequence[AnyPath], format: str | None = None) -> list[tuple[Source, Format]]:
    """Tell for each file that a panel is to be read from, also in folders, what it is called and what format it has.

    Examples
    --------
    >>> [(source.model, form.name) for source, form in files_of(["a.csv", "b"], "npz")]
    [('a', 'csv'), ('b', 'npz')]
    """
    given = expanded([paths] if isinstance(paths, str | os.PathLike) else list(paths))
    if not given:
        raise InputError("predictions: found no file, expected at least one")
    if sum(os.fspath(path) == STANDARD for path in given) > 1:
        raise InputError("standard input: found twice among the files, expected once")
    # A format is for the files whose names do not tell theirs; if all do, it is to be read against the names.
    untold = [path for path in given if not is_told(path)]
    return [(source_of(path), format_of(path, None if untold and path not in untold else format)) for path in given]


def with_names(tables: Sequence[ModelTable], files: Sequence[str]) -> list[ModelTable]:
    """Name instances and labels by position in tables without such names, where other tables have them.

    Without a name, an instance is its position, 0, 1, …, and a label is ``label_0``, ``label_1``, …. That is only
    safe where the other tables' names are such positions too; else it is refused.

    Parameters
    ----------
    tables
        Tables that are to be matched with each other.
    files
        Where each comes from, for messages.

    Examples
    --------
    >>> named = ModelTable("a", np.zeros((1, 1)), ["1"], ["label_0"])
    >>> with_names([named, ModelTable("b", np.zeros((2, 1)))], ["a.csv", "b.npz"])[1].instances.tolist()
    ['0', '1']
    """
    out = list(tables)
    for axis, what in enumerate(("instances", "labels")):
        unnamed = [k for k, table in enumerate(out) if getattr(table, what) is None]
        if len(unnamed) in (0, len(out)):
            continue
        for k in unnamed:
            prefix = "" if axis == 0 else "label_"
            names = [f"{prefix}{at}" for at in range(out[k].scores.shape[axis])]
            _check_positions(set(names), [j for j in range(len(out)) if j not in unnamed], k, out, files, what)
            text = _text(names)
            out[k] = out[k]._replace(instances=text) if axis == 0 else out[k]._replace(labels=text)
    return out


def _check_positions(
    positions: set[str], named: list[int], k: int, tables: list[ModelTable], files: Sequence[str], what: str
) -> None:
    for j in named:
        other = next((name for name in map(str, getattr(tables[j], what)) if name not in positions), None)
        if other is not None:
            raise InputError(
                f"{files[k]}: found no names of {what}, expected them, since {files[j]} names {what} "
                f"such as {other!r} that are not positions in {files[k]}"
            )


def _text(names: Sequence[str]) -> Names:
    return np.array(names, dtype=np.dtypes.StringDType())


def _share_names(table: ModelTable, before: ModelTable) -> ModelTable:
    """Let a table use the names of the one before if they are the same, so that they are kept and compared once."""
    for what in ("instances", "labels"):
        own, other = getattr(table, what), getattr(before, what)
        if own is not None and other is not None and np.array_equal(own, other):
            table = table._replace(**{what: other})
    return table


def renamed(found: list[Read], models: Sequence[str] | None) -> list[Read]:
    """Give every model its own name: those in `models`, or what the files say.

    Examples
    --------
    >>> found = [Read(f"{day}/a.csv", Path(day, "a.csv"), False, ModelTable("a", None)) for day in ("mon", "tue")]
    >>> [read.table.model for read in renamed(found, None)]
    ['mon/a', 'tue/a']
    """
    if models is not None:
        names = [str(name) for name in models]
        if len(names) != len(found):
            raise InputError(
                f"models: found names for {len(names)}, expected for {len(found)}, as there are in the files"
            )
    else:
        names = [read.table.model for read in found]
        twice = {name for name in names if names.count(name) > 1}
        names = [_in_folder(read) if name in twice else name for name, read in zip(names, found, strict=True)]
    for k, name in enumerate(names):
        first = names.index(name)
        if first < k:
            shown = found[k].table.model if models is None else name
            raise InputError(
                f"{found[k].name}: found a second model {shown!r} (the first is in {found[first].name}), "
                "expected each model to have its own name"
            )
    return [read._replace(table=read.table._replace(model=name)) for name, read in zip(names, found, strict=True)]


def _in_folder(read: Read) -> str:
    if read.named or read.path is None:
        return read.table.model
    return f"{read.path.absolute().parent.name}/{read.table.model}"


def check_overlap(found: list[Read], tables: list[ModelTable], what: str) -> None:
    """Refuse a model that shares no instance, or no label, with any other: most likely the names do not match.

    Examples
    --------
    >>> tables = [ModelTable(name, None, labels=np.array([name])) for name in "ab"]
    >>> check_overlap([Read(f"{table.model}.csv", None, False, table) for table in tables], tables, "labels")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: b.csv: found no label in model 'b' that another model has (such as ...
    """
    names = [getattr(table, what) for table in tables]
    if len(tables) == 1 or any(own is None for own in names):
        return
    distinct = {id(own): own for own in names}
    sets = {key: set(own.tolist()) for key, own in distinct.items()} if len(distinct) > 1 else {}
    for k, own in reversed(list(enumerate(names))):  # of two files that do not match, the second is named
        others = [other for j, other in enumerate(names) if j != k]
        if any(own is other or not sets[id(own)].isdisjoint(sets[id(other)]) for other in others):
            continue
        noun = what.removesuffix("s")
        raise InputError(
            f"{found[k].name}: found no {noun} in model {tables[k].model!r} that another model has "
            f"(such as {others[0][0]!r}; its own are such as {own[0]!r}), expected some in common"
        )
