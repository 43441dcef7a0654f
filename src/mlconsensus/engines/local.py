"""Both passes in this process, over predictions in memory: blocks on all cores, merged in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import reduce
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..combiners.statistics import merge
from ..panel.predictions import Predictions
from ..panel.sources import Source
from .machine import cores
from .progress import track

S = TypeVar("S", bound=tuple[Any, ...])
A = TypeVar("A")
T = TypeVar("T")


def gather(predictions: Source, statistics: Callable[[Predictions], S]) -> S:
    """First pass: the statistics of each block, merged.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> from mlconsensus.combiners import majority_vote
    >>> gather(mlc.Predictions([[[1, 0], [1, 1]]]), majority_vote.statistics)
    Statistics(total=array([2., 1.]), heard=array([2., 2.]))
    """
    size = predictions.block_size
    n_blocks = -(-len(predictions) // size)
    return reduce(merge, each(predictions.blocks(size), statistics, n_blocks, "gathering"))


def spread(predictions: Source, apply: Callable[[Predictions], NDArray[Any]], dtype: Any = float) -> NDArray[Any]:
    """Second pass: what `apply` makes of each block, (n, l) of `dtype`.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> from mlconsensus.arithmetic.products import votes
    >>> spread(mlc.Predictions([[[1, 0], [1, 1]]]), lambda block: votes(block).total)
    array([[1., 0.], [1., 1.]])
    """
    _, n, l = predictions.shape
    scores = np.empty((n, l), dtype=dtype)
    size = predictions.block_size
    places = (scores[start : start + size] for start in range(0, n, size))

    def into_place(work: tuple[Predictions, NDArray[Any]]) -> None:
        block, place = work
        place[:] = apply(block)  # in the worker's own thread: first touching 100 MB takes a while

    for _ in each(zip(predictions.blocks(size), places, strict=True), into_place, -(-n // size), "combining"):
        pass
    return scores


def each(items: Iterable[A], function: Callable[[A], T], total: int, doing: str) -> Iterator[T]:
    """Pass on in order what `function` makes of each of `total` items, on all cores, telling how far it has come.

    Examples
    --------
    >>> list(each([1, 2], str, 2, "turning"))
    ['1', '2']
    """
    results = map(function, items) if total == 1 else _on_all_cores(function, items)
    return track(results, total, doing)


def _on_all_cores(function: Callable[[A], T], items: Iterable[A]) -> Iterator[T]:
    """Run blocks on as many threads as there are cores, and pass on the results in order.

    Threads are enough: NumPy's and SciPy's loops release the interpreter's lock. BLAS keeps to one thread meanwhile,
    as two layers of threads would fight for the cores.
    """
    from threadpoolctl import threadpool_limits

    n_threads = cores()
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(n_threads) as pool:
        under_way: deque[Future[T]] = deque()
        for item in items:
            under_way.append(pool.submit(function, item))
            if len(under_way) > n_threads:  # no more blocks in memory than are worked on
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
