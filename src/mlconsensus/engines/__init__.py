"""Where blocks are and who runs the two passes over them; no method is written here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ..panel.sources import S, Source

if TYPE_CHECKING:
    from ..panel.predictions import Predictions


def gather(source: Source, statistics: Callable[[Predictions], S]) -> S:
    """First pass, run by whoever walks the source: the statistics of each block, merged.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> from mlconsensus.combiners import majority_vote
    >>> gather(mlc.Predictions([[[1, 0], [1, 1]]]), majority_vote.statistics)
    Statistics(total=array([2., 1.]), heard=array([2., 2.]))
    """
    return source.gather(statistics)


def spread(source: Source, apply: Callable[[Predictions], Any], dtype: Any = float) -> NDArray[Any]:
    """Second pass, run by whoever walks the source: what `apply` makes of each block, (n, l) of `dtype`.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> from mlconsensus.arithmetic.products import votes
    >>> spread(mlc.Predictions([[[1, 0], [1, 1]]]), lambda block: votes(block).total)
    array([[1., 0.], [1., 1.]])
    """
    return source.spread(apply, dtype)
