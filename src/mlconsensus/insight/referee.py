r"""Which method, without truth: raters that were held out judge how the others were combined.

Groups of raters are held out in turn, the others are combined by each method, and the scores are judged by how well
they rank what the held-out raters said. A held-out rater `k` that errs on its own, whatever the others say, is right
with some probability: each metric against its answers then is, in expectation, a rising function of the metric against
the truth, and differences to voting keep their sign. docs/referee.md says when that holds, and when it does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.sparse.csgraph import connected_components
from sklearn.base import clone

from ..arithmetic.products import BoolArray, FloatArray, ratio, votes
from ..errors import expect
from ..estimators import COMBINERS, Combiner, majority_vote, method_named
from ..evaluation import ranks
from ..evaluation.metrics import RANKING_METRICS
from ..panel.predictions import Predictions, as_predictions
from ..panel.sources import positions
from ..tables import TITLES
from ..terminal import table
from .meetings import Sheets, looked_at, meet, scale_of, sheets
from .voices import count_voices

_FITTED, _JUDGED, _FOLDS = 2000, 600, 5  # instances to fit on, instances to judge on, folds: at most
_PARTS = 20  # of the instances, for the jackknife
_COPY, _SHARED_CELLS = 0.9, 50  # raters that correlate more than this, on at least so many cells, are kin
_FEWEST = 3  # groups of raters with which held-out ones can tell anything
# Raters whose errors correlate more than this behave as replicas of one learner do; docs/referee.md has the panels.
_REPLICAS = 0.1
_Z = float(special.stdtrit(_PARTS - 1, 0.95))  # 90 % intervals

Scores = NDArray[Any]


class Gain(NamedTuple):
    """How far a method is ahead of voting by one metric, whose better direction is up."""

    expected: float
    error: float  # standard error, from the jackknife over groups of instances
    low: float  # of the 90 % interval
    high: float


@dataclass(frozen=True)
class Referee:
    """What held-out raters say of each method.

    Attributes
    ----------
    gains
        By method and metric (``"mean"``: of the four), the gain over voting. Empty where nobody can be held out.
    metric
        What the verdict is about.
    n_raters, n_groups, n_folds
        How many raters there are, in how many groups that are held out together, and in how many folds these are.
    doubt
        Why there is no verdict; empty where there is one.
    """

    gains: dict[str, dict[str, Gain]]
    metric: str
    n_raters: int
    n_groups: int
    n_folds: int
    doubt: str = ""

    @property
    def verdict(self) -> str | None:
        """Name of the method to use: voting (MV) unless another's interval is above 0; ``None``: nobody can tell."""
        ahead = {name: own[self.metric].expected for name, own in self.gains.items() if own[self.metric].low > 0}
        return None if self.doubt else max(ahead, key=lambda name: ahead[name], default="MV")

    @property
    def sentence(self) -> str:
        """What this can tell, and what it cannot."""
        if self.doubt:
            return f"No verdict: {self.doubt}."
        what, best = {"mean": "the mean of the four", **TITLES}[self.metric], self.verdict or "MV"
        gain = self.gains.get(best, {}).get(self.metric)
        found = f"{best} is ahead of voting by {gain.expected:.3f}" if gain else "no method is clearly ahead of voting"
        return (
            f"In {what}, {found} (90 % intervals, {self.n_groups} independent groups of raters held out in "
            f"{self.n_folds} folds); this is agreement with raters, so errors that most of them share go unseen, and "
            "raters that miss much make methods look better in one error than they are."
        )

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON."""
        gains = {name: {metric: gain._asdict() for metric, gain in own.items()} for name, own in self.gains.items()}
        return vars(self) | {"gains": gains, "verdict": self.verdict, "sentence": self.sentence}

    def __str__(self) -> str:
        if not self.gains:
            return self.sentence
        rows = [[name, *(_shown(gain) for gain in own.values())] for name, own in self.gains.items()]
        heads = [f"{name:>15}" for name in [*(TITLES[metric] for metric in RANKING_METRICS), "mean"]]
        note = "Gains over voting (MV) against held-out raters, 90 % intervals; * beyond chance, up is better."
        return f"{table(['method', *heads], rows)}\n\n{note}\n{self.sentence}"


def referee(
    predictions: Any,
    optimize: str = "auto",
    methods: Iterable[str] | Mapping[str, Combiner] | None = None,
    groups: Mapping[str, object] | None = None,
) -> Referee:
    """Judge methods without truth: combine some raters, and see how well that ranks what the others said.

    At most 2,000 instances at even distances are looked at (of a panel in files, of its first block), so that the cost
    does not grow with their number.

    Parameters
    ----------
    predictions
        `Predictions`, or anything that its constructor takes.
    optimize
        What the verdict is about: ``"micro_auc"``, ``"one_error"``, ``"ranking_loss"``, ``"average_precision"``, or
        ``"auto"`` for the mean of the four.
    methods
        Names of methods, or estimators by name; all of `COMBINERS` unless told.
    groups
        Which group a rater belongs to, where some have one origin (one model in several settings): these are held out
        together, as copies and near copies always are.

    Returns
    -------
    Referee

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> _, truth = mlc.datasets.make_panel(random_state=0)
    >>> rng = np.random.default_rng(0)
    >>> timid = truth & (rng.random((6, *truth.shape)) < 0.4) | (rng.random((6, *truth.shape)) < 0.02)
    >>> found = mlc.referee(timid, optimize="ranking_loss")
    >>> found.verdict, found.n_groups, found.n_folds
    ('Filter', 6, 5)
    >>> loss = mlc.metrics.ranking_loss
    >>> loss(truth, mlc.rater_filter(timid)) < loss(truth, mlc.majority_vote(timid))
    True
    """
    metric = "mean" if optimize == "auto" else str(optimize).replace("-", "_")
    expect(metric in ("mean", *RANKING_METRICS), "optimize", repr(optimize), f"auto, {', '.join(RANKING_METRICS)}")
    judged = methods if isinstance(methods, Mapping) else _estimators(COMBINERS if methods is None else methods)
    panel, groups = as_predictions(predictions), groups or {}
    positions(list(groups), panel.models, "groups")
    sample, said = _sample(panel)
    kin = _kin(said, sample.models, groups)
    m, found = len(kin), len(np.unique(kin))
    if found < _FEWEST:
        few = f"copies and kin counted once, {found} of {m} raters are independent, and it takes {_FEWEST} to judge"
        return Referee({}, metric, m, found, 0, few)
    folds = _folds(kin, np.bincount(said.rater, minlength=m))
    results = [_judge(sample, [sample.models[k] for k in fold], judged) for fold in folds]
    weight = np.array([own.weight for own in results])  # (folds, metrics, parts + 1)
    value = np.array([own.value for own in results])  # (folds, methods, metrics, parts + 1)
    mean = ratio((weight[:, None] * value).sum(axis=0), np.broadcast_to(weight.sum(axis=0), value.shape[1:]), np.nan)
    gain = mean[1:] - mean[0]
    gain = np.concatenate([gain, gain.mean(axis=1, keepdims=True)], axis=1)
    without, whole = gain[..., :-1], gain[..., -1]
    error = np.sqrt((_PARTS - 1) * without.var(axis=-1))
    low, high = whole - _Z * error, whole + _Z * error
    figures = np.stack([whole, error, low, high], axis=-1).tolist()
    names = (*RANKING_METRICS, "mean")
    gains = {
        name: {one: Gain(*cell) for one, cell in zip(names, own, strict=True)}
        for name, own in zip(judged, figures, strict=True)
    }
    return Referee(gains, metric, m, found, len(folds), _doubt(sample, kin, results))


class Judged(NamedTuple):
    """How methods rank what one fold of held-out raters said, without each part of the instances and with all."""

    value: FloatArray  # (1 + methods, metrics, parts + 1) voting first, up is better
    weight: FloatArray  # (metrics, parts + 1)
    instances: int


def _judge(sample: Predictions, held: Iterable[str], methods: Mapping[str, Combiner]) -> Judged:
    rest = sample.select(models=[name for name in sample.models if name not in set(held)])
    said, vote = sheets(sample.select(models=list(held))), majority_vote(rest)
    chosen = _evenly(len(sample), _JUDGED)
    place = np.full(len(sample), -1)
    place[chosen] = np.arange(len(chosen))
    heard = np.broadcast_to(votes(rest).heard, vote.shape) > 0  # elsewhere a method has nothing but its prior
    spoke, trust = said.spoke & heard[said.instance], _trust(said, vote)[said.rater]
    rows = np.flatnonzero((place[said.instance] >= 0) & (trust > 0))
    at, spoke, trust = place[said.instance[rows]], spoke[rows], trust[rows]
    yes = _decided(said)[rows] & spoke
    of_yes, of_no = np.zeros((2, len(chosen), vote.shape[1]))
    np.add.at(of_yes, at, trust[:, None] * yes)
    np.add.at(of_no, at, trust[:, None] * (spoke & ~yes))
    n_yes, n_spoke = yes.sum(axis=1), spoke.sum(axis=1)
    ranked = (n_yes > 0) & (n_yes < n_spoke)
    at, yes, spoke, trust, n_yes, n_spoke = (a[ranked] for a in (at, yes, spoke, trust, n_yes, n_spoke))
    scores = [vote[chosen], *(clone(method).fit(rest).transform(rest[chosen]) for method in methods.values())]
    silent = (vote.shape[1] - n_yes) / (n_spoke - n_yes)  # ranks put silence last: pairs with it are not the rater's
    value = np.zeros((len(scores), 4, _PARTS + 1))
    weight = np.stack([_without(of_yes.sum(axis=1)), *[_without(_at(at, trust, len(chosen)))] * 3])
    for one, own in zip(value, scores, strict=True):
        g = ranks.groups(yes, np.where(spoke, own[at], -np.inf))
        each = -ranks.wrong_at_top(g), -ranks.pair_loss(g) * silent, ranks.precision_at_relevant(g)
        one[0] = _auc(own, of_yes, of_no)
        one[1:] = [ratio(_without(_at(at, trust * values, len(chosen))), weight[1], 0.0) for values in each]
    return Judged(value, weight, len(np.unique(at)))


def _auc(scores: Scores, of_yes: FloatArray, of_no: FloatArray) -> FloatArray:
    """Find the microAUC (parts + 1,) where each cell (n, l) counts as a yes and as a no by what raters said of it."""
    won, lost = _pairs(scores, of_yes, of_no)
    within = [
        _pairs(scores[part::_PARTS], of_yes[part::_PARTS], of_no[part::_PARTS])[0].sum() for part in range(_PARTS)
    ]
    pairs = _without(won) + _without(lost) - won.sum() + np.append(within, 0.0)  # inclusion and exclusion
    return ratio(pairs, _without(of_yes.sum(axis=1)) * _without(of_no.sum(axis=1)), 0.0)


def _pairs(scores: Scores, of_yes: FloatArray, of_no: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Count the pairs of a yes and a no in the right order, ties one half, by the yes's and by the no's instance."""
    values, at = np.unique(scores, return_inverse=True)
    at = at.reshape(scores.shape)
    yes, no = (np.bincount(at.ravel(), mass.ravel(), len(values)) for mass in (of_yes, of_no))
    below, above = np.cumsum(no) - no / 2, yes.sum() - np.cumsum(yes) + yes / 2
    return (of_yes * below[at]).sum(axis=1), (of_no * above[at]).sum(axis=1)


