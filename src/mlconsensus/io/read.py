"""Files → tables and panels, in memory or left on disk: one way for both."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import polars as pl

from ..errors import InputError
from ..predictions import How, Predictions, ScoreTable, as_array, as_polars, with_names
from . import long_table, on_disk
from .columns import find_roles
from .files import AnyPath, InputFile, Paths, Place, display, reader_errors
from .formats import jsonl
from .formats.registry import (
    Format,
    NamedFrame,
    format_of,
    list_input_files,
    make_input_file,
)
from .label_names import ReadKeywords, make_read_options, rename_labels

_LONG = "columns=… or names such as instance, label, and model or score"


def read_tables(
    path: AnyPath, *, format: str | None = None, **reading: Unpack[ReadKeywords]
) -> list[ScoreTable]:
    r"""Read one file: a table for each model in it.

    Parameters
    ----------
    path
        A file, or ``-`` for standard input.
    format
        One of `FORMATS`; by default what the suffix says, also before ``.gz`` and
        ``.zst``.
    reading
        As in `read_predictions`.

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
    with make_read_options(reading) as options:
        tables = _tables(make_input_file(path, options), format_of(path, format))

    return [_with_arrays(table) for table in tables]


def read_table(
    path: AnyPath, *, format: str | None = None, **reading: Unpack[ReadKeywords]
) -> ScoreTable:
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
    with make_read_options(reading, is_truth=True) as options:
        tables = _tables(make_input_file(path, options), format_of(path, format))
        models = ", ".join(repr(table.model) for table in tables[:3]) + (
            ", …" if len(tables) > 3 else ""
        )
        if len(tables) != 1:
            raise InputError(
                where=display(path),
                found=f"{len(tables)} models ({models})",
                expected="one",
            )

    return _with_arrays(tables[0])


