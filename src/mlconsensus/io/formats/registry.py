"""File formats: their names, suffixes and modules, and the files in a folder."""

import filecmp
import importlib
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TypedDict

import polars as pl

from ...errors import InputError, nearest, one_of
from ..files import (
    COMPRESSIONS,
    STANDARD,
    AnyPath,
    InputFile,
    Paths,
    Place,
    display,
    read_bytes,
)
from ..options import DEFAULT_OPTIONS, ReadOptions

Frame = pl.DataFrame | pl.LazyFrame

# Runs a query: into memory, or into a scratch file.
Collect = Callable[[pl.LazyFrame], Frame]


@dataclass(frozen=True, kw_only=True)
class NamedFrame:
    """Rows of a file.

    A wide table has a row for each instance and a column for each label. A long table
    has a row for each prediction.

    Parameters
    ----------
    rows : DataFrame or LazyFrame
        A LazyFrame if the rows remain on disk. Columns are named "0", "1", ….
    columns : list of str
        Header of the file. The first column of a wide table names the instances.
    place : Place
        Location of the rows, for messages.
    allows_missing_label : bool, default=False
        Whether a row of a long table may list an instance without a label.
    """

    rows: Frame
    columns: list[str]
    place: Place
    allows_missing_label: bool = False


class FormatOptions(TypedDict, total=False):
    """Keyword arguments of the functions that read and write a format."""

    separator: str  # of CSV and TSV
    array: bool  # whether a file is one JSON array, not JSON lines
    tool: str  # name of an annotation tool


@dataclass(frozen=True, kw_only=True)
class Format:
    """A file format and the module of this package that reads and writes it.

    The module has a function ``read(file, collect, **options)`` that returns a
    `NamedFrame`, or the list of `ScoreTable` in an archive of arrays. If the format can
    be written, the module has ``write(file, table, layout, **options)``. The module is
    imported when it is first used, so that the command line starts fast.

    Parameters
    ----------
    title : str
        Name of the format in messages.
    suffixes : tuple of str, default=()
        Suffixes of its files.
    options : FormatOptions, default={}
        Arguments of `read` and `write`.
    module_name : str, default=None
        By default the name of the format.
    is_writable : bool, default=True
        Whether there is a writer.

    Examples
    --------
    >>> FORMATS["tsv"].suffixes
    ('.tsv', '.tab')
    """

    title: str
    suffixes: tuple[str, ...] = ()
    options: FormatOptions = field(default_factory=FormatOptions)
    module_name: str | None = None
    is_writable: bool = True

    @property
    def name(self) -> str:
        """Name of the format in options."""
        return self.title.lower()

    @property
    def module(self) -> ModuleType:
        """The module that reads and writes the format."""
        return importlib.import_module(f".{self.module_name or self.name}", __package__)


_FORMATS = [
    Format(title="CSV", suffixes=(".csv",), options={"separator": ","}),
    Format(
        title="TSV",
        suffixes=(".tsv", ".tab"),
        options={"separator": "\t"},
        module_name="csv",
    ),
    Format(title="Excel", suffixes=(".xlsx",), is_writable=False),
    Format(title="Parquet", suffixes=(".parquet", ".pq")),
    Format(title="Feather", suffixes=(".feather", ".arrow")),
    Format(title="JSONL", suffixes=(".jsonl", ".ndjson")),
    Format(
        title="JSON", suffixes=(".json",), options={"array": True}, module_name="jsonl"
    ),
    Format(title="NPZ", suffixes=(".npz",)),
    Format(title="ARFF", suffixes=(".arff",), is_writable=False),
    Format(title="Annif", suffixes=(".annif",), is_writable=False),
    Format(
        title="Label-Studio",
        options={"array": True, "tool": "label-studio"},
        module_name="jsonl",
    ),
    Format(title="doccano", options={"tool": "doccano"}, module_name="jsonl"),
    Format(title="Prodigy", options={"tool": "prodigy"}, module_name="jsonl"),
    Format(
        title="Argilla",
        options={"tool": "argilla"},
        module_name="jsonl",
        is_writable=False,
    ),
]

FORMATS: dict[str, Format] = {}
_BY_SUFFIX: dict[str, Format] = {}
for _form in _FORMATS:
    FORMATS[_form.name] = _form
    for _suffix in _form.suffixes:
        _BY_SUFFIX[_suffix] = _form


