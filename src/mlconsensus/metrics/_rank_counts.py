"""Where relevant labels stand among scores: the counting beneath the metrics.

Both counts take about as long as one sort of the scores, in blocks on all cores.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..execution.memory import count_cores
from ..linalg.sparse_scores import KEPT, SparseScores
from ..predictions import Array, BoolArray, FloatArray, IntArray

T = TypeVar("T")

# Cells whose labels are ranked at a time: what is sorted stays in the processor's
# cache.
_RANKED_AT_ONCE = 2**16
# Cells of the whole matrix sorted at a time, and at least how many for each value that
# is looked up among them.
_SORTED_AT_ONCE = 2**22
_SORTED_FOR_EACH = 8


class TieGroups(NamedTuple):
    """Where the relevant labels of some instances stand.

    Labels of an instance that have one score are a group; `g` counts the groups with a
    relevant label.
    """

    instance: IntArray  # (g,)
    above: IntArray  # (g,) how many labels of the instance score higher
    size: IntArray  # (g,) how many labels are in the group
    relevant_above: IntArray  # (g,) how many relevant labels score higher
    relevant: IntArray  # (g,) how many relevant labels are in the group
    n_relevant: IntArray  # (n,) how many relevant labels each instance has
    n_labels: int


def map_row_blocks(shape: tuple[int, ...], function: Callable[[slice], T]) -> list[T]:
    """Call a function with a few rows of a matrix (n, l) at a time, on all cores.

    Examples
    --------
    >>> map_row_blocks((3, 2), lambda rows: rows)
    [slice(0, 3, None)]
    """
    n, l = shape
    step = max(1, _RANKED_AT_ONCE // l)
    return _in_threads(
        function, [slice(first, min(first + step, n)) for first in range(0, n, step)]
    )


def average_over_instances(
    truth: Any, scores: Any, *metrics: Callable[..., FloatArray]
) -> list[float]:
    """Add up each metric over a few instances at a time, then divide by how many there are.

    Of many labels, truth is CSR and scores are `SparseScores`.

    Examples
    --------
    >>> average_over_instances(np.array([[True, False], [True, False]]), np.array([[2, 1], [1, 1]]), compute_one_error)
    [0.25]
    """
    many = isinstance(scores, SparseScores)

    def of_some(rows: slice) -> list[float]:
        found = (find_sparse_tie_groups if many else find_tie_groups)(
            truth[rows], scores[rows]
        )
        return [float(metric(found).sum()) for metric in metrics]

    parts = map_row_blocks((len(scores), KEPT) if many else scores.shape, of_some)
    return [float(sum(values) / len(scores)) for values in zip(*parts, strict=True)]


def find_tie_groups(truth: BoolArray, scores: Array) -> TieGroups:
    """Find the groups of equal scores (n, l) that hold a relevant label.

    Examples
    --------
    >>> found = find_tie_groups(np.array([[True, False, True, True]]), np.array([[0.3, 0.9, 0.3, 0.1]]))
    >>> found.above.tolist(), found.size.tolist(), found.relevant_above.tolist(), found.relevant.tolist()
    ([1, 3], [2, 1], [0, 2], [2, 1])
    """
    l = scores.shape[1]
    falling = np.negative(scores, order="C")
    cells = np.flatnonzero(truth)
    values = falling.ravel()[cells]
    falling.sort(axis=1)
    ranked = falling.ravel()
    starts = _search(ranked, cells - cells % l, l, values, np.less)
    first, relevant = np.unique(starts, return_counts=True)
    instance, above = np.divmod(first, l)
    size = _search(ranked, first - above, l, ranked[first], np.less_equal) - first
    n_relevant = np.count_nonzero(truth, axis=1)
    higher = (
        np.cumsum(relevant) - relevant - (np.cumsum(n_relevant) - n_relevant)[instance]
    )
    return TieGroups(instance, above, size, higher, relevant, n_relevant, l)


def find_sparse_tie_groups(truth: Any, scores: SparseScores) -> TieGroups:
    """Find the same groups where labels are many, and truth is CSR.

    Labels of an instance that are stored or relevant are ranked among themselves; of
    all others, which have their defaults, those above and level with a group are
    counted.

    Examples
    --------
    >>> from scipy import sparse
    >>> scores = SparseScores(sparse.csr_array([[0.0, 0.5, 0.0]]), np.array([0.3, 0.2, 0.3]))
    >>> found = find_sparse_tie_groups(sparse.csr_array([[True, False, False]]), scores)
    >>> found.above.tolist(), found.size.tolist(), found.n_labels
    ([1], [2], 3)
    """
    n, l = scores.shape
    cells = [
        np.repeat(np.arange(n) * l, np.diff(own.indptr)) + own.indices
        for own in (scores.above, truth)
    ]
    listed, at = np.unique(np.concatenate(cells), return_inverse=True)
    row, label = np.divmod(listed, l)
    place = np.arange(len(listed)) - np.searchsorted(row, row)
    width = int(place.max(initial=0)) + 1
    moved = np.zeros(len(listed))
    right = np.zeros(len(listed), dtype=np.bool_)
    moved[at[: scores.above.nnz]] = scores.above.data
    right[at[scores.above.nnz :]] = True
    relevant = np.zeros((n, width), dtype=np.bool_)
    (falling, defaults) = np.full((2, n, width), np.inf)
    relevant[row, place] = right
    defaults[row, place] = -scores.default[label]
    falling[row, place] = -(moved + scores.default[label])
    found = find_tie_groups(relevant, -falling)
    falling.sort(axis=1)
    defaults.sort(axis=1)
    value = falling[found.instance, found.above]
    starts = found.instance * width
    every = np.sort(-scores.default)

    def others(side: Any, before: Any) -> IntArray:
        own = _search(defaults.ravel(), starts, width, value, before) - starts
        return np.asarray(np.searchsorted(every, value, side) - own)

    above = others("left", np.less)
    through = others("right", np.less_equal)
    return found._replace(
        above=found.above + above, size=found.size + through - above, n_labels=l
    )


def count_ordered_pairs(truth: Any, scores: Any) -> tuple[int, int, int]:
    """Compare every relevant cell with every irrelevant one: how many pairs, in how many it scores higher, or ties.

    The fewer of the two are sorted as a whole. Then all cells are sorted block by
    block, which says how many of a block are below each of the fewer; blocks are large
    beside these, so that looking them up costs less than the sort.

    Examples
    --------
    >>> count_ordered_pairs(np.array([[True, False], [False, True]]), np.array([[0.9, 0.2], [0.4, 0.4]]))
    (4, 3, 1)
    """
    if isinstance(scores, SparseScores):
        return _pairs_of_many(truth, scores)

    n_relevant = int(np.count_nonzero(truth))
    number = n_relevant * (truth.size - n_relevant)
    swapped = 2 * n_relevant > truth.size
    values, counts = np.unique(scores[~truth if swapped else truth], return_counts=True)
    cells = scores.ravel(order="K")
    step = max(
        _SORTED_AT_ONCE,
        min(_SORTED_FOR_EACH * len(values), -(-cells.size // count_cores())),
    )

    def below_and_tied(some: slice) -> tuple[int, int]:
        block = np.sort(cells[some])
        below = np.searchsorted(block, values)
        tied = np.flatnonzero(block[np.minimum(below, len(block) - 1)] == values)
        up_to = np.searchsorted(block, values[tied], side="right")
        return int(counts @ below), int(counts[tied] @ (up_to - below[tied]))

    found = _in_threads(
        below_and_tied, [slice(at, at + step) for at in range(0, cells.size, step)]
    )
    # All cells were counted; the fewer themselves have to come off.
    won = sum(below for below, _ in found) - int(counts @ (np.cumsum(counts) - counts))
    tied = sum(tied for _, tied in found) - int(counts @ counts)
    return number, number - won - tied if swapped else won, tied


def _pairs_of_many(truth: Any, scores: SparseScores) -> tuple[int, int, int]:
    """Compare cells of which most have their label's default, each of these as often as it is not stored."""
    (n, l) = scores.shape
    stored = scores.stored
    cells = np.concatenate([stored.data, scores.default])
    times = np.concatenate(
        [
            np.ones(stored.nnz, dtype=np.int64),
            n - np.bincount(stored.indices, minlength=l),
        ]
    )
    order = np.argsort(cells)
    cells = cells[order]
    below = np.append(0, np.cumsum(times[order]))
    rows = np.repeat(np.arange(n), np.diff(truth.indptr))
    values, counts = np.unique(scores[rows, truth.indices], return_counts=True)
    lower, through = (
        below[np.searchsorted(cells, values, side)] for side in ("left", "right")
    )
    won = int(counts @ lower) - int(counts @ (np.cumsum(counts) - counts))
    return (
        truth.nnz * (n * l - truth.nnz),
        won,
        int(counts @ (through - lower)) - int(counts @ counts),
    )


