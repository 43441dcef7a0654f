"""What arithmetic may use, and whether it should stop: engines know the machine and the user, arithmetic asks."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Event
from typing import NamedTuple, TypeVar

A = TypeVar("A")
T = TypeVar("T")


class Budget(NamedTuple):
    """What arithmetic may use."""

    memory: int = 4 * 2**30  # bytes
    threads: int = 1
    stop: Event = Event()  # set when the user has interrupted what it was granted for


_granted = Budget()


def grant(memory: int, threads: int) -> Budget:
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
    _granted = Budget(memory, threads, Event())
    return _granted


def granted() -> Budget:
    """Return what was granted last.

    Examples
    --------
    >>> granted().threads >= 1
    True
    """
    return _granted


def heeded(found: T) -> T:
    """Pass on what one piece of long work gave, unless the user has interrupted it.

    Examples
    --------
    >>> heeded(7)
    7
    """
    if _granted.stop.is_set():
        raise KeyboardInterrupt
    return found


def on_threads(function: Callable[[A], T], items: Iterable[A]) -> Iterator[T]:
    """Pass on in order what `function` makes of each item, on as many threads as were granted.

    Threads are enough: NumPy's and SciPy's loops release the interpreter's lock. Items are taken in the caller's
    thread, no more at a time than are worked on.

    Examples
    --------
    >>> list(on_threads(str, [1, 2]))
    ['1', '2']
    """
    threads, stop = _granted.threads, _granted.stop
    pool = ThreadPoolExecutor(threads)
    under_way: deque[Future[T]] = deque()
    try:
        for item in items:
            under_way.append(pool.submit(function, item))
            if len(under_way) > threads:
                yield awaited(under_way.popleft())
        while under_way:
            yield awaited(under_way.popleft())
    except (KeyboardInterrupt, GeneratorExit):  # nobody waits for the rest
        stop.set()
        raise
    finally:
        pool.shutdown(wait=not stop.is_set(), cancel_futures=True)


def awaited(done: Future[T]) -> T:
    """Wait for a thread, looking up ten times a second: once Polars is imported, Ctrl-C wakes nobody who waits."""
    while not wait([done], 0.1).done:
        pass
    return done.result()
