"""Values of instance-label pairs, such as the sum of the models' scores.

`DenseValues` is an array with one value per pair. `NamedValues` is for predictions in
which most pairs are named by no model: it has a value for each named pair, and one
value per label for all other pairs of a group of instances. Combiners use the methods
of `PairValues` and do not know which of the two they have.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from ..array_types import Array, Elementwise, FloatArray, FloatDtype, IntArray, Matrix


class PairValues(ABC):
    """One value for each of n instances and l labels."""

    shape: tuple[int, int]

    @abstractmethod
    def map(self, function: Elementwise, *others: "Operand") -> "PairValues":
        """Apply an elementwise function.

        Parameters
        ----------
        function : callable
            Called with the values and the operands, as arrays that can be broadcast.
        *others : PairValues, ndarray of shape (l,) or float
            Further operands of the function.

        Returns
        -------
        PairValues
        """

    @abstractmethod
    def divide(
        self, denominator: "PairValues", default: FloatArray | float
    ) -> "PairValues":
        """Divide by other values; pairs with a denominator of 0 get the default.

        Parameters
        ----------
        denominator : PairValues
            Values of the same pairs.
        default : ndarray of shape (l,) or float
            Value for pairs without predictions. The result is float32 if it is.

        Returns
        -------
        PairValues
        """

    @abstractmethod
    def sum_over_instances(self) -> FloatArray:
        """Return the sum for each label, shape (l,)."""

    @abstractmethod
    def to_matrix(self) -> Matrix:
        """Return the values as an array or, if most are 0, as a CSR matrix (n, l)."""

    @abstractmethod
    def to_array(self) -> FloatArray:
        """Return the values as an array of shape (n, l)."""


class DenseValues(PairValues):
    """One value per pair, as an array.

    Parameters
    ----------
    array : ndarray of shape (n, l)

    Examples
    --------
    >>> total = DenseValues(np.array([[2.0, 0.0]]))
    >>> count = DenseValues(np.array([[4.0, 0.0]]))
    >>> total.divide(count, default=np.array([0.1, 0.2])).to_array()
    array([[0.5, 0.2]])
    """

    def __init__(self, array: Array) -> None:
        self._array = array
        self.shape: tuple[int, int] = array.shape

    @property
    def array(self) -> Array:
        """The values, shape (n, l)."""
        return self._array

    def map(self, function: Elementwise, *others: "Operand") -> PairValues:
        if self.array.strides[0] == 0 and self.array.size > 0:
            # One row that is repeated: it is the same for all patterns of votes.
            for operand in others:
                if isinstance(operand, PatternValues):
                    return operand.broadcast(self.array[0]).map(function, *others)

        arrays = [_get_array(operand) for operand in others]
        is_constant = not any(self.array.strides) and self.array.size > 0
        if is_constant and all(np.ndim(operand) == 0 for operand in arrays):
            result = function(self.array[:1, :1], *arrays)
            return DenseValues(np.broadcast_to(result, self.shape))
        return DenseValues(function(self.array, *arrays))

    def divide(
        self, denominator: PairValues, default: FloatArray | float
    ) -> PairValues:
        divisors = denominator.to_array()
        is_constant = not any(divisors.strides) and divisors.size > 0
        if is_constant and divisors.flat[0] > 0:
            divisor = float(divisors.flat[0])
            return Quotients(self.array, divisor, _choose_dtype(default))
        return DenseValues(_divide(self.array, divisors, default))

    def sum_over_instances(self) -> FloatArray:
        if self.array.strides[0] == 0:
            # One row that is repeated.
            return np.asarray(self.array[0] * float(len(self.array)))
        return np.asarray(self.array.sum(axis=0, dtype=np.float64))

    def to_matrix(self) -> Matrix:
        return self.array

    def to_array(self) -> FloatArray:
        return np.asarray(self.array, dtype=np.float64)


class Quotients(DenseValues):
    """Values divided by the same number, which is done when they are needed.

    Parameters
    ----------
    numerators : ndarray of shape (n, l)
    divisor : float
    dtype : dtype
        Type of the quotients.

    Examples
    --------
    >>> halves = Quotients(np.array([[1, 0]]), 2.0, np.dtype(np.float64))
    >>> halves.to_array(), halves.sum_over_instances()
    (array([[0.5, 0. ]]), array([0.5, 0. ]))
    """

    def __init__(self, numerators: Array, divisor: float, dtype: FloatDtype) -> None:
        self._numerators = numerators
        self._divisor = divisor
        self._dtype = dtype
        self.shape: tuple[int, int] = numerators.shape

    @cached_property
    def array(self) -> Array:
        """The values, shape (n, l)."""
        return np.divide(
            self._numerators,
            self._dtype.type(self._divisor),
            dtype=self._dtype,
            casting="same_kind",
        )

    def sum_over_instances(self) -> FloatArray:
        sums = self._numerators.sum(axis=0, dtype=np.float64)
        return np.asarray(sums / self._divisor)


class PatternIndex:
    """The number of each pair's pattern of votes.

    Parameters
    ----------
    numbers : ndarray of shape (n, l) of int
        Number of the pattern of each pair.
    n_patterns : int
        Number of all patterns.
    """

    def __init__(self, numbers: Array, n_patterns: int) -> None:
        self.numbers = numbers
        self.n_patterns = n_patterns

    @cached_property
    def counts(self) -> FloatArray:
        """How often each pattern occurs for each label, (q, l)."""
        by_label = np.ascontiguousarray(self.numbers.T)
        counts = np.empty((self.n_patterns, len(by_label)))
        for label, numbers in enumerate(by_label):
            counts[:, label] = np.bincount(numbers, minlength=self.n_patterns)
        return counts

    def look_up(self, table: FloatArray) -> FloatArray:
        """Return the entry (q, l) of each pair's pattern and label, (n, l)."""
        return np.asarray(table[self.numbers, np.arange(table.shape[1])])


