"""With the truth: how good every method and model is, and which labels the consensus mends or spoils."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..combiners.base import BaseCombiner
from ..combiners.registry import COMBINERS
from ..decision.label_sets import match_instances, match_total
from ..execution.progress import track
from ..linalg.block_sums import dense, ratio
from ..metrics import intervals
from ..metrics.ground_truth import Matched, as_matched, without_labels
from ..metrics.intervals import Figure
from ..metrics.ranking import each_model, evaluate, evaluate_models
from ..metrics.tables import ENOUGH
from ..predictions import BoolArray, FloatArray, IntArray, Predictions
from .changes import evenly, overruling

if TYPE_CHECKING:
    from ..consensus import Consensus

# cells of the truth that are judged; of more instances an even sample is taken
MOST_CELLS = 2_000_000
_MOST_POINTS = 80  # of a curve
_BINS = 10
_DRAWS = 200  # of the bootstrap


class Judgement(NamedTuple):
    """One method or model against the truth."""

    name: str
    kind: str  # "consensus", "method", "model" or "mean" of the models
    metrics: dict[str, float]
    consensus: dict[str, float] | None = (
        None  # beside a model: of the consensus on the same cells; None: on few
    )


class Rival(NamedTuple):
    """Voting, or the best model, and how far the consensus is ahead of it on what it has spoken about."""

    name: str
    kind: str  # "method" or "model"
    ahead: Figure


class PrecisionRecall(NamedTuple):
    """Precision and recall over all cells, as ever more cells are taken, from the highest score down."""

    name: str
    # "consensus" or "method": a curve; "model": the one point of scores of at least 0.5
    kind: str
    recall: tuple[float, ...]
    precision: tuple[float, ...]

    @property
    def at_half(self) -> tuple[float, float]:
        """The point whose recall is closest to one half."""
        return min(
            zip(self.recall, self.precision, strict=True),
            key=lambda point: abs(point[0] - 0.5),
        )


class ReliabilityCurve(NamedTuple):
    """How often cells of about the same score are relevant, in bins of the score."""

    name: str
    kind: str
    score: tuple[float, ...]  # mean of each bin that holds any cell
    relevant: tuple[float, ...]  # share of its cells
    cells: tuple[int, ...]  # how many it holds


class Calibration(NamedTuple):
    """How far probabilities are from how often they come true: the expected calibration error, in tenths."""

    error: float
    low: float  # of the 90 % interval, from the bootstrap over instances
    high: float


class LabelGain(NamedTuple):
    """One label's sets, by consensus and by voting, against the truth."""

    name: str
    relevant: int  # instances
    voting: float  # F1; where votes are tied, it takes what the consensus takes
    consensus: float  # F1
    mended: int  # cells that voting has wrong and the consensus right
    spoiled: int  # the other way round

    @property
    def gain(self) -> float:
        """By how much the consensus is better than voting."""
        return self.consensus - self.voting


class JudgedSummary(NamedTuple):
    """How good it is, by itself and beside voting and the models."""

    # what could not be judged, and of how many instances no label is relevant; may be
    # empty
    note: str
    n_instances: int
    n_sampled: int  # instances the figures are over
    results: tuple[Judgement, ...]
    precision_recall: tuple[PrecisionRecall, ...]
    reliability: tuple[ReliabilityCurve, ...]
    calibration: Calibration  # of the consensus's probabilities
    # by which it is compared with rivals: average precision, or microAUC of one label
    metric: str
    # how far its microAUC is ahead of that of each label's mean score, which tells no
    # instances apart
    chance: Figure
    rivals: tuple[
        Rival, ...
    ]  # voting, unless it is the method, and the model of which it is least ahead
    labels: tuple[LabelGain, ...]

    @property
    def beyond_chance(self) -> bool:
        """Whether it tells instances apart, and the right way round."""
        return self.chance.low > 0 and self.results[0].metrics["micro_auc"] > 0.5


