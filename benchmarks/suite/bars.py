"""The bars that were set for speed, and what the results say of each."""

from typing import NamedTuple

import numpy as np

from .sections import GROWTH, LITERAL, METHODS

TIMES_FLOOR = {"mlcm_a": 1.5, "mlcm_r": 2.0, "bgcm": 2.0}


class Bar(NamedTuple):
    """Something that was asked for, and how far it was reached."""

    what: str
    bar: str
    measured: float
    met: bool


def reached(cases):
    """Give all bars that {section: cases} can tell of."""
    return [
        bar
        for bar in (
            *_peers(cases),
            *_floors(cases),
            *_literal(cases),
            *_growth(cases),
            *_rest(cases),
        )
        if bar
    ]


def _peers(cases):
    peer = seconds(cases["small"], "peer crowdkit-ds")
    for method in METHODS:
        ratio = over(peer, seconds(cases["small"], f"ours {method}"))
        yield _least(
            f"{method}, 10 × 5,000 × 50: crowd-kit's Dawid–Skene takes",
            ratio,
            100,
            "times as long",
        )
    ratio = over(
        seconds(cases["small"], "related peer crowdkit-ds"),
        seconds(cases["small"], "related Weighted"),
    )
    yield _least(
        "Weighted, 10 × 5,000 × 50 of related models: crowd-kit's Dawid–Skene takes",
        ratio,
        60,
        "times as long",
    )


def _floors(cases):
    found = cases["large"]
    for method, most in TIMES_FLOOR.items():
        ratio = over(
            seconds(found, f"ours {method}"), seconds(found, f"floor {method}")
        )
        yield _most(
            f"{method}, 10 × 100,000 × 200 from dense bool",
            ratio,
            most,
            "times its floor",
        )


def _literal(cases):
    for method in LITERAL:
        ratio = over(
            seconds(cases["small"], f"literal {method}"),
            seconds(cases["small"], f"ours {method}"),
        )
        yield _least(
            f"{method}, 10 × 5,000 × 50: the literal transcription takes",
            ratio,
            20,
            "times as long",
        )


def _growth(cases):
    for method in METHODS:
        yield _most(
            f"{method}: exponent of time in `n`",
            exponent(cases["growth"], "n", method),
            1.05,
            "",
        )


def _rest(cases):
    found = cases["metrics"]
    for metric, sort in (
        ("micro_auc", "sort of all"),
        ("ranking_loss", "sort of rows"),
    ):
        ratio = over(seconds(found, metric), seconds(found, sort))
        yield _most(f"`{metric}` on 1,000,000 × 100", ratio, 3, f"times one {sort}")
    ratio = over(
        seconds(cases["imports"], "import mlconsensus"),
        seconds(cases["imports"], "yardstick"),
    )
    yield _most("`import mlconsensus`", ratio, 1.5, "times scikit-learn's and SciPy's")


def _least(what, measured, limit, unit):
    if measured is None:
        return None
    return Bar(what, f"at least {limit} {unit}".strip(), measured, measured >= limit)


def _most(what, measured, limit, unit):
    if measured is None:
        return None
    return Bar(what, f"at most {limit} {unit}".strip(), measured, measured <= limit)


def points(found, axis, method):
    """Give the (size, seconds) of a growth curve."""
    timed = (
        (size, seconds(found, f"{axis} {method} {size}")) for size in GROWTH[axis][1]
    )
    return [(size, taken) for size, taken in timed if taken]


def exponent(found, axis, method):
    """Fit the exponent of time by least squares over all sizes."""
    curve = points(found, axis, method)
    if len(curve) > 2:
        return float(np.polyfit(*np.log(curve).T, 1)[0])
    return None


def seconds(cases, name):
    return cases.get(name, {}).get("seconds")


def over(a, b):
    if a and b:
        return a / b
    return None