def _at(instance: NDArray[Any], values: FloatArray, n: int) -> FloatArray:
    return np.asarray(np.bincount(instance, values, n), dtype=np.float64)


def _without(of_instance: FloatArray) -> FloatArray:
    """Add up (n,) without each part of the instances, and all of it (parts + 1,)."""
    part = np.bincount(np.arange(len(of_instance)) % _PARTS, of_instance, _PARTS)
    return np.asarray(part.sum() - np.append(part, 0.0))


def _trust(said: Sheets, vote: FloatArray) -> FloatArray:
    """Square each rater's correlation with the vote of the others, less what chance adds to it; 0 if it is negative."""
    often = vote.mean(axis=0)  # what all know of a label is no merit
    x, y = (said.scores - often) * said.spoke, (vote[said.instance] - often) * said.spoke
    n, sx, sy, xx, yy, xy = (
        _at(said.rater, own.sum(axis=1), len(said.mean)) for own in (said.spoke, x, y, x * x, y * y, x * y)
    )
    n = np.maximum(n, 1)
    product, spread = xy - sx * sy / n, np.sqrt(np.maximum((xx - sx**2 / n) * (yy - sy**2 / n), 0))
    r = ratio(product, np.where(spread > 1e-12, spread, 0.0), 0.0)
    return np.maximum(r * np.abs(r) - 1 / n, 0)


