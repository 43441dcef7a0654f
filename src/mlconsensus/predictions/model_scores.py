"""What one model said: its own matrix, and where the panel's instances and labels stand in it."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from ..errors import InputError
from .alignment import BoolArray, FloatArray, IntArray
from .quantile_normalization import Knots, rescaled

Matrix = Any  # NDArray (n, l) or scipy.sparse.csr_array (n, l)


def as_matrix(raw: Any, where: str) -> Any:
    """Return a list as an array, and a masked array with NaN in place of what is masked; sparse matrices stay.

    Examples
    --------
    >>> as_matrix(np.ma.masked_array([[1, 0]], [[False, True]]), "truth")
    array([[ 1., nan]])
    """
    if isinstance(raw, np.ma.MaskedArray):
        return np.ma.filled(raw.astype(np.float64), np.nan)

    try:
        if sparse.issparse(raw):
            return raw
        return np.asarray(raw)
    except ValueError as ragged:
        raise InputError(
            f"{where}: found rows of different lengths, expected a matrix (n, l)"
        ) from ragged


class StoredMatrix(ABC):
    """A matrix that is on disk: taking rows reads them, dense or as CSR, and checks them."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]

    @abstractmethod
    def __getitem__(self, rows: slice | IntArray) -> Matrix: ...


class AlignedScores(NamedTuple):
    """One model's matrix, as the user gave it, seen through the panel's order."""

    matrix: Matrix  # (n_k, l_k)
    rows: (
        IntArray | None
    )  # (n,) row of each of the panel's instances, -1: not seen; None: the same order
    columns: (
        IntArray | None
        # (l,) column of each of the panel's labels, -1: not known, -2: no; None: the same
        # order
    )
    has_nan: bool  # whether single cells are missing
    scale: Knots | None = None  # what brings the scores to the panel's scale

    @property
    def complete(self) -> bool:
        """Whether the model spoke about every cell of the panel."""
        return not (
            self.has_nan
            or any(
                own is not None and (own == -1).any()
                for own in (self.rows, self.columns)
            )
        )

    @property
    def n_stored(self) -> int:
        """How many numbers the model's matrix holds: of a sparse one, those that are not 0."""
        return int(getattr(self.matrix, "nnz", np.prod(self.matrix.shape)))

    def take(self, instances: slice | IntArray) -> Self:
        """Restrict to some of the panel's instances; what is on disk is read."""
        if not isinstance(self.matrix, StoredMatrix):
            if self.rows is None:
                return self._replace(matrix=self.matrix[instances])
            return self._replace(rows=self.rows[instances])

        at = instances
        rows = self.rows
        if self.rows is not None:
            wanted = np.asarray(self.rows[instances])
            known = wanted >= 0
            at = wanted[known]
            rows = np.where(known, np.cumsum(known) - 1, -1)
            if len(at) == 0:
                return self._replace(
                    matrix=np.zeros((1, self.matrix.shape[1]), dtype=np.bool_),
                    rows=rows,
                )

        matrix = self.matrix[at]
        if sparse.issparse(matrix):
            values = matrix.data
        else:
            values = matrix

        has_nan = values.dtype.kind == "f" and bool(np.isnan(values).any())
        return self._replace(matrix=matrix, rows=rows, has_nan=has_nan)

    def take_labels(self, labels: IntArray) -> Self:
        """Restrict to some of the panel's labels, -1: one that it does not have."""
        return self._replace(
            columns=labels
            if self.columns is None
            else np.where(labels < 0, -1, self.columns[labels])
        )

    def cells(self) -> tuple[Matrix, BoolArray | None]:
        """Return the model's scores in the panel's order, silence as 0, and where it spoke.

        The first is dense in the user's dtype, or CSR of float64; the second is
        ``None`` where the model spoke everywhere.
        """
        values = self._in_order()
        spoken = None
        of_stored = sparse.issparse(self.matrix)
        if not self.complete:
            spoken = np.ones(values.shape, dtype=np.bool_)
            if self.rows is not None:
                spoken[self.rows < 0] = False
            if self.columns is not None:
                spoken[:, self.columns == -1] = False
            if self.has_nan:
                spoken &= (
                    ~(values != values).toarray() if of_stored else values == values
                )  # NaN differs from itself
            if not of_stored:
                values = np.where(spoken, values, values.dtype.type(0))
            elif self.has_nan:
                values.data = np.nan_to_num(values.data)
                values.eliminate_zeros()

        return (values if self.scale is None else rescaled(values, *self.scale)), spoken

    def apart(self) -> tuple[Matrix, FloatArray, FloatArray]:
        """Return the scores as CSR, single missing cells as 0, which instances (n,) and labels (l,) the model has.

        That is all of `cells` without an array (n, l), for panels of many labels.
        """
        if sparse.issparse(self.matrix):
            whole = self
        else:
            whole = self._replace(matrix=sparse.csr_array(self.matrix))

        values = whole._in_order()
        if self.has_nan:
            values.data = np.nan_to_num(values.data, copy=False)
        else:
            values.data = values.data

        if self.scale is not None:
            values = rescaled(values, *self.scale)

        values.eliminate_zeros()
        values.sort_indices()
        n, l = values.shape
        if self.rows is None:
            seen = np.ones(n)
        else:
            seen = (np.asarray(self.rows) >= 0).astype(np.float64)

        if self.columns is None:
            known = np.ones(l)
        else:
            known = (self.columns != -1).astype(np.float64)

        return values, seen, known

    def _in_order(self) -> Matrix:
        """Return the matrix in the panel's order; a sparse one as CSR of float64, a copy."""
        values = self.matrix
        rows = self.rows
        columns = self.columns
        if not sparse.issparse(values):
            if rows is not None:
                values = values[np.maximum(rows, 0)]
            if columns is not None:
                values = values[:, np.maximum(columns, 0)]
                values[:, columns == -2] = 0

            return values

        if rows is not None or columns is not None:
            # With an empty row and column behind the last, -1 is one that has nothing.
            n, l = values.shape
            starts = np.append(values.indptr, values.indptr[-1])
            values = sparse.csr_array(
                (values.data, values.indices, starts), shape=(n + 1, l + 1)
            )
            values = values[np.arange(n) if rows is None else rows]
            values = values[
                :, np.arange(l) if columns is None else np.maximum(columns, -1)
            ]

        return values.astype(np.float64)
