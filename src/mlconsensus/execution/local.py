"""Both passes in this process: blocks on all cores, merged in order; and solving, which Ctrl-C can interrupt."""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextvars import copy_context
from functools import cache, reduce
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from ..errors import InputError
from ..predictions import Array, BasePredictions, Predictions
from .memory import available_memory, check_size, cores
from .progress import track, working
from .statistics import merge_statistics
from .threads import map_on_threads, set_limits, wait_for

S = TypeVar("S", bound=tuple[Any, ...])
A = TypeVar("A")
T = TypeVar("T")


def gather(source: BasePredictions, statistics: Callable[[Predictions], S]) -> S:
    """First pass: the statistics of each block, merged."""
    if not (len(source) > 0):
        raise InputError(
            where="predictions", found="no instance", expected="at least one"
        )

    size = source.block_size
    n_blocks = -(-len(source) // size)
    return reduce(
        merge_statistics, each(source.blocks(size), statistics, n_blocks, "gathering")
    )


def spread(
    source: BasePredictions, apply: Callable[[Predictions], Any], dtype: Any = float
) -> Any:
    """Second pass: what `apply` makes of each block, (n, l) of `dtype`; `ManyScores` where there are many labels."""
    _, n, l = source.shape
    size = source.block_size
    if source.many:
        return _concatenate(
            list(each(source.blocks(size), apply, -(-n // size), "combining"))
        )

    check_size(
        n * l * np.dtype(dtype).itemsize,
        "consensus",
        f"of scores of {n:,} instances × {l:,} labels",
        0.9,
    )
    scores = np.empty((n, l), dtype=dtype)
    places = (scores[start : start + size] for start in range(0, n, size))

    def into_place(work: tuple[Predictions, Array]) -> None:
        block, place = work
        place[:] = apply(
            block
        )  # in the worker's own thread: first touching 100 MB takes a while

    for _ in each(
        zip(source.blocks(size), places, strict=True),
        into_place,
        -(-n // size),
        "combining",
    ):
        pass

    return scores


def _concatenate(results: list[Any]) -> Any:
    """Put the scores or label sets of blocks of large label spaces below each other."""
    if sparse.issparse(results[0]):
        return sparse.vstack(results, format="csr")
    return results[0].concatenate(results)


def each(
    items: Iterable[A], function: Callable[[A], T], total: int, doing: str
) -> Iterator[T]:
    """Pass on in order what `function` makes of each of `total` items, on all cores, telling how far it has come.

    Parameters
    ----------
    items
        Taken one after the other in the caller's thread, no more at a time than are
        worked on.
    function
        Run in threads where there are several items.
    total
        How many items there are.
    doing
        What the progress bar says.

    Examples
    --------
    >>> list(each([1, 2], str, 2, "turning"))
    ['1', '2']
    """
    set_limits(available_memory(), cores())
    if total == 1:
        results = map(function, items)
    else:
        results = _on_all_cores(function, items)

    return track(results, total, doing)


def solve(function: Callable[[], T], one_thread: bool = False) -> T:
    """Run what solves the merged sums; on a terminal it says so, and Ctrl-C ends it at once.

    Parameters
    ----------
    function
        Solves; it is run in a thread of its own, since Python hears Ctrl-C only between
        two calls into LAPACK.
    one_thread
        Whether BLAS should keep to one thread, which is faster for small matrices.

    Examples
    --------
    >>> solve(lambda: 1 + 1)
    2
    """
    budget = set_limits(available_memory(), cores())
    with (
        working("solving"),
        _threads().limit(limits=1 if one_thread else None, user_api="blas"),
    ):
        if threading.current_thread() is not threading.main_thread():
            return function()

        done: Future[T] = Future()

        def run() -> None:
            try:
                done.set_result(function())
            except BaseException as fault:
                done.set_exception(fault)

        # A daemon does not keep the process from ending; what NumPy is to ignore goes
        # with the context.
        threading.Thread(target=copy_context().run, args=(run,), daemon=True).start()
        try:
            return wait_for(done)
        except KeyboardInterrupt:
            budget.stop.set()
            raise


@cache
def _threads() -> Any:
    """Find the libraries that have threads, once: it takes as long as solving for ten models."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _on_all_cores(function: Callable[[A], T], items: Iterable[A]) -> Iterator[T]:
    """Run blocks on all cores; BLAS keeps to one thread meanwhile, as two layers of threads would fight for them."""
    with _threads().limit(limits=1, user_api="blas"):
        yield from map_on_threads(function, items)
