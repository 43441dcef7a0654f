"""Predictions of crowds: one row for each model and instance that the model saw.

Where each of many annotators sees a few instances, a matrix of all instances for each
of them would be mostly empty. Time and memory here are proportional to the predictions
that were made.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Self

import numpy as np
from scipy import sparse

from .array_types import BoolArray, IntArray, Matrix, RowSlice
from .model_scores import AlignedScores


@dataclass(frozen=True, kw_only=True)
class AnswerRows:
    """Rows of scores in the order of instances, then models."""

    scores: Matrix  # CSR (r, l); NaN: a missing prediction
    model: IntArray  # (r,)
    instance: IntArray  # (r,)
    n_models: int
    n_instances: int
    covered: BoolArray  # (m, l) whether the model knows the label

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return int(self.scores.shape[1])

    @cached_property
    def has_nan(self) -> bool:
        """Whether single predictions of the rows are missing."""
        data = self.scores.data
        return data.dtype.kind == "f" and bool(np.isnan(data).any())

    @cached_property
    def n_missing(self) -> int:
        """Number of missing predictions of all models, instances and labels."""
        n_all = self.n_models * self.n_instances * self.n_labels
        rows_by_model = np.bincount(self.model, minlength=self.n_models)
        n_present = int(rows_by_model @ self.covered.sum(axis=1))
        if self.has_nan:
            n_present -= int(np.isnan(self.scores.data).sum())
        return n_all - n_present

    def take(self, instances: RowSlice | IntArray) -> Self:
        """Return the rows of some instances.

        Parameters
        ----------
        instances : slice or ndarray of int
            Their positions, in the new order; a position may occur several times.

        Returns
        -------
        AnswerRows
        """
        wanted = np.arange(self.n_instances)[instances]
        starts = np.searchsorted(self.instance, np.arange(self.n_instances + 1))
        sizes = np.diff(starts)[wanted]
        new_starts = np.append(0, np.cumsum(sizes))

        # Rows of an instance are adjacent.
        offset = np.repeat(starts[wanted] - new_starts[:-1], sizes)
        rows = offset + np.arange(new_starts[-1])
        return replace(
            self,
            scores=self.scores[rows],
            model=self.model[rows],
            instance=np.repeat(np.arange(len(wanted)), sizes),
            n_instances=len(wanted),
        )

    def to_parts(self) -> tuple[AlignedScores, ...]:
        """Return the scores of each model, as other code expects them."""
        order = np.argsort(self.model, kind="stable")
        by_model = self.scores[order]
        instance = self.instance[order]
        starts = np.searchsorted(self.model[order], np.arange(self.n_models + 1))

        parts = []
        for model, (start, stop) in enumerate(pairwise(starts.tolist())):
            rows = np.full(self.n_instances, -1)
            rows[instance[start:stop]] = np.arange(stop - start)
            columns = np.where(self.covered[model], np.arange(self.n_labels), -1)
            matrix = by_model[start:stop]
            if stop == start:
                # A model without rows: any row does, as none is used.
                matrix = sparse.csr_array((1, self.n_labels), dtype=matrix.dtype)
            is_nan = matrix.data.dtype.kind == "f" and np.isnan(matrix.data)
            part = AlignedScores(
                matrix=matrix,
                rows=rows,
                columns=columns,
                has_nan=bool(np.any(is_nan)),
            )
            parts.append(part)
        return tuple(parts)
