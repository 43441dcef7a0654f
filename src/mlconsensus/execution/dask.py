"""Both passes on a Dask cluster: a task for each block, statistics merged in a tree, rows written by workers.

Nothing whose size depends on the number of instances comes to the client.
"""

import atexit
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import partial, reduce
from itertools import pairwise
from multiprocessing import active_children
from typing import Any, NamedTuple, Self

import numpy as np

from ..errors import InputError, needed
from ..predictions import (
    LazyPredictions,
    Names,
    Predictions,
    Steps,
    joined,
    prepared,
    tables_of,
)
from .memory import KEPT, available_memory, cores
from .progress import track
from .statistics import S, merge_statistics
from .threads import set_limits

_dask = partial(needed, extra="dask", where="Dask")  # imports one of its packages
_FAN_IN = 8  # statistics that are merged by one task
_BLOCKS = 4  # blocks that one task reads from files, one after the other
# seconds to wait for a worker when there is none: one that died may be started anew
_PATIENCE = 10.0


class Share(NamedTuple):
    """The instances of one task."""

    start: int
    stop: int
    # delayed: calling it walks them, each block with the names of its instances
    blocks: Any


class DaskPredictions(LazyPredictions):
    """Predictions that the workers of a cluster have, or read; `from_dask` makes it of arrays."""

    def __init__(
        self, front: Predictions, shares: Sequence[Share], scanned: Any = None
    ) -> None:
        super().__init__(front)
        self._shares, self._scanned = tuple(shares), scanned
        self._many = scanned is not None and scanned.many

    @classmethod
    def from_scanned(cls, panel: Any) -> Self:
        """Let workers read the files of a panel, which must be where they can see them."""
        delayed = _dask("dask").delayed
        shared = delayed(panel, traverse=False)
        walk = delayed(partial, pure=False)
        starts = range(0, len(panel), _BLOCKS * panel.block_size)
        ends = pairwise([*starts, len(panel)])
        shares = [
            Share(start, stop, walk(_file_blocks, shared, start, stop))
            for start, stop in ends
        ]
        return cls(panel.front, shares, panel)

    def __len__(self) -> int:
        return self._shares[-1].stop

    @property
    def instances(self) -> Names:  # type: ignore[override]
        """The names of all instances."""
        found: Names = (
            np.arange(len(self)) if self._scanned is None else self._scanned.instances
        )
        return found

    @property
    def n_said(self) -> int:
        """How many numbers the models' matrices hold, as far as files tell."""
        if self._scanned is None:
            return super().n_said
        return int(self._scanned.n_said)

    def read(self, start: int, stop: int) -> Predictions:
        """Bring some instances here."""
        if self._scanned is not None:
            return prepared(self._scanned.read(start, stop), self._steps)

        shares = [
            share for share in self._shares if share.start < stop and start < share.stop
        ]
        found = _computed(self._tasks(shares, partial(_rows, start, stop)), "fetching")
        return joined([block for blocks in found for block in blocks])

    def blocks(self, size: int | None = None) -> Iterator[Predictions]:
        """Bring the instances here, block by block."""
        for share in self._shares:
            yield from self.read(share.start, share.stop).blocks(size)

    def gather(self, statistics: Callable[[Predictions], S]) -> S:
        """First pass: a task for each of the blocks, and a tree of tasks that merge what they found."""
        parts = self._tasks(self._shares, partial(_statistics_of, statistics))
        merge = _dask("dask").delayed(partial(reduce, merge_statistics), pure=False)
        some = [merge(parts[at : at + _FAN_IN]) for at in range(0, len(parts), _FAN_IN)]
        whole: S = _computed([merge(some)], "gathering", on_the_way=some)[0]
        return whole

    def each(
        self, function: Callable[[int, Iterator[Any]], Any], doing: str
    ) -> list[Any]:
        """Second pass: what a function makes of each share of the blocks, where it is.

        It gets the position of the first instance, and walks blocks with the names of
        their instances.
        """
        return _computed(self._tasks(self._shares, function), doing)

    def spread(self, apply: Callable[[Predictions], Any], dtype: Any = float) -> Any:
        """Second pass: a lazy Dask array (n, l)."""
        da = _dask("dask.array")
        l = len(self.labels)
        tasks = self._tasks(self._shares, partial(_applied, apply, dtype))
        sizes = [(share.stop - share.start, l) for share in self._shares]
        arrays = [
            da.from_delayed(task, size, dtype=dtype)
            for task, size in zip(tasks, sizes, strict=True)
        ]
        return da.concatenate(arrays)

    def _tasks(
        self, shares: Sequence[Share], function: Callable[..., Any]
    ) -> list[Any]:
        """Return a task for each share, in which the function gets its start and walks its blocks."""
        delayed = _dask("dask").delayed
        called = delayed(_called, pure=False)
        sent = delayed((function, self._steps), traverse=False)
        return [called(sent, share.start, share.blocks) for share in shares]


