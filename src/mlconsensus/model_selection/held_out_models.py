r"""Which method, without truth: raters that were held out judge how the others were combined.

Groups of raters are held out in turn, the others are combined by each method, and the
scores are judged by how well they rank what the held-out raters said. Where a held-out
rater errs on its own, whatever the others say, a metric against its answers is in
expectation a rising function of the metric against the truth, so that differences to
voting keep their sign. docs/referee.md has the proof, and where it does not hold.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse, special
from scipy.sparse.csgraph import connected_components
from sklearn.base import clone

from ..combiners.base import BaseCombiner
from ..combiners.majority_vote import majority_vote
from ..combiners.registry import COMBINERS, find_method_name
from ..errors import InputError
from ..execution.local import map_with_progress
from ..inspection.effective_models import estimate_effective_models
from ..inspection.pairwise import (
    PairwiseStatistics,
    compute_pairwise_statistics,
    compute_product_scale,
)
from ..linalg.annotations import Annotations, make_annotations
from ..linalg.block_sums import BoolArray, FloatArray, ratio, votes
from ..metrics import _rank_counts
from ..metrics.intervals import Estimate
from ..metrics.ranking import RANKING_METRICS
from ..metrics.tables import TITLES
from ..predictions import IntArray, Predictions, as_predictions, positions
from ..predictions.sampling import select_frequent_labels, subsample_for_diagnostics
from ..text import table

# instances to fit on, instances to judge on, folds: at most
_FITTED = 2000
_JUDGED = 600
_FOLDS = 5
_PARTS = 20  # of the instances, for the jackknife
_Z = float(special.stdtrit(_PARTS - 1, 0.95))  # 90 % intervals
# raters that correlate more than this, on at least so many cells, are kin
_COPY = 0.9
_SHARED_CELLS = 50
_FEWEST = 3  # groups of raters with which held-out ones can tell anything
# Raters whose errors correlate more than this behave as replicas of one learner do;
# docs/referee.md has the panels.
_REPLICAS = 0.1
_LIMITS = "errors that raters share and cells that all find hard go unseen, and raters that miss much flatter one error"


@dataclass(frozen=True, kw_only=True)
class HeldOutComparison:
    """The comparison of methods by models that are held out.

    Attributes
    ----------
    gains : dict of str to dict of str to Estimate
        By method and metric (``"mean"``: of the four), the gain over voting; positive
        is better for each metric. Empty if no model can be held out.
    beyond : dict of str to dict of str to Estimate
        The same gains over the first of the compared methods.
    metric : str
        The metric by which `verdict` is chosen.
    n_raters, n_groups, n_folds : int
        Number of models, of groups of models that are held out together, and of folds
        of these groups.
    verdict : str or None
        Name of the method to use: voting (MV) unless the interval of another method is
        above 0; None if the comparison is not reliable.
    sentence : str
        The result and its limits, or why there is none.
    """

    gains: dict[str, dict[str, Estimate]]
    beyond: dict[str, dict[str, Estimate]]
    metric: str
    n_raters: int
    n_groups: int
    n_folds: int
    verdict: str | None
    sentence: str

    def to_dict(self) -> dict[str, object]:
        """Return the comparison with the keys of the JSON output."""
        entries = {field.name: getattr(self, field.name) for field in fields(self)}
        entries["gains"] = _convert_gains(self.gains)
        entries["beyond"] = _convert_gains(self.beyond)
        return entries

    def __str__(self) -> str:
        if not self.gains:
            return self.sentence

        heads = ["method"]
        heads += [f"{TITLES[metric]:>15}" for metric in RANKING_METRICS]
        heads.append("mean")
        rows = []
        for name, gains in self.gains.items():
            rows.append([name, *map(Estimate.format_difference, gains.values())])

        note = (
            "Gains over voting (MV) against held-out raters, 90 % intervals; * beyond "
            "chance, up is better."
        )
        return f"{table(heads, rows)}\n\n{note}\n{self.sentence}"


def _convert_gains(
    gains: dict[str, dict[str, Estimate]],
) -> dict[str, dict[str, dict[str, float]]]:
    """Return gains with the keys of the JSON output."""
    converted: dict[str, dict[str, dict[str, float]]] = {}
    for name, estimates in gains.items():
        converted[name] = {}
        for metric, estimate in estimates.items():
            entries = estimate.to_dict()
            expected = entries.pop("value")
            converted[name][metric] = {"expected": expected, **entries}

    return converted


def compare_on_held_out_models(
    predictions: Any,
    optimize: str = "auto",
    methods: Iterable[str] | Mapping[str, BaseCombiner] | None = None,
    groups: Mapping[str, object] | None = None,
    even_in_doubt: bool = True,
) -> HeldOutComparison:
    """Judge methods without truth: combine some raters, and see how well that ranks what the others said.

    At most 2,000 instances at even distances are looked at (of a panel in files, of its
    first block), so that the cost does not grow with their number. Answers that are
    known (`Predictions.with_gold`) judge as the best rater there is, and nothing is
    fitted with them.

    Parameters
    ----------
    predictions
        `Predictions`, or anything that its constructor takes.
    optimize
        What the verdict is about: ``"micro_auc"``, ``"one_error"``, ``"ranking_loss"``,
        ``"average_precision"``, or ``"auto"`` for the mean of the four.
    methods
        Names of methods, or estimators by name; all of `COMBINERS` unless told.
    groups
        Which group a rater belongs to, where some have one origin (one model in several
        settings): these are held out together, as copies and near copies always are.
    even_in_doubt
        Whether methods are judged also where raters err together, so that there will be
        no verdict.

    Returns
    -------
    HeldOutComparison

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> _, truth = mlc.datasets.make_panel(random_state=0)
    >>> rng = np.random.default_rng(0)
    >>> timid = truth & (rng.random((6, *truth.shape)) < 0.4) | (rng.random((6, *truth.shape)) < 0.02)
    >>> found = mlc.compare_on_held_out_models(timid, optimize="ranking_loss")
    >>> found.verdict, found.n_groups, found.n_folds
    ('Filter', 6, 5)
    >>> loss = mlc.metrics.ranking_loss
    >>> loss(truth, mlc.weighted_consensus(timid)) < loss(truth, mlc.majority_vote(timid))
    True
    """
    if optimize == "auto":
        metric = "mean"
    else:
        metric = str(optimize).replace("-", "_")

    if metric not in ("mean", *RANKING_METRICS):
        raise InputError(
            where="optimize",
            found=repr(optimize),
            expected=f"auto, {', '.join(RANKING_METRICS)}",
        )
    if not isinstance(methods, Mapping):
        names = map(find_method_name, COMBINERS if methods is None else methods)
        methods = {name: COMBINERS[name]() for name in names if name != "MV"}

    fit = bool(methods) and all(
        isinstance(method, BaseCombiner) for method in methods.values()
    )
    if not (fit):
        raise InputError(
            where="methods",
            found=repr(methods),
            expected="at least one beside voting: a name, or a combiner by its name",
        )

    panel, note = select_frequent_labels(as_predictions(predictions))
    note = note and f" {note}"
    positions(list(groups or ()), panel.models, "groups")
    sample = _sample(panel)
    met = compute_pairwise_statistics(make_annotations(sample))
    kin = _kin(sample.models, met, groups or {})
    m = len(kin)
    found = int(kin.max()) + 1
    few = f"copies and kin counted once, {found} of {m} raters are independent, and it takes {_FEWEST} to judge"
    if found < _FEWEST:
        doubt = few
    else:
        doubt = _err_together(sample, met, kin)

    if found < _FEWEST or (doubt and not even_in_doubt):
        return HeldOutComparison(
            gains={},
            beyond={},
            metric=metric,
            n_raters=m,
            n_groups=found,
            n_folds=0,
            verdict=None,
            sentence=f"No verdict: {doubt}.{note}",
        )

    folds = min(found, _FOLDS)
    dealt = (
        np.argsort(np.argsort(-np.bincount(kin), kind="stable"))[kin] % folds
    )  # groups in turn, largest first
    judged = map_with_progress(
        (dealt == fold for fold in range(folds)),
        partial(_judge, sample, methods),
        folds,
        "judging",
    )
    value, weight = (np.array(of_folds) for of_folds in zip(*judged, strict=True))
    gains, beyond = (_gains(value, weight, list(methods), over) for over in (0, 1))
    total = weight.sum(axis=0)
    if (total[:, :-1] >= total[:, -1:]).any():  # some part has nothing to leave out
        doubt = "held-out raters that agree with the others say too little about too few instances"
    if doubt:
        return HeldOutComparison(
            gains=gains,
            beyond=beyond,
            metric=metric,
            n_raters=m,
            n_groups=found,
            n_folds=folds,
            verdict=None,
            sentence=f"No verdict: {doubt}.{note}",
        )

    ahead = {
        name: own[metric].value for name, own in gains.items() if own[metric].low > 0
    }
    best = max(ahead, key=lambda name: ahead[name], default="MV")
    if ahead:
        said = f"{best} is ahead of voting by {ahead[best]:.3f}"
    else:
        said = "no method is clearly ahead of voting"

    what = TITLES.get(metric, "the mean of the four")
    held = f"{found} independent groups of raters held out in {folds} folds"
    return HeldOutComparison(
        gains=gains,
        beyond=beyond,
        metric=metric,
        n_raters=m,
        n_groups=found,
        n_folds=folds,
        verdict=best,
        sentence=f"In {what}, {said} ({held}); {_LIMITS}.{note}",
    )


def _judge(
    sample: Predictions, methods: Mapping[str, BaseCombiner], out: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Judge voting and the methods by what the raters said that are left `out` (m,).

    Returns
    -------
    Metrics (1 + methods, 4, parts + 1), up is better, without each part of the
    instances and with all; and the weight that each has among folds (4, parts + 1).
    """
    models = np.array(sample.models, dtype=object)
    held, rest = (
        sample.with_gold(None).select(models=models[which].tolist())
        for which in (out, ~out)
    )
    said = make_annotations(held)
    vote = majority_vote(rest)
    chosen = _chosen(sample, _JUDGED)
    gold = sample.gold
    yes, trust = _answers(said, vote)
    instance = said.instance
    spoke = said.spoke
    if gold is not None:  # the best rater there is
        instance = np.append(instance, gold.at)
        trust = np.append(trust, np.ones(len(gold.at)))
        yes = np.append(yes, gold.answers == 1, axis=0)
        spoke = np.append(spoke, ~np.isnan(gold.answers), axis=0)

    rows = np.flatnonzero(np.isin(instance, chosen))
    instance = instance[rows]
    trust = trust[rows]
    at = np.searchsorted(chosen, instance)
    heard = (
        np.broadcast_to(votes(rest).heard, vote.shape) > 0
    )  # elsewhere a method has nothing but its prior
    spoke = spoke[rows] & heard[instance]
    yes = yes[rows] & spoke
    no = spoke & ~yes
    # For microAUC, a cell counts as a yes and as a no by the trust in those who said
    # so.
    trusted = sparse.csr_array(
        (trust, (at, np.arange(len(at)))), shape=(len(chosen), len(at))
    )
    of_yes = trusted @ yes
    of_no = trusted @ no
    mass_of_yes, mass_of_no = (
        _without(np.arange(len(chosen)), mass.sum(axis=1)) for mass in (of_yes, of_no)
    )
    # For the others, every rater's every instance counts that has a pair to rank.
    n_yes = yes.sum(axis=1)
    n_no = no.sum(axis=1)
    trust = trust * ((n_yes > 0) & (n_no > 0))
    silent = (no.shape[1] - n_yes) / np.maximum(
        n_no, 1
    )  # silence is ranked last; its pairs are not the rater's
    ranked = _without(at, trust)
    value = []
    for scores in [
        vote[chosen],
        *(
            clone(method).fit(rest).transform(rest[chosen])
            for method in methods.values()
        ),
    ]:
        g = _rank_counts.find_tie_groups(yes, np.where(spoke, scores[at], -np.inf))
        each = (
            -_rank_counts.compute_one_error(g),
            -_rank_counts.compute_ranking_loss(g) * silent,
            _rank_counts.compute_average_precision(g),
        )
        auc = ratio(_pairs(scores, of_yes, of_no), mass_of_yes * mass_of_no, 0.0)
        value.append(
            [
                auc,
                *(ratio(_without(at, trust * metric), ranked, 0.0) for metric in each),
            ]
        )

    return np.array(value), np.array([mass_of_yes, ranked, ranked, ranked])