def sum_won_pairs(scores: Array, of_yes: Any, of_no: Any) -> FloatArray:
    """Tell how much the yes of each instance wins against every no, and its no loses to every yes (2, n).

    Parameters
    ----------
    scores
        Scores (n, l).
    of_yes, of_no
        How much each cell counts as relevant and as irrelevant (n, l). Ties are one
        half.

    Examples
    --------
    >>> truth = np.array([[True, False], [False, True]])
    >>> sum_won_pairs(np.array([[0.9, 0.2], [0.4, 0.4]]), truth, ~truth)
    array([[2. , 1.5], [2. , 1.5]])
    """
    values, at = np.unique(scores, return_inverse=True)
    at = at.reshape(scores.shape)
    yes, no = (
        np.bincount(at.ravel(), mass.ravel(), len(values)) for mass in (of_yes, of_no)
    )
    below = np.cumsum(no) - no / 2
    above = yes.sum() - np.cumsum(yes) + yes / 2
    return np.array([(of_yes * below[at]).sum(axis=1), (of_no * above[at]).sum(axis=1)])


def _search(
    ranked: Array, rows: IntArray, l: int, values: Array, before: Any
) -> IntArray:
    """Find by halving how far values come in rows of `l` that begin at `rows`: where ``before(x, value)`` ends."""
    position = rows.copy()
    remaining = l
    while remaining > 1:
        half = remaining // 2
        position += half * before(ranked[position + (half - 1)], values)
        remaining -= half

    position += before(ranked[position], values)
    return position


