"""Metrics and label sets on 1,000,000 × 100 scores, beside sorts of the scores; one case in a process of its own.

    python -m suite.judging "micro_auc"

Prints one JSON object.
"""

import json
import sys
from functools import partial

import numpy as np

from mlconsensus.decision import label_sets
from mlconsensus.metrics import ranking

from . import case
from .panels import FILL

SHAPE = (1_000_000, 100)
LEVELS = 10  # of the scores with ties, as a vote of ten models has them


def _metric(name, given):
    return np.array(getattr(ranking, name)(*given))


def _label_sets(given):
    truth, scores = given
    return label_sets.match_instances(scores, truth.sum(axis=1))


_OF_SCORES = {
    "sort of all": lambda given: np.sort(given[1], axis=None),
    "sort of rows": lambda given: np.sort(given[1], axis=1),
    "partition of rows": lambda given: np.partition(given[1], SHAPE[1] - 3, axis=1),
    **{name: partial(_metric, name) for name in ranking.RANKING_METRICS},
    "label sets": _label_sets,
}
CASES = {
    f"{name}{ties}": run
    for ties in ("", " with ties")
    for name, run in _OF_SCORES.items()
}


def main():
    rng = np.random.default_rng(0)
    scores = rng.random(SHAPE)
    truth = rng.random(SHAPE) < FILL
    if sys.argv[1].endswith(" with ties"):
        np.round(scores * LEVELS, out=scores)
    found = case.measure((truth, scores), CASES[sys.argv[1]])
    del found["scores"]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
