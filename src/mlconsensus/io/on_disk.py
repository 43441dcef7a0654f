"""Matrices on disk whose rows are read when they are needed.

Wide Parquet tables are read from their files, other tables from scratch files.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self
from uuid import uuid4

import numpy as np
import polars as pl
from numpy.typing import DTypeLike
from scipy import sparse

from ..errors import InputError
from ..linalg.block_sums import dense
from ..predictions import (
    MAX_DENSE_LABELS,
    Array,
    IntArray,
    Matrix,
    ScoreTable,
    StoredMatrix,
)
from .columns import is_integral, make_matrix
from .files import Place, reader_errors

_ROWS = 2**17  # rows of a table that are decoded at a time
_CSR_ARRAYS = ("data", "indices", "indptr")

# If a larger share of the cells is not 0, a dense matrix is smaller and faster than a
# sparse one.
_MAX_SPARSE_DENSITY = 0.3


def iterate_batches(
    rows: pl.LazyFrame, start: int = 0, size: int = _ROWS
) -> Iterator[pl.DataFrame]:
    """Iterate over the rows of a query, in order.

    Parameters
    ----------
    rows : LazyFrame
        Rows of the table.
    start : int, default=0
        The first row.
    size : int
        Rows of a batch.

    Yields
    ------
    DataFrame

    Notes
    -----
    Polars calls `collect_batches` unstable.

    Examples
    --------
    >>> rows = pl.LazyFrame({"0": range(5)})
    >>> [batch.height for batch in iterate_batches(rows, 2)]
    [3]
    """
    batches = rows.slice(start).collect_batches(
        chunk_size=size, maintain_order=True, engine="streaming"
    )
    return iter(batches)


class StringIndexer:
    """Numbers names in the order in which they first occur.

    Names come in pieces. Polars calls the categories that are used here unstable.

    Examples
    --------
    >>> labels = StringIndexer()
    >>> labels.index(pl.Series(["law", "art", "law"]))
    array([0, 1, 0], dtype=int32)
    >>> labels.index(pl.Series(["tax", None, "art"]))
    array([ 2, -1,  1], dtype=int32)
    >>> labels.names.to_list()
    ['law', 'art', 'tax']
    """

    def __init__(self) -> None:
        self._categories = pl.Categories.random()
        # Polars deletes categories that no series uses.
        self._empty_series = pl.Series([], dtype=pl.Categorical(self._categories))
        self._n_names = 0
        self._blank_positions: list[int] = []

    @property
    def names(self) -> pl.Series:
        """The names so far."""
        return self._categories.to_series()

    def index(self, cells: pl.Series) -> Array:
        """Return the positions of names among all names so far.

        Parameters
        ----------
        cells : Series of str, length n
            Content of the column.

        Returns
        -------
        ndarray of shape (n,), int32
            -1 if the name is missing or blank.
        """
        codes = cells.cast(self._empty_series.dtype).to_physical().cast(pl.Int32)
        positions: Array = codes.fill_null(-1).to_numpy()

        # Only new names are checked, since most names occur many times.
        new_names = cells.filter(positions >= self._n_names)
        is_blank = new_names.str.strip_chars() == ""
        for name in new_names.filter(is_blank).unique():
            self._blank_positions.append(int(self._categories[name]))

        self._n_names = max(self._n_names, int(positions.max(initial=-1)) + 1)
        if self._blank_positions:
            return np.where(np.isin(positions, self._blank_positions), -1, positions)
        return positions


class SequentialReader:
    """Reads rows of a query; if they are read in order, each is decoded once.

    Parameters
    ----------
    rows : LazyFrame
        Rows of the table.
    name : str
        Name of the file in messages.
    """

    def __init__(self, rows: pl.LazyFrame, name: str) -> None:
        self.query = rows
        self.name = name
        self._next_row = -1
        self._buffer = pl.DataFrame()
        self._batches: Iterator[pl.DataFrame] | None = None

    def __getstate__(self) -> dict[str, object]:
        """Return the attributes of a reader that has not read anything yet."""
        initial_state = vars(SequentialReader(self.query, self.name))
        return dict(initial_state)

    def read(self, start: int, stop: int) -> pl.DataFrame:
        """Return the rows from `start` to `stop`.

        Parameters
        ----------
        start, stop : int
            Positions of the first row and of the row after the last.

        Returns
        -------
        DataFrame with stop - start rows
        """
        with reader_errors(self.name, "Parquet"):
            if start != self._next_row:
                # Rows out of order, or the first ones: no other rows are decoded.
                rows = self.query.slice(start, stop - start)
                self._buffer = rows.collect(engine="streaming")
                self._batches = None
            elif self._batches is None:
                self._batches = iterate_batches(self.query, start)

            self._next_row = start
            pieces = []
            while self._next_row < stop:
                if self._buffer.height == 0:
                    self._fill_buffer()

                piece = self._buffer.head(stop - self._next_row)
                pieces.append(piece)
                self._buffer = self._buffer.slice(piece.height)
                self._next_row += piece.height

            return pl.concat(pieces, rechunk=False)

    def _fill_buffer(self) -> None:
        """Decode the next batch."""
        if self._batches is not None:
            self._buffer = next(self._batches, self._buffer)
        if self._buffer.height == 0:
            raise InputError(
                where=self.name,
                found="fewer rows than before",
                expected="a file that stays",
            )


class ParquetMatrix(StoredMatrix):
    """Scores of a wide Parquet table, which are checked when they are read.

    Parameters
    ----------
    rows : LazyFrame with n rows
        Columns are named "0", "1", …; the first names the instances.
    columns : sequence of str, length l + 1
        Header of the file.
    place : Place
        Location of the rows, for messages.
    n_rows : int
        Number of rows.
    """

    def __init__(
        self, rows: pl.LazyFrame, columns: Sequence[str], place: Place, n_rows: int
    ) -> None:
        dtypes = rows.collect_schema().dtypes()[1:]
        self.dtype = np.dtype(np.float64)
        if all(map(is_integral, dtypes)):
            self.dtype = np.dtype(np.bool_)

        self.shape = (n_rows, len(columns) - 1)
        self._columns = list(columns)
        self._place = place
        self._reader = SequentialReader(rows.drop("0"), place.file)

        # The first row shows most faults.
        make_matrix(rows.drop("0").head(1).collect(), columns, place)

    def __getitem__(self, rows: slice | IntArray) -> Array:
        if not isinstance(rows, slice):  # positions in increasing order
            first = int(rows[0])
            last = int(rows[-1])
            return self[first : last + 1][rows - first]

        frame = self._reader.read(rows.start, rows.stop)
        return make_matrix(frame, self._columns, self._place.shift(rows.start))


class DenseFile(StoredMatrix):
    """An array in a NumPy file, whose rows can be read in any order.

    Parameters
    ----------
    path : Path
        File in NumPy's format NPY.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        array = np.load(path, mmap_mode="r")
        self.shape = array.shape
        self.dtype = array.dtype

    def __getitem__(self, rows: slice | IntArray) -> Array:
        return np.array(np.load(self.path, mmap_mode="r")[rows])

    @classmethod
    def create(cls, matrix: Array | StoredMatrix, path: Path) -> Self:
        """Copy an array, or a matrix on disk block by block.

        Parameters
        ----------
        matrix : ndarray or StoredMatrix
            The scores.
        path : Path
            The new file.

        Returns
        -------
        DenseFile
        """
        dtype = matrix.dtype
        if isinstance(matrix, StoredMatrix):
            # Cells may be missing, also those of Boolean columns.
            if dtype.kind == "b":
                dtype = np.dtype(np.float32)
            else:
                dtype = np.dtype(np.float64)

        array = create_array(matrix.shape, dtype, path)
        n_rows = len(array)
        for start in range(0, n_rows, _ROWS):
            stop = min(n_rows, start + _ROWS)
            array[start:stop] = dense(matrix[start:stop])

        return cls(path)


