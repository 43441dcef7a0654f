"""Frames → `ScoreTable`s: the one way from rows to the tables that a panel is made of.

In a long frame, a model that lists an instance has judged it on every label that the
model lists anywhere: what it leaves out is 0. Instances and labels that it never lists
are missing. A score that is there but empty is missing too, and where the label is
empty as well, nothing was said of the instance.

Statements may come in any order and be larger than memory, and become a sparse matrix
without a dense step. A counting sort puts them in order: one pass counts the statements
about each instance of each model, the next puts each into the next free place of its
instance.
"""

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import polars as pl
from scipy import sparse

from ..errors import InputError
from ..execution.memory import check_size
from ..predictions import (
    Array,
    BoolArray,
    FloatArray,
    IntArray,
    ScoreTable,
    first_again,
)
from . import on_disk
from .columns import (
    check_columns,
    matrix,
    meant_long,
    names,
    roles,
    row_size,
    scores_of,
    text_of,
)
from .formats.registry import NamedFrame
from .label_names import highest
from .options import DEFAULT_OPTIONS, ReadOptions

_ROWS = 2**22  # statements that are worked on at a time


class Coded(NamedTuple):
    """Some statements, with names replaced by their positions among all names of their kind."""

    start: int  # the first one's row in the file
    model: Array
    instance: Array
    label: Array  # -1: none, the instance is merely listed
    score: FloatArray  # NaN: missing

    def rows(self, n: int) -> Array:
        """Return model · number of instances + instance."""
        return self.model * np.int64(n) + self.instance


def tables(
    found: NamedFrame,
    model: str,
    rules: ReadOptions = DEFAULT_OPTIONS,
    scratch: Path | None = None,
    like: Any = None,
) -> list[ScoreTable]:
    """Make the table of each model in a frame.

    Parameters
    ----------
    found
        What a format's module has read.
    model
        What the model is called if no column says so.
    rules
        Which columns are which, and whether a statement may come again.
    scratch
        A folder, not there yet, for what is to stay on disk; ``None``: all goes into
        memory.
    like
        Names of the table before: files of one panel mostly list the same instances,
        which are checked and kept once.

    Returns
    -------
    list of ModelTable
        Instances are a Polars series of names. With `scratch`, scores are matrices on
        disk.

    Examples
    --------
    >>> from .files import Place
    >>> frame = pl.DataFrame({"0": ["1", "2"], "1": [0.5, None]})
    >>> tables(NamedFrame(frame, ["id", "x"], Place("a.csv", "row", int)), "a")[0].scores
    array([[0.5],
           [nan]])
    """
    columns = found.columns
    place = found.place
    check_columns(columns, place.file)
    parts = roles(columns, rules, place.file)
    lists = found.bare or "score" not in parts
    if parts:
        found = _long_frame(found, parts, rules)

    height = found.rows.lazy().select(pl.len()).collect().item()
    if not (height > 0):
        raise InputError(
            where=place.file, found="a header and no rows", expected="at least one"
        )
    if scratch is None:
        check_size(height * row_size(found.rows), place.file, "of cells", 0.5)

    rows: Any = (
        found.rows.lazy().collect()
        if scratch is None
        else on_disk.on_disk(found.rows, scratch)
    )
    found = found._replace(rows=rows)
    if parts:
        return _long(found, model, rules, scratch, lists)

    ids = rows.lazy().select("0").collect().to_series()
    same = isinstance(like, pl.Series) and ids.dtype == pl.String and ids.equals(like)
    if same:
        ids = like
    else:
        ids = names(ids, columns[0] or "instance", place)

    if not same and (again := first_again(ids)):
        second = (
            f"the instance {ids[again[1]]!r} again (first in {place.short(again[0])})"
        )
        once = f"each once in {columns[0]!r}, the column of ids"
        raise InputError(
            f"{place(again[1])}: found {second}, expected {once}{meant_long(columns)}"
        )

    labels = np.array(columns[1:], dtype=np.dtypes.StringDType())
    if scratch is None:
        cells: Any = matrix(rows.drop("0"), columns, place)
    else:
        cells = on_disk.ParquetMatrix(rows, columns, place, height)

    return [ScoreTable(model, cells, ids, labels, place.file)]


