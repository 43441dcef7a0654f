r"""How well scores or label sets agree with the truth: pure functions of (truth, scores).

Ties. Each ranking metric is its expected value when equal scores are put in random
order. For microAUC and ranking loss that counts a tied pair one half; for one error it
is the share of wrong labels among those tied at the top. The definitions printed in the
paper, which count ties otherwise, have names of their own ending in ``_printed``.

Instances without a relevant label, or with no irrelevant one, have no pair to rank: as
in scikit-learn, their ranking loss is 0 and their average precision is 1. One error
counts an instance without a relevant label as an error, since whatever label is put
first is wrong. MicroAUC has no value (NaN) when all cells of the truth are alike.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..linalg.block_sums import column_sums, dense, ratio, row_sums
from ..linalg.sparse_scores import SparseScores
from ..predictions import BoolArray, Predictions, as_predictions, is_frame
from . import _rank_counts
from .ground_truth import (
    check_truth_and_label_sets,
    check_truth_and_scores,
    match_truth,
)

RANKING_METRICS = ("micro_auc", "one_error", "ranking_loss", "average_precision")
LABEL_SET_METRICS = ("hamming_loss", "subset_accuracy", "micro_f1", "macro_f1")
LOWER_IS_BETTER = frozenset({"one_error", "ranking_loss", "hamming_loss"})


def micro_auc(truth: Any, scores: ArrayLike) -> float:
    """Probability that a relevant cell scores above an irrelevant one, over all cells; ties one half.

    Parameters
    ----------
    truth, scores
        As in `evaluate`, both (n, l).

    Returns
    -------
    A number in [0, 1]; NaN where all cells of the truth are alike.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.metrics.micro_auc([[1, 0], [0, 1]], [[0.9, 0.2], [0.4, 0.4]])
    0.875
    """
    return _auc(*check_truth_and_scores(truth, scores))


def one_error(truth: Any, scores: ArrayLike) -> float:
    """Probability that the label put first is not relevant; among ties one is drawn at random.

    Parameters
    ----------
    truth, scores
        As in `evaluate`, both (n, l).

    Returns
    -------
    A number in [0, 1].

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.metrics.one_error([[1, 0], [0, 1]], [[0.9, 0.2], [0.4, 0.4]])
    0.25
    """
    return _rank_counts.average_over_instances(
        *check_truth_and_scores(truth, scores), _rank_counts.compute_one_error
    )[0]


def ranking_loss(truth: Any, scores: ArrayLike) -> float:
    """Mean share of (relevant, irrelevant) pairs of labels of an instance in the wrong order; ties one half.

    Parameters
    ----------
    truth, scores
        As in `evaluate`, both (n, l).

    Returns
    -------
    A number in [0, 1].

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.metrics.ranking_loss([[1, 0], [0, 1]], [[0.9, 0.2], [0.4, 0.4]])
    0.25
    """
    return _rank_counts.average_over_instances(
        *check_truth_and_scores(truth, scores), _rank_counts.compute_ranking_loss
    )[0]


def average_precision(truth: Any, scores: ArrayLike) -> float:
    """Mean over relevant labels of the share of relevant ones among those down to it, then over instances.

    Without ties it is scikit-learn's ``label_ranking_average_precision_score``; among
    ties it is the expected value over their orders.

    Parameters
    ----------
    truth, scores
        As in `evaluate`, both (n, l).

    Returns
    -------
    A number in [0, 1].

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.metrics.average_precision([[1, 0, 1]], [[0.9, 0.5, 0.2]]) == (1 / 1 + 2 / 3) / 2
    True
    """
    return _rank_counts.average_over_instances(
        *check_truth_and_scores(truth, scores), _rank_counts.compute_average_precision
    )[0]


def micro_auc_printed(truth: Any, scores: ArrayLike) -> float:
    """MicroAUC as the paper prints it: ties count as wrong.

    Parameters
    ----------
    truth, scores
        As in `evaluate`, both (n, l).

    Returns
    -------
    A number in [0, 1]; NaN where all cells of the truth are alike.

    Examples
    --------
    >>> from mlconsensus.metrics import ranking
    >>> ranking.micro_auc_printed([[1, 0], [0, 1]], [[0.9, 0.2], [0.4, 0.4]])
    0.75
    """
    return _auc(*check_truth_and_scores(truth, scores), tied=0.0)


def ranking_loss_printed(truth: Any, scores: ArrayLike) -> float:
    """Ranking loss as the paper prints it: a sum over instances, ties counted as wrong.

    Parameters
    ----------
    truth, scores
        As in `evaluate`, both (n, l).

    Returns
    -------
    A number in [0, 1] for each instance, added up.

    Examples
    --------
    >>> from mlconsensus.metrics import ranking
    >>> ranking.ranking_loss_printed([[1, 0], [0, 1]], [[0.9, 0.2], [0.4, 0.4]])
    1.0
    """
    known, found = check_truth_and_scores(truth, scores)
    return _rank_counts.average_over_instances(
        known, found, partial(_rank_counts.compute_ranking_loss, tied=1.0)
    )[0] * len(found)


def average_precision_printed(truth: Any, scores: ArrayLike) -> float:
    """Average precision as the paper prints it: precision averaged over every number of retrieved labels.

    Parameters
    ----------
    truth, scores
        As in `evaluate`, both (n, l).

    Returns
    -------
    A number in [0, 1].

    Examples
    --------
    >>> from mlconsensus.metrics import ranking
    >>> ranking.average_precision_printed([[1, 0]], [[0.9, 0.2]]) == (1 / 1 + 1 / 2) / 2
    True
    """
    return _rank_counts.average_over_instances(
        *check_truth_and_scores(truth, scores), _rank_counts.precision_at_every_place
    )[0]


def hamming_loss(truth: Any, label_sets: ArrayLike) -> float:
    """Share of cells that are wrong.

    Parameters
    ----------
    truth, label_sets
        As in `evaluate`, both (n, l).

    Returns
    -------
    A number in [0, 1].

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.metrics.hamming_loss([[1, 0], [0, 1]], [[True, False], [True, True]])
    0.25
    """
    return _of_sets(*check_truth_and_label_sets(truth, label_sets))["hamming_loss"]


def subset_accuracy(truth: Any, label_sets: ArrayLike) -> float:
    """Share of instances whose label set is right to the last label.

    Parameters
    ----------
    truth, label_sets
        As in `evaluate`, both (n, l).

    Returns
    -------
    A number in [0, 1].

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.metrics.subset_accuracy([[1, 0], [0, 1]], [[True, False], [True, True]])
    0.5
    """
    return _of_sets(*check_truth_and_label_sets(truth, label_sets))["subset_accuracy"]


def micro_f1(truth: Any, label_sets: ArrayLike) -> float:
    """F1 over all cells; 0 where nothing is relevant and nothing is kept.

    Parameters
    ----------
    truth, label_sets
        As in `evaluate`, both (n, l).

    Returns
    -------
    A number in [0, 1].

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.metrics.micro_f1([[1, 0], [0, 1]], [[True, False], [True, True]])
    0.8
    """
    return _of_sets(*check_truth_and_label_sets(truth, label_sets))["micro_f1"]


def macro_f1(truth: Any, label_sets: ArrayLike) -> float:
    """Mean over labels of each label's F1; 0 for a label that is never relevant and never kept.

    Parameters
    ----------
    truth, label_sets
        As in `evaluate`, both (n, l).

    Returns
    -------
    A number in [0, 1].

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> round(mlc.metrics.macro_f1([[1, 0], [0, 1]], [[True, False], [True, True]]), 4)
    0.8333
    """
    return _of_sets(*check_truth_and_label_sets(truth, label_sets))["macro_f1"]


def evaluate(truth: Any, scores: Any, label_sets: Any = None) -> dict[str, float]:
    """Give all metrics in their usual definitions.

    Parameters
    ----------
    truth
        Relevant labels (n, l), 0/1 or bool, dense or scipy.sparse.
    scores
        Scores (n, l), higher = more relevant; `SparseScores` of many labels.
    label_sets
        Label sets (n, l), or CSR, for the metrics that judge these; the scores of at
        least 0.5 where none are given. DataFrames are matched with a truth that is one
        by their names (docs/scikit-learn.md), in any order.

    Returns
    -------
    The metrics by name.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.metrics.evaluate([[1, 0], [0, 1]], [[0.9, 0.2], [0.4, 0.6]])
    {'micro_auc': 1.0, 'one_error': 0.0, 'ranking_loss': 0.0, 'average_precision': 1.0,
     'hamming_loss': 0.0, 'subset_accuracy': 1.0, 'micro_f1': 1.0, 'macro_f1': 1.0}
    """
    known, found = check_truth_and_scores(truth, scores)
    if label_sets is None:
        own = known
        sets = _labels_above_half(found)
    else:
        own, sets = check_truth_and_label_sets(
            truth if is_frame(label_sets) else known, label_sets
        )

    ranked = _rank_counts.average_over_instances(
        known,
        found,
        _rank_counts.compute_one_error,
        _rank_counts.compute_ranking_loss,
        _rank_counts.compute_average_precision,
    )
    return dict(
        zip(RANKING_METRICS, (_auc(known, found), *ranked), strict=True)
    ) | _of_sets(own, sets)


def evaluate_models(truth: Any, predictions: Any) -> dict[str, dict[str, float]]:
    """Give the metrics of each base model, and their mean under the name ``"BM"``, the paper's baseline.

    Each model is judged on the instances and the labels that it has spoken about; NaN
    if there are none. Of these, a cell about which it was silent counts as 0: the model
    did not put that label forward.

    Parameters
    ----------
    truth
        Relevant labels (n, l), 0/1 or bool, dense or scipy.sparse; a DataFrame is
        matched by its names.
    predictions
        `Predictions`, or anything that its constructor takes.

    Returns
    -------
    What `evaluate` gives, by the names of the models and ``"BM"``, and ``"share"``: of
    the cells, what it is judged on.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> found = mlc.metrics.evaluate_models([[1, 0]], {"a": [[1, 0]], "b": [[0, 1]]})
    >>> {name: metrics["ranking_loss"] for name, metrics in found.items()}
    {'a': 0.0, 'b': 1.0, 'BM': 0.5}
    """
    panel = as_predictions(predictions)
    found = {}
    known = match_truth(truth, panel.instances, panel.labels)
    names = *RANKING_METRICS, *LABEL_SET_METRICS, "share"
    for model, (scores, seen, has) in zip(
        panel.models, iterate_models(panel), strict=True
    ):
        part = known.restrict(seen, has)
        share = (
            len(part.rows) * len(part.columns) / (len(known.rows) * len(known.columns))
        )
        if share:
            own = evaluate(part.truth, part.select(scores)) | {"share": share}
        else:
            own = {}

        found[model] = dict.fromkeys(names, float("nan")) | own

    each = {
        metric: [own[metric] for own in found.values() if own[metric] == own[metric]]
        for metric in names
    }
    mean = {
        metric: float(np.mean(values)) if values else float("nan")
        for metric, values in each.items()
    }
    return found | {"BM": mean}


def iterate_models(panel: Predictions) -> Iterator[tuple[Any, BoolArray, BoolArray]]:
    """Yield the scores of each model (n, l), and which instances (n,) and labels (l,) it has spoken about."""
    if panel.many:
        for values, seen, has in panel.apart():
            yield SparseScores(values, np.zeros(values.shape[1])), seen > 0, has > 0

        return

    for values, spoken in panel.cells():
        if spoken is None:
            heard = np.ones(values.shape, np.bool_)
        else:
            heard = spoken

        yield (
            dense(values),
            np.asarray(heard.any(axis=1)),
            np.asarray(heard.any(axis=0)),
        )


def _labels_above_half(scores: Any) -> Any:
    """Return the label sets (n, l) of scores of at least 0.5."""
    if isinstance(scores, SparseScores):
        return scores.at_least(0.5)
    return scores >= 0.5


def _auc(truth: Any, scores: Any, tied: float = 0.5) -> float:
    """Return the share of pairs of cells in the right order, a tied pair counted `tied`."""
    number, won, level = _rank_counts.count_ordered_pairs(truth, scores)
    if number:
        return (won + tied * level) / number
    return float("nan")


def _of_sets(truth: Any, sets: Any) -> dict[str, float]:
    wrong = row_sums(truth != sets)
    both = column_sums(truth * sets)
    either = column_sums(truth) + column_sums(sets)  # what is both counts twice
    f1 = ratio(2 * both.sum(), either.sum(), 0.0), ratio(2 * both, either, 0.0).mean()
    found = wrong.mean() / len(both), (wrong == 0).mean(), *f1
    return dict(zip(LABEL_SET_METRICS, map(float, found), strict=True))


def is_better(metric: str, one: float, other: float) -> bool:
    """Tell whether the value `one` of a metric is better than the value `other`.

    Examples
    --------
    >>> is_better("ranking_loss", 0.1, 0.2), is_better("micro_auc", 0.1, 0.2)
    (True, False)
    """
    if metric in LOWER_IS_BETTER:
        return one < other
    return one > other