def _decided(said: Sheets) -> BoolArray:
    """Turn scores to yes and no: as large a share of yes as the rater's mean score says."""
    yes = said.scores > 0.5
    for rater in np.unique(said.rater) if said.scores.dtype.kind == "f" else ():
        own = said.rater == rater
        values = said.scores[own][said.spoke[own]].astype(np.float64)
        if not np.isin(values, (0, 1)).all():
            yes[own] = said.scores[own] >= max(np.quantile(values, 1 - values.mean()), 1e-9)
    return np.asarray(yes & said.spoke)


def _sample(panel: Predictions) -> tuple[Predictions, Sheets]:
    """Take instances at even distances, and raters in an order that what they said decides."""
    panel = looked_at(panel).without_clusterings()
    panel = panel[_evenly(len(panel), _FITTED)]
    mean = sheets(panel).mean.tolist()
    panel = panel.select(models=[name for _, name in sorted(zip(mean, panel.models, strict=True))])
    return panel, sheets(panel)


def _evenly(n: int, most: int) -> NDArray[np.int64]:
    return np.arange(min(n, most)) * n // min(n, most)


def _kin(said: Sheets, names: tuple[str, ...], groups: Mapping[str, object]) -> NDArray[Any]:
    """Find the groups of raters that are held out together (m,): copies, near copies and those named."""
    met = meet(said)
    copies = (ratio(met.products, scale_of(met.squares), 0.0) > _COPY) & (met.cells >= _SHARED_CELLS)
    named = [(True, groups[name]) if name in groups else (False, name) for name in names]
    number = np.array([named.index(group) for group in named])
    return np.asarray(connected_components(copies | (number[:, None] == number))[1])