class SparseFile(StoredMatrix):
    """A CSR matrix in NumPy files, whose rows can be read in any order.

    Parameters
    ----------
    folder : Path
        Holds the three arrays of the matrix.
    shape : (int, int)
        Shape of the array.
    """

    def __init__(self, folder: Path, shape: tuple[int, int]) -> None:
        self.folder = folder
        self.shape = shape
        data = np.load(folder / "data.npy", mmap_mode="r")
        self.dtype = data.dtype
        self.nnz = len(data)

    def __getitem__(self, rows: slice | IntArray) -> Matrix:
        arrays = []
        for name in _CSR_ARRAYS:
            arrays.append(np.load(self.folder / f"{name}.npy", mmap_mode="r"))

        matrix = sparse.csr_array(tuple(arrays), shape=self.shape, copy=False)
        return compact_matrix(matrix[rows])

    @classmethod
    def create(cls, matrix: Matrix, folder: Path) -> Self:
        """Copy a matrix.

        Parameters
        ----------
        matrix : csr_array
            The scores.
        folder : Path
            The new folder.

        Returns
        -------
        SparseFile
        """
        folder.mkdir(parents=True)
        for name in _CSR_ARRAYS:
            np.save(folder / f"{name}.npy", getattr(matrix, name))

        return cls(folder, matrix.shape)


