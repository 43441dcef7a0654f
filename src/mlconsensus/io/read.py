"""Reading of tables and panels from files, frames and datasets."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import polars as pl

from ..errors import EmptyFileError, InputError
from ..predictions import (
    How,
    Predictions,
    ScoreTable,
    add_names,
    as_array,
    as_polars,
    in_common,
)
from . import long_table
from .columns import find_roles
from .files import AnyPath, InputFile, Paths, Place, display, reader_errors
from .formats.registry import (
    Collect,
    Format,
    NamedFrame,
    format_of,
    list_input_files,
    make_input_file,
)
from .label_names import ReadKeywords, make_read_options, rename_labels
from .options import ReadOptions

_LONG = "columns=… or names such as instance, label, and model or score"


@dataclass(frozen=True, kw_only=True)
class _FileContent:
    """What a file holds: the rows of a table, or the tables of an archive of arrays."""

    file: InputFile
    form: Format
    frame: long_table.LoadedFrame | None = None  # None: an archive
    tables: Sequence[ScoreTable] = ()


def read_tables(
    path: AnyPath, *, format: str | None = None, **reading: Unpack[ReadKeywords]
) -> list[ScoreTable]:
    r"""Read the table of each model in one file.

    Parameters
    ----------
    path : str or path-like
        A file, or ``-`` for standard input.
    format : str, default=None
        One of `FORMATS`. By default the suffix decides, also before ``.gz`` and
        ``.zst``.
    reading
        As in `read_predictions`.

    Returns
    -------
    list of ScoreTable
        `instances` or `labels` is ``None`` where the file does not name them.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "votes.csv"
    >>> header = "instance,label,score,model"
    >>> _ = path.write_text(f"{header}\n7,law,0.9,ann\n7,law,0.2,bob\n")
    >>> [(table.model, table.scores.tolist()) for table in read_tables(path)]
    [('ann', [[0.9]]), ('bob', [[0.2]])]
    """
    with make_read_options(reading) as options:
        file = make_input_file(path, options)
        tables = _make_tables(_read_content(file, format_of(path, format)))

    return list(map(_convert_instances, tables))


def read_table(
    path: AnyPath, *, format: str | None = None, **reading: Unpack[ReadKeywords]
) -> ScoreTable:
    """Read a file with one table: the truth, or a consensus.

    Scores may be any finite numbers. If an NPZ archive holds ``truth`` and predictions,
    the truth is read.

    Parameters
    ----------
    path : str or path-like
        A file, or ``-`` for standard input.
    format : str, default=None
        One of `FORMATS`. By default the suffix decides.
    reading
        As in `read_predictions`.

    Returns
    -------
    ScoreTable

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "truth.jsonl"
    >>> _ = path.write_text('{"instance": "7", "labels": ["law"]}')
    >>> read_table(path).labels.tolist()
    ['law']
    """
    with make_read_options(reading, is_truth=True) as options:
        file = make_input_file(path, options)
        tables = _make_tables(_read_content(file, format_of(path, format)))
        if len(tables) != 1:
            models = ", ".join(repr(table.model) for table in tables[:3])
            if len(tables) > 3:
                models += ", …"

            raise InputError(
                where=display(path),
                found=f"{len(tables)} models ({models})",
                expected="one",
            )

    return _convert_instances(tables[0])


def read_predictions(
    paths: Paths,
    *,
    format: str | None = None,
    instances: How = "union",
    labels: How = "union",
    models: Sequence[str] | None = None,
    **reading: Unpack[ReadKeywords],
) -> Predictions:
    r"""Read the predictions of several models from files of any formats.

    Models are matched by the names of instances and labels. The file names its models.
    If it does not, the name of the file without suffixes is the name of its model, with
    the folder before it if two files have the same name.

    Parameters
    ----------
    paths : path or sequence of paths
        Files, or folders of files; ``-`` is standard input. A folder called
        ``….parquet`` is one table in parts.
    format : str, default=None
        One of `FORMATS`, for the files whose suffix does not show it, or for all files
        if every suffix shows one.
    instances, labels : {"union", "intersection"}, default="union"
        ``"union"`` keeps all (predictions that a model does not have are missing),
        ``"intersection"`` those that all models have.
    models : sequence of str, default=None
        Names of the models, in the order of the files.
    reading
        Options for files that are not as documented, and for the names of labels.
        ``columns={"model": "annotator"}`` names the columns of long tables.
        ``strict=True`` refuses files that are otherwise read with a warning.
        ``skip_bad=True`` leaves out answers that cannot be read. ``vocabulary`` is a
        list of the allowed labels, or a file with them. ``aliases`` maps other names to
        labels, or is a table of them. ``ignore_case=True`` merges labels that differ
        in case only.

    Returns
    -------
    Predictions

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import mlconsensus as mlc
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "ann.csv").write_text("id,law,war\n7,1,0\n8,0,1\n")
    >>> line = '{"instance": "7", "labels": ["law", "art"]}'
    >>> _ = (folder / "bob.jsonl").write_text(line)
    >>> read_predictions([folder / "ann.csv", folder / "bob.jsonl"])
    <Predictions: 2 models × 2 instances × 3 labels, 6 cells missing>
    """
    with make_read_options(reading) as options:
        files = list_input_files(paths, format, options)
        keeps_all = models is None and instances == "union" and labels == "union"
        if len(files) == 1 and keeps_all:
            crowd, tables = _read_single_file(*files[0])
            _check_named_columns(files)
            if crowd is not None:
                return crowd
        else:
            tables = read_panel_tables(files, models)

    return Predictions.from_tables(tables, instances=instances, labels=labels)


def from_long(frame: Any, **reading: Unpack[ReadKeywords]) -> Predictions:
    """Make predictions of a long table in memory, with a row for each prediction.

    Parameters
    ----------
    frame : DataFrame of pandas or Polars
        It has a column for the instance, for the label, and for the model or the score
        or both, such as crowd-kit's ``task``, ``worker``, ``label``. Without a column
        of scores, each row is a chosen label; a row without a label means that the
        model saw the instance.
    reading
        As in `read_predictions`, such as ``columns={"instance": "text_id"}`` for other
        names.

    Returns
    -------
    Predictions

    Examples
    --------
    >>> frame = pl.DataFrame(
    ...     {
    ...         "task": [7, 7, 8],
    ...         "worker": ["ann", "bob", "ann"],
    ...         "label": ["law", "law", None],
    ...     }
    ... )
    >>> from_long(frame).to_array()
    array([[[ 1.], [ 0.]],
           [[ 1.], [nan]]])
    """
    with make_read_options(reading) as options, reader_errors("frame", "a long table"):
        is_pandas = hasattr(frame, "iloc")
        if not is_pandas:
            frame = as_polars(frame, "frame")

        columns = list(map(str, frame.columns))
        rows = _number_columns(frame, is_pandas)
        named_columns = set(options.columns.values())
        if named_columns and named_columns.isdisjoint(columns):
            raise InputError(
                where="columns",
                found="none of those named in the frame",
                expected="some",
            )
        if not find_roles(columns, options, "frame"):
            raise InputError(
                where="frame", found=f"the columns {', '.join(columns)}", expected=_LONG
            )

        long_frame = NamedFrame(
            rows=rows,
            columns=columns,
            place=Place(file="frame", unit="row", number=lambda row: row),
        )
        loaded = long_table.load_frame(long_frame, options)
        crowd = _make_crowd(loaded, options)
        if crowd is not None:
            return crowd
        tables = _make_frame_tables(loaded, "model", options)

    return Predictions.from_tables(tables)


def _number_columns(frame: Any, is_pandas: bool) -> pl.DataFrame:
    """Return a frame of pandas or Polars with the columns "0", "1", …."""
    cells_by_position = {}
    if is_pandas:
        for position, (_, column) in enumerate(frame.items()):
            cells = column.astype(object).where(column.notna(), None).tolist()
            cells_by_position[str(position)] = cells
    else:
        for position, column in enumerate(frame.get_columns()):
            cells_by_position[str(position)] = column

    return pl.DataFrame(cells_by_position)


def from_dataset(
    rows: Iterable[object], **reading: Unpack[ReadKeywords]
) -> Predictions:
    """Make predictions of rows that are dicts, as in datasets of Hugging Face.

    Parameters
    ----------
    rows : iterable of dict
        Each has a key for the labels: a list of names, names with scores, or the
        numbers of a `ClassLabel` feature. There may be keys for the instance, else rows
        are numbered, and for the model or annotator. Records of annotation tools are
        recognized, such as those of Argilla's ``dataset.records.to_datasets()``.
    reading
        As in `read_predictions`, such as ``columns={"label": "topics"}`` for other
        names.

    Returns
    -------
    Predictions

    Examples
    --------
    >>> rows = [
    ...     {"id": 7, "annotator": "ann", "labels": ["law"]},
    ...     {"id": 8, "annotator": "ann", "labels": []},
    ... ]
    >>> from_dataset(rows).to_array()
    array([[[1.], [0.]]])
    """
    from .formats import jsonl

    class_names = _get_class_names(rows)
    with (
        make_read_options(reading) as options,
        reader_errors("dataset", "rows that are dicts"),
    ):
        file = InputFile(name="dataset", model="model", read=bytes, options=options)
        named_rows = (
            jsonl.name_classes(row, position, class_names, options)
            for position, row in enumerate(rows)
        )
        long_frame = jsonl.make_long_frame(enumerate(named_rows), "row", file)
        if options.log.files_without_named_columns:
            raise InputError(
                where="columns",
                found="none of those named in the dataset",
                expected="some",
            )

        loaded = long_table.load_frame(long_frame, options)
        crowd = _make_crowd(loaded, options)
        if crowd is not None:
            return crowd
        tables = _make_frame_tables(loaded, "model", options)

    return Predictions.from_tables(tables)


def _get_class_names(rows: object) -> dict[str, list[str] | None]:
    """Return the names of classes for each key of a dataset, None if it has none."""
    names_by_key = {}
    features = getattr(rows, "features", None) or {}
    for key, feature in features.items():
        # A list of classes has its items' feature as an attribute.
        item = getattr(feature, "feature", feature)
        names_by_key[key] = getattr(item, "names", None)

    return names_by_key


def label_counts(
    paths: Paths, *, format: str | None = None, **reading: Unpack[ReadKeywords]
) -> dict[str, int]:
    r"""Count the scores of at least 0.5 of each label in files.

    The labels of the files need not match.

    Parameters
    ----------
    paths, format, reading
        As in `read_predictions`.

    Returns
    -------
    dict of str to int

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "ann.csv"
    >>> _ = path.write_text("id,law,war\n7,1,0\n8,1,0\n")
    >>> label_counts(path)
    {'law': 2, 'war': 0}
    """
    total: Counter[str] = Counter()
    with make_read_options(reading) as options:
        for file, form in list_input_files(paths, format, options):
            for table in _make_tables(_read_content(file, form)):
                labels = table.labels
                if labels is None:
                    labels = range(table.scores.shape[1])

                counts = np.ravel((table.scores >= 0.5).sum(axis=0))
                for label, count in zip(labels, counts.tolist(), strict=True):
                    total[str(label)] += int(count)

    return dict(total)


def read_panel_tables(
    files: Sequence[tuple[InputFile, Format]],
    models: Sequence[str] | None = None,
    scratch: Path | None = None,
) -> list[ScoreTable]:
    """Read the tables of a panel, and give each model a unique name.

    Parameters
    ----------
    files : sequence of (InputFile, Format)
        Result of `list_input_files`.
    models : sequence of str, default=None
        Names of the models. By default the files name them.
    scratch : Path, default=None
        Folder for scores that remain on disk. By default they are in memory.

    Returns
    -------
    list of ScoreTable
        Either all tables have names of instances and labels, or none has.

    Examples
    --------
    >>> read_panel_tables([], models=["ann"])
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: models: found names for 1, expected for 0, as ...
    """
    tables: list[ScoreTable] = []
    long_names: list[str] = []  # for models whose names are not unique
    empty_files: list[EmptyFileError] = []
    for position, (file, form) in enumerate(files):
        previous_names = None
        if tables:
            previous_names = tables[-1].instances

        file_scratch = None
        if scratch is not None:
            file_scratch = scratch / str(position)

        # The content is freed before the next file is read.
        try:
            new_tables = _make_tables(
                _read_content(file, form, file_scratch), file_scratch, previous_names
            )
        except EmptyFileError as error:
            if file.options.strict or models is not None:
                raise
            empty_files.append(error)
            file.options.log.add("files without predictions left out", file.name)
            continue

        for table in new_tables:
            tables.append(table)
            long_names.append(_make_long_name(table, file))

    if empty_files and not tables:
        raise empty_files[0]

    _check_named_columns(files)
    return add_names(_rename_models(tables, long_names, models))


def _check_named_columns(files: Sequence[tuple[InputFile, Format]]) -> None:
    """Check that any file has any of the columns that the user names."""
    for file, _ in files:
        if file.name not in file.options.log.files_without_named_columns:
            return

    if files:
        raise InputError(
            where="columns", found="none of those named in any file", expected="some"
        )


def _make_long_name(table: ScoreTable, file: InputFile) -> str:
    """Return the name of a model with that of its folder.

    If the file names the model, its name is followed by that of the file.
    """
    if file.path is None:
        return table.model
    if table.model != file.model and not file.options.strict:
        return f"{table.model} ({file.model})"
    if table.model != file.model:
        return table.model

    folder = file.path.absolute().parent.name
    return f"{folder}/{table.model}"


def _read_content(
    file: InputFile, form: Format, scratch: Path | None = None
) -> _FileContent:
    """Read the rows of one file, or the tables of an archive."""
    collect: Collect = pl.LazyFrame.collect
    if scratch is not None:
        from . import on_disk

        collect = partial(on_disk.sink_to_parquet, scratch)

    with reader_errors(file.name, form.title):
        content: NamedFrame | list[ScoreTable]
        content = form.module.read(file, collect, **form.options)
        if isinstance(content, list):
            return _FileContent(file=file, form=form, tables=content)

        frame = _expand_label_lists(content, file)
        _log_named_columns(frame, file)
        loaded = long_table.load_frame(frame, file.options, scratch)
        return _FileContent(file=file, form=form, frame=loaded)


def _read_single_file(
    file: InputFile, form: Format
) -> tuple[Predictions | None, list[ScoreTable]]:
    """Read the predictions of a crowd or, if it is not one, the table of each model."""
    content = _read_content(file, form)
    if content.frame is not None:
        with reader_errors(file.name, form.title):
            crowd = _make_crowd(content.frame, file.options)
        if crowd is not None:
            return crowd, []

    return None, _make_tables(content)


def _make_crowd(
    loaded: long_table.LoadedFrame, options: ReadOptions
) -> Predictions | None:
    """Return the predictions of a crowd, or None if the rows are not from a crowd."""
    if not loaded.is_long:
        return None

    from . import crowds

    return crowds.make_crowd(loaded, options)


def _make_tables(
    content: _FileContent, scratch: Path | None = None, previous_names: object = None
) -> list[ScoreTable]:
    """Make the table of each model in one file."""
    file = content.file
    with reader_errors(file.name, content.form.title):
        if content.frame is None:
            tables = [rename_labels(table, file.options) for table in content.tables]
        else:
            tables = _make_frame_tables(
                content.frame, file.model, file.options, previous_names
            )

        if scratch is None:
            return tables

        from . import on_disk

        stored_tables = []
        for position, table in enumerate(tables):
            folder = scratch / f"table-{position}"
            stored_tables.append(on_disk.store_table(table, folder))

        return stored_tables


def _make_frame_tables(
    loaded: long_table.LoadedFrame,
    model: str,
    options: ReadOptions,
    previous_names: object = None,
) -> list[ScoreTable]:
    """Make the table of each model in a frame, with the labels' final names."""
    tables = long_table.make_tables(loaded, model, options, previous_names)
    return [rename_labels(table, options) for table in tables]


