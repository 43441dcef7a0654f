"""How long imports take: fresh interpreters, one statement after the other in turn, the best of many."""

import os
import subprocess
import sys
import time

ROUNDS = 15
STATEMENTS = {
    "yardstick": "import sklearn.base, scipy.sparse, scipy.linalg",
    "import mlconsensus": "import mlconsensus",
    "with all of its names": "from mlconsensus import *",
    "nothing": "pass",
}


def measure():
    environment = {
        k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"
    }
    best = dict.fromkeys(STATEMENTS, float("inf"))
    for _ in range(ROUNDS + 1):  # the first round compiles
        for name, statement in STATEMENTS.items():
            began = time.perf_counter()
            subprocess.run(
                [sys.executable, "-c", statement], check=True, env=environment
            )
            best[name] = min(best[name], time.perf_counter() - began)
    return {
        name: {"seconds": seconds, "runs": ROUNDS} for name, seconds in best.items()
    }
