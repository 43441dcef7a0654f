"""Writing of tables to files, at once or block by block."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, Protocol, get_args, runtime_checkable

import numpy as np
import polars as pl
from polars.io.plugins import register_io_source
from scipy import sparse

from ..errors import InputError
from ..execution.local import map_with_progress
from ..linalg.sparse_scores import Cells
from ..predictions import Array, Predictions, ScoreTable, canonical_csr
from . import files, layouts
from .files import COMPRESSIONS, STANDARD, AnyPath, display
from .formats.registry import Format, format_of
from .layouts import Layout

_GROUP_ROWS = 2**15  # rows of a row group of Parquet
_SLICE_ROWS = 2**13  # rows that wait for the writer at the same time

STREAMED = ("parquet", "csv", "tsv")  # formats that can be written block by block

# Computes what is written for a block of predictions, such as its scores (n, l).
Compute = Callable[[Predictions], Array]

# Blocks of predictions with the names of their instances.
NamedBlocks = Iterator[tuple[Predictions, pl.Series]]

# Returns the rows that are written for a block, and its number of missing predictions.
_MakeFrame = Callable[[Predictions, pl.Series], tuple[pl.DataFrame, int]]


class LocalBlocks(Protocol):
    """Predictions that this process reads block by block."""

    labels: tuple[str, ...]

    def __len__(self) -> int: ...

    @property
    def block_size(self) -> int:
        """Number of instances in a block."""

    def named_blocks(self, start: int, stop: int, size: int) -> NamedBlocks:
        """Read instances block by block, with their names."""


@runtime_checkable
class ClusterBlocks(Protocol):
    """Predictions that the workers of a cluster read."""

    labels: tuple[str, ...]

    def map_shares(
        self, function: Callable[[int, NamedBlocks], int], doing: str
    ) -> list[int]:
        """Call a function for each share of the instances, where the share is."""


def write_table(
    path: AnyPath,
    table: ScoreTable,
    *,
    format: str | None = None,
    layout: Layout = "wide",
    force: bool = False,
) -> None:
    """Write one table, so that `read_table` returns exactly the same table.

    The file appears only when it is complete.

    Parameters
    ----------
    path : str or path-like
        The file; ``-`` is standard output.
    table : ScoreTable
        Its scores are dense or sparse; NaN is missing.
    format : str, default=None
        One of `FORMATS`. By default the suffix of the file selects it, also before
        ``.gz`` and ``.zst``.
    layout : {"wide", "long", "ranked"}, default="wide"
        ``"wide"`` has one row for each instance, ``"long"`` one row for each score.
        ``"ranked"`` is long with the rank of each score, from the best score of an
        instance to the worst, without missing scores. CSV, TSV, Parquet and Feather
        have all three layouts.
    force : bool, default=False
        Whether to replace an existing file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "consensus.csv"
    >>> write_table(path, ScoreTable("consensus", [[0.5, 0.25]], ["7"], ["law", "war"]))
    >>> print(path.read_text(), end="")
    instance,law,war
    7,0.5,0.25
    """
    form = format_of(path, format, written=True)
    check_layout(form, layout)
    scores = table.scores
    is_selection = isinstance(scores, Cells)  # written as they are
    if sparse.issparse(scores) and not is_selection:
        table = replace(table, scores=canonical_csr(scores))
    elif not is_selection:
        table = replace(table, scores=np.asarray(scores))

    with (
        files.atomic_write(path, force) as file,
        files.open_compressed(file, path) as packed,
        _system_errors(),
    ):
        form.module.write(packed, table, layout, **form.options)


def check_layout(form: Format, layout: str) -> None:
    """Check that a layout exists, and that a format can be written in it.

    Parameters
    ----------
    form : Format
        The format of the output.
    layout : str
        Name of the layout.

    Examples
    --------
    >>> check_layout(format_of("a.jsonl"), "ranked")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: layout: found 'ranked' for JSONL, expected a ...
    """
    if layout not in get_args(Layout):
        raise InputError(
            where="layout", found=repr(layout), expected="'wide', 'long' or 'ranked'"
        )

    module_name = form.module_name or form.name
    if layout == "ranked" and module_name in ("jsonl", "npz"):
        raise InputError(
            where="layout",
            found=f"{layout!r} for {form.title}",
            expected="a table, such as CSV",
        )


def write_blocks(
    path: AnyPath,
    predictions: LocalBlocks | ClusterBlocks,
    compute: Compute,
    *,
    format: str | None = None,
    layout: Layout = "wide",
    force: bool = False,
) -> int:
    r"""Compute and write scores block by block, for predictions that are not in memory.

    The output appears only when it is complete.

    Parameters
    ----------
    path : str or path-like
        The output: Parquet, CSV or TSV. Workers of a cluster write Parquet as a folder
        of parts.
    predictions : LocalBlocks or ClusterBlocks
        The result of `scan_predictions` or `from_dask`.
    compute : callable
        Takes a block of predictions and returns its scores (n, l) or label sets.
    format, layout, force
        As in `write_table`.

    Returns
    -------
    int
        Number of missing predictions.

    Examples
    --------
    >>> import tempfile
    >>> import mlconsensus as mlc
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "ann.csv").write_text("id,law,war\n7,1,0\n8,,1\n")
    >>> panel = mlc.scan_predictions(folder / "ann.csv")
    >>> write_blocks(folder / "out.csv", panel, lambda block: block.to_array()[0])
    1
    >>> print((folder / "out.csv").read_text(), end="")
    instance,law,war
    7,1.0,0.0
    8,,1.0
    """
    form = streamed_format(path, format)
    make_frame = partial(_make_frame, compute, predictions.labels, layout)
    if isinstance(predictions, ClusterBlocks):
        return _write_parts(path, predictions, make_frame, form, force)

    n_instances = len(predictions)
    size = max(1, predictions.block_size // 2)  # scores take more memory than labels
    blocks = predictions.named_blocks(0, n_instances, size)
    n_blocks = -(-n_instances // size)
    n_missing = 0

    def iterate_frames() -> Iterator[pl.DataFrame]:
        """Make the rows of all blocks, and count the missing predictions."""
        nonlocal n_missing
        frames = map_with_progress(
            blocks, lambda block: make_frame(*block), n_blocks, "combining"
        )
        for frame, n_missing_of_block in frames:
            n_missing += n_missing_of_block
            yield frame

    with files.atomic_write(path, force) as file, _system_errors():
        _sink(iterate_frames(), file, form)

    return n_missing


def streamed_format(path: AnyPath, format: str | None = None) -> str:
    """Return the format of an output that can be written block by block.

    Parameters
    ----------
    path : str or path-like
        The output.
    format : str, default=None
        One of `FORMATS`. By default the suffix selects it.

    Returns
    -------
    str

    Examples
    --------
    >>> streamed_format("a.parquet")
    'parquet'
    """
    name = format_of(path, format, written=True).name
    if os.fspath(path) == STANDARD:
        raise InputError(
            where="standard output",
            found="it as the place of a streamed consensus",
            expected="--output FILE",
        )

    is_compressed = Path(path).suffix.lower() in COMPRESSIONS
    if is_compressed or name not in STREAMED:
        raise InputError(
            where=display(path),
            found="a format that cannot be written block by block",
            expected=f"one of {', '.join(STREAMED)}, not compressed",
        )

    return name


def _make_frame(
    compute: Compute,
    labels: tuple[str, ...],
    layout: Layout,
    block: Predictions,
    names: pl.Series,
) -> tuple[pl.DataFrame, int]:
    """Return the rows of a block's scores, and its number of missing predictions."""
    label_names = pl.Series(labels, dtype=pl.String)
    rows = layouts.make_block(compute(block), names, label_names, layout)
    return rows, block.n_missing