def read_predictions(
    paths: Paths,
    *,
    format: str | None = None,
    instances: How = "union",
    labels: How = "union",
    models: Sequence[str] | None = None,
    **reading: Unpack[ReadKeywords],
) -> Predictions:
    r"""Read what several models said, from one file or several, of any formats.

    Models are matched by the names of instances and labels. A model is called what its
    file says, else by the file's name without suffixes, with the folder before it where
    two files have the same name.

    Parameters
    ----------
    paths
        Files, or folders of them; ``-`` is standard input. A folder called
        ``….parquet`` is one table in parts.
    format
        One of `FORMATS`, for files whose suffix does not say it (or for all, if all
        suffixes do).
    instances, labels
        ``"union"`` keeps all (what a model lacks is missing), ``"intersection"`` those
        that all models have.
    models
        What to call the models, in the order of the files.
    reading
        How to read what is not as documented, and what labels are to be called:
        ``columns={"model": "annotator"}`` says which columns of long tables are which;
        ``strict=True`` refuses what is else read with a warning that says what was
        done; ``skip_bad=True`` goes on without answers that cannot be read;
        ``vocabulary`` is a list of the labels that count or a file of them; ``aliases``
        a mapping of other names to labels, or a table of them; ``ignore_case=True``
        makes labels one that differ in case.

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
    with make_read_options(reading) as options:
        tables = read_panel_tables(list_input_files(paths, format, options), models)

    return Predictions.from_tables(tables, instances=instances, labels=labels)


def from_long(frame: Any, **reading: Unpack[ReadKeywords]) -> Predictions:
    """Make a panel of a long table in memory: a row for each statement of a model, worker or annotator.

    Parameters
    ----------
    frame
        A DataFrame of pandas or Polars with a column for the instance, for the label,
        and for the model or the score or both, such as crowd-kit's ``task``,
        ``worker``, ``label``. Without a score, each row is a yes; a row without a label
        says that an instance was seen.
    reading
        As in `read_predictions`, such as ``columns={"instance": "text_id"}`` for other
        names.

    Examples
    --------
    >>> frame = pl.DataFrame({"task": [7, 7, 8], "worker": ["ann", "bob", "ann"], "label": ["law", "law", None]})
    >>> from_long(frame).to_array()
    array([[[ 1.], [ 0.]],
           [[ 1.], [nan]]])
    """
    with make_read_options(reading) as options, reader_errors("frame", "a long table"):
        if hasattr(frame, "iloc"):
            cells = [
                own.astype(object).where(own.notna(), None).tolist()
                for _, own in frame.items()
            ]
        else:
            frame = as_polars(frame, "frame")
            cells = frame.get_columns()

        columns = [str(column) for column in frame.columns]
        rows = pl.DataFrame({str(at): own for at, own in enumerate(cells)})
        told = options.columns.values()
        if not (not told or not set(told).isdisjoint(columns)):
            raise InputError(
                where="columns",
                found="none of those named in the frame",
                expected="some",
            )
        if not (bool(find_roles(columns, options, "frame"))):
            raise InputError(
                where="frame", found=f"the columns {', '.join(columns)}", expected=_LONG
            )

        found = NamedFrame(
            rows=rows,
            columns=columns,
            place=Place(file="frame", unit="row", number=lambda row: row),
        )
        tables = [
            rename_labels(table, options)
            for table in long_table.make_tables(found, "model", options)
        ]

    return Predictions.from_tables(tables)


def from_dataset(rows: Iterable[Any], **reading: Unpack[ReadKeywords]) -> Predictions:
    """Make a panel of rows that are dicts, as Hugging Face's and Argilla's datasets give them, or a list of such.

    Parameters
    ----------
    rows
        Each has a key for the labels (a list of names, names with scores, or the
        numbers of a `ClassLabel` feature), perhaps one for the instance (else rows are
        numbered) and one for the model or annotator. Records of annotation tools are
        recognised, such as those of Argilla's ``dataset.records.to_datasets()``.
    reading
        As in `read_predictions`, such as ``columns={"label": "topics"}`` for other
        names.

    Examples
    --------
    >>> rows = [{"id": 7, "annotator": "ann", "labels": ["law"]}, {"id": 8, "annotator": "ann", "labels": []}]
    >>> from_dataset(rows).to_array()
    array([[[1.], [0.]]])
    """
    features = getattr(rows, "features", None) or {}
    named = {
        key: getattr(getattr(feature, "feature", feature), "names", None)
        for key, feature in features.items()
    }
    with (
        make_read_options(reading) as options,
        reader_errors("dataset", "rows that are dicts"),
    ):
        entries = (
            (at, jsonl.name_classes(row, at, named, options))
            for at, row in enumerate(rows)
        )
        found = jsonl.make_long_frame(
            entries,
            "row",
            InputFile(name="dataset", model="model", read=bytes, options=options),
        )
        if options.log.files_without_named_columns:
            raise InputError(
                where="columns",
                found="none of those named in the dataset",
                expected="some",
            )

        tables = [
            rename_labels(table, options)
            for table in long_table.make_tables(found, "model", options)
        ]

    return Predictions.from_tables(tables)


def label_counts(
    paths: Paths, *, format: str | None = None, **reading: Unpack[ReadKeywords]
) -> dict[str, int]:
    r"""Count how often each label is given, with a score of at least 0.5, in files whose labels need not match.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "ann.csv"
    >>> _ = path.write_text("id,law,war\n7,1,0\n8,1,0\n")
    >>> label_counts(path)
    {'law': 2, 'war': 0}
    """
    used: Counter[str] = Counter()
    with make_read_options(reading) as options:
        for table in (
            table
            for one in list_input_files(paths, format, options)
            for table in _tables(*one)
        ):
            if table.labels is None:
                labels = range(table.scores.shape[1])
            else:
                labels = table.labels

            given = np.ravel((table.scores >= 0.5).sum(axis=0)).tolist()
            used.update(
                {
                    str(label): int(times)
                    for label, times in zip(labels, given, strict=True)
                }
            )

    return dict(used)


def read_panel_tables(
    files: Sequence[tuple[InputFile, Format]],
    models: Sequence[str] | None = None,
    scratch: Path | None = None,
) -> list[ScoreTable]:
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
    >>> read_panel_tables([], models=["ann"])
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: models: found names for 1, expected for 0, as there are in the files
    """
    found: list[ScoreTable] = []
    fuller: list[str] = []  # names for models that would have the same
    told = False  # whether any file has any of the columns that are named
    for k, (file, form) in enumerate(files):
        if found:
            before = found[-1].instances
        else:
            before = None

        for table in _tables(file, form, scratch and scratch / str(k), like=before):
            found.append(table)
            names_model = table.model != file.model
            if names_model or file.path is None:
                fuller.append(table.model)
            else:
                folder = file.path.absolute().parent.name
                fuller.append(f"{folder}/{table.model}")

        told = told or file.name not in file.options.log.files_without_named_columns

    if not (told or not found):
        raise InputError(
            where="columns", found="none of those named in any file", expected="some"
        )

    return with_names(_renamed(found, fuller, models))


