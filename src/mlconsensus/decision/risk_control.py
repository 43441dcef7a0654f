r"""Label sets that keep a promise: how many relevant labels they hold, or how many of their labels are wrong.

A label is given where its score reaches a threshold. Of gold instances drawn at random
from `n`, the loss at each threshold is known; it is safe if the mean loss of all
instances being larger than promised can be rejected. Thresholds are tested from the
safest on until one fails, which keeps the chance of any wrong rejection (Learn then
Test: Angelopoulos, Bates, Candès, Jordan, Lei, 2021, fixed sequence; for recall, whose
loss only grows with the threshold, these are the risk-controlling sets of Bates et al.,
2021). The test is a bet against the promise being broken, on one gold instance after
the other: the chance that the capital ever grows :math:`1/\delta`-fold, were the mean
loss :math:`\alpha`, is at most :math:`\delta` (Waudby-Smith, Ramdas, 2024, section 5.1,
drawn without replacement):

.. math::

    K_t = \prod_{s \le t} \bigl(1 - \beta_s (x_s - \alpha_s)\bigr), \qquad
    \alpha_s = \frac{n \alpha - \sum_{r < s} x_r}{n - s + 1}

docs/gold-figures.md has how often promises are kept.
"""

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from ..errors import InputError
from ..linalg.block_sums import BoolArray, FloatArray, ratio
from ..metrics.ground_truth import check_partial_truth_and_scores
from ..text import plural

_THRESHOLDS = 300  # that are tried
_MOST_BET = 0.75  # of the capital


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """What label sets are promised to keep."""

    about: str  # "recall", "precision" or "false_discovery"
    level: float
    certainty: float
    threshold: float  # infinite: with this gold nothing can be promised
    sentence: str


@dataclass(frozen=True, kw_only=True)
class RiskControlledSets:
    """Label sets, and what is promised of them."""

    sets: FloatArray  # (n, l): 1 given, 0 not given, NaN left to people
    promises: tuple[Guarantee, ...]

    @property
    def n_cells(self) -> int:
        """How many cells are left to people."""
        return int(np.isnan(self.sets).sum())

    @property
    def n_instances(self) -> int:
        """How many instances have a cell that is left to people."""
        return int(np.isnan(self.sets).any(axis=1).sum())

    def __str__(self) -> str:
        n, l = self.sets.shape
        cells = f"{self.n_cells:,} of {n * l:,} cells in {self.n_instances:,} of {n:,} instances"
        return "\n".join(
            [
                *(promise.sentence for promise in self.promises),
                f"Left to people: {cells}.",
            ]
        )


def decide(
    scores: FloatArray,
    truth: Any,
    *,
    recall: float | None = None,
    precision: float | None = None,
    false_discovery: float | None = None,
    certainty: float = 0.9,
) -> RiskControlledSets:
    """Turn scores into label sets that keep promises, by the truth of some instances that were drawn at random.

    With `recall` and one of the others, labels that reach the higher threshold are
    given, those below the lower one are not, and those between are left to people.

    Parameters
    ----------
    scores
        Consensus scores (n, l), found without this truth.
    truth
        Relevant labels (n, l) as 1 and 0, NaN where it is not known. What is known is
        taken into the sets.
    recall
        At least this share of an instance's relevant labels is given (or left to
        people), averaged over instances that have one.
    precision
        At least this share of an instance's labels is relevant, averaged over
        instances; of no labels, all are.
    false_discovery
        At most this share of an instance's labels is wrong: the same, said the other
        way round.
    certainty
        In how many of all draws of gold instances each promise is kept, at least.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, truth = mlc.datasets.make_panel(random_state=0)
    >>> gold = np.where(np.arange(len(truth))[:, None] < 200, truth, np.nan)  # they are in random order
    >>> found = mlc.decide(mlc.weighted_consensus(panel), gold, recall=0.9, precision=0.8)
    >>> given = found.sets == 1
    >>> bool((truth & given).sum() / given.sum() >= 0.8), found.n_cells > 0
    (True, True)
    """
    wanted = {
        "recall": recall,
        "precision": precision,
        "false_discovery": false_discovery,
    }
    asked = {about: level for about, level in wanted.items() if level is not None}
    if not (bool(asked)):
        raise InputError(
            where="decide",
            found="nothing to promise",
            expected="recall, precision or false_discovery",
        )

    for about, level in {**asked, "certainty": certainty}.items():
        if not (isinstance(level, Real) and 0 < level < 1):
            raise InputError(
                where=about, found=repr(level), expected="a number between 0 and 1"
            )

    truth, scores = check_partial_truth_and_scores(truth, scores)
    gold = np.flatnonzero(~np.isnan(truth).all(axis=1))
    if not (len(gold) > 0):
        raise InputError(
            where="truth",
            found="no instance whose truth is known",
            expected="some that were drawn at random",
        )

    gold = np.random.default_rng(0).permutation(gold)  # bets are placed in random order
    promises = tuple(
        _promise(about, level, certainty, scores, truth, gold)
        for about, level in asked.items()
    )
    reached = {promise.about: promise.threshold for promise in promises}
    lower = reached.pop("recall", np.inf)
    upper = max(reached.values(), default=lower)
    sets = np.where(
        scores >= upper, 1.0, np.where(scores >= min(lower, upper), np.nan, 0.0)
    )
    return RiskControlledSets(
        sets=np.where(np.isnan(truth), sets, truth), promises=promises
    )


