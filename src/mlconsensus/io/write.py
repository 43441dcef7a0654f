"""Tables → files, whole or block by block."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import IO, Any, get_args

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

# rows of a Parquet file that are written together, and that wait for it as one
_GROUP = 2**15
_PIECE = 2**13

STREAMED = ("parquet", "csv", "tsv")  # formats that can be written block by block

Made = Callable[[Predictions], Array]  # turns a block into what is to be written of it
Framed = Callable[
    [Predictions, pl.Series], tuple[pl.DataFrame, int]
]  # its rows, and how many cells are missing


def write_table(
    path: AnyPath,
    table: ScoreTable,
    *,
    format: str | None = None,
    layout: Layout = "wide",
    force: bool = False,
) -> None:
    """Write one table so that `read_table` gives it back exactly; the file appears whole or not at all.

    Parameters
    ----------
    path
        A file, or ``-`` for standard output.
    table
        Its scores are dense or sparse; NaN is missing.
    format
        One of `FORMATS`; by default what the suffix says, also before ``.gz`` and
        ``.zst``.
    layout
        ``"wide"``: a row an instance; ``"long"``: a row a score; ``"ranked"``: the same
        from the best of an instance to the worst, with its rank, without missing
        scores. CSV, TSV, Parquet and Feather have all three.
    force
        Whether to replace a file that exists.

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
    if not isinstance(table.scores, Cells):
        is_sparse = sparse.issparse(table.scores)
        table = table._replace(
            scores=canonical_csr(table.scores)
            if is_sparse
            else np.asarray(table.scores)
        )

    with (
        files.atomic_write(path, force) as file,
        files.open_compressed(file, path) as packed,
        _system_errors(),
    ):
        form.module.write(packed, table, layout, **form.options)


def check_layout(form: Format, layout: str) -> None:
    """Refuse a layout that there is not, or that a format has no rows for.

    Examples
    --------
    >>> check_layout(format_of("a.jsonl"), "ranked")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: layout: found 'ranked' for JSONL, expected a table, such as CSV
    """
    if layout not in get_args(Layout):
        raise InputError(
            where="layout", found=repr(layout), expected="'wide', 'long' or 'ranked'"
        )

    rows = layout != "ranked" or (form.module_name or form.name) not in ("jsonl", "npz")
    if not (rows):
        raise InputError(
            where="layout",
            found=f"{layout!r} for {form.title}",
            expected="a table, such as CSV",
        )


