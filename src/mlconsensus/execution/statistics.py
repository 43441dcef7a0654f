"""Statistics of blocks: how they are merged, and what the axes of their arrays are.

Statistics are records: frozen dataclasses or NamedTuples.
"""

import math
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Protocol, Self, TypeVar

S = TypeVar("S")  # a record of statistics


class Summable(Protocol):
    """A number, an array, or any other value with a sum."""

    def __add__(self, other: Self, /) -> Self:
        """Return the sum of two values."""


V = TypeVar("V", bound=Summable)


@dataclass(frozen=True, slots=True)
class Axes:
    """Axes and valid values of one field of a method's statistics or solution.

    Files are checked against it, and sites are merged by the names of their models
    and labels. A field declares it as ``Annotated[FloatArray, Axes("m l m l")]``.

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


def field_names(record: object) -> tuple[str, ...]:
    """Return the names of the fields of a record, or of a class of records.

    Parameters
    ----------
    record : dataclass or NamedTuple
        A record or its class.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> field_names(Axes)
    ('names', 'symmetric', 'least', 'most', 'distribution')
    """
    if is_dataclass(record):
        return tuple(field.name for field in fields(record))

    names: tuple[str, ...] = getattr(record, "_fields")  # noqa: B009
    return names


def optional_field_names(record: object) -> frozenset[str]:
    """Return the names of the fields that have a default value.

    Parameters
    ----------
    record : dataclass or NamedTuple
        A record or its class.

    Returns
    -------
    frozenset of str

    Examples
    --------
    >>> sorted(optional_field_names(Axes))
    ['distribution', 'least', 'most', 'symmetric']
    """
    if not is_dataclass(record):
        return frozenset(getattr(record, "_field_defaults"))  # noqa: B009

    names = set()
    for field in fields(record):
        if field.default is not MISSING or field.default_factory is not MISSING:
            names.add(field.name)

    return frozenset(names)


def merge_statistics(a: S, b: S) -> S:
    """Add the statistics of two sets of instances, field by field.

    Parameters
    ----------
    a, b : dataclass or NamedTuple
        Statistics of one method, of different instances. A field that is None adds
        nothing.

    Returns
    -------
    dataclass or NamedTuple
        The statistics of all these instances.

    Examples
    --------
    >>> from mlconsensus.combiners.mlcm_r import MLCMrStatistics
    >>> one = MLCMrStatistics(walk=1.0)
    >>> merge_statistics(one, MLCMrStatistics(walk=2.0)).walk
    3.0
    """
    sums = {}
    for name in field_names(a):
        sums[name] = _add(getattr(a, name), getattr(b, name))

    return type(a)(**sums)


def _add(x: V | None, y: V | None) -> V | None:
    """Return the sum of two fields; None if both are absent."""
    if x is None:
        return y
    if y is None:
        return x
    return x + y
