r"""Comparison of methods without ground truth, by models that are held out.

Groups of models are held out in turn, and the other models are combined by each method.
The consensus scores are evaluated by how well they rank the labels of the held-out
models. If the errors of a held-out model are independent of the other models, a metric
against its labels is in expectation an increasing function of the metric against the
truth, so that differences to voting have the same sign. docs/held-out-models.md has the
proof and the cases in which it does not hold.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import partial

import numpy as np
from scipy import sparse, special
from scipy.sparse.csgraph import connected_components

from ..combiners.base import BaseCombiner
from ..combiners.majority_vote import majority_vote
from ..combiners.registry import COMBINERS, find_identifier
from ..combiners.weighted_consensus import WeightedConsensus
from ..errors import InputError
from ..execution.local import map_with_progress
from ..inspection.effective_models import estimate_effective_models
from ..inspection.pairwise import (
    PairwiseStatistics,
    compute_pairwise_statistics,
    compute_product_scale,
)
from ..linalg.annotations import Annotations, make_annotations
from ..linalg.block_sums import ratio
from ..metrics import _rank_counts
from ..metrics.estimate import Estimate
from ..metrics.ranking import RANKING_METRICS
from ..metrics.tables import TITLES
from ..predictions import (
    BoolArray,
    FloatArray,
    Gold,
    IntArray,
    Predictions,
    as_predictions,
)
from ..predictions.families import FamiliesLike, number_families
from ..predictions.sampling import select_frequent_labels, subsample_for_diagnostics
from ..text import plural, table

# Largest number of instances to fit on, of instances to evaluate on, and of folds
_MAX_FITTED = 2000
_MAX_EVALUATED = 600
_MAX_FOLDS = 5

_N_PARTS = 20  # parts of the instances, for the jackknife
_T_QUANTILE = float(special.stdtrit(_N_PARTS - 1, 0.95))  # 90 % intervals

# Models that correlate more than this, on at least so many instance-label pairs, are
# held out together.
_DUPLICATE_CORRELATION = 0.9
_MIN_SHARED_PAIRS = 50

# Families that a comparison needs. A recommendation needs one more: with one held out,
# three must remain, because two do not show which of them is more reliable.
_MIN_COMPARED = 3
_MIN_RECOMMENDED = 4

# Models whose errors correlate more than this behave as copies of one classifier do;
# docs/held-out-models.md has the data sets.
_MAX_ERROR_CORRELATION = 0.1

_LIMITS = (
    "This comparison cannot detect errors that models of different families share, and "
    "it does not replace ground truth"
)


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
        The metric by which `recommended` is chosen.
    n_models, n_families, n_folds : int
        Number of models, of families that are held out together, and of folds of
        families.
    recommended : str or None
        Name of a method that is better than voting: its gain is significant, and still
        positive without any one of the folds. None without such evidence.
    sentence : str
        The result and its limits, or why there is none.
    """

    gains: dict[str, dict[str, Estimate]]
    beyond: dict[str, dict[str, Estimate]]
    metric: str
    n_models: int
    n_families: int
    n_folds: int
    recommended: str | None
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
            "Gains over voting (MV) on held-out models, 90 % intervals; * significant, "
            "positive is better."
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
    predictions: object,
    optimize: str = "auto",
    methods: Iterable[str] | Mapping[str, BaseCombiner] | None = None,
    families: FamiliesLike = None,
    even_in_doubt: bool = True,
) -> HeldOutComparison:
    """Compare methods without ground truth, by how well they rank held-out models.

    At most 2,000 instances at even distances are used (the first block of predictions
    in files), so that the cost does not grow with their number. Gold labels
    (`Predictions.with_gold`) are used as one more held-out model, with full trust. No
    method is fitted with them.

    Parameters
    ----------
    predictions : Predictions or object
        `Predictions`, or anything that its constructor takes.
    optimize : str, default="auto"
        Metric by which the method is chosen: ``"micro_auc"``, ``"one_error"``,
        ``"ranking_loss"``, ``"average_precision"``, or ``"auto"`` for the mean of the
        four.
    methods : iterable of str or mapping of str to BaseCombiner, default=None
        Names of methods, or estimators by name. By default all of `COMBINERS`.
    families : None, "independent", "by-name" or mapping, default=None
        Families of related models, as in `combine`; by default they are found. Models
        of one family are held out together, as duplicates and near duplicates always
        are.
    even_in_doubt : bool, default=True
        Whether methods are compared even if the models' errors correlate, so that no
        method can be chosen.

    Returns
    -------
    HeldOutComparison

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> _, truth = mlc.datasets.make_panel(random_state=0)
    >>> rng = np.random.default_rng(0)
    >>> detected = truth & (rng.random((6, *truth.shape)) < 0.4)
    >>> scores = detected | (rng.random((6, *truth.shape)) < 0.02)
    >>> comparison = mlc.compare_on_held_out_models(scores, optimize="ranking_loss")
    >>> comparison.recommended, comparison.n_families, comparison.n_folds
    ('Weighted', 6, 5)
    >>> loss = mlc.metrics.ranking_loss(truth, mlc.weighted_consensus(scores))
    >>> loss < mlc.metrics.ranking_loss(truth, mlc.majority_vote(scores))
    True
    """
    metric = _check_metric(optimize)
    combiners = _make_combiners(methods)
    panel, label_note = select_frequent_labels(as_predictions(predictions))

    # Models with common errors are held out together
    sample = _draw_sample(panel)
    statistics = compute_pairwise_statistics(make_annotations(sample))
    group = _group_models(sample, statistics, families)
    n_families = int(group.max()) + 1
    has_few_families = n_families < _MIN_COMPARED
    doubt = ""
    if n_families < _MIN_RECOMMENDED:
        doubt = _describe_few_families(len(group), n_families)
    else:
        doubt = _describe_common_errors(sample, statistics, group)

    # Evaluate each method on the models that it was not fitted with
    gains: dict[str, dict[str, Estimate]] = {}
    beyond: dict[str, dict[str, Estimate]] = {}
    stable: set[str] = set()
    n_folds = 0
    if not has_few_families and (even_in_doubt or not doubt):
        n_folds = min(n_families, _MAX_FOLDS)
        values, weights = _evaluate_folds(sample, combiners, group, n_folds)
        gains = _estimate_gains(values, weights, list(combiners), reference=0)
        beyond = _estimate_gains(values, weights, list(combiners), reference=1)
        stable = _find_stable_methods(values, weights, list(combiners), metric)
        if _has_decisive_part(weights):
            doubt = "the held-out models have predictions for too few instances"

    # Choose a method
    recommended = None
    if doubt:
        sentence = f"No recommendation: {doubt}."
    else:
        recommended = _choose_method(gains, metric, stable)
        result = _describe_result(gains, metric, recommended)
        held_out = f"{n_families} families of models, held out in {n_folds} folds"
        sentence = f"{result} ({held_out}). {_LIMITS}."

    if label_note:
        sentence = f"{sentence} {label_note}"
    return HeldOutComparison(
        gains=gains,
        beyond=beyond,
        metric=metric,
        n_models=len(group),
        n_families=n_families,
        n_folds=n_folds,
        recommended=recommended,
        sentence=sentence,
    )


