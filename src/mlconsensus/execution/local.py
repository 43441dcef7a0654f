"""Run the passes over blocks of predictions, and the solvers, in this process.

`reduce_blocks` computes statistics of each block and merges them, `map_blocks` computes
scores of each block. Predictions on a Dask cluster are passed on to it.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextvars import copy_context
from functools import cache, reduce
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from ..errors import InputError
from ..predictions import Array, BasePredictions, Predictions
from .dask import DaskPredictions
from .memory import available_memory, check_size, count_cores
from .progress import show_progress, track
from .statistics import S, merge_statistics
from .threads import map_on_threads, set_limits, wait_for

A = TypeVar("A")
T = TypeVar("T")


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
    >>> reduce_blocks(predictions, lambda block: combiner._compute_pass(block, None))
    MajorityVoteStatistics(total=array([2., 1.]), heard=array([2., 2.]))
    """
    if isinstance(source, DaskPredictions):
        return source.reduce_blocks(compute_statistics)

    if len(source) == 0:
        raise InputError(
            where="predictions", found="no instance", expected="at least one"
        )

    size = source.block_size
    n_blocks = _count_blocks(source, size)
    block_statistics = map_with_progress(
        source.blocks(size), compute_statistics, n_blocks, "gathering"
    )
    return reduce(merge_statistics, block_statistics)


def map_blocks(
    source: BasePredictions,
    apply: Callable[[Predictions], Any],
    dtype: DTypeLike = float,
) -> Any:
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
    >>> from mlconsensus.linalg.block_sums import votes
    >>> predictions = mlc.Predictions([[[1, 0], [1, 1]]])
    >>> map_blocks(predictions, lambda block: votes(block).total)
    array([[1., 0.], [1., 1.]])
    """
    if isinstance(source, DaskPredictions):
        return source.map_blocks(apply, dtype)

    size = source.block_size
    n_blocks = _count_blocks(source, size)
    if source.many:
        results = map_with_progress(source.blocks(size), apply, n_blocks, "combining")
        return _concatenate(list(results))

    _, n, l = source.shape
    check_size(
        n * l * np.dtype(dtype).itemsize,
        "consensus",
        f"of scores of {n:,} instances × {l:,} labels",
        0.9,
    )
    scores = np.empty((n, l), dtype=dtype)
    targets = (scores[start : start + size] for start in range(0, n, size))

    def fill_target(work: tuple[Predictions, Array]) -> None:
        # Runs in the worker's thread, because the first access to 100 MB is slow.
        block, target = work
        target[:] = apply(block)

    block_targets = zip(source.blocks(size), targets, strict=True)
    for _ in map_with_progress(block_targets, fill_target, n_blocks, "combining"):
        pass

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
    set_limits(available_memory(), count_cores())
    results: Iterator[T]
    if total == 1:
        results = map(function, items)
    else:
        results = _map_on_all_cores(function, items)

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
    limits = set_limits(available_memory(), count_cores())
    n_blas_threads = 1 if one_thread else None
    blas_limit = _find_thread_pools().limit(limits=n_blas_threads, user_api="blas")
    with show_progress("solving"), blas_limit:
        if threading.current_thread() is not threading.main_thread():
            return function()

        result: Future[T] = Future()

        def run() -> None:
            try:
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


def _count_blocks(source: BasePredictions, size: int) -> int:
    """Return the number of blocks of `size` instances."""
    return -(-len(source) // size)


def _concatenate(results: list[Any]) -> Any:
    """Concatenate the scores or label sets of blocks in large label spaces."""
    if sparse.issparse(results[0]):
        return sparse.vstack(results, format="csr")
    return results[0].concatenate(results)


@cache
def _find_thread_pools() -> Any:
    """Find the libraries with thread pools once, because the search is slow."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _map_on_all_cores(function: Callable[[A], T], items: Iterable[A]) -> Iterator[T]:
    """Process items on all cores while BLAS is limited to one thread.

    Threads of BLAS inside our threads would compete for the same cores.
    """
    with _find_thread_pools().limit(limits=1, user_api="blas"):
        yield from map_on_threads(function, items)
