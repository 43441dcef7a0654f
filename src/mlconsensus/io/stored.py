"""One model's table on disk, read some rows at a time: a wide Parquet table where it is, others in scratch files."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from ..errors import InputError
from ..panel.alignment import IntArray
from ..panel.model_tables import ModelTable
from . import bits, csv, frames, parquet, statements
from .files import Place, Source, is_plain
from .folders import parts
from .formats import Format
from .growing import encoded, finish
from .parquet_footer import group_rows
from .scratch import Dense, DenseWriter, Names, Rows, Sparse, SparseWriter

# Decoded bytes of one table that are kept while its rows are walked; at least so many rows are decoded at a time.
_WINDOW_BYTES, _WINDOW_ROWS = 2**26, 2**17
_SEPARATORS = {"csv": ",", "tsv": "\t"}


class Part(NamedTuple):
    """Some of a model's rows, as `ModelScores` wants them."""

    matrix: Any  # (rows, l), dense or CSR
    rows: IntArray | None  # where those that were asked for stand in it, -1: nowhere; None: in order
    has_nan: bool


class Columns:
    """Columns of a Parquet table. Rows that are walked in order are decoded once, a row group at a time."""

    def __init__(self, paths: Sequence[Path], names: Sequence[str], name: str, row_bytes: float = 16.0) -> None:
        self.paths, self.names, self.name = list(paths), list(names), name
        self.bounds = [0]  # where to cut: at row groups, and within those that are too large
        most = max(1, int(_WINDOW_BYTES / max(row_bytes, 1 / 8)))
        with parquet.sound(name):
            groups = [rows for path in self.paths for rows in group_rows(path)]
        last = 0
        for end in accumulate(groups):
            if end - self.bounds[-1] > most and last > self.bounds[-1]:
                self.bounds.append(last)
            while end - self.bounds[-1] > most:
                self.bounds.append(self.bounds[-1] + most)
            if end - self.bounds[-1] >= min(most, _WINDOW_ROWS):
                self.bounds.append(end)
            last = end
        self.n = last
        if self.bounds[-1] < last:
            self.bounds.append(last)
        self._window: tuple[int, pl.DataFrame] | None = None
        self._scan: pl.LazyFrame | None = None  # which keeps the footer, once it was read

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_window": None, "_scan": None}

    def rows(self, start: int, stop: int) -> pl.DataFrame:
        """Return some rows."""
        found = []
        while start < stop:
            first, window = self._decoded(start)
            end = min(stop, first + window.height)
            if end <= start:
                raise InputError(f"{self.name}: found fewer rows than before, expected a file that does not change")
            found.append(window.slice(start - first, end - start))
            start = end
        return pl.concat(found, rechunk=False) if len(found) != 1 else found[0]

    def _decoded(self, row: int) -> tuple[int, pl.DataFrame]:
        window = self._window
        if window is None or not window[0] <= row < window[0] + window[1].height:
            window = self._window = None  # let go of it before the next
            window = self._window = self.window(row)
        return window

    def window(self, row: int) -> tuple[int, pl.DataFrame]:
        """Decode the rows around one: where they begin, and what they are."""
        at = bisect_right(self.bounds, row) - 1
        start, stop = self.bounds[at], self.bounds[at + 1]
        with parquet.sound(self.name):
            if self._scan is None:
                self._scan = pl.scan_parquet(self.paths, glob=False, hive_partitioning=False).select(self.names)
            return start, self._scan.slice(start, stop - start).collect()


class Ids(NamedTuple):
    """The names of a table's instances, in its order."""

    file: str  # as messages say it
    n: int
    columns: Columns | None = None  # None: a range of numbers
    called: str = "instance"  # what the column is called
    first: int = 0  # of the range
    step: int = 1
    unit: str = "row"
    before: int = 1  # the number of the first row, in that unit

    @property
    def place(self) -> Place:
        """Where the rows stand in the file."""
        return Place(self.file, self.unit, lambda row: row + self.before)

    def read(self, start: int, stop: int, like: pl.Series | None = None) -> pl.Series:
        """Return some names; `like` names that are sound, where these may be the same."""
        if self.columns is None:
            numbers = range(self.first + start * self.step, self.first + stop * self.step, self.step)
            return pl.Series("id", numbers, dtype=pl.Int64).cast(pl.String)
        cells = self.columns.rows(start, stop).to_series()
        if like is not None and cells.dtype == like.dtype and cells.equals(like):
            return like
        place = Place(self.file, self.unit, lambda row: row + start + self.before)
        return frames.names(cells, self.called, place).alias("id")