class PatternValues(DenseValues):
    """Values that depend only on the label of a pair and its pattern of votes.

    Functions are applied to the values of each pattern, which are fewer.

    Parameters
    ----------
    index : PatternIndex
        Patterns of the pairs.
    table : ndarray of shape (q, l)
        Value of each pattern and label.

    Examples
    --------
    >>> index = PatternIndex(np.array([[1, 0]]), n_patterns=2)
    >>> values = PatternValues(index, np.array([[0.0, 4.0], [9.0, 0.0]]))
    >>> values.map(np.sqrt).to_array()
    array([[3., 2.]])
    """

    def __init__(self, index: PatternIndex, table: FloatArray) -> None:
        self.index = index
        self.table = table
        self.shape: tuple[int, int] = index.numbers.shape

    @cached_property
    def array(self) -> Array:
        """The values, shape (n, l)."""
        return self.index.look_up(self.table)

    def broadcast(self, row: FloatArray) -> "PatternValues":
        """Return the same row (l,) as values of the same pairs."""
        return PatternValues(self.index, np.broadcast_to(row, self.table.shape))

    def sum_over_instances(self) -> FloatArray:
        return np.asarray((self.index.counts * self.table).sum(axis=0))

    def map(self, function: Elementwise, *others: "Operand") -> PairValues:
        operands = [self._get_table(operand) for operand in others]
        tables = [operand for operand in operands if operand is not None]
        if len(tables) < len(others):
            return super().map(function, *others)
        return PatternValues(self.index, function(self.table, *tables))

    def divide(
        self, denominator: PairValues, default: FloatArray | float
    ) -> PairValues:
        divisors = self._get_table(denominator)
        if divisors is None:
            return super().divide(denominator, default)
        divisors = np.broadcast_to(divisors, self.table.shape)
        quotients = _divide(self.table, divisors, default)
        return PatternValues(self.index, quotients)

    def _get_table(self, operand: "Operand") -> Array | float | None:
        """Return what an operand is for each pattern and label, or None."""
        if isinstance(operand, PatternValues):
            if operand.index is self.index:
                return operand.table
            return None
        if not isinstance(operand, DenseValues):
            return operand  # type: ignore[return-value]
        if operand.array.strides[0] == 0 and len(operand.array) > 0:
            # The same row for all instances.
            return np.asarray(operand.array[0])
        return None


