"""Comparison of methods by gold labels: metrics with intervals, paired differences.

Gold labels are used to fit and to evaluate, but never the same ones: the instances are
split into folds, and the scores of a fold come from a fit without its gold labels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..combiners.base import BaseCombiner
from ..combiners.registry import list_by_name
from ..combiners.weighted_consensus import WeightedConsensus, weighted_consensus
from ..errors import InputError
from ..execution.progress import track
from ..metrics.estimate import Estimate
from ..metrics.evaluation import evaluate, evaluate_models
from ..metrics.intervals import evaluate_on_gold
from ..metrics.ranking import RANKING_METRICS
from ..metrics.tables import TITLES, title
from ..predictions import (
    CHANCE,
    FloatArray,
    Gold,
    Names,
    Predictions,
    as_predictions,
    positions_of,
    split_chances,
    truth_table,
)
from ..predictions.families import (
    FamiliesLike,
    merge_stated_families,
    number_families,
)
from ..text import plural, table

_N_FOLDS = 5


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Metrics of each method, estimated from gold labels.

    Attributes
    ----------
    figures : dict of str to dict of str to Estimate
        By method and metric, the value over all instances, with its 90 % interval.
    gains : dict of str to dict of str to Estimate
        By method and metric, the paired difference to `against`; positive is better
        for each metric.
    against : str
        The method that the others are compared with: voting (MV), or the consensus of
        all models.
    n_gold : int
        Number of instances with gold labels.
    drawn : str
        How the instances with gold labels were sampled, and which instances the
        metrics thus describe.
    sentence : str
        Which differences are significant.
    """

    figures: dict[str, dict[str, Estimate]]
    gains: dict[str, dict[str, Estimate]]
    against: str
    n_gold: int
    drawn: str
    sentence: str

    def __str__(self) -> str:
        value_heads = ["method"]
        gain_heads = [f"gain over {self.against}"]
        for metric in RANKING_METRICS:
            value_heads.append(title(metric))
            gain_heads.append(f"{TITLES[metric]:>16}")

        value_rows: list[list[object]] = []
        for name, estimates in self.figures.items():
            value_rows.append([name, *estimates.values()])

        gain_rows: list[list[object]] = []
        for name, estimates in self.gains.items():
            gain_rows.append(
                [name, *map(Estimate.format_difference, estimates.values())]
            )

        values = table(value_heads, value_rows)
        gains = table(gain_heads, gain_rows)
        note = f"90 % intervals; * significant, positive is better. {self.drawn}"
        return f"{values}\n\n{gains}\n\n{note}\n{self.sentence}"


@dataclass(frozen=True, kw_only=True)
class _Candidate:
    """A method, and the predictions that it combines."""

    combiner: BaseCombiner
    panel: Predictions


def combine_with_families(
    combiner: BaseCombiner, panel: Predictions, families: FamiliesLike
) -> tuple[BaseCombiner, Predictions]:
    """Return a method and its input if some models are related.

    `WeightedConsensus` weights the members of a family. For other methods, a stated
    family is one model: the mean of its members.

    Parameters
    ----------
    combiner : BaseCombiner
        It is copied, not changed.
    panel : Predictions
        Predictions of all models.
    families : None, "independent", "by-name" or mapping
        Families of related models, as in `combine`.

    Returns
    -------
    combiner : BaseCombiner
    panel : Predictions

    Examples
    --------
    >>> from mlconsensus import MajorityVote
    >>> panel = Predictions([[[1, 0]], [[0, 0]]], models=["a-1", "a-2"])
    >>> _, merged = combine_with_families(MajorityVote(), panel, "by-name")
    >>> merged.models, merged.to_array().tolist()
    (('a-1 + a-2',), [[[0.5, 0.0]]])
    """
    combiner = combiner.make_unfitted_copy()
    if not isinstance(combiner, WeightedConsensus):
        return combiner, merge_stated_families(panel, families)
    if families is not None:
        combiner.set_params(families=families)
    return combiner, panel