def _long_frame(
    found: NamedFrame, parts: list[str | None], rules: ReadOptions
) -> NamedFrame:
    """Name the columns of a long table by their parts; without a score, each row is a yes."""
    rows = found.rows
    kept = [at for at, part in enumerate(parts) if part]
    for at, column in enumerate(found.columns):
        if at not in kept and column != "rank":
            rules.note("columns left out", column)

    columns = [str(parts[at]) for at in kept]
    cells = [pl.col(str(at)).alias(str(new)) for new, at in enumerate(kept)]
    if "score" not in columns:
        label = pl.col(str(kept[columns.index("label")])).cast(pl.String)
        cells.append(_named(label).is_not_null().cast(pl.Float64).alias(str(len(kept))))
        columns.append("score")

    return found._replace(
        rows=rows.select(cells), columns=columns, bare=found.bare or not rules.strict
    )


def _named(label: Any) -> Any:
    """Return a column of text, null where it is blank."""
    return pl.when(label.str.strip_chars() != "").then(label)


def _long(
    found: NamedFrame, model: str, rules: ReadOptions, scratch: Path | None, lists: bool
) -> list[ScoreTable]:
    """Make one table a model."""
    columns = {name: on_disk.Numbered() for name in found.columns if name != "score"}
    coded = partial(_coded, found, columns)
    if scratch is None:
        coded = partial(iter, list(coded()))
    else:
        deque(coded(), maxlen=0)  # how many names there are is known at the end

    listed = {name: own.names for name, own in columns.items()}
    for name, own in listed.items():
        check_size(
            int(own.str.len_bytes().sum()),
            f"{found.place.file}, column {name!r}",
            "of text",
        )

    if "model" in listed:
        models = listed["model"].to_list()
    else:
        models = [model]

    n = len(listed["instance"])
    l = len(listed["label"])
    m = len(models)
    check_size(
        24 * m * n,
        found.place.file,
        f"for the answers of {m:,} models about {n:,} instances",
        0.9,
    )
    counts = np.zeros(m * n + 1, dtype=np.int64)
    seen = np.zeros(m * n, dtype=np.bool_)
    known = np.zeros((m, max(1, l)), dtype=np.bool_)
    for part in coded():
        rows = part.rows(n)
        said = part.label >= 0
        seen[rows[said | (part.score == part.score)]] = (
            True  # no label and NaN: nothing was said
        )
        np.add.at(counts, rows[said] + 1, 1)
        known[part.model[said], part.label[said]] = True

    # Who never gave a label said no to all that others give.
    known |= known.any(axis=0) & ~known.any(axis=1, keepdims=True)
    whole = _sorted(coded, np.cumsum(counts), n, l, scratch)
    if not whole.has_canonical_format:
        once: Any = None if rules.strict else _once(whole)
        if once is None:
            _raise_twice(whole, coded, found, listed)

        rules.note("statements that come again read once", times=whole.nnz - once.nnz)
        whole = once

    # Lists of tags are complete, whatever else is only partly known.
    gaps = rules.partial and not (lists and (whole.data == 1).all())
    out = []
    judged = seen.reshape(m, n).any(axis=0)
    for k, name in enumerate(models):
        if not seen[k * n : (k + 1) * n].any():
            rules.note("models without an answer left out", name)
            continue

        if not (bool(known[k].any())):
            raise InputError(
                where=found.place.file,
                found=f"no label from model {name!r}",
                expected="at least one",
            )

        own = _of_model(whole, slice(k * n, (k + 1) * n), seen, known[k])
        if gaps:
            own = _only_listed(own)

        named = np.bincount(own.indices[own.data > 0], minlength=own.shape[1])
        if scratch is None:
            cells = on_disk.compact(own)
        else:
            cells = on_disk.SparseFile.of(own, scratch / str(k))

        instances = listed["instance"].filter(pl.Series(seen[k * n : (k + 1) * n]))
        labels_of = np.array(
            listed["label"].filter(pl.Series(known[k])).to_list(),
            dtype=np.dtypes.StringDType(),
        )
        out.append(
            ScoreTable(
                name,
                cells,
                instances,
                labels_of,
                found.place.file,
                None if gaps else named,
            )
        )

    if judged.all():
        return out
    return [table._replace(listed=listed["instance"]) for table in out]


