"""Tables that cannot be walked where they are, put into files that can: text, other orders, statements in any order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..panel.alignment import IntArray

Rows = slice | IntArray

_MISSING = -1  # the code of a missing cell among decisions
_CHUNK = 2**24  # bytes that are copied at a time


class Dense(NamedTuple):
    """A matrix (n, l) in a file, row after row: decisions as one byte each, other scores as float64."""

    path: Path
    dtype: str
    shape: tuple[int, int]

    def rows(self, at: Rows) -> NDArray[Any]:
        """Read some rows: bool, or floats with NaN where missing."""
        found = np.array(np.memmap(self.path, dtype=self.dtype, mode="r", shape=self.shape)[at])
        if self.dtype != "int8":
            return found
        return _with_nan(found) if (found == _MISSING).any() else found.view(np.bool_)


class DenseWriter:
    """Writes a `Dense` row by row; while all scores are 0, 1 or missing they take one byte each.

    Examples
    --------
    >>> import tempfile
    >>> writer = DenseWriter(Path(tempfile.mkdtemp()) / "a", 2)
    >>> writer.append(np.array([[True, False]]))
    >>> writer.append(np.array([[0.5, np.nan]]))
    >>> writer.whole().rows(slice(0, 2))
    array([[1. , 0. ],
           [0.5, nan]])
    """

    def __init__(self, path: Path, width: int) -> None:
        self.path, self.width, self.n, self.dtype = path, width, 0, "int8"
        path.touch()

    def append(self, scores: NDArray[Any]) -> None:
        """Add rows."""
        if self.dtype == "int8":
            codes = _codes(scores)
            if codes is None:
                self._widen()
            else:
                scores = codes
        with self.path.open("ab") as file:
            file.write(np.ascontiguousarray(scores, dtype=self.dtype).data)
        self.n += len(scores)

    def whole(self) -> Dense:
        """Return what was written."""
        return Dense(self.path, self.dtype, (self.n, self.width))

    def _widen(self) -> None:
        wider = self.path.with_suffix(".wide")
        with self.path.open("rb") as narrow, wider.open("wb") as wide:
            while data := narrow.read(_CHUNK):
                wide.write(_with_nan(np.frombuffer(data, dtype=np.int8)).astype(np.float64).data)
        wider.replace(self.path)
        self.dtype = "float64"


class Entries(NamedTuple):
    """Statements about some instances, in their order."""

    rows: NDArray[np.int64]  # (s,) which of these instances
    columns: NDArray[np.int32]  # (s,)
    scores: NDArray[np.float64]  # (s,) NaN: missing


class Sparse(NamedTuple):
    """Statements (instance, column, score) in files, sorted by instance."""

    folder: Path
    n: int

    def rows(self, at: Rows) -> Entries:
        """Read what is said about some instances."""
        starts = np.load(self.folder / "starts.npy", mmap_mode="r")
        chosen = np.arange(at.start, at.stop) if isinstance(at, slice) else at
        first, counts = np.asarray(starts[chosen]), np.asarray(starts[chosen + 1] - starts[chosen])
        total = int(counts.sum())
        rows = np.repeat(np.arange(len(chosen)), counts)
        where: Any = np.arange(total) + np.repeat(first - np.cumsum(counts) + counts, counts)
        if isinstance(at, slice) and total:
            where = slice(int(first[0]), int(first[0]) + total)
        columns, scores = (np.array(self._file(name)[where]) for name in ("columns", "scores"))
        return Entries(rows, columns, scores)

    def _file(self, name: str) -> NDArray[Any]:
        path = self.folder / f"{name}.npy"
        return np.memmap(path, dtype=_KINDS[name], mode="r") if path.stat().st_size else np.empty(0, _KINDS[name])


_KINDS = {"instances": "int64", "columns": "int32", "scores": "float64"}


class SparseWriter:
    """Writes a `Sparse` from statements in any order.

    Examples
    --------
    >>> import tempfile
    >>> writer = SparseWriter(Path(tempfile.mkdtemp()) / "a")
    >>> writer.append(np.array([1, 0, 1]), np.array([0, 2, 1]), np.array([0.1, 0.2, 0.3]))
    >>> writer.whole(2).rows(slice(0, 2)).columns
    array([2, 0, 1], dtype=int32)
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder, self._sorted, self._last = folder, True, 0
        for name in _KINDS:
            (folder / f"{name}.npy").touch()

    def append(self, instances: NDArray[Any], columns: NDArray[Any], scores: NDArray[Any]) -> None:
        """Add statements; instances are positions."""
        self._sorted &= bool(instances[0] >= self._last and (np.diff(instances) >= 0).all())
        self._last = int(instances[-1])
        for (name, kind), values in zip(_KINDS.items(), (instances, columns, scores), strict=True):
            with (self.folder / f"{name}.npy").open("ab") as file:
                file.write(np.ascontiguousarray(values, dtype=kind).data)

    def whole(self, n: int) -> Sparse:
        """Sort the statements about `n` instances, if they are not."""
        counts = np.zeros(n + 1, dtype=np.int64)
        for instances, _, _ in self._chunks():
            counts[1:] += np.bincount(instances, minlength=n)
        starts = np.cumsum(counts)
        np.save(self.folder / "starts.npy", starts)
        if not self._sorted:
            self._sort(starts[:-1].copy())
        (self.folder / "instances.npy").unlink()
        return Sparse(self.folder, n)

    def _sort(self, free: IntArray) -> None:
        """Put each statement into the next free place of its instance."""
        chunks = self._chunks()
        sizes = {name: (self.folder / f"{name}.npy").stat().st_size for name in ("columns", "scores")}
        for name, size in sizes.items():
            with (self.folder / f"{name}.sorted").open("wb") as file:
                file.truncate(size)
        for instances, *values in chunks:
            order = np.argsort(instances, kind="stable")
            own, counts = np.unique(instances, return_counts=True)
            within = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
            places = np.repeat(free[own], counts) + within
            free[own] += counts
            for name, given in zip(sizes, values, strict=True):
                # Opened anew for each chunk: what is written leaves the memory again.
                np.memmap(self.folder / f"{name}.sorted", dtype=_KINDS[name], mode="r+")[places] = given[order]
        for name in sizes:
            (self.folder / f"{name}.sorted").replace(self.folder / f"{name}.npy")

    def _chunks(self) -> Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]:
        with (
            (self.folder / "instances.npy").open("rb") as first,
            (self.folder / "columns.npy").open("rb") as second,
            (self.folder / "scores.npy").open("rb") as third,
        ):
            count = _CHUNK // 8
            while len(instances := np.fromfile(first, dtype=_KINDS["instances"], count=count)):
                yield (
                    instances,
                    np.fromfile(second, dtype=_KINDS["columns"], count=count),
                    np.fromfile(third, dtype=_KINDS["scores"], count=count),
                )


