"""What engines add up: the statistics of blocks, and what their axes are."""

import math
from typing import Any, NamedTuple, TypeVar

S = TypeVar("S", bound=tuple[Any, ...])


class Axes(NamedTuple):
    """What the axes of a field of `Statistics` or `Solution` run over, for files and for merging by name.

    Beside a field it reads ``Annotated[Any, Axes("m l m l")]``.
    """

    # m: models, l: labels, ml: (model, label) pairs, c: clusters, ?: anything; "" is a
    # single number
    names: str
    symmetric: bool = False  # whether swapping rows and columns changes nothing
    least: float = -math.inf  # below which no number can be, unless noise was added
    most: float = math.inf  # above which no number can be, unless noise was added
    distribution: bool = False  # whether numbers add up to 1 along the last axis


def merge_statistics(a: S, b: S) -> S:
    """Add two statistics, field by field: associative and commutative.

    Parameters
    ----------
    a, b
        Statistics of one method, of different instances.

    Returns
    -------
    Those of all instances.

    Examples
    --------
    >>> from mlconsensus.combiners.majority_vote import MajorityVoteStatistics
    >>> one = MajorityVoteStatistics(1, 2)
    >>> merge_statistics(one, MajorityVoteStatistics(10, 20))
    MajorityVoteStatistics(total=11, heard=22)
    """
    return type(a)(*(x + y for x, y in zip(a, b, strict=True)))
