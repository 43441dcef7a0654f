r"""How well scores or label sets agree with the truth: pure functions of (truth, scores).

Ties. Each ranking metric is its expected value when equal scores are put in random order. For microAUC and
ranking loss that counts a tied pair one half; for one error it is the share of wrong labels among those tied at
the top. The definitions printed in the paper, which count ties otherwise, have names of their own ending in
``_printed``.

Instances without a relevant label, or with no irrelevant one, have no pair to rank: as in scikit-learn, their
ranking loss is 0 and their average precision is 1. One error counts an instance without a relevant label as an
error, since whatever label is put first is wrong. MicroAUC has no value (NaN) when all cells of the truth are
alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from .decisions import threshold
from .errors import InputError
from .predictions import as_predictions

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

# Rows ranked at a time: what is sorted stays in the processor's cache.
_CELLS_AT_ONCE = 2**18

RANKING_METRICS = ("micro_auc", "one_error", "ranking_loss", "average_precision")
LABEL_SET_METRICS = ("hamming_loss", "subset_accuracy", "micro_f1", "macro_f1")
LOWER_IS_BETTER = frozenset({"one_error", "ranking_loss", "hamming_loss"})


class _Ranking(NamedTuple):
    """Some instances' labels from highest score to lowest, and the group of equal scores each stands in."""

    place: NDArray[np.intp]  # (l,) 0 for the first
    relevant: FloatArray  # (n, l) whether the label at this place is relevant
    start: FloatArray  # (n, l) how many labels stand above the group
    size: FloatArray  # (n, l) how many labels are in the group
    relevant_above: FloatArray  # (n, l) how many relevant labels stand above the group
    relevant_within: FloatArray  # (n, l) how many relevant labels are in the group
    n_relevant: FloatArray  # (n,)


def micro_auc(truth: Any, scores: ArrayLike) -> float:
    """Probability that a relevant cell scores above an irrelevant one, over all cells; ties one half.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.metrics.micro_auc([[1, 0], [0, 1]], [[0.9, 0.2], [0.4, 0.4]])
    0.875
    """
    from sklearn.metrics import roc_auc_score

    truth, scores = _pair(truth, scores)
    dense = _dense(truth)
    if dense.all() or not dense.any():
        return float("nan")
    return float(roc_auc_score(dense.ravel(), scores.ravel()))


def one_error(truth: Any, scores: ArrayLike) -> float:
    """Probability that the label put first is not relevant; among ties one is drawn at random.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.metrics.one_error([[1, 0], [0, 1]], [[0.9, 0.2], [0.4, 0.4]])
    0.25
    """
    return _mean_over_instances(truth, scores, lambda r: 1 - r.relevant_within[:, 0] / r.size[:, 0])


def ranking_loss(truth: Any, scores: ArrayLike) -> float:
    """Mean share of (relevant, irrelevant) pairs of labels of an instance in the wrong order; ties one half.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.metrics.ranking_loss([[1, 0], [0, 1]], [[0.9, 0.2], [0.4, 0.4]])
    0.25
    """
    return _mean_over_instances(truth, scores, lambda r: _pair_loss(r, tied=0.5))


def average_precision(truth: Any, scores: ArrayLike) -> float:
    """Mean over relevant labels of the share of relevant ones among those down to it, then over instances.

    Without ties it is scikit-learn's ``label_ranking_average_precision_score``; among ties it is the expected
    value over their orders.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.metrics.average_precision([[1, 0, 1]], [[0.9, 0.5, 0.2]]) == (1 / 1 + 2 / 3) / 2
    True
    """
    return _mean_over_instances(truth, scores, _precision_at_relevant)


def micro_auc_printed(truth: Any, scores: ArrayLike) -> float:
    """MicroAUC as the paper prints it: ties count as wrong.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.metrics.micro_auc_printed([[1, 0], [0, 1]], [[0.9, 0.2], [0.4, 0.4]])
    0.75
    """
    truth, scores = _pair(truth, scores)
    relevant = _dense(truth).ravel()
    positive, negative = np.sort(scores.ravel()[relevant]), np.sort(scores.ravel()[~relevant])
    if not (positive.size and negative.size):
        return float("nan")
    below = np.searchsorted(negative, positive, side="left")
    return float(below.sum() / (positive.size * negative.size))


def ranking_loss_printed(truth: Any, scores: ArrayLike) -> float:
    """Ranking loss as the paper prints it: a sum over instances, ties counted as wrong.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.metrics.ranking_loss_printed([[1, 0], [0, 1]], [[0.9, 0.2], [0.4, 0.4]])
    1.0
    """
    truth, scores = _pair(truth, scores)
    return float(sum(_pair_loss(r, tied=1.0).sum() for r in _rankings(truth, scores)))


