"""Files that grow block by block: each block is a frame that was encoded by itself, perhaps by another process."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from typing import IO, Literal

import polars as pl

from . import parquet_footer

Kind = Literal["parquet", "csv", "tsv"]
KINDS: tuple[Kind, ...] = ("parquet", "csv", "tsv")

_HELD = 2**28  # bytes of an output that the system may hold in memory
_SAMPLE = 1_000  # scores that are looked at to tell whether they repeat


def encoded(frame: pl.DataFrame, kind: Kind, first: bool, out: io.BytesIO | None = None) -> memoryview:
    r"""Return a block's bytes; of a text file, the first block has the header.

    Where `out` is given it holds them, in place of what it held before: fresh memory costs as much as the encoding.

    Examples
    --------
    >>> bytes(encoded(pl.DataFrame({"id": ["7"], "x": [0.5]}), "tsv", first=True))
    b'id\tx\n7\t0.5\n'
    """
    out = io.BytesIO() if out is None else out
    out.seek(0)
    if kind == "parquet":
        # Of scores that hardly repeat snappy saves nothing, at half the cost; nobody looks for a score by its size.
        sample = frame[:_SAMPLE, -1]
        compression: Literal["snappy", "uncompressed"] = (
            "snappy" if sample.n_unique() < 0.5 * len(sample) else "uncompressed"
        )
        frame.write_parquet(out, compression=compression, statistics=False, row_group_size=max(1, frame.height))
    else:
        text = frame.with_columns(pl.col(pl.Boolean).cast(pl.UInt8))
        text.write_csv(out, include_header=first, separator="\t" if kind == "tsv" else ",")
    return out.getbuffer()[: out.tell()]  # no copy


class Growing:
    """A file to which blocks are appended.

    Parameters
    ----------
    file
        Open for reading and writing.
    kind
        Its format.
    lengths
        Those of the blocks that are in it already; what stands behind them is cut off.

    Examples
    --------
    >>> file = io.BytesIO()
    >>> growing = Growing(file, "parquet")
    >>> for value in (1, 2):
    ...     growing.append(encoded(pl.DataFrame({"x": [value]}), "parquet", first=True))
    >>> growing.finish()
    >>> pl.read_parquet(file.getvalue())["x"].to_list()
    [1, 2]
    """

    def __init__(self, file: IO[bytes], kind: Kind, lengths: Sequence[int] = ()) -> None:
        self._file, self._held = file, 0
        self._joint = parquet_footer.Joint() if kind == "parquet" else None
        file.truncate(sum(lengths))
        if self._joint:
            for length in lengths:
                self._joint.take(file, length)
        file.seek(0, os.SEEK_END)

    def append(self, data: memoryview) -> None:
        """Write a block."""
        self._file.write(data)
        self._file.flush()
        if self._joint:
            self._joint.add(data, len(data))
        self._held += len(data)
        if self._held > _HELD and hasattr(os, "posix_fadvise"):
            # An output larger than memory would else take all of it, and fresh memory costs more than writing does.
            os.fdatasync(self._file.fileno())
            os.posix_fadvise(self._file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            self._held = 0

    def finish(self) -> None:
        """Make one whole file of all blocks."""
        if self._joint:
            self._joint.finish(self._file)


def finish(file: IO[bytes], kind: Kind, lengths: Sequence[int]) -> None:
    """Make one whole file of blocks of these lengths that stand behind each other.

    Examples
    --------
    >>> blocks = [encoded(pl.DataFrame({"x": [value]}), "parquet", first=True) for value in (1, 2)]
    >>> file = io.BytesIO(b"".join(blocks))
    >>> finish(file, "parquet", [len(block) for block in blocks])
    >>> pl.read_parquet(file.getvalue())["x"].to_list()
    [1, 2]
    """
    if kind == "parquet":
        parquet_footer.join(file, lengths)
