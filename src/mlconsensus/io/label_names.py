"""Keywords for reading files, and the names of labels that they ask for."""

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypedDict

import numpy as np
from scipy import sparse

from ..errors import InputError, InputWarning, one_of
from ..predictions import CHANCE, IntArray, Matrix, ScoreTable, StoredMatrix, as_names
from .columns import ROLES
from .encoding import decode_text
from .files import AnyPath, display, read_bytes, reader_errors
from .formats.clusterings import read_pairs
from .options import CONFIDENCES, DEFAULT_OPTIONS, ReadOptions


class ReadKeywords(TypedDict, total=False):
    """Keywords of the functions that read files; `ReadOptions` is made of them."""

    # Names of columns for the roles of a long table, such as {"model": "annotator"}.
    columns: Mapping[str, str] | None
    # Whether to refuse files that are not exactly as documented.
    strict: bool
    # Whether to leave out JSON answers that cannot be read.
    skip_bad: bool
    # The allowed labels, or a file with one of them in each line.
    vocabulary: AnyPath | Iterable[str] | None
    # Alternative names of labels, or a table with two columns: name, label.
    aliases: AnyPath | Mapping[str, str] | None
    # Scores of confidences in words such as "high", or a table of them: word, score.
    # Words that it does not have keep their scores.
    confidences: AnyPath | Mapping[str, float] | None
    # Whether labels that differ in case are the same. They get the spelling of the
    # vocabulary, or lower case.
    ignore_case: bool
    # Whether all models chose from the same labels, so that labels that a model does
    # not list have the score 0.
    all_know_labels: bool
    # Whether pairs that a long table with scores does not list are missing, not 0, as
    # in gold labels.
    partial: bool


@contextmanager
def make_read_options(
    keywords: ReadKeywords, is_truth: bool = False
) -> Iterator[ReadOptions]:
    """Make options of keywords, and warn at the end about what was read differently.

    Parameters
    ----------
    keywords : ReadKeywords
        Files of the vocabulary and of aliases are read.
    is_truth : bool, default=False
        Whether the truth or a consensus is to be read.

    Yields
    ------
    ReadOptions

    Examples
    --------
    >>> keywords = {"vocabulary": ["Law"], "ignore_case": True}
    >>> with make_read_options(keywords) as options:
    ...     options.resolve_label("LAW")
    'Law'
    """
    # Python checks neither the names nor the types of a typed dict.
    for name in keywords:
        if name not in ReadKeywords.__annotations__:
            raise TypeError(f"{name!r} is not an option for reading files")

    options = ReadOptions(
        strict=bool(keywords.get("strict")),
        skip_bad=bool(keywords.get("skip_bad")),
        ignore_case=bool(keywords.get("ignore_case")),
        all_know_labels=bool(keywords.get("all_know_labels")),
        partial=bool(keywords.get("partial")),
        is_truth=is_truth,
    )
    columns = keywords.get("columns")
    if columns is None:
        columns = {}

    columns = _check_mapping(columns, "columns")
    for role in columns:
        one_of(role, ROLES, "columns")

    alias_by_key = _follow_aliases(_read_aliases(keywords.get("aliases")), options)

    spelling_by_key = {}
    for word in _read_vocabulary(keywords.get("vocabulary")):
        spelling_by_key[options.make_key(word)] = DEFAULT_OPTIONS.make_key(word)

    options = replace(
        options,
        columns=columns,
        aliases=alias_by_key,
        vocabulary=spelling_by_key,
        confidences=_read_confidences(keywords.get("confidences")),
    )
    yield options

    summary = options.log.summarize()
    if summary:
        # The warning names the line that calls the reader.
        warnings.warn(summary, InputWarning, stacklevel=4)


def _read_confidences(
    confidences: AnyPath | Mapping[str, float] | None,
) -> dict[str, float]:
    """Return the score of each word in lower case, those by default included."""
    if confidences is None:
        return dict(CONFIDENCES)

    where = "confidences"
    entries: Mapping[str, object]
    if isinstance(confidences, str | os.PathLike):
        where = display(confidences)
        entries = read_pairs(confidences, "word", "score")
    else:
        with reader_errors(where, "a mapping of words to scores"):
            entries = {str(word): score for word, score in dict(confidences).items()}

    score_by_word = dict(CONFIDENCES)
    for word, text in entries.items():
        try:
            score = float(str(text))
        except ValueError:
            score = float("nan")

        if not 0 <= score <= 1:
            raise InputError(
                where=f"{where}, word {word!r}",
                found=repr(text),
                expected="a number from 0 to 1",
            )
        score_by_word[word.strip().lower()] = score

    return score_by_word


