"""Run the passes over blocks of predictions, and the solvers, in this process.

`reduce_blocks` computes statistics of each block and merges them, `map_blocks` computes
scores of each block. Predictions on a Dask cluster are passed on to it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from dataclasses import replace
from functools import cache, partial, reduce
from typing import TYPE_CHECKING, Protocol, TypeGuard, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from ..errors import InputError
from ..predictions import Array, BasePredictions, Predictions
from .memory import available_memory, check_size
from .progress import show_progress, track
from .statistics import S, merge_statistics
from .threads import (
    ResourceLimits,
    bind_limits,
    get_limits,
    map_on_threads,
    wait_for,
)

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

# So many scores always fit into memory.
_N_SMALL_SCORES = 2**16
# Up to this number of predictions, BLAS does not start threads.
_SMALL = 2**18
# Up to this number of predictions times labels, BLAS is faster with one thread.
_LITTLE_WORK = 2**28

A = TypeVar("A")
T = TypeVar("T")


@runtime_checkable
class PassRunner(Protocol):
    """Predictions that run the passes themselves, as those on a Dask cluster do."""

    def reduce_blocks(self, compute_statistics: Callable[[Predictions], S]) -> S:
        """Compute the statistics of each block and merge them."""

    def map_blocks(self, apply: Callable[[Predictions], T], dtype: DTypeLike) -> T:
        """Return the lazy scores of all blocks."""


def reduce_blocks(
    source: BasePredictions, compute_statistics: Callable[[Predictions], S]
) -> S:
    """Compute the statistics of each block and merge them.

    Parameters
    ----------
    source : BasePredictions
        Predictions in memory, in files or on a cluster.
    compute_statistics : callable
        Takes a block of predictions and returns its statistics.

    Returns
    -------
    tuple
        The statistics of all instances.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> predictions = mlc.Predictions([[[1, 0], [1, 1]]])
    >>> combiner = mlc.MajorityVote()
    >>> reduce_blocks(predictions, combiner._compute_pass)
    MajorityVoteStatistics(score_sum=array([2., 1.]), n_predictions=array([2., 2.]))
    """
    if isinstance(source, PassRunner):
        return source.reduce_blocks(compute_statistics)

    if len(source) == 0:
        raise InputError(
            where="predictions", found="no instance", expected="at least one"
        )
    if _is_one_block(source):
        with _limit_blas_threads(source):
            return compute_statistics(source)

    size = source.block_size
    n_blocks = _count_blocks(source, size)
    block_statistics = map_with_progress(
        source.blocks(size), compute_statistics, n_blocks, "gathering"
    )
    return reduce(merge_statistics, block_statistics)


def map_blocks(
    source: BasePredictions,
    apply: Callable[[Predictions], T],
    dtype: DTypeLike = float,
) -> T:
    """Compute the scores of each block and put them together.

    Parameters
    ----------
    source : BasePredictions
        Predictions in memory, in files or on a cluster.
    apply : callable
        Takes a block of predictions and returns its scores.
    dtype : dtype, default=float
        Data type of the result.

    Returns
    -------
    ndarray of shape (n, l), SparseScores or dask.array.Array
        `SparseScores` in large label spaces, a lazy array if `source` is on a cluster.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> predictions = mlc.Predictions([[[1, 0], [1, 1]]])
    >>> map_blocks(predictions, lambda block: block.to_array()[0])
    array([[1., 0.], [1., 1.]])
    """
    if isinstance(source, PassRunner):
        lazy_scores: T = source.map_blocks(apply, dtype)
        return lazy_scores

    is_array = not source.many
    n_scores = len(source) * len(source.labels)
    if is_array and n_scores > _N_SMALL_SCORES:
        _check_scores_fit(source, dtype)
    if _is_one_block(source):
        with _limit_blas_threads(source):
            return apply(source)
    if not is_array:
        size = source.block_size
        n_blocks = _count_blocks(source, size)
        results = map_with_progress(source.blocks(size), apply, n_blocks, "combining")
        return _concatenate(list(results))

    scores: T = _fill_blocks(source, apply, dtype)  # type: ignore[assignment]
    return scores


def map_with_progress(
    items: Iterable[A], function: Callable[[A], T], total: int, doing: str
) -> Iterator[T]:
    """Call a function for each item on all cores, and show the progress.

    Parameters
    ----------
    items : iterable
        Consumed in the caller's thread, no faster than the items are processed.
    function : callable
        Called in threads if there are several items.
    total : int
        Number of items.
    doing : str
        Text of the progress bar.

    Yields
    ------
    object
        The results, in the order of the items.

    Examples
    --------
    >>> list(map_with_progress([1, 2], str, 2, "converting"))
    ['1', '2']
    """
    limits = _renew_limits()
    results: Iterator[T]
    if total == 1:
        results = map(partial(_call_with_limits, limits, function), items)
    else:
        results = _map_on_all_cores(function, items, limits)

    return track(results, total, doing)


def solve(function: Callable[[], T], one_thread: bool = False) -> T:
    """Call a solver so that Ctrl-C interrupts it at once, and show that it runs.

    Python handles Ctrl-C only between two calls into LAPACK, so the solver runs in a
    thread and the main thread waits for it.

    Parameters
    ----------
    function : callable
        The solver, without arguments.
    one_thread : bool, default=False
        Whether BLAS uses one thread, which is faster for small matrices.

    Returns
    -------
    object
        The result of the solver.

    Examples
    --------
    >>> solve(lambda: 1 + 1)
    2
    """
    limits = _renew_limits()
    n_blas_threads = 1 if one_thread else None
    blas_limit = _find_thread_pools().limit(limits=n_blas_threads, user_api="blas")
    with show_progress("solving"), blas_limit:
        if threading.current_thread() is not threading.main_thread():
            with bind_limits(limits):
                return function()

        result: Future[T] = Future()

        def run() -> None:
            try:
                with bind_limits(limits):
                    result.set_result(function())
            except BaseException as error:
                result.set_exception(error)

        # The context holds NumPy's error settings. A daemon thread does not prevent
        # the process from ending.
        run_in_context = copy_context().run
        threading.Thread(target=run_in_context, args=(run,), daemon=True).start()
        try:
            return wait_for(result)
        except KeyboardInterrupt:
            limits.stop.set()
            raise


def _check_scores_fit(source: BasePredictions, dtype: DTypeLike) -> None:
    """Raise an `InputError` if an array of the scores would not fit into memory."""
    _, n, l = source.shape
    check_size(
        n * l * np.dtype(dtype).itemsize,
        "consensus",
        f"of scores of {n:,} instances × {l:,} labels",
        0.9,
    )


def _fill_blocks(
    source: BasePredictions,
    apply: Callable[[Predictions], object],
    dtype: DTypeLike,
) -> Array:
    """Compute the scores of each block into one array, shape (n, l)."""
    _, n, l = source.shape
    size = source.block_size
    scores = np.empty((n, l), dtype=dtype)
    targets = (scores[start : start + size] for start in range(0, n, size))

    def fill_target(work: tuple[Predictions, Array]) -> None:
        # Runs in the worker's thread, because the first access to 100 MB is slow.
        block, target = work
        target[:] = apply(block)

    n_blocks = _count_blocks(source, size)
    block_targets = zip(source.blocks(size), targets, strict=True)
    for _ in map_with_progress(block_targets, fill_target, n_blocks, "combining"):
        pass

    return scores


def _is_one_block(source: BasePredictions) -> TypeGuard[Predictions]:
    """Return whether predictions are in memory and few enough for one block."""
    return isinstance(source, Predictions) and len(source) <= source.block_size


def _count_blocks(source: BasePredictions, size: int) -> int:
    """Return the number of blocks of `size` instances."""
    return -(-len(source) // size)


def _concatenate(results: list[T]) -> T:
    """Concatenate the scores or label sets of blocks in large label spaces."""
    first = results[0]
    concatenated: T
    if sparse.issparse(first):
        concatenated = sparse.vstack(results, format="csr")
    else:
        concatenated = first.concatenate(results)  # type: ignore[attr-defined]
    return concatenated


def _limit_blas_threads(block: Predictions) -> AbstractContextManager[object]:
    """Let BLAS use one thread for matrices so small that more would be slower."""
    n_predictions = block.n_predictions
    n_products = n_predictions * len(block.labels)
    if n_predictions <= _SMALL or n_products > _LITTLE_WORK:
        return nullcontext()

    limit: AbstractContextManager[object] = _find_thread_pools().limit(
        limits=1, user_api="blas"
    )
    return limit


@cache
def _find_thread_pools() -> ThreadpoolController:
    """Find the libraries with thread pools once, because the search is slow."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _renew_limits() -> ResourceLimits:
    """Return the limits of the current thread, with the memory available now."""
    return replace(get_limits(), memory=available_memory())


def _call_with_limits(limits: ResourceLimits, function: Callable[[A], T], item: A) -> T:
    """Call a function in this thread, with limits bound to it."""
    with bind_limits(limits):
        return function(item)


def _map_on_all_cores(
    function: Callable[[A], T], items: Iterable[A], limits: ResourceLimits
) -> Iterator[T]:
    """Process items on all cores while BLAS is limited to one thread.

    Threads of BLAS inside our threads would compete for the same cores.
    """
    with _find_thread_pools().limit(limits=1, user_api="blas"):
        yield from map_on_threads(function, items, limits)