def judge(consensus: "Consensus", matched: Matched) -> JudgedSummary:
    """Judge the consensus, every other method with its defaults, and every model.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> from mlconsensus.metrics.ground_truth import as_matched
    >>> panel, truth = mlc.datasets.make_panel(n_instances=50, random_state=0)
    >>> consensus = mlc.combine(panel, method="filter")
    >>> found = judge(consensus, as_matched(truth, consensus.instances, consensus.labels))
    >>> found.results[0].name, found.results[0].kind
    ('Filter', 'consensus')
    """
    at = evenly(len(matched.rows), max(1, MOST_CELLS // len(matched.columns)))
    truth = matched.truth[at]
    rows = matched.rows[at]
    columns = matched.columns
    whole = consensus.predictions
    names = [consensus.labels[j] for j in columns]
    methods = dict.fromkeys([consensus.method, *COMBINERS])  # the consensus first
    known = {"MV": consensus.vote, consensus.method: consensus.scores}

    own = consensus.label_indicator[rows]
    results = []
    curves = []
    calibration = []
    for name in track(methods, len(methods), "judging"):
        if name == consensus.method:
            kind = "consensus"
        else:
            kind = "method"

        if name in known:
            scores = known[name][rows]
        else:
            scores = _scores(COMBINERS[name](), whole, rows)

        if name == consensus.method:
            sets = own
        elif COMBINERS[name].comparable:
            sets = match_total(scores, own.sum())
        else:
            sets = match_instances(scores, consensus.cardinality[rows])

        scores = scores[:, columns]
        results.append(Judgement(name, kind, evaluate(truth, scores, sets[:, columns])))
        curves.append(precision_recall(name, kind, truth, scores))
        calibration.append(reliability(name, kind, truth, scores))

    scores, vote = (known[name][rows][:, columns] for name in (consensus.method, "MV"))
    judged = whole[rows].select(labels=names)
    whole_truth = as_matched(truth, np.arange(len(rows)), names)
    ranked = intervals.judge(truth, scores)
    rivals = []
    # with one label there is no order of labels
    if len(columns) > 1:
        metric = "average_precision"
    else:
        metric = "micro_auc"

    if consensus.method != "MV":
        rivals.append(
            Rival(
                "MV",
                "method",
                ranked.ahead_of(intervals.judge(truth, vote)).figures()[metric],
            )
        )

    least = np.inf
    *models, mean = evaluate_models(truth, judged).items()
    for (name, metrics), (values, *spoken) in zip(
        models, each_model(judged), strict=True
    ):
        part = whole_truth.within(*spoken)
        beside = None
        if metrics["share"] >= ENOUGH:
            beside = evaluate(part.truth, part.of(scores), part.of(own[:, columns]))
            if beside[metric] - metrics[metric] < least:
                least = beside[metric] - metrics[metric]
                best = (name, part, values)

        results.append(Judgement(name, "model", metrics, beside))
        curves.append(_point(name, part.truth, part.of(values)))

    results.append(Judgement(mean[0], "mean", mean[1]))
    if least < np.inf:
        name, part, values = best
        one, other = (
            intervals.judge(part.truth, part.of(each)) for each in (scores, values)
        )
        rivals.append(Rival(name, "model", one.ahead_of(other).figures()[metric]))

    alike = np.broadcast_to(scores.mean(axis=0), scores.shape)
    chance = ranked.ahead_of(intervals.judge(truth, alike)).figures()["micro_auc"]
    gains = _gains(names, truth, consensus, rows, columns)
    likely = consensus.probabilities[rows][:, columns]
    calibration.append(
        reliability(f"{consensus.method}, probabilities", "method", truth, likely)
    )
    found = (
        tuple(results),
        tuple(curves),
        tuple(calibration),
        calibration_error(truth, likely),
    )
    compared = metric, chance, tuple(rivals), tuple(gains)
    note = "; ".join(filter(None, (matched.note, without_labels(matched.truth))))
    return JudgedSummary(note, len(matched.rows), len(rows), *found, *compared)


def _scores(combiner: BaseCombiner, panel: Predictions, rows: IntArray) -> FloatArray:
    """Combine a whole panel, and return the scores of some of its instances."""
    if combiner.uses_clusterings:
        usable = panel
    else:
        usable = panel.without_clusterings()

    return np.asarray(combiner.fit(usable).transform(usable[rows]))


def precision_recall(
    name: str, kind: str, truth: BoolArray, scores: FloatArray
) -> PrecisionRecall:
    """Draw the curve through at most a few dozen of its points; equal scores are taken together.

    Examples
    --------
    >>> precision_recall("a", "method", np.array([[True, False, True, True]]), np.array([[0.9, 0.5, 0.2, 0.2]]))
    PrecisionRecall(name='a', kind='method', recall=(0.3333333333333333, 1.0), precision=(1.0, 0.75))
    """
    from sklearn.metrics import (
        precision_recall_curve,
    )  # takes a while to import, and is needed with truth only

    if not truth.any():
        return PrecisionRecall(name, kind, (), ())

    found = precision_recall_curve(truth.ravel(), scores.ravel())[:2]
    precision, recall = (
        values[-2::-1] for values in found
    )  # from the highest score down; the last is no cell's
    # Points are kept where recall has gone on by a step; of those of the same recall,
    # the first has most precision.
    kept = np.unique(
        np.searchsorted(recall, np.linspace(recall[0], recall[-1], _MOST_POINTS))
    )
    return PrecisionRecall(
        name, kind, tuple(recall[kept].tolist()), tuple(precision[kept].tolist())
    )


def reliability(
    name: str, kind: str, truth: BoolArray, scores: FloatArray
) -> ReliabilityCurve:
    """Bin cells by their score, a tenth each; scores above 1 are in the last bin, those below 0 in the first.

    Examples
    --------
    >>> found = reliability("a", "method", np.array([[True, False, True]]), np.array([[0.92, 0.96, 0.2]]))
    >>> found.relevant, found.cells
    ((1.0, 0.5), (1, 2))
    """
    flat = scores.ravel()
    relevant = truth.ravel()
    at = np.clip((flat * _BINS).astype(np.int64), 0, _BINS - 1)
    cells = np.bincount(at, minlength=_BINS)
    full = cells > 0
    mean = np.bincount(at, weights=flat, minlength=_BINS)[full] / cells[full]
    share = np.bincount(at, weights=relevant, minlength=_BINS)[full] / cells[full]
    return ReliabilityCurve(
        name,
        kind,
        tuple(mean.tolist()),
        tuple(share.tolist()),
        tuple(cells[full].tolist()),
    )


def calibration_error(truth: BoolArray, likely: FloatArray) -> Calibration:
    """Average how far the share of relevant cells is from their mean probability, over tenths of the probability.

    Examples
    --------
    >>> calibration_error(np.array([[True, False]] * 4), np.full((4, 2), 0.75)).error
    0.25
    """
    at = np.clip((likely * _BINS).astype(np.int64), 0, _BINS - 1)
    off = np.stack(
        [np.where(at == step, likely - truth, 0).sum(axis=1) for step in range(_BINS)],
        axis=1,
    )
    drawn = np.random.default_rng(0).multinomial(
        len(off), np.full(len(off), 1 / len(off)), size=_DRAWS
    )
    error, errors = (
        np.abs(weights @ off).sum(axis=-1) / truth.size
        for weights in (np.ones(len(off)), drawn)
    )
    half = 1.645 * float(errors.std())
    return Calibration(float(error), max(float(error) - half, 0.0), float(error) + half)


def _point(name: str, truth: BoolArray, values: Any) -> PrecisionRecall:
    chosen = dense(values) >= 0.5
    right = int((truth & chosen).sum())
    if not right:
        return PrecisionRecall(name, "model", (), ())
    return PrecisionRecall(
        name, "model", (right / int(truth.sum()),), (right / int(chosen.sum()),)
    )


def _gains(
    names: list[str],
    truth: BoolArray,
    consensus: "Consensus",
    rows: IntArray,
    columns: IntArray,
) -> Iterable[LabelGain]:
    chosen = consensus.label_indicator[rows]
    relevant = truth.sum(axis=0)
    lacking, spare, _ = overruling(consensus.vote[rows], chosen)
    own = chosen[:, columns]
    changed = ((lacking > 0) | (spare > 0))[:, columns]
    # F1 of each label; 0 where it is neither relevant nor given.
    f1 = (
        ratio(2 * (truth & sets).sum(axis=0), relevant + sets.sum(axis=0), 0.0)
        for sets in (own ^ changed, own)
    )
    right = own == truth
    mended = (changed & right).sum(axis=0)
    spoiled = (changed & ~right).sum(axis=0)
    return map(
        LabelGain,
        names,
        *(column.tolist() for column in (relevant, *f1, mended, spoiled)),
    )