def _expand_label_lists(frame: NamedFrame, file: InputFile) -> NamedFrame:
    """Return a long frame for a frame with lists of labels, as in JSON lines.

    Label Studio's CSV has such lists as JSON.
    """
    from .formats.annotation_tools import is_short_label_studio

    has_lists = pl.List(pl.String) in frame.rows.lazy().collect_schema().dtypes()
    if not has_lists and not is_short_label_studio(frame.columns):
        return frame

    from .formats import jsonl

    rows = frame.rows.lazy().collect().iter_rows()
    entries = (dict(zip(frame.columns, row, strict=True)) for row in rows)
    return jsonl.make_long_frame(enumerate(entries, 1), "row", file)


def _log_named_columns(frame: NamedFrame, file: InputFile) -> None:
    """Log whether a table has none of the columns that the user names."""
    named_columns = set(file.options.columns.values())
    is_table = not frame.allows_missing_label
    if named_columns and is_table and named_columns.isdisjoint(frame.columns):
        file.options.log.files_without_named_columns.add(file.name)


def _convert_instances(table: ScoreTable) -> ScoreTable:
    """Return a table with the names of instances as a NumPy array."""
    if table.instances is None:
        return table
    return replace(table, instances=as_array(table.instances))


def _rename_models(
    tables: list[ScoreTable], long_names: list[str], models: Sequence[str] | None
) -> list[ScoreTable]:
    """Give each model a unique name: from `models`, or from the files."""
    if models is None:
        counts = Counter(table.model for table in tables)
        names = []
        for table, long_name in zip(tables, long_names, strict=True):
            if counts[table.model] > 1:
                names.append(long_name)
            else:
                names.append(table.model)
    else:
        names = _check_model_names(models, len(tables))

    first_tables: dict[str, ScoreTable] = {}
    for name, table in zip(names, tables, strict=True):
        if name in first_tables:
            shown = name
            if models is None:
                shown = table.model

            first_file = first_tables[name].file
            raise InputError(
                where=str(table.file),
                found=f"a second model {shown!r} (the first is in {first_file})",
                expected="each model to have its own name",
            )

        first_tables[name] = table

    if models is None:
        _check_parts(tables, names)

    renamed_tables = []
    for name, table in zip(names, tables, strict=True):
        renamed_tables.append(replace(table, model=name))

    return renamed_tables


