"""Both passes on a Dask cluster: a task for each block, statistics merged in a tree, rows written by workers.

Nothing whose size depends on the number of instances comes to the client.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from itertools import pairwise
from typing import Any, NamedTuple, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.budget import grant
from ..combiners.method import merged
from ..errors import InputError
from ..panel.alignment import Names, as_names
from ..panel.model_tables import tables_of
from ..panel.predictions import Predictions
from ..panel.sources import LazySource, Steps, prepared
from .machine import KEPT, available_memory, cores
from .progress import track

S = TypeVar("S", bound=tuple[Any, ...])

_FAN_IN = 8  # statistics that are merged by one task
_BLOCKS = 4  # blocks that one task reads from files, one after the other
_PATIENCE = 10.0  # seconds to wait for a worker when there is none: one that died may be started anew


class Share(NamedTuple):
    """The instances of one task."""

    start: int
    stop: int
    blocks: Any  # delayed: calling it walks them, each block with the names of its instances


class DaskPanel(LazySource):
    """Predictions that the workers of a cluster have, or read; `from_dask` makes it of arrays."""

    def __init__(self, models: Sequence[str], labels: Sequence[str], shares: Sequence[Share], has_scores: bool) -> None:
        super().__init__(models, labels)
        self._shares, self._has_scores = tuple(shares), has_scores
        self._scanned: Any = None

    @classmethod
    def from_arrays(cls, arrays: Any, models: Any = None, labels: Any = None) -> Self:
        """Make a panel of Dask arrays; see `from_dask`."""
        delayed = _dask().delayed
        named = _named(arrays, models)
        first = next(iter(named.values()))
        for name, array in named.items():
            _check(name, array, first)
        l = first.shape[1]
        named_labels = range(l) if labels is None else as_names(labels, "labels").tolist()
        names = [f"label_{at}" if labels is None else str(at) for at in named_labels]
        if len(names) != l:
            raise InputError(f"labels: found {len(names)} names, expected one for each of {l} labels")
        sizes = first.chunks[0]
        even = [array.rechunk({0: sizes, 1: -1}).to_delayed(optimize_graph=False).ravel() for array in named.values()]
        starts = np.cumsum([0, *sizes]).tolist()
        kinds = delayed((tuple(named), tuple(names)), traverse=False)
        shares = [
            Share(start, stop, delayed(_of_arrays, pure=False)(kinds, start, stop, *(chunks[at] for chunks in even)))
            for at, (start, stop) in enumerate(pairwise(starts))
            if stop > start
        ]
        return cls(tuple(named), names, shares, any(array.dtype.kind == "f" for array in named.values()))

    @classmethod
    def from_scanned(cls, panel: Any) -> Self:
        """Let workers read the files of a panel, which must be where they can see them."""
        delayed = _dask().delayed
        size = _BLOCKS * panel.block_size
        shared = delayed(panel, traverse=False)
        shares = [
            Share(start, stop, delayed(_of_files, pure=False)(shared, start, stop))
            for start, stop in ((start, min(len(panel), start + size)) for start in range(0, len(panel), size))
        ]
        out = cls(panel.models, panel.labels, shares, panel.has_scores)
        out._scanned = panel
        return out

    def __len__(self) -> int:
        return self._shares[-1].stop

    @property
    def has_scores(self) -> bool:
        """Whether any model gives floats, not only decisions."""
        return self._has_scores

    @property
    def instances(self) -> Names:  # type: ignore[override]
        """The names of all instances."""
        found: Names = np.arange(len(self)) if self._scanned is None else self._scanned.instances
        return found

    def read(self, start: int, stop: int) -> Predictions:
        """Refuse: blocks are as the tasks have them."""
        raise NotImplementedError

    def blocks(self, size: int | None = None) -> Iterator[Predictions]:
        """Bring the instances here, block by block."""
        for share in self._shares:
            for block in self._tasks([share], _here, "fetching")[0]:
                yield from block.blocks(size)

    def gather(self, statistics: Callable[[Predictions], S]) -> S:
        """First pass: a task for each of the blocks, and a tree of tasks that merge what they found."""
        whole: S = self._tasks(self._shares, partial(_statistics_of, statistics), "gathering", _merged)[0]
        return whole

    def each(self, function: Callable[[int, Iterator[Any]], Any], doing: str) -> list[Any]:
        """Second pass: what a function makes of each share of the blocks, where it is.

        It gets the position of the first instance, and walks blocks with the names of their instances.
        """
        return self._tasks(self._shares, function, doing)

    def spread(self, apply: Callable[[Predictions], Any], dtype: Any = float) -> NDArray[Any]:
        """Second pass: a lazy Dask array (n, l)."""
        import dask.array

        da, l = cast("Any", dask.array), len(self.labels)
        tasks = self._delayed(self._shares, partial(_applied, apply, dtype))
        sizes = [(share.stop - share.start, l) for share in self._shares]
        arrays = [da.from_delayed(task, size, dtype=dtype) for task, size in zip(tasks, sizes, strict=True)]
        lazy: NDArray[Any] = da.concatenate(arrays)
        return lazy

    def _delayed(self, shares: Sequence[Share], function: Callable[..., Any]) -> list[Any]:
        """Return a task for each share, in which the function gets its start and walks its blocks."""
        delayed = _dask().delayed
        called, sent = delayed(_called, pure=False), delayed((function, self._steps), traverse=False)
        return [called(sent, share.start, share.blocks) for share in shares]

    def _tasks(self, shares: Sequence[Share], function: Any, doing: str, merged: Any = None) -> list[Any]:
        parts = self._delayed(shares, function)
        if merged is None:
            return _computed(parts, doing)
        merge_some = _dask().delayed(merged, pure=False)
        parts = [merge_some(parts[at : at + _FAN_IN]) for at in range(0, len(parts), _FAN_IN)]
        return _computed(parts, doing, merge_some)


def from_dask(arrays: Any, models: Any = None, labels: Any = None) -> DaskPanel:
    """Take predictions that are Dask arrays: `fit` runs on the cluster, and `transform` gives a lazy array.

    Parameters
    ----------
    arrays
        One array ``(m, n, l)``; or a sequence of `m` arrays ``(n, l)``; or ``{model name: array}``. Instances are
        worked on as they are chunked.
    models, labels
        Names, where `arrays` does not bring them.

    Returns
    -------
    DaskPanel
        What combiners take in place of `Predictions`.

    Examples
    --------
    >>> import dask.array as da
    >>> import mlconsensus as mlc
    >>> panel = mlc.from_dask({"a": da.zeros((4, 2), chunks=2), "b": da.ones((4, 2), chunks=2)})
    >>> panel
    <DaskPanel: 2 models × 4 instances × 2 labels>
    >>> mlc.MajorityVote().fit(panel).transform(panel).compute()[0]
    array([0.5, 0.5])
    """
    return DaskPanel.from_arrays(arrays, models, labels)


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Use the cluster at an address, or one of this machine's own, a process for each core, while work is done.

    Examples
    --------
    >>> with connected("nowhere"):
    ...     pass
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: --dask: found 'nowhere', expected an address such as tcp://host:8786, or none
    """
    if address is not None and ":" not in address:
        raise InputError(f"--dask: found {address!r}, expected an address such as tcp://host:8786, or none")
    distributed = _distributed()
    if address is None:
        with local_cluster(cores()) as cluster, distributed.Client(cluster) as client:
            yield client
        return
    try:
        client = distributed.Client(address, timeout=_PATIENCE)
    except (OSError, ValueError) as fault:
        reason = str(fault).splitlines()[0]
        raise InputError(f"--dask: found no scheduler at {address!r} ({reason}), expected one") from None
    with client:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError:
            raise InputError(f"--dask: found no worker at {address!r}, expected at least one") from None
        yield client


