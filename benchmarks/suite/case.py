"""One measurement in a process of its own: best time, peak memory beyond input and output, quality.

    python -m suite.case '{"what": "ours", "method": "mlcm_a", "shape": [10, 5000, 50],
    "form": "bool"}'

`what` is "ours", "floor" or "literal". Prints one JSON object.
"""

import json
import re
import resource
import sys
import time
from pathlib import Path

import numpy as np

from . import floor, panels

TESTS = Path(__file__).parents[2] / "tests"
MOST_MEMORY = 20 * 2**30
ENOUGH_SECONDS = 3.0
FEWEST_RUNS = 3
MOST_RUNS = 20
LONG = 15.0  # seconds after which once is enough


def main():
    case = json.loads(sys.argv[1])
    votes, truth = panels.load(case["shape"], case.get("kind", "independent"))
    for axis, size in enumerate(case.get("part", ())):
        if size < votes.shape[axis]:
            votes = votes.take(range(size), axis=axis)
    truth = truth[: votes.shape[1], : votes.shape[2]]
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    try:
        found = measure(*WHAT[case["what"]](votes, case))
    except MemoryError:
        print(json.dumps({"failed": f"needs more than {MOST_MEMORY >> 30} GiB"}))
        return
    if case.get("quality", True) and case["what"] != "floor":
        found["quality"] = quality(truth, found["scores"])
    del found["scores"]
    print(json.dumps(found))


def ours(votes, case):
    import mlconsensus as mlc

    combiner = mlc.COMBINERS[case["method"]]
    combiner().fit_transform(votes[:, :50])  # what is imported when first used
    return panels.as_form(
        votes, case.get("form", "bool")
    ), lambda panel: combiner().fit_transform(panel)


def at_floor(votes, case):
    prepare, run = floor.FLOORS[case["method"]]
    run(prepare(np.ascontiguousarray(votes[:, :50])))
    return prepare(votes), run


def literal(votes, case):
    """The paper's equations with loops and explicit inverses, as the tests have them."""
    sys.path.insert(0, str(TESTS))
    import oracle

    return votes.astype(np.float64), getattr(oracle, case["method"])


WHAT = {"ours": ours, "floor": at_floor, "literal": literal}


def measure(given, function):
    """Run until time is up; the input is made before, and neither it nor the scores count as memory used."""
    before = _memory("RSS")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    runs = []
    cpu = []
    scores = None
    while not _enough(runs):
        scores = None
        began = time.perf_counter()
        worked = time.process_time()
        scores = function(given)
        runs.append(time.perf_counter() - began)
        cpu.append(time.process_time() - worked)
    beyond = _memory("HWM") - before - getattr(scores, "nbytes", 0)
    return {
        "seconds": min(runs),
        "cpu": min(cpu),  # of all threads together
        "runs": len(runs),
        "peak_mib": max(0, beyond) / 2**20,
        "scores": scores,
    }


def quality(truth, scores):
    from mlconsensus.metrics import ranking

    found = {
        name: getattr(ranking, name)(truth, scores)
        for name in ("micro_auc", "ranking_loss")
    }
    return {name: round(value, 5) for name, value in found.items()}


def _enough(runs):
    if len(runs) in (0, MOST_RUNS):
        return bool(runs)
    return runs[0] > LONG or (len(runs) >= FEWEST_RUNS and sum(runs) > ENOUGH_SECONDS)


def _memory(what):
    found = re.search(rf"Vm{what}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) * 1024


if __name__ == "__main__":
    main()