def _read_aliases(aliases: AnyPath | Mapping[str, str] | None) -> dict[str, str]:
    """Return the label for each alias, read from a table if they are a path."""
    if aliases is None:
        return {}
    if isinstance(aliases, str | os.PathLike):
        aliases = read_pairs(aliases, "name", "label it stands for")
    return _check_mapping(aliases, "aliases")


def _follow_aliases(aliases: Mapping[str, str], options: ReadOptions) -> dict[str, str]:
    """Return the final label for each key of an alias, which may stand for another."""
    alias_by_key = {}
    for name, label in aliases.items():
        alias_by_key[options.make_key(name)] = label

    final_by_key = {}
    for start, first_label in alias_by_key.items():
        label = first_label
        chain = [start]
        key = options.make_key(label)
        while key in alias_by_key and key != chain[-1]:
            if key in chain:
                names = " → ".join([*chain, key])
                raise InputError(
                    where="aliases",
                    found=f"names that stand for each other ({names})",
                    expected="names that lead to a label",
                )

            chain.append(key)
            label = alias_by_key[key]
            key = options.make_key(label)

        final_by_key[start] = label

    return final_by_key


def _read_vocabulary(words: AnyPath | Iterable[str] | None) -> list[str]:
    """Return the words of a vocabulary, read from a file if it is a path."""
    if words is None:
        return []
    if isinstance(words, str | os.PathLike):
        words = read_names(words)

    with reader_errors(
        "vocabulary", "a file or a list of names", f"a {type(words).__name__}"
    ):
        unique_words = [word for word in dict.fromkeys(words) if str(word).strip()]
        names = as_names(unique_words, "vocabulary").tolist()

    return list(map(str, names))


def _check_mapping(mapping: Mapping[str, str], where: str) -> dict[str, str]:
    """Return a mapping of names to names as text; numbers are names, too."""
    text_by_name = {}
    with reader_errors(
        where, "a mapping of names to names", f"a {type(mapping).__name__}"
    ):
        for name, other in dict(mapping).items():
            text_by_name[str(name)] = str(as_names([other], where)[0])

    return text_by_name


def read_names(path: AnyPath) -> list[str]:
    r"""Read names, one in each line.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    list of str

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "labels.txt"
    >>> _ = path.write_text("flu\ncold\n")
    >>> read_names(str(path))
    ['flu', 'cold']
    """
    shown = display(path)
    lines = decode_text(read_bytes(path), shown).splitlines()
    names = list(filter(None, map(str.strip, lines)))
    if not names:
        raise InputError(where=shown, found="no name", expected="one a line")
    return list(map(str, as_names(names, shown).tolist()))


def rename_labels(table: ScoreTable, options: ReadOptions) -> ScoreTable:
    """Apply vocabulary and aliases to the labels of a table.

    If several labels become one, the highest score counts.

    Parameters
    ----------
    table : ScoreTable
        The scores of one model.
    options : ReadOptions
        Options for reading.

    Returns
    -------
    ScoreTable

    Examples
    --------
    >>> scores = np.array([[0.2, 0.9, 0.5]])
    >>> table = ScoreTable("a", scores, ["7"], ["law", "Law", "war"])
    >>> rename_labels(table, ReadOptions(ignore_case=True)).scores
    array([[0.9, 0.5]])
    """
    if options.all_know_labels and not options.partial:
        table = replace(table, knows_all=True)
    if table.labels is None:
        return table

    labels = list(map(str, table.labels))
    new_names = [_resolve_label(label, options) for label in labels]
    _log_renamed_labels(labels, new_names, options)

    # Position of each old label among the new ones, -1 if it is left out.
    position_by_name: dict[str, int] = {}
    new_columns = np.full(len(labels), -1)
    for column, name in enumerate(new_names):
        if name is not None:
            position = position_by_name.setdefault(name, len(position_by_name))
            new_columns[column] = position

    unique_names = list(position_by_name)
    if not unique_names:
        hint = ""
        if any(map(options.matches_ignoring_case, labels)):
            hint = "; but for case there are some (--ignore-case)"

        raise InputError(
            where=table.where,
            found=f"no label of the vocabulary from model {table.model!r}",
            expected=f"at least one{hint}",
        )
    if unique_names == labels:
        return table

    scores: Matrix
    if isinstance(table.scores, StoredMatrix):
        scores = RelabeledMatrix(table.scores, new_columns)
    else:
        scores = merge_columns_by_max(table.scores, new_columns)

    counts = table.named
    if counts is not None:
        is_used = new_columns >= 0
        counts = np.bincount(new_columns[is_used], counts[is_used], len(unique_names))

    return replace(
        table,
        scores=scores,
        labels=np.array(unique_names, dtype=np.dtypes.StringDType()),
        named=counts,
    )


