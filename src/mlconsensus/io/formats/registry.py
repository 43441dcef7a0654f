"""Which formats there are, which one a file has by its name, and which files are in a folder."""

import filecmp
import importlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

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

Keep = Callable[
    [pl.LazyFrame], Any
]  # runs a query: into memory, or into a scratch file


class NamedFrame(NamedTuple):
    """A file's rows, wide (an instance a row, a label a column) or long (a statement a row)."""

    # DataFrame or, where the file stays on disk, LazyFrame; columns are called "0",
    # "1", …
    rows: Any
    columns: list[
        str
    ]  # what the file calls them; the first of a wide table is that of the instances
    place: Place  # where the rows stand
    # whether a row without a label lists an instance about which no label was said
    bare: bool = False


class Format(NamedTuple):
    """One file format: a module of this package with ``read(file, keep)`` and, if it can be written, ``write``.

    ``read`` gives a `NamedFrame`, or the `ScoreTable`s that an archive of arrays holds;
    ``keep`` runs a query whose result may be large. The module is imported when it is
    first used, so that the command line starts fast.

    Examples
    --------
    >>> FORMATS["tsv"].suffixes
    ('.tsv', '.tab')
    """

    title: str  # as messages say it
    suffixes: tuple[str, ...]
    options: Mapping[str, Any] = {}  # of `read` and `write`
    home: str | None = None  # the module, where it is not called as the format is
    written: bool = True  # or only read

    @property
    def name(self) -> str:
        """What users call it."""
        return self.title.lower()

    @property
    def module(self) -> Any:
        """The module that knows this format."""
        return importlib.import_module(f".{self.home or self.name}", __package__)


FORMATS: dict[str, Format] = {
    form.name: form
    for form in (
        Format("CSV", (".csv",), {"separator": ","}),
        Format("TSV", (".tsv", ".tab"), {"separator": "\t"}, "csv"),
        Format("Parquet", (".parquet", ".pq")),
        Format("Feather", (".feather", ".arrow")),
        Format("JSONL", (".jsonl", ".ndjson")),
        Format("JSON", (".json",), {"array": True}, "jsonl"),
        Format("NPZ", (".npz",)),
        Format("ARFF", (".arff",), written=False),
        Format("Annif", (".annif",), written=False),
        Format("Label-Studio", (), {"array": True, "tool": "label-studio"}, "jsonl"),
        *(
            Format(name, (), {"tool": name.lower()}, "jsonl")
            for name in ("doccano", "Prodigy")
        ),
        Format("Argilla", (), {"tool": "argilla"}, "jsonl", written=False),
    )
}

_BY_SUFFIX = {suffix: form for form in FORMATS.values() for suffix in form.suffixes}


def format_of(path: AnyPath, name: str | None = None, written: bool = False) -> Format:
    """Find the format of a file, perhaps one to be written, by the given name of a format, or else by its suffix.

    Examples
    --------
    >>> format_of("votes.csv.gz").name, format_of("-", "jsonl").name
    ('csv', 'jsonl')
    >>> format_of("votes.cvs")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: votes.cvs: found the suffix '.cvs', expected one of .csv, ...; did you mean 'csv'?
    """
    _expect_path(path)
    known = [form for form in FORMATS.values() if form.written or not written]
    if name is not None:
        one_of(
            str(name).lower(),
            [form.name for form in known],
            "output format" if written else "format",
        )
        return FORMATS[name.lower()]

    every = "one of " + ", ".join(form.name for form in known)
    if os.fspath(path) == STANDARD:
        raise InputError(
            where="standard input or output", found="no format", expected=every
        )

    suffix, suffixes = (
        _suffix(path),
        [suffix for form in known for suffix in form.suffixes],
    )
    if suffix not in suffixes:
        if suffix:
            found = f"the suffix {suffix!r}"
        else:
            found = "no suffix"

        hint = nearest(suffix[1:], [known[1:] for known in suffixes])
        raise InputError(
            f"{display(path)}: found {found}, expected one of {', '.join(suffixes)}{hint}"
        )

    return _BY_SUFFIX[suffix]


def input_file(path: AnyPath, rules: ReadOptions = DEFAULT_OPTIONS) -> InputFile:
    """Tell where a file's bytes come from and what its model is called: its name without suffixes.

    Examples
    --------
    >>> input_file("run/tagger.v2.csv.gz").model
    'tagger.v2'
    """
    _expect_path(path)
    if os.fspath(path) == STANDARD:
        return InputFile(display(path), "stdin", lambda: read_bytes(path), None, rules)

    # Names of files need not be text, those of models have to.
    stem = os.fsencode(Path(_uncompressed(path)).stem).decode(errors="backslashreplace")
    return InputFile(display(path), stem, lambda: read_bytes(path), Path(path), rules)