def _promise(
    about: str,
    level: float,
    certainty: float,
    scores: FloatArray,
    truth: Any,
    gold: Any,
) -> Guarantee:
    """Find the last threshold, from the safest on, that the promise can be kept with."""
    # most relevant labels score high
    ranked = np.sort(scores, axis=None)
    tail = np.linspace(0, 1, _THRESHOLDS) ** 4
    thresholds = np.unique(ranked[((1 - tail) * (ranked.size - 1)).astype(np.int64)])
    if about != "recall":
        thresholds = thresholds[::-1]

    yes = truth[gold] == 1
    no = truth[gold] == 0
    own = scores[gold]
    if about == "false_discovery":
        most = level
    else:
        most = 1 - level

    losses = np.array([_loss(about, own >= at, yes, no, most) for at in thresholds])
    failed = np.append(
        _chance(losses, most, len(scores), 1 - certainty) > 1 - certainty, True
    )
    drawn = f"if the gold ({plural(len(gold), 'instance')}) was drawn at random"
    said = f"{_SAID[about].format(100 * level)}, with a certainty of {100 * certainty:.10g}%, {drawn}"
    end, nothing = (
        (-np.inf, "every label is kept")
        if about == "recall"
        else (np.inf, "no label is given")
    )
    sentence = f"This gold is too little to promise that {said}: {nothing}."
    if not failed[0]:
        end = float(thresholds[np.argmax(failed) - 1])
        sentence = f"{said[0].upper()}{said[1:]}."

    return Guarantee(
        about=about,
        level=level,
        certainty=certainty,
        threshold=end,
        sentence=sentence,
    )


def _loss(
    about: str, kept: BoolArray, yes: BoolArray, no: BoolArray, most: float
) -> FloatArray:
    r"""Tell of each instance which share of its relevant labels is missing, or of its labels is wrong.

    Recall is of instances that have a relevant label, however many these are. Others
    lose just what is allowed: :math:`\sum_i x_i > \alpha \sum_i r_i` where
    :math:`\sum_i (x_i + \alpha (1 - r_i)) > n \alpha`.
    """
    lost, of, none = (
        (yes & ~kept, yes, most)
        if about == "recall"
        else (kept & no, kept & (yes | no), 0.0)
    )
    return ratio(lost.sum(axis=1), of.sum(axis=1), none)


def _chance(losses: FloatArray, most: float, n: int, wrongly: float) -> FloatArray:
    """Bound how likely the losses (t, g) of some of `n` instances are if the mean of all is above `most`.

    Bets suit the smallest excess that so many instances can show.
    """
    g = losses.shape[1]
    before = np.cumsum(losses, axis=1) - losses
    seen = np.arange(g)
    null = (n * most - before) / (n - seen)
    squares = (losses - (most + before) / (1 + seen)) ** 2
    variance = (most * (1 - most) + np.cumsum(squares, axis=1) - squares) / (1 + seen)
    bet = np.sqrt(2 * np.log(1 / wrongly) / (g * np.maximum(variance, 1e-12)))
    bet = np.minimum(bet, _MOST_BET / np.maximum(1 - null, 1e-9))
    capital = np.cumsum(np.log1p(-bet * (losses - null)), axis=1)
    return np.asarray(np.minimum(np.exp(-capital.max(axis=1)), 1.0))


_SAID = {
    "recall": "at least {:.10g}% of an instance's relevant labels are kept, on average over instances that have one",
    "precision": "at least {:.10g}% of an instance's labels are relevant (of none, all), on average over instances",
    "false_discovery": "at most {:.10g}% of an instance's labels are wrong (of none, none), on average over instances",
}
