"""How many cores and how much memory there are, for choices between what is fast and what fits."""

import contextlib
import os
from functools import lru_cache
from pathlib import Path
from time import monotonic

from ..errors import InputError

LIMIT = "MLCONSENSUS_LIMIT"  # the variable that says how many GB something may take

# What tells the C library of Linux to keep memory, as variables of a process that is
# yet to begin.
KEPT = {
    "MALLOC_MMAP_THRESHOLD_": 2**30,
    "MALLOC_TRIM_THRESHOLD_": 2**31 - 1,
    "MALLOC_ARENA_MAX": 1,
}

_MEMINFO = Path("/proc/meminfo")
_PAGES = Path(
    "/proc/self/statm"
)  # of this process; the first number are those that count against a limit
_GROUP = Path("/sys/fs/cgroup")  # a container's own limits


def available_memory() -> int:
    """Return how many bytes this process could still use without pushing others out.

    Examples
    --------
    >>> available_memory() > 2**20
    True
    """
    return _free(int(10 * monotonic()))


@lru_cache(maxsize=1)
def _free(now: int) -> int:
    """Ask the system, once in a tenth of a second: choosing a method asks a hundred times."""
    try:
        lines = dict(line.split(":", 1) for line in _MEMINFO.read_text().splitlines())
        free = int(lines["MemAvailable"].split()[0]) * 1024
    except (
        OSError,
        KeyError,
        ValueError,
    ):  # not Linux: half of what is built in, where the system tells
        if hasattr(os, "sysconf"):
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
        return 2**32

    with contextlib.suppress(
        OSError, ValueError
    ):  # no such files, or the limit is "max"
        limit, used = (
            int((_GROUP / name).read_text())
            for name in ("memory.max", "memory.current")
        )
        free = min(free, limit - used)

    with contextlib.suppress(ImportError, OSError):  # what `ulimit -v` says
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        used = int(_PAGES.read_text().split()[0])
        if limit != resource.RLIM_INFINITY:
            free = min(free, limit - used * resource.getpagesize())

    return max(0, free)


def check_size(size: float, where: str, what: str, share: float = 0.25) -> None:
    """Refuse what would take too much memory, before it is taken.

    Parameters
    ----------
    size
        Bytes.
    where, what
        What messages say of it.
    share
        How much of the memory that is free it may take, unless a variable says how many
        GB.

    Examples
    --------
    >>> check_size(1e18, "a.csv.gz", "when unpacked")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: a.csv.gz: found 1e+09 GB when unpacked, expected at most ... GB (the variable ...)
    """
    given = os.environ.get(LIMIT, "")
    try:
        if given:
            most = 1e9 * float(given)
        else:
            most = share * available_memory()
    except ValueError:
        raise InputError(f"{LIMIT}: found {given!r}, expected a number of GB") from None

    remedy = f"the variable {LIMIT} sets another number of GB"
    if not (size <= most):
        raise InputError(
            where=where,
            found=f"{size / 1e9:.3g} GB {what}",
            expected=f"at most {most / 1e9:.3g} GB ({remedy})",
        )


def cores() -> int:
    """How many threads to use: the cores this process may run on, or fewer if ``OMP_NUM_THREADS`` says so.

    Examples
    --------
    >>> cores() >= 1
    True
    """
    from joblib import cpu_count  # knows CPU affinity and the quotas of containers

    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if wanted.isdigit() and int(wanted):
        return min(cpu_count(), int(wanted))
    return int(cpu_count())


def keep_memory() -> None:
    """Let this process keep what arrays gave back for the next ones; for a program that walks blocks, not a library.

    The C library of Linux hands large arrays back to the system at once and asks for
    fresh memory, which the system clears. Walking 10,000,000 instances that took a
    seventh of the time (docs/decisions/0008). Other systems: nothing.

    Examples
    --------
    >>> keep_memory()
    """
    import ctypes

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return

    for name, number in {
        "MALLOC_MMAP_THRESHOLD_": -3,
        "MALLOC_TRIM_THRESHOLD_": -1,
        "MALLOC_ARENA_MAX": -8,
    }.items():
        mallopt(number, KEPT[name])  # as <malloc.h> numbers them