def input_files(
    paths: Paths, format: str | None = None, rules: ReadOptions = DEFAULT_OPTIONS
) -> list[tuple[InputFile, Format]]:
    """Tell for each file that a panel is to be read from, also in folders, what it is called and what format it has.

    Examples
    --------
    >>> [(file.model, form.name) for file, form in input_files(["a.csv", "b"], "npz")]
    [('a', 'csv'), ('b', 'npz')]
    """
    each: Any = (
        paths
        if isinstance(paths, Iterable) and not isinstance(paths, str | bytes)
        else [paths]
    )
    given = expanded(list(each))
    if not (bool(given)):
        raise InputError(where="predictions", found="no file", expected="at least one")

    times = sum(os.fspath(path) == STANDARD for path in given)
    if not (times < 2):
        raise InputError(
            where="standard input", found="twice among the files", expected="once"
        )

    # A format is for the files whose names do not tell theirs; if all do, it is to be
    # read against the names.
    untold = [path for path in given if not _is_told(path)]
    names = [None if untold and path not in untold else format for path in given]
    return [
        (input_file(path, rules), format_of(path, name))
        for path, name in zip(given, names, strict=True)
    ]


def expanded(paths: Sequence[AnyPath]) -> list[AnyPath]:
    """Put in place of each folder the files in it, by name; one called ``….parquet`` is a table in parts, and stays.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name in ("b.csv", "a.parquet", "notes.txt"):
    ...     _ = (folder / name).write_text("")
    >>> [path.name for path in expanded([folder])]
    ['a.parquet', 'b.csv']
    """
    out: list[AnyPath] = []
    for path in paths:
        _expect_path(path)
        if not os.path.isdir(path) or _is_told(path):
            out.append(path)
            continue

        found = [
            entry
            for entry in sorted(Path(path).iterdir())
            if not _is_hidden(entry) and _is_told(entry)
        ]
        # What is beside tables as JSON is most likely about them.
        found = [entry for entry in found if format_of(entry).name != "json"] or found
        if not (bool(found)):
            raise InputError(
                where=display(path),
                found="a folder without files of predictions",
                expected="some in it",
            )

        out += found

    return out


def is_read_with(place: AnyPath, path: AnyPath) -> bool:
    """Tell whether a file, there or to be written, is one that is read, or in a folder as one of those that are.

    Examples
    --------
    >>> is_read_with("a.csv", "./a.csv"), is_read_with("./out.csv", "."), is_read_with("./out.html", ".")
    (True, True, False)
    """
    own = Path(os.path.realpath(place))
    of = Path(os.path.realpath(path))
    inside = of in (own.parents if _is_told(path) else own.parents[:1]) and _is_told(
        own
    )
    return os.fspath(place) != STANDARD and (own == of or (of.is_dir() and inside))


def check_apart(path: AnyPath, files: Sequence[AnyPath], copies: bool = False) -> None:
    """Refuse truth that is one of the models' files, or (`copies`) says the same; an archive may hold both.

    Examples
    --------
    >>> check_apart("truth.csv", ["a.csv", "./truth.csv"])
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: truth.csv: found among the models' files, expected the truth apart from them
    """
    apart = "the truth apart from them"
    for file in () if str(path).endswith(".npz") else files:
        if os.path.realpath(file) == os.path.realpath(path):
            raise InputError(
                where=display(path), found="among the models' files", expected=apart
            )

        copied = (
            copies
            and os.path.isfile(file)
            and os.path.isfile(path)
            and filecmp.cmp(file, path, shallow=False)
        )
        if copied:
            raise InputError(
                where=display(path),
                found=f"a copy of the model's file {display(file)}",
                expected=apart,
            )


def parts(path: Path) -> list[Path]:
    """Return the files of a Parquet table: the file itself, or those in the folder, by name.

    Examples
    --------
    >>> parts(Path("a.parquet"))
    [PosixPath('a.parquet')]
    """
    if not path.is_dir():
        return [path]

    suffixes = FORMATS["parquet"].suffixes
    inside = [
        entry
        for entry in sorted(path.rglob("*"))
        if entry.is_file() and entry.suffix.lower() in suffixes
    ]
    found = [
        entry
        for entry in inside
        if not any(map(_is_hidden, (entry, *entry.relative_to(path).parents)))
    ]
    if not (bool(found)):
        raise InputError(
            where=str(path),
            found="a folder without Parquet files",
            expected="the parts of a table",
        )

    return found


def subject_files(folder: Path) -> list[Path]:
    """Return the files in a folder that list a document's subjects as Annif does, by name; suggestions before keys.

    Examples
    --------
    >>> subject_files(Path("no-such-folder"))
    []
    """
    for suffix in (".annif", ".tsv"):
        found = [
            path
            for path in sorted(folder.glob(f"*{suffix}"))
            if path.is_file() and not _is_hidden(path)
        ]
        if found:
            with found[0].open("rb") as file:  # other tables than Annif's have a header
                if suffix == ".annif" or file.read(1) == b"<":
                    return found
                return []

    return []


def _is_hidden(path: Path) -> bool:
    return path.name.startswith((".", "_"))


def _expect_path(path: object) -> None:
    if not (isinstance(path, str | os.PathLike)):
        raise InputError(
            where="file", found=f"a {type(path).__name__}", expected="a path"
        )


def _is_told(path: AnyPath) -> bool:
    """Tell whether a file's name says its format."""
    return os.fspath(path) != STANDARD and _suffix(path) in _BY_SUFFIX


def _suffix(path: AnyPath) -> str:
    suffix = Path(_uncompressed(path)).suffix.lower()
    if suffix not in _BY_SUFFIX and os.path.isdir(path) and subject_files(Path(path)):
        return ".annif"
    return suffix


def _uncompressed(path: AnyPath) -> str:
    name = Path(path).name
    if Path(name).suffix.lower() in COMPRESSIONS:
        return name[: -len(Path(name).suffix)]
    return name