def evaluate_methods(
    truth: ArrayLike, panel: Predictions, families: FamiliesLike = None
) -> dict[str, dict[str, float]]:
    """Evaluate every method with its default parameters by the ground truth.

    Parameters
    ----------
    truth : array-like of shape (n, l)
        Relevant labels of all instances.
    panel : Predictions
        Predictions to combine.
    families : None, "independent", "by-name" or mapping, default=None
        Families of related models, as in `combine`.

    Returns
    -------
    dict of str to dict of str to float
        By method and metric. ``BM`` is the mean of the metrics of the models.

    Examples
    --------
    >>> truth = np.array([[1, 0], [0, 1]], dtype=bool)
    >>> panel = Predictions(np.stack([truth, ~truth]))
    >>> evaluate_methods(truth, panel)["BM"]["micro_auc"]
    0.5
    """
    metrics = {"BM": evaluate_models(truth, panel)["BM"]}
    for name, combiner_class in list_by_name().items():
        combiner, merged = combine_with_families(combiner_class(), panel, families)
        metrics[name] = evaluate(truth, combiner.fit_transform(merged))

    return metrics


def compare(
    predictions: object,
    gold: object = None,
    drawn: str | None = None,
    methods: Mapping[str, BaseCombiner] | None = None,
    *,
    families: FamiliesLike = None,
) -> Comparison:
    """Compare methods by gold labels, from which they also learn.

    The scores of an instance come from a fit without its gold labels.

    Parameters
    ----------
    predictions : Predictions or object
        `Predictions`, or anything that its constructor takes.
    gold : DataFrame or array-like of shape (n, l), default=None
        Gold labels, as `combine` takes them. By default those of the predictions.
    drawn : {"random"} or None, default=None
        ``"random"``: the instances with gold labels are a random sample. ``None``: they
        were sampled with the probabilities in the column "inclusion probability" of
        `gold`, which `ask` writes. Without this column the sampling is not known, and
        the metrics describe only these instances and others like them.
    methods : mapping of str to BaseCombiner, default=None
        Estimators by name; the others are compared with the first. By default all of
        `COMBINERS`, with voting (MV) first.
    families : None, "independent", "by-name" or mapping, default=None
        Families of related models, as in `combine`.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, truth = mlc.datasets.make_panel(n_instances=400, random_state=0)
    >>> is_gold = np.arange(len(truth))[:, None] < 80  # they are in random order
    >>> gold = np.where(is_gold, truth, np.nan)
    >>> methods = {"MV": mlc.MajorityVote(), "Weighted": mlc.WeightedConsensus()}
    >>> comparison = compare(panel, gold, "random", methods)
    >>> comparison.gains["Weighted"]["ranking_loss"].is_significant
    True
    """
    panel = as_predictions(predictions)
    if gold is not None:
        panel = panel.with_gold(gold)
    if methods is None:
        methods = {name: combiner() for name, combiner in list_by_name().items()}

    if not isinstance(methods, Mapping) or len(methods) == 0:
        raise InputError(
            where="methods",
            found=repr(methods),
            expected="combiners by name, such as {'MV': MajorityVote()}",
        )

    candidates = {}
    for name, combiner in methods.items():
        if isinstance(combiner, BaseCombiner):
            combiner, merged = combine_with_families(combiner, panel, families)
            candidates[name] = _Candidate(combiner=combiner, panel=merged)
        else:
            raise InputError(
                where=f"method of {name!r}",
                found=repr(combiner),
                expected="a combiner, such as MLCMa()",
            )

    return _compare_candidates(candidates, panel, gold, drawn)


