"""Both passes in this process, over predictions in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..predictions import Predictions
from ..progress import track
from ..statistics import merge

S = TypeVar("S", bound=tuple[Any, ...])


def gather(predictions: Predictions, statistics: Callable[[Predictions], S]) -> S:
    """First pass: the statistics of each block, merged.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> from mlconsensus.combiners import majority_vote
    >>> gather(mlc.Predictions([[[1, 0], [1, 1]]]), majority_vote.statistics)
    Statistics(total=array([2., 1.]), heard=array([2., 2.]))
    """
    return reduce(merge, map(statistics, _blocks(predictions, "gathering")))


def spread(predictions: Predictions, apply: Callable[[Predictions], NDArray[np.float64]]) -> NDArray[np.float64]:
    """Second pass: the consensus scores (n, l), block by block.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> from mlconsensus.kernels import votes
    >>> spread(mlc.Predictions([[[1, 0], [1, 1]]]), lambda block: votes(block).total)
    array([[1., 0.], [1., 1.]])
    """
    _, n, l = predictions.shape
    scores = np.empty((n, l))
    start = 0
    for block in _blocks(predictions, "combining"):
        scores[start : start + len(block)] = apply(block)
        start += len(block)
    return scores


def _blocks(predictions: Predictions, doing: str) -> Iterator[Predictions]:
    size = predictions.block_size
    return track(predictions.blocks(size), -(-len(predictions) // size), doing)
