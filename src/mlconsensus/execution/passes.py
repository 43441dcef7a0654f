"""The two passes over a source: by the cluster that has it, or else by this process."""

from collections.abc import Callable
from typing import Any

from ..predictions import Array, BasePredictions, Predictions
from . import local
from .statistics import S


def gather(source: BasePredictions, statistics: Callable[[Predictions], S]) -> S:
    """First pass: the statistics of each block, merged, by the cluster that has the source or else by this process.

    Parameters
    ----------
    source
        Predictions in memory, in files or on a cluster.
    statistics
        Turns a block into sums.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> gather(mlc.Predictions([[[1, 0], [1, 1]]]), mlc.MajorityVote()._compute_statistics)
    MajorityVoteStatistics(total=array([2., 1.]), heard=array([2., 2.]))
    """
    own: Callable[..., S] | None = getattr(source, "gather", None)
    if own is None:
        return local.gather(source, statistics)
    return own(statistics)


def spread(
    source: BasePredictions, apply: Callable[[Predictions], Any], dtype: Any = float
) -> Array:
    """Second pass: what `apply` makes of each block, by the cluster that has the source or else by this process.

    Parameters
    ----------
    source
        Predictions in memory, in files or on a cluster.
    apply
        Turns a block into scores.
    dtype
        What the scores are returned as.

    Returns
    -------
    ndarray (n, l) of `dtype`; a lazy Dask array where the source is on a cluster.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> from mlconsensus.linalg.block_sums import votes
    >>> spread(mlc.Predictions([[[1, 0], [1, 1]]]), lambda block: votes(block).total)
    array([[1., 0.], [1., 1.]])
    """
    own: Callable[..., Array] | None = getattr(source, "spread", None)
    if own is None:
        return local.spread(source, apply, dtype)
    return own(apply, dtype)
