"""Run the passes on a Dask cluster.

There is one task for each share of the instances. Statistics are merged in a tree of
tasks, and workers write rows themselves, so nothing whose size depends on the number
of instances comes to the client.
"""

# Many functions of Dask have no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import atexit
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial, reduce
from itertools import pairwise
from multiprocessing import active_children
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from ..errors import InputError, needed
from ..predictions import (
    Array,
    LazyPredictions,
    Names,
    Predictions,
    Steps,
    joined,
    make_tables,
    prepared,
)
from .memory import available_memory, count_cores
from .progress import track
from .statistics import S, merge_statistics
from .threads import ResourceLimits, bind_limits

if TYPE_CHECKING:
    import dask.array as da
    import polars as pl
    from dask.delayed import Delayed
    from distributed import Client, Future, LocalCluster

    # Blocks with the names of their instances.
    NamedBlocks = Iterator[tuple[Predictions, pl.Series]]

T = TypeVar("T")

_FAN_IN = 8  # statistics that are merged by one task
_BLOCKS = 4  # blocks that one task reads from files, one after the other
# Seconds to wait for a worker when there is none: a dead worker may be restarted.
_PATIENCE = 10.0
_POLL_SECONDS = 0.5

# By default, workers return memory to the system after each block, and a third of the
# time goes into allocating it again.
_WORKER_ENVIRONMENT = {
    "MALLOC_MMAP_THRESHOLD_": 2**30,
    "MALLOC_TRIM_THRESHOLD_": 2**31 - 1,
    "MALLOC_ARENA_MAX": 1,
}

# Import a package of Dask, or say how to install it.
_import_dask = partial(needed, extra="dask", where="Dask")


@dataclass(frozen=True, kw_only=True, slots=True)
class Share:
    """The instances of one task.

    Parameters
    ----------
    start, stop : int
        Positions of the instances.
    blocks : dask.delayed.Delayed
        A function without arguments that returns the share's `NamedBlocks`.
    """

    start: int
    stop: int
    blocks: Delayed


class ScannedFiles(Protocol):
    """The part of `io.FilePredictions` that workers need."""

    front: Predictions

    @property
    def instances(self) -> Names:
        """Names of the instances."""

    def __len__(self) -> int: ...

    @property
    def block_size(self) -> int:
        """Number of instances in a block."""

    @property
    def many(self) -> bool:
        """Whether the label space is large."""

    @property
    def n_stored(self) -> int:
        """Number of stored predictions."""

    def read(self, start: int, stop: int) -> Predictions:
        """Read the instances from one position to another."""

    def named_blocks(self, start: int, stop: int, size: int) -> NamedBlocks:
        """Read instances block by block, with their names."""