def leave_out(
    predictions: object,
    gold: object = None,
    drawn: str | None = None,
    method: BaseCombiner | None = None,
    *,
    families: FamiliesLike = None,
) -> Comparison:
    """Estimate from gold labels what leaving out each model would cost.

    Parameters
    ----------
    predictions, gold, drawn
        As in `compare`.
    method : BaseCombiner, default=None
        The method that combines the models. By default the weighted consensus.
    families : None, "independent", "by-name" or mapping, default=None
        Families of related models, as in `combine`.

    Returns
    -------
    Comparison
        Gains of the consensus without each model over the consensus of all models. The
        gain is negative if the consensus needs the model.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, truth = mlc.datasets.make_panel(n_instances=300, random_state=0)
    >>> gold = np.where(np.arange(300)[:, None] < 80, truth, np.nan)
    >>> comparison = leave_out(panel, gold, "random", mlc.MajorityVote())
    >>> len(comparison.gains), comparison.against
    (5, 'all models')
    """
    panel = as_predictions(predictions)
    if gold is not None:
        panel = panel.with_gold(gold)
    if len(panel.models) < 2:
        raise InputError(
            where="models",
            found="one",
            expected="at least two, so that one can be left out",
        )
    if method is None:
        method = WeightedConsensus()

    if not isinstance(method, BaseCombiner):
        raise InputError(
            where="method",
            found=repr(method),
            expected="a combiner, such as MLCMa()",
        )

    # Families by name, so that they can be restricted to the remaining models
    family_of_model = families
    numbers = number_families(families, panel.models)
    if numbers is not None:
        names = map(str, numbers.tolist())
        family_of_model = dict(zip(panel.models, names, strict=True))

    combiner, merged = combine_with_families(method, panel, family_of_model)
    candidates = {"all models": _Candidate(combiner=combiner, panel=merged)}
    for name in panel.models:
        others = [other for other in panel.models if other != name]
        remaining_families = family_of_model
        if isinstance(family_of_model, dict):
            remaining_families = {model: family_of_model[model] for model in others}
        combiner, remaining = combine_with_families(
            method, panel.select(models=others), remaining_families
        )
        candidates[f"without {name}"] = _Candidate(combiner=combiner, panel=remaining)

    return _compare_candidates(candidates, panel, gold, drawn)


def _compare_candidates(
    candidates: dict[str, _Candidate],
    panel: Predictions,
    gold: object,
    drawn: str | None,
) -> Comparison:
    """Evaluate the candidates, and compare all with the first."""
    if panel.gold is None:
        raise InputError(
            where="gold",
            found="none",
            expected="gold labels of some instances; without them, use "
            "mlc.compare_on_held_out_models(predictions)",
        )

    # How the instances with gold labels were sampled
    truth = panel.answered(np.full(panel.shape[1:], np.nan))
    if gold is None:
        gold = truth
    probabilities, sampling = find_inclusion_probabilities(
        gold, drawn, truth, panel.instances
    )

    # Evaluate each candidate; the consensus without gold labels reduces the variance
    likely = weighted_consensus(panel.with_gold(None).without_clusterings())
    evaluations = {}
    progress = track(candidates.items(), len(candidates), "comparing")
    for name, candidate in progress:
        scores = cross_fit(candidate.combiner, candidate.panel)
        evaluations[name] = evaluate_on_gold(truth, scores, likely, probabilities)

    # Paired differences to the first candidate
    first, *others = evaluations
    values = {first: evaluations[first].compute_estimates()}
    gains = {}
    for name in others:
        values[name] = evaluations[name].compute_estimates()
        difference = evaluations[name].subtract(evaluations[first])
        gains[name] = difference.compute_estimates()

    n_gold = len(panel.gold.at)
    return Comparison(
        figures=values,
        gains=gains,
        against=first,
        n_gold=n_gold,
        drawn=sampling,
        sentence=_describe_differences(gains, first, n_gold),
    )


