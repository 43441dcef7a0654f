"""Files → a panel that stays on disk and is walked block by block."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..engines.machine import cores
from ..engines.progress import track
from ..errors import InputError
from ..panel.alignment import How, IntArray, Names
from ..panel.model_scores import ModelScores
from ..panel.model_tables import ModelTable, panel_names
from ..panel.predictions import Predictions
from ..panel.sources import LazySource
from .files import AnyPath
from .folders import parts
from .frames import text_array
from .reading import Read, check_overlap, files_of, renamed, with_names
from .scratch import Names as Distinct
from .stored import Ids, IdWriter, ParquetTable, StoredTable, Table, stored

_ROWS = 2**18  # names that are compared at a time


class Scratch:
    """A folder for scratch files; a temporary one vanishes with the panels that need it."""

    def __init__(self, folder: AnyPath | None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mlconsensus-")) if folder is None else Path(folder)
        if folder is None:
            weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)

    def __reduce__(self) -> tuple[Any, ...]:
        return Scratch, (self.folder,)  # another process does not remove it


class Aligned(NamedTuple):
    """One model's table in the panel's order."""

    table: Table
    rows: Path | None  # file of the row of each of the panel's instances, -1: not seen; None: the same order
    columns: IntArray | None  # as in `ModelScores`


class ScannedPanel(LazySource):
    """Predictions in files, which `scan_predictions` found to belong together; blocks are read when they are needed."""

    def __init__(
        self,
        models: Sequence[str],
        labels: Sequence[str],
        tables: Sequence[Aligned],
        ids: Ids,
        scratch: Scratch,
        inputs: Sequence[Path] = (),
    ) -> None:
        super().__init__(models, labels)
        self._scanned = self.models, self.labels  # as they stand in the files, whatever is selected
        self._tables = tuple(tables)
        self._ids = ids
        self._scratch = scratch
        self.inputs = tuple(inputs)  # the files themselves

    def __len__(self) -> int:
        return self._ids.n

    @property
    def has_scores(self) -> bool:
        """Whether any model gives floats, not only decisions."""
        return any(table.has_scores for table, _, _ in self._tables)

    @property
    def block_size(self) -> int:
        """How many instances `blocks` gives at a time unless told."""
        return max(1, super().block_size // (4 if self.has_scores else 1))  # floats take more memory

    @property
    def instances(self) -> Names:  # type: ignore[override]
        """The names of all instances."""
        return text_array(self.names(0, len(self)))

    def blocks(self, size: int | None = None) -> Iterator[Predictions]:
        """Walk the instances, `size` at a time."""
        size = self.block_size if size is None else size
        if size < 1:
            raise InputError(f"blocks: found size {size}, expected at least 1")
        return (self.read(start, start + size) for start in range(0, len(self), size))

    def read(self, start: int, stop: int) -> Predictions:
        """Read the instances from one position to another; they are called by their positions."""
        stop = min(stop, len(self))
        parts = []
        for table, rows_file, columns in self._tables:
            at: slice | IntArray = slice(start, stop)
            if rows_file is not None:
                at = np.asarray(np.load(rows_file, mmap_mode="r")[start:stop])
            matrix, rows, has_nan = table.part(at)
            parts.append(ModelScores(matrix, rows, columns, has_nan))
        models, labels = self._scanned
        return self.prepared(Predictions.from_parts(models, np.arange(start, stop), labels, parts))

    def fingerprint(self) -> list[list[Any]]:
        """Tell what would change if the files did: their sizes and times."""
        states = [(path, path.stat()) for path in self.inputs]
        return [[str(path.absolute()), state.st_size, state.st_mtime_ns] for path, state in states]

    def resumable(self, folder: Path) -> Any:
        """Return a panel that keeps in the folder what it has done, and goes on from there."""
        from ..engines.streaming import Resumable

        return Resumable(self, folder)

    def names(self, start: int, stop: int) -> pl.Series:
        """Read the names of the instances from one position to another."""
        return self._ids.read(start, min(stop, len(self)))


def scan_predictions(
    paths: AnyPath | Sequence[AnyPath],
    *,
    format: str | None = None,
    instances: How = "union",
    labels: How = "union",
    models: Sequence[str] | None = None,
    scratch: AnyPath | None = None,
) -> ScannedPanel:
    r"""Find out what several models said, as `read_predictions` does, without reading it into memory.

    Wide Parquet tables that list the same instances in the same order are walked where they are. Other files are put
    into scratch files first: text, statements of long tables, tables of another order. Files of other formats than
    Parquet, CSV and TSV, and compressed ones, are read whole for that, one at a time.

    Parameters
    ----------
    paths, format, instances, labels, models
        As in `read_predictions`.
    scratch
        An existing folder for scratch files, which stay; by default the system's place for temporary files, from which
        they vanish with the panel.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import mlconsensus as mlc
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "ann.csv").write_text("id,law,war\n7,1,0\n8,0,1\n")
    >>> _ = (folder / "bob.csv").write_text("id,war,law\n8,1,0\n7,0,1\n")
    >>> panel = scan_predictions([folder / "ann.csv", folder / "bob.csv"])
    >>> panel
    <ScannedPanel: 2 models × 2 instances × 2 labels>
    >>> mlc.MajorityVote().fit_transform(panel)
    array([[1., 0.],
           [0., 1.]])
    """
    held = Scratch(scratch)
    folder = held.folder
    found: list[tuple[Read, StoredTable]] = []
    files = files_of(paths, format)
    for k, (source, form) in enumerate(track(files, len(files), "scanning")):
        for table in stored(source, form, folder / f"file-{k}"):
            # Names stand for the whole: nothing but the shape of the scores is ever asked for.
            shape = np.broadcast_to(np.False_, (table.table.n, table.n_labels))
            names = None if table.labels is None else np.array(table.labels, dtype=np.dtypes.StringDType())
            stub = ModelTable(table.model, shape, None, names)
            found.append((Read(source.name, source.path, table.named, stub), table))
    reads = renamed([read for read, _ in found], models)
    tables = with_names([read.table for read in reads], [read.name for read in reads])
    check_overlap(reads, tables, "labels")
    listed, columns = panel_names(tables, "labels", [table.scores.shape[1] for table in tables], labels)
    unnamed = tables[0].labels is None
    label_names = [f"label_{at}" for at in range(len(listed))] if unnamed else list(map(str, listed.tolist()))
    ids, rows = _aligned(reads, [table for _, table in found], instances, folder)
    aligned = [
        Aligned(*_readable(table.table, rows[k], folder / f"rows-{k}"), columns[k])
        for k, (_, table) in enumerate(found)
    ]
    return ScannedPanel([table.model for table in tables], label_names, aligned, ids, held, _inputs(reads))


def _inputs(reads: list[Read]) -> list[Path]:
    paths = dict.fromkeys(read.path for read in reads if read.path is not None)
    return [part for path in paths for part in (parts(path) if path.is_dir() else [path])]


def _readable(table: Table, rows: IntArray | None, path: Path) -> tuple[Table, Path | None]:
    """Make a table fit to be read in the panel's order, and keep that order in a file."""
    if rows is None:
        return table, None
    known = rows[rows >= 0]
    if isinstance(table, ParquetTable) and not (np.diff(known) > 0).all():
        table = table.in_any_order(path.with_suffix(".scores"))
    np.save(path.with_suffix(".npy"), rows)
    return table, path.with_suffix(".npy")


