"""Distinct patterns of yes and no votes: all that expectation maximization needs.

A pattern is a label together with the models that voted yes and those that voted no.
The number of distinct patterns does not depend on the number of instances: with m
models there are at most 3**m for each label.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from scipy import sparse

from ...errors import InputError
from ..array_types import Array, BoolArray, FloatArray, IntArray, Matrix

# Patterns of so many models have a number in base 3 that fits into 64 bits. Patterns
# of more models are hardly ever equal, and equal ones are not joined.
_MOST_MODELS = 39


class VotePatterns:
    """Patterns of votes with their counts; adding two gives the counts of both.

    Parameters
    ----------
    labels : ndarray of shape (p,)
        Label of each pattern.
    votes : CSR matrix of shape (p, 2 * m)
        1 in column k if model k votes yes, in column m + k if it votes no.
    counts : ndarray of shape (p,)
        Number of instance-label pairs with this pattern.
    n_labels : int

    Examples
    --------
    >>> votes = sparse.csr_array([[1, 0, 0, 1], [1, 0, 0, 1], [0, 1, 1, 0]])
    >>> patterns = VotePatterns.join(np.zeros(3, int), votes, np.ones(3), 1)
    >>> (patterns + patterns).counts.tolist()
    [4.0, 2.0]
    """

    def __init__(
        self, labels: IntArray, votes: Matrix, counts: FloatArray, n_labels: int
    ) -> None:
        self.n_labels = n_labels
        self._pieces: tuple[_Piece, ...] = (
            _Piece(labels=labels, votes=votes, counts=counts),
        )

    @property
    def labels(self) -> IntArray:
        """Label of each pattern, (p,)."""
        return self._joined.labels

    @property
    def votes(self) -> Matrix:
        """Votes of each pattern, CSR (p, 2 * m)."""
        return self._joined.votes

    @property
    def counts(self) -> FloatArray:
        """Number of instance-label pairs with each pattern, (p,)."""
        return self._joined.counts

    @property
    def n_models(self) -> int:
        """Number of models that vote."""
        return int(self._pieces[0].votes.shape[1]) // 2

    @cached_property
    def _joined(self) -> "_Piece":
        """All pieces as one."""
        return _join_pieces(self._pieces)

    @classmethod
    def join(
        cls, labels: IntArray, votes: Matrix, counts: FloatArray, n_labels: int
    ) -> Self:
        """Return patterns in a fixed order, equal ones joined."""
        n_models = votes.shape[1] // 2
        if n_models > _MOST_MODELS:
            return cls(labels, votes, counts, n_labels)

        # The number of a pattern in base 3: 0 for no vote, 1 for no, 2 for yes.
        powers = 3 ** np.arange(n_models, dtype=np.int64)
        digits = sparse.csr_array(
            (np.ones(votes.nnz, dtype=np.int64), votes.indices, votes.indptr),
            shape=votes.shape,
        )
        codes = digits @ np.concatenate([2 * powers, powers])
        order = np.lexsort((codes, labels))
        if len(order) == 0:
            return cls(labels, votes, counts, n_labels)

        is_first = np.ones(len(order), dtype=np.bool_)
        same_label = labels[order][1:] == labels[order][:-1]
        is_first[1:] = ~(same_label & (codes[order][1:] == codes[order][:-1]))
        starts = np.flatnonzero(is_first)
        first = order[starts]
        joined_counts = np.add.reduceat(counts[order], starts)
        return cls(labels[first], votes[first], joined_counts, n_labels)

    @classmethod
    def from_votes(
        cls,
        labels: IntArray,
        is_yes: BoolArray,
        is_no: BoolArray,
        counts: FloatArray,
        n_labels: int,
    ) -> Self:
        """Make patterns from who votes yes and who votes no, (p, m) each."""
        votes = sparse.csr_array(np.hstack([is_yes, is_no]).astype(np.int8))
        return cls.join(labels, votes, counts, n_labels)

    def __add__(self, other: Self | int) -> Self:
        if isinstance(other, int):  # the empty statistics
            return self

        pieces = self._pieces + other._pieces
        if self.n_models > _MOST_MODELS:
            # Pieces of many blocks are copied only once, when they are needed.
            first = pieces[0]
            total = type(self)(first.labels, first.votes, first.counts, self.n_labels)
            total._pieces = pieces
            return total

        joined = _join_pieces(pieces)
        return type(self).join(
            joined.labels, joined.votes, joined.counts, self.n_labels
        )

    __radd__ = __add__

    def __sub__(self, other: Self) -> Self:
        negative = type(self)(other.labels, other.votes, -other.counts, self.n_labels)
        difference = self + negative
        if difference.counts.min(initial=0) < 0:
            raise InputError(
                where="patterns",
                found="more than there are",
                expected="some that were added",
            )
        return difference.select(difference.counts > 0)

    def select(self, is_selected: BoolArray) -> Self:
        """Return some of the patterns."""
        rows = np.flatnonzero(is_selected)
        return type(self)(
            self.labels[rows], self.votes[rows], self.counts[rows], self.n_labels
        )

    def reordered(self, models: IntArray, labels: IntArray) -> Self:
        """Return the patterns with models and labels in another order.

        Parameters
        ----------
        models, labels : ndarray of int
            Old position of each new model and label, -1 for one that is new.

        Returns
        -------
        VotePatterns
        """
        new_label = np.full(self.n_labels, -1)
        new_label[labels[labels >= 0]] = np.flatnonzero(labels >= 0)

        old_votes = self.votes.tocsc()
        empty = sparse.csc_array((old_votes.shape[0], 1), dtype=old_votes.dtype)
        padded = sparse.hstack([old_votes, empty], format="csc")
        yes_columns = np.where(models >= 0, models, -1)
        no_columns = np.where(models >= 0, models + self.n_models, -1)
        votes = padded[:, np.concatenate([yes_columns, no_columns])].tocsr()
        return type(self).join(new_label[self.labels], votes, self.counts, len(labels))

    def arrays(self) -> dict[str, Array]:
        """Return what a file stores."""
        return {
            "labels": self.labels.astype(np.int64),
            "votes": self.votes.indices.astype(np.int64),
            "starts": self.votes.indptr.astype(np.int64),
            "counts": self.counts,
        }

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, Array], shape: tuple[int, int], where: str
    ) -> Self:
        """Make patterns from what a file stores, after checking it.

        Parameters
        ----------
        arrays : dict
            What `arrays` returned.
        shape : tuple of int
            Number of models and of labels.
        where : str
            Name of the file and field, for messages.

        Returns
        -------
        VotePatterns
        """
        n_models, n_labels = shape
        if not _is_well_formed(arrays):
            raise InputError(
                where=where,
                found="arrays that do not fit together",
                expected=f"patterns of {n_models} votes",
            )

        labels = arrays["labels"]
        votes = arrays["votes"]
        starts = arrays["starts"]
        counts = arrays["counts"]
        smallest = counts.min(initial=0)
        if not smallest >= 0:
            raise InputError(
                where=where, found=f"{smallest:g}", expected="no number below 0"
            )

        is_possible = not (
            _is_outside(labels, n_labels) or _is_outside(votes, 2 * n_models)
        )
        if is_possible:
            ones = np.ones(len(votes), dtype=np.int8)
            matrix = sparse.csr_array(
                (ones, votes, starts), shape=(len(labels), 2 * n_models)
            )
            votes_per_model = matrix[:, :n_models] + matrix[:, n_models:]
            is_possible = votes_per_model.data.max(initial=0) <= 1
        if not is_possible:
            raise InputError(
                where=where,
                found=f"patterns that {n_models} models cannot give {n_labels} labels",
                expected="votes",
            )
        return cls(labels.astype(np.intp), matrix, counts, n_labels)


@dataclass(frozen=True, kw_only=True)
class _Piece:
    """Patterns that were counted together."""

    labels: IntArray  # (p,)
    votes: Matrix  # CSR (p, 2 * m)
    counts: FloatArray  # (p,)


def _join_pieces(pieces: Sequence[_Piece]) -> _Piece:
    """Return the patterns of all pieces, one after the other."""
    if len(pieces) == 1:
        return pieces[0]
    return _Piece(
        labels=np.concatenate([piece.labels for piece in pieces]),
        votes=sparse.vstack([piece.votes for piece in pieces], format="csr"),
        counts=np.concatenate([piece.counts for piece in pieces]),
    )


def _is_well_formed(arrays: dict[str, Array]) -> bool:
    """Return whether the arrays of a file have the types and sizes of patterns."""
    if set(arrays) != {"labels", "votes", "starts", "counts"}:
        return False

    for name, array in arrays.items():
        dtype = np.float64 if name == "counts" else np.int64
        if array.dtype != dtype or array.ndim != 1:
            return False

    labels = arrays["labels"]
    starts = arrays["starts"]
    if len(arrays["counts"]) != len(labels) or len(starts) != len(labels) + 1:
        return False
    return bool(
        starts[0] == 0
        and starts[-1] == len(arrays["votes"])
        and (np.diff(starts) >= 0).all()
    )


def _is_outside(positions: IntArray, size: int) -> bool:
    """Return whether a position is below 0 or not below the size."""
    return bool(positions.min(initial=0) < 0 or positions.max(initial=-1) >= size)