def _in_threads(function: Callable[[slice], T], slices: Sequence[slice]) -> list[T]:
    with ThreadPoolExecutor(
        count_cores()
    ) as pool:  # sorting releases the interpreter's lock
        return list(pool.map(function, slices))


# Each of these is a metric of every instance (n,), expected over the orders of ties.


def compute_one_error(g: TieGroups) -> FloatArray:
    """Tell how likely a label that is not relevant stands first."""
    return 1 - _of_instance(g, (g.relevant / g.size) * (g.above == 0))


def compute_ranking_loss(g: TieGroups, tied: float = 0.5) -> FloatArray:
    """Tell the share of pairs in the wrong order, a tied pair counted `tied`."""
    wrong = g.relevant * (g.above - g.relevant_above + tied * (g.size - g.relevant))
    pairs = np.maximum(g.n_relevant * (g.n_labels - g.n_relevant), 1)
    return np.asarray(_of_instance(g, wrong) / pairs)


def compute_average_precision(g: TieGroups) -> FloatArray:
    r"""Tell the usual average precision.

    Place `t` of a group, counted from 0, holds a relevant label with probability
    ``relevant / size``; given that, each of the `t` places before it holds one of the
    others with probability ``(relevant - 1) / (size - 1)``. What is to be added up over
    the places is thus :math:`(a + b t) / (\text{above} + 1 + t)`, and harmonic numbers
    do that.
    """
    _, of_ones, of_places = _harmonic(g)
    others = np.maximum(g.relevant - 1, 0) / np.maximum(g.size - 1, 1)
    precision = (
        g.relevant / g.size * ((g.relevant_above + 1) * of_ones + others * of_places)
    )
    return np.where(
        g.n_relevant == 0, 1.0, _of_instance(g, precision) / np.maximum(g.n_relevant, 1)
    )


def precision_at_every_place(g: TieGroups) -> FloatArray:
    """Tell the precision averaged over all places: a relevant label counts from its own place on."""
    below, of_ones, of_places = _harmonic(g)
    return (
        _of_instance(g, g.relevant * ((of_ones + of_places) / g.size + below))
        / g.n_labels
    )


def _of_instance(g: TieGroups, values: Array) -> FloatArray:
    return np.asarray(
        np.bincount(g.instance, values, len(g.n_relevant)), dtype=np.float64
    )


def _harmonic(g: TieGroups) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Add up 1/(p + 1) over the places p below each group, and 1/(p + 1) and t/(p + 1) over those in it."""
    numbers = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, g.n_labels + 1))])
    through = numbers[g.above + g.size]
    of_ones = through - numbers[g.above]
    return numbers[-1] - through, of_ones, g.size - (g.above + 1) * of_ones