class Names:
    """Names in the order in which they first come.

    Examples
    --------
    >>> names = Names()
    >>> names.add(pl.Series(["b", "a", "b"]))
    >>> names.add(pl.Series(["c", "a"]))
    >>> names.whole().to_list()
    ['b', 'a', 'c']
    """

    def __init__(self) -> None:
        self._found: list[pl.Series] = []
        self._distinct, self._waiting = 0, 0

    def add(self, cells: pl.Series) -> None:
        """Look at more."""
        new = cells.unique(maintain_order=True)
        self._found.append(new)
        self._waiting += len(new)
        if self._waiting > max(2**20, self._distinct):
            self.whole()

    def whole(self) -> pl.Series:
        """Return all that have come."""
        if len(self._found) > 1 or self._waiting:
            self._found = [pl.concat(self._found).unique(maintain_order=True)]
            self._distinct, self._waiting = len(self._found[0]), 0
        return self._found[0]


def _codes(scores: NDArray[Any]) -> NDArray[np.int8] | None:
    """Turn decisions, some of them missing, to one byte each; ``None`` if there are other scores."""
    if scores.dtype.kind in "bu":
        return scores.astype(np.int8)
    missing = np.isnan(scores)
    if not ((scores == 0) | (scores == 1) | missing).all():
        return None
    return np.where(missing, _MISSING, np.where(missing, 0, scores)).astype(np.int8)


def _with_nan(codes: NDArray[np.int8]) -> NDArray[np.float32]:
    return np.where(codes == _MISSING, np.float32(np.nan), codes.astype(np.float32))