def _folds(kin: NDArray[Any], said: NDArray[Any]) -> list[NDArray[Any]]:
    """Deal groups of kin into folds in which about equally much was said, largest first."""
    much = np.bincount(kin, said)
    folds: list[list[int]] = [[] for _ in range(min(_FOLDS, len(much)))]
    for group in np.argsort(-much, kind="stable"):
        min(folds, key=lambda fold: much[fold].sum()).append(group)
    return [np.flatnonzero(np.isin(kin, fold)) for fold in folds]


def _doubt(sample: Predictions, kin: NDArray[Any], results: list[Judged]) -> str:
    """Say why held-out raters cannot judge here; nothing if they can."""
    instances = sum(own.instances for own in results)
    if instances < 2 * _PARTS:
        return f"held-out raters that agree with the others ranked labels {instances} times, and it takes {2 * _PARTS}"
    first = np.unique(kin, return_index=True)[1]  # one of each group
    alone = sample.select(models=[sample.models[k] for k in first])
    m = len(first)
    together = (m / count_voices(m, meet(sheets(alone)).departures).estimate - 1) / (m - 1)
    if together <= _REPLICAS:
        return ""
    return (
        f"the raters err together (correlation of errors {together:.2f}), as replicas of one learner do; held-out "
        "ones share the errors of the rest, so that gains are understated"
    )


def _estimators(names: Iterable[str]) -> dict[str, Combiner]:
    known = dict.fromkeys(method_named(name) for name in names)
    return {name: COMBINERS[name]() for name in known if name != "MV"}


def _shown(gain: Gain) -> str:
    return f"{gain.expected:+z.3f} ± {gain.high - gain.expected:.3f}{' ' if gain.low <= 0 <= gain.high else '*'}"
