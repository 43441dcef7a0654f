"""Available memory and cores of this machine, and a check of sizes against them."""

import contextlib
import math
import os
from functools import lru_cache
from pathlib import Path
from time import monotonic

from ..errors import InputError

LIMIT = "MLCONSENSUS_LIMIT"  # environment variable: a limit in GB

_MEMINFO = Path("/proc/meminfo")
_PAGES = Path("/proc/self/statm")  # its first number counts against `ulimit -v`
_GROUP = Path("/sys/fs/cgroup")  # limits of a container
_FALLBACK = 2**32  # bytes, if the system has no way to ask for its memory


def available_memory() -> int:
    """Return how much memory this process can use without swapping.

    Returns
    -------
    int
        Number of bytes.

    Examples
    --------
    >>> available_memory() > 2**20
    True
    """
    return _read_available_memory(int(10 * monotonic()))


@lru_cache(maxsize=1)
def _read_available_memory(tenth_of_second: int) -> int:
    """Ask the system, at most once in a tenth of a second."""
    try:
        available = _read_free_memory()
    except (OSError, KeyError, ValueError):
        # Not Linux: half of the physical memory.
        if hasattr(os, "sysconf"):
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
        return _FALLBACK

    # The files do not exist outside of containers, and the limit may be "max".
    with contextlib.suppress(OSError, ValueError):
        limit = int((_GROUP / "memory.max").read_text())
        used = int((_GROUP / "memory.current").read_text())
        available = min(available, limit - used)

    # The limit of `ulimit -v`.
    with contextlib.suppress(ImportError, OSError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        n_pages = int(_PAGES.read_text().split()[0])
        if limit != resource.RLIM_INFINITY:
            available = min(available, limit - n_pages * resource.getpagesize())

    return max(0, available)


def _read_free_memory() -> int:
    """Return the free memory in bytes as Linux reports it."""
    lines = _MEMINFO.read_text().splitlines()
    entries = dict(line.split(":", 1) for line in lines)
    kilobytes = entries["MemAvailable"].split()[0]
    return int(kilobytes) * 1024


def check_size(size: float, where: str, what: str, share: float = 0.25) -> None:
    """Check that there is enough memory before it is allocated.

    Parameters
    ----------
    size : float
        Number of bytes.
    where, what : str
        Place and description in the error message.
    share : float, default=0.25
        Share of the available memory that may be used. The environment variable
        ``MLCONSENSUS_LIMIT`` overrides it with a number of GB.

    Raises
    ------
    InputError
        If `size` is above the limit.

    Examples
    --------
    >>> check_size(1e18, "a.csv.gz", "when unpacked")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: a.csv.gz: found 1e+09 GB when unpacked, expected ...
    """
    limit = _read_limit(share)
    if size > limit:
        remedy = f"the variable {LIMIT} sets another number of GB"
        raise InputError(
            where=where,
            found=f"{size / 1e9:.3g} GB {what}",
            expected=f"at most {limit / 1e9:.3g} GB ({remedy})",
        )


def _read_limit(share: float) -> float:
    """Return the limit in bytes: of the variable, or a share of available memory."""
    text = os.environ.get(LIMIT, "")
    if not text:
        return share * available_memory()

    try:
        return 1e9 * float(text)
    except ValueError:
        raise InputError(
            where=LIMIT, found=repr(text), expected="a number of GB"
        ) from None


def count_cores() -> int:
    """Return the number of threads to use.

    This is the number of cores that the process may run on, or less if its container
    or ``OMP_NUM_THREADS`` allows less.

    Returns
    -------
    int

    Examples
    --------
    >>> count_cores() >= 1
    True
    """
    n_cores = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        n_cores = len(os.sched_getaffinity(0))

    # The file does not exist outside of containers, and the quota may be "max".
    with contextlib.suppress(OSError, ValueError):
        quota, period = (_GROUP / "cpu.max").read_text().split()
        n_cores = min(n_cores, math.ceil(int(quota) / int(period)))

    n_wanted = os.environ.get("OMP_NUM_THREADS", "")
    if n_wanted.isdigit() and int(n_wanted) > 0:
        return min(n_cores, int(n_wanted))
    return n_cores