def from_dask(arrays: Any, models: Any = None, labels: Any = None) -> DaskPredictions:
    """Take predictions that are Dask arrays: `fit` runs on the cluster, and `transform` gives a lazy array.

    Parameters
    ----------
    arrays
        One array ``(m, n, l)``; or a sequence of `m` arrays ``(n, l)``; or ``{model
        name: array}``. Instances are worked on as they are chunked.
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
    <DaskPredictions: 2 models × 4 instances × 2 labels>
    >>> mlc.MajorityVote().fit(panel).transform(panel).compute()[0]
    array([0.5, 0.5])
    """
    delayed = _dask("dask").delayed
    dimensions = getattr(arrays, "ndim", 3)
    if dimensions != 3:
        raise InputError(
            where="predictions",
            found=f"{dimensions} dimensions",
            expected="3: models, instances, labels",
        )
    if hasattr(arrays, "ndim"):
        given = list(arrays)
    else:
        given = arrays

    named = {table.model: table.scores for table in tables_of(given, models)}
    first = next(iter(named.values()))
    for name, array in named.items():
        _check(f"model {name!r}", array, first)

    like = [np.zeros((1, *array.shape[1:]), array.dtype) for array in named.values()]
    front = Predictions(like, models=list(named), labels=labels)
    sizes = first.chunks[0]
    even = [
        array.rechunk({0: sizes, 1: -1}).to_delayed(optimize_graph=False).ravel()
        for array in named.values()
    ]
    kinds = delayed((front.models, front.labels), traverse=False)
    walk = delayed(partial, pure=False)
    shares = [
        Share(
            start,
            stop,
            walk(_array_blocks, kinds, start, stop, *(chunks[at] for chunks in even)),
        )
        for at, (start, stop) in enumerate(pairwise(np.cumsum([0, *sizes]).tolist()))
        if stop > start
    ]
    return DaskPredictions(front, shares)


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
    right = address is None or ":" in address
    if not (right):
        raise InputError(
            where="--dask",
            found=repr(address),
            expected="an address such as tcp://host:8786, or none",
        )

    distributed = _dask("distributed")
    if address is None:
        try:
            own = local_cluster(cores())
        except (
            KeyboardInterrupt
        ):  # of a cluster that is half made, Dask would complain at the end
            atexit.unregister(_dask("distributed.deploy.spec").close_clusters)
            raise

        with own as cluster, distributed.Client(cluster) as client:
            try:
                yield client
            except BaseException:  # Dask would wait for what the workers are at
                for nanny in cluster.workers.values():
                    nanny.auto_restart = False
                    for child in active_children():
                        if child.pid == nanny.pid:
                            child.kill()

                raise

        return

    try:
        client = distributed.Client(address, timeout=_PATIENCE)
    except (OSError, ValueError) as fault:
        reason = str(fault).splitlines()[0]
        raise InputError(
            f"--dask: found no scheduler at {address!r} ({reason}), expected one"
        ) from None

    with client:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError:
            raise InputError(
                f"--dask: found no worker at {address!r}, expected at least one"
            ) from None

        yield client


def local_cluster(workers: int) -> Any:
    """Start a cluster of this machine's own: processes of one thread each that keep memory for the next block.

    Dask has its workers give it back at once, and a third of the time goes into getting
    it again. It also warns of workers that take long to end, which concerns nobody.
    """
    config = _dask("dask").config
    name = "distributed.nanny.pre-spawn-environ"
    cluster = _dask("distributed").LocalCluster
    with config.set({name: dict(config.get(name)) | KEPT}):
        here = "127.0.0.1:0"
        return cluster(
            n_workers=workers,
            threads_per_worker=1,
            dashboard_address=here,
            silence_logs="ERROR",
        )


def _computed(
    tasks: list[Any], doing: str, on_the_way: Sequence[Any] = ()
) -> list[Any]:
    """Run tasks on the cluster, or on threads where there is none, and bring their results here.

    Progress is shown by them and by those `on_the_way` to them, whose results stay
    where they are.
    """
    client = _client()
    if client is None:
        return list(_dask("dask").compute(*tasks))

    with _dask("dask").config.set(
        {"distributed.admin.large-graph-warning-threshold": "1 TiB"}
    ):  # solutions are large
        futures = client.compute(_optimised([*on_the_way, *tasks]))

    try:
        for _ in track(_finished(client, futures), len(futures), doing):
            pass

        return _brought(client, futures[len(on_the_way) :])
    except BaseException:
        client.cancel(futures, force=True)
        raise


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
        return _dask("distributed").default_client()
    except ValueError:
        return None


