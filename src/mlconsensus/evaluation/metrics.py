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

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ..arithmetic.products import ratio
from ..errors import InputError
from ..panel.predictions import as_predictions
from .decisions import threshold
from .ranks import BoolArray, FloatArray, Groups, each_group, pairs_of_cells

RANKING_METRICS = ("micro_auc", "one_error", "ranking_loss", "average_precision")
LABEL_SET_METRICS = ("hamming_loss", "subset_accuracy", "micro_f1", "macro_f1")
LOWER_IS_BETTER = frozenset({"one_error", "ranking_loss", "hamming_loss"})


def micro_auc(truth: Any, scores: ArrayLike) -> float:
    """Probability that a relevant cell scores above an irrelevant one, over all cells; ties one half.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.metrics.micro_auc([[1, 0], [0, 1]], [[0.9, 0.2], [0.4, 0.4]])
    0.875
    """
    known, found = _pair(truth, scores)
    pairs = pairs_of_cells(_dense(known), found)
    return (pairs.won + pairs.tied / 2) / pairs.number if pairs.number else float("nan")


def one_error(truth: Any, scores: ArrayLike) -> float:
    """Probability that the label put first is not relevant; among ties one is drawn at random.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.metrics.one_error([[1, 0], [0, 1]], [[0.9, 0.2], [0.4, 0.4]])
    0.25
    """
    return _mean_over_instances(*_pair(truth, scores), _wrong_at_top)[0]


def ranking_loss(truth: Any, scores: ArrayLike) -> float:
    """Mean share of (relevant, irrelevant) pairs of labels of an instance in the wrong order; ties one half.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.metrics.ranking_loss([[1, 0], [0, 1]], [[0.9, 0.2], [0.4, 0.4]])
    0.25
    """
    return _mean_over_instances(*_pair(truth, scores), _pair_loss)[0]


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
    return _mean_over_instances(*_pair(truth, scores), _precision_at_relevant)[0]


def micro_auc_printed(truth: Any, scores: ArrayLike) -> float:
    """MicroAUC as the paper prints it: ties count as wrong.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.metrics.micro_auc_printed([[1, 0], [0, 1]], [[0.9, 0.2], [0.4, 0.4]])
    0.75
    """
    known, found = _pair(truth, scores)
    pairs = pairs_of_cells(_dense(known), found)
    return pairs.won / pairs.number if pairs.number else float("nan")


def ranking_loss_printed(truth: Any, scores: ArrayLike) -> float:
    """Ranking loss as the paper prints it: a sum over instances, ties counted as wrong.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.metrics.ranking_loss_printed([[1, 0], [0, 1]], [[0.9, 0.2], [0.4, 0.4]])
    1.0
    """
    known, found = _pair(truth, scores)
    return _mean_over_instances(known, found, _pair_loss_printed)[0] * len(found)


def average_precision_printed(truth: Any, scores: ArrayLike) -> float:
    """Average precision as the paper prints it: precision averaged over every number of retrieved labels.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.metrics.average_precision_printed([[1, 0]], [[0.9, 0.2]]) == (1 / 1 + 1 / 2) / 2
    True
    """
    return _mean_over_instances(*_pair(truth, scores), _precision_at_every_place)[0]


def hamming_loss(truth: Any, label_sets: ArrayLike) -> float:
    """Share of cells that are wrong.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.metrics.hamming_loss([[1, 0], [0, 1]], [[True, False], [True, True]])
    0.25
    """
    truth, label_sets = _label_sets(truth, label_sets)
    return float((truth != label_sets).mean())


def subset_accuracy(truth: Any, label_sets: ArrayLike) -> float:
    """Share of instances whose label set is right to the last label.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.metrics.subset_accuracy([[1, 0], [0, 1]], [[True, False], [True, True]])
    0.5
    """
    truth, label_sets = _label_sets(truth, label_sets)
    return float((truth == label_sets).all(axis=1).mean())


def micro_f1(truth: Any, label_sets: ArrayLike) -> float:
    """F1 over all cells; 0 where nothing is relevant and nothing is kept.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.metrics.micro_f1([[1, 0], [0, 1]], [[True, False], [True, True]])
    0.8
    """
    both, either = _agreements(truth, label_sets)
    return float(ratio(2 * both.sum(), either.sum(), 0.0))


def macro_f1(truth: Any, label_sets: ArrayLike) -> float:
    """Mean over labels of each label's F1; 0 for a label that is never relevant and never kept.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> round(mlc.metrics.macro_f1([[1, 0], [0, 1]], [[True, False], [True, True]]), 4)
    0.8333
    """
    both, either = _agreements(truth, label_sets)
    return float(ratio(2 * both, either, 0.0).mean())


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
    known, found = _pair(truth, scores)
    sets = threshold(found) if label_sets is None else label_sets
    ranked = _mean_over_instances(known, found, _wrong_at_top, _pair_loss, _precision_at_relevant)
    of_scores = dict(zip(RANKING_METRICS, (micro_auc(known, found), *ranked), strict=True))
    return of_scores | {name: globals()[name](known, sets) for name in LABEL_SET_METRICS}


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