class DaskPredictions(LazyPredictions):
    """Predictions that the workers of a Dask cluster have, or read from files.

    Parameters
    ----------
    front : Predictions
        A small example with the same models and labels.
    shares : sequence of Share
        The instances of each task, in order.
    scanned : ScannedFiles, default=None
        The files that workers read. By default the instances are in Dask arrays.
    """

    def __init__(
        self,
        front: Predictions,
        shares: Sequence[Share],
        scanned: ScannedFiles | None = None,
    ) -> None:
        super().__init__(front)
        self._shares = tuple(shares)
        self._scanned = scanned
        self._many = scanned is not None and scanned.many

    @classmethod
    def from_scanned(cls, scanned: ScannedFiles) -> Self:
        """Make predictions whose files are read by the workers.

        Parameters
        ----------
        scanned : FilePredictions
            Its files must be at the same place for all workers.

        Returns
        -------
        DaskPredictions
        """
        delayed = _import_dask("dask").delayed
        shared = delayed(scanned, traverse=False)
        make_function = delayed(partial, pure=False)

        starts = range(0, len(scanned), _BLOCKS * scanned.block_size)
        shares = []
        for start, stop in pairwise([*starts, len(scanned)]):
            blocks = make_function(_read_file_blocks, shared, start, stop)
            shares.append(Share(start=start, stop=stop, blocks=blocks))

        return cls(scanned.front, shares, scanned)

    def __len__(self) -> int:
        return self._shares[-1].stop

    @property
    def instances(self) -> Names:  # type: ignore[override]
        """Names of all instances, shape (n,)."""
        if self._scanned is None:
            return np.arange(len(self))
        return self._scanned.instances

    @property
    def n_stored(self) -> int:
        """Number of stored predictions, if the files are sparse."""
        if self._scanned is None:
            return super().n_stored
        return int(self._scanned.n_stored)

    def read(self, start: int, stop: int) -> Predictions:
        """Fetch the instances from one position to another into this process.

        Parameters
        ----------
        start, stop : int
            Positions of the instances.

        Returns
        -------
        Predictions
        """
        if self._scanned is not None:
            return prepared(self._scanned.read(start, stop), self._steps)

        shares = []
        for share in self._shares:
            if share.start < stop and start < share.stop:
                shares.append(share)

        tasks = self._make_tasks(shares, partial(_take_rows, start, stop))
        blocks: list[Predictions] = []
        for share_blocks in _compute(tasks, "fetching"):
            blocks.extend(share_blocks)

        return joined(blocks)

    def blocks(self, size: int | None = None) -> Iterator[Predictions]:
        """Fetch the instances into this process, block by block.

        Parameters
        ----------
        size : int, default=None
            Largest number of instances in a block.

        Yields
        ------
        Predictions
        """
        for share in self._shares:
            yield from self.read(share.start, share.stop).blocks(size)

    def reduce_blocks(self, compute_statistics: Callable[[Predictions], S]) -> S:
        """Compute the statistics of each block on the cluster and merge them.

        Parameters
        ----------
        compute_statistics : callable
            Takes a block of predictions and returns its statistics.

        Returns
        -------
        tuple
            The statistics of all instances.
        """
        reduce_share = partial(_reduce_share, compute_statistics)
        share_statistics = self._make_tasks(self._shares, reduce_share)

        merge_all = partial(reduce, merge_statistics)
        merge = _import_dask("dask").delayed(merge_all, pure=False)
        merged = []
        for start in range(0, len(share_statistics), _FAN_IN):
            merged.append(merge(share_statistics[start : start + _FAN_IN]))

        result: S = _compute([merge(merged)], "gathering", intermediate=merged)[0]
        return result

    def map_shares(
        self, function: Callable[[int, NamedBlocks], T], doing: str
    ) -> list[T]:
        """Call a function for each share of the instances, where the share is.

        Parameters
        ----------
        function : callable
            Takes the position of the first instance, and an iterator over blocks with
            the names of their instances.
        doing : str
            Text of the progress bar.

        Returns
        -------
        list
            The results, in the order of the shares.
        """
        return _compute(self._make_tasks(self._shares, function), doing)

    def map_blocks(
        self, apply: Callable[[Predictions], T], dtype: DTypeLike = float
    ) -> T:
        """Compute the scores of each block when they are needed.

        Parameters
        ----------
        apply : callable
            Takes a block of predictions and returns its scores.
        dtype : dtype, default=float
            Data type of the result.

        Returns
        -------
        dask.array.Array of shape (n, l)
        """
        dask_array = _import_dask("dask.array")
        l = len(self.labels)
        tasks = self._make_tasks(self._shares, partial(_map_share, apply, dtype))
        arrays = []
        for task, share in zip(tasks, self._shares, strict=True):
            shape = (share.stop - share.start, l)
            arrays.append(dask_array.from_delayed(task, shape, dtype=dtype))

        lazy_scores: T = dask_array.concatenate(arrays)
        return lazy_scores

    def _make_tasks(
        self, shares: Sequence[Share], function: Callable[[int, NamedBlocks], object]
    ) -> list[Delayed]:
        """Make a task for each share that calls a function with start and blocks."""
        delayed = _import_dask("dask").delayed
        call = delayed(_call_on_worker, pure=False)
        shared = delayed((function, self._steps), traverse=False)
        return [call(shared, share.start, share.blocks) for share in shares]