class Table(Protocol):
    """One model's rows on disk."""

    n: int
    has_scores: bool

    def part(self, at: Rows) -> Part:
        """Read rows: a slice, or positions of which -1 is nowhere."""


class ParquetTable:
    """A wide Parquet table, read where it is."""

    def __init__(self, paths: Sequence[Path], columns: Sequence[str], schema: dict[str, Any], name: str) -> None:
        self.names, self.name = list(columns), name
        kinds = [schema[column] for column in columns[1:]]
        self.columns = Columns(paths, columns[1:], name, sum(_bytes(kind) for kind in kinds))
        self.n = self.columns.n
        self.has_scores = any(not (kind == pl.Boolean or kind.is_integer()) for kind in kinds)
        self._window: tuple[int, Any] | None = None

    def part(self, at: Rows) -> Part:
        """Read rows; positions must be rising."""
        if isinstance(at, slice):
            return _whole_part(self._matrix(at.start, at.stop), None)
        known = at[at >= 0]
        if len(known) == 0:
            return _nothing(len(at), len(self.names) - 1)
        first = int(known[0])
        return _whole_part(self._matrix(first, int(known[-1]) + 1), np.where(at >= 0, at - first, -1))

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_window": None}

    def _matrix(self, start: int, stop: int) -> Any:
        found: list[Any] = []
        while start < stop:
            first, window = self._decoded(start)
            end = min(stop, first + window.shape[0])
            if end <= start:
                raise InputError(f"{self.name}: found fewer rows than before, expected a file that does not change")
            found.append(window[start - first : end - first])
            start = end
        if len(found) == 1:
            return found[0]
        if any(sparse.issparse(part) for part in found):
            return sparse.vstack(found, format="csr")
        return np.concatenate([part.T for part in found], axis=1).T

    def _decoded(self, row: int) -> tuple[int, Any]:
        """Turn all decoded rows to a matrix at once: each column costs more than its rows."""
        window = self._window
        if window is None or not window[0] <= row < window[0] + window[1].shape[0]:
            window = self._window = None  # let go of it before the next
            start, frame = self.columns.window(row)
            window = self._window = start, self._turned(frame, start)
        return window

    def _turned(self, frame: pl.DataFrame, start: int) -> Any:
        """Make a matrix of decoded rows, CSR of decisions that are mostly no."""
        if not self.has_scores and bits.few(frame):
            return bits.entries(frame)
        frame.columns = [str(at + 1) for at in range(frame.width)]
        return frames.matrix(frame, self.names, Place(self.name, "row", lambda row: row + start + 1))

    def in_any_order(self, path: Path) -> DenseTable:
        """Copy the table to where rows can be read in any order."""
        writer = DenseWriter(path, len(self.names) - 1)
        step = max(1, _WINDOW_BYTES // 8 // len(self.names))
        for start, stop in zip(self.columns.bounds, self.columns.bounds[1:], strict=False):
            for at in range(start, stop, step):
                matrix = self._matrix(at, min(stop, at + step))
                writer.append(matrix.toarray() if sparse.issparse(matrix) else matrix)
        return DenseTable(writer.whole())


class DenseTable:
    """Rows of a matrix in a scratch file."""

    def __init__(self, matrix: Dense) -> None:
        self.matrix, self.n, self.has_scores = matrix, matrix.shape[0], matrix.dtype != "int8"

    def part(self, at: Rows) -> Part:
        """Read rows."""
        if isinstance(at, slice):
            return _whole_part(self.matrix.rows(at), None)
        known, rows = _found(at)
        if len(known) == 0:
            return _nothing(len(at), self.matrix.shape[1])
        return _whole_part(self.matrix.rows(known), rows)


class SparseTable:
    """One model's statements in a scratch file that may hold several models'."""

    def __init__(
        self,
        entries: Sparse,
        own: IntArray | None,
        columns: IntArray,
        labels: Sequence[str],
        ids: Ids,
        order: Path | None,
    ) -> None:
        self.entries = entries
        self.own = own  # which columns of the file are this model's, None: all
        self.columns = columns  # (columns of the file,) where each stands among the model's labels
        self.labels, self.ids, self.order = list(labels), ids, order  # file: instances of the file that it lists
        self.n, self.has_scores = ids.n, True

    def part(self, at: Rows) -> Part:
        """Read rows."""
        rows: IntArray | None = None
        wanted: Any = at
        if not isinstance(at, slice):
            wanted, rows = _found(at)
        if self.order is not None:
            wanted = np.asarray(np.load(self.order, mmap_mode="r")[wanted])
        said = self.entries.rows(wanted)
        count = at.stop - at.start if isinstance(at, slice) else len(wanted)
        if self.own is not None:
            mine = np.isin(said.columns, self.own)
            said = said._replace(rows=said.rows[mine], columns=said.columns[mine], scores=said.scores[mine])
        columns = self.columns[said.columns]
        cells = sparse.coo_array((said.scores, (said.rows, columns)), shape=(count, len(self.labels)))
        matrix = cells.tocsr()
        matrix.eliminate_zeros()
        if count == 0:
            return _nothing(len(rows) if rows is not None else 0, len(self.labels))
        return Part(statements.compact(matrix), rows, bool(np.isnan(matrix.data).any()))


class StoredTable(NamedTuple):
    """A model's table, and what it is called."""

    model: str
    named: bool  # whether the file itself names the model
    labels: list[str] | None
    n_labels: int
    ids: Ids | None
    table: Table


def stored(source: Source, form: Format, scratch: Path) -> list[StoredTable]:
    """Make a file's tables ready to be read some rows at a time; `scratch` is a new folder for what that takes."""
    path = source.path
    if path is not None and form.name == "parquet" and (path.is_dir() or is_plain(path)):
        return _parquet(source, path, scratch)
    if path is not None and form.name in _SEPARATORS and is_plain(path):
        return _text(source, path, _SEPARATORS[form.name], scratch)
    return [_copied(table, source, scratch / str(k)) for k, table in enumerate(form.read(source))]


def _parquet(source: Source, path: Path, scratch: Path) -> list[StoredTable]:
    paths = [part.absolute() for part in parts(path)]
    with parquet.sound(source.name):
        schema = dict(pl.scan_parquet(paths, glob=False, hive_partitioning=False).collect_schema())
        index = parquet.pandas_index(paths if len(paths) > 1 else paths[0])
    columns = list(schema)
    if isinstance(index, str) and index in columns:
        columns = [index, *(column for column in columns if column != index)]
    if isinstance(index, range):
        columns = ["\0index", *columns]
    frames.check_columns(columns, source.name)
    if frames.is_long(columns):
        chunks = partial(_parquet_chunks, Columns(paths, columns, source.name, 64.0), columns, source.name)
        return _long(chunks, source, scratch)
    table = ParquetTable(paths, columns, schema, source.name)
    if table.n == 0:
        _raise_empty(source)
    ids = Ids(source.name, table.n, first=index.start, step=index.step) if isinstance(index, range) else Ids(
        source.name, table.n, Columns(paths, columns[:1], source.name), columns[0] or "instance"
    )  # fmt: skip
    return [StoredTable(source.model, False, columns[1:], len(columns) - 1, ids, table)]


class _Chunk(NamedTuple):
    frame: pl.DataFrame  # columns are called by their positions
    columns: list[str]
    place: Place


def _parquet_chunks(columns: Columns, called: list[str], name: str) -> Iterator[_Chunk]:
    for start, stop in zip(columns.bounds, columns.bounds[1:], strict=False):
        frame = columns.rows(start, stop)
        frame.columns = [str(at) for at in range(frame.width)]
        yield _Chunk(frame, called, Place(name, "row", lambda row, start=start: row + start + 1))  # type: ignore[misc]


def _text(source: Source, path: Path, separator: str, scratch: Path) -> list[StoredTable]:
    chunks = partial(csv.pieces, path, source.name, separator)
    first = next(iter(chunks()), None)
    if first is None:
        _raise_empty(source)
    columns = first.columns
    if frames.is_long(columns):
        return _long(chunks, source, scratch)
    scratch.mkdir()
    writer, ids = DenseWriter(scratch / "scores", len(columns) - 1), IdWriter(scratch / "ids.parquet")
    for frame, _, place in chunks():
        ids.append(frames.names(frame.drop_in_place("0"), columns[0] or "instance", place))
        writer.append(frames.matrix(frame, columns, place))
    named = ids.whole(source.name)._replace(unit="line", before=2)
    return [StoredTable(source.model, False, columns[1:], len(columns) - 1, named, DenseTable(writer.whole()))]


def _long(chunks: Any, source: Source, scratch: Path) -> list[StoredTable]:
    """Sort statements by instance. Two passes: one for the names, one for the statements."""
    scratch.mkdir()
    found = {column: Names() for column in ("instance", "label", "model")}
    empty = True
    for frame, columns, place in chunks():
        if frame.height:
            empty = False
            named = frame.rename(dict(zip(frame.columns, columns, strict=True)))
            frames.scores_of(named["score"], "score", place, columns)
            for column, seen_so_far in found.items():
                own = frames.names(named[column], column, place) if column in columns else pl.Series([source.model])
                seen_so_far.add(own)
    if empty:
        _raise_empty(source)
    names = {column: listed.whole() for column, listed in found.items()}
    kinds = {column: pl.Enum(listed) for column, listed in names.items()}
    m, n, l = (len(names[column]) for column in ("model", "instance", "label"))
    writer = SparseWriter(scratch / "entries")
    seen, known = np.zeros((m, n), dtype=np.bool_), np.zeros((m, l), dtype=np.bool_)
    for at, pairs, scores, _ in _statements(chunks, kinds, l):
        writer.append(at, pairs, scores)
        seen[pairs // l, at] = True
        known[pairs // l, pairs % l] = True
    entries = writer.whole(n)
    _check_pairs(entries, m * l, partial(_statements, chunks, kinds, l), names)
    out = []
    for k, model in enumerate(names["model"].to_list()):
        order = None if seen[k].all() else scratch / f"order-{k}.npy"
        if order is not None:
            np.save(order, np.flatnonzero(seen[k]))
        writer_ids = IdWriter(scratch / f"ids-{k}.parquet")
        writer_ids.append(names["instance"].filter(pl.Series(seen[k])))
        labels = names["label"].filter(pl.Series(known[k])).to_list()
        columns_of = np.zeros(m * l, dtype=np.int64)
        columns_of[k * l : (k + 1) * l] = np.cumsum(known[k]) - 1
        mine = None if m == 1 else np.arange(k * l, (k + 1) * l)
        ids = writer_ids.whole(source.name)
        table = SparseTable(entries, mine, columns_of, labels, ids, order)
        out.append(StoredTable(model, model != source.model, labels, len(labels), ids, table))
    return out


def _statements(
    chunks: Any, kinds: dict[str, Any], l: int
) -> Iterator[tuple[IntArray, IntArray, NDArray[np.float64], Place]]:
    """Walk a long table as positions of instances, columns (a label of a model), scores, and where they stand."""
    for frame, columns, place in chunks():
        if frame.height == 0:
            continue
        named = frame.rename(dict(zip(frame.columns, columns, strict=True)))
        instance, label, model = (
            named[column].cast(pl.String).cast(kinds[column]).to_physical().to_numpy().astype(np.int64)
            if column in columns
            else np.zeros(frame.height, dtype=np.int64)
            for column in ("instance", "label", "model")
        )
        scores = frames.scores_of(named["score"], "score", place, columns).cast(pl.Float64).to_numpy()
        yield instance, model * l + label, scores, place


def _check_pairs(entries: Sparse, width: int, statements: Any, names: dict[str, pl.Series]) -> None:
    """Refuse a pair of an instance and a label that a model lists twice; only then are the places looked for."""
    twice: set[int] = set()
    for start in range(0, entries.n, _WINDOW_ROWS):
        said = entries.rows(slice(start, min(entries.n, start + _WINDOW_ROWS)))
        pairs = np.sort((said.rows + start) * width + said.columns)
        twice |= set(pairs[1:][pairs[1:] == pairs[:-1]].tolist())
    first: dict[int, tuple[Place, int]] = {}
    for at, column, _, place in statements() if twice else ():
        pairs = at * width + column
        for row in np.flatnonzero(np.isin(pairs, list(twice))).tolist():
            pair = int(pairs[row])
            if pair in first:
                before, first_row = first[pair]
                raise InputError(
                    f"{place(row)}: found label {names['label'][int(column[row]) % len(names['label'])]!r} of instance "
                    f"{names['instance'][int(at[row])]!r} again (first in {before.short(first_row)}), "
                    "expected each pair once"
                )
            first[pair] = place, row


def _copied(given: ModelTable, source: Source, scratch: Path) -> StoredTable:
    """Put a table that was read whole into scratch files."""
    scratch.mkdir(parents=True)
    n, l = given.scores.shape
    ids = None
    if given.instances is not None:
        writer = IdWriter(scratch / "ids.parquet")
        writer.append(pl.Series([str(name) for name in given.instances], dtype=pl.String))
        ids = writer.whole(source.name)
    labels = None if given.labels is None else [str(label) for label in given.labels]
    table: Table
    if sparse.issparse(given.scores):
        entries = SparseWriter(scratch / "entries")
        matrix = sparse.csr_array(given.scores)
        if matrix.nnz:
            entries.append(np.repeat(np.arange(n), np.diff(matrix.indptr)), matrix.indices, matrix.data)
        named = [f"label_{at}" for at in range(l)] if labels is None else labels
        table = SparseTable(entries.whole(n), None, np.arange(l), named, ids or Ids(source.name, n), None)
    else:
        rows = DenseWriter(scratch / "scores", l)
        rows.append(given.scores)
        table = DenseTable(rows.whole())
    return StoredTable(given.model, given.model != source.model, labels, l, ids, table)


class IdWriter:
    """Writes names to a file as they come."""

    def __init__(self, path: Path) -> None:
        self.path, self.n = path, 0
        self._lengths: list[int] = []
        path.touch()

    def append(self, ids: pl.Series) -> None:
        """Add names."""
        for start in range(0, len(ids), 2**18):
            block = encoded(ids[start : start + 2**18].alias("id").to_frame(), "parquet", first=False)
            with self.path.open("ab") as file:
                file.write(block)
            self._lengths.append(len(block))
        self.n += len(ids)

    def whole(self, file: str) -> Ids:
        """End the file; `file` is what messages say the names come from."""
        with self.path.open("r+b") as output:
            finish(output, "parquet", self._lengths)
        return Ids(file, self.n, Columns([self.path], ["id"], file))


def _whole_part(matrix: Any, rows: IntArray | None) -> Part:
    return Part(matrix, rows, matrix.dtype.kind == "f" and bool(np.isnan(matrix).any()))


def _found(at: IntArray) -> tuple[IntArray, IntArray]:
    """Return the positions that are somewhere, and where each of all stands among these."""
    known = at >= 0
    return at[known], np.where(known, np.cumsum(known) - 1, -1)


def _nothing(n: int, l: int) -> Part:
    """Return what is known about instances that the model has not seen."""
    return Part(np.zeros((1, l), dtype=np.bool_), np.full(n, -1), False)


def _bytes(kind: Any) -> float:
    """Estimate how many bytes a decoded cell takes."""
    return 1 / 8 if kind == pl.Boolean else 4.0 if kind == pl.Float32 else 1.0 if kind in (pl.UInt8, pl.Int8) else 8.0


def _raise_empty(source: Source) -> NoReturn:
    raise InputError(f"{source.name}: found a header and no rows, expected at least one")