def local_cluster(workers: int) -> Any:
    """Start a cluster of this machine's own: processes of one thread each that keep memory for the next block.

    Dask has its workers give it back at once, and a third of the time goes into getting it again.
    """
    config, name = _dask().config, "distributed.nanny.pre-spawn-environ"
    cluster = _distributed().LocalCluster
    with config.set({name: dict(config.get(name)) | KEPT}):
        return cluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0")


def _dask() -> Any:
    try:
        import dask
    except ImportError:
        raise InputError("Dask: found none installed, expected pip install 'mlconsensus[dask]'") from None
    return dask


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise InputError("Dask: found none installed, expected pip install 'mlconsensus[dask]'") from None
    return distributed


def _computed(tasks: list[Any], doing: str, then: Any = None) -> list[Any]:
    """Run tasks on the cluster, or on threads where there is none, and bring their results here.

    `then`, a delayed function of a list of results, makes one of all, where they are.
    """
    client = _client()
    if client is None:
        results = list(_dask().compute(*(tasks if then is None else [then(tasks)])))
    else:
        futures = client.compute(_optimised(tasks))
        try:
            for _ in track(_finished(client, futures), len(futures), doing):
                pass
            if then is not None and len(futures) > 1:
                futures = [client.compute(then(futures))]
                for _ in _finished(client, futures):
                    pass
            results = client.gather(futures)
        except BaseException:
            client.cancel(futures, force=True)
            raise
    return results


def _optimised(tasks: list[Any]) -> list[Any]:
    """Optimise tasks as arrays are when they are computed: tasks of one name must be the same in both passes."""
    from dask.array.optimization import optimize
    from dask.delayed import Delayed
    from dask.highlevelgraph import HighLevelGraph

    keys = [task.key for task in tasks]
    graph = optimize(HighLevelGraph.merge(*(task.dask for task in tasks)), keys)  # type: ignore[no-untyped-call]
    return [Delayed(key, graph) for key in keys]  # type: ignore[no-untyped-call]


