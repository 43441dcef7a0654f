"""What all statistics share: they are tuples of sums over instances, so merging adds them."""

from __future__ import annotations

from typing import Any, TypeVar

S = TypeVar("S", bound=tuple[Any, ...])


def merge(a: S, b: S) -> S:
    """Add two statistics, field by field: associative and commutative.

    Examples
    --------
    >>> from mlconsensus.combiners.mlcm_a import Statistics
    >>> from mlconsensus.combiners.statistics import empty
    >>> one = Statistics(*range(7))
    >>> merge(one, one) == Statistics(*range(0, 14, 2)), merge(one, empty(Statistics)) == one
    (True, True)
    """
    return type(a)(*(x + y for x, y in zip(a, b, strict=True)))


def empty(kind: type[S]) -> S:
    """Return the statistics of no instances: merging with them changes nothing.

    Examples
    --------
    >>> from mlconsensus.combiners.majority_vote import Statistics
    >>> empty(Statistics)
    Statistics(total=0, heard=0)
    """
    return kind._make([0] * len(kind._fields))  # type: ignore[attr-defined, no-any-return]
