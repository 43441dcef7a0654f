"""Evaluation against the truth: all methods, all models, and each label."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..combiners.base import BaseCombiner
from ..combiners.registry import list_by_name
from ..decision.label_sets import match_instances, match_total
from ..execution.progress import track
from ..linalg.block_sums import dense, ratio
from ..metrics import intervals
from ..metrics.estimate import Estimate
from ..metrics.evaluation import evaluate, evaluate_models, iterate_models
from ..metrics.ground_truth import MatchedTruth, describe_empty_instances, match_truth
from ..metrics.tables import ENOUGH
from ..predictions import Array, BoolArray, FloatArray, IntArray, Predictions
from .changes import compute_overruled_votes, evenly

if TYPE_CHECKING:
    from ..consensus import Consensus

# Largest number of instance-label pairs that are evaluated. With more, an even sample
# of the instances is taken.
MOST_CELLS = 2_000_000
_MOST_POINTS = 80  # of a curve
_BINS = 10  # of the scores, in calibration
_DRAWS = 200  # of the bootstrap
_Z_90 = 1.645  # half width of a 90 % interval, in standard errors


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """Metrics of one method or model."""

    name: str
    kind: str  # "consensus", "method", "model" or "mean" of the models
    metrics: dict[str, float]
    # Of a model: the metrics of the consensus on the pairs that the model has
    # predicted; None if these are few.
    consensus: dict[str, float] | None = None


@dataclass(frozen=True, kw_only=True)
class Rival:
    """Voting, or the best model, and how much better the consensus is."""

    name: str
    kind: str  # "method" or "model"
    ahead: Estimate  # on the pairs that the rival has predicted


@dataclass(frozen=True, kw_only=True)
class PrecisionRecall:
    """A precision-recall curve over all instance-label pairs, from the top score."""

    name: str
    # "consensus" or "method": a curve; "model": the point of scores of at least 0.5
    kind: str
    recall: tuple[float, ...]
    precision: tuple[float, ...]

    @property
    def at_half(self) -> tuple[float, float]:
        """The recall closest to one half, and its precision."""
        points = zip(self.recall, self.precision, strict=True)
        return min(points, key=lambda point: abs(point[0] - 0.5))


@dataclass(frozen=True, kw_only=True)
class ReliabilityCurve:
    """The share of relevant instance-label pairs in bins of the score."""

    name: str
    kind: str
    score: tuple[float, ...]  # mean score of each bin that is not empty
    relevant: tuple[float, ...]  # share of relevant pairs in it
    cells: tuple[int, ...]  # number of pairs in it


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """The expected calibration error of probabilities, over ten bins."""

    error: float
    low: float  # of the 90 % interval, from the bootstrap over instances
    high: float


@dataclass(frozen=True, kw_only=True)
class LabelGain:
    """The label sets of consensus and voting for one label."""

    name: str
    relevant: int  # instances
    voting: float  # F1; where votes are tied, voting takes what the consensus takes
    consensus: float  # F1
    fixed: int  # pairs that voting has wrong and the consensus right
    broken: int  # pairs that voting has right and the consensus wrong

    @property
    def gain(self) -> float:
        """The F1 of the consensus minus that of voting."""
        return self.consensus - self.voting


@dataclass(frozen=True, kw_only=True)
class JudgedSummary:
    """The evaluation of the consensus, compared with voting and the models."""

    # Instances and labels that were not evaluated, and instances without relevant
    # labels; may be empty.
    note: str
    n_instances: int
    n_sampled: int  # instances that were evaluated
    results: tuple[Judgement, ...]  # the consensus first
    precision_recall: tuple[PrecisionRecall, ...]
    reliability: tuple[ReliabilityCurve, ...]
    calibration: Calibration  # of the probabilities of the consensus
    # The metric of `rivals`: average precision, or microAUC if there is one label.
    metric: str
    # Difference in microAUC to the mean score of each label, which ranks all instances
    # alike.
    chance: Estimate
    # Voting, unless it is the method, and the model closest to the consensus.
    rivals: tuple[Rival, ...]
    labels: tuple[LabelGain, ...]

    @property
    def beyond_chance(self) -> bool:
        """Whether it ranks instances better than chance."""
        return self.chance.low > 0 and self.results[0].metrics["micro_auc"] > 0.5


@dataclass(frozen=True, kw_only=True)
class _Sample:
    """The evaluated instances (n') and labels (l') of the consensus."""

    truth: BoolArray  # (n', l')
    rows: IntArray  # (n',) positions in the predictions
    columns: IntArray  # (l',)
    label_names: list[str]  # (l',)
    scores: FloatArray  # (n', l') of the consensus
    vote: FloatArray  # (n', l') of majority voting
    label_sets: BoolArray  # (n', l') of the consensus
    metric: str  # by which rivals are compared


@dataclass(frozen=True, kw_only=True)
class _ModelEvaluations:
    """The evaluation of all models."""

    results: list[Judgement]  # of each model, and of their mean
    points: list[PrecisionRecall]  # of each model
    rival: Rival | None  # the model closest to the consensus


def judge(consensus: "Consensus", matched: MatchedTruth) -> JudgedSummary:
    """Evaluate the consensus, every other method with its defaults, and every model.

    Parameters
    ----------
    consensus : Consensus
        The result of `combine`.
    matched : MatchedTruth
        The ground truth, matched with the consensus.

    Returns
    -------
    JudgedSummary

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> from mlconsensus.metrics.ground_truth import match_truth
    >>> panel, truth = mlc.datasets.make_panel(n_instances=50, random_state=0)
    >>> consensus = mlc.combine(panel, method="weighted")
    >>> matched = match_truth(truth, consensus.instances, consensus.labels)
    >>> summary = judge(consensus, matched)
    >>> summary.results[0].name, summary.results[0].kind
    ('Weighted', 'consensus')
    """
    sample = _draw_sample(consensus, matched)

    # Methods, the consensus first.
    results = []
    curves = []
    calibration = []
    methods = dict.fromkeys([consensus.combiner.name, *list_by_name()])
    for name in track(methods, len(methods), "judging"):
        kind = "consensus" if name == consensus.combiner.name else "method"
        scores, label_sets = _combine_by(name, consensus, sample)
        metrics = evaluate(sample.truth, scores, label_sets)
        results.append(Judgement(name=name, kind=kind, metrics=metrics))
        curves.append(precision_recall(name, kind, sample.truth, scores))
        calibration.append(reliability(name, kind, sample.truth, scores))

    probabilities = consensus.probabilities[sample.rows][:, sample.columns]
    title = f"{consensus.combiner.name}, probabilities"
    calibration.append(reliability(title, "method", sample.truth, probabilities))

    # Models.
    models = _evaluate_models(consensus, sample)
    results += models.results
    curves += models.points

    # Comparisons with voting, the best model, and chance.
    rivals = []
    ranking = intervals.evaluate_on_gold(sample.truth, sample.scores)
    if consensus.combiner.name != "MV":
        voting = intervals.evaluate_on_gold(sample.truth, sample.vote)
        ahead = ranking.subtract(voting).compute_estimates()[sample.metric]
        rivals.append(Rival(name="MV", kind="method", ahead=ahead))
    if models.rival is not None:
        rivals.append(models.rival)

    label_means = np.broadcast_to(sample.scores.mean(axis=0), sample.scores.shape)
    constant = intervals.evaluate_on_gold(sample.truth, label_means)
    notes = [matched.note, describe_empty_instances(matched.truth)]
    return JudgedSummary(
        note="; ".join(filter(None, notes)),
        n_instances=len(matched.rows),
        n_sampled=len(sample.rows),
        results=tuple(results),
        precision_recall=tuple(curves),
        reliability=tuple(calibration),
        calibration=compute_calibration_error(sample.truth, probabilities),
        metric=sample.metric,
        chance=ranking.subtract(constant).compute_estimates()["micro_auc"],
        rivals=tuple(rivals),
        labels=tuple(_compute_label_gains(consensus, sample)),
    )


def _draw_sample(consensus: "Consensus", matched: MatchedTruth) -> _Sample:
    """Select an even sample of the instances that have a truth."""
    columns = matched.columns
    sampled = evenly(len(matched.rows), max(1, MOST_CELLS // len(columns)))
    rows = matched.rows[sampled]

    # One label has no order of labels.
    metric = "average_precision" if len(columns) > 1 else "micro_auc"
    # A consensus by voting has its scores in both places.
    vote = consensus.scores if consensus.combiner.name == "MV" else consensus.vote
    return _Sample(
        truth=matched.truth[sampled],
        rows=rows,
        columns=columns,
        label_names=[consensus.labels[j] for j in columns],
        scores=consensus.scores[rows][:, columns],
        vote=vote[rows][:, columns],
        label_sets=consensus.label_indicator[rows][:, columns],
        metric=metric,
    )


def _combine_by(
    name: str, consensus: "Consensus", sample: _Sample
) -> tuple[FloatArray, BoolArray]:
    """Return scores and label sets (n', l') of a method."""
    rows = sample.rows
    columns = sample.columns
    if name == consensus.combiner.name:
        return sample.scores, sample.label_sets

    if name == "MV":
        scores = consensus.vote[rows]
    else:
        scores = _compute_scores(list_by_name()[name](), consensus.predictions, rows)

    # As many labels as the consensus gives, or as the models give each instance.
    if list_by_name()[name].comparable:
        label_sets = match_total(scores, consensus.label_indicator[rows].sum())
    else:
        label_sets = match_instances(scores, consensus.cardinality[rows])

    return scores[:, columns], label_sets[:, columns]


def _evaluate_models(consensus: "Consensus", sample: _Sample) -> _ModelEvaluations:
    """Evaluate each model on the pairs that it has predicted."""
    judged = consensus.predictions[sample.rows].select(labels=sample.label_names)
    positions = np.arange(len(sample.rows))
    truth = match_truth(sample.truth, positions, sample.label_names)
    *models, (mean_name, mean_metrics) = evaluate_models(sample.truth, judged).items()

    results = []
    points = []
    rival = None
    smallest_gain = np.inf
    for (name, metrics), (values, *predicted) in zip(
        models, iterate_models(judged), strict=True
    ):
        part = truth.restrict(*predicted)
        consensus_metrics = None
        if metrics["share"] >= ENOUGH:
            scores = part.select(sample.scores)
            consensus_metrics = evaluate(
                part.truth, scores, part.select(sample.label_sets)
            )
            gain = consensus_metrics[sample.metric] - metrics[sample.metric]
            if gain < smallest_gain:
                smallest_gain = gain
                rival = (name, part, values)

        results.append(
            Judgement(
                name=name, kind="model", metrics=metrics, consensus=consensus_metrics
            )
        )
        points.append(_compute_point(name, part.truth, part.select(values)))

    results.append(Judgement(name=mean_name, kind="mean", metrics=mean_metrics))
    return _ModelEvaluations(
        results=results,
        points=points,
        rival=None if rival is None else _compare_with_model(*rival, sample),
    )


def _compare_with_model(
    name: str, part: MatchedTruth, values: Any, sample: _Sample
) -> Rival:
    """Compare the consensus with a model on the pairs that the model has predicted."""
    consensus = intervals.evaluate_on_gold(part.truth, part.select(sample.scores))
    model = intervals.evaluate_on_gold(part.truth, part.select(values))
    ahead = consensus.subtract(model).compute_estimates()[sample.metric]
    return Rival(name=name, kind="model", ahead=ahead)


def _compute_scores(
    combiner: BaseCombiner, predictions: Predictions, rows: IntArray
) -> FloatArray:
    """Fit a combiner to all instances, and return the scores (n', l) of some."""
    if not combiner.uses_clusterings:
        predictions = predictions.without_clusterings()

    return np.asarray(combiner.fit(predictions).transform(predictions[rows]))


def precision_recall(
    name: str, kind: str, truth: BoolArray, scores: FloatArray
) -> PrecisionRecall:
    """Return a precision-recall curve of at most a few dozen points.

    Parameters
    ----------
    name, kind : str
        Name and kind of the method.
    truth : ndarray of bool of shape (n, l)
        The relevant labels.
    scores : ndarray of shape (n, l)
        Equal scores are one point.

    Returns
    -------
    PrecisionRecall

    Examples
    --------
    >>> truth = np.array([[True, False, True, True]])
    >>> curve = precision_recall("a", "method", truth, np.array([[0.9, 0.5, 0.2, 0.2]]))
    >>> curve.recall, curve.precision
    ((0.3333333333333333, 1.0), (1.0, 0.75))
    """
    # Slow to import, and only needed if there is a truth.
    from sklearn.metrics import precision_recall_curve

    if not truth.any():
        return PrecisionRecall(name=name, kind=kind, recall=(), precision=())

    precision, recall, _ = precision_recall_curve(truth.ravel(), scores.ravel())

    # From the highest score down; the last point of scikit-learn belongs to no score.
    precision = precision[-2::-1]
    recall = recall[-2::-1]

    # Points at steps of the recall; the first point of equal recall has the highest
    # precision.
    steps = np.linspace(recall[0], recall[-1], _MOST_POINTS)
    selected = np.unique(np.searchsorted(recall, steps))
    return PrecisionRecall(
        name=name,
        kind=kind,
        recall=tuple(recall[selected].tolist()),
        precision=tuple(precision[selected].tolist()),
    )


def reliability(
    name: str, kind: str, truth: BoolArray, scores: FloatArray
) -> ReliabilityCurve:
    """Return the share of relevant pairs in ten bins of the score.

    Parameters
    ----------
    name, kind : str
        Name and kind of the method.
    truth : ndarray of bool of shape (n, l)
        The relevant labels.
    scores : ndarray of shape (n, l)
        Scores above 1 are in the last bin, scores below 0 in the first.

    Returns
    -------
    ReliabilityCurve

    Examples
    --------
    >>> truth = np.array([[True, False, True]])
    >>> curve = reliability("a", "method", truth, np.array([[0.92, 0.96, 0.2]]))
    >>> curve.relevant, curve.cells
    ((1.0, 0.5), (1, 2))
    """
    flat = scores.ravel()
    bins = _assign_bins(flat)
    counts = np.bincount(bins, minlength=_BINS)
    score_sums = np.bincount(bins, weights=flat, minlength=_BINS)
    n_relevant = np.bincount(bins, weights=truth.ravel(), minlength=_BINS)

    is_used = counts > 0
    mean_scores = score_sums[is_used] / counts[is_used]
    shares = n_relevant[is_used] / counts[is_used]
    return ReliabilityCurve(
        name=name,
        kind=kind,
        score=tuple(mean_scores.tolist()),
        relevant=tuple(shares.tolist()),
        cells=tuple(counts[is_used].tolist()),
    )


def _assign_bins(scores: FloatArray) -> IntArray:
    """Return the bin of each score."""
    return np.clip((scores * _BINS).astype(np.int64), 0, _BINS - 1)


def compute_calibration_error(truth: BoolArray, likely: FloatArray) -> Calibration:
    """Return the expected calibration error of probabilities, with its interval.

    Parameters
    ----------
    truth : ndarray of bool of shape (n, l)
        The relevant labels.
    likely : ndarray of shape (n, l)
        Their probabilities.

    Returns
    -------
    Calibration

    Examples
    --------
    >>> compute_calibration_error(np.array([[True, False]] * 4), np.full((4, 2), 0.75)).error
    0.25
    """
    # (n, bins) sums of probability minus truth.
    n_instances = len(truth)
    bins = _assign_bins(likely)
    differences = np.zeros((n_instances, _BINS))
    for step in range(_BINS):
        differences[:, step] = np.where(bins == step, likely - truth, 0).sum(axis=1)

    error = float(_compute_error(np.ones(n_instances), differences) / truth.size)

    # Bootstrap over instances: how often each is drawn, (draws, n).
    counts = np.random.default_rng(0).multinomial(
        n_instances, np.full(n_instances, 1 / n_instances), size=_DRAWS
    )
    errors = _compute_error(counts, differences) / truth.size
    half_width = _Z_90 * float(errors.std())
    return Calibration(
        error=error, low=max(error - half_width, 0.0), high=error + half_width
    )


def _compute_error(weights: Array, differences: FloatArray) -> FloatArray:
    """Return the sum over bins of the absolute weighted differences."""
    return np.asarray(np.abs(weights @ differences).sum(axis=-1))


def _compute_point(name: str, truth: BoolArray, values: Any) -> PrecisionRecall:
    """Return precision and recall of a model's scores of at least 0.5."""
    chosen = dense(values) >= 0.5
    n_right = int((truth & chosen).sum())
    if not n_right:
        return PrecisionRecall(name=name, kind="model", recall=(), precision=())
    return PrecisionRecall(
        name=name,
        kind="model",
        recall=(n_right / int(truth.sum()),),
        precision=(n_right / int(chosen.sum()),),
    )


def _compute_label_gains(
    consensus: "Consensus", sample: _Sample
) -> Iterator[LabelGain]:
    """Compare the label sets of consensus and voting, label by label."""
    truth = sample.truth
    label_sets = sample.label_sets

    # Pairs on which voting, with sets of the same sizes, differs.
    vote = consensus.vote[sample.rows]
    lacking, spare, _ = compute_overruled_votes(
        vote, consensus.label_indicator[sample.rows]
    )
    is_changed = ((lacking > 0) | (spare > 0))[:, sample.columns]

    is_right = label_sets == truth
    voting_f1 = _compute_f1(truth, label_sets ^ is_changed)
    consensus_f1 = _compute_f1(truth, label_sets)
    n_fixed = (is_changed & is_right).sum(axis=0)
    n_broken = (is_changed & ~is_right).sum(axis=0)
    n_relevant = truth.sum(axis=0)
    for j, name in enumerate(sample.label_names):
        yield LabelGain(
            name=name,
            relevant=int(n_relevant[j]),
            voting=float(voting_f1[j]),
            consensus=float(consensus_f1[j]),
            fixed=int(n_fixed[j]),
            broken=int(n_broken[j]),
        )


def _compute_f1(truth: BoolArray, label_sets: BoolArray) -> FloatArray:
    """Return the F1 (l,) of each label; 0 if it is neither relevant nor given."""
    n_right = (truth & label_sets).sum(axis=0)
    n_total = truth.sum(axis=0) + label_sets.sum(axis=0)
    return np.asarray(ratio(2 * n_right, n_total, 0.0))
