"""What commands share for panels that do not fit into memory: from disk, or on a cluster."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .options import say, say_missing
from .output import decided, say_done

if TYPE_CHECKING:
    from ..consensus import Written
    from ..estimators import Combiner

F = TypeVar("F", bound=Callable[..., Any])

_LOCAL = "local"  # a cluster of this machine's own

stream_option = click.option(
    "--stream/--no-stream",
    default=None,
    help="Walk the files block by block with little memory, or read them whole; by default what the memory that is "
    "free suggests.",
)
dask_option = click.option(
    "--dask",
    is_flag=False,
    flag_value=_LOCAL,
    metavar="[ADDRESS]",
    help="Let the workers of a Dask cluster do the work; without an address, one of this machine's own.",
)


def large_options(command: F) -> F:
    """Add how to make a consensus that does not fit into memory."""
    return stream_option(dask_option(command))


def is_large(files: Sequence[str], input_format: str | None, output: str, output_format: str | None, decide: str | None,
             stream: bool | None, dask: str | None) -> bool:  # fmt: skip
    """Tell whether to leave the files on disk, and refuse what cannot be done then."""
    check = partial(_check_streamable, output, output_format, decide)
    return stays_on_disk(files, input_format, stream, dask, check)


def _check_streamable(output: str, output_format: str | None, decide: str | None) -> None:
    from ..errors import InputError
    from ..io.writing import streamed_format

    streamed_format(output, output_format)
    if decide == "labels":
        raise InputError("--decide labels: found a panel to be streamed, expected one that fits into memory")


def stays_on_disk(files: Sequence[str], input_format: str | None, stream: bool | None, dask: str | None,
                  check: Callable[[], None] = lambda: None) -> bool:  # fmt: skip
    """Tell whether to leave the files on disk: as the options say, or as the memory that is free suggests.

    `check` raises an `InputError` where it cannot be done; that is an error only if it was asked for.
    """
    from ..engines.machine import available_memory
    from ..errors import InputError
    from ..io.scanning import needed_memory

    asked = "--dask" if dask is not None else "--stream" if stream else None
    if stream is False:
        if asked is not None:
            raise InputError(f"{asked}: found together with --no-stream, expected one of the two")
        return False
    try:
        check()
    except InputError:
        if asked is not None:
            raise
        return False
    if asked is None and needed_memory(files, input_format) > available_memory() / 2:
        say("streaming: the files would take more than half of the memory that is free (--no-stream reads them whole)")
        return True
    return asked is not None


@contextmanager
def scanned(
    files: Sequence[str], input_format: str | None, instances: str, labels: str, dask: str | None
) -> Iterator[Any]:
    """Scan files that stay on disk, to be walked here or by the workers of a cluster, which may end after it."""
    from ..io import scan_predictions

    gc.freeze()  # what is imported stays, and need not be looked through again and again
    scan = partial(scan_predictions, files, format=input_format, instances=instances, labels=labels)  # type: ignore[arg-type]
    if dask is None:
        yield scan()
        return
    from ..engines.dask import DaskPanel, connected

    with connected(None if dask == _LOCAL else dask):
        yield DaskPanel.from_scanned(scan())


def write_large(panel: Any, output: str, decide: str | None, threshold: float, empty: str, top_k: int | None,
                **options: Any) -> Written:  # fmt: skip
    """Write the consensus of a scanned panel."""
    from ..consensus import write_consensus

    values = None
    if decide is not None or top_k is not None:
        values = partial(decided, decide=decide, threshold=threshold, empty=empty, top_k=top_k)
    done = write_consensus(panel, output, values=values, **options)
    say_missing(done.n_missing, panel.shape)
    return done


def combine_large(
    files: Sequence[str], input_format: str | None, instances: str, labels: str, output: str,
    output_format: str | None, method: str | Combiner | None, optimize: str, decide: str | None, threshold: float,
    empty: str, top_k: int | None, layout: str, force: bool, as_json: bool, dask: str | None,
    weights: dict[str, float] | None, in_memory: Sequence[str],
) -> None:  # fmt: skip
    """Combine files that stay on disk, and say what was done."""
    from ..errors import InputError
    from ..insight.diagnostics import examine

    if in_memory:
        raise InputError(f"{in_memory[0]}: found with a panel to be streamed, expected one that fits into memory")
    with scanned(files, input_format, instances, labels, dask) as panel:
        done = write_large(
            panel, output, decide, threshold, empty, top_k, optimize=optimize, method=method, weights=weights,
            format=output_format, layout=layout, force=force,
        )  # fmt: skip
        warnings = examine(panel).warnings()
    say_done(done.method, done.reason, panel, done.n_missing, warnings, output, as_json)