def _pairs(scores: FloatArray, of_yes: FloatArray, of_no: FloatArray) -> FloatArray:
    """Count pairs of a yes and a no in the right order, ties one half, without each part of the instances and in all.

    Pairs within the part that is left out are taken as its share of the pairs of its
    yes times that of its no.
    """
    won = _rank_counts.sum_won_pairs(scores, of_yes, of_no)
    of_yes_left, of_no_left = (
        _without(np.arange(len(scores)), of_each) for of_each in won
    )
    return ratio(of_yes_left * of_no_left, np.full(_PARTS + 1, won[0].sum()), 0.0)


def _without(at: IntArray, values: FloatArray) -> FloatArray:
    """Add up values of instances `at` without each part of the instances, and all of them (parts + 1,)."""
    part = np.bincount(at % _PARTS, values, _PARTS)
    return np.asarray(part.sum() - np.append(part, 0.0))


def _answers(said: Annotations, vote: FloatArray) -> tuple[BoolArray, FloatArray]:
    """Tell what raters answered, and how far each can be trusted by the vote of the others (n, l).

    Returns
    -------
    Yes or no for each sheet (r, l): as large a share of yes as a rater's mean score
    says. And the square of its rater's correlation with the vote, less what chance adds
    to it, 0 where it is negative (r,).
    """
    yes = said.scores > 0.5
    trust = np.zeros(len(said.rater))
    often = vote.mean(axis=0)
    for rater in np.unique(said.rater):
        own = said.rater == rater
        spoke = said.spoke[own]
        scores = said.scores[own].astype(np.float64)
        if not np.isin(scores, (0, 1)).all():
            yes[own] = scores >= max(
                np.quantile(scores[spoke], 1 - scores[spoke].mean()), 1e-9
            )

        # What all know of a label, how frequent it is, is no merit.
        x, y = (
            (values - often)[spoke] for values in (scores, vote[said.instance[own]])
        )
        x = x - x.mean()
        y = y - y.mean()
        r = x @ y / max(np.sqrt((x @ x) * (y @ y)), 1e-12)
        trust[own] = max(r * abs(r) - 1 / len(x), 0)

    return yes, trust


