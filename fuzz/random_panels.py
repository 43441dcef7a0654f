"""Random panels, most of them odd, and what every method owes each of them.

`python fuzz/random_panels.py 10000` draws as many and prints whatever breaks a promise;
`--first` starts elsewhere. The tests go through the first of them. A panel is drawn
from its number alone, so that one that fails can be drawn again.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import clone

import mlconsensus as mlc
from mlconsensus.execution.statistics import merge_statistics

ERROR = 1e-8  # by which scores may hang on the order of things
# The lowest and highest score that docs/theory.md promises, given the number of labels.
RANGES = {
    "majority_vote": lambda l: (0, 1),
    "dawid_skene": lambda l: (0, 1),
    "bgcm": lambda l: (0, 1),
    "mlcm_r": lambda l: (0, 1),
    "mlcm_a": lambda l: (-np.sqrt(l), np.sqrt(l)),
    "weighted_consensus": lambda l: (0, np.inf),
}
METHODS = [kind() for kind in mlc.COMBINERS.values()]
OTHERS = [
    mlc.WeightedConsensus(families="independent"),
    mlc.MLCMr(restart=0.5),
    mlc.MLCMa(n_iter=None),
]  # on every third panel


class Panel(NamedTuple):
    """What was drawn."""

    scores: Any  # (m, n, l), NaN where a model did not say
    weights: Any  # (m,) or None
    kind: str  # in a few words


def draw(number: int) -> Panel:
    """Draw the panel of this number."""
    rng = np.random.default_rng([11, number])
    m = int(rng.choice([1, 2, 2, 3, 3, 4, 5, 7, 12]))
    n = int(rng.choice([1, 2, 3, 8, 20, 60, 150]))
    l = int(rng.choice([1, 1, 2, 3, 6, 12, 25]))
    signal = rng.choice(["none", "none", "weak", "strong"])
    fill = rng.choice([0.02, 0.1, 0.3, 0.5, 0.9])
    truth = rng.random((n, l)) < fill
    right = {
        "none": np.zeros(m),
        "weak": rng.uniform(0, 0.4, m),
        "strong": rng.uniform(0.5, 1, m),
    }[signal]
    said = np.where(
        rng.random((m, n, l)) < right[:, None, None],
        truth,
        rng.random((m, n, l)) < fill,
    ).astype(float)
    form = rng.choice(
        [
            "decisions",
            "decisions",
            "scores",
            "thirds",
            "scales",
            "tiny",
            "subnormal",
            "near one",
        ]
    )
    noise = rng.random(said.shape)
    if form == "scores":
        said = 0.6 * said + 0.4 * noise
    elif form == "thirds":  # many ties
        said = np.round(3 * (0.6 * said + 0.4 * noise)) / 3
    elif form == "scales":
        said = (0.6 * said + 0.4 * noise) ** rng.choice([0.2, 1, 5, 30], m)[
            :, None, None
        ]
    elif form in ("tiny", "subnormal"):
        said = np.where(
            rng.random(said.shape) < 0.5,
            said,
            noise * (1e-12 if form == "tiny" else 1e-310),
        )
    elif form == "near one":
        said = np.where(rng.random(said.shape) < 0.5, said, 1 - noise * 1e-12)
    kinds = [signal, form]

    def sometimes(what: str, how_often: float) -> bool:
        happens = bool(rng.random() < how_often)
        kinds.extend([what] if happens else [])
        return happens

    if sometimes("constant", 0.15):
        said[rng.integers(m)] = rng.choice([0.0, 1.0, 0.5, said[0, 0, 0]])
    if sometimes("constant label", 0.1):
        said[:, :, rng.integers(l)] = rng.choice([0.0, 1.0])
    if sometimes("copies", 0.2):
        said[rng.integers(0, m, 2)] = said[rng.integers(m)]
    if sometimes("inverted", 0.2):
        at = rng.integers(m)
        said[at] = 1 - said[rng.integers(m)] if rng.random() < 0.5 else 1 - said[at]
    if sometimes("-0", 0.1):
        said[(said == 0) & (rng.random(said.shape) < 0.5)] = -0.0
    if sometimes("silence", 0.4):
        said[rng.random(said.shape) < rng.choice([0.05, 0.5, 0.95])] = np.nan
    if sometimes("missing", 0.2):  # models that know a few instances or labels only
        said[rng.random((m, n, 1)).repeat(l, axis=2) < 0.5] = np.nan
        said[rng.random((m, 1, l)).repeat(n, axis=1) < 0.2] = np.nan
    weights = None
    if sometimes("weights", 0.25):
        weights = rng.choice([0.0, 1.0, 0.5, 3.0, 1e-6, 1e6], m)
        if not (weights.any()):
            weights = weights + 1
    return Panel(said, weights, f"{m} × {n} × {l}, {', '.join(kinds)}")


def fitted(method: Any, pieces: list[mlc.Predictions], weights: Any) -> Any:
    """Solve from pieces of a panel, one after the other; what engines do, without their threads."""
    pieces = [piece.weighted(weights) for piece in pieces]

    solver = clone(method)
    solver.weights_ = pieces[0].weights
    for _ in solver.passes:
        statistics = reduce(merge_statistics, map(solver._compute_pass, pieces))
        solver.state_ = solver._solve_pass(statistics, solver.state_, pieces[0].models)
    return solver._solve(reduce(merge_statistics, map(solver._compute_pass, pieces)))


def combined(
    method: Any, panel: mlc.Predictions, weights: Any, solution: Any = None
) -> Any:
    """Apply a solution to a panel, its own by default."""
    if solution is None:
        solution = fitted(method, [panel], weights)
    return method._apply(method._make_block(panel.weighted(weights)), solution)


def faults(panel: Panel, method: Any, seed: int) -> list[str]:
    """Say which promises the method breaks on a panel."""
    scores, weights, _ = panel
    rng = np.random.default_rng([13, seed])
    given = mlc.Predictions(scores)
    solution = fitted(method, [given], weights)
    whole = combined(method, given, weights, solution)
    low, high = RANGES[method.identifier](scores.shape[2])
    if np.isfinite(whole).all():
        found = []
    else:
        found = ["not finite"]
    if whole.min() < low or whole.max() > high:
        found.append(f"out of range: {whole.min()!r} to {whole.max()!r}")

    def compare(what: str, other: Any, error: float = ERROR) -> None:
        apart = float(np.abs(other - whole).max())
        if not apart <= error:
            found.append(f"{what}: {apart:.1e}")

    for turned in range(2):
        at = tuple(
            rng.permutation(size) if turned else np.arange(size)[::-1]
            for size in scores.shape
        )
        other = mlc.Predictions(np.ascontiguousarray(scores[np.ix_(*at)]))
        back = np.empty_like(whole)
        back[np.ix_(at[1], at[2])] = combined(
            method, other, None if weights is None else weights[at[0]]
        )
        compare("order", back)
    compare(
        "sparse",
        combined(
            method, mlc.Predictions([sparse.csr_array(own) for own in scores]), weights
        ),
    )
    cuts = np.sort(rng.integers(0, scores.shape[1] + 1, 2))
    pieces = [
        mlc.Predictions(piece)
        for piece in np.split(scores, cuts, axis=1)
        if piece.shape[1]
    ]
    compare("pieces", combined(method, given, weights, fitted(method, pieces, weights)))
    compare(
        "in pieces",
        np.concatenate(
            [combined(method, piece, weights, solution) for piece in pieces]
        ),
    )
    halved = {name: getattr(solution, name) for name in method.in_float32}
    halved = {
        name: part.astype(np.float32)
        for name, part in halved.items()
        if part is not None
    }
    size = max(1.0, float(np.abs(whole).max()))
    compare(
        "float32",
        combined(method, given, weights, method._replace_fields(solution, halved)),
        1e-4 * size,
    )
    if (
        method.identifier == "weighted_consensus"
        and not solution.model_reliability.any()
    ):
        heard = ~np.isnan(scores if weights is None else scores[weights > 0]).all(
            axis=0
        )
        vote = combined(mlc.MajorityVote(), given, weights)
        compare("votes", np.where(heard, vote, whole))
    return found


def faults_of_default(panel: Panel, seed: int) -> list[str]:
    """Say whether what `combine` chooses and gives hangs on the order of things."""
    scores, weights, _ = panel
    rng = np.random.default_rng([17, seed])
    at = tuple(rng.permutation(size) for size in scores.shape)
    whole = mlc.combine(scores, weights=weights)
    if "no_agreement" in whole.method_reason.codes and "votes" not in whole.reason:
        return ["the reason does not name votes"]
    other = mlc.combine(
        scores[np.ix_(*at)], weights=None if weights is None else weights[at[0]]
    )
    apart = float(np.abs(whole.scores[np.ix_(*at[1:])] - other.scores).max())
    if apart <= ERROR:
        return []
    return [f"order: {apart:.1e}, {whole.method} and {other.method}"]


def main(how_many: int, first: int) -> int:
    """Go through the panels, print what breaks, and return how many panels did."""
    warnings.simplefilter("error")
    broken: Counter[str] = Counter()
    for number in range(first, first + how_many):
        panel = draw(number)
        for method in METHODS if number % 3 else METHODS + OTHERS:
            try:
                found = faults(panel, method, number)
            except Exception as fault:
                found = [f"{type(fault).__name__}: {fault}"]
            broken[method.name] += bool(found)
            if found:
                print(
                    f"panel {number} ({panel.kind}), {method!r}: {'; '.join(found)}",
                    flush=True,
                )
        if number % 5 == 0 and (found := faults_of_default(panel, number)):
            broken["default"] += 1
            print(
                f"panel {number} ({panel.kind}), default: {'; '.join(found)}",
                flush=True,
            )
    print(
        f"{how_many:,} panels from number {first}, {len(METHODS)} methods on each: {broken.total()} broken"
    )
    return broken.total()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("panels", type=int, nargs="?", default=10_000)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    sys.exit(main(given.panels, given.first) > 0)
