"""Compare the speed and memory of this version with those of another commit.

    git worktree add ../other COMMIT
    python benchmarks/against_commit.py ../other/src [--inputs ...] [--methods ...]

Each method runs on each input in processes of its own, with this version and the other
one in turn. The table has the ratios of the smallest times and of the peak memory
beyond input and output: this version divided by the other.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from suite.version_case import INPUTS, make_votes

HERE = Path(__file__).parent
METHODS = ("majority_vote", "mlcm_a", "mlcm_r", "bgcm", "dawid_skene")
# BGCM does not support large label spaces.
NOT_MEASURED = {("large label space", "bgcm")}
# Memory below this is not compared: it is that of the interpreter.
SMALLEST_MEMORY = 16


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("other", type=Path, help="folder src of the other version")
    parser.add_argument("--inputs", nargs="+", choices=INPUTS, default=list(INPUTS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    sources = {"this": HERE.parent / "src", "other": options.other.resolve()}

    print(
        f"{'input':26s}{'method':15s}{'seconds':>9s}{'time':>7s}{'CPU':>7s}"
        f"{'MiB':>8s}{'memory':>8s}"
    )
    for name in options.inputs:
        make, shape = INPUTS[name]
        if make is make_votes:
            make(*shape)  # made once, and kept in a file
        for method in options.methods:
            if (name, method) not in NOT_MEASURED:
                best = compare(name, method, sources, options.rounds)
                print_row(name, method, best["this"], best["other"])


def compare(name, method, sources, rounds):
    """Return the smallest figures of each version."""
    best = {}
    for _ in range(rounds):
        for version, source in sources.items():
            result = measure(name, method, source)
            previous = best.get(version, result)
            best[version] = {
                figure: min(result[figure], previous[figure]) for figure in result
            }
    return best


def measure(name, method, source):
    """Measure a method in a process of its own."""
    arguments = json.dumps({"input": name, "method": method})
    environment = {**os.environ, "PYTHONPATH": str(source)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-m", "suite.version_case", arguments],
        cwd=HERE,
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def print_row(name, method, this, other):
    """Print the figures of this version, and their ratios to the other's."""
    time_ratio = this["seconds"] / other["seconds"]
    cpu_ratio = this["cpu"] / other["cpu"]
    memory = max(this["peak_mib"], SMALLEST_MEMORY)
    memory_ratio = memory / max(other["peak_mib"], SMALLEST_MEMORY)
    print(
        f"{name:26s}{method:15s}{this['seconds']:9.3f}{time_ratio:7.2f}"
        f"{cpu_ratio:7.2f}{this['peak_mib']:8.0f}{memory_ratio:8.2f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
