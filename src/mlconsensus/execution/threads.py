"""What arithmetic may use, and whether it should stop: engines know the machine and the user, arithmetic asks."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Event
from typing import NamedTuple, TypeVar

A = TypeVar("A")
T = TypeVar("T")


class ResourceLimits(NamedTuple):
    """What arithmetic may use."""

    memory: int = 4 * 2**30  # bytes
    threads: int = 1
    stop: Event = Event()  # set when the user has interrupted what it was granted for


_granted = ResourceLimits()


def set_limits(memory: int, threads: int) -> ResourceLimits:
    """Set what arithmetic in this process may use from now on.

    Parameters
    ----------
    memory
        Bytes.
    threads
        Threads of our own making; those of BLAS are not counted.

    Returns
    -------
    What was granted; set its `stop` to end long loops.
    """
    global _granted
    _granted = ResourceLimits(memory, threads, Event())
    return _granted


def get_limits() -> ResourceLimits:
    """Return what was granted last.

    Examples
    --------
    >>> get_limits().threads >= 1
    True
    """
    return _granted


def check_interrupted(found: T) -> T:
    """Pass on what one piece of long work gave, unless the user has interrupted it.

    Examples
    --------
    >>> check_interrupted(7)
    7
    """
    if _granted.stop.is_set():
        raise KeyboardInterrupt
    return found


def map_on_threads(function: Callable[[A], T], items: Iterable[A]) -> Iterator[T]:
    """Pass on in order what `function` makes of each item, on as many threads as were granted.

    Threads are enough: NumPy's and SciPy's loops release the interpreter's lock. Items
    are taken in the caller's thread, no more at a time than are worked on.

    Examples
    --------
    >>> list(map_on_threads(str, [1, 2]))
    ['1', '2']
    """
    threads = _granted.threads
    stop = _granted.stop
    pool = ThreadPoolExecutor(threads)
    under_way: deque[Future[T]] = deque()
    try:
        for item in items:
            under_way.append(pool.submit(function, item))
            if len(under_way) > threads:
                yield wait_for(under_way.popleft())

        while under_way:
            yield wait_for(under_way.popleft())
    except (KeyboardInterrupt, GeneratorExit):  # nobody waits for the rest
        stop.set()
        raise
    finally:
        pool.shutdown(wait=not stop.is_set(), cancel_futures=True)


def wait_for(done: Future[T]) -> T:
    """Wait for a thread, looking up ten times a second: once Polars is imported, Ctrl-C wakes nobody who waits."""
    while not wait([done], 0.1).done:
        pass

    return done.result()
