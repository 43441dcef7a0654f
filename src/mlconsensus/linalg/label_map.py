r"""Linear maps of many labels: exact for the head, the labels that are named most, and to first order for the rest.

The map :math:`F = K (I + K)^{-1}` of a symmetric `K` without negative eigenvalues,
divided into the head `H` and the tail `T`: with :math:`B = K_{TH}`, :math:`E = K_{TT}`,
`D` the diagonal of :math:`I + E`, and :math:`X = (I + E)^{-1} B \approx D^{-1} B`, the
Schur complement :math:`S = I + K_{HH} - B^\top X` gives

.. math:: F_{HH} = I - S^{-1}, \quad F_{TH} = X S^{-1}, \quad
    F_{TT} \approx I - D^{-1} + D^{-1} (E - \operatorname{diag} E) D^{-1} - X S^{-1}
    X^\top .

What is left out is of the order of :math:`\|E - \operatorname{diag} E\|^2`; without a
tail there is nothing. A row is multiplied by the map where it can matter: all labels of
the head get their scores, those of the tail that the row has, and others as far as
labels of the tail bring them up.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse

from ..errors import InputError
from ..execution.threads import check_interrupted, map_on_threads
from ..predictions import MAX_DENSE_LABELS, Array, FloatArray
from ..predictions.blocks import NamedValues, PairValues
from .block_sums import dense, product
from .gram import Gram
from .sparse_scores import KEPT, SparseScores, best, in_pieces, kth_best

# up to so many labels all are in the head, and nothing is left out
EXACT = MAX_DENSE_LABELS
# beyond, so many are: with 2,048 the best labels were hardly others
# (docs/decisions/0043)
HEAD = 1024
NEIGHBOURS = (
    50  # of the tail that a label of the tail brings up, and as many by way of the head
)
_NEAR = 4096  # labels of the tail that hear of each other by way of the head
LEAST = 1e-5  # smaller entries between labels of the tail are not stored
_EXACT = 1e-9  # what rounding leaves
_AT_ONCE = 2**22  # entries of the head's rows that are worked out at a time
_TABLE = 2**20  # places in which is noted which cells are named


class HeadTailMap(NamedTuple):
    """A linear map to labels, those of the head first."""

    labels: Any  # (c,) positions of the labels that it knows; the first h are the head
    columns: Array  # (r, h) what each row of the map adds to the head
    tail: Any  # CSR (r, c) what it adds to others
    # whether rows are labels, too, and what the tail gets from the head stands in
    # `columns`
    symmetric: bool = True
    bound: float = np.inf  # on the error of an entry, before scales
    before: FloatArray | float = 1.0  # (c,) by what is multiplied what comes in,
    after: FloatArray | float = 1.0  # (c,) and what comes out

    def applied(
        self, cells: Any, base: FloatArray, finish: Callable[[Any, slice], Any]
    ) -> Any:
        """Multiply the rows of a CSR matrix (n, r) by the map: CSR (n, l) of what `finish` leaves of each piece.

        Labels are stored that the row has, and those that can be among its best once
        `base` (l,) is added.
        """
        # In the map's own precision, and indices of one size: SciPy would turn all of
        # the map to them for every piece.
        data = (cells.data * _at(self.before, cells.indices)).astype(self.columns.dtype)
        tail = self.tail
        cells = sparse.csr_array((data, cells.indices, cells.indptr), shape=cells.shape)
        tail = sparse.csr_array(
            (tail.data.astype(data.dtype), tail.indices, tail.indptr), shape=tail.shape
        )
        starts = np.append(0, np.cumsum(np.diff(tail.indptr)[cells.indices]))[
            cells.indptr
        ]
        pieces = in_pieces(np.diff(starts) + self.columns.shape[1])
        parts = [
            finish(check_interrupted(self._applied(cells[rows], tail, base)), rows)
            for rows in pieces
        ]
        return sparse.vstack(parts, format="csr")

    def column(self, label: int, l: int) -> FloatArray:
        """Return what each of `l` labels adds to one (l,)."""
        out = np.zeros(l)
        for place in np.flatnonzero(self.labels == label):
            h = self.columns.shape[1]
            if place < h:
                own = self.columns[:, place]
            else:
                own = self.tail[:, [place]].toarray()[:, 0]

            if place >= h:
                own[:h] = self.columns[place]

            out[self.labels] = self.before * own * _at(self.after, place)

        return out

    def whole(self, row: FloatArray) -> FloatArray:
        """Multiply one row (l,) by the map, all of it."""
        h = self.columns.shape[1]
        given = (self.before * row[self.labels]).astype(self.columns.dtype)
        found = self.tail.T @ given
        found[:h] = given @ self.columns
        found[h:] += self.columns[h:] @ given[:h]
        out = np.zeros_like(row)
        out[self.labels] = self.after * found
        return out

    def _applied(self, cells: Any, tail: Any, base: FloatArray) -> Any:
        n = cells.shape[0]
        h = self.columns.shape[1]
        own = base[self.labels].astype(self.columns.dtype)
        shown = cells @ self.columns
        rows = np.repeat(np.arange(n), np.diff(cells.indptr))
        shown *= _at(self.after, slice(h))
        # The best of every four labels are enough to tell what none of the best is
        # below.
        rank = shown + own[:h]
        if h > 8 * KEPT:
            four = 4
        else:
            four = 1

        few = rank[:, : h // four * four].reshape(n, four, -1).max(axis=1)
        last = max(0, few.shape[1] - KEPT)
        least = np.partition(few, last, axis=1)[:, last]
        stored = (np.maximum(rank, own[:h], out=rank) >= least[:, None]) & (shown != 0)
        moved = cells @ tail
        moved.data *= _at(self.after, moved.indices)
        at = np.repeat(np.arange(n), np.diff(moved.indptr))
        found = []
        kept = np.maximum(moved.data, 0) + own[moved.indices] >= least[at]
        if self.symmetric:
            inside = cells.indices < h
            stored[rows[inside], cells.indices[inside]] = True
            row = rows[~inside]
            label = cells.indices[~inside]
            named = np.zeros(_TABLE, dtype=np.bool_)  # may take others for named, too
            named[_key(row, label)] = True
            kept |= named[_key(at, moved.indices)]
            found.append(
                (
                    self._brought(cells[:, :h], row, label) * _at(self.after, label),
                    row,
                    label,
                )
            )

        i, k = np.divmod(np.flatnonzero(stored), h)
        found += [
            (moved.data[kept], at[kept], moved.indices[kept]),
            (shown[i, k], i, k),
        ]
        data, row, label = (np.concatenate(each) for each in zip(*found, strict=True))
        return sparse.csr_array((data, (row, self.labels[label])), shape=(n, len(base)))

    def _brought(self, heads: Any, rows: Any, labels: Any) -> FloatArray:
        """Add up what named labels of the head, CSR (n, h), add to named labels of the tail in some rows."""
        added = np.zeros(len(rows), dtype=heads.dtype)
        for some in in_pieces(np.diff(heads.indptr)[rows]):
            pairs = heads[rows[some]]
            pairs.data *= self.columns[
                np.repeat(labels[some], np.diff(pairs.indptr)), pairs.indices
            ]
            added[some] = pairs.sum(axis=1)

        return added


# A linear map of labels: a matrix (l, l), or exact for frequent labels only.
LabelMap = FloatArray | HeadTailMap


def shrink_labels(
    gram: Gram,
    scale: float,
    compute_shrinkage: Callable[[FloatArray], FloatArray],
    n_iter: int | None,
) -> LabelMap:
    """Return V diag(h) V' for the eigenvectors V of a Gram matrix.

    Parameters
    ----------
    gram : Gram
        Sums of products of two labels.
    scale : float
        Factor of the eigenvalues.
    compute_shrinkage : callable
        Returns h for the scaled eigenvalues.
    n_iter : int or None
        Number of iterations behind h. In large label spaces it must be 1: the map is
        then exact for frequent labels, and of first order for the others.

    Returns
    -------
    ndarray of shape (l, l) or HeadTailMap
    """
    if gram.is_large:
        if n_iter != 1:
            raise InputError(
                where="n_iter", found=n_iter, expected="1, for a large label space"
            )
        return _shrink_head_and_tail(gram.rows, scale)

    eigenvalues, eigenvectors = decompose_gram(gram, keep_all=n_iter == 0)
    shrinkage = compute_shrinkage(scale * eigenvalues)
    label_map = (eigenvectors * shrinkage) @ eigenvectors.T

    # Labels that never occur together have 0 here, except for rounding errors that
    # would rank them at random.
    n_labels = len(label_map)
    smallest = 10 * n_labels * np.finfo(np.float64).eps * shrinkage.max()
    label_map[np.abs(label_map) < smallest] = 0.0
    return np.asarray(label_map)


def decompose_gram(gram: Gram, keep_all: bool = False) -> tuple[FloatArray, FloatArray]:
    """Return the eigenvalues and eigenvectors of a Gram matrix.

    With fewer rows than columns, all other eigenvalues are 0; they are left out unless
    `keep_all` is true.
    """
    rows = gram.rows
    if rows is not None and rows.shape[0] < rows.shape[1] and not keep_all:
        _, singular_values, directions = linalg.svd(dense(rows), full_matrices=False)
        return singular_values**2, directions.T
    eigenvalues, eigenvectors = linalg.eigh(np.array(gram), overwrite_a=True)
    return eigenvalues, eigenvectors


def apply_label_map(
    values: PairValues, label_map: LabelMap
) -> FloatArray | SparseScores:
    """Multiply pair values by a map of labels.

    Parameters
    ----------
    values : PairValues
        One value per instance-label pair.
    label_map : ndarray of shape (l, l) or HeadTailMap
        What each label adds to each other label.

    Returns
    -------
    ndarray of shape (n, l) or SparseScores
    """
    if not isinstance(label_map, HeadTailMap):
        return product(values.to_matrix(), label_map)

    n_labels = values.shape[1]
    default = np.zeros(n_labels)
    named = values.to_matrix()[:, label_map.labels]
    scores = label_map.applied(named, default, lambda moved, _: best(moved, default))
    if isinstance(values, NamedValues):
        scores = _fill_unseen_instances(scores, values, label_map)
    return SparseScores(scores, default)


def get_map_column(label_map: LabelMap, label: int, n_labels: int) -> FloatArray:
    """Return what each label adds to one label, (l,)."""
    if isinstance(label_map, HeadTailMap):
        return label_map.column(label, n_labels)
    return np.asarray(label_map[:, label])


def _fill_unseen_instances(
    scores: Any, values: NamedValues, label_map: HeadTailMap
) -> Any:
    """Return scores (n, l) in which instances that no model saw have the prior's."""
    pairs = values.pairs
    is_unseen = np.asarray(~pairs.participation.any(axis=1))
    rows = np.flatnonzero(is_unseen[pairs.group])
    if len(rows) == 0:
        return scores

    prior = np.asarray(values.other[pairs.group[rows[0]]], dtype=np.float64)
    row = sparse.csr_array(label_map.whole(prior)[np.newaxis])
    row = best(row, np.zeros(values.shape[1]))
    pieces = [scores, sparse.vstack([row] * len(rows), format="csr")]
    order = np.arange(len(pairs.group))
    order[rows] = len(pairs.group) + np.arange(len(rows))
    return sparse.vstack(pieces, format="csr")[order]


