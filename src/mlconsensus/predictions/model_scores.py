"""The scores of one model, and how they are aligned with those of other models."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy import sparse

from ..errors import InputError
from .array_types import (
    AnyDtype,
    Array,
    BoolArray,
    FloatArray,
    IntArray,
    Matrix,
    RowSlice,
)
from .quantile_normalization import Knots, rescale_scores


def as_matrix(raw: object, where: str) -> Matrix:
    """Return a list as an array, and masked cells as NaN; sparse matrices stay.

    Parameters
    ----------
    raw : array-like or sparse matrix of shape (n, l)
        What the user gave.
    where : str
        Its place, for error messages.

    Returns
    -------
    ndarray or sparse matrix of shape (n, l)

    Examples
    --------
    >>> as_matrix(np.ma.masked_array([[1, 0]], [[False, True]]), "truth")
    array([[ 1., nan]])
    """
    if isinstance(raw, np.ma.MaskedArray):
        return np.ma.filled(raw.astype(np.float64), np.nan)
    if sparse.issparse(raw):
        return raw

    try:
        return np.asarray(raw)
    except ValueError as ragged:
        raise InputError(
            f"{where}: found rows of different lengths, expected a matrix (n, l)"
        ) from ragged


class StoredMatrix(ABC):
    """A matrix on disk; its rows are read and checked when they are taken."""

    shape: tuple[int, int]
    dtype: AnyDtype

    @abstractmethod
    def __getitem__(self, rows: RowSlice | IntArray) -> Matrix: ...


@dataclass(frozen=True, kw_only=True, eq=False)
class AlignedScores:
    """One model's matrix, as the user gave it, and the order of the predictions.

    Parameters
    ----------
    matrix : ndarray, csr_array or StoredMatrix of shape (n_k, l_k)
        Scores of the model.
    rows : ndarray of shape (n,), default=None
        Row of each instance of the predictions, -1: the model did not see it. By
        default the order is the same.
    columns : ndarray of shape (l,), default=None
        Column of each label of the predictions, -1: the model does not know it,
        -2: all its scores are 0. By default the order is the same.
    has_nan : bool, default=False
        Whether single scores are missing.
    scale : Knots, default=None
        Quantile normalization of the scores.
    """

    matrix: Matrix
    rows: IntArray | None = None
    columns: IntArray | None = None
    has_nan: bool = False
    scale: Knots | None = None

    @property
    def complete(self) -> bool:
        """Whether the model has a score for every instance and label."""
        if self.has_nan:
            return False
        if self.rows is not None and (self.rows == -1).any():
            return False
        return self.columns is None or not (self.columns == -1).any()

    @property
    def n_stored(self) -> int:
        """Number of stored scores; a sparse matrix stores those that are not 0."""
        return int(getattr(self.matrix, "nnz", np.prod(self.matrix.shape)))

    def take(self, instances: RowSlice | IntArray) -> Self:
        """Restrict to some instances; those on disk are read."""
        if isinstance(self.matrix, StoredMatrix):
            return self._read(self.matrix, instances)
        if self.rows is None:
            return replace(self, matrix=self.matrix[instances])
        return replace(self, rows=self.rows[instances])

    def _read(self, stored: StoredMatrix, instances: RowSlice | IntArray) -> Self:
        """Read some instances from disk."""
        rows = None
        stored_rows = instances
        if self.rows is not None:
            wanted = np.asarray(self.rows[instances])
            is_seen = wanted >= 0
            stored_rows = wanted[is_seen]
            rows = np.where(is_seen, np.cumsum(is_seen) - 1, -1)
            if len(stored_rows) == 0:
                no_scores = np.zeros((1, stored.shape[1]), dtype=np.bool_)
                return replace(self, matrix=no_scores, rows=rows)

        matrix = stored[stored_rows]
        values = matrix
        if sparse.issparse(matrix):
            values = matrix.data

        has_nan = values.dtype.kind == "f" and bool(np.isnan(values).any())
        return replace(self, matrix=matrix, rows=rows, has_nan=has_nan)

    def take_labels(self, labels: IntArray) -> Self:
        """Restrict to labels at some positions, -1: a new one without scores."""
        if self.columns is None:
            return replace(self, columns=labels)
        return replace(self, columns=np.where(labels < 0, -1, self.columns[labels]))

    def cells(self) -> tuple[Matrix, BoolArray | None]:
        """Return the scores in the order of the predictions, and their presence.

        Returns
        -------
        scores : ndarray or csr_array of shape (n, l)
            Missing scores are 0. An array has the user's data type, a CSR matrix is of
            float64.
        is_present : ndarray of shape (n, l) of bool, or None
            Whether the model has a score; ``None``: it has all of them.
        """
        values = self._reorder()
        is_present = None
        if not self.complete:
            is_present = self._find_present(values)
            values = self._replace_missing(values, is_present)

        if self.scale is not None:
            values = rescale_scores(values, self.scale)
        return values, is_present

    def _find_present(self, values: Matrix) -> BoolArray:
        """Return where the model has a score, shape (n, l)."""
        is_present = np.ones(values.shape, dtype=np.bool_)
        if self.rows is not None:
            is_present[self.rows < 0] = False
        if self.columns is not None:
            is_present[:, self.columns == -1] = False

        # NaN differs from itself.
        if self.has_nan and sparse.issparse(values):
            is_present &= ~(values != values).toarray()
        elif self.has_nan:
            is_present &= values == values
        return is_present

    def _replace_missing(self, values: Matrix, is_present: BoolArray) -> Matrix:
        """Return the scores with 0 where they are missing."""
        if not sparse.issparse(values):
            return np.where(is_present, values, values.dtype.type(0))

        # Absent rows and columns are empty.
        if self.has_nan:
            values.data = np.nan_to_num(values.data)
            values.eliminate_zeros()
        return values

    def apart(self) -> tuple[Matrix, FloatArray, FloatArray]:
        """Return what `cells` does without an array (n, l), for large label spaces.

        Returns
        -------
        scores : csr_array of shape (n, l)
            Single missing scores are 0.
        is_seen : ndarray of shape (n,)
            1 for instances that the model saw, else 0.
        is_known : ndarray of shape (l,)
            1 for labels that the model knows, else 0.
        """
        if sparse.issparse(self.matrix):
            values = self._reorder()
        else:
            values = replace(self, matrix=sparse.csr_array(self.matrix))._reorder()

        if self.has_nan:
            values.data = np.nan_to_num(values.data, copy=False)
        if self.scale is not None:
            values = rescale_scores(values, self.scale)
        values.eliminate_zeros()
        values.sort_indices()

        n_instances, n_labels = values.shape
        is_seen = np.ones(n_instances)
        if self.rows is not None:
            is_seen = (np.asarray(self.rows) >= 0).astype(np.float64)

        is_known = np.ones(n_labels)
        if self.columns is not None:
            is_known = (self.columns != -1).astype(np.float64)

        return values, is_seen, is_known

    def _reorder(self) -> Matrix:
        """Return the matrix in the order of the predictions; CSR as a float64 copy."""
        if sparse.issparse(self.matrix):
            return self._reorder_sparse()

        values: Array = self.matrix
        if self.rows is not None:
            values = values[np.maximum(self.rows, 0)]
        if self.columns is not None:
            values = values[:, np.maximum(self.columns, 0)]
            values[:, self.columns == -2] = 0
        return values

    def _reorder_sparse(self) -> Matrix:
        """Return a CSR matrix in the order of the predictions, as float64."""
        values = self.matrix
        if self.rows is None and self.columns is None:
            return values.astype(np.float64)

        # An empty row and an empty column after the last have the index -1.
        n_rows, n_columns = values.shape
        starts = np.append(values.indptr, values.indptr[-1])
        values = sparse.csr_array(
            (values.data, values.indices, starts), shape=(n_rows + 1, n_columns + 1)
        )

        if self.rows is None:
            values = values[np.arange(n_rows)]
        else:
            values = values[self.rows]

        if self.columns is None:
            values = values[:, np.arange(n_columns)]
        else:
            values = values[:, np.maximum(self.columns, -1)]
        return values.astype(np.float64)
