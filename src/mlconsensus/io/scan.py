"""Predictions that remain in files and are read block by block."""

import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import polars as pl

from ..execution.progress import track
from ..predictions import (
    AlignedScores,
    How,
    LazyPredictions,
    Names,
    Predictions,
    align_tables,
    as_array,
    prepared,
)
from . import on_disk
from .columns import find_roles
from .files import AnyPath, Paths, is_plain, reader_errors
from .formats.registry import list_input_files, list_parquet_parts
from .label_names import ReadKeywords, RelabeledMatrix, make_read_options
from .read import read_panel_tables

_STATEMENT = 64  # bytes that one row of a long table takes while it is read
# bytes that a score of the consensus takes: itself, on its way to the file, and what is
# written
_CELL = 24


class Scratch:
    """A folder for scratch files; a temporary one is removed with its panels."""

    def __init__(self, folder: AnyPath | None) -> None:
        if folder is None:
            self.folder = Path(tempfile.mkdtemp(prefix="mlconsensus-"))
            weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        else:
            self.folder = Path(folder)

    def __reduce__(self) -> tuple[Any, ...]:
        return Scratch, (self.folder,)  # another process does not remove it


class FilePredictions(LazyPredictions):
    """Predictions in files, made by `scan_predictions`; blocks are read when needed."""

    def __init__(
        self,
        front: Predictions,
        scores: Sequence[AlignedScores],
        names: on_disk.SequentialReader,
        n: int,
        scratch: Scratch,
    ) -> None:
        super().__init__(front)
        self._scanned = (
            self.models,
            self.labels,
        )  # as they stand in the files, whatever is selected
        self._scores, self._names, self._n = tuple(scores), names, n
        self._scratch = scratch  # which is there as long as this is

    def __len__(self) -> int:
        return self._n

    @property
    def block_size(self) -> int:
        """Default number of instances in a block."""
        divisor = 2
        if self.many:
            divisor = 1
        elif self.has_scores:
            divisor = 4  # floats take more memory

        # Bits are read faster if blocks, and halves of them, begin with a byte.
        size = super().block_size // divisor
        if size >= 128:
            return size // 128 * 128
        return max(1, size)

    @property
    def n_stored(self) -> int:
        """Number of stored scores in the matrices of all models."""
        return sum(scores.n_stored for scores in self._scores)

    @property
    def instances(self) -> Names:  # type: ignore[override]
        """The names of all instances."""
        return as_array(self.names(0, len(self)))

    def read(self, start: int, stop: int) -> Predictions:
        """Read the instances from `start` to `stop`, named by their positions."""
        stop = min(stop, len(self))
        models, labels = self._scanned
        parts = [scores.take(slice(start, stop)) for scores in self._scores]
        block = Predictions.from_parts(models, np.arange(start, stop), labels, parts)
        return prepared(block.as_block(self.many), self._steps)

    def named_blocks(
        self, start: int, stop: int, size: int
    ) -> Iterator[tuple[Predictions, pl.Series]]:
        """Iterate over blocks of `size` instances with the names of the instances."""
        for block_start in range(start, stop, size):
            block_stop = min(stop, block_start + size)
            block = self.read(block_start, block_stop)
            yield block, self.names(block_start, block_stop)

    def names(self, start: int, stop: int) -> pl.Series:
        """Read the names of the instances from `start` to `stop`."""
        return self._names.read(start, min(stop, len(self))).to_series()