def _gains(
    value: FloatArray, weight: FloatArray, names: list[str], over: int
) -> dict[str, dict[str, Estimate]]:
    """Average over folds, and compare with one of those that were judged, of which voting comes first."""
    whole = np.broadcast_to(weight.sum(axis=0), value.shape[1:])
    mean = ratio((weight[:, None] * value).sum(axis=0), whole, np.nan)
    gain = np.round(
        mean[1:] - mean[over], 12
    )  # what rounding leaves of no difference is none
    gain = np.concatenate([gain, gain.mean(axis=1, keepdims=True)], axis=1)
    expected = gain[..., -1]
    error = np.sqrt((_PARTS - 1) * gain[..., :-1].var(axis=-1))
    low = expected - _Z * error
    high = expected + _Z * error

    gains: dict[str, dict[str, Estimate]] = {}
    for i, name in enumerate(names):
        gains[name] = {}
        for j, metric in enumerate((*RANKING_METRICS, "mean")):
            gains[name][metric] = Estimate(
                value=float(expected[i, j]),
                standard_error=float(error[i, j]),
                low=float(low[i, j]),
                high=float(high[i, j]),
            )

    return gains


def _sample(panel: Predictions) -> Predictions:
    """Take instances at even distances, and these and raters in an order that what was said decides."""
    panel = subsample_for_diagnostics(panel).without_clusterings()
    panel = panel[_chosen(panel, _FITTED)]
    mean = make_annotations(panel).mean
    by_rate = sorted(
        zip(np.sort(mean.round(9), axis=1).tolist(), panel.models, strict=True)
    )
    # Parts of instances must have nothing in common: far digits of a number that is
    # each one's own decide.
    of_labels, of_raters = (
        np.sqrt(mean).mean(axis=axis) for axis in (0, 1)
    )  # roots: sums of counts are often equal
    own = np.einsum("kil,l,k->i", np.nan_to_num(panel.to_array()), of_labels, of_raters)
    return panel[np.argsort(1e5 * own % 1, kind="stable")].select(
        models=[name for _, name in by_rate]
    )