def from_dask(
    arrays: da.Array | Sequence[da.Array] | Mapping[str, da.Array],
    models: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
) -> DaskPredictions:
    """Make predictions from Dask arrays.

    `fit` then runs on the cluster, and `transform` returns a lazy array.

    Parameters
    ----------
    arrays : dask.array.Array of shape (m, n, l), sequence or mapping
        One array of shape (m, n, l), a sequence of `m` arrays of shape (n, l), or a
        mapping from model name to such an array. Instances are processed in the
        chunks of the first model.
    models, labels : sequence of str, default=None
        Names of the models and labels. A mapping has the names of its models.

    Returns
    -------
    DaskPredictions
        Combiners accept it in place of `Predictions`.

    Examples
    --------
    >>> import dask.array as da
    >>> import mlconsensus as mlc
    >>> scores = {"a": da.zeros((4, 2), chunks=2), "b": da.ones((4, 2), chunks=2)}
    >>> predictions = mlc.from_dask(scores)
    >>> predictions
    <DaskPredictions: 2 models × 4 instances × 2 labels>
    >>> mlc.MajorityVote().fit(predictions).transform(predictions).compute()[0]
    array([0.5, 0.5])
    """
    delayed = _import_dask("dask").delayed
    arrays_by_model = _split_by_model(arrays, models)
    first = next(iter(arrays_by_model.values()))
    for name, array in arrays_by_model.items():
        _check_array(f"model {name!r}", array, first)

    # `Predictions` checks names and data types with one row of zeros.
    examples = []
    for array in arrays_by_model.values():
        examples.append(np.zeros((1, *array.shape[1:]), array.dtype))

    front = Predictions(examples, models=list(arrays_by_model), labels=labels)

    # Chunks of all models have the instances of the first model's chunks.
    chunk_sizes = first.chunks[0]
    chunks_by_model = []
    for array in arrays_by_model.values():
        rechunked = array.rechunk({0: chunk_sizes, 1: -1})
        chunks_by_model.append(rechunked.to_delayed(optimize_graph=False).ravel())

    # One share for each chunk that is not empty.
    names = delayed((front.models, front.labels), traverse=False)
    make_function = delayed(partial, pure=False)
    bounds = np.cumsum([0, *chunk_sizes]).tolist()
    shares = []
    for index, (start, stop) in enumerate(pairwise(bounds)):
        if stop > start:
            chunks = [model_chunks[index] for model_chunks in chunks_by_model]
            blocks = make_function(_make_array_blocks, names, start, stop, *chunks)
            shares.append(Share(start=start, stop=stop, blocks=blocks))

    return DaskPredictions(front, shares)


def _split_by_model(
    arrays: da.Array | Sequence[da.Array] | Mapping[str, da.Array],
    models: Sequence[str] | None,
) -> Mapping[str, da.Array]:
    """Return one Dask array of shape (n, l) for each model name."""
    n_dimensions = getattr(arrays, "ndim", 3)
    if n_dimensions != 3:
        raise InputError(
            where="predictions",
            found=f"{n_dimensions} dimensions",
            expected="3: models, instances, labels",
        )
    if hasattr(arrays, "ndim"):
        arrays = list(arrays)  # type: ignore[arg-type]

    return {table.model: table.scores for table in make_tables(arrays, models)}


def _check_array(where: str, array: da.Array, first: da.Array) -> None:
    """Check that an array is a Dask array of known size; `Predictions` does the rest.

    `first` is the array of the first model, whose shape all must have.
    """
    if not (hasattr(array, "to_delayed") and hasattr(array, "chunks")):
        raise InputError(
            where=where, found=type(array).__name__, expected="a Dask array"
        )
    if any(np.isnan(size) for size in array.shape):
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
    if array.shape[0] == 0:
        raise InputError(where=where, found="no instance", expected="at least one")


@contextmanager
def connect(address: str | None) -> Iterator[Client]:
    """Connect to a cluster, or start one on this machine with a process per core.

    Parameters
    ----------
    address : str or None
        Address of the scheduler. None starts a cluster.

    Yields
    ------
    distributed.Client

    Examples
    --------
    >>> with connect("nowhere"):
    ...     pass
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: --dask: found 'nowhere', expected an address ...
    """
    if address is None:
        with _connect_to_new_cluster() as client:
            yield client
        return

    if ":" not in address:
        raise InputError(
            where="--dask",
            found=repr(address),
            expected="an address such as tcp://host:8786, or none",
        )

    with _connect_to_scheduler(address) as client:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError:
            raise InputError(
                where="--dask",
                found=f"no worker at {address!r}",
                expected="at least one",
            ) from None

        yield client