def scan_predictions(
    paths: Paths,
    *,
    format: str | None = None,
    instances: How = "union",
    labels: How = "union",
    models: Sequence[str] | None = None,
    scratch: AnyPath | None = None,
    **reading: Unpack[ReadKeywords],
) -> FilePredictions:
    r"""Prepare the predictions of several models without reading them into memory.

    Wide Parquet tables that list the same instances in the same order are walked where
    they are. Other files are put into scratch files first: text, statements of long
    tables, tables of another order. Files of other formats than Parquet, CSV and TSV,
    and compressed ones, are read whole for that, one at a time.

    Parameters
    ----------
    paths, format, instances, labels, models, reading
        As in `read_predictions`.
    scratch
        An existing folder for scratch files, which stay; by default the system's place
        for temporary files, from which they vanish with the panel.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import mlconsensus as mlc
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "ann.csv").write_text("id,law,war\n7,1,0\n8,0,1\n")
    >>> _ = (folder / "bob.csv").write_text("id,war,law\n8,1,0\n7,0,1\n")
    >>> panel = scan_predictions([folder / "ann.csv", folder / "bob.csv"])
    >>> panel
    <FilePredictions: 2 models × 2 instances × 2 labels>
    >>> mlc.MajorityVote().fit_transform(panel)
    array([[1., 0.],
           [0., 1.]])
    """
    held = Scratch(scratch)
    with make_read_options(reading) as options:
        files = list_input_files(paths, format, options)
        tables = read_panel_tables(
            list(track(files, len(files), "scanning")), models, held.folder
        )

    model_names, names, label_names, scores = align_tables(tables, instances, labels)
    scores = tuple(
        _allow_any_order(model_scores, held.folder / f"rows-{position}")
        for position, model_scores in enumerate(scores)
    )
    path = held.folder / "instances.parquet"
    pl.Series("0", names).cast(pl.String).to_frame().write_parquet(
        path, row_group_size=2**17
    )
    walk = on_disk.SequentialReader(pl.scan_parquet(path, glob=False), "the panel")
    like = [
        np.zeros((1, len(label_names)), model_scores.matrix.dtype)
        for model_scores in scores
    ]
    return FilePredictions(
        Predictions(like, models=model_names, labels=label_names),
        scores,
        walk,
        len(names),
        held,
    )


def _allow_any_order(scores: AlignedScores, path: Path) -> AlignedScores:
    """Return scores that can be read in the order of the panel, kept in a file."""
    if scores.rows is None:
        return scores

    matrix = scores.matrix
    if (
        isinstance(matrix, on_disk.ParquetMatrix | RelabeledMatrix)
        and not (np.diff(scores.rows[scores.rows >= 0]) > 0).all()
    ):
        matrix = on_disk.DenseFile.create(matrix, path.with_suffix(".scores.npy"))

    order: Any = on_disk.DenseFile.create(scores.rows, path.with_suffix(".npy"))
    return replace(scores, matrix=matrix, rows=order)


def needed_memory(paths: Paths, format: str | None = None) -> int:
    """Estimate the bytes of memory that are needed to combine files in memory.

    Parameters
    ----------
    paths, format
        As in `read_predictions`.

    Returns
    -------
    int

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.parquet"
    >>> pl.DataFrame({"id": ["7"] * 1000, "x": [0.5] * 1000}).write_parquet(path)
    >>> needed_memory(path)
    32000
    """
    held = [0.0]
    cells = [0.0]
    for file, form in list_input_files(paths, format):
        path = file.path
        if path is None or not path.exists():  # what is wrong with it, the reader says
            continue
        if form.name == "parquet" and (path.is_dir() or is_plain(path)):
            with reader_errors(file.name, form.title):
                scan = pl.scan_parquet(
                    list_parquet_parts(path), glob=False, hive_partitioning=False
                )
                schema = scan.collect_schema()
                rows = scan.select(pl.len()).collect().item()

            widths = [
                1 if kind == pl.Boolean or kind.is_integer() else 8
                for kind in schema.dtypes()[1:]
            ]
            held.append(
                rows * (_STATEMENT if find_roles(list(schema)) else sum(widths))
            )
            cells.append(rows * len(widths))
        else:
            if form.name in ("csv", "tsv") and is_plain(path):
                times = 1.2
            else:
                times = 8.0

            held.append(times * path.stat().st_size)
            cells.append(path.stat().st_size / 4)

    return int(sum(held) + _CELL * max(cells))
