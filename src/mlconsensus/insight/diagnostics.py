"""Does it help here? What a panel tells about itself without any truth."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ..arithmetic.products import FloatArray, column_sums, connections, label_grams, ratio, spoken
from ..combiners import rater_filter
from ..combiners.raters import rate
from ..engines import gather
from ..estimators import Combiner
from ..panel.predictions import Predictions

# Two models whose errors are this correlated beyond what their reliability explains count as copies.
_COPY = 0.9
# Where chance alone makes correlations larger than this, a panel is too small to tell anything about its models.
_TELLS = 0.3


class Statistics(NamedTuple):
    """Sums over instances for each label and pair of models; `a` is a score, `s` is 1 where the model spoke."""

    products: Any  # (l, m, m) Σ a_k a_q
    said: Any  # (l, m, m) Σ s_k a_q
    both: Any  # (l, m, m) Σ s_k s_q


class Examined(NamedTuple):
    """What a panel tells about its models and labels."""

    models: tuple[str, ...]
    labels: tuple[str, ...]
    agreement: FloatArray  # (m, m) correlation of what two models say, over all labels together
    reliability: FloatArray  # (m,) correlation of what a model says with what models have in common
    looks_random: tuple[str, ...]  # models that agree with the others no more than chance lets expect
    opposite: tuple[str, ...]  # models that say the opposite of the others
    copies: tuple[tuple[str, str], ...]  # pairs of models whose errors are the same
    dispute: FloatArray  # (l,) mean squared difference of two models' scores: how often they differ, if they decide

    def warnings(self) -> list[str]:
        """Say in one sentence each which models should be looked at."""
        return [
            *(f"{name} answers as if at random" for name in self.looks_random),
            *(f"{name} says the opposite of the others" for name in self.opposite),
            *(f"{one} and {other} make the same errors, as copies do" for one, other in self.copies),
        ]

    def most_disputed(self, count: int = 10) -> list[tuple[str, float]]:
        """Return the labels on which models differ most, with how far."""
        return [(self.labels[j], float(self.dispute[j])) for j in np.argsort(-self.dispute, kind="stable")[:count]]


class Diagnostics(NamedTuple):
    """What a panel tells about itself, and how far its consensus departs from voting.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, _ = mlc.datasets.make_panel(quality=[0.8, 0.8, 0.8, 0.8, 0], shared_errors=0, random_state=0)
    >>> found = mlc.combine(panel).diagnostics
    >>> found.panel.warnings()
    ['model_4 answers as if at random']
    """

    panel: Examined
    moved: float  # share of instances whose first label is none of those that voting puts first
    order_kept: float  # mean rank correlation of the consensus with voting, over instances where voting has an order

    def __str__(self) -> str:
        m = len(self.panel.models)
        mean = self.panel.agreement[~np.eye(m, dtype=bool)].mean() if m > 1 else 1.0
        disputed = ", ".join(f"{name} ({share:.0%})" for name, share in self.panel.most_disputed(3))
        return "\n".join(
            [
                f"models agree with a mean correlation of {mean:.2f}; most disputed: {disputed}",
                f"the consensus puts another label first than voting for {self.moved:.1%} of the instances",
                *self.panel.warnings(),
            ]
        )


def statistics(block: Predictions) -> Statistics:
    """Add up what pairs of models said about each label."""
    m, n, l = block.shape
    A, said = connections(block), spoken(block)
    products = label_grams(A, A, l, 1.0)
    if said is None:
        totals = column_sums(A).reshape(m, l).T
        return Statistics(products, np.repeat(totals[:, None, :], m, axis=1), np.full((l, m, m), float(n)))
    dense = A.toarray() if hasattr(A, "toarray") else A
    return Statistics(products, label_grams(said, dense, l, 1.0), label_grams(said, said, l, 1.0))


def examine(predictions: Predictions, fitted: Combiner | None = None) -> Examined:
    """Look at the models and labels of a panel; a rater filter `fitted` to it has gathered what that takes.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, _ = mlc.datasets.make_panel(random_state=0)
    >>> examine(panel).warnings(), examine(panel, mlc.RaterFilter().fit(panel)).warnings()
    ([], [])
    """
    sums = (
        _of_each_label(fitted.statistics_)
        if isinstance(fitted, rater_filter.RaterFilter)
        else gather(predictions, statistics)
    )
    within = _covariances(sums)
    names, m = predictions.models, len(predictions.models)
    variance = np.maximum(np.einsum("jkk->jk", within), 0)
    pooled = variance.sum(axis=0)
    agreement = np.clip(within.sum(axis=0) / np.sqrt(np.maximum(np.outer(pooled, pooled), 1e-30)), -1, 1)
    np.fill_diagonal(agreement, 1.0)
    raters = rate(within, sums.both)
    # Labels count as often as they vary: as many independent cells as the variances let expect.
    labels = max(1.0, pooled.sum() ** 2 / max((variance.sum(axis=1) ** 2).sum(), 1e-30))
    beyond_chance = 3 / np.sqrt(max(1.0, float(sums.both.max()) * labels))
    tells = m > 1 and beyond_chance <= _TELLS
    random = tells & (np.abs(agreement - np.eye(m)).max(axis=1) < beyond_chance)
    return Examined(
        names,
        predictions.labels,
        agreement,
        raters.overall,
        tuple(name for name, at_random in zip(names, random, strict=True) if at_random),
        tuple(names[k] for k in range(m) if tells and raters.overall[k] < -beyond_chance and not random[k]),
        tuple(
            (names[k], names[q])
            for k in range(m)
            for q in range(k + 1, m)
            if tells and raters.shared_errors[k, q] > _COPY and agreement[k, q] > beyond_chance
        ),
        _dispute(sums),
    )


def diagnose(
    predictions: Predictions, scores: FloatArray, vote: FloatArray, fitted: Combiner | None = None
) -> Diagnostics:
    """Look at a panel, and at how far the consensus `scores` (n, l) departs from the majority `vote` (n, l).

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, _ = mlc.datasets.make_panel(random_state=0)
    >>> vote = mlc.majority_vote(panel)
    >>> diagnose(panel, vote, vote).moved
    0.0
    """
    first = np.take_along_axis(vote, scores.argmax(axis=1)[:, None], axis=1)[:, 0]
    moved = float((first < vote.max(axis=1)).mean())
    return Diagnostics(examine(predictions, fitted), moved, _order_kept(scores, vote))


def leave_one_model_out(predictions: Predictions, combiner: Combiner) -> tuple[FloatArray, FloatArray]:
    """Find the lowest and the highest score (n, l) that each cell gets when any one model is left out.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, _ = mlc.datasets.make_panel(n_instances=20, n_models=3, random_state=0)
    >>> low, high = leave_one_model_out(panel, mlc.RaterFilter())
    >>> low.shape, bool((low <= high).all())
    ((20, 20), True)
    """
    low = high = clone(combiner).fit_transform(predictions)
    if len(predictions.models) > 1:
        for left_out in predictions.models:
            kept = [model for model in predictions.models if model != left_out]
            scores = clone(combiner).fit_transform(predictions.select(models=kept))
            low, high = np.minimum(low, scores), np.maximum(high, scores)
    return low, high


def _of_each_label(sums: rater_filter.Statistics) -> Statistics:
    """Take what concerns one label at a time out of the filter's statistics."""
    m, l = sums.total.shape
    shape = (m, l, m, l)
    said = np.broadcast_to(sums.said_together + sums.complete[:, :, None, None], shape)  # Σ a_q s_k at [q, j, k, j]
    both = np.broadcast_to(sums.together + float(sums.n_complete), shape)
    return Statistics(*(np.einsum("qjkj->jkq", field).copy() for field in (sums.products, said, both)))