def _tables(
    file: InputFile, form: Format, scratch: Path | None = None, like: Any = None
) -> list[ScoreTable]:
    keep: Callable[[pl.LazyFrame], Any] = (
        pl.LazyFrame.collect
        if scratch is None
        else partial(on_disk.sink_to_parquet, scratch)
    )
    with reader_errors(file.name, form.title):
        found = form.module.read(file, keep, **form.options)
        if (
            isinstance(found, NamedFrame)
            and pl.List(pl.String) in found.rows.lazy().collect_schema().dtypes()
        ):
            rows = found.rows.lazy().collect().iter_rows()  # lists of tags, as in JSON
            entries = (dict(zip(found.columns, row, strict=True)) for row in rows)
            found = jsonl.make_long_frame(enumerate(entries, 1), "row", file)

        named = file.options.columns.values()
        if (
            named
            and isinstance(found, NamedFrame)
            and not found.allows_missing_label
            and not set(named) & set(found.columns)
        ):
            file.options.log.files_without_named_columns.add(file.name)
        if isinstance(found, list):
            tables = found
        else:
            tables = long_table.make_tables(
                found, file.model, file.options, scratch, like
            )

        tables = [rename_labels(table, file.options) for table in tables]
        if scratch is None:
            return tables
        return [
            on_disk.store_table(table, scratch / f"table-{k}")
            for k, table in enumerate(tables)
        ]


def _with_arrays(table: ScoreTable) -> ScoreTable:
    if table.instances is None:
        return table
    return table._replace(instances=as_array(table.instances))


def _renamed(
    found: list[ScoreTable], fuller: list[str], models: Sequence[str] | None
) -> list[ScoreTable]:
    """Give every model its own name: those in `models`, or what the files say."""
    if models is not None:
        if isinstance(models, str):
            raise InputError(
                where="models",
                found=f"the single text {models!r}",
                expected="a list of names",
            )

        names = [str(name) for name in models]
        there = f"for {len(found)}, as there are in the files"
        if len(names) != len(found):
            raise InputError(
                where="models", found=f"names for {len(names)}", expected=there
            )
    else:
        times = Counter(table.model for table in found)
        names = [
            longer if times[table.model] > 1 else table.model
            for table, longer in zip(found, fuller, strict=True)
        ]

    first: dict[str, int] = {}
    for k, name in enumerate(names):
        if models is None:
            shown = found[k].model
        else:
            shown = name

        before = first.setdefault(name, k)
        second = f"a second model {shown!r} (the first is in {found[before].file})"
        if before != k:
            raise InputError(
                where=str(found[k].file),
                found=second,
                expected="each model to have its own name",
            )

    return [
        table._replace(model=name) for name, table in zip(names, found, strict=True)
    ]