def _sink(frames: Iterator[pl.DataFrame], file: IO[bytes], form: str) -> None:
    """Write frames one below the other while they are computed."""
    first_frame = next(frames)
    context = copy_context()
    is_stopped = False

    def iterate_slices(*pushed_down: object) -> Iterator[pl.DataFrame]:
        """Compute the frames in the caller's context, which shows the progress."""
        frame: pl.DataFrame | None = first_frame
        while frame is not None and not is_stopped:
            yield from frame.iter_slices(_SLICE_ROWS)
            frame = context.run(next, frames, None)

    rows = register_io_source(iterate_slices, schema=first_frame.schema)
    if form == "parquet":
        sink = partial(
            rows.sink_parquet,
            file,
            compression="snappy",
            statistics=False,
            row_group_size=_GROUP_ROWS,
        )
    else:
        separator = ","
        if form == "tsv":
            separator = "\t"

        text = rows.with_columns(pl.col(pl.Boolean).cast(pl.UInt8))
        sink = partial(text.sink_csv, file, separator=separator)

    # The writer has its own thread, so that Ctrl-C interrupts this one, and only once.
    with ThreadPoolExecutor(1) as writer:
        try:
            writer.submit(sink).result()
        finally:
            is_stopped = True


def _write_parts(
    path: AnyPath,
    predictions: ClusterBlocks,
    make_frame: _MakeFrame,
    form: str,
    force: bool,
) -> int:
    """Write a file for each share on the workers; a text file is made of these files.

    Returns the number of missing predictions.
    """
    target = Path(os.path.realpath(path))
    with files.writable(path), _system_errors():
        folder = files.make_part_path(target)
        folder.mkdir()
        try:
            write_part = partial(_write_part, make_frame, folder)
            n_missing = int(sum(predictions.map_shares(write_part, "combining")))
            if form == "parquet" and not target.exists():
                files.put_in_place(folder, target)
            else:
                with files.atomic_write(path, force) as file:
                    parts = pl.scan_parquet(sorted(folder.iterdir()), glob=False)
                    batches = parts.collect_batches(maintain_order=True)
                    _sink(iter(batches), file, form)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    return n_missing


def _write_part(
    make_frame: _MakeFrame, folder: Path, start: int, blocks: NamedBlocks
) -> int:
    """Write the rows of one share, and return its number of missing predictions."""
    frames = []
    n_missing = 0
    for block, names in blocks:
        frame, n_missing_of_block = make_frame(block, names)
        frames.append(frame)
        n_missing += n_missing_of_block

    # A task that is repeated writes the same file again.
    part = folder / f".{start}.{os.getpid()}"
    pl.concat(frames).write_parquet(part, compression="snappy", statistics=False)
    part.replace(folder / f"part-{start:012}.parquet")
    return n_missing


@contextmanager
def _system_errors() -> Iterator[None]:
    """Turn errors of Polars that quote a system error, such as a full disk, into it."""
    try:
        yield
    except (InputError, OSError):
        raise
    except Exception as error:
        match = re.search(r"(?:\(os error|\[Errno) (\d+)[)\]]", str(error))
        if match is None:
            raise

        number = int(match[1])
        raise OSError(number, os.strerror(number)) from error
