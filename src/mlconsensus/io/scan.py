"""Predictions that remain in files and are read block by block."""

import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack, cast

import numpy as np
import polars as pl

from ..execution.progress import track
from ..predictions import (
    AlignedScores,
    How,
    IntArray,
    LazyPredictions,
    Names,
    Predictions,
    align_tables,
    as_array,
    prepared,
)
from . import on_disk
from .files import AnyPath, Paths
from .formats.registry import list_input_files
from .label_names import ReadKeywords, RelabeledMatrix, make_read_options
from .read import read_panel_tables


class Scratch:
    """A folder for scratch files; a temporary one is removed with its panels."""

    def __init__(self, folder: AnyPath | None) -> None:
        if folder is None:
            self.folder = Path(tempfile.mkdtemp(prefix="mlconsensus-"))
            weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        else:
            self.folder = Path(folder)

    def __reduce__(self) -> tuple[type["Scratch"], tuple[Path]]:
        """Make pickles by the path: another process does not remove the folder."""
        return Scratch, (self.folder,)


class FilePredictions(LazyPredictions):
    """Predictions in files, made by `scan_predictions`; blocks are read when needed.

    Parameters
    ----------
    front : Predictions
        One instance with all models and labels.
    scores : sequence of m AlignedScores
        The scores of each model, on disk.
    names : SequentialReader
        Reads the names of instances.
    n_instances : int
        Number of instances.
    scratch : Scratch
        Folder of scratch files, which exists as long as this object.
    """

    def __init__(
        self,
        front: Predictions,
        scores: Sequence[AlignedScores],
        *,
        names: on_disk.SequentialReader,
        n_instances: int,
        scratch: Scratch,
    ) -> None:
        super().__init__(front)
        # Models and labels of the files, also after a selection.
        self._file_models = self.models
        self._file_labels = self.labels
        self._scores = tuple(scores)
        self._names = names
        self._n_instances = n_instances
        self._scratch = scratch

    def __len__(self) -> int:
        return self._n_instances

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
        """Read the instances from `start` to `stop`, named by their positions.

        Parameters
        ----------
        start, stop : int
            Positions of the first instance and of the one after the last.

        Returns
        -------
        Predictions
        """
        stop = min(stop, len(self))
        block = Predictions.from_parts(
            self._file_models,
            np.arange(start, stop),
            self._file_labels,
            [scores.take(slice(start, stop)) for scores in self._scores],
        )
        return prepared(block.as_block(self.many), self._steps)

    def named_blocks(
        self, start: int, stop: int, size: int
    ) -> Iterator[tuple[Predictions, pl.Series]]:
        """Iterate over blocks of instances with the names of the instances.

        Parameters
        ----------
        start, stop : int
            Positions of the first instance and of the one after the last.
        size : int
            Number of instances in a block.

        Yields
        ------
        block : Predictions
        names : Series of str
        """
        for block_start in range(start, stop, size):
            block_stop = min(stop, block_start + size)
            block = self.read(block_start, block_stop)
            yield block, self.names(block_start, block_stop)

    def names(self, start: int, stop: int) -> pl.Series:
        """Read the names of the instances from `start` to `stop`.

        Parameters
        ----------
        start, stop : int
            Positions of the first instance and of the one after the last.

        Returns
        -------
        Series of str
        """
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

    Wide Parquet tables that list the same instances in the same order are read from
    their files. Other tables are copied to scratch files first: text, long tables, and
    tables in another order. Compressed files, and files of other formats than Parquet,
    CSV and TSV, are read into memory for that, one at a time.

    Parameters
    ----------
    paths, format, instances, labels, models, reading
        As in `read_predictions`.
    scratch : str or path-like, default=None
        An existing folder for scratch files, which are not removed. By default, they
        are in a temporary folder that is removed with the result.

    Returns
    -------
    FilePredictions

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
    scratch_folder = Scratch(scratch)
    folder = scratch_folder.folder
    with make_read_options(reading) as options:
        files = list_input_files(paths, format, options)
        tracked_files = list(track(files, len(files), "scanning"))
        tables = read_panel_tables(tracked_files, models, folder)

    model_names, names, label_names, table_scores = align_tables(
        tables, instances, labels
    )
    scores = []
    front_scores = []  # of one instance, to show the types and names of all
    for position, model_scores in enumerate(table_scores):
        ordered = _allow_any_order(model_scores, folder / f"rows-{position}")
        scores.append(ordered)
        front_scores.append(np.zeros((1, len(label_names)), ordered.matrix.dtype))

    path = folder / "instances.parquet"
    name_frame = pl.Series("0", names).cast(pl.String).to_frame()
    name_frame.write_parquet(path, row_group_size=2**17)
    return FilePredictions(
        Predictions(front_scores, models=model_names, labels=label_names),
        scores,
        names=on_disk.SequentialReader(pl.scan_parquet(path, glob=False), "the panel"),
        n_instances=len(names),
        scratch=scratch_folder,
    )


def _allow_any_order(scores: AlignedScores, path: Path) -> AlignedScores:
    """Return scores whose rows can be read in the order of the panel."""
    if scores.rows is None:
        return scores

    # The rows of a Parquet file can only be read in their order.
    matrix = scores.matrix
    is_sequential = isinstance(matrix, on_disk.ParquetMatrix | RelabeledMatrix)
    rows = scores.rows[scores.rows >= 0]
    is_in_order = bool((np.diff(rows) > 0).all())
    if is_sequential and not is_in_order:
        matrix = on_disk.DenseFile.create(matrix, path.with_suffix(".scores.npy"))

    # The file takes the place of the array of rows: only slices of it are read.
    row_file = on_disk.DenseFile.create(scores.rows, path.with_suffix(".npy"))
    return replace(scores, matrix=matrix, rows=cast(IntArray, row_file))