def _aligned(
    reads: list[Read], tables: list[StoredTable], how: How, scratch: Path
) -> tuple[Ids, list[IntArray | None]]:
    """Find the panel's instances, and where they stand in each table; ``None``: in the same order."""
    ids = _all_named(reads, tables)
    same = _same_order(ids)
    for k in [0] + [k for k in range(1, len(ids)) if not same[k]]:
        _check_distinct(ids[k])
    if all(same):
        return ids[0], [None] * len(ids)
    listed = [own.read(0, own.n) for own in ids]
    _check_overlap(reads, listed)
    if how == "union":
        distinct = Distinct()
        for names in listed:
            distinct.add(names)
        panel = distinct.whole()
    elif how == "intersection":
        panel = listed[0]
        for names in listed[1:]:
            panel = panel.filter(panel.is_in(names.implode()))
        if len(panel) == 0:
            raise InputError("instances: found none that all models share, expected at least one")
    else:
        raise InputError(f"instances: found {how!r}, expected 'union' or 'intersection'")
    rows = [_positions(panel, names) for names in listed]
    writer = IdWriter(scratch / "instances.parquet")
    writer.append(panel)
    return writer.whole("the panel"), rows


def _positions(panel: pl.Series, names: pl.Series) -> IntArray | None:
    own = names.to_frame("id").with_row_index("row")
    joined = panel.to_frame("id").join(own, on="id", how="left", maintain_order="left")
    rows = joined["row"].cast(pl.Int64).fill_null(-1).to_numpy()
    return None if len(rows) == len(names) and np.array_equal(rows, np.arange(len(names))) else rows


