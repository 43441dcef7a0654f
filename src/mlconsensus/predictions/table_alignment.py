"""Align the tables of several models by the names of instances and labels."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from ..errors import InputError, InputWarning
from .alignment import How, Maps, align, as_names, in_common
from .array_types import BoolArray, IntArray, Names, NamesLike
from .model_scores import AlignedScores
from .score_tables import ScoreTable, check_scores

Axis = Literal["instances", "labels"]

# With fewer instances, a label that a list does not name may be missing by chance.
FEWEST_FOR_RARE_LABELS = 50
# A label that is expected this often and never named is not missing by chance.
_EXPECTED = 5


def align_tables(
    tables: Sequence[ScoreTable], how_instances: How, how_labels: How
) -> tuple[tuple[str, ...], Names, tuple[str, ...], tuple[AlignedScores, ...]]:
    """Check the tables of all models and align them.

    Parameters
    ----------
    tables : sequence of m ScoreTable
        One for each model.
    how_instances, how_labels : {"union", "intersection"}
        Whether to use all names, or those that all models have.

    Returns
    -------
    models : tuple of m str
    instances : ndarray of shape (n,)
    labels : tuple of l str
    parts : tuple of m AlignedScores
        The scores of each model.

    Examples
    --------
    >>> tables = [ScoreTable("a", [[1, 0]], labels=["x", "y"])]
    >>> align_tables(tables, "union", "union")[:3]
    (('a',), array([0]), ('x', 'y'))
    """
    checked_scores = [check_scores(table) for table in tables]
    n_instances = [matrix.shape[0] for matrix, _ in checked_scores]
    n_labels = [matrix.shape[1] for matrix, _ in checked_scores]

    labels, columns = align_names(tables, "labels", n_labels, how_labels)
    instances, rows = align_names(tables, "instances", n_instances, how_instances)
    if len(instances) >= FEWEST_FOR_RARE_LABELS:
        columns = _mark_rare_labels(tables, columns, n_instances, n_labels)
    columns = _mark_labels_never_chosen(tables, columns)

    parts = []
    for k, (matrix, has_nan) in enumerate(checked_scores):
        part = AlignedScores(
            matrix=matrix, rows=rows[k], columns=columns[k], has_nan=has_nan
        )
        parts.append(part)

    models = tuple(table.model for table in tables)
    if tables[0].labels is None:
        label_names = tuple(f"label_{j}" for j in range(len(labels)))
    else:
        label_names = tuple(map(str, labels.tolist()))
    return models, instances, label_names, tuple(parts)


def _mark_rare_labels(
    tables: Sequence[ScoreTable],
    columns: Maps,
    n_instances: list[int],
    n_labels: list[int],
) -> Maps:
    """Mark labels that a list does not name only because they are rare with -2."""
    lists = [k for k, table in enumerate(tables) if table.named is not None]
    if not lists:
        return columns

    positions: list[IntArray] = []
    counts: list[IntArray] = []
    for k in lists:
        label_positions = columns[k]
        if label_positions is None:
            label_positions = np.arange(n_labels[k])
        n_named = np.asarray(tables[k].named)[label_positions]
        positions.append(label_positions)
        counts.append(np.where(label_positions >= 0, n_named, 0))

    sizes = np.array([n_instances[k] for k in lists])
    is_listed = np.array(positions) >= 0
    is_rare = find_rare_labels(np.array(counts), sizes, is_listed)
    for row, k in enumerate(lists):
        is_negative = is_rare[row] & (positions[row] == -1)
        if is_negative.any():
            columns[k] = np.where(is_negative, -2, positions[row])

    return columns


def _mark_labels_never_chosen(tables: Sequence[ScoreTable], columns: Maps) -> Maps:
    """Mark labels that a model could have chosen and that its table lacks with -2."""
    marked: Maps = []
    for table, positions in zip(tables, columns, strict=True):
        if table.knows_all and positions is not None:
            positions = np.where(positions == -1, -2, positions)
        marked.append(positions)

    return marked


def find_rare_labels(
    counts: IntArray, n_instances: IntArray, is_listed: BoolArray
) -> BoolArray:
    """Find labels that a model does not list only because they are rare.

    A model that would list the label 5 times, if it did so as often as the others,
    lists it at least once except in one of 150 cases (e**-5).

    Parameters
    ----------
    counts : ndarray of shape (m, l)
        How often each model lists each label.
    n_instances : ndarray of shape (m,)
        Number of instances of each model.
    is_listed : ndarray of shape (m, l) of bool
        Whether the model lists the label at all.

    Returns
    -------
    ndarray of shape (m, l) of bool

    Examples
    --------
    >>> counts = np.array([[9, 1], [9, 0]])
    >>> find_rare_labels(counts, np.array([50, 50]), counts > 0)
    array([[False, False],
           [False,  True]])
    """
    n_known = n_instances @ is_listed
    rate = counts.sum(axis=0) / np.maximum(n_known, 1)
    n_expected = n_instances[:, np.newaxis] * rate
    is_rare = (rate > 0) & (n_expected < _EXPECTED)
    return np.asarray(~is_listed & is_rare)


def align_names(
    tables: Sequence[ScoreTable], axis: Axis, sizes: Sequence[int], how: How
) -> tuple[Names, Maps]:
    """Find the common names of instances or labels, and each model's map to them.

    Parameters
    ----------
    tables : sequence of m ScoreTable
        One for each model.
    axis : {"instances", "labels"}
        Which names to align.
    sizes : sequence of m int
        Number of instances or labels of each table.
    how : {"union", "intersection"}
        Whether to use all names, or those that all models have.

    Returns
    -------
    names : ndarray
        The common names; positions if the tables have no names.
    maps : list of m ndarray or None
        Position of each common name in each table, -1: absent; ``None``: the same
        order.

    Examples
    --------
    >>> a = ScoreTable("a", None, labels=["x"])
    >>> b = ScoreTable("b", None, labels=["y", "x"])
    >>> align_names([a, b], "labels", [1, 2], "union")[1]
    [array([ 0, -1]), array([1, 0])]
    """
    named = [table.model for table in tables if getattr(table, axis) is not None]
    unnamed = [table.model for table in tables if getattr(table, axis) is None]
    if named and unnamed:
        raise InputError(
            where=axis,
            found=f"names in model {named[0]!r} and none in model {unnamed[0]!r}",
            expected="all models to name them, or none",
        )

    if unnamed:
        _check_equal_sizes(tables, axis, sizes)
        positions = np.arange(sizes[0])
        positions.flags.writeable = False
        return positions, [None] * len(tables)

    names = _check_names(tables, axis, sizes)
    listed: list[NamesLike] = []
    if axis == "instances":
        check_overlap(tables, "instance", names)
        _check_spaces(tables, names)
        listed = [table.listed for table in tables]
    else:
        check_overlap(tables, "label", names)

    common, maps = align(names, how, axis, listed)
    if axis == "labels" and any(table.file for table in tables):
        check_similar_labels([str(label) for label in common])
    return common, maps


def _check_equal_sizes(
    tables: Sequence[ScoreTable], axis: Axis, sizes: Sequence[int]
) -> None:
    """Check that tables without names have the same number of instances or labels."""
    for table, size in zip(tables, sizes, strict=True):
        if size != sizes[0]:
            raise InputError(
                where=f"model {table.model!r}",
                found=f"{size} {axis}",
                expected=f"{sizes[0]} as model {tables[0].model!r} has",
            )


def _check_names(
    tables: Sequence[ScoreTable], axis: Axis, sizes: Sequence[int]
) -> list[NamesLike]:
    """Return the names of instances or labels of each table, checked."""
    checked_names: list[NamesLike] = []
    previous = None
    for table, size in zip(tables, sizes, strict=True):
        where = f"model {table.model!r}"
        raw_names = getattr(table, axis)
        if table.file is not None and hasattr(raw_names, "hash"):
            # A Polars series of text, which the reader has checked.
            names = raw_names
        elif raw_names is previous:
            names = checked_names[-1]
        else:
            names = as_names(raw_names, f"{where}, {axis}")

        if len(names) != size:
            raise InputError(
                where=where,
                found=f"{len(names)} names of {axis}",
                expected=str(size),
            )
        checked_names.append(names)
        previous = raw_names

    return checked_names


def check_similar_labels(labels: Sequence[str]) -> None:
    """Warn of labels that differ only in case or in spaces around them.

    Parameters
    ----------
    labels : sequence of str
        Names of all labels.
    """
    first: dict[str, str] = {}
    similar = []
    for label in labels:
        other = first.setdefault(label.strip().lower(), label)
        if label != other:
            similar.append((label, other))

    if similar:
        label, other = similar[0]
        warnings.warn(
            f"labels: {len(similar):,} differ from others in case or spaces alone, "
            f"such as {label!r} from {other!r}, and count as others "
            "(--ignore-case makes them one)",
            InputWarning,
            2,
        )


def _check_spaces(tables: Sequence[ScoreTable], names: Sequence[NamesLike]) -> None:
    """Warn of names in files that differ from others only by spaces around them."""
    for table, table_names in zip(tables, names, strict=True):
        others = [other for other in names if other is not table_names]
        if not others or not hasattr(table_names, "str"):
            # Only files have a Polars series of names.
            continue

        has_space = table_names.str.starts_with(" ") | table_names.str.ends_with(" ")
        spaced = table_names.filter(has_space)
        if len(spaced) == 0:
            continue

        stripped = spaced.str.strip_chars()
        if any(in_common(stripped, other) for other in others):
            warnings.warn(
                f"{table.where}: {len(spaced):,} instances, such as {spaced[0]!r}, "
                "have spaces around their names, and count as others than those "
                "without",
                InputWarning,
                2,
            )


def add_names(tables: Sequence[ScoreTable]) -> list[ScoreTable]:
    """Name the instances and labels of tables without names, if others have names.

    An instance without a name gets its position, 0, 1, …, and a label ``label_0``,
    ``label_1``, …. That is only safe where the other tables' names are such positions
    too; otherwise it is an error.

    Parameters
    ----------
    tables : sequence of ScoreTable
        Tables that are to be matched with each other.

    Returns
    -------
    list of ScoreTable

    Examples
    --------
    >>> named = ScoreTable("a", np.zeros((1, 1)), ["1"], ["label_0"])
    >>> add_names([named, ScoreTable("b", np.zeros((2, 1)))])[1].instances.tolist()
    ['0', '1']
    """
    result = list(tables)
    axes: tuple[Axis, Axis] = ("instances", "labels")
    for axis in axes:
        named = [table for table in tables if getattr(table, axis) is not None]
        if not named:
            continue

        for k, table in enumerate(result):
            if getattr(table, axis) is None:
                result[k] = _name_by_position(table, axis, named)

    return result


def _name_by_position(
    table: ScoreTable, axis: Axis, named: Sequence[ScoreTable]
) -> ScoreTable:
    """Name instances or labels by position; check that other tables do so, too."""
    n_instances, n_labels = table.scores.shape
    if axis == "instances":
        names = [str(position) for position in range(n_instances)]
    else:
        names = [f"label_{position}" for position in range(n_labels)]

    positions = set(names)
    for other in named:
        for name in map(str, getattr(other, axis)):
            if name not in positions:
                raise InputError(
                    where=table.where,
                    found=f"no names of {axis}",
                    expected=f"them, since {other.where} names {axis} such as "
                    f"{name!r} that are not positions in {table.where}",
                )

    array = np.array(names, dtype=np.dtypes.StringDType())
    if axis == "instances":
        return replace(table, instances=array)
    return replace(table, labels=array)


def check_overlap(
    tables: Sequence[ScoreTable],
    what: Literal["instance", "label"],
    names: Sequence[NamesLike],
) -> None:
    """Check that every model shares an instance, or a label, with another model.

    If it does not, the names most likely do not match. Models of one file use the same
    names, even if one of them saw what no other did.

    Parameters
    ----------
    tables : sequence of m ScoreTable
        One for each model.
    what : {"instance", "label"}
        What the names are of.
    names : sequence of m arrays
        Names of each table.

    Examples
    --------
    >>> a, b = ScoreTable("a", None), ScoreTable("b", None)
    >>> check_overlap([a, b], "label", [np.array(["x"]), np.array(["y"])])
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: model 'b': found no label in model 'b' that ...
    """
    # Of two models that do not match, the error names the second.
    for k in reversed(range(len(tables))):
        table = tables[k]
        others = [*names[:k], *names[k + 1 :]]
        other_files = {other.file for other in (*tables[:k], *tables[k + 1 :])}
        shares_file = table.file and table.file in other_files
        if not others or shares_file:
            continue
        if any(in_common(names[k], other) for other in others):
            continue

        hint = ""
        if what == "label" and _has_similar_name(names[k], others):
            hint = "; but for case and spaces there are some (--ignore-case)"
        raise InputError(
            f"{table.where}: found no {what} in model {table.model!r} that another "
            f"model has (such as {str(others[0][0])!r}; its own are such as "
            f"{str(names[k][0])!r}), expected some in common{hint}"
        )


def _has_similar_name(names: NamesLike, others: Sequence[NamesLike]) -> bool:
    """Return whether other tables have a name that differs in case or spaces."""
    simple_names = set(_simplify_names(names))
    return any(not simple_names.isdisjoint(_simplify_names(other)) for other in others)


def _simplify_names(names: NamesLike) -> Iterator[str]:
    """Yield names in lower case, without spaces around them."""
    return (str(name).strip().lower() for name in names)
