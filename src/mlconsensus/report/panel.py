"""The panel at a glance: how many models, instances and labels, what is missing, how many labels each model gives."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..panel.predictions import Predictions


class ModelGlance(NamedTuple):
    """How much one model said."""

    name: str
    instances: int  # about which it said anything
    labels: int  # about which it said anything
    missing: float  # share of the panel's cells about which it was silent
    cardinality: float  # sum of its scores over an instance about which it spoke: its labels, if it decides
    decides: bool  # whether all its scores are 0 or 1


class PanelSummary(NamedTuple):
    """How much the models said."""

    n_models: int
    n_instances: int
    n_labels: int
    missing: float  # share of the cells
    cardinality: float  # mean number of labels the models give an instance
    models: tuple[ModelGlance, ...]
    n_clusterings: int  # members of the panel that group instances and know no labels


def summarise_panel(predictions: Predictions, cardinality: Any) -> PanelSummary:
    """Count what the models said; `cardinality` (n,) is the number of labels they gave each instance on average.

    Examples
    --------
    >>> import numpy as np
    >>> import mlconsensus as mlc
    >>> panel = mlc.Predictions({"a": np.array([[1, 0], [1, 1]]), "b": np.array([[0.5, np.nan], [np.nan, np.nan]])})
    >>> found = summarise_panel(panel, mlc.decisions.cardinalities(panel))
    >>> found.missing, found.models[1]
    (0.375, ModelGlance(name='b', instances=1, labels=1, missing=0.75, cardinality=0.5, decides=False))
    """
    m, n, l = predictions.shape
    heard, seen, total = np.zeros(m), np.zeros(m, dtype=np.int64), np.zeros(m)
    known, decides = np.zeros((m, l), dtype=np.bool_), np.ones(m, dtype=np.bool_)
    for block in predictions.blocks():
        for k, (values, spoken) in enumerate(block.cells()):
            heard[k] += len(block) * l if spoken is None else np.count_nonzero(spoken)
            seen[k] += len(block) if spoken is None else np.count_nonzero(spoken.any(axis=1))
            known[k] |= True if spoken is None else spoken.any(axis=0)
            total[k] += values.sum(dtype=np.float64)
            decides[k] &= _decides(values)
    missing = 1 - heard / (n * l)
    columns = (seen, known.sum(axis=1), missing, total / np.maximum(seen, 1), decides)
    models = tuple(map(ModelGlance, predictions.models, *(column.tolist() for column in columns)))
    mean = float(np.mean(cardinality))
    return PanelSummary(m, n, l, float(missing.mean()), mean, models, predictions.members.shape[1])


def _decides(values: Any) -> bool:
    cells = values.data if sparse.issparse(values) else values
    return cells.dtype.kind in "biu" or bool(((cells == 0) | (cells == 1)).all())
