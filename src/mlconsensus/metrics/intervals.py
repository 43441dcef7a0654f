r"""How sure figures are that come from the few instances whose truth is known.

Each ranking metric :math:`\theta` of a method is estimated from gold instances, drawn
with probabilities :math:`\pi_i`, which thus stand for :math:`w_i = 1/\pi_i` instances
each. An instance moves the estimate by its influence :math:`\psi_i`: for a mean, its
own value less the mean; for microAUC, a ratio of sums over pairs of cells, Hoeffding's
projection (DeLong, DeLong, Clarke-Pearson, 1988, with instances in place of cells).
What truth is likely to be, as a consensus without it foresees, gives the same metric of
*all* instances, :math:`\tilde\theta`, and influences :math:`\tilde\psi`:

.. math::

    \hat\theta = \theta_w + \lambda (\tilde\theta - \tilde\theta_w), \qquad
    \widehat{\operatorname{var}} = \sum_i \frac{(1 - \pi_i) w_i^2}{(\sum_j w_j)^2}
    \Bigl(\frac{\psi_i - \lambda \tilde\psi_i}{1 - h_i}\Bigr)^2

This is prediction-powered inference with the :math:`\lambda` of least variance (PPI++;
Angelopoulos, Duchi, Zrnic, 2023), in the form that survey sampling calls the regression
estimator (Särndal, Swensson, Wretman, 1992, 6.4), so that it knows that the gold
instances are some of finitely many. Residuals are those of leaving the instance out
(:math:`h_i` its leverage), and half an instance as extreme as the most extreme one is
added: few instances tell two methods apart, and Wald's interval is too short then.
Where foreseeing does not help, :math:`\lambda = 0`: the plain interval.
docs/gold-figures.md has how often they cover.
"""

from typing import Any, NamedTuple, Self

import numpy as np
from scipy import special

from ..linalg.block_sums import BoolArray, FloatArray, ratio
from . import _rank_counts
from .ranking import LOWER_IS_BETTER, RANKING_METRICS

LEVEL = 0.9
_EXTREME = (
    0.5  # how many more instances as extreme as the most extreme are reckoned with
)
_LEAST = 0.05  # of an instance's residual that its leverage leaves


class Figure(NamedTuple):
    """An estimate with its 90 % interval."""

    value: float
    error: float  # standard error
    low: float
    high: float
    worth: float  # how many gold instances alone would have given so small an error

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f}–{self.high:.3f})"

    @property
    def is_significant(self) -> bool:
        """Of a difference: whether it is beyond chance."""
        return self.low > 0 or self.high < 0


class GoldEvaluation(NamedTuple):
    """The four metrics of one method on `g` gold instances; the difference of two is their paired difference."""

    value: FloatArray  # (4,) θ_w
    moved: FloatArray  # (4, g) ψ
    shift: (
        FloatArray  # (4,) of what is foreseen: over all instances less over gold ones
    )
    foreseen: FloatArray  # (4, g) ψ~
    stands_for: FloatArray  # (g,) w
    left: FloatArray  # (g,) 1 − π, how much of what it stands for was not seen
    share: bool = True  # whether the figures are in [0, 1]

    def subtract(self, other: Self) -> Self:
        """Compare with another method on the same instances; up is better, whatever the metric."""
        sign = np.array(
            [[-1.0 if metric in LOWER_IS_BETTER else 1.0] for metric in RANKING_METRICS]
        )
        value, shift = (
            sign[:, 0] * (one - two)
            for one, two in ((self.value, other.value), (self.shift, other.shift))
        )
        moved = sign * (self.moved - other.moved)
        foreseen = sign * (self.foreseen - other.foreseen)
        return self._replace(
            value=value, moved=moved, shift=shift, foreseen=foreseen, share=False
        )

    def compute_estimates(self) -> dict[str, Figure]:
        """Return each metric, or difference, with its interval."""
        return dict(
            zip(
                RANKING_METRICS,
                map(self._figure, range(len(RANKING_METRICS))),
                strict=True,
            )
        )

    def _figure(self, at: int) -> Figure:
        own = self.moved[at]
        foreseen = self.foreseen[at]
        g = len(self.stands_for)
        weight = self.stands_for / self.stands_for.sum()
        spread = self.left * weight**2
        tuned = float(ratio(spread @ (own * foreseen), spread @ foreseen**2, 0.0))
        alone = weight * foreseen**2
        leverage = weight + np.array([np.zeros(g), ratio(alone, alone.sum(), 0.0)])
        residuals = np.array([own, own - tuned * foreseen]) / np.maximum(
            1 - leverage, _LEAST
        )
        plain, powered = (
            residuals**2 @ spread + _EXTREME * spread.mean() * np.abs(own).max() ** 2
        )
        helps = powered < plain
        value = float(self.value[at] + helps * tuned * self.shift[at])
        if self.share:
            value = float(np.clip(value, 0, 1))

        error = float(np.sqrt(powered if helps else plain))
        if self.left.any():
            ends = _between(value, error, 1 / float(weight @ weight), self.share)
        else:
            ends = (value, value)

        return Figure(value, error, *ends, float(g * ratio(plain, error**2, 1.0)))


