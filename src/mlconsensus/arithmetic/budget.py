"""What arithmetic may use, and whether it should stop: engines know the machine and the user, arithmetic asks."""

from threading import Event
from typing import NamedTuple, TypeVar

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
