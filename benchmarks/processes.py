"""Commands run in processes of their own, and what they took."""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

COMBINE = [str(Path(sys.executable).with_name("mlconsensus")), "combine", "--force"]


def compared(
    runs: dict[str, list[str]], yardstick: str, repeats: int, output: Path
) -> dict[str, dict[str, float]]:
    """Run commands in turn, keep the best of each, and say how many times the yardstick's time it took."""
    best: dict[str, dict[str, float]] = {}
    for _ in range(repeats):
        for name, command in runs.items():
            output.unlink(missing_ok=True)  # removing it is not timed
            found = measured(command)
            if name not in best or found["seconds"] < best[name]["seconds"]:
                best[name] = found
    for found in best.values():
        found["times"] = found["seconds"] / best[yardstick]["seconds"]
    return best


def options(about: str, **numbers: int) -> argparse.ArgumentParser:
    """Return a parser with some numbers, and a folder for files that are made once."""
    parser = argparse.ArgumentParser(description=about)
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--folder", type=Path)
    return parser


def files(
    folder: Path, pattern: str, count: int, make: Callable[[Path, int], None]
) -> list[str]:
    """Return the files that `make` makes, as many as asked for; those that are there are not made again."""
    folder.mkdir(exist_ok=True)
    paths = [folder / pattern.format(k) for k in range(count)]
    for k, path in enumerate(paths):
        if not path.exists():
            make(path, k)
    return [str(path) for path in paths]


def measured(command: list[str]) -> dict[str, float]:
    """Return wall time, CPU time and peak memory of a command, and end where it fails."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{command[:4]} ended with {status}")
    wall = time.perf_counter() - began
    return {
        "seconds": wall,
        "cpu": usage.ru_utime + usage.ru_stime,
        "peak_mib": usage.ru_maxrss / 2**10,
    }
