"""What commands share for panels that do not fit into memory: from disk, or on a cluster."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError, expect
from .options import PanelFiles, read_panel, say, say_missing, together
from .output import Output

if TYPE_CHECKING:
    from ..streamed import Written

_LOCAL = "local"  # a cluster of this machine's own
_STREAM = "Walk the files block by block with little memory, or read them whole; by default as free memory suggests."
_DASK = "Let the workers of a Dask cluster do the work; without an address, one of this machine's own."

stream_option = click.option("--stream/--no-stream", default=None, help=_STREAM)
dask_option = click.option("--dask", is_flag=False, flag_value=_LOCAL, metavar="[ADDRESS]", help=_DASK)
large_options = together(stream_option, dask_option)


@contextmanager
def opened(
    source: PanelFiles, stream: bool | None, dask: str | None, check: Callable[[], None] = lambda: None
) -> Iterator[Any]:
    """Read a panel, or scan it where it is to stay on disk, to be walked here or by the workers of a cluster.

    `check` raises an `InputError` where it cannot stay there; that is an error only if it was asked for.
    """
    from ..engines.dask import DaskPanel, connected
    from ..io import scan_predictions

    if not _stays_on_disk(source, stream, dask, check):
        yield read_panel(source, many=True)
        return
    gc.freeze()  # what is imported stays, and need not be looked through again and again
    with nullcontext() if dask is None else connected(None if dask == _LOCAL else dask):
        panel = scan_predictions(source.files, **source.matched())
        yield panel if dask is None else DaskPanel.from_scanned(panel)


def _stays_on_disk(source: PanelFiles, stream: bool | None, dask: str | None, check: Callable[[], None]) -> bool:
    """Tell whether to leave the files on disk: as the options say, or as the memory that is free suggests."""
    from ..engines.machine import available_memory
    from ..io.scanning import needed_memory

    expect(dask is None or stream is not False, "--dask", "together with --no-stream", "one of the two")
    asked = dask is not None or stream is True
    try:
        check()
    except InputError:
        if asked:
            raise
        return False
    if asked or stream is False:
        return asked
    large = needed_memory(source.files, source.input_format) > available_memory() / 2
    if large:
        say("streaming: the files would take more than half of the memory that is free (--no-stream reads them whole)")
    return large


def _check_room(panel: Any, layout: str) -> None:
    """Refuse a wide table of many labels that would not fit into memory, before the work."""
    from ..engines.machine import available_memory

    _, n, l = panel.shape
    fits = not panel.many or layout != "wide" or 16 * n * l < available_memory() / 2
    expect(fits, "--layout wide", f"{n:,} × {l:,} scores", "--layout ranked or long, for example with --top-k 10")


def write(panel: Any, output: Output, solved: bool = False, **chosen: Any) -> Written:
    """Combine a panel, or apply the method that is `solved`, and write the consensus: at once or block by block."""
    from ..consensus import Consensus, combine
    from ..panel.predictions import Predictions
    from ..streamed import Written, write_consensus

    _check_room(panel, output.layout)
    if not isinstance(panel, Predictions):
        values = None if output.decide is None and output.top_k is None else output.values
        form = {"format": output.output_format, "layout": output.layout, "force": output.force}
        done = write_consensus(panel, output.output, values=values, solved=solved, **form, **chosen)
        say_missing(done.n_missing, panel.shape)
        return done
    if solved:
        combiner = chosen["method"]
        scores, names = combiner.transform(panel), (panel.instances, combiner.labels_)
        found = Consensus(scores, combiner.name, "it was solved for", combiner, *names, panel)
    else:
        found = combine(panel, **chosen)
    output.write(found)
    return Written(found.method, found.reason, found.combiner, panel.n_missing)