def evaluate_on_gold(
    truth: Any,
    scores: FloatArray,
    likely: FloatArray | None = None,
    chance: FloatArray | None = None,
) -> GoldEvaluation:
    """Judge scores by what truth is known.

    Parameters
    ----------
    truth
        Relevant labels (n, l) as 1 and 0, NaN where it is not known.
    scores
        Scores (n, l) that were found without this truth.
    likely
        How likely each label is relevant (n, l), also found without it; ``None``:
        nothing is foreseen.
    chance
        With what probability each instance (n,) was drawn to get its truth; ``None``:
        nobody knows. Figures are then of the instances with truth and others like them,
        and no other instance is looked at.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, truth = mlc.datasets.make_panel(random_state=0)
    >>> gold = np.where(np.arange(len(truth))[:, None] < 100, truth, np.nan)  # they are in random order
    >>> vote = mlc.majority_vote(panel)
    >>> found = evaluate_on_gold(gold, vote, mlc.weighted_consensus(panel), np.full(len(truth), 0.1)).compute_estimates()["ranking_loss"]
    >>> found.low < mlc.metrics.ranking_loss(truth, vote) < found.high, found.worth > 100
    (True, True)
    """
    truth = np.asarray(truth, dtype=np.float64)
    known = ~np.isnan(truth)
    gold = np.flatnonzero(known.any(axis=1))
    if chance is None:
        stands_for = np.ones(len(gold))
    else:
        stands_for = 1 / chance[gold]

    # An instance of which half the cells are known is half seen.
    if chance is None:
        left = np.ones(len(gold))
    else:
        left = np.maximum(1 - chance[gold] * known[gold].mean(axis=1), 0)

    yes = truth[gold] == 1
    no = truth[gold] == 0
    value, moved = _values(
        compute_instance_metrics(yes, no, scores[gold]),
        yes,
        no,
        scores[gold],
        stands_for,
    )
    shift = np.zeros(4)
    foreseen = np.zeros((4, len(gold)))
    if chance is not None and likely is not None:
        likely = np.clip(likely, 0, 1)
        each = compute_expected_metrics(likely, scores)
        of_all, _ = _values(each, likely, 1 - likely, scores, np.ones(len(scores)))
        of_gold, foreseen = _values(
            each[:, gold], likely[gold], 1 - likely[gold], scores[gold], stands_for
        )
        shift = of_all - of_gold

    return GoldEvaluation(value, moved, shift, foreseen, stands_for, left)


