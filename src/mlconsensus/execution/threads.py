"""Limits of memory and threads for numerical code, and a map on threads.

The execution layer binds limits to the threads that it starts. Code outside of these
threads may use the whole machine.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from .memory import available_memory, count_cores

A = TypeVar("A")
T = TypeVar("T")

_POLL_SECONDS = 0.1


@dataclass(frozen=True, kw_only=True)
class ResourceLimits:
    """Memory and threads that a computation may use.

    Parameters
    ----------
    memory : int, default=available memory
        Number of bytes.
    threads : int, default=number of cores
        Number of threads, not counting those of BLAS.
    stop : threading.Event
        Set when the user interrupts the computation.
    """

    memory: int = field(default_factory=available_memory)
    threads: int = field(default_factory=count_cores)
    stop: threading.Event = field(default_factory=threading.Event)


class _BoundLimits(threading.local):
    """The limits of the current thread; None if nothing was bound to it."""

    limits: ResourceLimits | None = None


_bound = _BoundLimits()


@contextmanager
def bind_limits(limits: ResourceLimits) -> Iterator[None]:
    """Bind limits to the current thread.

    Parameters
    ----------
    limits : ResourceLimits
        The limits of all code inside the ``with`` statement.

    Examples
    --------
    >>> with bind_limits(ResourceLimits(threads=1)):
    ...     get_limits().threads
    1
    """
    outer = _bound.limits
    _bound.limits = limits
    try:
        yield
    finally:
        _bound.limits = outer


def get_limits() -> ResourceLimits:
    """Return the limits of the current thread.

    Returns
    -------
    ResourceLimits
        By default all memory that is available, and all cores.

    Examples
    --------
    >>> get_limits().threads >= 1
    True
    """
    if _bound.limits is None:
        return ResourceLimits()
    return _bound.limits


def check_interrupted(result: T) -> T:
    """Return `result`, or raise `KeyboardInterrupt` if the user has interrupted.

    Parameters
    ----------
    result : object
        Result of one step of a long computation.

    Returns
    -------
    object
        The same result.

    Examples
    --------
    >>> check_interrupted(7)
    7
    """
    limits = _bound.limits
    if limits is not None and limits.stop.is_set():
        raise KeyboardInterrupt
    return result


def map_on_threads(
    function: Callable[[A], T],
    items: Iterable[A],
    limits: ResourceLimits | None = None,
) -> Iterator[T]:
    """Call a function for each item, on as many threads as the limits allow.

    Threads are enough, because loops in NumPy and SciPy release the interpreter's
    lock.

    Parameters
    ----------
    function : callable
        Called with one item in a thread.
    items : iterable
        Consumed in the caller's thread, no faster than the items are processed.
    limits : ResourceLimits, default=None
        The limits of the computation. By default those of the current thread.

    Yields
    ------
    object
        The results, in the order of the items.

    Examples
    --------
    >>> list(map_on_threads(str, [1, 2]))
    ['1', '2']
    """
    if limits is None:
        limits = get_limits()

    def call(item: A) -> T:
        with bind_limits(limits):
            return function(item)

    pool = ThreadPoolExecutor(limits.threads)
    pending: deque[Future[T]] = deque()
    try:
        for item in items:
            pending.append(pool.submit(call, item))
            if len(pending) > limits.threads:
                yield wait_for(pending.popleft())

        while pending:
            yield wait_for(pending.popleft())
    except (KeyboardInterrupt, GeneratorExit):
        # The remaining results are not needed.
        limits.stop.set()
        raise
    finally:
        pool.shutdown(wait=not limits.stop.is_set(), cancel_futures=True)


def wait_for(future: Future[T]) -> T:
    """Wait for a future and return its result.

    This polls, because a blocking wait ignores Ctrl-C after Polars is imported.

    Parameters
    ----------
    future : concurrent.futures.Future
        Result of a call that runs in another thread.

    Returns
    -------
    object
        The result of the future.
    """
    while not wait([future], _POLL_SECONDS).done:
        pass

    return future.result()