def average_precision_printed(truth: Any, scores: ArrayLike) -> float:
    """Average precision as the paper prints it: precision averaged over every number of retrieved labels.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.metrics.average_precision_printed([[1, 0]], [[0.9, 0.2]]) == (1 / 1 + 1 / 2) / 2
    True
    """
    return _mean_over_instances(truth, scores, _precision_at_every_place)


def hamming_loss(truth: Any, label_sets: ArrayLike) -> float:
    """Share of cells that are wrong.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.metrics.hamming_loss([[1, 0], [0, 1]], [[True, False], [True, True]])
    0.25
    """
    from sklearn.metrics import hamming_loss

    return float(hamming_loss(*_label_sets(truth, label_sets)))


def subset_accuracy(truth: Any, label_sets: ArrayLike) -> float:
    """Share of instances whose label set is right to the last label.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.metrics.subset_accuracy([[1, 0], [0, 1]], [[True, False], [True, True]])
    0.5
    """
    truth, label_sets = _label_sets(truth, label_sets)
    # scikit-learn's accuracy_score means another thing for a single label than for several.
    return float((truth == label_sets).all(axis=1).mean())


def micro_f1(truth: Any, label_sets: ArrayLike) -> float:
    """F1 over all cells; 0 where nothing is relevant and nothing is kept.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.metrics.micro_f1([[1, 0], [0, 1]], [[True, False], [True, True]])
    0.8
    """
    return _f1(truth, label_sets, "micro")


def macro_f1(truth: Any, label_sets: ArrayLike) -> float:
    """Mean over labels of each label's F1; 0 for a label that is never relevant and never kept.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> round(mlc.metrics.macro_f1([[1, 0], [0, 1]], [[True, False], [True, True]]), 4)
    0.8333
    """
    return _f1(truth, label_sets, "macro")


def evaluate(truth: Any, scores: ArrayLike, label_sets: ArrayLike | None = None) -> dict[str, float]:
    """Give all metrics in their usual definitions.

    Parameters
    ----------
    truth
        Relevant labels (n, l), 0/1 or bool, dense or scipy.sparse.
    scores
        Scores (n, l), higher = more relevant.
    label_sets
        Label sets (n, l) for the metrics that judge these; the scores of at least 0.5 where none are given.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.metrics.evaluate([[1, 0], [0, 1]], [[0.9, 0.2], [0.4, 0.6]])
    {'micro_auc': 1.0, 'one_error': 0.0, 'ranking_loss': 0.0, 'average_precision': 1.0,
     'hamming_loss': 0.0, 'subset_accuracy': 1.0, 'micro_f1': 1.0, 'macro_f1': 1.0}
    """
    truth, scores = _pair(truth, scores)
    sets = threshold(scores) if label_sets is None else label_sets
    found = {name: globals()[name](truth, scores) for name in RANKING_METRICS}
    return found | {name: globals()[name](truth, sets) for name in LABEL_SET_METRICS}


def evaluate_models(truth: Any, predictions: Any) -> dict[str, dict[str, float]]:
    """Give the metrics of each base model, and their mean under the name ``"BM"``, the paper's baseline.

    A cell about which a model was silent counts as 0: the model did not put that label forward.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> found = mlc.metrics.evaluate_models([[1, 0]], {"a": [[1, 0]], "b": [[0, 1]]})
    >>> {name: metrics["ranking_loss"] for name, metrics in found.items()}
    {'a': 0.0, 'b': 1.0, 'BM': 0.5}
    """
    panel = as_predictions(predictions)
    found = {
        model: evaluate(truth, values.toarray() if sparse.issparse(values) else values)
        for model, (values, _) in zip(panel.models, panel.cells(), strict=True)
    }
    names = (*RANKING_METRICS, *LABEL_SET_METRICS)
    return found | {"BM": {name: float(np.mean([f[name] for f in found.values()])) for name in names}}


def _pair(truth: Any, scores: ArrayLike) -> tuple[Any, FloatArray]:
    """Check that truth is binary, scores are finite, and both have one shape."""
    if hasattr(truth, "iloc") and hasattr(scores, "iloc"):
        for axis in ("index", "columns"):
            if list(getattr(truth, axis)) != list(getattr(scores, axis)):
                raise InputError(
                    f"scores: found another {axis} than that of the truth, expected the same in the same order"
                )
    known: Any = truth.tocsr() if sparse.issparse(truth) else np.asarray(truth)
    values = known.data if sparse.issparse(known) else known
    if values.dtype.kind not in "biuf" or not np.isin(values, (0, 1)).all():
        raise InputError("truth: found values other than 0 and 1, expected a binary matrix (n, l)")
    found = np.asarray(scores)
    if found.dtype.kind not in "biuf":
        raise InputError(f"scores: found {found.dtype} values, expected numbers")
    if found.ndim != 2 or found.shape != known.shape:
        raise InputError(f"scores: found shape {found.shape}, expected {known.shape} as the truth has")
    if 0 in found.shape:
        raise InputError(f"scores: found shape {found.shape}, expected at least one instance and one label")
    if found.dtype.kind == "f" and not np.isfinite([found.min(), found.max()]).all():
        raise InputError("scores: found NaN or infinity, expected finite numbers")
    return known.astype(np.bool_), found.astype(np.float64, copy=False)