def compute_instance_metrics(
    yes: BoolArray, no: BoolArray, scores: FloatArray
) -> FloatArray:
    """Give one error, ranking loss and average precision of each instance (3, n), over the cells that are known.

    Labels of which nothing is known are left out. NaN where cells that are not known
    would tell: whether the label put first is right, or how labels stand of which none
    is a yes.
    """
    asked = (yes | no).any(axis=0)
    yes = yes[:, asked]
    no = no[:, asked]
    scores = scores[:, asked]
    g = _rank_counts.find_tie_groups(
        yes, np.where(yes | no, scores, -np.inf)
    )  # what is not known comes last, and its pairs off
    pairs = (no.shape[1] - g.n_relevant) / np.maximum(no.sum(axis=1), 1)
    first = scores == scores.max(axis=1, keepdims=True)
    told = (yes | no).all(axis=1) | yes.any(axis=1)
    wrong = ratio((first & no).sum(axis=1), (first & (yes | no)).sum(axis=1), np.nan)
    ranked = np.stack(
        [
            _rank_counts.compute_ranking_loss(g) * pairs,
            _rank_counts.compute_average_precision(g),
        ]
    )
    return np.vstack([wrong, np.where(told, ranked, np.nan)])


def compute_expected_metrics(likely: FloatArray, scores: FloatArray) -> FloatArray:
    """Give what these metrics probably are (3, n): each sum over labels in its expectation."""
    p = np.take_along_axis(likely, np.argsort(-scores, axis=1, kind="stable"), axis=1)
    above = np.cumsum(p, axis=1) - p
    place = np.arange(p.shape[1])
    total = p.sum(axis=1)
    wrong = (p * (place - above)).sum(axis=1)
    precision = (p * (1 + above) / (1 + place)).sum(axis=1)
    pairs = total * (p.shape[1] - total)
    return np.stack(
        [1 - p[:, 0], ratio(wrong, pairs, 0.0), ratio(precision, total, 1.0)]
    )


def _values(
    each: FloatArray, yes: Any, no: Any, scores: FloatArray, stands_for: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Give microAUC and the means of what is known of each instance (4,), and by how much each moves them (4, g).

    Cells are as much a yes and a no as is said.
    """
    weight = stands_for / stands_for.sum()
    won = _rank_counts.sum_won_pairs(
        scores, yes * weight[:, None], no * weight[:, None]
    )
    mass = np.array([yes.sum(axis=1), no.sum(axis=1)]) * weight
    total = mass.sum(axis=1, keepdims=True)
    auc = ratio(won[0].sum(), total.prod(), np.nan)
    told = ~np.isnan(each)
    share = np.where(told.all(axis=1), 1.0, told @ weight)
    value = ratio(np.where(told, each, 0.0) @ weight, share, np.nan)
    moved = (
        ratio(won, total.prod(), 0.0) - np.nan_to_num(auc) * ratio(mass, total, 0.0)
    ).sum(axis=0) / weight
    away = ratio(np.where(told, each - value[:, None], 0.0), share[:, None], 0.0)
    return np.append(auc, value), np.vstack([moved, away])


def _between(value: float, error: float, g: float, share: bool) -> tuple[float, float]:
    """Find the ends of the interval; shares are skewed near 0 and 1, and symmetric in their logarithmic odds.

    Odds never reach 0 or 1: where the plain interval does, so does this one.
    """
    half = error * float(special.stdtrit(max(g - 1, 1), (1 + LEVEL) / 2))
    if alike := error < 1e-12:  # the most that so many instances can miss
        half = 1 - ((1 - LEVEL) / 2) ** (1 / g)

    low = value - half
    high = value + half
    if not share:
        return low, high
    if not alike:
        least = min(error, 0.5)
        p = float(np.clip(value, least, 1 - least))
        odds = special.logit(p)
        half = half / (p * (1 - p))
        if low <= 0:
            low = 0.0
        else:
            low = float(special.expit(odds - half))

        if high >= 1:
            high = 1.0
        else:
            high = float(special.expit(odds + half))

    return max(low, 0.0), min(high, 1.0)
