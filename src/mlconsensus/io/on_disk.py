"""Matrices on disk, of which rows are read when they are needed: wide Parquet where it is, others in scratch files."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import numpy as np
import polars as pl
from scipy import sparse

from ..errors import InputError
from ..linalg.block_sums import dense
from ..predictions import MAX_DENSE_LABELS, Array, IntArray, ScoreTable, StoredMatrix
from . import columns as cells
from .files import Place, reader_errors

_ROWS = 2**17  # rows of a table that are decoded at a time
_CSR = ("data", "indices", "indptr")

# Above this share of cells that are not 0, a dense matrix is both smaller and faster
# than a sparse one.
_DENSE = 0.3


def batches(
    rows: pl.LazyFrame, start: int = 0, size: int = _ROWS
) -> Iterator[pl.DataFrame]:
    """Walk the rows of a query from one on; as `Numbered`, it uses what Polars calls unstable.

    Examples
    --------
    >>> [batch.height for batch in batches(pl.LazyFrame({"0": range(5)}), 2)]
    [3]
    """
    return iter(
        rows.slice(start).collect_batches(
            chunk_size=size, maintain_order=True, engine="streaming"
        )
    )


class Numbered:
    """Names that come piece by piece, numbered in the order in which each first comes.

    Examples
    --------
    >>> labels = Numbered()
    >>> labels.positions(pl.Series(["law", "art", "law"])), labels.positions(pl.Series(["tax", None, "art"]))
    (array([0, 1, 0], dtype=int32), array([ 2, -1,  1], dtype=int32))
    >>> labels.names.to_list()
    ['law', 'art', 'tax']
    """

    def __init__(self) -> None:
        self._categories = pl.Categories.random()
        self._kept = pl.Series(
            [], dtype=pl.Categorical(self._categories)
        )  # without any series, Polars forgets them
        self._count = 0
        self._blank: list[int] = []  # which of them are blank

    @property
    def names(self) -> pl.Series:
        """The names so far."""
        return self._categories.to_series()

    def positions(self, cells: pl.Series) -> Array:
        """Return the positions of names as int32, -1 where there is none, or a blank one."""
        positions: Array = (
            cells.cast(self._kept.dtype)
            .to_physical()
            .cast(pl.Int32)
            .fill_null(-1)
            .to_numpy()
        )
        new = cells.filter(
            positions >= self._count
        )  # only these are looked at, as names come again and again
        self._blank += [
            int(self._categories[name])
            for name in new.filter(new.str.strip_chars() == "").unique()
        ]
        self._count = max(self._count, int(positions.max(initial=-1)) + 1)
        if self._blank:
            return np.where(np.isin(positions, self._blank), -1, positions)
        return positions


class Walk:
    """Rows of a query; where they are asked for in order, each is decoded once."""

    def __init__(self, rows: pl.LazyFrame, name: str) -> None:
        self.query, self.name = rows, name
        self._at, self._held = -1, pl.DataFrame()
        self._rest: Iterator[pl.DataFrame] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_at": -1, "_held": pl.DataFrame(), "_rest": None}

    def rows(self, start: int, stop: int) -> pl.DataFrame:
        """Return some rows."""
        with reader_errors(self.name, "Parquet"):
            if (
                start != self._at
                # by themselves, or the first of a walk: decoding ahead is for those that
                # follow
            ):
                self._held, self._rest = (
                    self.query.slice(start, stop - start).collect(engine="streaming"),
                    None,
                )
            elif self._rest is None:
                self._rest = batches(self.query, start)

            found = []
            self._at = start
            while self._at < stop:
                if self._held.height == 0:
                    self._held = next(self._rest or iter(()), self._held)
                    if self._held.height == 0:
                        raise InputError(
                            f"{self.name}: found fewer rows than before, expected a file that stays"
                        )

                found.append(self._held.head(stop - self._at))
                self._held = self._held.slice(found[-1].height)
                self._at += found[-1].height

            return pl.concat(found, rechunk=False)


class ParquetMatrix(StoredMatrix):
    """The scores of a wide Parquet table, which are checked when they are read."""

    def __init__(
        self, rows: pl.LazyFrame, columns: Sequence[str], place: Place, n: int
    ) -> None:
        kinds = rows.collect_schema().dtypes()[1:]
        whole = all(kind == pl.Boolean or kind.is_integer() for kind in kinds)
        self.dtype = np.dtype(np.bool_ if whole else np.float64)
        self.shape = n, len(columns) - 1
        self._columns, self._place = list(columns), place
        self._walk = Walk(rows.drop("0"), place.file)
        cells.matrix(
            rows.drop("0").head(1).collect(), columns, place
        )  # most faults show in the first row

    def __getitem__(self, rows: slice | IntArray) -> Any:
        if not isinstance(rows, slice):  # in rising order
            return self[int(rows[0]) : int(rows[-1]) + 1][rows - rows[0]]

        frame = self._walk.rows(rows.start, rows.stop)
        return cells.matrix(frame, self._columns, self._place.below(rows.start))


class DenseFile(StoredMatrix):
    """An array in a file of NumPy's, rows in any order."""

    def __init__(self, path: Path) -> None:
        self.path = path
        array = np.load(path, mmap_mode="r")
        self.shape, self.dtype = array.shape, array.dtype

    def __getitem__(self, rows: slice | IntArray) -> Any:
        return np.array(np.load(self.path, mmap_mode="r")[rows])

    @classmethod
    def of(cls, given: Any, path: Path) -> Self:
        """Copy an array, or a matrix on disk block by block."""
        kind = given.dtype
        if isinstance(given, StoredMatrix):  # decisions may be missing, too
            kind = np.dtype(np.float32 if kind.kind == "b" else np.float64)

        whole = new_array(given.shape, kind, path)
        for start in range(0, len(whole), _ROWS):
            whole[start : start + _ROWS] = dense(
                given[start : min(len(whole), start + _ROWS)]
            )

        return cls(path)


