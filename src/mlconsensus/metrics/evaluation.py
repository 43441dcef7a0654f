"""All metrics of scores and label sets, and of each base model."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..linalg.block_sums import dense
from ..linalg.sparse_scores import SparseScores
from ..predictions import BoolArray, Matrix, Predictions, as_predictions, is_frame
from ._rank_counts import Scores
from .ground_truth import (
    MatchedTruth,
    check_truth_and_label_sets,
    check_truth_and_scores,
    match_truth,
)
from .label_sets import LABEL_SET_METRICS, compute_label_set_metrics
from .ranking import RANKING_METRICS, compute_ranking_metrics

_MODEL_METRICS = (*RANKING_METRICS, *LABEL_SET_METRICS, "share")


class ModelPredictions(NamedTuple):
    """The predictions of one model, and where it has made some."""

    scores: Scores  # (n, l), 0 for missing predictions
    has_instance: BoolArray  # (n,)
    has_label: BoolArray  # (l,)


def evaluate(
    truth: ArrayLike,
    scores: ArrayLike | SparseScores,
    label_sets: ArrayLike | None = None,
) -> dict[str, float]:
    """Compute all metrics.

    Parameters
    ----------
    truth : array-like, sparse matrix or DataFrame of shape (n, l)
        Relevant labels, 0/1 or bool.
    scores : array-like, sparse matrix, SparseScores or DataFrame of shape (n, l)
        Higher scores are more relevant. DataFrames are matched by name with a truth
        that is a DataFrame, in any order (docs/scikit-learn.md).
    label_sets : array-like, sparse matrix or DataFrame of shape (n, l), default=None
        Label sets, for the metrics of label sets. By default, the labels with scores
        of at least 0.5.

    Returns
    -------
    dict of str to float
        The metrics by name.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.metrics.evaluate([[1, 0], [0, 1]], [[0.9, 0.2], [0.4, 0.6]])
    {'micro_auc': 1.0, 'one_error': 0.0, 'ranking_loss': 0.0, 'average_precision': 1.0,
     'hamming_loss': 0.0, 'subset_accuracy': 1.0, 'micro_f1': 1.0, 'macro_f1': 1.0}
    """
    checked_truth, checked_scores = check_truth_and_scores(truth, scores)
    if label_sets is None:
        sets_truth = checked_truth
        checked_sets = _threshold_at_half(checked_scores)
    elif is_frame(label_sets):
        # The names of the label sets are matched with those of the truth.
        sets_truth, checked_sets = check_truth_and_label_sets(truth, label_sets)
    else:
        sets_truth, checked_sets = check_truth_and_label_sets(checked_truth, label_sets)

    ranking_metrics = compute_ranking_metrics(checked_truth, checked_scores)
    return ranking_metrics | compute_label_set_metrics(sets_truth, checked_sets)


def evaluate_models(
    truth: ArrayLike | MatchedTruth, predictions: object
) -> dict[str, dict[str, float]]:
    """Compute the metrics of each base model, and their mean ("BM").

    Each model is evaluated on the instances and labels for which it has made
    predictions. The metrics are NaN if there are none. A missing prediction of such an
    instance and label counts as 0, because the model did not choose the label.

    Parameters
    ----------
    truth : array-like, sparse matrix or DataFrame of shape (n, l)
        Relevant labels, 0/1 or bool. A DataFrame is matched by name.
    predictions : Predictions
        Or anything that the constructor of `Predictions` takes.

    Returns
    -------
    dict of str to dict
        By the name of the model, the metrics that `evaluate` returns, and ``"share"``:
        the share of the instance-label pairs on which the model is evaluated. ``"BM"``
        has the means over the models, the paper's baseline.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> models = {"a": [[1, 0]], "b": [[0, 1]]}
    >>> results = mlc.metrics.evaluate_models([[1, 0]], models)
    >>> {name: metrics["ranking_loss"] for name, metrics in results.items()}
    {'a': 0.0, 'b': 1.0, 'BM': 0.5}
    """
    panel = as_predictions(predictions)
    matched = match_truth(truth, panel.instances, panel.labels)
    results = {}
    for name, model in zip(panel.models, iterate_models(panel), strict=True):
        results[name] = _evaluate_model(matched, model)

    return results | {"BM": _average_models(list(results.values()))}


def _evaluate_model(matched: MatchedTruth, model: ModelPredictions) -> dict[str, float]:
    """Compute the metrics of one model, and the share of pairs that it predicted."""
    part = matched.restrict(model.has_instance, model.has_label)
    n_pairs = len(part.rows) * len(part.columns)
    if n_pairs == 0:
        return dict.fromkeys(_MODEL_METRICS, float("nan"))

    metrics = evaluate(part.truth, part.select(model.scores))
    metrics["share"] = n_pairs / (len(matched.rows) * len(matched.columns))
    return metrics


def _average_models(models: list[dict[str, float]]) -> dict[str, float]:
    """Average each metric over the models that have it."""
    means = {}
    for metric in _MODEL_METRICS:
        values = np.array([model[metric] for model in models])
        values = values[~np.isnan(values)]
        means[metric] = float(np.mean(values)) if len(values) else float("nan")

    return means


def iterate_models(panel: Predictions) -> Iterator[ModelPredictions]:
    """Yield the predictions of each model.

    Parameters
    ----------
    panel : Predictions
        The predictions of all models.

    Yields
    ------
    ModelPredictions
    """
    if panel.many:
        for values, n_of_instance, n_of_label in panel.apart():
            scores = SparseScores(values, np.zeros(values.shape[1]))
            yield ModelPredictions(scores, n_of_instance > 0, n_of_label > 0)

        return

    for values, is_present in panel.cells():
        if is_present is None:
            is_present = np.ones(values.shape, dtype=np.bool_)

        has_instance = np.asarray(is_present.any(axis=1))
        has_label = np.asarray(is_present.any(axis=0))
        yield ModelPredictions(dense(values), has_instance, has_label)


def _threshold_at_half(scores: Scores) -> Matrix:
    """Return the label sets (n, l) of scores of at least 0.5."""
    if isinstance(scores, SparseScores):
        return scores.at_least(0.5)
    return scores >= 0.5
