"""What each model predicted for each instance that it saw, as rows of a table.

In a crowd, products of two models are sums over the few pairs of answers to the same
instance. Instances that were seen by equally many models are multiplied together.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ..array_types import BoolArray, FloatArray, IntArray, Matrix
from .base import PairwiseProducts

# Up to this number of models, products of two are stored as arrays.
MAX_DENSE_MODELS = 4096
# Numbers of answers that are multiplied at a time.
_CHUNK = 2**20


@dataclass(frozen=True, kw_only=True)
class AnswerTable:
    """A row for each instance that a model saw, in the order of the instances."""

    model: IntArray  # (a,) model of each row
    starts: IntArray  # (n + 1,) where the rows of each instance begin
    scores: FloatArray  # (a, l) 0 where a prediction is missing
    is_present: BoolArray | None  # (a, l) None if no prediction is missing
    n_models: int

    def center(self, means: FloatArray) -> FloatArray:
        """Return scores minus their models' means (m, l), 0 if missing, (a, l)."""
        return np.asarray(self.scores - self.spread(means))

    def spread(self, values: FloatArray) -> FloatArray:
        """Return values of models (m, l) at their predictions, 0 if missing, (a, l)."""
        rows = values[self.model]
        if self.is_present is not None:
            rows *= self.is_present
        return np.asarray(rows)

    def iterate_instances(self) -> Iterator[IntArray]:
        """Yield the rows (i, r) of some instances that r models saw each."""
        n_rows = np.diff(self.starts)
        order = np.argsort(n_rows, kind="stable")
        sizes, first = np.unique(n_rows[order], return_index=True)
        n_labels = self.scores.shape[1]
        for size, instances in zip(sizes, np.split(order, first[1:]), strict=True):
            if size == 0:
                continue
            n_instances = max(1, _CHUNK // int(size * max(size, n_labels)))
            for start in range(0, len(instances), n_instances):
                first_rows = self.starts[instances[start : start + n_instances]]
                yield first_rows[:, np.newaxis] + np.arange(size)

    def multiply_pairs(self, means: FloatArray) -> PairwiseProducts:
        """Sum the products of two models' scores minus their means (m, l)."""
        centered = self.center(means)
        products = _PairSum(self.n_models)
        squares = _PairSum(self.n_models)
        n_pairs = _PairSum(self.n_models)
        for rows in self.iterate_instances():
            pairs = products.locate(self.model[rows])
            values = centered[rows]  # (i, r, l)
            products.add(pairs, values @ values.transpose(0, 2, 1))

            presence = np.ones_like(values)
            if self.is_present is not None:
                presence = self.is_present[rows].astype(np.float64)
            presence_across = presence.transpose(0, 2, 1)
            squares.add(pairs, values**2 @ presence_across)
            n_pairs.add(pairs, presence @ presence_across)
        return PairwiseProducts(
            products=products.to_matrix(),
            squares=squares.to_matrix(),
            n_pairs=n_pairs.to_matrix(),
        )


class _PairSum:
    """Sums for pairs of models: an array, or CSR if there are too many models."""

    def __init__(self, n_models: int) -> None:
        self.n_models = n_models
        self._is_dense = n_models <= MAX_DENSE_MODELS
        self._total = np.zeros(n_models**2 if self._is_dense else 0)
        self._pairs: list[IntArray] = []
        self._values: list[FloatArray] = []

    def locate(self, models: IntArray) -> IntArray:
        """Return the numbers of all pairs of the models (i, r) in a row, flat."""
        first = models[:, :, np.newaxis].astype(np.int64)
        second = models[:, np.newaxis, :]
        return np.asarray(first * self.n_models + second).ravel()

    def add(self, pairs: IntArray, values: FloatArray) -> None:
        """Add values to numbered pairs."""
        if self._is_dense:
            np.add.at(self._total, pairs, values.ravel())
        else:
            self._pairs.append(pairs)
            self._values.append(values.ravel())

    def to_matrix(self) -> Matrix:
        """Return the sums of all pairs, (m, m)."""
        shape = (self.n_models, self.n_models)
        if self._is_dense:
            return self._total.reshape(shape)
        if not self._pairs:
            return sparse.csr_array(shape)

        rows, columns = np.divmod(np.concatenate(self._pairs), self.n_models)
        values = np.concatenate(self._values)
        return sparse.coo_array((values, (rows, columns)), shape=shape).tocsr()
