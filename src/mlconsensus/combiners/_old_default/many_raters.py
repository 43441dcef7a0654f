r"""The rater filter for panels of many labels: the same sums and equations, at the cells that somebody named.

Sums over pairs of labels are kept at pairs that were named together: what each rater's mean takes off them has a rank
no higher than the number of raters, and is added to these pairs in the end. A label that was never named beside another
has nothing to do with it. Correlations are drawn to 0 as in the dense route; each label then hears those neighbours
that it correlates most with, by a small system of its own.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from ...linalg.block_sums import FloatArray, ratio
from ...linalg.head_tail_map import HeadTailMap, order_by_frequency
from ...linalg.head_tail_shrinkage import (
    SMALLEST_ENTRY,
    choose_dtype,
    iterate_head_products,
    iterate_tail_products,
    shrink_head_and_tail,
)
from ...linalg.sparse_scores import (
    MOST_NAMED,
    Said,
    SparseScores,
    best,
    by_label,
    in_pieces,
)
from ...predictions import Predictions
from .raters import possible, products_of_raters, signals, spread_of

Paired = Callable[[FloatArray, FloatArray], FloatArray]
_GROUPS = 64  # of labels of the tail by what chance explains, where pairs that never met are counted


def rates(block: Predictions) -> tuple[Any, ...]:
    """Add up how often raters say yes."""
    found, m = Said.by(block), len(block.models)
    heard = found.seen.sum(axis=0)[:, None] * found.known
    return found.sums(), found.sums(2), heard, np.zeros((m, m)), 0.0


def pairs(block: Predictions, mean: FloatArray) -> tuple[FloatArray, ...]:
    """Add up products of what two raters said about the same cell; x = y − μ where both spoke, multiplied out."""
    found, m = Said.by(block), len(block.models)
    met, own, mean = found.seen.T @ found.seen, found.known, mean * found.known
    products, squares = met * (mean @ mean.T), met * (mean**2 @ own.T)
    for k, A in enumerate(found.parts):
        products[k] -= (found.seen * (A @ mean.T)).sum(axis=0)
        products[:, k] -= (found.seen * (A @ mean.T)).sum(axis=0)
        off = sparse.csr_array(
            (A.data * (A.data - 2 * mean[k][A.indices]), A.indices, A.indptr),
            shape=A.shape,
        )
        squares[k] += (found.seen * (off @ own.T)).sum(axis=0)
        for q in range(k, m):
            both = A.multiply(found.parts[q]).sum()
            products[k, q] += both
            products[q, k] += both if q > k else 0
    return products, np.maximum(squares, 0), met * (own @ own.T)


def _levels(found: Said, trusted: FloatArray) -> FloatArray:
    """Add up `products_of_raters` at the cells that were named; all others are a no."""
    votes = []
    for power in (
        1,
        2,
        3,
        4,
    ):  # no score becomes 0 by that, so that all four have the same cells
        each = (
            (np.maximum(A.data, 1e-60) ** power, A.indices, A.indptr)
            for A in found.parts
        )
        scores = (sparse.csr_array(own, found.parts[0].shape) for own in each)
        votes.append(found._replace(parts=tuple(scores)).folded(trusted))
    of_labels: Any = partial(np.bincount, votes[0].indices, minlength=trusted.shape[1])
    return products_of_raters(
        [one.data for one in votes], found.spread(trusted, votes[0]), of_labels
    )


def sums(block: Predictions, known: Any, trusted: FloatArray) -> tuple[Any, ...]:
    """Add up what `rater_filter.Statistics` holds, products of labels as raw ones and what means take off them."""
    found = Said.by(block)
    u, b, mean = known.weight, known.information, known.mean
    W, n = u * mean, found.seen.sum(axis=0)
    S, met = found.folded(u), found.seen.T @ found.seen
    crossed, total = (S.T @ found.seen).T, found.sums()
    own = found.sums(2) - 2 * mean * total + n[:, None] * mean**2 * found.known  # Σ x²
    expected = found.spread(W, S)
    Z = sparse.csr_array((S.data - expected, S.indices, S.indptr), shape=S.shape)
    with_all = np.array([A.multiply(Z).sum(axis=0) for A in found.parts]) - mean * (
        crossed - met @ W
    )  # Σ x Z
    square = sparse.csr_array(
        (S.data * (S.data - 2 * expected), S.indices, S.indptr), shape=S.shape
    )
    squared, (squares, read) = (square.T @ found.seen).T, np.zeros((2, S.shape[1]))
    trusted = trusted[:, None] * found.known
    levels = _levels(found, trusted)
    levels[0] = 0
    for seen, rows in found.groups():
        levels[0] += len(rows) * (seen @ trusted > 3)
        information, off = seen @ b, seen @ W
        some = information > 1e-9
        here = square[rows].sum(axis=0) + len(rows) * off**2
        squares += ratio(np.maximum(here, 0), np.where(some, information, 0) ** 2, 0.0)
        read += len(rows) * some.astype(np.float64)
        squared += len(rows) * np.outer(seen, off**2)
    knows, few = found.known, np.flatnonzero(np.diff(S.indptr) <= MOST_NAMED)
    alone = [by_label(A[few], w) for A, w in zip(found.parts, u, strict=True)]
    return (
        (S[few],), (sparse.vstack(alone, format="csr"),), met @ b, n[:, None] * b, squares, read,
        (with_all - u * own) * knows,
        np.maximum(met @ b - n[:, None] * b, 0) * knows,
        np.maximum(squared - 2 * u * with_all + u**2 * own, 0) * knows, levels,
        met @ W / 2 - crossed, n[:, None] * W / 2 - u * total,
    )  # fmt: skip


def signal(
    sums: Any, known: Any, together: FloatArray, alone: FloatArray, paired: Paired
) -> FloatArray:
    """Find the covariances of the signals of two labels, from products of what was said.

    `paired` adds up over raters the products of two arrays (m, l), one at the first labels, one at the second.
    """
    b, W = known.information, known.weight * known.mean
    together = together + paired(sums.together_less, W) + paired(W, sums.together_less)
    alone = alone + paired(sums.alone_less, W) + paired(W, sums.alone_less)
    return signals(
        together, alone, paired(sums.informed, b), paired(sums.informed_alone, b)
    )


def all_pairs(rows: Any, columns: Any) -> Paired:
    """Pair each of some labels (k,) with each of some others (c,): (k, c)."""
    return lambda left, right: left[:, rows].T @ right[:, columns]


def some_pairs(first: Any, second: Any) -> Paired:
    """Pair some labels (k,) each with one other: (k,)."""
    return lambda left, right: np.einsum("kj,kj->j", left[:, first], right[:, second])


def variances(sums: Any, known: Any) -> FloatArray:
    """Find the variances of the labels' common signals (l,)."""
    together, alone = (
        sum(own.power(2).sum(axis=0) for own in rows)
        for rows in (sums.together, sums.alone)
    )
    return signal(sums, known, together, alone, some_pairs(slice(None), slice(None)))