def _covariances(sums: Statistics) -> FloatArray:
    """Find the covariances of the models on each label (l, m, m), each over the instances that both spoke about."""
    spoke = np.einsum("jkk->jk", sums.both)
    mean = ratio(np.einsum("jkk->jk", sums.said), spoke, 0.0)
    crossed = sums.said * mean[:, :, None]  # Σ s_k a_q μ_k
    products = sums.products - crossed - crossed.transpose(0, 2, 1) + sums.both * mean[:, :, None] * mean[:, None, :]
    return np.asarray(products / np.maximum(sums.both, 1))


def _dispute(sums: Statistics) -> FloatArray:
    """Average (a_k − a_q)² over pairs of different models and instances."""
    m = sums.both.shape[1]
    different = ~np.eye(m, dtype=np.bool_)
    squares = np.einsum("jkk->jk", sums.products)
    # Where all models spoke this is exact; with silence, squares are taken over all that each model said, and what
    # that makes negative is 0.
    share = ratio(sums.both, np.einsum("jkk->jk", sums.both)[:, :, None], 0.0)
    apart = share * squares[:, :, None] + share.transpose(0, 2, 1) * squares[:, None, :] - 2 * sums.products
    return ratio((np.maximum(apart, 0) * different).sum(axis=(1, 2)), (sums.both * different).sum(axis=(1, 2)), 0.0)


def _order_kept(scores: FloatArray, vote: FloatArray) -> float:
    from scipy.stats import rankdata

    ranks: list[NDArray[np.float64]] = [rankdata(values, axis=1) for values in (scores, vote)]
    centred = [rank - rank.mean(axis=1, keepdims=True) for rank in ranks]
    sizes = [np.sqrt((rank**2).sum(axis=1)) for rank in centred]
    ordered = (sizes[0] > 0) & (sizes[1] > 0)
    if not ordered.any():
        return 1.0
    return float(((centred[0] * centred[1]).sum(axis=1)[ordered] / (sizes[0] * sizes[1])[ordered]).mean())
