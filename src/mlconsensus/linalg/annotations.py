"""What was said, written down sheet by sheet: one for each rater and instance that it spoke about.

The cost of everything here is in proportion to what was said: a thousand raters of
which five see each instance cost as much as five that see them all.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..predictions import Array, BoolArray, FloatArray, IntArray, Predictions
from .block_sums import ratio

# Above this share of cells that were spoken about, a dense matrix of all cells is
# faster than a sparse one.
_DENSE = 0.2


class Annotations(NamedTuple):
    """Sheets in the order of the raters; `r` counts them."""

    rater: IntArray  # (r,)
    instance: IntArray  # (r,)
    scores: Array  # (r, l), silence as 0
    spoke: BoolArray  # (r, l)
    shape: tuple[int, int, int]  # of the panel: m, n, l

    @property
    def mean(self) -> FloatArray:
        """What each rater said of each label on average (m, l), 0 where it said nothing."""
        return ratio(self.of_raters(self.scores), self.of_raters(self.spoke), 0.0)

    def of_instances(self, values: Array) -> FloatArray:
        """Add up values of the sheets (r, l) to those of the instances (n, l)."""
        return np.asarray(adding(self.instance, self.shape[1]) @ values)

    def of_raters(self, values: Array) -> FloatArray:
        """Add up values of the sheets (r, l) to those of the raters (m, l)."""
        return np.asarray(adding(self.rater, self.shape[0]) @ values)


def make_annotations(block: Predictions) -> Annotations:
    """Write down who spoke about which instance, and what.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> found = make_annotations(mlc.Predictions([[[1, 0], [np.nan, np.nan]], [[0, 1], [1, np.nan]]]))
    >>> found.rater.tolist(), found.instance.tolist(), found.spoke.tolist()
    ([0, 1, 1], [0, 0, 1], [[True, True], [True, True], [True, False]])
    """
    instance = []
    scores = []
    spoke = []
    for seen, (values, said) in zip(block.seen(), block.brought(), strict=True):
        if sparse.issparse(values):
            values = values.toarray()
        if said is None:
            said = np.ones(values.shape, dtype=np.bool_)

        some = said.any(axis=1)
        every = bool(some.all())
        instance.append(seen if every else seen[some])
        scores.append(values if every else values[some])
        spoke.append(said if every else said[some])

    rater = np.repeat(np.arange(len(instance)), [len(own) for own in instance])
    return Annotations(
        rater,
        np.concatenate(instance),
        np.concatenate(scores),
        np.concatenate(spoke),
        block.shape,
    )


def adding(to: IntArray, size: int) -> Any:
    """Make a sparse matrix (size, rows) that adds up rows of another: row `k` to its row ``to[k]``.

    Examples
    --------
    >>> (adding(np.array([1, 0, 1]), 2) @ np.array([[1.0], [5.0], [2.0]])).tolist()
    [[5.0], [3.0]]
    """
    return sparse.csc_array(
        (np.ones(len(to)), to, np.arange(len(to) + 1)), shape=(size, len(to))
    )