def filtering(
    sums: Any,
    known: Any,
    scale: FloatArray,
    own: FloatArray,
    active: Any,
    noise: FloatArray,
) -> HeadTailMap:
    """Correlate labels, draw that to 0 as far as chance explains it, and solve for (Φ + N)⁻¹ Φ.

    Covariances are divided by the labels' `scale` (l,); chance gives two labels' correlation a variance that is the
    product of what is each one's `own` (l,).
    """
    rows = [
        sparse.vstack(pieces, format="csr") for pieces in (sums.together, sums.alone)
    ]
    order, h = order_by_frequency(
        np.where(active, np.bincount(rows[0].indices, minlength=len(noise)), 0)
    )
    order[h:] = order[h:][np.argsort(own[order[h:]], kind="stable")]
    head = np.empty((h, len(order)), dtype=choose_dtype(h, len(order)))
    for (some, together), (_, alone) in zip(
        *(iterate_head_products(each, order, h) for each in rows), strict=True
    ):
        found = signal(sums, known, together, alone, all_pairs(order[some], order))
        head[some] = np.clip(found / np.outer(scale[order[some]], scale[order]), -1, 1)
    c, own, root = len(order), own[order], np.sqrt(noise[order] + 1e-6)
    group = (
        np.arange(c - h) * _GROUPS // max(1, c - h)
    )  # labels that chance treats alike
    beyond, met = np.zeros(_GROUPS**2), []
    for some, (together, alone) in iterate_tail_products(order, h, *rows):
        pairs = sparse.triu(together + 1j * alone, some.start + 1, "coo")
        i, j = some.start + pairs.row, pairs.col
        first, second = order[h + i], order[h + j]
        found = signal(
            sums, known, pairs.data.real, pairs.data.imag, some_pairs(first, second)
        )
        found = np.clip(found / (scale[first] * scale[second]), -1, 1)
        beyond += np.bincount(group[i] * _GROUPS + group[j], 2 * found**2, _GROUPS**2)
        met.append((found.astype(head.dtype), i.astype(np.int32), j.astype(np.int32)))
    spread = _spread(head, beyond.reshape(_GROUPS, _GROUPS), group, own)
    for k in range(h):
        head[k] *= spread / (spread + own[k] * own)
    head[:, :h] = possible(head[:, :h].astype(np.float64))
    head /= root
    head /= root[:h, None]
    stored = [(head[0, :0], group[:0], group[:0])]
    while met:
        found, i, j = met.pop()
        found *= (
            spread / (spread + own[h + i] * own[h + j]) / (root[h + i] * root[h + j])
        )
        kept = np.abs(found) >= SMALLEST_ENTRY
        stored.append((found[kept], i[kept], j[kept]))
    found, i, j = map(np.concatenate, zip(*stored, strict=True))
    tail = sparse.csr_array((found, (i, j)), shape=(c - h, c - h))
    tail = (tail + tail.T).tocsr()
    pieces = ((some, tail[some]) for some in in_pieces(np.diff(tail.indptr)))
    label_map = shrink_head_and_tail(order, head, 1 / root[h:] ** 2, pieces)
    return replace(label_map, input_scale=1 / root, output_scale=root)