def _shrink_head_and_tail(rows: Any, scale: float) -> HeadTailMap:
    """Return K (I + K)^-1, K the scaled Gram matrix of rows in a large label space."""
    # The head: products of frequent labels with all others.
    order, n_head = head_first(rows.sum(axis=0))
    head = np.empty((n_head, len(order)), dtype=single(n_head, len(order)))
    for labels, products in with_head(rows, order, n_head):
        head[labels] = products * scale

    # The tail: products of rare labels, in pieces.
    diagonal = rows.power(2).sum(axis=0)[order[n_head:]] * scale
    tail = (
        (labels, products * scale)
        for labels, (products,) in among_tail(order, n_head, rows)
    )
    label_map = shrunk(order, head, diagonal, tail)
    if not np.isfinite(label_map.bound):
        raise InputError(
            where="MLCM-a",
            found=f"rare labels (other than the {n_head:,} most frequent) that occur "
            "together too often",
            expected="fewer of these; --method filter supports such predictions",
        )
    return label_map


def head_size(named: int) -> int:
    """Tell how many of so many named labels are in the head.

    Examples
    --------
    >>> head_size(2000), head_size(100_000)
    (2000, 1024)
    """
    if named <= EXACT:
        return named
    return HEAD


def head_first(counts: Any) -> tuple[Any, int]:
    """Order labels by how often each was named, those never named left out, and say how many are in the head.

    Examples
    --------
    >>> head_first(np.array([0, 1, 5]))
    (array([2, 1]), 2)
    """
    order = np.argsort(-counts, kind="stable")[: max(1, np.count_nonzero(counts))]
    return order, head_size(len(order))