def _resolve_label(label: str, options: ReadOptions) -> str | None:
    """Return the new name of a label, ``None`` if it is left out."""
    if options.partial and label == CHANCE:
        return label
    return options.resolve_label(label)


def _log_renamed_labels(
    labels: list[str], new_names: list[str | None], options: ReadOptions
) -> None:
    """Log labels that are left out or renamed, and those that look like several."""
    label_set = set(labels)
    for label, name in zip(labels, new_names, strict=True):
        if name is None:
            event = "labels outside the vocabulary left out"
            if options.matches_ignoring_case(label):
                event += " (--ignore-case takes those that differ in case alone)"

            options.log.add(event, label)
        elif name != label:
            options.log.add("labels called otherwise", label)

        if _joins_labels(label, label_set):
            options.log.add("labels that join others, read as one each", label)


def _joins_labels(label: str, label_set: set[str]) -> bool:
    """Return whether a label looks like several others with a separator between."""
    parts = label.replace("|", ";").split(";")
    return len(parts) > 1 and label_set.issuperset(map(str.strip, parts))


def keeps_labels(labels: Sequence[str], options: ReadOptions) -> bool:
    """Return whether `rename_labels` would neither change nor log any label.

    Parameters
    ----------
    labels : sequence of str
        Names of the labels in the file.
    options : ReadOptions
        Options for reading.

    Returns
    -------
    bool

    Examples
    --------
    >>> keeps_labels(["law", "tax"], ReadOptions())
    True
    >>> keeps_labels(["law", "tax", "law;tax"], ReadOptions())
    False
    """
    label_set = set(labels)
    for label in labels:
        is_renamed = _resolve_label(label, options) != label
        if is_renamed or _joins_labels(label, label_set):
            return False

    return True


class RelabeledMatrix(StoredMatrix):
    """A matrix on disk whose columns are merged or left out.

    Parameters
    ----------
    matrix : StoredMatrix of shape (n, l_old)
        The scores.
    new_columns : ndarray of shape (l_old,)
        New position of each column, -1 if it is left out.
    """

    def __init__(self, matrix: StoredMatrix, new_columns: IntArray) -> None:
        n_rows, n_columns = matrix.shape
        self._matrix = matrix
        self._new_columns = new_columns
        self.dtype = matrix.dtype
        self.nnz = getattr(matrix, "nnz", n_rows * n_columns)
        self.shape = (n_rows, int(new_columns.max()) + 1)

    def __getitem__(self, rows: slice | IntArray) -> Matrix:
        return merge_columns_by_max(self._matrix[rows], self._new_columns)


def merge_columns_by_max(matrix: Matrix, new_columns: IntArray) -> Matrix:
    """Move the columns of a matrix; where several meet, the highest value counts.

    Parameters
    ----------
    matrix : ndarray or sparse array of shape (n, l_old)
        The scores.
    new_columns : ndarray of shape (l_old,)
        New position of each column, -1 if it is left out.

    Returns
    -------
    ndarray or csr_array of shape (n, l_new)

    Examples
    --------
    >>> matrix = sparse.csr_array([[0.0, 0.5, 0.7]])
    >>> merge_columns_by_max(matrix, np.array([0, -1, 0])).toarray()
    array([[0.7]])
    """
    n_rows = matrix.shape[0]
    n_labels = int(new_columns.max()) + 1
    if not sparse.issparse(matrix):
        columns = []
        for label in range(n_labels):
            columns.append(np.fmax.reduce(matrix[:, new_columns == label], axis=1))
        return np.stack(columns, axis=1)

    # Number the cells row by row and sort them, so that cells that meet are adjacent.
    cells = matrix.tocoo()
    column = new_columns[cells.col]
    is_used = column >= 0
    keys = cells.row[is_used].astype(np.int64) * n_labels + column[is_used]
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    values = cells.data[is_used][order]

    first = np.flatnonzero(np.diff(keys, prepend=-1))
    if len(first):
        values = np.fmax.reduceat(values, first)

    position = np.divmod(keys[first], n_labels)
    return sparse.csr_array((values, position), shape=(n_rows, n_labels))