def _finished(client: Any, futures: list[Any]) -> Iterator[Any]:
    """Pass on futures as they are done; end with an error if one fails or all workers are gone."""
    distributed = _dask("distributed")
    waiting = set(futures)
    alone = time.monotonic()
    while waiting:
        try:
            done = distributed.wait(
                list(waiting), timeout=0.5, return_when="FIRST_COMPLETED"
            ).done
        except TimeoutError:
            done = set()
        except (
            distributed.client.FutureCancelledError,
            distributed.comm.CommClosedError,
            OSError,
        ):
            raise InputError(
                "Dask: found the scheduler gone, expected it to stay; nothing is written"
            ) from None

        for future in done:
            if future.status != "finished":
                _raise(future)

            waiting.discard(future)
            yield future

        if done:
            alone = time.monotonic()
        else:
            alone = _last_seen(client, alone)


def _brought(client: Any, futures: list[Any]) -> list[Any]:
    """Bring results here; end with an error if all workers are gone, and the results with them."""
    pool = ThreadPoolExecutor(1)
    alone = time.monotonic()
    results = pool.submit(client.gather, futures)
    pool.shutdown(wait=False)  # what is cancelled ends by itself
    while not wait([results], timeout=0.5).done:
        alone = _last_seen(client, alone)

    return list(results.result())


def _last_seen(client: Any, last: float) -> float:
    """Return when a worker was there last: now, if one is; end with an error if that is too long ago."""
    with suppress(OSError):
        if client.scheduler_info(n_workers=-1)["workers"]:
            return time.monotonic()

    if not (time.monotonic() - last <= _PATIENCE):
        raise InputError(
            where="Dask",
            found="no worker left",
            expected="at least one; nothing is written",
        )

    return last


def _raise(future: Any) -> None:
    fault: Any = future.exception() if future.status == "error" else None
    deadly = isinstance(fault, _dask("distributed").KilledWorker)
    if deadly:
        raise InputError(
            where="Dask",
            found="a task that worker after worker died of",
            expected="ones with enough memory",
        )
    if fault is None:
        raise InputError(
            where="Dask",
            found=f"that work was {future.status}",
            expected="the cluster to finish it",
        )

    raise fault


def _check(where: str, array: Any, first: Any) -> None:
    """Refuse what is no array of Dask's whose size is known; `Predictions` checks the rest."""
    dask_array = hasattr(array, "to_delayed") and hasattr(array, "chunks")
    if not (dask_array):
        raise InputError(
            where=where, found=type(array).__name__, expected="a Dask array"
        )

    known = not any(np.isnan(size) for size in array.shape)
    if not (known):
        raise InputError(
            where=where,
            found="chunks of unknown size",
            expected="known ones: see compute_chunk_sizes",
        )
    if array.shape != first.shape:
        raise InputError(
            where=where,
            found=f"shape {array.shape}",
            expected=f"{first.shape} as the first model has",
        )
    if not (array.shape[0] > 0):
        raise InputError(where=where, found="no instance", expected="at least one")


# What follows runs on workers.


def _array_blocks(
    kinds: tuple[Any, Any], start: int, stop: int, *chunks: Any
) -> Iterator[Any]:
    """Walk chunks that are in memory."""
    import polars as pl

    models, labels = kinds
    for block in Predictions(
        list(chunks), models=models, labels=labels, instances=range(start, stop)
    ).blocks():
        yield block, pl.Series(block.instances).cast(pl.String)


def _file_blocks(panel: Any, start: int, stop: int) -> Iterator[Any]:
    """Read files block by block."""
    return panel.named_blocks(start, stop, panel.block_size)  # type: ignore[no-any-return]


def _called(
    sent: tuple[Callable[..., Any], Steps],
    start: int,
    blocks: Callable[[], Iterator[Any]],
) -> Any:
    from threadpoolctl import threadpool_limits

    function, steps = sent
    set_limits(available_memory(), 1)
    with threadpool_limits(
        1, user_api="blas"
    ):  # workers are as many as there are cores
        return function(
            start, ((prepared(block, steps), names) for block, names in blocks())
        )


def _statistics_of(statistics: Any, start: int, blocks: Iterator[Any]) -> Any:
    return reduce(merge_statistics, (statistics(block) for block, _ in blocks))


def _applied(apply: Any, dtype: Any, start: int, blocks: Iterator[Any]) -> Any:
    return np.concatenate([apply(block) for block, _ in blocks]).astype(
        dtype, copy=False
    )


def _rows(
    start: int, stop: int, at: int, blocks: Iterator[tuple[Predictions, Any]]
) -> list[Predictions]:
    """Return what blocks hold of the instances from one position to another; the first block's is `at`."""
    found = []
    for block, _ in blocks:
        found.append(block[max(start - at, 0) : max(stop - at, 0)])
        at += len(block)

    return [block for block in found if len(block)]
