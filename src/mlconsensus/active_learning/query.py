"""Select the instances that a person should label next.

Instances are drawn at random with unequal inclusion probabilities, in proportion to
their value for the goal:

- for a better consensus, a third of the budget goes to instances whose first label is
  probably wrong, a third to instances with a high expected ranking loss and a third to
  those with a low expected average precision, each multiplied by the square root of the
  entropy of the labels;
- for narrower intervals of the metrics, all of it goes to instances whose metrics vary
  most (Neyman allocation).

A part of the budget is drawn evenly, so that each instance has a positive probability.
The labels can then also be used to estimate metrics without bias.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from ..errors import InputError, one_of
from ..metrics.intervals import compute_expected_metrics
from ..predictions import BoolArray, FloatArray, IntArray
from ..predictions.validation import whole
from ..text import plural

Goal = Literal["consensus", "figures"]
# For a better consensus: exponents of the expected error, and of the entropy in it
_POWER = 16.0
_UNSURE = 0.5
# Part of the budget that is drawn evenly
_EVEN_SHARE = {"consensus": 0.2, "figures": 0.3}


@dataclass(frozen=True, kw_only=True)
class QueryBatch:
    """Instances that a person should label next."""

    at: IntArray  # (b,) their positions, the most valuable first
    chance: FloatArray  # (b,) inclusion probability of each

    def __str__(self) -> str:
        return f"{plural(len(self.at), 'instance')} to ask about"


def select_queries(
    scores: FloatArray,
    likely: FloatArray,
    answered: BoolArray,
    budget: int,
    goal: Goal,
    *,
    seed: int = 0,
) -> QueryBatch:
    """Select `budget` instances that a person should label.

    Parameters
    ----------
    scores, likely : ndarray of shape (n, l)
        Consensus scores and probabilities.
    answered : ndarray of bool of shape (n,)
        Which instances have gold labels already.
    budget : int
        Number of instances.
    goal : {"consensus", "figures"}
        ``"consensus"``: for a better consensus; ``"figures"``: for metrics with
        narrower intervals.
    seed : int, default=0
        Seed of the random draw.

    Returns
    -------
    QueryBatch

    Examples
    --------
    >>> likely = np.array([[0.9, 0.1], [0.5, 0.5], [0.6, 0.4], [1.0, 0.0]])
    >>> answered = np.zeros(4, dtype=bool)
    >>> query = select_queries(likely, likely, answered, 2, "consensus", seed=1)
    >>> query.at.tolist(), bool((query.chance > 0).all())
    ([1, 2], True)
    """
    budget = whole(budget, "budget", 1)
    seed = whole(seed, "seed", 0, 2**63)
    one_of(goal, _EVEN_SHARE, "goal")

    candidates = np.flatnonzero(~answered)
    if len(candidates) == 0:
        raise InputError(
            where="ask",
            found="answers about every instance",
            expected="some instance to ask about",
        )

    budget = min(budget, len(candidates))
    chance = compute_inclusion_probabilities(
        scores[candidates], likely[candidates], budget, goal
    )
    selected = draw_instances(chance, np.random.default_rng(seed))
    selected = selected[np.argsort(-chance[selected], kind="stable")]
    return QueryBatch(at=candidates[selected], chance=chance[selected])


def compute_inclusion_probabilities(
    scores: FloatArray,
    likely: FloatArray,
    budget: float,
    goal: Goal,
    *,
    power: float = _POWER,
    unsure: float = _UNSURE,
) -> FloatArray:
    """Compute the inclusion probability of each instance; they sum to the budget.

    Parameters
    ----------
    scores, likely : ndarray of shape (n, l)
        Consensus scores and probabilities.
    budget : float
        Number of instances.
    goal : {"consensus", "figures"}
        As in `select_queries`.
    power, unsure : float
        For the goal ``"consensus"``: exponents of the value of an instance, and of the
        entropy in it.

    Returns
    -------
    ndarray of shape (n,)
    """
    one_error, loss, precision = np.clip(compute_expected_metrics(likely, scores), 0, 1)
    expected_errors = np.array([one_error, loss, 1 - precision])  # (3, n)

    if goal == "consensus":
        # No first label is right for an instance without relevant labels. Subtract half
        # of this probability, because probabilities without gold are often too low.
        is_empty = (1 - likely).prod(axis=1)
        expected_errors[0] = np.clip(one_error - is_empty / 2, 0, 1)

        entropy = (special.entr(likely) + special.entr(1 - likely)).sum(axis=1)
        value = expected_errors * entropy**unsure + 1e-9
        value = (value / value.max(axis=1, keepdims=True)) ** power
        worth = (value / value.sum(axis=1, keepdims=True)).sum(axis=0)
    else:
        worth = np.sqrt(expected_errors * (1 - expected_errors)).mean(axis=0)

    even_share = _EVEN_SHARE[goal]
    even = even_share * budget / len(scores)
    return (1 - even_share) * _in_proportion(worth, budget) + even


def draw_instances(chance: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw instances with these inclusion probabilities (systematic sampling).

    The probabilities are laid end to end in random order. An instance is drawn if its
    interval contains a whole number, counted from a random start.
    """
    order = rng.permutation(len(chance))
    ends = np.cumsum(chance[order]) + rng.random()
    is_drawn = np.diff(np.floor(ends - 1e-9), prepend=0) > 0
    return np.asarray(order[is_drawn])


def _in_proportion(worth: FloatArray, budget: float) -> FloatArray:
    """Divide a budget in proportion to worth, with at most 1 for each instance.

    The excess of instances at the limit is divided among the others.
    """
    worth = worth + 1e-9 * max(float(worth.max(initial=0.0)), 1e-9)
    is_full = np.zeros(len(worth), dtype=np.bool_)
    while True:
        remaining_budget = budget - is_full.sum()
        remaining_worth = max(float(worth[~is_full].sum()), 1e-300)
        share = worth * remaining_budget / remaining_worth
        share = np.where(is_full, 1.0, share)

        exceeds = (share > 1 + 1e-12) & ~is_full
        if not exceeds.any():
            return share
        is_full |= exceeds