def _pair(truth: Any, scores: ArrayLike) -> tuple[Any, NDArray[Any]]:
    """Check that truth is binary, scores are finite, and both have one shape; give truth as bool, scores as floats."""
    if hasattr(truth, "iloc") and hasattr(scores, "iloc"):
        for axis in ("index", "columns"):
            if list(getattr(truth, axis)) != list(getattr(scores, axis)):
                raise InputError(
                    f"scores: found another {axis} than that of the truth, expected the same in the same order"
                )
    known: Any = truth.tocsr() if sparse.issparse(truth) else np.asarray(truth)
    values = known.data if sparse.issparse(known) else known
    if not _is_binary(values):
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
    as_float = found if found.dtype in (np.float32, np.float64) else found.astype(np.float64)
    return known.astype(np.bool_, copy=False), as_float


def _label_sets(truth: Any, label_sets: ArrayLike) -> tuple[BoolArray, BoolArray]:
    chosen = np.asarray(label_sets)
    if not _is_binary(chosen):
        raise InputError("label sets: found values other than 0 and 1, expected a binary matrix (n, l)")
    truth, _ = _pair(truth, chosen)
    return _dense(truth), chosen.astype(np.bool_, copy=False)


def _dense(truth: Any) -> BoolArray:
    return np.asarray(truth.toarray() if sparse.issparse(truth) else truth)


def _is_binary(values: NDArray[Any]) -> bool:
    kind = values.dtype.kind
    return kind == "b" or (kind in "iuf" and bool(((values == 0) | (values == 1)).all()))


def _agreements(truth: Any, label_sets: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Count for each label where it is both relevant and kept (l,), and how often it is either, added up (l,)."""
    truth, label_sets = _label_sets(truth, label_sets)
    both = (truth & label_sets).sum(axis=0, dtype=np.float64)
    return both, truth.sum(axis=0, dtype=np.float64) + label_sets.sum(axis=0)


def _mean_over_instances(truth: Any, scores: NDArray[Any], *metrics: Callable[[Groups], float]) -> list[float]:
    """Add up each metric over a few instances at a time, then divide by how many there are."""
    found = each_group(truth, scores, lambda groups: [metric(groups) for metric in metrics])
    return [float(sum(values) / len(scores)) for values in zip(*found, strict=True)]


# Each of these is a sum over instances, expected over the orders of ties.


def _wrong_at_top(g: Groups) -> float:
    return len(g.n_relevant) - float((g.relevant / g.size)[g.above == 0].sum())


def _pair_loss(g: Groups, tied: float = 0.5) -> float:
    """Add up the share of pairs in the wrong order, a tied pair counted `tied`."""
    wrong = g.relevant * (g.above - g.relevant_above + tied * (g.size - g.relevant))
    pairs = g.n_relevant * (g.n_labels - g.n_relevant)
    return float((wrong / np.maximum(pairs, 1)[g.instance]).sum())


def _pair_loss_printed(g: Groups) -> float:
    return _pair_loss(g, tied=1.0)


def _precision_at_relevant(g: Groups) -> float:
    r"""Add up the usual average precision.

    Place `t` of a group, counted from 0, holds a relevant label with probability ``relevant / size``; given that, each
    of the `t` places before it holds one of the others with probability ``(relevant - 1) / (size - 1)``. What is to be
    added up over the places is thus :math:`(a + b t) / (\text{above} + 1 + t)`, and harmonic numbers do that.
    """
    _, of_ones, of_places = _harmonic(g)
    others = np.maximum(g.relevant - 1, 0) / np.maximum(g.size - 1, 1)
    precision = g.relevant / g.size * ((g.relevant_above + 1) * of_ones + others * of_places)
    return float((precision / g.n_relevant[g.instance]).sum() + (g.n_relevant == 0).sum())


def _precision_at_every_place(g: Groups) -> float:
    """Add up the precision averaged over all places: a relevant label counts from its own place on."""
    below, of_ones, of_places = _harmonic(g)
    return float((g.relevant * ((of_ones + of_places) / g.size + below)).sum() / g.n_labels)


def _harmonic(g: Groups) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Add up 1/(p + 1) over the places p below each group, and 1/(p + 1) and t/(p + 1) over those in it."""
    numbers = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, g.n_labels + 1))])
    through = numbers[(g.above + g.size).astype(np.intp)]
    of_ones = through - numbers[g.above.astype(np.intp)]
    return numbers[-1] - through, of_ones, g.size - (g.above + 1) * of_ones


def is_better(metric: str, one: float, other: float) -> bool:
    """Whether the value `one` of a metric is better than the value `other`.

    Examples
    --------
    >>> is_better("ranking_loss", 0.1, 0.2), is_better("micro_auc", 0.1, 0.2)
    (True, False)
    """
    return one < other if metric in LOWER_IS_BETTER else one > other