def write_blocks(
    path: AnyPath,
    panel: Any,
    made: Made,
    *,
    format: str | None = None,
    layout: Layout = "wide",
    force: bool = False,
) -> int:
    r"""Write what is made of each block of a panel that is not in memory; the output appears whole or not at all.

    Parameters
    ----------
    path
        Where to write: Parquet, CSV or TSV. Workers of a cluster write Parquet as a
        folder of parts.
    panel
        What `scan_predictions` or `from_dask` gives.
    made
        Turns a block into scores (n, l), or into what is decided from them.
    format, layout, force
        As in `write_table`.

    Returns
    -------
    How many of the panel's predictions are missing.

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
    frame = partial(_frame, made, panel.labels, layout)
    if hasattr(panel, "map_shares"):  # the workers of a cluster
        return _write_parts(path, panel, frame, form, force)

    size = max(1, panel.block_size // 2)  # scores take more memory than decisions
    work = panel.named_blocks(0, len(panel), size)
    n_blocks = -(-len(panel) // size)
    missing: list[int] = []

    def frames() -> Iterator[pl.DataFrame]:
        for rows, silent in map_with_progress(
            work, lambda item: frame(*item), n_blocks, "combining"
        ):
            missing.append(silent)
            yield rows

    with files.atomic_write(path, force) as file, _system_errors():
        _sink(frames(), file, form)

    return sum(missing)


def streamed_format(path: AnyPath, format: str | None = None) -> str:
    """Return the format of an output that can be written block by block.

    Examples
    --------
    >>> streamed_format("a.parquet")
    'parquet'
    """
    name = format_of(path, format, written=True).name
    piped = os.fspath(path) == STANDARD
    if piped:
        raise InputError(
            where="standard output",
            found="it as the place of a streamed consensus",
            expected="--output FILE",
        )

    streamed = name in STREAMED and Path(path).suffix.lower() not in COMPRESSIONS
    those = f"one of {', '.join(STREAMED)}, not compressed"
    if not (streamed):
        raise InputError(
            where=display(path),
            found="a format that cannot be written block by block",
            expected=those,
        )

    return name


def _frame(
    made: Made,
    labels: tuple[str, ...],
    layout: Layout,
    block: Predictions,
    names: pl.Series,
) -> tuple[pl.DataFrame, int]:
    rows = layouts.make_block(
        made(block), names, pl.Series(labels, dtype=pl.String), layout
    )
    return rows, block.n_missing


def _sink(frames: Iterator[pl.DataFrame], file: IO[bytes], form: str) -> None:
    """Write frames one below the other as they come."""
    first = next(frames)
    context = copy_context()
    stopped = False

    def walked(*pushed_down: object) -> Iterator[pl.DataFrame]:
        """Walk the frames in the context of the caller, who shows how far it has come."""
        frame: pl.DataFrame | None = first
        while frame is not None and not stopped:
            yield from frame.iter_slices(_PIECE)
            frame = context.run(next, frames, None)

    lazy = register_io_source(walked, schema=first.schema)
    if form == "parquet":
        sink = partial(
            lazy.sink_parquet,
            file,
            compression="snappy",
            statistics=False,
            row_group_size=_GROUP,
        )
    else:
        text = lazy.with_columns(pl.col(pl.Boolean).cast(pl.UInt8))
        sink = partial(text.sink_csv, file, separator="\t" if form == "tsv" else ",")

    # In a thread of its own, so that Ctrl-C is heard here, and once.
    with ThreadPoolExecutor(1) as writer:
        try:
            writer.submit(sink).result()
        finally:
            stopped = True


def _write_parts(
    path: AnyPath, panel: Any, frame: Framed, form: str, force: bool
) -> int:
    """Let workers write the rows of their blocks, a file each; a text file is put together from these."""
    target = Path(os.path.realpath(path))
    with files.writable(path), _system_errors():
        folder = files.make_part_path(target)
        folder.mkdir()
        try:
            missing = int(
                sum(panel.map_shares(partial(_write_part, frame, folder), "combining"))
            )
            if form == "parquet" and not target.exists():
                files.put_in_place(folder, target)
            else:
                with files.atomic_write(path, force) as file:
                    rows = pl.scan_parquet(
                        sorted(folder.iterdir()), glob=False
                    ).collect_batches(maintain_order=True)
                    _sink(iter(rows), file, form)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    return missing


def _write_part(
    frame: Framed,
    folder: Path,
    start: int,
    blocks: Iterator[tuple[Predictions, pl.Series]],
) -> int:
    """Write the rows of some blocks; a task that is run again writes the same."""
    part = folder / f".{start}.{os.getpid()}"
    made = [frame(block, names) for block, names in blocks]
    pl.concat(rows for rows, _ in made).write_parquet(
        part, compression="snappy", statistics=False
    )
    part.replace(folder / f"part-{start:012}.parquet")
    return sum(silent for _, silent in made)


@contextmanager
def _system_errors() -> Iterator[None]:
    """Let what Polars calls an error of its own, when a disk is full for example, be the system's error that it is."""
    try:
        yield
    except (InputError, OSError):
        raise
    except Exception as fault:
        number = re.search(r"(?:\(os error|\[Errno) (\d+)[)\]]", str(fault))
        if number is None:
            raise

        raise OSError(int(number[1]), os.strerror(int(number[1]))) from fault