def format_of(path: AnyPath, name: str | None = None, written: bool = False) -> Format:
    """Return the format of a file.

    Parameters
    ----------
    path : str or path-like
        ``-`` is standard input or output.
    name : str, default=None
        Name of the format. By default the suffix decides.
    written : bool, default=False
        Whether the file is to be written.

    Returns
    -------
    Format

    Examples
    --------
    >>> format_of("votes.csv.gz").name, format_of("-", "jsonl").name
    ('csv', 'jsonl')
    >>> format_of("votes.cvs")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: votes.cvs: found the suffix '.cvs', expected one of
    .csv, ...; did you mean 'csv'?
    """
    _check_path(path)
    format_names = []
    suffixes: list[str] = []
    for form in FORMATS.values():
        if form.is_writable or not written:
            format_names.append(form.name)
            suffixes.extend(form.suffixes)

    if name is not None:
        option = "format"
        if written:
            option = "output format"

        one_of(str(name).lower(), format_names, option)
        return FORMATS[name.lower()]

    if os.fspath(path) == STANDARD:
        raise InputError(
            where="standard input or output",
            found="no format",
            expected="one of " + ", ".join(format_names),
        )

    suffix = _get_suffix(path)
    if suffix not in suffixes:
        description = "no suffix"
        if suffix:
            description = f"the suffix {suffix!r}"

        hint = nearest(suffix[1:], [allowed[1:] for allowed in suffixes])
        raise InputError(
            where=display(path),
            found=description,
            expected=f"one of {', '.join(suffixes)}{hint}",
        )

    return _BY_SUFFIX[suffix]


def make_input_file(path: AnyPath, options: ReadOptions = DEFAULT_OPTIONS) -> InputFile:
    """Return the file at a path; its model is the name of the file without suffixes.

    Parameters
    ----------
    path : str or path-like
        ``-`` is standard input.
    options : ReadOptions
        Options for reading.

    Returns
    -------
    InputFile

    Examples
    --------
    >>> make_input_file("run/tagger.v2.csv.gz").model
    'tagger.v2'
    """
    _check_path(path)
    if os.fspath(path) == STANDARD:
        return InputFile(
            name=display(path),
            model="stdin",
            read=lambda: read_bytes(path),
            options=options,
        )

    # File names may contain bytes that are not text; model names must be text.
    stem = Path(_strip_compression(path)).stem
    model = os.fsencode(stem).decode(errors="backslashreplace")
    return InputFile(
        name=display(path),
        model=model,
        read=lambda: read_bytes(path),
        path=Path(path),
        options=options,
    )


def list_input_files(
    paths: Paths, format: str | None = None, options: ReadOptions = DEFAULT_OPTIONS
) -> list[tuple[InputFile, Format]]:
    """Return all files to read predictions from, with their formats.

    Parameters
    ----------
    paths : path or sequence of paths
        Files and folders.
    format : str, default=None
        Format of the files whose suffix does not show it, or of all files if every
        suffix shows one.
    options : ReadOptions
        Options for reading.

    Returns
    -------
    list of (InputFile, Format)

    Examples
    --------
    >>> files = list_input_files(["a.csv", "b"], "npz")
    >>> [(file.model, form.name) for file, form in files]
    [('a', 'csv'), ('b', 'npz')]
    """
    path_list: list[AnyPath]
    if isinstance(paths, Iterable) and not isinstance(paths, str | bytes):
        path_list = list(paths)
    else:
        path_list = [paths]

    all_paths = expand_folders(path_list)
    if not all_paths:
        raise InputError(where="predictions", found="no file", expected="at least one")

    n_standard = sum(os.fspath(path) == STANDARD for path in all_paths)
    if n_standard > 1:
        raise InputError(
            where="standard input", found="twice among the files", expected="once"
        )

    all_have_suffix = all(map(_has_known_suffix, all_paths))
    files = []
    for path in all_paths:
        format_name = format
        if _has_known_suffix(path) and not all_have_suffix:
            format_name = None

        files.append((make_input_file(path, options), format_of(path, format_name)))

    return files


def expand_folders(paths: Sequence[AnyPath]) -> list[AnyPath]:
    """Replace each folder by the files in it, sorted by name.

    A folder whose name ends in ``.parquet`` is a table in parts and is not replaced.

    Parameters
    ----------
    paths : sequence of paths
        Files and folders.

    Returns
    -------
    list of paths

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name in ("b.csv", "a.parquet", "notes.txt"):
    ...     _ = (folder / name).write_text("")
    >>> [path.name for path in expand_folders([folder])]
    ['a.parquet', 'b.csv']
    """
    all_paths: list[AnyPath] = []
    for path in paths:
        _check_path(path)
        if not os.path.isdir(path) or _has_known_suffix(path):
            all_paths.append(path)
            continue

        files = _list_prediction_files(Path(path))
        if not files:
            raise InputError(
                where=display(path),
                found="a folder without files of predictions",
                expected="some in it",
            )

        all_paths += files

    return all_paths


def _list_prediction_files(folder: Path) -> list[Path]:
    """Return the files in a folder that hold predictions, sorted by name."""
    json_files = []
    other_files = []
    for entry in sorted(folder.iterdir()):
        if _is_hidden(entry) or not _has_known_suffix(entry):
            continue
        if format_of(entry).name == "json":
            json_files.append(entry)
        else:
            other_files.append(entry)

    # JSON files next to tables most likely describe the tables.
    return other_files or json_files


