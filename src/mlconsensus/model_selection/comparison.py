"""Every method side by side, judged by answers that are known: figures with intervals, and paired differences.

Known answers are fitted with and judge, but never the same ones: the instances are
dealt into folds, and what judges a fold was fitted without its answers.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from ..combiners._old_default.weighted_consensus import weighted_consensus
from ..combiners.base import BaseCombiner
from ..combiners.registry import COMBINERS
from ..errors import InputError
from ..execution.progress import track
from ..linalg.block_sums import FloatArray
from ..metrics.evaluation import evaluate, evaluate_models
from ..metrics.intervals import Estimate, evaluate_on_gold
from ..metrics.ranking import RANKING_METRICS
from ..metrics.tables import TITLES, title
from ..predictions import (
    CHANCE,
    Gold,
    Predictions,
    as_predictions,
    positions_of,
    split_chances,
    truth_table,
)
from ..text import plural, table

_FOLDS = 5


class Comparison(NamedTuple):
    """What known answers say of each method.

    Attributes
    ----------
    figures
        By method and metric, the value over all instances, with its 90 % interval.
    gains
        By method and metric, how far it is ahead of `against`, paired; positive is
        better, whatever the metric.
    against
        What the others are compared with: voting (MV), or all raters together.
    n_gold
        How many instances have answers.
    drawn
        Whose figures these are: how the answers were drawn.
    sentence
        Which differences are beyond chance.
    """

    figures: dict[str, dict[str, Estimate]]
    gains: dict[str, dict[str, Estimate]]
    against: str
    n_gold: int
    drawn: str
    sentence: str

    def __str__(self) -> str:
        heads = [title(metric) for metric in RANKING_METRICS]
        figures = table(
            ["method", *heads],
            [[name, *own.values()] for name, own in self.figures.items()],
        )
        heads = [
            f"ahead of {self.against}",
            *(f"{TITLES[metric]:>16}" for metric in RANKING_METRICS),
        ]
        gains = table(
            heads,
            [[name, *map(_signed, own.values())] for name, own in self.gains.items()],
        )
        return f"{figures}\n\n{gains}\n\n90 % intervals; * beyond chance, up is better. {self.drawn}\n{self.sentence}"


def evaluate_methods(truth: Any, panel: Predictions) -> dict[str, dict[str, float]]:
    """Judge every method with its defaults by all the truth: method → metric → value.

    ``BM`` is the mean of the base models' own metrics.

    Examples
    --------
    >>> truth = np.array([[1, 0], [0, 1]], dtype=bool)
    >>> evaluate_methods(truth, Predictions(np.stack([truth, ~truth])))["BM"]["micro_auc"]
    0.5
    """
    models = {"BM": evaluate_models(truth, panel)["BM"]}
    return models | {
        name: evaluate(truth, kind().fit_transform(panel))
        for name, kind in COMBINERS.items()
    }


def compare(
    predictions: Any,
    gold: Any = None,
    drawn: str | None = None,
    methods: Mapping[str, BaseCombiner] | None = None,
) -> Comparison:
    """Judge methods by the truth of some instances, which they also learn from, though never from what judges them.

    Parameters
    ----------
    predictions
        `Predictions`, or anything that its constructor takes.
    gold
        Known answers, as `combine` takes them; those that the panel has unless told.
    drawn
        ``"random"``: the instances that have answers were drawn at random. ``None``: as
        the column "inclusion probability" of `gold` says, where `ask` chose them;
        without one nobody knows, and figures are of those instances and others like
        them alone.
    methods
        Estimators by name, of which the first is compared with; all of `COMBINERS`
        unless told, voting (MV) first.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, truth = mlc.datasets.make_panel(n_instances=400, random_state=0)
    >>> gold = np.where(np.arange(len(truth))[:, None] < 80, truth, np.nan)  # they are in random order
    >>> found = compare(panel, gold, "random", {"MV": mlc.MajorityVote(), "Filter": mlc.WeightedConsensus()})
    >>> found.gains["Filter"]["ranking_loss"].is_significant
    True
    """
    panel = as_predictions(predictions)
    if gold is not None:
        panel = panel.with_gold(gold)
    if methods is None:
        methods = {name: kind() for name, kind in COMBINERS.items()}

    named = isinstance(methods, Mapping) and len(methods) > 0
    if not (named):
        raise InputError(
            where="methods",
            found=repr(methods),
            expected="combiners by name, such as {'MV': MajorityVote()}",
        )

    return _compared(
        {name: (combiner, panel) for name, combiner in methods.items()},
        panel,
        gold,
        drawn,
    )


def leave_out(
    predictions: Any,
    gold: Any = None,
    drawn: str | None = None,
    method: BaseCombiner | None = None,
) -> Comparison:
    """Say what leaving each rater out would cost, by the truth of some instances.

    Parameters
    ----------
    predictions, gold, drawn
        As in `compare`.
    method
        The method that combines; the rater filter unless told.

    Returns
    -------
    Comparison
        How far the consensus without each rater is ahead of that of all: below 0, the
        rater is worth its price.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, truth = mlc.datasets.make_panel(n_instances=300, random_state=0)
    >>> found = leave_out(panel, np.where(np.arange(300)[:, None] < 80, truth, np.nan), "random", mlc.MajorityVote())
    >>> len(found.gains), found.against
    (5, 'all raters')
    """
    panel = as_predictions(predictions)
    if gold is not None:
        panel = panel.with_gold(gold)
    if not (len(panel.models) > 1):
        raise InputError(
            where="raters",
            found="one alone",
            expected="at least two, of which one can be left out",
        )
    if method is None:
        method = COMBINERS["Filter"]()

    tried = {"all raters": (method, panel)}
    for name in panel.models:
        tried[f"without {name}"] = (
            method,
            panel.select(models=[other for other in panel.models if other != name]),
        )

    return _compared(tried, panel, gold, drawn)


def _compared(
    tried: dict[str, tuple[BaseCombiner, Predictions]],
    panel: Predictions,
    gold: Any,
    drawn: Any,
) -> Comparison:
    """Judge what is tried, and compare all with the first."""
    for name, (combiner, _) in tried.items():
        if not (isinstance(combiner, BaseCombiner)):
            raise InputError(
                where=f"method of {name!r}",
                found=repr(combiner),
                expected="a combiner, such as MLCMa()",
            )

    known = panel.gold
    if known is None:
        raise InputError(
            "gold: found no answer, expected some that are known (without any, mlc.compare_on_held_out_models(panel) judges)"
        )

    truth = panel.answered(np.full(panel.shape[1:], np.nan))
    likely = weighted_consensus(panel.with_gold(None).without_clusterings())
    chance, said = find_inclusion_probabilities(
        truth if gold is None else gold, drawn, truth, panel.instances
    )
    each = track(tried.items(), len(tried), "comparing")
    judged = {
        name: evaluate_on_gold(truth, cross_fit(*one), likely, chance)
        for name, one in each
    }
    first, *others = judged
    figures = {name: own.compute_estimates() for name, own in judged.items()}
    gains = {
        name: judged[name].subtract(judged[first]).compute_estimates()
        for name in others
    }
    return Comparison(
        figures,
        gains,
        first,
        len(known.at),
        said,
        _verdict(gains, first, len(known.at)),
    )


def find_inclusion_probabilities(
    gold: Any, drawn: str | None, truth: FloatArray, instances: Any
) -> tuple[FloatArray | None, str]:
    """Find with what probability each instance (n,) was to have an answer, and say whose the figures thus are."""
    g = int((~np.isnan(truth)).any(axis=1).sum())
    n = len(truth)
    if drawn not in (None, "random"):
        raise InputError(
            where="drawn", found=repr(drawn), expected="'random', or nothing"
        )

    of_all = (
        f"The figures are of all {plural(n, 'instance')}, of which {g:,} were drawn"
    )
    table = truth_table(gold, "gold", instances, range(truth.shape[1]))
    found = split_chances(table)[1]
    if drawn == "random":
        if found is not None:
            raise InputError(
                where="drawn",
                found=f"'random' beside a column {CHANCE!r} in {table.where}",
                expected="one of the two",
            )

        return np.full(n, g / n), f"{of_all} at random."

    if found is None:
        if g < n:
            unknown = ": nobody said how they were drawn (--drawn random)"
        else:
            unknown = ""

        return (
            None,
            f"The figures are of the {plural(g, 'instance')} with answers and others like them alone{unknown}.",
        )

    at = positions_of(
        instances, range(len(found)) if table.instances is None else table.instances
    )
    return np.where(
        at < 0, 1.0, found[at]
    ), f"{of_all} with the probabilities in the file."


def cross_fit(combiner: BaseCombiner, panel: Predictions) -> FloatArray:
    """Score each instance (n, l) by a fit that does not know the answers of its fold."""
    known = panel.gold
    n = len(panel)
    if known is None:
        return np.asarray(clone(combiner).fit_transform(panel))

    order = np.random.default_rng(0).permutation(n)
    answered = np.isin(order, known.at)
    fold = np.empty(n, dtype=np.int64)
    fold[np.concatenate([order[answered], order[~answered]])] = np.arange(n) % min(
        _FOLDS, len(known.at)
    )
    if combiner.uses_clusterings:
        usable = panel
    else:
        usable = panel.without_clusterings()

    scores = np.empty(panel.shape[1:])
    for this in np.unique(fold):
        others = fold[known.at] != this
        own = np.flatnonzero(fold == this)
        if others.any():
            left = Gold(known.at[others], known.answers[others])
        else:
            left = None

        fitted = clone(combiner).fit(usable.with_gold_at(left, np.arange(n)))
        scores[own] = fitted.transform(usable.with_gold(None)[own])

    return scores


def _signed(gain: Estimate) -> str:
    return f"{gain.value:+z.3f} ± {gain.high - gain.value:.3f}{'*' if gain.is_significant else ' '}"


def _verdict(gains: Mapping[str, Mapping[str, Estimate]], against: str, g: int) -> str:
    """Say what is ahead of the first or behind it, in which metrics."""
    said = []
    for word, sign in (("ahead of", 1), ("behind", -1)):
        sure = {
            name: [
                TITLES[m]
                for m, gain in own.items()
                if gain.is_significant and gain.value * sign > 0
            ]
            for name, own in gains.items()
        }
        named = "; ".join(
            f"{name} ({', '.join(metrics)})"
            for name, metrics in sure.items()
            if metrics
        )
        said += [f"Clearly {word} {against}: {named}."] if named else []

    count = sum(map(len, gains.values()))
    said += (
        [f"Of {count:,} differences some {count // 10:,} would be named by chance."]
        if len(gains) > 10
        else []
    )
    return " ".join([*said, f"Elsewhere {plural(g, 'instance')} cannot tell."])
