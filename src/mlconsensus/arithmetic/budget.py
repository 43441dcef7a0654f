"""What arithmetic may use, and whether it should stop: engines know the machine and the user, arithmetic asks."""

from threading import Event
from typing import NamedTuple


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
