"""Where relevant labels stand among scores: the counting beneath the metrics.

Both counts take about as long as one sort of the scores, in blocks on all cores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..engines.machine import cores

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
T = TypeVar("T")

# Cells whose labels are ranked at a time: what is sorted stays in the processor's cache.
_RANKED_AT_ONCE = 2**16
# Cells of the whole matrix sorted at a time, and at least how many for each value that is looked up among them.
_SORTED_AT_ONCE = 2**22
_SORTED_FOR_EACH = 8


class Groups(NamedTuple):
    """Where the relevant labels of some instances stand.

    Labels of an instance that have one score are a group; `g` counts the groups with a relevant label.
    """

    instance: NDArray[np.intp]  # (g,)
    above: FloatArray  # (g,) how many labels of the instance score higher
    size: FloatArray  # (g,) how many labels are in the group
    relevant_above: FloatArray  # (g,) how many relevant labels score higher
    relevant: FloatArray  # (g,) how many relevant labels are in the group
    n_relevant: FloatArray  # (n,) how many relevant labels each instance has
    n_labels: int


class Pairs(NamedTuple):
    """Pairs of a relevant and an irrelevant cell: how many, and in how many the relevant one scores higher or ties."""

    number: int
    won: int
    tied: int


def each_group(truth: Any, scores: NDArray[Any], function: Callable[[Groups], T]) -> list[T]:
    """Call a function with the groups of a few instances at a time, for all instances in order.

    Examples
    --------
    >>> each_group(np.array([[True, False, True]]), np.array([[0.3, 0.9, 0.3]]), lambda groups: groups.above.tolist())
    [[1.0]]
    """

    def of_some(rows: slice) -> T:
        some = truth[rows]
        return function(groups(some.toarray() if sparse.issparse(some) else some, scores[rows]))

    return over_rows(scores.shape, of_some)


def over_rows(shape: tuple[int, ...], function: Callable[[slice], T]) -> list[T]:
    """Call a function with a few rows of a matrix (n, l) at a time, on all cores.

    Examples
    --------
    >>> over_rows((3, 2), lambda rows: rows)
    [slice(0, 3, None)]
    """
    n, l = shape
    step = max(1, _RANKED_AT_ONCE // l)
    return _on_all_cores(function, [slice(first, min(first + step, n)) for first in range(0, n, step)])


def groups(truth: BoolArray, scores: NDArray[Any]) -> Groups:
    """Find the groups of equal scores (n, l) that hold a relevant label.

    Examples
    --------
    >>> found = groups(np.array([[True, False, True, True]]), np.array([[0.3, 0.9, 0.3, 0.1]]))
    >>> found.above.tolist(), found.size.tolist(), found.relevant_above.tolist(), found.relevant.tolist()
    ([1.0, 3.0], [2.0, 1.0], [0.0, 2.0], [2.0, 1.0])
    """
    n, l = scores.shape
    falling = np.negative(scores, order="C")
    cells = np.flatnonzero(truth)
    values = falling.ravel()[cells]
    falling.sort(axis=1)
    ranked = falling.ravel()
    starts = _search(ranked, cells - cells % l, l, values, np.less)
    first, relevant = np.unique(starts, return_counts=True)
    instance, above = np.divmod(first, l)
    size = _search(ranked, first - above, l, ranked[first], np.less_equal) - first
    n_relevant = np.bincount(instance, weights=relevant, minlength=n)
    higher = np.cumsum(relevant) - relevant - (np.cumsum(n_relevant) - n_relevant)[instance]
    return Groups(
        instance, _as_float(above), _as_float(size), _as_float(higher), _as_float(relevant), _as_float(n_relevant), l
    )


def pairs_of_cells(truth: BoolArray, scores: NDArray[Any]) -> Pairs:
    """Compare every relevant cell with every irrelevant one.

    The fewer of the two are sorted as a whole. Then all cells are sorted block by block, which says how many of a block
    are below each of the fewer; blocks are large beside these, so that looking them up costs less than the sort.

    Examples
    --------
    >>> pairs_of_cells(np.array([[True, False], [False, True]]), np.array([[0.9, 0.2], [0.4, 0.4]]))
    Pairs(number=4, won=3, tied=1)
    """
    n_relevant = int(np.count_nonzero(truth))
    number = n_relevant * (truth.size - n_relevant)
    swapped = 2 * n_relevant > truth.size
    values, counts = np.unique(scores[~truth if swapped else truth], return_counts=True)
    cells = scores.ravel(order="K")
    step = max(_SORTED_AT_ONCE, min(_SORTED_FOR_EACH * len(values), -(-cells.size // cores())))

    def below_and_tied(some: slice) -> tuple[int, int]:
        block = np.sort(cells[some])
        below = np.searchsorted(block, values)
        tied = np.flatnonzero(block[np.minimum(below, len(block) - 1)] == values)
        up_to = np.searchsorted(block, values[tied], side="right")
        return int(counts @ below), int(counts[tied] @ (up_to - below[tied]))

    found = _on_all_cores(below_and_tied, [slice(at, at + step) for at in range(0, cells.size, step)])
    # All cells were counted; the fewer themselves have to come off.
    won = sum(below for below, _ in found) - int(counts @ (np.cumsum(counts) - counts))
    tied = sum(tied for _, tied in found) - int(counts @ counts)
    return Pairs(number, number - won - tied if swapped else won, tied)


def _search(
    ranked: NDArray[Any], rows: NDArray[np.intp], l: int, values: NDArray[Any], before: Any
) -> NDArray[np.intp]:
    """Find by halving how far values come in rows of `l` that begin at `rows`: where ``before(x, value)`` ends."""
    position, remaining = rows.copy(), l
    while remaining > 1:
        half = remaining // 2
        position += half * before(ranked[position + (half - 1)], values)
        remaining -= half
    position += before(ranked[position], values)
    return position


def _as_float(counts: NDArray[Any]) -> FloatArray:
    return counts.astype(np.float64, copy=False)


def _on_all_cores(function: Callable[[slice], T], slices: Sequence[slice]) -> list[T]:
    if len(slices) == 1:
        return [function(slices[0])]
    with ThreadPoolExecutor(cores()) as pool:  # sorting releases the interpreter's lock
        return list(pool.map(function, slices))
