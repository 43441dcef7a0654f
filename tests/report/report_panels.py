"""Predictions of which tests make reports, and names that are hard to show."""

import itertools
from functools import cache

import numpy as np

import mlconsensus as mlc

HOSTILE = [
    "<script>window.ran = 1</script>",
    "\"'><img src=x onerror='window.ran = 1'>",
    "</script><script>window.ran = 1</script>",
    "<!-- <script>",
    "x" * 10_000,
    "שלום <b>עולם</b>",
    "👩‍👩‍👧‍👦 family",
    "a\nb\tc\x00\x1b[31m",
    "\u202eevil",
    "$script ${7*7} {{x}} &amp;",
    "javascript:window.ran=1",
]


def hostile_panel():
    made, truth = mlc.datasets.make_panel(
        40, len(HOSTILE), len(HOSTILE), shared_errors=0, random_state=4
    )
    instances = [f"{name}{i}" for i in range(4) for name in HOSTILE][:40]
    return mlc.Predictions(
        made.to_array(), models=HOSTILE, labels=HOSTILE, instances=instances
    ), truth


def one_label():
    return mlc.datasets.make_panel(200, 1, 4, cardinality=0.4, random_state=1)


def two_models():
    return mlc.datasets.make_panel(300, 12, 2, random_state=2)


def many_labels():
    return mlc.datasets.make_panel(
        100, 300, 20, cardinality=6, random_state=3
    ).predictions, None


def no_agreement():
    return mlc.Predictions(np.random.default_rng(0).random((4, 600, 10)) < 0.25), None


PANELS = {
    "one label": one_label,
    "two models": two_models,
    "300 labels × 20 models": many_labels,
    "no agreement": no_agreement,
    "hostile names": hostile_panel,
}


@cache
def report_of(name):
    """Make a report once for all tests."""
    panel, truth = PANELS[name]()
    return mlc.combine(panel).report(truth)


def by_all_sets(vote, chosen):
    """Compare with every label set of the same size: the literal definition."""
    size = int(chosen.sum())
    sets = list(itertools.combinations(range(len(vote)), size))
    most = max(sum(vote[list(s)]) for s in sets)
    best = [set(s) for s in sets if sum(vote[list(s)]) > most - 1e-9]
    chosen_labels = set(np.flatnonzero(chosen).tolist())
    return (
        chosen_labels - set.union(*best),
        set.intersection(*best) - chosen_labels,
        len(best) > 1,
    )
