"""The terms of one score; each method's `_contributions` computes them."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..predictions import FloatArray

Scale = Literal["score", "log-odds"]


@dataclass(frozen=True, kw_only=True)
class Contributions:
    """The terms of the score of one instance and label.

    Their sum is the score or, with ``scale="log-odds"``, its log-odds.
    """

    # The sum without any prediction.
    baseline: float
    # (m, l) what each model's prediction of each label adds; 0 if it is missing.
    predictions: FloatArray
    # What the method changes at the end, such as a limit of the score at 0.
    remainder: float = 0.0
    # (c,) what membership in each cluster adds; None without clusterings.
    clusters: FloatArray | None = None
    scale: Scale = "score"


def of_label(values: FloatArray, label: int, shape: tuple[int, ...]) -> FloatArray:
    """Return an array that has values for one label, and 0 for all others.

    Parameters
    ----------
    values : ndarray of shape (m,)
        Value of each model.
    label : int
        Position of the label.
    shape : tuple of int
        Shape (m, l) of the result.

    Returns
    -------
    ndarray of shape (m, l)

    Examples
    --------
    >>> of_label(np.array([3.0, 4.0]), 1, (2, 2)).tolist()
    [[0.0, 3.0], [0.0, 4.0]]
    """
    array = np.zeros(shape)
    array[:, label] = values
    return array
