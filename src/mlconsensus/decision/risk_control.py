r"""Label sets with a guaranteed recall or precision (risk control).

A label is assigned if its score reaches a threshold. The gold instances are a random
sample of `n` instances. Their loss at each threshold is known. A threshold is safe if
the hypothesis is rejected that the mean loss of all instances is larger than allowed.
Thresholds are tested from the safest one on until one fails, which bounds the
probability of any wrong rejection (Learn then Test: Angelopoulos, Bates, Candès,
Jordan, Lei, 2021, fixed sequence; for recall, whose loss increases with the threshold,
these are the risk-controlling sets of Bates et al., 2021).

The test is a bet against the hypothesis, on one gold instance after the other. If the
mean loss is :math:`\alpha`, the probability that the capital ever grows
:math:`1/\delta`-fold is at most :math:`\delta` (Waudby-Smith, Ramdas, 2024, section
5.1, sampling without replacement):

.. math::

    K_t = \prod_{s \le t} \bigl(1 - \beta_s (x_s - \alpha_s)\bigr), \qquad
    \alpha_s = \frac{n \alpha - \sum_{r < s} x_r}{n - s + 1}

==================  ==================  ==========================================
symbol              variable            meaning
==================  ==================  ==========================================
:math:`x_s`         ``losses``          loss of gold instance `s`
:math:`\alpha`      ``allowed``         largest mean loss that is allowed
:math:`\alpha_s`    ``null_mean``       mean loss of the instances not yet seen
:math:`\beta_s`     ``bet``             share of the capital that is bet
:math:`\delta`      ``error_rate``      1 − confidence level
==================  ==================  ==========================================

docs/gold-figures.md reports how often the guarantees hold.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError
from ..linalg.block_sums import ratio
from ..metrics.ground_truth import check_partial_truth_and_scores
from ..predictions import BoolArray, FloatArray, IntArray
from ..text import plural

_N_THRESHOLDS = 300  # thresholds that are tested
_LARGEST_BET = 0.75  # share of the capital

_GUARANTEES = {
    "recall": (
        "at least {:.10g}% of an instance's relevant labels are kept, "
        "on average over instances that have one"
    ),
    "precision": (
        "at least {:.10g}% of an instance's labels are relevant (of none, all), "
        "on average over instances"
    ),
    "false_discovery": (
        "at most {:.10g}% of an instance's labels are wrong (of none, none), "
        "on average over instances"
    ),
}


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """A guarantee about the mean recall or precision of label sets."""

    about: str  # "recall", "precision" or "false_discovery"
    level: float
    certainty: float  # confidence level
    threshold: float  # infinite: too few gold instances for the guarantee
    sentence: str


@dataclass(frozen=True, kw_only=True)
class RiskControlledSets:
    """Label sets, and what is guaranteed about them."""

    sets: FloatArray  # (n, l): 1 assigned, 0 not assigned, NaN left to people
    promises: tuple[Guarantee, ...]

    @property
    def n_cells(self) -> int:
        """Number of instance-label pairs that are left to people."""
        return int(np.isnan(self.sets).sum())

    @property
    def n_instances(self) -> int:
        """Number of instances with a pair that is left to people."""
        return int(np.isnan(self.sets).any(axis=1).sum())

    def __str__(self) -> str:
        n, l = self.sets.shape
        lines = [guarantee.sentence for guarantee in self.promises]
        lines.append(
            f"Left to people: {self.n_cells:,} of {n * l:,} cells "
            f"in {self.n_instances:,} of {n:,} instances."
        )
        return "\n".join(lines)


def decide(
    scores: FloatArray,
    truth: ArrayLike,
    *,
    recall: float | None = None,
    precision: float | None = None,
    false_discovery: float | None = None,
    certainty: float = 0.9,
) -> RiskControlledSets:
    """Compute label sets with guarantees, from gold labels of a random sample.

    With `recall` and one of the others, labels that reach the higher threshold are
    assigned, those below the lower one are not, and those between are left to people.

    Parameters
    ----------
    scores : ndarray of shape (n, l)
        Consensus scores, computed without these gold labels.
    truth : array-like of shape (n, l)
        Relevant labels as 1 and 0, NaN where the truth is not known. Known labels are
        part of the label sets.
    recall : float, default=None
        At least this share of an instance's relevant labels is assigned or left to
        people, on average over instances with a relevant label.
    precision : float, default=None
        At least this share of an instance's labels is relevant, on average over
        instances. The precision of an empty label set is 1.
    false_discovery : float, default=None
        At most this share of an instance's labels is wrong: 1 − `precision`.
    certainty : float, default=0.9
        Confidence level: probability over random samples of gold instances with which
        each guarantee holds, at least.

    Returns
    -------
    RiskControlledSets

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, truth = mlc.datasets.make_panel(random_state=0)
    >>> is_gold = np.arange(len(truth))[:, None] < 200  # they are in random order
    >>> gold = np.where(is_gold, truth, np.nan)
    >>> scores = mlc.weighted_consensus(panel)
    >>> controlled = mlc.decide(scores, gold, recall=0.9, precision=0.8)
    >>> assigned = controlled.sets == 1
    >>> bool((truth & assigned).sum() / assigned.sum() >= 0.8), controlled.n_cells > 0
    (True, True)
    """
    levels = _check_levels(
        recall=recall,
        precision=precision,
        false_discovery=false_discovery,
        certainty=certainty,
    )
    truth, scores = check_partial_truth_and_scores(truth, scores)
    gold = np.flatnonzero(~np.isnan(truth).all(axis=1))
    if len(gold) == 0:
        raise InputError(
            where="truth",
            found="no instance whose truth is known",
            expected="some that were drawn at random",
        )

    # The bets are placed in random order
    gold = np.random.default_rng(0).permutation(gold)
    guarantees = []
    for about, level in levels.items():
        guarantee = _find_guarantee(
            about=about,
            level=level,
            certainty=certainty,
            scores=scores,
            truth=truth,
            gold=gold,
        )
        guarantees.append(guarantee)

    # Assign labels above the thresholds; labels between them are left to people
    lower, upper = _find_limits(guarantees)
    undecided = np.where(scores >= min(lower, upper), np.nan, 0.0)
    sets = np.where(scores >= upper, 1.0, undecided)
    return RiskControlledSets(
        sets=np.where(np.isnan(truth), sets, truth), promises=tuple(guarantees)
    )


def _check_levels(
    *,
    recall: float | None,
    precision: float | None,
    false_discovery: float | None,
    certainty: float,
) -> dict[str, float]:
    """Return the levels to guarantee, or raise an `InputError`."""
    levels = {}
    if recall is not None:
        levels["recall"] = recall
    if precision is not None:
        levels["precision"] = precision
    if false_discovery is not None:
        levels["false_discovery"] = false_discovery

    if not levels:
        raise InputError(
            where="decide",
            found="nothing to promise",
            expected="recall, precision or false_discovery",
        )

    for name, level in {**levels, "certainty": certainty}.items():
        if not (isinstance(level, Real) and 0 < level < 1):
            raise InputError(
                where=name, found=repr(level), expected="a number between 0 and 1"
            )
    return levels


def _find_limits(guarantees: Sequence[Guarantee]) -> tuple[float, float]:
    """Return the threshold for recall and the highest of the other thresholds."""
    lower = np.inf
    upper_limits = []
    for guarantee in guarantees:
        if guarantee.about == "recall":
            lower = guarantee.threshold
        else:
            upper_limits.append(guarantee.threshold)

    return lower, max(upper_limits, default=lower)


def _find_guarantee(
    *,
    about: str,
    level: float,
    certainty: float,
    scores: FloatArray,
    truth: FloatArray,
    gold: IntArray,
) -> Guarantee:
    """Test thresholds from the safest on, and return the last one that is safe."""
    if about == "false_discovery":
        allowed = level
    else:
        allowed = 1 - level

    # Losses of the gold instances at each threshold
    thresholds = _choose_thresholds(scores)
    if about != "recall":
        thresholds = thresholds[::-1]
    relevant = truth[gold] == 1
    irrelevant = truth[gold] == 0
    losses = []
    for threshold in thresholds:
        is_assigned = scores[gold] >= threshold
        losses.append(
            _compute_losses(about, is_assigned, relevant, irrelevant, allowed)
        )

    # The first threshold that fails the test
    error_rate = 1 - certainty
    p_values = _compute_p_values(np.array(losses), allowed, len(scores), error_rate)
    has_failed = np.append(p_values > error_rate, True)
    first_failure = int(np.argmax(has_failed))

    statement = (
        f"{_GUARANTEES[about].format(100 * level)}, "
        f"with a certainty of {100 * certainty:.10g}%, "
        f"if the gold ({plural(len(gold), 'instance')}) was drawn at random"
    )
    if first_failure > 0:
        safe_threshold = float(thresholds[first_failure - 1])
        sentence = f"{statement[0].upper()}{statement[1:]}."
    elif about == "recall":
        safe_threshold = -np.inf
        sentence = (
            f"This gold is too little to promise that {statement}: every label is kept."
        )
    else:
        safe_threshold = np.inf
        sentence = (
            f"This gold is too little to promise that {statement}: no label is given."
        )

    return Guarantee(
        about=about,
        level=level,
        certainty=certainty,
        threshold=safe_threshold,
        sentence=sentence,
    )


def _choose_thresholds(scores: FloatArray) -> FloatArray:
    """Choose increasing thresholds, most of them at high scores.

    Most relevant labels have high scores.
    """
    ranked = np.sort(scores, axis=None)
    tail = np.linspace(0, 1, _N_THRESHOLDS) ** 4
    rank = (1 - tail) * (ranked.size - 1)
    return np.unique(ranked[rank.astype(np.int64)])


def _compute_losses(
    about: str,
    is_assigned: BoolArray,
    relevant: BoolArray,
    irrelevant: BoolArray,
    allowed: float,
) -> FloatArray:
    r"""Compute the loss of each gold instance, shape (g,).

    The loss is the share of relevant labels that are missing (recall), or the share of
    assigned labels that are wrong. The mean recall is that of the instances with a
    relevant label, :math:`r_i = 1`, regardless of their number. The loss of others is
    the allowed one: :math:`\sum_i x_i > \alpha \sum_i r_i` if and only if
    :math:`\sum_i (x_i + \alpha (1 - r_i)) > n \alpha`.
    """
    if about == "recall":
        missing = relevant & ~is_assigned
        return ratio(missing.sum(axis=1), relevant.sum(axis=1), allowed)

    wrong = is_assigned & irrelevant
    labeled = is_assigned & (relevant | irrelevant)
    return ratio(wrong.sum(axis=1), labeled.sum(axis=1), 0.0)


def _compute_p_values(
    losses: FloatArray, allowed: float, n: int, error_rate: float
) -> FloatArray:
    """Compute p-values of the hypotheses that the mean loss is larger than allowed.

    The size of the bets is optimal for the smallest excess that a sample of this size
    can detect.

    Parameters
    ----------
    losses : ndarray of shape (t, g)
        Losses of the gold instances at each threshold.
    allowed : float
        Largest mean loss of all instances.
    n : int
        Number of instances, with and without gold labels.
    error_rate : float
        1 − confidence level.

    Returns
    -------
    ndarray of shape (t,)
    """
    g = losses.shape[1]
    n_seen = np.arange(g)
    seen_sum = np.cumsum(losses, axis=1) - losses
    null_mean = (n * allowed - seen_sum) / (n - n_seen)

    # Variance of the losses seen before each bet, with one prior observation
    squares = (losses - (allowed + seen_sum) / (1 + n_seen)) ** 2
    seen_squares = np.cumsum(squares, axis=1)
    variance = (allowed * (1 - allowed) + seen_squares - squares) / (1 + n_seen)
    variance = np.maximum(variance, 1e-12)

    # The bets, and the logarithm of the capital after each of them
    bet = np.sqrt(2 * np.log(1 / error_rate) / (g * variance))
    bet = np.minimum(bet, _LARGEST_BET / np.maximum(1 - null_mean, 1e-9))
    log_capital = np.cumsum(np.log1p(-bet * (losses - null_mean)), axis=1)
    return np.asarray(np.minimum(np.exp(-log_capital.max(axis=1)), 1.0))
