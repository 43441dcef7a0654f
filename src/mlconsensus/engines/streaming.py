"""A consensus larger than memory: both passes over blocks from disk, written as it goes, resumed if interrupted.

What is done so far is in a hidden folder beside the output: statistics, finished blocks, and a fingerprint of the work
they belong to. The output takes its place when it is whole, and the folder goes.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from io import BytesIO
from itertools import count
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from .. import __version__
from ..combiners.method import merged
from ..consensus import Optimize, choose
from ..errors import InputError
from ..io.files import AnyPath, check_output, display, put_in_place, writable
from ..io.formats import Layout, format_of
from ..io.frames import block as frame_of
from ..io.growing import KINDS, Growing, Kind, encoded
from ..panel.predictions import Predictions
from ..panel.sources import LazySource
from ..parameters import Weights
from ..sites.state_file import read_state, to_arrays, write_state
from .local import each
from .part import emptied, held

if TYPE_CHECKING:
    from ..estimators import Combiner
    from ..io.scanning import ScannedPanel

S = TypeVar("S", bound=tuple[Any, ...])
Values = Callable[[NDArray[np.float64], Predictions], NDArray[Any]]

_KEEP_EVERY = 5.0  # seconds after which statistics are written down, and more if that takes long


class Writable(Protocol):
    """A panel that is not in memory."""

    models: tuple[str, ...]
    labels: tuple[str, ...]

    @property
    def block_size(self) -> int:
        """How many instances are worked on at a time."""

    def __len__(self) -> int: ...

    def fingerprint(self) -> Any:
        """Tell what would change if the predictions did."""

    def resumable(self, folder: Path) -> Any:
        """Return a source that keeps in the folder what it has done, and has ``write(encoder, folder)``."""


class Written(NamedTuple):
    """What `write_consensus` did."""

    method: str
    reason: str  # why that method
    combiner: Combiner  # fitted
    n_missing: int  # of all predictions


class Encoder(NamedTuple):
    """Turns a block into the bytes of its rows; light enough to be sent to another process."""

    apply: Callable[[Predictions], NDArray[np.float64]]
    values: Values | None
    labels: tuple[str, ...]
    layout: Layout
    kind: Kind

    def __call__(self, block: Predictions, names: pl.Series, out: BytesIO | None = None) -> tuple[memoryview, int]:
        """Return the bytes, kept in `out` if it is given, and how many predictions are missing."""
        scores = self.apply(block)
        made = scores if self.values is None else self.values(scores, block)
        frame = frame_of(made, names, pl.Series(self.labels, dtype=pl.String), self.layout)
        first = bool(block.instances[0] == 0)
        return encoded(frame, self.kind, first, out), block.n_missing


def write_consensus(
    panel: Writable,
    path: AnyPath,
    optimize: Optimize = "auto",
    *,
    method: str | Combiner | None = None,
    weights: Weights = None,
    format: str | None = None,
    layout: Layout = "wide",
    values: Values | None = None,
    force: bool = False,
    resume: bool = False,
    solved: bool = False,
) -> Written:
    r"""Combine predictions that are not in memory and write the consensus to a file, block by block.

    Parameters
    ----------
    panel
        What `scan_predictions` or `from_dask` gives.
    path
        Where to write: Parquet, CSV or TSV. It appears when it is whole.
    optimize, method, weights
        As in `combine`.
    format
        The format, where the suffix does not tell.
    layout
        As in `io.write_table`.
    values
        Turns the scores of a block into what is to be written; by default the scores themselves.
    force
        Whether to replace a file that exists.
    resume
        Whether to go on where the same work was interrupted, if it was. Otherwise it is done anew.
    solved
        Whether `method` is a combiner that was fitted or loaded before, and is only to be applied.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import mlconsensus as mlc
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "ann.csv").write_text("id,law,war\n7,1,0\n8,0,1\n")
    >>> panel = mlc.scan_predictions(folder / "ann.csv")
    >>> mlc.write_consensus(panel, folder / "consensus.csv", method="mv").method
    'MV'
    >>> print((folder / "consensus.csv").read_text(), end="")
    instance,law,war
    7,1.0,0.0
    8,0.0,1.0
    """
    kind = streamed_kind(path, format)
    check_output(path, force)
    chosen = choose(panel, optimize, method, weights)
    panel = chosen.combiner.in_fitted_order(panel) if solved else panel  # type: ignore[arg-type,assignment]
    work = {
        "version": __version__,
        "inputs": panel.fingerprint(),
        "models": list(panel.models),
        "labels": list(panel.labels),
        "instances": len(panel),
        "block size": panel.block_size,
        "method": chosen.method,
        "parameters": repr(sorted(chosen.combiner.get_params().items())),
        "output": [kind, layout, repr(getattr(values, "keywords", values))],
        "model": _digest(chosen.combiner) if solved else None,
    }
    target, folder = Path(os.path.realpath(path)), part_of(path)
    with writable(path), held(folder, display(path)):
        _begin(folder, work, resume)
        try:
            walked = panel.resumable(folder)
            combiner = chosen.combiner if solved else chosen.combiner.fit(walked)
            missing = walked.write(Encoder(combiner.applying(), values, panel.labels, layout, kind), folder)
        except InputError:  # with such input nobody can go on
            emptied(folder, ignore_errors=True)
            raise
        check_output(path, force)
        put_in_place(folder / "rows", target)
        emptied(folder, ignore_errors=True)
    return Written(chosen.method, chosen.reason, combiner, missing)


def streamed_kind(path: AnyPath, format: str | None = None) -> Kind:
    """Return the format of an output that can be written block by block.

    Examples
    --------
    >>> streamed_kind("a.parquet")
    'parquet'
    """
    name = format_of(path, format).name
    if os.fspath(path) == "-":
        raise InputError("standard output: found it as the place of a streamed consensus, expected --output FILE")
    found = next((kind for kind in KINDS if kind == name), None)
    if found is None or Path(path).suffix.lower() in (".gz", ".zst"):
        raise InputError(
            f"{display(path)}: found a format that cannot be written block by block, "
            f"expected one of {', '.join(KINDS)}, not compressed"
        )
    return found


def part_of(path: AnyPath) -> Path:
    """Return the folder that holds what is done so far of an output.

    Examples
    --------
    >>> part_of("consensus.parquet").name
    '.consensus.parquet.part'
    """
    target = Path(os.path.realpath(path))
    return target.with_name(f".{target.name[:100]}.part")


def _digest(combiner: Combiner) -> str:
    """Tell solved models apart."""
    arrays = to_arrays(combiner.solution_)
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays.values())).hexdigest()


def _begin(folder: Path, work: dict[str, Any], resume: bool) -> None:
    """Leave in the folder what the work can go on from, and what work it is."""
    begun = folder / "work.json"
    described = json.dumps(work, indent=1, default=str)
    if resume and begun.exists():
        _check_same(folder, json.loads(described))
        return
    begun.unlink(missing_ok=True)  # first: without it nobody goes on with the rest, should this be interrupted
    emptied(folder)
    begun.write_text(described)


def _check_same(folder: Path, work: dict[str, Any]) -> None:
    try:
        begun = json.loads((folder / "work.json").read_text())
    except (OSError, ValueError):
        begun = {}
    other = [name for name in work if not isinstance(begun, dict) or begun.get(name) != work[name]]
    if other:
        raise InputError(
            f"{folder}: found work begun with other {other[0]}, expected the same: without --resume it is done anew"
        )


class Resumable(LazySource):
    """A panel on disk whose passes are written down in a folder, and gone on with from there."""

    def __init__(self, panel: ScannedPanel, folder: Path) -> None:
        super().__init__(panel.models, panel.labels)
        self.panel, self.folder = panel, folder
        self._rounds = count()

    def __len__(self) -> int:
        return len(self.panel)

    @property
    def has_scores(self) -> bool:
        """Whether any model gives floats, not only decisions."""
        return self.panel.has_scores

    @property
    def block_size(self) -> int:
        """How many instances a block has."""
        return self.panel.block_size

    def blocks(self, size: int | None = None) -> Iterator[Predictions]:
        """Walk the instances."""
        return map(self.prepared, self.panel.blocks(size))

    def gather(self, statistics: Callable[[Predictions], S]) -> S:
        """First pass, from where it was interrupted; each pass of a fit has a file of its own."""
        path = self.folder / f"round-{next(self._rounds)}.state"
        starts = range(0, len(self), self.block_size)
        total: S | None = None
        done = 0
        if path.exists():
            header, arrays = read_state(path)
            done = int(header["blocks"])
            total = _restored(arrays, statistics(self._read(0)))
        kept, cost = time.monotonic(), 0.0
        todo = starts[done:]
        try:
            for found in each(map(self._read, todo), statistics, len(todo), "gathering"):
                total, done = found if total is None else merged(total, found), done + 1
                if time.monotonic() - kept > max(_KEEP_EVERY, 20 * cost):
                    began = time.monotonic()
                    _keep(path, total, done)
                    kept, cost = time.monotonic(), time.monotonic() - began
        finally:
            if total is not None and todo:
                _keep(path, total, done)
        assert total is not None
        return total

    def write(self, encoder: Encoder, folder: Path) -> int:
        """Second pass, from where it was interrupted: append the bytes of each block to the file ``rows``."""
        journal = folder / "journal"
        if not (folder / "rows").exists():  # not begun, or in its place already
            journal.unlink(missing_ok=True)
        finished = _journal(journal)
        lengths, missing = [length for length, _ in finished], sum(count for _, count in finished)
        starts = range(len(finished) * self.block_size, len(self), self.block_size)
        with (folder / "rows").open("r+b" if lengths else "w+b") as rows, journal.open("a") as lines:
            growing = Growing(rows, encoder.kind, lengths)
            todo = ((self._read(start), self.panel.names(start, start + self.block_size)) for start in starts)
            free: SimpleQueue[BytesIO] = SimpleQueue()  # buffers that have been written

            def encode(work: tuple[Predictions, pl.Series]) -> tuple[BytesIO, memoryview, int]:
                try:
                    out = free.get_nowait()
                except Empty:
                    out = BytesIO()
                return out, *encoder(*work, out)

            def append(out: BytesIO, data: memoryview, silent: int) -> None:
                """Write a block, and only then that it is there."""
                growing.append(data)
                lines.write(f"{len(data)} {silent}\n")
                lines.flush()
                data.release()
                free.put(out)

            under_way: deque[Future[None]] = deque()
            with ThreadPoolExecutor(1) as writer:  # the disk need not be waited for
                for out, data, silent in each(todo, encode, len(starts), "combining"):
                    missing += silent
                    if len(under_way) > 1:
                        under_way.popleft().result()
                    under_way.append(writer.submit(append, out, data, silent))
                for written in under_way:
                    written.result()
            growing.finish()
        return missing

    def _read(self, start: int) -> Predictions:
        return self.prepared(self.panel.read(start, start + self.block_size))


def _journal(path: Path) -> list[tuple[int, int]]:
    """Read how long each finished block is and how many of its predictions are missing."""
    text = path.read_text() if path.exists() else ""
    whole = text[: text.rfind("\n") + 1]
    if path.exists():
        path.write_text(whole)  # a line that was cut off goes
    return [(int(length), int(missing)) for length, missing in (line.split() for line in whole.splitlines())]


def _keep(path: Path, statistics: Any, blocks: int) -> None:
    new = path.with_suffix(".new")
    with new.open("wb") as file:
        write_state(file, {"kind": "part", "blocks": blocks}, to_arrays(statistics))
    new.replace(path)


def _restored(arrays: dict[str, NDArray[Any]], like: Any) -> Any:
    """Put statistics together from named arrays, field by field as in the statistics of one block."""
    fields = {}
    for name, tried in like._asdict().items():
        own = {key.partition(".")[2]: array for key, array in arrays.items() if key.partition(".")[0] == name}
        if hasattr(tried, "arrays"):
            fields[name] = type(tried).from_arrays(own, tried.shape, name)
        elif own:
            fields[name] = own[""] if own[""].shape else own[""].item()
    return type(like)(**fields)