class SparseFile(StoredMatrix):
    """A CSR matrix in files of NumPy's, rows in any order."""

    def __init__(self, folder: Path, shape: tuple[int, int]) -> None:
        self.folder, self.shape = folder, shape
        data = np.load(folder / "data.npy", mmap_mode="r")
        self.dtype, self.nnz = data.dtype, len(data)

    def __getitem__(self, rows: slice | IntArray) -> Any:
        whole = tuple(
            np.load(self.folder / f"{name}.npy", mmap_mode="r") for name in _CSR
        )
        return compact(sparse.csr_array(whole, shape=self.shape, copy=False)[rows])

    @classmethod
    def of(cls, matrix: Any, folder: Path) -> Self:
        """Copy a matrix."""
        folder.mkdir(parents=True)
        for name in _CSR:
            np.save(folder / f"{name}.npy", getattr(matrix, name))

        return cls(folder, matrix.shape)


def compact(matrix: Any) -> Any:
    """Return a CSR matrix without zeros in it, dense where that is both smaller and faster.

    Examples
    --------
    >>> compact(sparse.csr_array([[0.5, 0.0]]))
    array([[0.5, 0. ]])
    """
    n, l = matrix.shape
    if l <= MAX_DENSE_LABELS and matrix.nnz > _DENSE * n * l:
        return matrix.toarray()

    matrix.eliminate_zeros()
    return matrix


def new_array(shape: Any, dtype: Any, path: Path | None) -> Array:
    """Make an array to be filled, in memory or in a file.

    Examples
    --------
    >>> new_array(2, bool, None).shape
    (2,)
    """
    if path is None or np.prod(shape) == 0:
        return np.empty(shape, dtype=dtype)

    path.parent.mkdir(parents=True, exist_ok=True)
    return np.lib.format.open_memmap(
        path,
        mode="w+",
        dtype=dtype,
        shape=(shape,) if isinstance(shape, int) else shape,
    )


def on_disk(rows: Any, scratch: Path) -> pl.LazyFrame:
    """Return rows that stay on disk: as they are, or from a scratch file where they are in memory.

    Examples
    --------
    >>> import tempfile
    >>> on_disk(pl.DataFrame({"0": [7]}), Path(tempfile.mkdtemp()) / "a").collect().item()
    7
    """
    if isinstance(rows, pl.LazyFrame):
        return rows
    return sunk(scratch, rows.lazy())


def table_on_disk(table: ScoreTable, scratch: Path) -> ScoreTable:
    """Put the scores of a table that was read whole into scratch files."""
    if isinstance(table.scores, StoredMatrix):
        return table
    if sparse.issparse(table.scores):
        return table._replace(
            scores=SparseFile.of(sparse.csr_array(table.scores), scratch)
        )

    return table._replace(
        scores=DenseFile.of(np.asarray(table.scores), scratch / "scores.npy")
    )


def sunk(scratch: Path, rows: pl.LazyFrame) -> pl.LazyFrame:
    """Run a query into a scratch file, and return what reads it.

    Examples
    --------
    >>> import tempfile
    >>> sunk(Path(tempfile.mkdtemp()), pl.LazyFrame({"0": [7]})).collect().item()
    7
    """
    scratch.mkdir(parents=True, exist_ok=True)
    path = (
        scratch / f"{uuid4().hex}.parquet"
    )  # a query that failed may still be at its file, or yet to make it
    rows.sink_parquet(path, compression="lz4", statistics=False)
    return pl.scan_parquet(path, glob=False)