def _spread(head: FloatArray, beyond: FloatArray, group: Any, own: FloatArray) -> float:
    """Estimate the variance of correlations beyond chance, as `raters.label_correlations` does.

    Squares of the tail's correlations are added up in groups; pairs that never met correlate by 0.
    """
    h, g = len(head), len(beyond)
    size = np.concatenate(
        [np.ones(h), np.bincount(group, minlength=g).astype(np.float64)]
    )
    usual = np.concatenate(
        [
            own[:h],
            ratio(np.bincount(group, own[h:], g).astype(np.float64), size[h:], 0.0),
        ]
    )
    square = np.zeros((h + g, h + g))
    square[h:, h:] = beyond
    for k in range(h):
        square[k, :h] = head[k, :h].astype(np.float64) ** 2
        square[k, h:] = square[h:, k] = np.bincount(
            group, head[k, h:].astype(np.float64) ** 2, g
        )
    square[np.arange(h), np.arange(h)] = 0
    pairs = np.outer(size, size) - np.diag(size)
    return spread_of(
        np.sqrt(ratio(square, pairs, 0.0)), np.outer(usual, usual), 1e-8, pairs
    )


def apply(
    block: Predictions, solution: Any, per_answer: Any, floor: float
) -> SparseScores:
    """Pool the answers about named labels, filter by how far they are from what noes of all would be, add the vote."""
    found = Said.by(block)
    voting, share = float(solution.votes), 1 - float(solution.votes)
    off, trusted = (
        solution.vote * solution.mean,
        solution.trusted[:, None] * found.known,
    )
    silent = -off.sum(axis=0) * per_answer(solution.information.sum(axis=0), solution)
    base = share * (solution.prior + solution.filter.multiply_row(silent))
    unheard = np.where(trusted.any(axis=0), 0.0, solution.prior) * voting
    default = np.maximum(base, 0) + unheard + floor * share * solution.prior
    # A label that is named has its cell, though who names it may not count.
    votes, reading = (
        found.folded(trusted),
        found.folded(np.where(solution.vote == 0, 1e-200, solution.vote)),
    )
    informed = per_answer(
        found.spread(solution.information, reading), solution, reading.indices
    )
    reading.data = share * (
        (reading.data - found.spread(off, reading)) * informed - silent[reading.indices]
    )
    heard = found.spread(trusted, votes)
    votes.data = ratio(votes.data, heard, 0.0) * voting - unheard[votes.indices]

    def finished(moved: Any, rows: slice) -> Any:
        own = base[moved.indices]
        moved.data = np.maximum(own + moved.data, 0) - np.maximum(own, 0)
        return best(moved + votes[rows], default)

    return SparseScores(
        solution.filter.multiply_rows(reading[:, solution.filter.labels], base, finished),
        default,
    )
