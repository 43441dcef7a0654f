"""A command run in a process of its own, and what it took."""

import os
import subprocess
import sys
import time


def measured(command: list[str]) -> dict[str, float]:
    """Return wall time, CPU time and peak memory of a command, and end where it fails."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{command[:4]} ended with {status}")
    wall = time.perf_counter() - began
    return {"seconds": wall, "cpu": usage.ru_utime + usage.ru_stime, "peak_mib": usage.ru_maxrss / 2**10}
