"""Count false and true accusations on simulated panels, with and without copies, random and inverted raters.

    python docs/diagnostics/simulate.py [PANELS]      200 of each kind without and 200
    with unless told

The table of docs/diagnostics.md is what it prints. Honest raters differ in quality and
in how readily they say yes, have part of their errors in common, and find some
instances hard.
"""

import sys
from collections import Counter
from typing import NamedTuple

import numpy as np

import mlconsensus as mlc
from mlconsensus.inspection.diagnostics import examine


class Kind(NamedTuple):
    """Panels of one kind: models × instances × labels, how many labels an instance has, who speaks."""

    m: int
    n: int
    l: int
    cardinality: float
    speakers: tuple[int, int] | None = None  # of an instance; None: all
    silence: float = 0.0  # share of cells that raters leave out
    scores: bool = False
    batches: bool = False  # the same three raters do one item after the other
    experts: bool = False  # two raters hardly ever err, the others often


KINDS = {
    "20 annotators, 2–3 an item": Kind(20, 600, 6, 1.5, speakers=(2, 3)),
    "200 raters, each on 2 %": Kind(200, 2000, 8, 1.5, speakers=(3, 5)),
    "300 raters, each on 1 %": Kind(300, 450, 8, 2.0, speakers=(3, 3)),
    "scores": Kind(6, 500, 10, 2.0, scores=True),
    "silence, 40 %": Kind(8, 500, 10, 2.0, silence=0.4),
    "few, frequent labels": Kind(6, 300, 5, 2.5),
    "rare labels": Kind(8, 800, 40, 0.8),
    "4 models, 200 instances": Kind(4, 200, 6, 1.5),
    "batches, 3 annotators each": Kind(18, 600, 6, 1.5, batches=True),
    "2 experts among 6": Kind(6, 300, 6, 1.5, experts=True),
    "dense": Kind(10, 1000, 50, 2.0),
    "dense, large": Kind(10, 5000, 50, 2.0),
}
FIRST_SEED = 1_000_000  # constants of the tests were chosen on panels from other seeds
PLANTED = ("duplicate", "near duplicate", "random", "inverted")


def honest(kind: Kind, rng: np.random.Generator) -> np.ndarray:
    """Answers (m, n, l) of honest raters, NaN where they are silent."""
    m, n, l = kind.m, kind.n, kind.l
    quality = rng.uniform(0.4, 0.9, m)
    if kind.experts:
        quality[1:3], quality[3:] = 0.99, rng.uniform(0.3, 0.5, m - 3)
    answers = mlc.datasets.make_panel(
        n, l, m, cardinality=kind.cardinality, quality=quality, shared_errors=rng.uniform(0, 0.5),
        probabilities=True, random_state=rng,
    ).predictions.to_array()  # fmt: skip
    if not kind.scores:
        ready = rng.normal(0, 0.25, (m, 1, 1))  # how readily each says yes
        answers = (answers >= 1 / (1 + np.exp(3 * ready))).astype(float)
    if kind.speakers is not None:
        least, most = kind.speakers
        place = rng.random((m, n)).argsort(axis=0).argsort(axis=0)
        answers[place >= rng.integers(least, most + 1, n)] = np.nan
    if kind.batches:
        answers[np.arange(m)[:, None] // 3 != np.arange(n) * m // (3 * n)] = np.nan
    answers[rng.random(answers.shape) < kind.silence] = np.nan
    return answers


def plant(answers: np.ndarray, what: str, rng: np.random.Generator) -> None:
    """Turn the last rater into a copy of the first, or into one that answers at random or the opposite."""
    spoke = ~np.isnan(answers[-1]).all(axis=1)
    if what in ("duplicate", "near duplicate"):
        answers[-1] = answers[0]
        if what == "near duplicate":  # of one answer in twenty it has its own idea
            spoke = ~np.isnan(answers[0]).all(axis=1)
            own = np.full_like(answers[0], np.nan)
            own[spoke] = rng.permutation(answers[0][spoke])
            answers[-1] = np.where(
                (rng.random(own.shape) < 0.05) & ~np.isnan(own) & ~np.isnan(answers[0]),
                own,
                answers[0],
            )
    elif what == "random":
        answers[-1, spoke] = rng.permutation(answers[-1, spoke])
    else:
        answers[-1] = 1 - answers[-1]


def trial(kind: Kind, what: str | None, seed: int) -> tuple[Counter[str], bool]:
    """Count innocent raters and pairs that are accused, by kind, and tell whether the planted one is found."""
    rng = np.random.default_rng(seed)
    answers = honest(kind, rng)
    guilty: set[tuple[str, tuple[str, ...]]] = set()
    if what is not None:
        plant(answers, what, rng)
        last = f"model_{kind.m - 1}"
        guilty = {
            ("duplicate", ("model_0", last)) if "duplicate" in what else (what, (last,))
        }
    named = {
        (found.kind, found.models)
        for found in examine(mlc.Predictions(answers)).flags
        if found.kind != "family"
    }
    return Counter(one for one, _ in named - guilty), bool(guilty & named)


def main(panels: int) -> None:
    """Print the table."""
    print(
        "| panels | falsely accused in panels without any | with one | found: "
        + " | ".join(PLANTED)
        + " |"
    )
    print("|---|---|---|" + "---|" * len(PLANTED))
    for name, kind in KINDS.items():
        count = (
            panels
            if kind.m * kind.n * kind.l < 2_000_000 or kind.speakers
            else max(panels // 5, 1)
        )
        without = [trial(kind, None, FIRST_SEED + seed)[0] for seed in range(count)]
        found, falsely = Counter(), []
        for seed in range(count):
            what = PLANTED[seed % len(PLANTED)]
            false, hit = trial(kind, what, 2 * FIRST_SEED + seed)
            falsely.append(false)
            found[what] += hit
        planted = Counter(PLANTED[seed % len(PLANTED)] for seed in range(count))
        shares = " | ".join(f"{found[what]} of {planted[what]}" for what in PLANTED)
        print(
            f"| {name} | {_told(without)} | {_told(falsely)} | {shares} |", flush=True
        )


def _told(counts: list[Counter[str]]) -> str:
    total = sum(counts, Counter())
    told = ", ".join(f"{count} {what}" for what, count in total.items()) or "nobody"
    return f"{told} in {len(counts)}"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
