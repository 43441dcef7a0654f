"""Predictions as rows: one row for each model and each instance that it predicted.

The number of rows is the number of predictions made: a thousand models of which five
saw each instance cost as much as five models that saw all instances.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ..predictions import Array, BoolArray, FloatArray, IntArray, Predictions
from .block_sums import ratio
from .matrix_types import CSCArray


@dataclass(frozen=True, kw_only=True)
class Annotations:
    """Rows of predictions, in the order of the models; `r` is their number."""

    model: IntArray  # (r,) position of the model
    instance: IntArray  # (r,) position of the instance
    scores: Array  # (r, l), 0 for missing predictions
    is_present: BoolArray  # (r, l) whether there is a prediction
    shape: tuple[int, int, int]  # of the predictions: m, n, l

    @property
    def mean(self) -> FloatArray:
        """Mean score of each model and label (m, l), 0 without predictions."""
        return ratio(
            self.sum_by_model(self.scores), self.sum_by_model(self.is_present), 0.0
        )

    def sum_by_instance(self, values: Array) -> FloatArray:
        """Sum values of the rows (r, l) for each instance, (n, l)."""
        return np.asarray(make_sum_matrix(self.instance, self.shape[1]) @ values)

    def sum_by_model(self, values: Array) -> FloatArray:
        """Sum values of the rows (r, l) for each model, (m, l)."""
        return np.asarray(make_sum_matrix(self.model, self.shape[0]) @ values)


def make_annotations(predictions: Predictions) -> Annotations:
    """Return predictions as rows.

    Parameters
    ----------
    predictions : Predictions
        The predictions of all models.

    Returns
    -------
    Annotations

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> scores = [[[1, 0], [np.nan, np.nan]], [[0, 1], [1, np.nan]]]
    >>> annotations = make_annotations(mlc.Predictions(scores))
    >>> annotations.model.tolist(), annotations.instance.tolist()
    ([0, 1, 1], [0, 0, 1])
    >>> annotations.is_present.tolist()
    [[True, True], [True, True], [True, False]]
    """
    model_rows = []
    instance_rows = []
    score_rows = []
    presence_rows = []
    seen_instances = predictions.seen()
    seen_scores = predictions.brought()
    models = zip(seen_instances, seen_scores, strict=True)
    for model, (instances, (scores, is_present)) in enumerate(models):
        if sparse.issparse(scores):
            scores = scores.toarray()
        if is_present is None:
            is_present = np.ones(scores.shape, dtype=np.bool_)

        # Rows without any prediction are dropped
        has_prediction = is_present.any(axis=1)
        if not has_prediction.all():
            instances = instances[has_prediction]
            scores = scores[has_prediction]
            is_present = is_present[has_prediction]

        model_rows.append(np.full(len(instances), model))
        instance_rows.append(instances)
        score_rows.append(scores)
        presence_rows.append(is_present)

    return Annotations(
        model=np.concatenate(model_rows),
        instance=np.concatenate(instance_rows),
        scores=np.concatenate(score_rows),
        is_present=np.concatenate(presence_rows),
        shape=predictions.shape,
    )


def make_sum_matrix(group: IntArray, n_groups: int) -> CSCArray:
    """Return a sparse matrix that sums the rows of each group.

    Parameters
    ----------
    group : ndarray of shape (r,)
        Group of each row.
    n_groups : int
        Number of groups.

    Returns
    -------
    csc_array of shape (n_groups, r)

    Examples
    --------
    >>> sums = make_sum_matrix(np.array([1, 0, 1]), 2)
    >>> (sums @ np.array([[1.0], [5.0], [2.0]])).tolist()
    [[5.0], [3.0]]
    """
    n_rows = len(group)
    content = (np.ones(n_rows), group, np.arange(n_rows + 1))
    return sparse.csc_array(content, shape=(n_groups, n_rows))