def _all_named(reads: list[Read], tables: list[StoredTable]) -> list[Ids]:
    """Name instances by position in tables without names; beside others, only if their names are such positions."""
    named = [k for k, table in enumerate(tables) if table.ids is not None]
    for k, table in enumerate(tables):
        if not named and table.table.n != tables[0].table.n:
            raise InputError(
                f"model {reads[k].table.model!r}: found {table.table.n} instances, "
                f"expected {tables[0].table.n} as model {reads[0].table.model!r} has"
            )
        for j in named if table.ids is None else []:
            other = tables[j].ids
            assert other is not None
            names = other.read(0, other.n)
            numbers = names.cast(pl.Int64, strict=False)
            position = numbers.is_between(0, table.table.n - 1) & (numbers.cast(pl.String) == names)
            strange = names.filter(~position.fill_null(False))
            if len(strange):
                raise InputError(
                    f"{reads[k].name}: found no names of instances, expected them, since {reads[j].name} names "
                    f"instances such as {strange[0]!r} that are not positions in {reads[k].name}"
                )
    return [table.ids or Ids(read.name, table.table.n) for read, table in zip(reads, tables, strict=True)]


def _same_order(ids: list[Ids]) -> list[bool]:
    """Tell of each list of names whether it is the first, name by name."""
    same = [own.n == ids[0].n for own in ids]
    with ThreadPoolExecutor(cores()) as pool:
        for start in range(0, ids[0].n, _ROWS):
            stop = min(ids[0].n, start + _ROWS)
            first = ids[0].read(start, stop)
            others = [k for k, own in enumerate(ids) if same[k] and own is not ids[0]]
            read = [pool.submit(ids[k].read, start, stop, first) for k in others]
            for k, names in zip(others, read, strict=True):
                same[k] = names.result().equals(first)
    return same


def _check_distinct(ids: Ids) -> None:
    """Refuse a name that is there twice. Hashes of all names are compared, and names where these are the same."""
    if ids.columns is None:
        return
    hashes = np.concatenate([ids.read(at, min(ids.n, at + _ROWS)).hash().to_numpy() for at in range(0, ids.n, _ROWS)])
    ordered = np.sort(hashes)
    again = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    first: dict[str, int] = {}
    for row in np.flatnonzero(np.isin(hashes, again)).tolist() if len(again) else []:
        name = ids.read(row, row + 1)[0]
        if name in first:
            place = ids.place
            raise InputError(
                f"{place(row)}: found the instance {name!r} again (first in {place.short(first[name])}), "
                "expected each once"
            )
        first[name] = row


def _check_overlap(reads: list[Read], listed: list[pl.Series]) -> None:
    """Refuse a model that shares no instance with any other: most likely the names do not match."""
    for k in reversed(range(len(listed))):
        others = [j for j in range(len(listed)) if j != k]
        if others and not any(listed[k].is_in(listed[j].implode()).any() for j in others):
            raise InputError(
                f"{reads[k].name}: found no instance in model {reads[k].table.model!r} that another model has "
                f"(such as {listed[others[0]][0]!r}; its own are such as {listed[k][0]!r}), expected some in common"
            )