def compact_matrix(matrix: Matrix) -> Matrix:
    """Return a matrix as dense array if that is smaller and faster, else without zeros.

    Parameters
    ----------
    matrix : csr_array of shape (n, l)
        Its zeros are removed in place.

    Returns
    -------
    ndarray or csr_array of shape (n, l)

    Examples
    --------
    >>> compact_matrix(sparse.csr_array([[0.5, 0.0]]))
    array([[0.5, 0. ]])
    """
    n_rows, n_labels = matrix.shape
    is_dense = matrix.nnz > _MAX_SPARSE_DENSITY * n_rows * n_labels
    if is_dense and n_labels <= MAX_DENSE_LABELS:
        return matrix.toarray()

    matrix.eliminate_zeros()
    return matrix


def create_array(
    shape: int | tuple[int, ...], dtype: DTypeLike, path: Path | None
) -> Array:
    """Create an array in memory or in a file. Its values are not initialized.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the array.
    dtype : data type
        Type of the values.
    path : Path or None
        ``None`` if the array is in memory.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> create_array(2, bool, None).shape
    (2,)
    """
    if path is None or np.prod(shape) == 0:
        return np.empty(shape, dtype=dtype)

    if isinstance(shape, int):
        shape = (shape,)

    path.parent.mkdir(parents=True, exist_ok=True)
    return np.lib.format.open_memmap(
        path, mode="w+", dtype=np.dtype(dtype), shape=shape
    )


def keep_on_disk(rows: pl.DataFrame | pl.LazyFrame, scratch: Path) -> pl.LazyFrame:
    """Return rows that are on disk; rows in memory are written to a scratch file.

    Parameters
    ----------
    rows : DataFrame or LazyFrame
        Rows of the table.
    scratch : Path
        Folder for scratch files.

    Returns
    -------
    LazyFrame

    Examples
    --------
    >>> import tempfile
    >>> scratch = Path(tempfile.mkdtemp()) / "a"
    >>> keep_on_disk(pl.DataFrame({"0": [7]}), scratch).collect().item()
    7
    """
    if isinstance(rows, pl.LazyFrame):
        return rows
    return sink_to_parquet(scratch, rows.lazy())


def store_table(table: ScoreTable, scratch: Path) -> ScoreTable:
    """Write the scores of a table in memory to scratch files.

    Parameters
    ----------
    table : ScoreTable
        The scores of one model.
    scratch : Path
        Folder for scratch files.

    Returns
    -------
    ScoreTable
        Its scores are a `StoredMatrix`.
    """
    scores = table.scores
    if isinstance(scores, StoredMatrix):
        return table

    stored: StoredMatrix
    if sparse.issparse(scores):
        stored = SparseFile.create(sparse.csr_array(scores), scratch)
    else:
        stored = DenseFile.create(np.asarray(scores), scratch / "scores.npy")

    return replace(table, scores=stored)


def sink_to_parquet(scratch: Path, rows: pl.LazyFrame) -> pl.LazyFrame:
    """Write the result of a query to a scratch file.

    Parameters
    ----------
    scratch : Path
        Folder for scratch files.
    rows : LazyFrame
        Rows of the table.

    Returns
    -------
    LazyFrame
        Reads the scratch file.

    Examples
    --------
    >>> import tempfile
    >>> scratch = Path(tempfile.mkdtemp())
    >>> sink_to_parquet(scratch, pl.LazyFrame({"0": [7]})).collect().item()
    7
    """
    scratch.mkdir(parents=True, exist_ok=True)

    # A query that failed may still hold its file or create it later, so that each
    # query needs a new name.
    path = scratch / f"{uuid4().hex}.parquet"
    rows.sink_parquet(path, compression="lz4", statistics=False)
    return pl.scan_parquet(path, glob=False)