def _client() -> Any:
    """Return the cluster in use, if there is one; without one, Dask's own threads do the work."""
    if "distributed" not in sys.modules:
        return None
    try:
        return _distributed().default_client()
    except ValueError:
        return None


def _finished(client: Any, futures: list[Any]) -> Iterator[Any]:
    """Pass on futures as they are done; end with an error if one fails or all workers are gone."""
    distributed = _distributed()
    waiting, alone = set(futures), time.monotonic()
    while waiting:
        try:
            done = distributed.wait(list(waiting), timeout=0.5, return_when="FIRST_COMPLETED").done
        except TimeoutError:
            done = set()
        except (distributed.client.FutureCancelledError, distributed.comm.CommClosedError, OSError):
            raise InputError(
                "Dask: found that the scheduler is gone, expected it to stay; nothing is written"
            ) from None
        for future in done:
            if future.status != "finished":
                _raise(future)
            waiting.discard(future)
            yield future
        try:
            if done or client.scheduler_info(n_workers=-1)["workers"]:
                alone = time.monotonic()
        except OSError:
            pass
        if time.monotonic() - alone > _PATIENCE:
            raise InputError("Dask: found no worker left, expected at least one; nothing is written")


def _raise(future: Any) -> None:
    fault = future.exception() if future.status == "error" else None
    if isinstance(fault, _distributed().KilledWorker):
        raise InputError(
            "Dask: found a task during which one worker after the other died, expected workers with enough memory"
        ) from None
    if fault is None:
        raise InputError(f"Dask: found that work was {future.status}, expected the cluster to finish it")
    raise fault


def _named(arrays: Any, models: Any) -> dict[str, Any]:
    """Take apart the forms that `from_dask` accepts into one array (n, l) a model."""
    if getattr(arrays, "ndim", 3) != 3:
        raise InputError(f"predictions: found {arrays.ndim} dimensions, expected 3: models, instances, labels")
    given = list(arrays) if hasattr(arrays, "ndim") else arrays
    return {table.model: table.scores for table in tables_of(given, models)}


def _check(name: str, array: Any, first: Any) -> None:
    where = f"model {name!r}"
    if not hasattr(array, "to_delayed") or not hasattr(array, "chunks"):
        raise InputError(f"{where}: found {type(array).__name__}, expected a Dask array")
    if array.ndim != 2:
        raise InputError(f"{where}: found {array.ndim} dimensions, expected 2: instances, labels")
    if array.dtype.kind not in "biuf":
        raise InputError(f"{where}: found {array.dtype} values, expected bool, 0/1 integers or floats in [0, 1]")
    if any(np.isnan(size) for size in array.shape):
        raise InputError(f"{where}: found chunks of unknown size, expected known ones: see compute_chunk_sizes")
    if array.shape != first.shape:
        raise InputError(f"{where}: found shape {array.shape}, expected {first.shape} as the first model has")
    if 0 in array.shape:
        raise InputError(f"{where}: found no {'instance' if array.shape[0] == 0 else 'label'}, expected at least one")


# What follows runs on workers.


class _of_arrays:  # noqa: N801 - called like a function
    """Walks chunks that are in memory."""

    def __init__(self, kinds: tuple[Any, Any], start: int, stop: int, *chunks: Any) -> None:
        models, labels = kinds
        self.panel = Predictions(list(chunks), models=models, labels=labels, instances=range(start, stop))

    def __call__(self) -> Iterator[Any]:
        import polars as pl

        for block in self.panel.blocks():
            yield block, pl.Series(block.instances).cast(pl.String)


class _of_files:  # noqa: N801 - called like a function
    """Reads files block by block."""

    def __init__(self, panel: Any, start: int, stop: int) -> None:
        self.panel, self.start, self.stop = panel, start, stop

    def __call__(self) -> Iterator[Any]:
        size = self.panel.block_size
        for start in range(self.start, self.stop, size):
            stop = min(self.stop, start + size)
            yield self.panel.read(start, stop), self.panel.names(start, stop)


def _called(sent: tuple[Callable[..., Any], Steps], start: int, blocks: Callable[[], Iterator[Any]]) -> Any:
    from threadpoolctl import threadpool_limits

    function, steps = sent
    grant(available_memory(), 1)
    with threadpool_limits(1, user_api="blas"):  # workers are as many as there are cores
        return function(start, ((prepared(block, steps), names) for block, names in blocks()))


def _statistics_of(statistics: Any, start: int, blocks: Iterator[Any]) -> Any:
    return reduce(merged, (statistics(block) for block, _ in blocks))


def _merged(parts: list[Any]) -> Any:
    return reduce(merged, parts)


def _applied(apply: Any, dtype: Any, start: int, blocks: Iterator[Any]) -> Any:
    return np.concatenate([apply(block) for block, _ in blocks]).astype(dtype, copy=False)


def _here(start: int, blocks: Iterator[Any]) -> list[Predictions]:
    return [block for block, _ in blocks]