def _check_metric(optimize: str) -> str:
    """Return the name of the metric that is optimized, or raise an `InputError`."""
    if optimize == "auto":
        return "mean"

    metric = str(optimize).replace("-", "_")
    if metric not in ("mean", *RANKING_METRICS):
        raise InputError(
            where="optimize",
            found=repr(optimize),
            expected=f"auto, {', '.join(RANKING_METRICS)}",
        )
    return metric


def _make_combiners(
    methods: Iterable[str] | Mapping[str, BaseCombiner] | None,
) -> Mapping[str, BaseCombiner]:
    """Return the methods to compare with voting by name, or raise an `InputError`."""
    combiners: Mapping[str, BaseCombiner]
    if isinstance(methods, Mapping):
        combiners = methods
    else:
        if methods is None:
            methods = COMBINERS
        combiners = _make_named_combiners(methods)

    are_combiners = all(
        isinstance(combiner, BaseCombiner) for combiner in combiners.values()
    )
    if not combiners or not are_combiners:
        raise InputError(
            where="methods",
            found=repr(combiners),
            expected="at least one other than voting: a name, or a combiner by "
            "its name",
        )
    return combiners


def _make_named_combiners(methods: Iterable[str]) -> dict[str, BaseCombiner]:
    """Return the methods except voting, with their default parameters."""
    combiners = {}
    for method in methods:
        combiner = COMBINERS[find_identifier(method)]()
        if combiner.name != "MV":
            combiners[combiner.name] = combiner

    return combiners