def _coded(found: NamedFrame, columns: dict[str, on_disk.Numbered]) -> Iterator[Coded]:
    rows = found.rows
    start = 0
    for batch in (
        rows.iter_slices(_ROWS)
        if isinstance(rows, pl.DataFrame)
        else on_disk.batches(rows, size=_ROWS)
    ):
        batch.columns = found.columns
        place = found.place.below(start)
        codes = dict[str, Array](model=np.broadcast_to(np.int32(0), batch.height))
        for name, own in columns.items():
            codes[name] = own.positions(text_of(batch[name], name, place))
            nameless = codes[name] < 0
            if nameless.any() and not (found.bare and name == "label"):
                where = f"{place(int(nameless.argmax()))}, column {name!r}"
                raise InputError(f"{where}: found nothing, expected a name")

        scores = scores_of(batch["score"], "score", place, found.columns).cast(
            pl.Float64
        )
        stray = (codes["label"] < 0) & (
            scores.fill_nan(None).fill_null(0) != 0
        ).to_numpy()
        if stray.any():
            raise InputError(
                where=f"{place(int(stray.argmax()))}, column 'label'",
                found="nothing beside a score",
                expected="a name",
            )

        yield Coded(start, **codes, score=scores.to_numpy())
        start += batch.height


def _sorted(
    coded: Callable[[], Iterator[Coded]],
    starts: IntArray,
    n: int,
    l: int,
    scratch: Path | None,
) -> Any:
    """Put statements into a CSR matrix of a row for each instance of each model."""
    size = int(starts[-1])
    if max(size, l) < 2**31:
        index = np.int32
    else:
        index = np.int64

    positions = on_disk.new_array(size, index, scratch and scratch / "columns.npy")
    values = on_disk.new_array(size, np.float64, scratch and scratch / "scores.npy")
    free = starts[:-1].copy()
    for part in coded():
        rows = part.rows(n)
        order = np.flatnonzero(part.label >= 0)
        order = order[np.argsort(rows[order], kind="stable")]
        first = np.flatnonzero(
            np.diff(rows[order], prepend=-1)
        )  # of each instance's statements
        own = rows[order][first]
        times = np.diff(first, append=len(order))
        places = np.repeat(free[own] - first, times) + np.arange(len(order))
        free[own] += times
        positions[places] = part.label[order]
        values[places] = part.score[order]

    matrix = sparse.csr_array(
        (values, positions, starts.astype(index)), shape=(len(starts) - 1, max(1, l))
    )
    matrix.sort_indices()
    return matrix


def _once(matrix: Any) -> Any:
    """Take each pair of an instance and a label once; ``None`` if it comes with different scores."""
    high, low = (
        highest(signed, np.arange(matrix.shape[1])) for signed in (matrix, -matrix)
    )
    if np.array_equal(high.data, -low.data, equal_nan=True):
        return high
    return None


def _of_model(matrix: Any, rows: slice, seen: BoolArray, known: BoolArray) -> Any:
    """Return the rows of one model: only instances and labels that it lists."""
    first = matrix.indptr[rows.start]
    last = matrix.indptr[rows.stop]
    starts = np.append(matrix.indptr[rows][seen[rows]], last) - first
    positions = matrix.indices[first:last]
    if not known.all():
        own = (np.cumsum(known) - 1).astype(positions.dtype)
        for at in range(0, len(positions), _ROWS):
            positions[at : at + _ROWS] = own[positions[at : at + _ROWS]]

    shape = len(starts) - 1, int(known.sum())
    return sparse.csr_array(
        (matrix.data[first:last], positions, starts), shape=shape, copy=False
    )


def _only_listed(matrix: Any) -> Any:
    """Say of what is not listed that it is missing."""
    listed = matrix.tocoo()
    out = np.full(matrix.shape, np.nan)
    out[listed.row, listed.col] = listed.data
    return sparse.csr_array(out)


def _raise_twice(
    matrix: Any,
    coded: Callable[[], Iterator[Coded]],
    found: NamedFrame,
    listed: dict[str, pl.Series],
) -> NoReturn:
    """Say which pair of an instance and a label comes twice, and where."""
    n = len(listed["instance"])
    l = matrix.shape[1]
    pairs = (
        np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)) * l
        + matrix.indices
    )
    row, label = divmod(int(pairs[1:][pairs[1:] == pairs[:-1]][0]), l)
    same = (
        own.start + np.flatnonzero((own.rows(n) == row) & (own.label == label))
        for own in coded()
    )
    first, second, *_ = np.concatenate(list(same)).tolist()
    again = f"label {listed['label'][label]!r} of instance {listed['instance'][row % n]!r} again"
    where = (
        f"{found.place(second)}: found {again} (first in {found.place.short(first)})"
    )
    raise InputError(f"{where}, expected each pair once")
