"""What users say about reading files → rules; and the one step that gives labels the names that the rules want."""

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypedDict

import numpy as np
from scipy import sparse

from ..errors import InputError, InputWarning, one_of
from ..predictions import CHANCE, IntArray, ScoreTable, StoredMatrix, as_names
from .columns import ROLES
from .encoding import decoded
from .files import AnyPath, display, read_bytes, reader_errors
from .formats.clusterings import read_pairs
from .options import ReadOptions


class Reading(TypedDict, total=False):
    """How files are to be read; what is not said is as in a file without faults."""

    columns: (
        Mapping[str, str] | None
    )  # of long tables: {"model": "annotator", "instance": "item", "label": "tag"}
    strict: bool  # whether to refuse whatever is not exactly as documented
    skip_bad: bool  # whether to go on without JSON answers that cannot be read
    vocabulary: (
        AnyPath | Iterable[str] | None
    )  # the labels that count, or a file of them, one a line
    aliases: (
        AnyPath | Mapping[str, str] | None
    )  # other names of labels, or a table of them: name, stands for
    # whether labels that differ in case are one; they get the vocabulary's spelling, or
    # lower case
    ignore_case: bool
    # of long tables with scores: whether what they leave out is missing, not 0, as in
    # known answers
    partial: bool


@contextmanager
def rules_of(reading: Reading) -> Iterator[ReadOptions]:
    """Make rules of what users say, reading the files that they name; once all is read, warn of what was done so.

    Examples
    --------
    >>> with rules_of({"vocabulary": ["Law"], "ignore_case": True}) as rules:
    ...     rules.name_of("LAW")
    'Law'
    """
    given: dict[str, Any] = {
        key: value for key, value in reading.items() if value is not None
    }
    aliases = given.get("aliases", {})
    words = given.get("vocabulary", ())
    if isinstance(aliases, str | os.PathLike):
        aliases = read_pairs(aliases, "name", "label it stands for")
    if isinstance(words, str | os.PathLike):
        words = read_names(words)

    with reader_errors(
        "vocabulary", "a file or a list of names", f"a {type(words).__name__}"
    ):
        words = as_names(
            [word for word in dict.fromkeys(words) if str(word).strip()], "vocabulary"
        ).tolist()

    given["columns"] = _pairs(given.get("columns", {}), "columns")
    for role in given["columns"]:
        one_of(role, ROLES, "columns")

    key = ReadOptions(ignore_case=given.get("ignore_case", False)).key
    given["aliases"] = {
        key(name): label for name, label in _pairs(aliases, "aliases").items()
    }
    given["vocabulary"] = {
        key(word): ReadOptions().key(word) for word in map(str, words)
    }
    rules = ReadOptions(**given)
    yield rules
    if said := rules.summary():
        warnings.warn(said, InputWarning, stacklevel=4)  # where the reader is called


def _pairs(given: Any, what: str) -> dict[str, str]:
    """Return a mapping of names to names as text, which numbers may be, too."""
    with reader_errors(
        what, "a mapping of names to names", f"a {type(given).__name__}"
    ):
        return {
            str(name): str(as_names([other], what)[0])
            for name, other in dict(given).items()
        }


def read_names(path: AnyPath) -> list[str]:
    r"""Read names, one a line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "labels.txt"
    >>> _ = path.write_text("flu\ncold\n")
    >>> read_names(str(path))
    ['flu', 'cold']
    """
    shown = display(path)
    names = [line.strip() for line in decoded(read_bytes(path), shown).splitlines()]
    names = [name for name in names if name]
    if not (bool(names)):
        raise InputError(where=shown, found="no name", expected="one a line")
    return [str(name) for name in as_names(names, shown).tolist()]


def relabelled(table: ScoreTable, rules: ReadOptions) -> ScoreTable:
    """Give the labels of a table the names that the rules want; of several that become one, the highest score counts.

    Examples
    --------
    >>> table = ScoreTable("a", np.array([[0.2, 0.9, 0.5]]), ["7"], ["law", "Law", "war"])
    >>> relabelled(table, ReadOptions(ignore_case=True)).scores
    array([[0.9, 0.5]])
    """
    if table.labels is None:
        return table

    given = [str(label) for label in table.labels]
    known = set(given)
    names = [
        label if rules.partial and label == CHANCE else rules.name_of(label)
        for label in given
    ]
    for label, name in zip(given, names, strict=True):
        if name is None:
            hint = (
                " (--ignore-case takes those that differ in case alone)"
                * rules.but_for_case(label)
            )
            rules.note("labels outside the vocabulary left out" + hint, label)
        elif name != label:
            rules.note("labels called otherwise", label)

        parts = label.replace("|", ";").split(";")
        if len(parts) > 1 and known.issuperset(map(str.strip, parts)):
            rules.note("labels that join others, read as one each", label)

    kept = list(dict.fromkeys(name for name in names if name is not None))
    hint = "; but for case there are some (--ignore-case)" * (
        not kept and any(map(rules.but_for_case, given))
    )
    if not (bool(kept)):
        raise InputError(
            where=table.where,
            found=f"no label of the vocabulary from model {table.model!r}",
            expected=f"at least one{hint}",
        )
    if kept == given:
        return table

    place = {name: at for at, name in enumerate(kept)}
    at = np.array([-1 if name is None else place[name] for name in names])
    stored = isinstance(table.scores, StoredMatrix)
    if stored:
        scores = Relabelled(table.scores, at)
    else:
        scores = highest(table.scores, at)

    if table.named is None:
        named = None
    else:
        named = np.bincount(at[at >= 0], table.named[at >= 0], len(kept))

    return table._replace(
        scores=scores, labels=np.array(kept, dtype=np.dtypes.StringDType()), named=named
    )


class Relabelled(StoredMatrix):
    """A matrix on disk whose columns have been given other names."""

    def __init__(self, given: StoredMatrix, at: IntArray) -> None:
        self.given, self.at, self.dtype = given, at, given.dtype
        self.nnz = getattr(given, "nnz", given.shape[0] * given.shape[1])
        self.shape = given.shape[0], int(at.max()) + 1

    def __getitem__(self, rows: slice | IntArray) -> Any:
        return highest(self.given[rows], self.at)


def highest(matrix: Any, at: IntArray) -> Any:
    """Put each column of a matrix where `at` says (-1: nowhere); where several come together, the highest counts.

    Examples
    --------
    >>> highest(sparse.csr_array([[0.0, 0.5, 0.7]]), np.array([0, -1, 0])).toarray()
    array([[0.7]])
    """
    l = int(at.max()) + 1
    if not sparse.issparse(matrix):
        return np.stack(
            [np.fmax.reduce(matrix[:, at == j], axis=1) for j in range(l)], axis=1
        )

    cells = matrix.tocoo()
    kept = at[cells.col] >= 0
    keys = cells.row[kept].astype(np.int64) * l + at[cells.col[kept]]
    order = np.argsort(keys, kind="stable")
    first = np.flatnonzero(np.diff(keys[order], prepend=-1))
    if len(first):
        values = np.fmax.reduceat(cells.data[kept][order], first)
    else:
        values = cells.data[:0]

    return sparse.csr_array(
        (values, np.divmod(keys[order][first], l)), shape=(matrix.shape[0], l)
    )