@contextmanager
def _connect_to_new_cluster() -> Iterator[Client]:
    """Start a cluster on this machine, and stop its workers at once after an error."""
    distributed = _import_dask("distributed")
    try:
        new_cluster = start_local_cluster(count_cores())
    except KeyboardInterrupt:
        # Dask would complain at exit about a cluster that is only half started.
        atexit.unregister(_import_dask("distributed.deploy.spec").close_clusters)
        raise

    with new_cluster as cluster, distributed.Client(cluster) as client:
        try:
            yield client
        except BaseException:
            # Dask would wait until the workers have finished their tasks.
            _kill_workers(cluster)
            raise


def _kill_workers(cluster: LocalCluster) -> None:
    """Kill the worker processes of a local cluster."""
    for nanny in cluster.workers.values():
        nanny.auto_restart = False
        for child in active_children():
            if child.pid == nanny.pid:
                child.kill()


def _connect_to_scheduler(address: str) -> Client:
    """Return a client of the scheduler at an address."""
    try:
        distributed = _import_dask("distributed")
        client: Client = distributed.Client(address, timeout=_PATIENCE)
        return client
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            where="--dask",
            found=f"no scheduler at {address!r} ({reason})",
            expected="one",
        ) from None


def start_local_cluster(n_workers: int) -> LocalCluster:
    """Start a cluster on this machine, with one process of one thread per worker.

    Parameters
    ----------
    n_workers : int
        Number of workers.

    Returns
    -------
    distributed.LocalCluster
    """
    config = _import_dask("dask").config
    distributed = _import_dask("distributed")
    key = "distributed.nanny.pre-spawn-environ"
    environment = dict(config.get(key)) | _WORKER_ENVIRONMENT
    with config.set({key: environment}):
        # Warnings about workers that take long to stop do not concern the user.
        cluster: LocalCluster = distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            silence_logs="ERROR",
        )
        return cluster


def _compute(
    tasks: list[Delayed], doing: str, intermediate: Sequence[Delayed] = ()
) -> list[Any]:
    """Compute tasks on the cluster, or on threads without one, and fetch the results.

    Results of `intermediate` tasks stay on the workers, but count as progress.
    """
    client = _find_client()
    if client is None:
        return list(_import_dask("dask").compute(*tasks))

    # Solutions are large, and so are the graphs that contain them.
    large_graphs = {"distributed.admin.large-graph-warning-threshold": "1 TiB"}
    with _import_dask("dask").config.set(large_graphs):
        futures = client.compute(_optimize([*intermediate, *tasks]))

    try:
        for _ in track(_iter_finished(client, futures), len(futures), doing):
            pass

        return _fetch(client, futures[len(intermediate) :])
    except BaseException:
        client.cancel(futures, force=True)
        raise


def _optimize(tasks: list[Delayed]) -> list[Delayed]:
    """Optimize tasks as Dask does with arrays.

    Tasks of one name must be the same in both passes.
    """
    from dask.array.optimization import optimize
    from dask.delayed import Delayed
    from dask.highlevelgraph import HighLevelGraph

    keys = [task.key for task in tasks]
    graph = HighLevelGraph.merge(*(task.dask for task in tasks))
    optimized = optimize(graph, keys)
    return [Delayed(key, optimized) for key in keys]


def _find_client() -> Client | None:
    """Return the client of the cluster in use, None without a cluster."""
    if "distributed" not in sys.modules:
        return None

    try:
        client: Client = _import_dask("distributed").default_client()
        return client
    except ValueError:
        return None


def _iter_finished(
    client: Client, futures: list[Future[object]]
) -> Iterator[Future[object]]:
    """Yield futures as they finish; raise if one fails or all workers are gone."""
    distributed = _import_dask("distributed")
    scheduler_errors = (
        distributed.client.FutureCancelledError,
        distributed.comm.CommClosedError,
        OSError,
    )
    pending = set(futures)
    last_seen = time.monotonic()
    while pending:
        try:
            finished = distributed.wait(
                list(pending), timeout=_POLL_SECONDS, return_when="FIRST_COMPLETED"
            ).done
        except TimeoutError:
            finished = set()
        except scheduler_errors:
            raise InputError(
                where="Dask",
                found="the scheduler gone",
                expected="it to stay; nothing is written",
            ) from None

        for future in finished:
            if future.status != "finished":
                _raise_error(future)

            pending.discard(future)
            yield future

        if finished:
            last_seen = time.monotonic()
        else:
            last_seen = _check_workers(client, last_seen)


