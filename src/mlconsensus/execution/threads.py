"""Limits of memory and threads for numerical code, and a map on threads.

The execution layer sets the limits at the start of each pass; `linalg` reads them.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from threading import Event
from typing import TypeVar

A = TypeVar("A")
T = TypeVar("T")

_POLL_SECONDS = 0.1


@dataclass(frozen=True, kw_only=True)
class ResourceLimits:
    """Memory and threads that numerical code may use.

    Parameters
    ----------
    memory : int, default=4 GiB
        Number of bytes.
    threads : int, default=1
        Number of threads, not counting those of BLAS.
    stop : threading.Event
        Set when the user interrupts the computation.
    """

    memory: int = 4 * 2**30
    threads: int = 1
    stop: Event = field(default_factory=Event)


_limits = ResourceLimits()


def set_limits(memory: int, threads: int) -> ResourceLimits:
    """Set the limits of this process.

    Parameters
    ----------
    memory : int
        Number of bytes.
    threads : int
        Number of threads, not counting those of BLAS.

    Returns
    -------
    ResourceLimits
        The new limits. Set their `stop` to end long loops.
    """
    global _limits
    _limits = ResourceLimits(memory=memory, threads=threads)
    return _limits


def get_limits() -> ResourceLimits:
    """Return the current limits of this process.

    Returns
    -------
    ResourceLimits

    Examples
    --------
    >>> get_limits().threads >= 1
    True
    """
    return _limits


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
    if _limits.stop.is_set():
        raise KeyboardInterrupt
    return result


def map_on_threads(function: Callable[[A], T], items: Iterable[A]) -> Iterator[T]:
    """Call a function for each item, on as many threads as the limits allow.

    Threads are enough, because loops in NumPy and SciPy release the interpreter's
    lock.

    Parameters
    ----------
    function : callable
        Called with one item in a thread.
    items : iterable
        Consumed in the caller's thread, no faster than the items are processed.

    Yields
    ------
    object
        The results, in the order of the items.

    Examples
    --------
    >>> list(map_on_threads(str, [1, 2]))
    ['1', '2']
    """
    n_threads = _limits.threads
    stop = _limits.stop
    pool = ThreadPoolExecutor(n_threads)
    pending: deque[Future[T]] = deque()
    try:
        for item in items:
            pending.append(pool.submit(function, item))
            if len(pending) > n_threads:
                yield wait_for(pending.popleft())

        while pending:
            yield wait_for(pending.popleft())
    except (KeyboardInterrupt, GeneratorExit):
        # The remaining results are not needed.
        stop.set()
        raise
    finally:
        pool.shutdown(wait=not stop.is_set(), cancel_futures=True)


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
