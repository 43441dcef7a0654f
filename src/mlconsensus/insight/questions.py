"""Whom to ask next: which instances a person should answer, with the probability that each was chosen with.

For a better consensus, instances are worth asking about whose ranking is expected to be wrong and whose labels are
uncertain; for sharper figures, those whose metrics may vary most (Neyman's allocation). Both are drawn with
probabilities in proportion to that, never 0, so that the answers can also judge without bias.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import special

from ..arithmetic.products import BoolArray, FloatArray
from ..arithmetic.sheets import IntArray
from ..evaluation.intervals import foreseen_metrics, judge
from ..tables import TITLES

Goal = Literal["consensus", "figures"]
_POWER, _EVENLY = (
    4,
    0.1,
)  # for a better consensus: how strongly worth tells, and which part of the budget is drawn evenly
_EVENLY_FIGURES = 0.3  # for sharper figures


@dataclass(frozen=True, eq=False)
class Questions:
    """Which instances to ask about."""

    at: IntArray  # (b,) their positions, those most worth asking about first
    chance: FloatArray  # (b,) with what probability each was chosen
    expected: dict[str, float]  # by metric: half the width of the 90 % interval that answers to all would give
    table: Any = None  # to be filled in: a `ModelTable` of these instances, and of those that have answers

    def __str__(self) -> str:
        halves = ", ".join(f"{TITLES[metric]} ± {half:.3f}" for metric, half in self.expected.items())
        return f"{len(self.at):,} instances to ask about; with their answers expect {halves}"


def questions(
    scores: FloatArray, likely: FloatArray, answered: BoolArray, budget: int, goal: Goal, seed: int = 0
) -> Questions:
    """Choose `budget` instances to ask about.

    Parameters
    ----------
    scores, likely
        Consensus scores and probabilities (n, l).
    answered
        Which instances (n,) have answers already.
    budget
        How many instances to ask about.
    goal
        ``"consensus"``: for a better consensus; ``"figures"``: for figures with narrower intervals.
    seed
        Instances are drawn by it.

    Examples
    --------
    >>> likely = np.array([[0.9, 0.1], [0.5, 0.5], [0.6, 0.4], [1.0, 0.0]])
    >>> found = questions(likely, likely, np.zeros(4, dtype=bool), 2, "consensus", seed=1)
    >>> found.at.tolist(), bool((found.chance > 0).all())
    ([1, 2], True)
    """
    rng, rest = np.random.default_rng(seed), np.flatnonzero(~answered)
    budget = min(budget, len(rest))
    one_error, loss, precision = (np.clip(each, 0, 1) for each in foreseen_metrics(likely[rest], scores[rest]))
    wrong = np.array([one_error, loss, 1 - precision])
    if goal == "consensus":
        usual = np.maximum(wrong.mean(axis=1, keepdims=True), 1e-9)
        unsure = special.entr(likely[rest]) + special.entr(1 - likely[rest])
        worth, evenly = ((wrong / usual).mean(axis=0) * np.sqrt(unsure.sum(axis=1))) ** _POWER, _EVENLY
    else:
        worth, evenly = np.sqrt(wrong * (1 - wrong)).mean(axis=0), _EVENLY_FIGURES
    chance = (1 - evenly) * _in_proportion(worth, budget) + evenly * budget / len(rest)
    # One start and even steps along the chances, laid end to end in random order: exactly `budget` are met.
    order = rng.permutation(len(rest))
    ends = np.cumsum(chance[order]) + rng.random()
    chosen = order[np.diff(np.floor(ends - 1e-9), prepend=0) > 0]
    chosen = chosen[np.argsort(-worth[chosen], kind="stable")]
    truth = np.full(scores.shape, np.nan)
    truth[rest[chosen]] = rng.random((len(chosen), scores.shape[1])) < likely[rest[chosen]]
    every = np.ones(len(scores))
    every[rest] = chance
    figures = judge(truth, scores, likely, every).figures()
    expected = {metric: (figure.high - figure.low) / 2 for metric, figure in figures.items()}
    return Questions(rest[chosen], chance[chosen], expected)


def _in_proportion(worth: FloatArray, budget: int) -> FloatArray:
    """Share a budget out in proportion to worth; nobody gets more than 1, and what is over goes to the others."""
    share, sure = np.zeros(len(worth)), np.zeros(len(worth), dtype=np.bool_)
    worth = worth + 1e-9 * max(float(worth.max(initial=0.0)), 1e-9)
    while True:
        share = np.where(sure, 1.0, worth * (budget - sure.sum()) / max(float(worth[~sure].sum()), 1e-300))
        if not (over := (share > 1 + 1e-12) & ~sure).any():
            return share
        sure |= over