def _fetch(client: Client, futures: list[Future[object]]) -> list[Any]:
    """Fetch results; raise if all workers, and the results with them, are gone."""
    pool = ThreadPoolExecutor(1)
    last_seen = time.monotonic()
    results = pool.submit(client.gather, futures)
    pool.shutdown(wait=False)  # the thread ends by itself if futures are cancelled
    while not wait([results], timeout=_POLL_SECONDS).done:
        last_seen = _check_workers(client, last_seen)

    return list(results.result())


def _check_workers(client: Client, last_seen: float) -> float:
    """Return the time when a worker was seen last; raise if it is too long ago."""
    with suppress(OSError):
        if client.scheduler_info(n_workers=-1)["workers"]:
            return time.monotonic()

    if time.monotonic() - last_seen > _PATIENCE:
        raise InputError(
            where="Dask",
            found="no worker left",
            expected="at least one; nothing is written",
        )

    return last_seen


def _raise_error(future: Future[object]) -> NoReturn:
    """Raise the error of a future that did not finish."""
    if future.status != "error":
        raise InputError(
            where="Dask",
            found=f"that work was {future.status}",
            expected="the cluster to finish it",
        )

    error: BaseException = future.exception()
    if isinstance(error, _import_dask("distributed").KilledWorker):
        raise InputError(
            where="Dask",
            found="a task that was killed on several workers",
            expected="workers with enough memory",
        )

    raise error


# The functions below run on workers.


def _make_array_blocks(
    names: tuple[tuple[str, ...], tuple[str, ...]],
    start: int,
    stop: int,
    *chunks: Array,
) -> NamedBlocks:
    """Yield blocks of chunks that are in memory, one chunk (n, l) for each model."""
    import polars as pl

    models, labels = names
    share = Predictions(
        list(chunks), models=models, labels=labels, instances=range(start, stop)
    )
    for block in share.blocks():
        yield block, pl.Series(block.instances).cast(pl.String)


def _read_file_blocks(scanned: ScannedFiles, start: int, stop: int) -> NamedBlocks:
    """Read files block by block."""
    return scanned.named_blocks(start, stop, scanned.block_size)


def _call_on_worker(
    shared: tuple[Callable[[int, NamedBlocks], T], Steps],
    start: int,
    make_blocks: Callable[[], NamedBlocks],
) -> T:
    """Call a function with the start and the prepared blocks of a share."""
    from threadpoolctl import threadpool_limits

    function, steps = shared

    # There are as many workers as cores.
    limits = ResourceLimits(memory=available_memory(), threads=1)
    with bind_limits(limits), threadpool_limits(1, user_api="blas"):
        blocks = ((prepared(block, steps), names) for block, names in make_blocks())
        return function(start, blocks)


def _reduce_share(
    compute_statistics: Callable[[Predictions], S], start: int, blocks: NamedBlocks
) -> S:
    """Compute the statistics of a share's blocks and merge them."""
    return reduce(merge_statistics, (compute_statistics(block) for block, _ in blocks))


def _map_share(
    apply: Callable[[Predictions], object],
    dtype: DTypeLike,
    start: int,
    blocks: NamedBlocks,
) -> Array:
    """Compute the scores of a share's blocks and concatenate them, shape (n, l)."""
    block_scores = [np.asarray(apply(block)) for block, _ in blocks]
    scores = np.concatenate(block_scores)
    return scores.astype(dtype, copy=False)


def _take_rows(
    start: int, stop: int, share_start: int, blocks: NamedBlocks
) -> list[Predictions]:
    """Return the instances of a share that are between two positions."""
    taken = []
    position = share_start
    for block, _ in blocks:
        part = block[max(start - position, 0) : max(stop - position, 0)]
        position += len(block)
        if len(part) > 0:
            taken.append(part)

    return taken