def find_inclusion_probabilities(
    gold: object,
    drawn: str | None,
    truth: FloatArray,
    instances: Sequence[object] | Names,
) -> tuple[FloatArray | None, str]:
    """Find the probability with which each instance was chosen to get gold labels.

    Parameters
    ----------
    gold : DataFrame or array-like of shape (n, l)
        Gold labels, with or without a column of inclusion probabilities.
    drawn : {"random"} or None
        ``"random"`` if the instances with gold labels are a random sample.
    truth : ndarray of shape (n, l)
        Gold labels of the instances as 1 and 0, NaN where they are not known.
    instances : sequence
        Names of the instances.

    Returns
    -------
    probabilities : ndarray of shape (n,) or None
        None if it is not known how the instances were sampled.
    sampling : str
        A sentence about the instances that the metrics describe.
    """
    n = len(truth)
    n_gold = int((~np.isnan(truth)).any(axis=1).sum())
    if drawn not in (None, "random"):
        raise InputError(
            where="drawn", found=repr(drawn), expected="'random', or nothing"
        )

    # The column of inclusion probabilities, if there is one
    gold_table = truth_table(gold, "gold", instances, range(truth.shape[1]))
    _, column = split_chances(gold_table)
    of_all = (
        f"The estimates are for all {plural(n, 'instance')}, "
        f"of which {n_gold:,} were drawn"
    )
    if drawn == "random":
        if column is not None:
            raise InputError(
                where="drawn",
                found=f"'random' next to a column {CHANCE!r} in {gold_table.where}",
                expected="one of the two",
            )
        return np.full(n, n_gold / n), f"{of_all} at random."

    if column is None:
        sampling = (
            f"The estimates are only for the {plural(n_gold, 'instance')} with gold "
            "labels and others like them"
        )
        if n_gold < n:
            sampling += (
                ": it is not known how they were drawn (if at random: --drawn random)"
            )
        return None, f"{sampling}."

    # Instances that are not in the table have probability 1
    if gold_table.instances is None:
        rows = positions_of(instances, range(len(column)))
    else:
        rows = positions_of(instances, gold_table.instances)
    probabilities = np.where(rows < 0, 1.0, column[rows])
    return probabilities, f"{of_all} with the probabilities in the file."


def cross_fit(combiner: BaseCombiner, panel: Predictions) -> FloatArray:
    """Compute scores from fits without the gold labels of the instance's fold.

    Parameters
    ----------
    combiner : BaseCombiner
        It is copied, not changed.
    panel : Predictions
        Predictions, with or without gold labels.

    Returns
    -------
    ndarray of shape (n, l)
        Consensus scores.
    """
    gold = panel.gold
    n = len(panel)
    if gold is None:
        return np.asarray(combiner.make_unfitted_copy().fit_transform(panel))

    # Assign the instances to folds at random, those with gold labels evenly
    order = np.random.default_rng(0).permutation(n)
    is_gold = np.isin(order, gold.at)
    gold_first = np.concatenate([order[is_gold], order[~is_gold]])
    n_folds = min(_N_FOLDS, len(gold.at))
    fold_of_instance = np.empty(n, dtype=np.int64)
    fold_of_instance[gold_first] = np.arange(n) % n_folds

    if not combiner.uses_clusterings:
        panel = panel.without_clusterings()
    unlabeled = panel.with_gold(None)

    scores = np.empty(panel.shape[1:])
    for fold in np.unique(fold_of_instance):
        # Fit with the gold labels of the other folds
        is_training = fold_of_instance[gold.at] != fold
        training_gold = None
        if is_training.any():
            training_gold = Gold(gold.at[is_training], gold.answers[is_training])
        training = panel.with_gold_at(training_gold, np.arange(n))
        fitted = combiner.make_unfitted_copy().fit(training)

        # Score the instances of this fold
        test = np.flatnonzero(fold_of_instance == fold)
        scores[test] = fitted.transform(unlabeled[test])

    return scores


def _describe_differences(
    gains: Mapping[str, Mapping[str, Estimate]], against: str, n_gold: int
) -> str:
    """Describe which candidates are significantly better or worse than the first."""
    sentences = []
    for comparative, sign in (("better", 1), ("worse", -1)):
        differences = _list_significant_metrics(gains, sign)
        if differences:
            sentences.append(
                f"Significantly {comparative} than {against}: {differences}."
            )

    count = sum(map(len, gains.values()))
    if len(gains) > 10:
        sentences.append(
            f"Of {count:,} differences, about {count // 10:,} would be significant by "
            "chance."
        )

    sentences.append(
        "Other differences are not significant with gold labels of "
        f"{plural(n_gold, 'instance')}."
    )
    return " ".join(sentences)


def _list_significant_metrics(
    gains: Mapping[str, Mapping[str, Estimate]], sign: int
) -> str:
    """List the candidates with significant gains of one sign, and their metrics."""
    candidates = []
    for name, estimates in gains.items():
        metrics = []
        for metric, gain in estimates.items():
            if gain.is_significant and gain.value * sign > 0:
                metrics.append(TITLES[metric])

        if metrics:
            candidates.append(f"{name} ({', '.join(metrics)})")

    return "; ".join(candidates)
