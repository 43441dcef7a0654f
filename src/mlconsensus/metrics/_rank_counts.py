"""Counts of relevant labels among ranked labels, from which the metrics are computed.

The counts take about as long as one sort of the scores. Blocks of rows are counted on
all cores.

``n`` is the number of instances and ``l`` the number of labels. A *tie group* is the
set of labels of one instance that have the same score.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeVar

import numpy as np

from ..execution.memory import count_cores
from ..linalg.matrix_types import RowSlice
from ..linalg.sparse_scores import KEPT, SparseScores
from ..predictions import Array, BoolArray, FloatArray, IntArray, Matrix

Result = TypeVar("Result")
Scores = FloatArray | SparseScores  # (n, l)

# Instance-label pairs that are ranked at a time: they fit into the processor's cache.
_RANKED_AT_ONCE = 2**16
# Instance-label pairs that are sorted at a time to count ordered pairs, and how many of
# them there are at least for each value that is looked up.
_SORTED_AT_ONCE = 2**22
_SORTED_PER_VALUE = 8


class _Comparison(Protocol):
    """A comparison of arrays, such as `numpy.less`."""

    def __call__(self, first: Array, second: Array, /) -> BoolArray: ...


@dataclass(frozen=True, kw_only=True)
class TieGroups:
    """The tie groups with a relevant label; ``g`` is their number."""

    instance: IntArray  # (g,) instance of each group
    above: IntArray  # (g,) labels of the instance with a higher score
    size: IntArray  # (g,) labels in the group
    relevant_above: IntArray  # (g,) relevant labels with a higher score
    relevant: IntArray  # (g,) relevant labels in the group
    n_relevant: IntArray  # (n,) relevant labels of each instance
    n_labels: int

    def sum_by_instance(self, values: Array) -> FloatArray:
        """Sum values (g,) of the groups of each instance, shape (n,)."""
        sums = np.bincount(self.instance, values, len(self.n_relevant))
        return np.asarray(sums, dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class OrderedPairs:
    """Comparison of all relevant with all irrelevant instance-label pairs."""

    total: int
    won: int  # the relevant one has the higher score
    tied: int  # both have the same score


@dataclass(frozen=True, kw_only=True)
class ReciprocalRanks:
    """Sums over ranks r = 1, …, l; the ranks of a group begin after ``above``."""

    below: FloatArray  # (g,) sum of 1/r over the ranks below the group
    within: FloatArray  # (g,) sum of 1/r over the ranks of the group
    # (g,) sum of t/r over the ranks of the group, where t = 0, 1, … counts them
    within_by_place: FloatArray


def map_row_blocks(
    shape: tuple[int, ...], function: Callable[[RowSlice], Result]
) -> list[Result]:
    """Call a function with blocks of rows of a matrix, on all cores.

    Parameters
    ----------
    shape : tuple of int
        Shape (n, l) of the matrix.
    function : callable
        It takes a slice of rows. It should release the interpreter's lock, as sorting
        does.

    Returns
    -------
    list
        The results in the order of the rows.

    Examples
    --------
    >>> map_row_blocks((3, 2), lambda rows: rows)
    [slice(0, 3, None)]
    """
    n, l = shape
    step = max(1, _RANKED_AT_ONCE // l)
    return _map_in_threads(function, _split(n, step))


def average_over_instances(
    truth: Matrix, scores: Scores, *metrics: Callable[[TieGroups], FloatArray]
) -> list[float]:
    """Average metrics of instances over all instances.

    Parameters
    ----------
    truth : ndarray of bool or csr_array of shape (n, l)
        CSR if the scores are `SparseScores`.
    scores : ndarray or SparseScores of shape (n, l)
        Higher is more relevant.
    *metrics : callable
        Each computes a metric (n,) from `TieGroups`.

    Returns
    -------
    list of float
        The mean of each metric.

    Examples
    --------
    >>> truth = np.array([[True, False], [True, False]])
    >>> scores = np.array([[2, 1], [1, 1]])
    >>> average_over_instances(truth, scores, compute_one_error)
    [0.25]
    """

    def sum_metrics(rows: RowSlice) -> list[float]:
        groups = _find_groups(truth[rows], scores[rows])
        return [float(metric(groups).sum()) for metric in metrics]

    if isinstance(scores, SparseScores):
        ranked_shape = (len(scores), KEPT)
    else:
        ranked_shape = scores.shape

    block_sums = map_row_blocks(ranked_shape, sum_metrics)
    return [float(sum(sums) / len(scores)) for sums in zip(*block_sums, strict=True)]


def _find_groups(truth: Matrix, scores: Scores) -> TieGroups:
    """Find the tie groups of dense or sparse scores."""
    if isinstance(scores, SparseScores):
        return find_sparse_tie_groups(truth, scores)
    return find_tie_groups(truth, scores)


def find_tie_groups(truth: BoolArray, scores: Array) -> TieGroups:
    """Find the tie groups with a relevant label.

    Parameters
    ----------
    truth : ndarray of bool of shape (n, l)
        Relevant labels.
    scores : ndarray of shape (n, l)
        Higher is more relevant.

    Returns
    -------
    TieGroups
        In the order of the instances, and of falling scores.

    Examples
    --------
    >>> truth = np.array([[True, False, True, True]])
    >>> groups = find_tie_groups(truth, np.array([[0.3, 0.9, 0.3, 0.1]]))
    >>> groups.above.tolist(), groups.size.tolist()
    ([1, 3], [2, 1])
    >>> groups.relevant_above.tolist(), groups.relevant.tolist()
    ([0, 2], [2, 1])
    """
    l = scores.shape[1]

    # Sort each row: the negative scores rise as the scores fall.
    negative = np.negative(scores, order="C")
    relevant_pairs = np.flatnonzero(truth)
    relevant_values = negative.ravel()[relevant_pairs]
    negative.sort(axis=1)
    ranked = negative.ravel()

    # The first position of each relevant label's score in its row identifies its group.
    row_starts = relevant_pairs - relevant_pairs % l
    positions = _search_rows(ranked, row_starts, l, relevant_values, np.less)
    first, relevant = np.unique(positions, return_counts=True)
    instance, above = np.divmod(first, l)
    end = _search_rows(ranked, first - above, l, ranked[first], np.less_equal)

    # Relevant labels in earlier groups, minus those of earlier instances.
    n_relevant = np.count_nonzero(truth, axis=1)
    before_group = np.cumsum(relevant) - relevant
    before_instance = np.cumsum(n_relevant) - n_relevant
    return TieGroups(
        instance=instance,
        above=above,
        size=end - first,
        relevant_above=before_group - before_instance[instance],
        relevant=relevant,
        n_relevant=n_relevant,
        n_labels=l,
    )


def find_sparse_tie_groups(truth: Matrix, scores: SparseScores) -> TieGroups:
    """Find the tie groups of a large label space.

    The labels of an instance that are stored or relevant are ranked among themselves.
    All other labels have their default score; those above a group and in it are
    counted.

    Parameters
    ----------
    truth : csr_array of bool of shape (n, l)
        Relevant labels.
    scores : SparseScores of shape (n, l)
        Higher is more relevant.

    Returns
    -------
    TieGroups

    Examples
    --------
    >>> from scipy import sparse
    >>> above = sparse.csr_array([[0.0, 0.5, 0.0]])
    >>> scores = SparseScores(above, np.array([0.3, 0.2, 0.3]))
    >>> truth = sparse.csr_array([[True, False, False]])
    >>> groups = find_sparse_tie_groups(truth, scores)
    >>> groups.above.tolist(), groups.size.tolist(), groups.n_labels
    ([1], [2], 3)
    """
    n, l = scores.shape
    n_stored = scores.above.nnz

    # The labels that are stored or relevant, as flat positions in (n, l).
    stored_pairs = _compute_flat_positions(scores.above)
    relevant_pairs = _compute_flat_positions(truth)
    pairs, inverse = np.unique(
        np.concatenate([stored_pairs, relevant_pairs]), return_inverse=True
    )
    above_default = np.zeros(len(pairs))
    above_default[inverse[:n_stored]] = scores.above.data
    is_relevant = np.zeros(len(pairs), dtype=np.bool_)
    is_relevant[inverse[n_stored:]] = True

    # Put them into narrow matrices (n, width), padded with the lowest score.
    row, label = np.divmod(pairs, l)
    column = np.arange(len(pairs)) - np.searchsorted(row, row)
    width = int(column.max(initial=0)) + 1
    relevant = np.zeros((n, width), dtype=np.bool_)
    relevant[row, column] = is_relevant
    negative_default = np.full((n, width), np.inf)
    negative_default[row, column] = -scores.default[label]
    negative_score = np.full((n, width), np.inf)
    negative_score[row, column] = -(above_default + scores.default[label])

    groups = find_tie_groups(relevant, -negative_score)

    # Count the other labels, with default scores, above each group and up to its end.
    negative_score.sort(axis=1)
    negative_default.sort(axis=1)
    value = negative_score[groups.instance, groups.above]
    row_starts = groups.instance * width
    all_defaults = np.sort(-scores.default)

    def count_others(side: Literal["left", "right"], before: _Comparison) -> IntArray:
        end = _search_rows(negative_default.ravel(), row_starts, width, value, before)
        n_listed = end - row_starts
        return np.asarray(np.searchsorted(all_defaults, value, side) - n_listed)

    others_above = count_others("left", np.less)
    others_through = count_others("right", np.less_equal)
    return replace(
        groups,
        above=groups.above + others_above,
        size=groups.size + others_through - others_above,
        n_labels=l,
    )


def _compute_flat_positions(matrix: Matrix) -> IntArray:
    """Return the flat positions of the stored entries of a CSR matrix."""
    n, l = matrix.shape
    row_starts = np.repeat(np.arange(n) * l, np.diff(matrix.indptr))
    return np.asarray(row_starts + matrix.indices)


def count_ordered_pairs(truth: Matrix, scores: Scores) -> OrderedPairs:
    """Compare every relevant instance-label pair with every irrelevant one.

    The smaller of the two sets is sorted as a whole. Then all scores are sorted block
    by block, which gives the number of scores in a block below each of the smaller
    set. Blocks are large compared with the smaller set, so the look-up costs less than
    the sort.

    Parameters
    ----------
    truth : ndarray of bool or csr_array of shape (n, l)
        CSR if the scores are `SparseScores`.
    scores : ndarray or SparseScores of shape (n, l)
        Higher is more relevant.

    Returns
    -------
    OrderedPairs

    Examples
    --------
    >>> truth = np.array([[True, False], [False, True]])
    >>> count_ordered_pairs(truth, np.array([[0.9, 0.2], [0.4, 0.4]]))
    OrderedPairs(total=4, won=3, tied=1)
    """
    if isinstance(scores, SparseScores):
        return _count_sparse_ordered_pairs(truth, scores)

    n_relevant = int(np.count_nonzero(truth))
    total = n_relevant * (truth.size - n_relevant)
    is_swapped = 2 * n_relevant > truth.size
    is_smaller_set = ~truth if is_swapped else truth
    values, counts = np.unique(scores[is_smaller_set], return_counts=True)

    all_scores = scores.ravel(order="K")
    n_per_core = -(-all_scores.size // count_cores())
    step = max(_SORTED_AT_ONCE, min(_SORTED_PER_VALUE * len(values), n_per_core))

    def count_below_and_tied(block: RowSlice) -> tuple[int, int]:
        ranked = np.sort(all_scores[block])
        below = np.searchsorted(ranked, values)
        is_tied = ranked[np.minimum(below, len(ranked) - 1)] == values
        tied = np.flatnonzero(is_tied)
        through = np.searchsorted(ranked, values[tied], side="right")
        return int(counts @ below), int(counts[tied] @ (through - below[tied]))

    n_below = 0
    n_tied = 0
    blocks = _split(all_scores.size, step)
    for below, tied in _map_in_threads(count_below_and_tied, blocks):
        n_below += below
        n_tied += tied

    # All scores were counted: subtract the comparisons within the smaller set.
    n_below -= _count_smaller(counts)
    n_tied -= int(counts @ counts)
    won = total - n_below - n_tied if is_swapped else n_below
    return OrderedPairs(total=total, won=won, tied=n_tied)


def _count_sparse_ordered_pairs(truth: Matrix, scores: SparseScores) -> OrderedPairs:
    """Compare pairs of which most have the default score of their label."""
    n, l = scores.shape

    # Each stored score counts once, each default as often as it is not stored.
    stored = scores.stored
    n_default = n - np.bincount(stored.indices, minlength=l)
    values = np.concatenate([stored.data, scores.default])
    times = np.concatenate([np.ones(stored.nnz, dtype=np.int64), n_default])
    order = np.argsort(values)
    values = values[order]
    n_below = np.append(0, np.cumsum(times[order]))

    rows = np.repeat(np.arange(n), np.diff(truth.indptr))
    relevant, counts = np.unique(scores[rows, truth.indices], return_counts=True)
    below = n_below[np.searchsorted(values, relevant, "left")]
    through = n_below[np.searchsorted(values, relevant, "right")]
    return OrderedPairs(
        total=truth.nnz * (n * l - truth.nnz),
        won=int(counts @ below) - _count_smaller(counts),
        tied=int(counts @ (through - below)) - int(counts @ counts),
    )


def _count_smaller(counts: IntArray) -> int:
    """Count ordered pairs of different values, given how often each value occurs."""
    return int(counts @ (np.cumsum(counts) - counts))


def sum_won_pairs(
    scores: Array, relevant_weight: Array, irrelevant_weight: Array
) -> FloatArray:
    """Sum the weights of the pairs that each instance wins, by side.

    Parameters
    ----------
    scores : ndarray of shape (n, l)
        Higher is more relevant.
    relevant_weight, irrelevant_weight : ndarray of shape (n, l)
        Weight of each instance-label pair as a relevant and as an irrelevant one.

    Returns
    -------
    ndarray of shape (2, n)
        First row: the instance's relevant pairs against the irrelevant ones of all
        instances. Second row: its irrelevant pairs against the relevant ones of all
        instances. A pair of pairs counts if the relevant one has the higher score, and
        one half if both have the same score.

    Examples
    --------
    >>> truth = np.array([[True, False], [False, True]])
    >>> sum_won_pairs(np.array([[0.9, 0.2], [0.4, 0.4]]), truth, ~truth)
    array([[2. , 1.5], [2. , 1.5]])
    """
    values, inverse = np.unique(scores, return_inverse=True)
    level = inverse.reshape(scores.shape)
    relevant = np.bincount(level.ravel(), relevant_weight.ravel(), len(values))
    irrelevant = np.bincount(level.ravel(), irrelevant_weight.ravel(), len(values))

    irrelevant_below = np.cumsum(irrelevant) - irrelevant / 2
    relevant_above = relevant.sum() - np.cumsum(relevant) + relevant / 2
    won_by_relevant = (relevant_weight * irrelevant_below[level]).sum(axis=1)
    lost_by_irrelevant = (irrelevant_weight * relevant_above[level]).sum(axis=1)
    return np.array([won_by_relevant, lost_by_irrelevant])


def _search_rows(
    ranked: Array, row_starts: IntArray, l: int, values: Array, before: _Comparison
) -> IntArray:
    """Find by bisection where values belong in sorted rows of a flat matrix.

    Each search is in the row of length `l` that begins at ``row_starts``, and returns
    the first flat position where ``before(entry, value)`` is false.
    """
    position = row_starts.copy()
    remaining = l
    while remaining > 1:
        half = remaining // 2
        position += half * before(ranked[position + (half - 1)], values)
        remaining -= half

    position += before(ranked[position], values)
    return position


def _split(size: int, step: int) -> list[RowSlice]:
    """Split a range into slices of `step`."""
    return [slice(start, min(start + step, size)) for start in range(0, size, step)]


def _map_in_threads(
    function: Callable[[RowSlice], Result], slices: Sequence[RowSlice]
) -> list[Result]:
    """Call a function with each slice, on all cores."""
    # Threads are enough, because sorting releases the interpreter's lock.
    with ThreadPoolExecutor(count_cores()) as pool:
        return list(pool.map(function, slices))


# Metrics of each instance (n,), as expected values over random orders of tied labels.


def compute_one_error(groups: TieGroups) -> FloatArray:
    """Compute the probability that the first label is irrelevant, shape (n,)."""
    is_first = groups.above == 0
    share_relevant = groups.relevant / groups.size
    return 1 - groups.sum_by_instance(share_relevant * is_first)


def compute_ranking_loss(groups: TieGroups, tied: float = 0.5) -> FloatArray:
    """Compute the share of label pairs in the wrong order, shape (n,).

    Parameters
    ----------
    groups : TieGroups
        The ranked labels.
    tied : float, default=0.5
        Weight of a tied pair.

    Returns
    -------
    ndarray of shape (n,)
    """
    irrelevant_above = groups.above - groups.relevant_above
    irrelevant_tied = groups.size - groups.relevant
    wrong = groups.relevant * (irrelevant_above + tied * irrelevant_tied)

    n_irrelevant = groups.n_labels - groups.n_relevant
    n_pairs = np.maximum(groups.n_relevant * n_irrelevant, 1)
    return np.asarray(groups.sum_by_instance(wrong) / n_pairs)


def compute_average_precision(groups: TieGroups) -> FloatArray:
    r"""Compute the average precision (label ranking), shape (n,).

    Place :math:`t = 0, 1, \dots` of a group holds a relevant label with probability
    ``relevant / size``. In that case each of the :math:`t` places before it holds
    another relevant label with probability ``(relevant - 1) / (size - 1)``. The
    precision at rank :math:`r = \text{above} + 1 + t` is thus
    :math:`(a + b t) / r`, summed over the places with sums of reciprocal ranks.
    """
    reciprocals = sum_reciprocal_ranks(groups)
    share_relevant = groups.relevant / groups.size
    other_relevant = np.maximum(groups.relevant - 1, 0)
    share_other = other_relevant / np.maximum(groups.size - 1, 1)
    precision = share_relevant * (
        (groups.relevant_above + 1) * reciprocals.within
        + share_other * reciprocals.within_by_place
    )

    total = groups.sum_by_instance(precision)
    mean = total / np.maximum(groups.n_relevant, 1)
    return np.where(groups.n_relevant == 0, 1.0, mean)


def sum_reciprocal_ranks(groups: TieGroups) -> ReciprocalRanks:
    """Sum reciprocal ranks within and below each group, by harmonic numbers."""
    reciprocals = 1 / np.arange(1, groups.n_labels + 1)
    harmonic = np.concatenate([[0.0], np.cumsum(reciprocals)])
    through = harmonic[groups.above + groups.size]
    within = through - harmonic[groups.above]
    return ReciprocalRanks(
        below=harmonic[-1] - through,
        within=within,
        within_by_place=groups.size - (groups.above + 1) * within,
    )
