"""Whom to ask next: which instances a person should answer, with the probability that each was chosen with.

For a better consensus, a third of the budget goes to instances where another label is
most likely to be right than the one put first, a third each to where ranking loss and
average precision are expected to be worst, times the root of how uncertain the labels
are; for sharper figures, all to those whose metrics may vary most (Neyman's
allocation). A part is drawn evenly, so that no instance is without a chance and the
answers can also judge without bias.
"""

from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import special

from ..errors import InputError, one_of
from ..metrics.intervals import foreseen_metrics
from ..predictions import BoolArray, FloatArray, IntArray
from ..predictions.validation import whole
from ..text import plural

Goal = Literal["consensus", "figures"]
# for a better consensus: powers of what may be wrong, and of uncertainty in it
_POWER = 16.0
_UNSURE = 0.5
_EVENLY = {"consensus": 0.2, "figures": 0.3}  # part of the budget that is drawn evenly


class Questions(NamedTuple):
    """Which instances to ask about."""

    at: IntArray  # (b,) their positions, those most worth asking about first
    chance: FloatArray  # (b,) with what probability each was chosen
    # to be filled in: a `ModelTable` of these instances, and of those that have answers
    table: Any = None

    def __str__(self) -> str:
        return f"{plural(len(self.at), 'instance')} to ask about"


def questions(
    scores: FloatArray,
    likely: FloatArray,
    answered: BoolArray,
    budget: int,
    goal: Goal,
    seed: int = 0,
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
        ``"consensus"``: for a better consensus; ``"figures"``: for figures with
        narrower intervals.
    seed
        Instances are drawn by it.

    Examples
    --------
    >>> likely = np.array([[0.9, 0.1], [0.5, 0.5], [0.6, 0.4], [1.0, 0.0]])
    >>> found = questions(likely, likely, np.zeros(4, dtype=bool), 2, "consensus", seed=1)
    >>> found.at.tolist(), bool((found.chance > 0).all())
    ([1, 2], True)
    """
    budget = whole(budget, "budget", 1)
    seed = whole(seed, "seed", 0, 2**63)
    one_of(goal, _EVENLY, "goal")
    rng = np.random.default_rng(seed)
    rest = np.flatnonzero(~answered)
    if not (len(rest) > 0):
        raise InputError(
            where="ask",
            found="answers about every instance",
            expected="some instance to ask about",
        )

    budget = min(budget, len(rest))
    chance = chances(scores[rest], likely[rest], budget, goal)
    chosen = drawn(chance, rng)
    chosen = chosen[np.argsort(-chance[chosen], kind="stable")]
    return Questions(rest[chosen], chance[chosen])


def chances(
    scores: FloatArray,
    likely: FloatArray,
    budget: float,
    goal: Goal,
    power: float = _POWER,
    unsure: float = _UNSURE,
) -> FloatArray:
    """Find with what probability each instance (n,) is to be asked about; they add up to the budget."""
    one_error, loss, precision = np.clip(foreseen_metrics(likely, scores), 0, 1)
    wrong = np.array([one_error, loss, 1 - precision])
    if goal == "consensus":
        # Where no label is relevant, none can be put first; by half, as what is likely
        # without truth is often too low.
        wrong[0] = np.clip(one_error - (1 - likely).prod(axis=1) / 2, 0, 1)
        entropy = (special.entr(likely) + special.entr(1 - likely)).sum(axis=1)
        each = wrong * entropy**unsure + 1e-9
        each = (each / each.max(axis=1, keepdims=True)) ** power
        worth = (each / each.sum(axis=1, keepdims=True)).sum(axis=0)
    else:
        worth = np.sqrt(wrong * (1 - wrong)).mean(axis=0)

    return (1 - _EVENLY[goal]) * _in_proportion(worth, budget) + _EVENLY[
        goal
    ] * budget / len(scores)


def drawn(chance: FloatArray, rng: Any) -> IntArray:
    """Draw instances with these chances: one start and even steps along them, laid end to end in random order."""
    order = rng.permutation(len(chance))
    ends = np.cumsum(chance[order]) + rng.random()
    return np.asarray(order[np.diff(np.floor(ends - 1e-9), prepend=0) > 0])


def _in_proportion(worth: FloatArray, budget: float) -> FloatArray:
    """Share a budget out in proportion to worth; nobody gets more than 1, and what is over goes to the others."""
    share = np.zeros(len(worth))
    sure = np.zeros(len(worth), dtype=np.bool_)
    worth = worth + 1e-9 * max(float(worth.max(initial=0.0)), 1e-9)
    while True:
        share = np.where(
            sure,
            1.0,
            worth * (budget - sure.sum()) / max(float(worth[~sure].sum()), 1e-300),
        )
        if not (over := (share > 1 + 1e-12) & ~sure).any():
            return share

        sure |= over