def _chosen(panel: Predictions, most: int) -> IntArray:
    """Take instances at even distances, and all whose answers are known."""
    n = len(panel)
    evenly = np.arange(min(n, most)) * n // min(n, most)
    if panel.gold is None:
        return evenly
    return np.union1d(evenly, panel.gold.at)


def _kin(
    raters: Sequence[str], met: PairwiseStatistics, groups: Mapping[str, object]
) -> IntArray:
    """Find which group each rater is held out with (m,): copies, near copies and those named."""
    copies = (ratio(met.products, compute_product_scale(met.squares), 0.0) > _COPY) & (
        met.cells >= _SHARED_CELLS
    )
    named = [
        ("group", groups[name]) if name in groups else ("rater", name)
        for name in raters
    ]
    number = np.array([named.index(own) for own in named])
    return np.asarray(
        connected_components(copies | (number[:, None] == number))[1], dtype=np.int64
    )


def _err_together(sample: Predictions, met: PairwiseStatistics, kin: IntArray) -> str:
    """Say that raters behave as replicas of one learner do, which cannot judge each other; nothing if they do not."""
    one_of_each = [sample.models[k] for k in np.unique(kin, return_index=True)[1]]
    m = len(one_of_each)
    if m < len(kin):
        met = compute_pairwise_statistics(
            make_annotations(sample.select(models=one_of_each))
        )

    voices = estimate_effective_models(m, met.departures)
    together = (m / voices.estimate - 1) / (m - 1)
    shared = f"the raters err together (correlation of errors {together:.2f}), as replicas of one learner do; those "
    if together > _REPLICAS:
        return f"{shared}held out share the errors of the rest, which hides gains"
    return ""