def _check_parts(tables: list[ScoreTable], names: list[str]) -> None:
    """Refuse files that have different instances of the same model.

    Parameters
    ----------
    tables : list of ScoreTable
        Their models are called as the files call them.
    names : list of str
        Final names of the models. Those that differ are of models in several files.
    """
    first_tables: dict[str, ScoreTable] = {}
    for table, name in zip(tables, names, strict=True):
        first = first_tables.setdefault(table.model, table)
        is_comparable = first.instances is not None and table.instances is not None
        if first is table or name == table.model or not is_comparable:
            continue
        if not in_common(first.instances, table.instances):
            raise InputError(
                where=str(table.file),
                found=f"other instances of the model {table.model!r} than in "
                f"{first.file}",
                expected="the parts of a table in one file, or models of the same "
                "instances",
            )


def _check_model_names(models: Sequence[str], n_tables: int) -> list[str]:
    """Return the names of models as text; there must be one for each table."""
    if isinstance(models, str):
        raise InputError(
            where="models",
            found=f"the single text {models!r}",
            expected="a list of names",
        )

    names = list(map(str, models))
    if len(names) != n_tables:
        raise InputError(
            where="models",
            found=f"names for {len(names)}",
            expected=f"for {n_tables}, as there are in the files",
        )

    return names
