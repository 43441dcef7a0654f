"""What a method's score is the sum of; each method's `contributions` fills it for one instance and label."""

from typing import Literal, NamedTuple

import numpy as np

from ..linalg.block_sums import FloatArray, connections, dense, spoken
from ..predictions import Predictions

Scale = Literal["score", "log-odds"]


class Contributions(NamedTuple):
    """What the score of one cell is the sum of."""

    baseline: float  # where the sum starts before any statement counts
    # (m, l) what each model's statement about each label adds; 0 where it was silent
    statements: FloatArray
    remainder: float = (
        0.0  # what the method does to the sum in the end, as a floor at 0
    )
    clusters: FloatArray | None = (
        None  # (c,) what being in each cluster adds; None: the panel has no clusterings
    )
    scale: Scale = "score"  # whether all that sums to the score or to its log-odds


def statements(block: Predictions) -> tuple[FloatArray, FloatArray]:
    """Return what the models said of the block's first instance (m, l), and where they spoke, times their weights.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> scores, said = statements(mlc.Predictions([[[1, np.nan]], [[0, 0.5]]]))
    >>> scores.tolist(), said.tolist()
    ([[1.0, 0.0], [0.0, 0.5]], [[1.0, 0.0], [1.0, 1.0]])
    """
    m, _, l = block.shape
    return dense(connections(block[:1])).reshape(m, l), spoken(block[:1]).reshape(m, l)


def of_label(values: FloatArray, label: int, shape: tuple[int, ...]) -> FloatArray:
    """Return an array (m, l) that holds the models' `values` (m,) for one label, and 0 for all others.

    Examples
    --------
    >>> of_label(np.array([3.0, 4.0]), 1, (2, 2)).tolist()
    [[0.0, 3.0], [0.0, 4.0]]
    """
    out = np.zeros(shape)
    out[:, label] = values
    return out