@dataclass(frozen=True, kw_only=True)
class NamedPairs:
    """Which pairs are named by some model, in the order of instances, then labels.

    Instances that were seen by the same models form a group. The pairs of a group
    that no model named differ only in their label. The first group is special: it
    contains no instances and was "seen" by all models, so its values are those of an
    instance that every model saw and for which no model named the label.
    """

    label: IntArray  # (p,) label of each named pair
    starts: IntArray  # (n + 1,) where the pairs of each instance begin
    group: IntArray  # (n,) group of each instance
    participation: FloatArray  # (g, m) share of the group's instances a model saw
    n_unnamed: FloatArray  # (g, l) number of pairs that are not named
    is_exact: bool  # whether the models of a group saw all of its instances
    is_large: bool  # whether scores of all pairs would not fit into memory

    @property
    def shape(self) -> tuple[int, int]:
        """Number of instances and of labels."""
        return len(self.group), self.n_unnamed.shape[1]

    @cached_property
    def instance(self) -> IntArray:
        """Instance of each named pair, shape (p,)."""
        return np.repeat(np.arange(len(self.group)), np.diff(self.starts))

    @cached_property
    def pair_group(self) -> IntArray:
        """Group of each named pair, shape (p,)."""
        return np.repeat(self.group, np.diff(self.starts))

    def to_csr(self, values: FloatArray) -> Matrix:
        """Return values of the named pairs (p,) as a CSR matrix (n, l)."""
        return sparse.csr_array((values, self.label, self.starts), shape=self.shape)

    def sum_by_group(self, values: FloatArray) -> FloatArray:
        """Sum values of the named pairs (p,) for each group and label, (g, l)."""
        n_groups, n_labels = self.n_unnamed.shape
        target = self.pair_group * n_labels + self.label
        sums = np.bincount(target, values, minlength=n_groups * n_labels)
        return np.asarray(sums.reshape(n_groups, n_labels), dtype=np.float64)


class NamedValues(PairValues):
    """Values of named pairs, and one per group and label for all other pairs.

    Parameters
    ----------
    pairs : NamedPairs
    values : ndarray of shape (p,)
        Value of each named pair.
    other : ndarray of shape (g, l)
        Value of the pairs of a group and label that are not named.
    """

    def __init__(self, pairs: NamedPairs, values: Array, other: Array) -> None:
        self.pairs = pairs
        self.values = values
        self.other = other
        self.shape = pairs.shape

    def map(self, function: Elementwise, *others: "Operand") -> PairValues:
        named = [self._get_named(operand) for operand in others]
        rest = [self._get_other(operand) for operand in others]
        return NamedValues(
            self.pairs, function(self.values, *named), function(self.other, *rest)
        )

    def divide(
        self, denominator: PairValues, default: FloatArray | float
    ) -> PairValues:
        return self.map(_divide, denominator, default)

    def sum_over_instances(self) -> FloatArray:
        n_labels = self.shape[1]
        named = np.bincount(self.pairs.label, self.values, minlength=n_labels)
        unnamed = (self.pairs.n_unnamed * self.other).sum(axis=0)
        return np.asarray(named + unnamed)

    def sum_by_group(self) -> FloatArray:
        """Return the sum over the instances of each group, shape (g, l)."""
        named = self.pairs.sum_by_group(self.values)
        return named + self.pairs.n_unnamed * self.other

    def to_matrix(self) -> Matrix:
        is_present = self.pairs.n_unnamed > 0
        if self.pairs.is_large or not self.other[is_present].any():
            return self.pairs.to_csr(np.asarray(self.values))
        return self.to_array()

    def to_array(self) -> FloatArray:
        array = np.asarray(self.other, dtype=np.float64)[self.pairs.group]
        array[self.pairs.instance, self.pairs.label] = self.values
        return array

    def _get_named(self, operand: "Operand") -> Array | float:
        """Return what an operand is for each named pair."""
        if isinstance(operand, NamedValues):
            return operand.values
        if isinstance(operand, np.ndarray) and operand.ndim == 1:
            return np.asarray(operand[self.pairs.label])
        return operand  # type: ignore[return-value]

    @staticmethod
    def _get_other(operand: "Operand") -> Array | float:
        """Return what an operand is for all other pairs."""
        if isinstance(operand, NamedValues):
            return operand.other
        return operand  # type: ignore[return-value]


# What a function of pairs takes besides its first operand: values of the same pairs,
# values of labels (l,), or a number.
Operand = PairValues | Array | float


def _get_array(operand: "Operand") -> Array | float:
    """Return an operand of dense values as an array or a number."""
    if isinstance(operand, DenseValues):
        return operand.array
    return operand  # type: ignore[return-value]


def _choose_dtype(default: FloatArray | float) -> FloatDtype:
    """Return the type of quotients: float32 if that of the default is."""
    if isinstance(default, np.ndarray) and default.dtype == np.float32:
        return np.dtype(np.float32)
    return np.dtype(np.float64)


def _divide(numerator: Array, denominator: Array, default: FloatArray | float) -> Array:
    """Divide arrays, with the default where the denominator is 0."""
    dtype = _choose_dtype(default)
    defaults = np.broadcast_to(np.asarray(default, dtype=dtype), numerator.shape)
    quotient: Array = np.array(defaults)
    divisors = np.asarray(denominator, dtype=np.float64)
    np.divide(
        numerator, divisors, out=quotient, where=divisors != 0, casting="same_kind"
    )
    return quotient