def _label_sets(truth: Any, label_sets: ArrayLike) -> tuple[BoolArray, BoolArray]:
    chosen = np.asarray(label_sets)
    if chosen.dtype.kind not in "biuf" or not np.isin(chosen, (0, 1)).all():
        raise InputError("label sets: found values other than 0 and 1, expected a binary matrix (n, l)")
    truth, _ = _pair(truth, chosen)
    return _dense(truth), chosen.astype(np.bool_)


def _dense(truth: Any) -> BoolArray:
    return np.asarray(truth.toarray() if sparse.issparse(truth) else truth)


def _f1(truth: Any, label_sets: ArrayLike, average: str) -> float:
    from sklearn.metrics import f1_score

    truth, label_sets = _label_sets(truth, label_sets)
    if truth.shape[1] == 1:  # scikit-learn would take a single column for a two-class problem
        return float(f1_score(truth[:, 0], label_sets[:, 0], zero_division=0.0))
    return float(f1_score(truth, label_sets, average=average, zero_division=0.0))


def _rankings(truth: Any, scores: FloatArray) -> Iterator[_Ranking]:
    """Sort the labels of a few instances at a time and find the groups of equal scores."""
    n, l = scores.shape
    step = max(1, _CELLS_AT_ONCE // l)
    place = np.arange(l)
    for first in range(0, n, step):
        chunk = scores[first : first + step]
        order = np.argsort(-chunk, axis=1)
        ranked = np.take_along_axis(chunk, order, axis=1)
        relevant = np.take_along_axis(_dense(truth[first : first + step]), order, axis=1)
        opens = np.ones(ranked.shape, dtype=np.bool_)
        np.not_equal(ranked[:, 1:], ranked[:, :-1], out=opens[:, 1:])
        start = np.maximum.accumulate(np.where(opens, place, 0), axis=1)
        closes = np.ones_like(opens)
        closes[:, :-1] = opens[:, 1:]
        end = np.minimum.accumulate(np.where(closes, place, l)[:, ::-1], axis=1)[:, ::-1]
        counted = np.zeros((len(chunk), l + 1))
        np.cumsum(relevant, axis=1, out=counted[:, 1:])
        above = np.take_along_axis(counted, start, axis=1)
        through = np.take_along_axis(counted, end + 1, axis=1)
        yield _Ranking(
            place,
            relevant.astype(np.float64),
            start.astype(np.float64),
            (end + 1 - start).astype(np.float64),
            above,
            through - above,
            counted[:, -1],
        )


def _mean_over_instances(truth: Any, scores: ArrayLike, metric: Callable[[_Ranking], FloatArray]) -> float:
    truth, scores = _pair(truth, scores)
    return float(sum(metric(ranking).sum() for ranking in _rankings(truth, scores)) / len(scores))


def _pair_loss(r: _Ranking, tied: float) -> FloatArray:
    """Share of the pairs of each instance that are in the wrong order, a tied pair counted `tied`."""
    irrelevant_above = r.start - r.relevant_above
    irrelevant_within = r.size - r.relevant_within
    wrong = (r.relevant * (irrelevant_above + tied * irrelevant_within)).sum(axis=1)
    pairs = r.n_relevant * (r.relevant.shape[1] - r.n_relevant)
    return np.asarray(wrong / np.maximum(pairs, 1))


def _precision_at_relevant(r: _Ranking) -> FloatArray:
    """Usual average precision of each instance, expected over the orders of ties.

    The label at a place of its group is relevant with probability ``relevant_within / size``; given that, each
    of the places before it in the group holds one of the other relevant labels with probability
    ``(relevant_within - 1) / (size - 1)``.
    """
    others = np.maximum(r.relevant_within - 1, 0) / np.maximum(r.size - 1, 1)
    before = r.relevant_above + (r.place - r.start) * others
    expected = (r.relevant_within / r.size * (before + 1) / (r.place + 1)).sum(axis=1)
    return np.where(r.n_relevant > 0, expected / np.maximum(r.n_relevant, 1), 1.0)


def _precision_at_every_place(r: _Ranking) -> FloatArray:
    """Average the precision over all places, of each instance, expected over the orders of ties."""
    retrieved = r.relevant_above + (r.place - r.start + 1) * r.relevant_within / r.size
    return np.asarray((retrieved / (r.place + 1)).mean(axis=1))


def is_better(metric: str, one: float, other: float) -> bool:
    """Whether the value `one` of a metric is better than the value `other`.

    Examples
    --------
    >>> is_better("ranking_loss", 0.1, 0.2), is_better("micro_auc", 0.1, 0.2)
    (True, False)
    """
    return one < other if metric in LOWER_IS_BETTER else one > other