def _draw_sample(panel: Predictions) -> Predictions:
    """Draw instances at even distances, in an order that only their scores decide."""
    panel = subsample_for_diagnostics(panel).without_clusterings()
    panel = panel[_select_instances(panel, _MAX_FITTED)]
    mean_scores = make_annotations(panel).mean  # (m, l)

    # The order of the models depends on their mean scores
    sorted_means = np.sort(mean_scores.round(9), axis=1).tolist()
    ordered_models = []
    for _, name in sorted(zip(sorted_means, panel.models, strict=True)):
        ordered_models.append(name)

    # The parts of the instances must have nothing in common, so the far digits of a
    # weighted sum of an instance's scores decide on its place. The weights are means
    # of roots, because sums of counts are often equal.
    root = np.sqrt(mean_scores)
    label_weights = root.mean(axis=0)
    model_weights = root.mean(axis=1)
    scores = np.nan_to_num(panel.to_array())
    sums = np.einsum("kil,l,k->i", scores, label_weights, model_weights)
    order = np.argsort(1e5 * sums % 1, kind="stable")
    return panel[order].select(models=ordered_models)


def _select_instances(panel: Predictions, limit: int) -> IntArray:
    """Select instances at even distances, and all instances with gold labels."""
    n = len(panel)
    n_selected = min(n, limit)
    selected = np.arange(n_selected) * n // n_selected
    if panel.gold is None:
        return selected
    return np.union1d(selected, panel.gold.at)


def _group_models(
    sample: Predictions,
    statistics: PairwiseStatistics,
    families: FamiliesLike,
) -> IntArray:
    """Group duplicates, near duplicates and models of one family, shape (m,)."""
    scale = compute_product_scale(statistics.squares)
    correlation = ratio(statistics.products, scale, 0.0)
    is_duplicate = correlation > _DUPLICATE_CORRELATION
    is_duplicate &= statistics.cells >= _MIN_SHARED_PAIRS

    family = number_families(families, sample.models)
    if family is None:
        combiner = WeightedConsensus().fit(sample.with_gold(None))
        family = combiner.solution_.family.astype(np.int64)
    is_family = family[:, np.newaxis] == family

    _, group = connected_components(is_duplicate | is_family)
    return np.asarray(group, dtype=np.int64)


def _describe_few_families(n_models: int, n_families: int) -> str:
    """Return why there are too few families for a recommendation."""
    return (
        f"{plural(n_models, 'model')} in {n_families:,} families or alone are too few; "
        f"with one held out, at least {_MIN_RECOMMENDED - 1} must remain to show which "
        "is reliable"
    )


def _describe_common_errors(
    sample: Predictions, statistics: PairwiseStatistics, group: IntArray
) -> str:
    """Return why models with common errors cannot be compared, empty if they can."""
    # One model of each group
    _, first_models = np.unique(group, return_index=True)
    m = len(first_models)
    if m < len(group):
        names = [sample.models[position] for position in first_models]
        annotations = make_annotations(sample.select(models=names))
        statistics = compute_pairwise_statistics(annotations)

    # Kish's formula m / (1 + (m − 1) ε), solved for the correlation ε of errors
    effective = estimate_effective_models(m, statistics.departures)
    correlation = (m / effective.estimate - 1) / (m - 1)
    if correlation > _MAX_ERROR_CORRELATION:
        return (
            f"the errors of models of different families correlate by {correlation:.2f}"
            ", so that held-out models cannot show which method is better"
        )
    return ""


def _evaluate_folds(
    sample: Predictions,
    combiners: Mapping[str, BaseCombiner],
    group: IntArray,
    n_folds: int,
) -> tuple[FloatArray, FloatArray]:
    """Hold out each fold of the groups in turn, and evaluate voting and the methods.

    Returns
    -------
    values : ndarray of shape (n_folds, 1 + n_methods, 4, n_parts + 1)
        Metrics of voting and of the methods, see `_evaluate_fold`.
    weights : ndarray of shape (n_folds, 4, n_parts + 1)
        Weights of the folds.
    """
    # The groups are assigned to the folds in turn, the largest first
    sizes = np.bincount(group)
    rank = np.argsort(np.argsort(-sizes, kind="stable"))
    fold_of_model = rank[group] % n_folds
    held_out_models = (fold_of_model == fold for fold in range(n_folds))

    values = []
    weights = []
    evaluate_fold = partial(_evaluate_fold, sample, combiners)
    for value, weight in map_with_progress(
        held_out_models, evaluate_fold, n_folds, "judging"
    ):
        values.append(value)
        weights.append(weight)

    return np.array(values), np.array(weights)


