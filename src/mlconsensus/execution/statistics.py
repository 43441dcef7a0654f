"""Statistics of blocks: how they are merged, and what the axes of their arrays are."""

import math
from dataclasses import dataclass
from typing import Any, TypeVar

S = TypeVar("S", bound=tuple[Any, ...])


@dataclass(frozen=True, slots=True)
class Axes:
    """Axes and valid values of one field of a method's statistics or solution.

    Files are checked against it, and sites are merged by the names of their models
    and labels. A field declares it as ``Annotated[Any, Axes("m l m l")]``.

    Parameters
    ----------
    names : str
        One name for each axis: ``m`` models, ``l`` labels, ``ml`` model-label pairs,
        ``c`` clusters, ``?`` anything else. Empty for a single number.
    symmetric : bool, default=False
        Whether the array is a symmetric matrix.
    least, most : float, default=-inf, inf
        Smallest and largest valid number, if no noise was added.
    distribution : bool, default=False
        Whether numbers sum to 1 along the last axis.
    """

    names: str
    symmetric: bool = False
    least: float = -math.inf
    most: float = math.inf
    distribution: bool = False


def merge_statistics(a: S, b: S) -> S:
    """Add the statistics of two sets of instances, field by field.

    Parameters
    ----------
    a, b : tuple
        Statistics of one method, of different instances.

    Returns
    -------
    tuple
        The statistics of all these instances.

    Examples
    --------
    >>> from mlconsensus.combiners.mlcm_r import MLCMrStatistics
    >>> merge_statistics(MLCMrStatistics(1.0), MLCMrStatistics(2.0)).walk
    3.0
    """
    sums = [x + y for x, y in zip(a, b, strict=True)]
    return type(a)(*sums)
