"""How much memory and how many threads arithmetic may use: engines know the machine and say so, arithmetic asks."""

from __future__ import annotations

from typing import NamedTuple


class Budget(NamedTuple):
    """What arithmetic may use."""

    memory: int = 4 * 2**30  # bytes
    threads: int = 1


_granted = Budget()


def grant(memory: int, threads: int) -> None:
    """Set what arithmetic in this process may use from now on.

    Parameters
    ----------
    memory
        Bytes.
    threads
        Threads of our own making; those of BLAS are not counted.
    """
    global _granted
    _granted = Budget(memory, threads)


def granted() -> Budget:
    """Return what was granted last.

    Examples
    --------
    >>> granted().threads >= 1
    True
    """
    return _granted