def is_read_with(place: AnyPath, path: AnyPath) -> bool:
    """Return whether a file is an input, or would be if it were written.

    Parameters
    ----------
    place : str or path-like
        The file.
    path : str or path-like
        An input: a file or a folder.

    Returns
    -------
    bool

    Examples
    --------
    >>> is_read_with("a.csv", "./a.csv"), is_read_with("./out.csv", ".")
    (True, True)
    >>> is_read_with("./out.html", ".")
    False
    """
    if os.fspath(place) == STANDARD:
        return False

    file = Path(os.path.realpath(place))
    source = Path(os.path.realpath(path))
    if file == source:
        return True
    if not source.is_dir() or not _has_known_suffix(file):
        return False

    # The parts of a Parquet table may be in subfolders; other folders are flat.
    if _has_known_suffix(path):
        return source in file.parents
    return source == file.parent


def check_apart(path: AnyPath, files: Sequence[AnyPath], copies: bool = False) -> None:
    """Check that the truth is not one of the models' files.

    An NPZ archive may hold both.

    Parameters
    ----------
    path : str or path-like
        File of the truth.
    files : sequence of paths
        Files of the models.
    copies : bool, default=False
        Whether to refuse files with the same content, too.

    Examples
    --------
    >>> check_apart("truth.csv", ["a.csv", "./truth.csv"])
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: truth.csv: found among the models' files, ...
    """
    if str(path).endswith(".npz"):
        return

    expected = "the truth apart from them"
    for file in files:
        if os.path.realpath(file) == os.path.realpath(path):
            raise InputError(
                where=display(path), found="among the models' files", expected=expected
            )

        if copies and _is_copy(file, path):
            raise InputError(
                where=display(path),
                found=f"a copy of the model's file {display(file)}",
                expected=expected,
            )


def _is_copy(file: AnyPath, path: AnyPath) -> bool:
    """Return whether two regular files have the same content."""
    if not (os.path.isfile(file) and os.path.isfile(path)):
        return False
    return filecmp.cmp(file, path, shallow=False)


def list_parquet_parts(path: Path) -> list[Path]:
    """Return the files of a Parquet table: the file itself, or those in the folder.

    Parameters
    ----------
    path : Path
        A file or a folder.

    Returns
    -------
    list of Path
        Sorted by name.

    Examples
    --------
    >>> list_parquet_parts(Path("a.parquet"))
    [PosixPath('a.parquet')]
    """
    if not path.is_dir():
        return [path]

    suffixes = FORMATS["parquet"].suffixes
    parts = []
    for entry in sorted(path.rglob("*")):
        is_parquet = entry.is_file() and entry.suffix.lower() in suffixes
        folders = entry.relative_to(path).parents
        if is_parquet and not any(map(_is_hidden, (entry, *folders))):
            parts.append(entry)

    if not parts:
        raise InputError(
            where=str(path),
            found="a folder without Parquet files",
            expected="the parts of a table",
        )

    return parts


def list_subject_files(folder: Path) -> list[Path]:
    """Return the files in a folder that list the subjects of a document as in Annif.

    Parameters
    ----------
    folder : Path
        The folder.

    Returns
    -------
    list of Path
        Sorted by name. Suggestions (``.annif``) are preferred to keys (``.tsv``).

    Examples
    --------
    >>> list_subject_files(Path("no-such-folder"))
    []
    """
    suggestions = _list_visible_files(folder, "*.annif")
    if suggestions:
        # A file that cannot be read is refused here.
        with suggestions[0].open("rb"):
            return suggestions

    keys = _list_visible_files(folder, "*.tsv")
    if keys:
        # Other tables than those of Annif have a header.
        with keys[0].open("rb") as file:
            if file.read(1) == b"<":
                return keys

    return []


def _list_visible_files(folder: Path, pattern: str) -> list[Path]:
    """Return the files that match a pattern and are not hidden, sorted by name."""
    files = []
    for path in sorted(folder.glob(pattern)):
        if path.is_file() and not _is_hidden(path):
            files.append(path)

    return files


def _is_hidden(path: Path) -> bool:
    """Return whether a file or folder is hidden by its name."""
    return path.name.startswith((".", "_"))


def _check_path(path: object) -> None:
    """Check that an argument is a path."""
    if not isinstance(path, str | os.PathLike):
        raise InputError(
            where="file", found=f"a {type(path).__name__}", expected="a path"
        )


def _has_known_suffix(path: AnyPath) -> bool:
    """Return whether the suffix of a file shows its format."""
    return os.fspath(path) != STANDARD and _get_suffix(path) in _BY_SUFFIX


def _get_suffix(path: AnyPath) -> str:
    """Return the suffix of a file without that of a compression."""
    suffix = Path(_strip_compression(path)).suffix.lower()
    if suffix in _BY_SUFFIX or not os.path.isdir(path):
        return suffix
    if list_subject_files(Path(path)):
        return ".annif"
    return suffix


def _strip_compression(path: AnyPath) -> str:
    """Return the name of a file without the suffix of a compression."""
    name = Path(path).name
    suffix = Path(name).suffix
    if suffix.lower() in COMPRESSIONS:
        return name.removesuffix(suffix)
    return name