def _evaluate_fold(
    sample: Predictions, combiners: Mapping[str, BaseCombiner], is_held_out: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Evaluate voting and the methods on the held-out models.

    Parameters
    ----------
    sample : Predictions
        Predictions of all models.
    combiners : mapping of str to BaseCombiner
        Methods to compare with voting.
    is_held_out : ndarray of bool of shape (m,)
        Models that the methods are not fitted with.

    Returns
    -------
    values : ndarray of shape (1 + n_methods, 4, n_parts + 1)
        Metrics without each part of the instances, and with all; higher is better.
    weights : ndarray of shape (4, n_parts + 1)
        Weight of this fold for each of the metrics.
    """
    models = np.array(sample.models, dtype=object)
    unlabeled = sample.with_gold(None)
    held_out = unlabeled.select(models=models[is_held_out].tolist())
    remaining = unlabeled.select(models=models[~is_held_out].tolist())

    # The reference labels of the evaluated instances
    vote = majority_vote(remaining)
    evaluated = _select_instances(sample, _MAX_EVALUATED)
    has_prediction = remaining.to_block().count_predictions().to_array() > 0
    rows = _make_reference_rows(held_out, vote, sample.gold)
    reference = _make_reference(rows, evaluated, has_prediction)

    # Voting comes first
    values = [_evaluate_scores(vote[evaluated], reference)]
    for combiner in combiners.values():
        fitted = combiner.make_unfitted_copy().fit(remaining)
        scores = fitted.transform(remaining[evaluated])
        values.append(_evaluate_scores(scores, reference))

    relevant = reference.sum_relevant()
    ranked = reference.sum_trust()
    return np.array(values), np.array([relevant, ranked, ranked, ranked])


@dataclass(frozen=True, kw_only=True)
class _ReferenceRows:
    """Binary labels of held-out models; ``r`` pairs of a model and an instance."""

    instance: IntArray  # (r,) position of the instance
    is_relevant: BoolArray  # (r, l)
    is_labeled: BoolArray  # (r, l) False: missing
    trust: FloatArray  # (r,) weight of the model


@dataclass(frozen=True, kw_only=True)
class _Reference:
    """What the metrics of ``n`` evaluated instances are computed from."""

    instance: IntArray  # (r,) position among the evaluated instances
    is_relevant: BoolArray  # (r, l)
    is_labeled: BoolArray  # (r, l)
    trust: FloatArray  # (r,) 0 for rows without a pair of labels to rank
    missing_factor: FloatArray  # (r,) corrects the ranking loss for missing labels
    relevant_weight: FloatArray  # (n, l) trust in the models that say relevant
    irrelevant_weight: FloatArray  # (n, l) trust in those that say irrelevant

    def sum_relevant(self) -> FloatArray:
        """Sum the weights of relevant pairs without each part, (n_parts + 1,)."""
        return _sum_instances_without_parts(self.relevant_weight.sum(axis=1))

    def sum_irrelevant(self) -> FloatArray:
        """Sum the weights of irrelevant pairs without each part, (n_parts + 1,)."""
        return _sum_instances_without_parts(self.irrelevant_weight.sum(axis=1))

    def sum_trust(self) -> FloatArray:
        """Sum the trust of the rows without each part, (n_parts + 1,)."""
        return _sum_without_parts(self.instance, self.trust)


def _make_reference_rows(
    held_out: Predictions, vote: FloatArray, gold: Gold | None
) -> _ReferenceRows:
    """Make binary labels of held-out models, and add the gold labels with trust 1."""
    annotations = make_annotations(held_out)
    instance = annotations.instance
    is_relevant = _binarize_scores(annotations)
    is_labeled = annotations.is_present
    trust = _compute_trust(annotations, vote)

    if gold is not None:
        instance = np.append(instance, gold.at)
        is_relevant = np.append(is_relevant, gold.answers == 1, axis=0)
        is_labeled = np.append(is_labeled, ~np.isnan(gold.answers), axis=0)
        trust = np.append(trust, np.ones(len(gold.at)))

    return _ReferenceRows(
        instance=instance,
        is_relevant=is_relevant,
        is_labeled=is_labeled,
        trust=trust,
    )


def _make_reference(
    rows: _ReferenceRows, evaluated: IntArray, has_prediction: BoolArray
) -> _Reference:
    """Restrict the reference to evaluated instances and to pairs with a prediction.

    Without a prediction of the remaining models, a method has only its prior.
    """
    selected = np.flatnonzero(np.isin(rows.instance, evaluated))
    instance = np.searchsorted(evaluated, rows.instance[selected])
    trust = rows.trust[selected]
    is_labeled = rows.is_labeled[selected] & has_prediction[rows.instance[selected]]
    is_relevant = rows.is_relevant[selected] & is_labeled
    is_irrelevant = is_labeled & ~is_relevant

    # microAUC: a pair is relevant and irrelevant by the trust in the models that say so
    n_rows = len(selected)
    adder = sparse.csr_array(
        (trust, (instance, np.arange(n_rows))), shape=(len(evaluated), n_rows)
    )

    # Other metrics: all rows count that have a relevant and an irrelevant label.
    # Missing labels are ranked last, but their pairs are not part of the loss.
    n_relevant = is_relevant.sum(axis=1)
    n_irrelevant = is_irrelevant.sum(axis=1)
    is_ranked = (n_relevant > 0) & (n_irrelevant > 0)
    n_not_relevant = is_relevant.shape[1] - n_relevant
    return _Reference(
        instance=instance,
        is_relevant=is_relevant,
        is_labeled=is_labeled,
        trust=trust * is_ranked,
        missing_factor=n_not_relevant / np.maximum(n_irrelevant, 1),
        relevant_weight=adder @ is_relevant,
        irrelevant_weight=adder @ is_irrelevant,
    )


def _evaluate_scores(scores: FloatArray, reference: _Reference) -> FloatArray:
    """Compute the four metrics of scores (n, l) without each part, (4, n_parts + 1)."""
    won_pairs = _sum_won_pairs(
        scores, reference.relevant_weight, reference.irrelevant_weight
    )
    all_pairs = reference.sum_relevant() * reference.sum_irrelevant()
    values = [ratio(won_pairs, all_pairs, 0.0)]

    # Metrics of rows; missing labels are ranked last
    row_scores = np.where(reference.is_labeled, scores[reference.instance], -np.inf)
    groups = _rank_counts.find_tie_groups(reference.is_relevant, row_scores)
    ranking_loss = _rank_counts.compute_ranking_loss(groups) * reference.missing_factor
    row_metrics = (
        -_rank_counts.compute_one_error(groups),
        -ranking_loss,
        _rank_counts.compute_average_precision(groups),
    )
    total_trust = reference.sum_trust()
    for metric in row_metrics:
        total = _sum_without_parts(reference.instance, reference.trust * metric)
        values.append(ratio(total, total_trust, 0.0))

    return np.array(values)


def _sum_won_pairs(
    scores: FloatArray, relevant_weight: FloatArray, irrelevant_weight: FloatArray
) -> FloatArray:
    """Sum pairs in the right order without each part, (n_parts + 1,); ties are 1/2.

    The share of the pairs within a part is estimated by the product of the shares of
    its relevant and of its irrelevant labels.
    """
    won_by_relevant, won_by_irrelevant = _rank_counts.sum_won_pairs(
        scores, relevant_weight, irrelevant_weight
    )
    relevant = _sum_instances_without_parts(won_by_relevant)
    irrelevant = _sum_instances_without_parts(won_by_irrelevant)
    total = np.full(_N_PARTS + 1, won_by_relevant.sum())
    return ratio(relevant * irrelevant, total, 0.0)


def _sum_instances_without_parts(values: FloatArray) -> FloatArray:
    """Sum values (n,) of all instances without each part, shape (n_parts + 1,)."""
    return _sum_without_parts(np.arange(len(values)), values)


def _sum_without_parts(instance: IntArray, values: FloatArray) -> FloatArray:
    """Sum values of rows without each part of the instances, and of all rows.

    Parameters
    ----------
    instance : ndarray of int of shape (r,)
        Instance of each row. Its part is the remainder of division by the number of
        parts.
    values : ndarray of shape (r,)
        Value of each row.

    Returns
    -------
    ndarray of shape (n_parts + 1,)
        The last one is the sum of all rows.
    """
    part_sums = np.bincount(instance % _N_PARTS, values, _N_PARTS)
    return np.asarray(part_sums.sum() - np.append(part_sums, 0.0))


def _binarize_scores(annotations: Annotations) -> BoolArray:
    """Make labels (r, l) of scores: as many relevant ones as a model's mean score."""
    is_relevant = annotations.scores > 0.5
    for model in np.unique(annotations.model):
        rows = annotations.model == model
        scores = annotations.scores[rows].astype(np.float64)
        if np.isin(scores, (0, 1)).all():
            continue

        predicted = scores[annotations.is_present[rows]]
        threshold = np.quantile(predicted, 1 - predicted.mean())
        is_relevant[rows] = scores >= max(threshold, 1e-9)

    return np.asarray(is_relevant)


def _compute_trust(annotations: Annotations, vote: FloatArray) -> FloatArray:
    """Compute how well each row's model agrees with the other models' vote (n, l).

    Returns
    -------
    ndarray of shape (r,)
        The squared correlation of the model's scores with the vote, minus its expected
        value for random scores; 0 if this or the correlation is negative.
    """
    trust = np.zeros(len(annotations.model))
    label_means = vote.mean(axis=0)
    for model in np.unique(annotations.model):
        rows = annotations.model == model
        is_predicted = annotations.is_present[rows]
        scores = annotations.scores[rows].astype(np.float64)
        votes_of_rows = vote[annotations.instance[rows]]

        # The frequency of a label is known to all models, so it is subtracted
        x = (scores - label_means)[is_predicted]
        y = (votes_of_rows - label_means)[is_predicted]
        x = x - x.mean()
        y = y - y.mean()
        correlation = x @ y / max(np.sqrt((x @ x) * (y @ y)), 1e-12)
        trust[rows] = max(correlation * abs(correlation) - 1 / len(x), 0)

    return trust


def _has_decisive_part(weights: FloatArray) -> bool:
    """Return whether a part of the instances cannot be left out by the jackknife."""
    total = weights.sum(axis=0)
    without_part = total[:, :-1]
    of_all = total[:, -1:]
    return bool((without_part >= of_all).any())


def _estimate_gains(
    values: FloatArray, weights: FloatArray, names: list[str], *, reference: int
) -> dict[str, dict[str, Estimate]]:
    """Estimate the gains of the methods over voting or over the first method.

    Parameters
    ----------
    values : ndarray of shape (n_folds, 1 + n_methods, 4, n_parts + 1)
        Metrics of voting and of the methods, see `_evaluate_fold`.
    weights : ndarray of shape (n_folds, 4, n_parts + 1)
        Weights of the folds.
    names : list of str
        Names of the methods, without voting.
    reference : int
        0 for voting, 1 for the first method.

    Returns
    -------
    dict of str to dict of str to Estimate
        Gains by method and metric.
    """
    # Average over the folds
    total_weight = np.broadcast_to(weights.sum(axis=0), values.shape[1:])
    total = (weights[:, None] * values).sum(axis=0)
    mean = ratio(total, total_weight, np.nan)

    # Differences, without rounding errors, and their mean over the metrics
    gain = np.round(mean[1:] - mean[reference], 12)
    gain = np.concatenate([gain, gain.mean(axis=1, keepdims=True)], axis=1)

    # The jackknife's standard errors
    expected = gain[..., -1]
    error = np.sqrt((_N_PARTS - 1) * gain[..., :-1].var(axis=-1))
    low = expected - _T_QUANTILE * error
    high = expected + _T_QUANTILE * error

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


def _find_stable_methods(
    values: FloatArray, weights: FloatArray, names: list[str], metric: str
) -> set[str]:
    """Return the methods whose gain over voting stays positive without any one fold.

    Families are few. A gain that one of them decides may be an error that the others
    share with it.
    """
    is_stable = np.ones(len(names), dtype=np.bool_)
    for fold in range(len(values)):
        is_remaining = np.arange(len(values)) != fold
        gains = _estimate_gains(
            values[is_remaining], weights[is_remaining], names, reference=0
        )
        is_stable &= [gains[name][metric].value > 0 for name in names]
    return {name for name, stable in zip(names, is_stable, strict=True) if stable}


def _choose_method(
    gains: dict[str, dict[str, Estimate]], metric: str, stable: set[str]
) -> str | None:
    """Return the method with the largest significant and stable gain, or None."""
    best = None
    largest_gain = -np.inf
    for name, estimates in gains.items():
        gain = estimates[metric]
        if gain.low > 0 and gain.value > largest_gain and name in stable:
            best = name
            largest_gain = gain.value

    return best


def _describe_result(
    gains: dict[str, dict[str, Estimate]], metric: str, recommended: str | None
) -> str:
    """Return the beginning of the sentence about the chosen method."""
    metric_title = TITLES.get(metric, "the mean of the four")
    if recommended is None:
        return f"No method is shown to be better than voting in {metric_title}"

    gain = gains[recommended][metric]
    return (
        f"{recommended} is better than voting in {metric_title}: gain {gain.value:.3f} "
        f"({gain.low:.3f} to {gain.high:.3f})"
    )