def with_head(rows: Any, order: Any, h: int) -> Iterator[tuple[slice, FloatArray]]:
    """Walk the Gram matrix of CSR rows, some labels of the head at a time: which these are, and their rows (k, c).

    Examples
    --------
    >>> [(some, own.tolist()) for some, own in with_head(sparse.csr_array([[1.0, 2.0, 0.0]]), np.array([1, 0]), 1)]
    [(slice(0, 1, None), [[4.0, 2.0]])]
    """
    own = rows[:, order]
    across = own[:, :h].T.tocsr()
    size = max(1, _AT_ONCE // len(order))
    pieces = (slice(at, min(h, at + size)) for at in range(0, h, size))
    return map_on_threads(
        lambda some: (some, check_interrupted((across[some] @ own).toarray())), pieces
    )


def single(h: int, c: int) -> Any:
    """Tell in which precision the map of c labels is kept: with a tail, rounding is less than what first order leaves.

    Examples
    --------
    >>> single(2, 2).__name__, single(2, 3).__name__
    ('float64', 'float32')
    """
    if c > h:
        return np.float32
    return np.float64


def among_tail(
    order: Any, h: int, *each: Any
) -> Iterator[tuple[slice, tuple[Any, ...]]]:
    """Walk the Gram matrices of some CSR rows among labels of the tail, some labels at a time, as CSR (k, c - h).

    Examples
    --------
    >>> [own.toarray().tolist() for _, (own,) in among_tail(np.array([1, 0]), 1, sparse.csr_array([[3.0, 2.0]]))]
    [[[9.0]]]
    """
    tails = [rows[:, order[h:]] for rows in each]
    across = [own.T.tocsr() for own in tails]
    sizes = np.diff(tails[0].indptr)

    def multiplied(some: slice) -> tuple[slice, tuple[Any, ...]]:
        return some, tuple(
            check_interrupted((left[some] @ own).tocsr())
            for left, own in zip(across, tails, strict=True)
        )

    return map_on_threads(
        multiplied,
        in_pieces(
            np.bincount(tails[0].indices, np.repeat(sizes, sizes), len(order) - h)
        ),
    )


def shrunk(
    labels: Any,
    head: FloatArray,
    diagonal: FloatArray,
    tail: Iterable[tuple[slice, Any]],
) -> HeadTailMap:
    """Return K (I + K)^-1 for a matrix K of c labels, the first h of them the head.

    Parameters
    ----------
    labels : ndarray of shape (c,)
        Positions of the labels.
    head : ndarray of shape (h, c)
        Rows of K of the head.
    diagonal : ndarray of shape (c - h,)
        Diagonal of E, the part of K between labels of the tail.
    tail : iterable of (slice, csr_array)
        Which rows of E a piece holds, and these rows.

    Returns
    -------
    HeadTailMap

    Examples
    --------
    >>> K = sparse.csr_array([[1.0, 0.1, 0.0], [0.1, 0.05, 0.0], [0.0, 0.0, 0.02]])
    >>> exact = K.toarray() @ np.linalg.inv(np.eye(3) + K.toarray())
    >>> tail = [(slice(0, 2), K[1:, 1:])]
    >>> label_map = shrunk(np.arange(3), K[:1].toarray(), K.diagonal()[1:], tail)
    >>> error = abs(label_map.column(1, 3) - exact[:, 1]).max()
    >>> bool(error <= label_map.bound < 0.02)
    True
    """
    h, c = head.shape
    n_tail = c - h
    kind = single(h, c)
    inverse_diagonal = 1 / (1 + diagonal)  # D⁻¹
    pieces = in_pieces(np.full(n_tail, h))
    damping = 1.0

    def compute_spread(rows: Any) -> Any:
        """Return rows of X (k, h)."""
        weights = damping * inverse_diagonal[rows, None]
        return (weights * head[:, h:].T[rows]).astype(kind)

    # S = I + K_HH - Bᵀ X
    explained = np.zeros((h, h))
    for rows in pieces:
        explained = explained + check_interrupted(
            head[:, h:][:, rows] @ compute_spread(rows)
        )
    factor, damping = _factor_schur_complement(head[:, :h], explained)

    # F_HH = I - S⁻¹, and F_TH = X S⁻¹ in pieces.
    inverse = linalg.cho_solve(factor, np.eye(h), check_finite=False)
    columns = np.empty((c, h), dtype=kind)
    columns[:h] = np.eye(h) - inverse
    inverse = inverse.astype(kind)
    size = np.empty(n_tail)  # norms of the rows of X
    for rows in pieces:
        spread = compute_spread(rows)
        columns[h:][rows] = check_interrupted(spread @ inverse)
        size[rows] = np.sqrt((spread**2).sum(axis=1))

    # F_TT by way of the head, X S⁻¹ Xᵀ, for the labels with the largest rows of X.
    largest = size.max(initial=0)
    near = np.argsort(-size, kind="stable")[:_NEAR]
    near = near[size[near] * largest > LEAST]
    beyond = float(np.delete(size, near).max(initial=0)) * float(largest)
    by_head = columns[h + near] @ compute_spread(near).T
    through_head, dropped = _keep_strongest(by_head, near)

    # F_TT directly: I - D⁻¹ + D⁻¹ (E - diag E) D⁻¹.
    positions = np.arange(n_tail)
    entries = [through_head, (1 - inverse_diagonal, positions, positions)]
    direct, left_out, rho = _compute_direct_tail(tail, inverse_diagonal)
    entries += direct
    data, row, column = (np.concatenate(part) for part in zip(*entries, strict=True))
    tail_map = sparse.csr_array(
        (data.astype(kind), (h + row, h + column)), shape=(c, c)
    )

    bound = _EXACT
    if n_tail:
        by_first_order = 2 * rho * float(np.abs(columns[h:]).max())
        higher_orders = _bound_higher_orders(rho)
        bound = dropped + left_out + beyond + higher_orders + by_first_order
    return HeadTailMap(labels, columns, tail_map, bound=bound)


# Values, rows and columns of a sparse matrix.
_Entries = tuple[Array, Array, Array]


def _factor_schur_complement(
    head: FloatArray, explained: FloatArray
) -> tuple[Any, float]:
    """Return the Cholesky factor of S, and the factor by which X is multiplied.

    If the first order of the tail is too large, S is not positive definite, and X is
    halved until it is.
    """
    damping = 1.0
    while True:
        system = np.eye(len(head)) + head - damping * explained
        try:
            return linalg.cho_factor(system, check_finite=False), damping
        except linalg.LinAlgError:
            damping *= 0.5


def _keep_strongest(by_head: FloatArray, near: Array) -> tuple[_Entries, float]:
    """Return the strongest entries of each row, negated, and the largest other one."""
    n_near = len(near)
    strength = np.abs(by_head)
    starts = np.arange(n_near + 1) * n_near
    smallest = np.maximum(kth_best(starts, strength.ravel(), NEIGHBOURS), LEAST)
    strength[strength < smallest[:, None]] = 0

    dropped = float((np.abs(by_head) - strength).max(initial=LEAST))
    row, column = np.nonzero(strength)
    return (-by_head[row, column], near[row], near[column]), dropped


def _compute_direct_tail(
    tail: Iterable[tuple[slice, Any]], inverse_diagonal: FloatArray
) -> tuple[list[_Entries], float, float]:
    """Return the strongest entries of D⁻¹ (E - diag E) D⁻¹.

    The second value is the largest entry that is left out, the third ρ, the largest row
    sum of D⁻¹ |E - diag E|.
    """
    entries: list[_Entries] = []
    left_out = LEAST
    rho = 0.0
    for piece, rows in tail:
        local_row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        row = np.arange(len(inverse_diagonal))[piece][local_row]
        is_diagonal = row == rows.indices
        values = np.where(is_diagonal, 0, rows.data * inverse_diagonal[row])
        rho = max(rho, float(np.bincount(row, np.abs(values), 1).max()))

        values *= inverse_diagonal[rows.indices]
        strength = np.abs(values)
        smallest = np.maximum(kth_best(rows.indptr, strength, NEIGHBOURS), LEAST)
        is_strong = strength >= smallest[local_row]
        left_out = max(left_out, float(strength[~is_strong].max(initial=LEAST)))
        entries.append((values[is_strong], row[is_strong], rows.indices[is_strong]))
    return entries, left_out, rho


def _bound_higher_orders(rho: float) -> float:
    """Return a bound of the terms of (I + E)^-1 from the second order on."""
    if rho < 0.5:
        return rho**2 / (1 - rho)
    return np.inf


def _at(scale: FloatArray | float, places: Any) -> Any:
    if isinstance(scale, np.ndarray):
        return scale[places]
    return scale


def _key(rows: Any, labels: Any) -> Any:
    return (rows * 1009 + labels) & (_TABLE - 1)
