r"""The rater filter for panels of many labels: the same sums and equations, at the cells that somebody named.

Sums over pairs of labels are kept at pairs that were named together: what each rater's mean takes off them has a rank
no higher than the number of raters, and is added to these pairs in the end. A label that was never named beside another
has nothing to do with it. Correlations are drawn to 0 as in the dense route; each label then hears those neighbours
that it correlates most with, by a small system of its own.
"""

from typing import Any

import numpy as np
from scipy import sparse

from ..arithmetic.many import ManyScores, best, in_pieces, paired, said, sparse_gram
from ..arithmetic.products import FloatArray, ratio
from ..panel.predictions import Predictions

_NEIGHBOURS = 32  # labels that one label hears
_BINS = 50  # of the logarithm of what chance explains, for each factor of e
_AT_ONCE = 2048  # labels whose systems are solved at a time


def rates(block: Predictions) -> tuple[Any, ...]:
    """Add up how often raters say yes."""
    found, m = said(block), len(block.models)
    heard = found.seen.sum(axis=0)[:, None] * found.known
    return found.sums(), found.sums(2), heard, np.zeros((m, m)), 0.0


def pairs(block: Predictions, mean: FloatArray) -> tuple[FloatArray, ...]:
    """Add up products of what two raters said about the same cell; x = y − μ where both spoke, multiplied out."""
    found, m = said(block), len(block.models)
    met, own, mean = found.seen.T @ found.seen, found.known, mean * found.known
    products, squares = met * (mean @ mean.T), met * (mean**2 @ own.T)
    for k, A in enumerate(found.parts):
        products[k] -= (found.seen * (A @ mean.T)).sum(axis=0)
        products[:, k] -= (found.seen * (A @ mean.T)).sum(axis=0)
        off = sparse.csr_array((A.data * (A.data - 2 * mean[k][A.indices]), A.indices, A.indptr), shape=A.shape)
        squares[k] += (found.seen * (off @ own.T)).sum(axis=0)
        for q in range(k, m):
            both = A.multiply(found.parts[q]).sum()
            products[k, q] += both
            products[q, k] += both if q > k else 0
    return products, np.maximum(squares, 0), met * (own @ own.T)


def sums(block: Predictions, known: Any) -> tuple[Any, ...]:
    """Add up what `rater_filter.Statistics` holds, products of labels as raw ones and what means take off them."""
    found = said(block)
    u, b, mean = known.weight, known.information, known.mean
    W, n = u * mean, found.seen.sum(axis=0)
    S, met = found.folded(u), found.seen.T @ found.seen
    crossed, total = (S.T @ found.seen).T, found.sums()
    own = found.sums(2) - 2 * mean * total + n[:, None] * mean**2 * found.known  # Σ x²
    expected = found.spread(W, S)
    Z = sparse.csr_array((S.data - expected, S.indices, S.indptr), shape=S.shape)
    with_all = np.array([A.multiply(Z).sum(axis=0) for A in found.parts]) - mean * (crossed - met @ W)  # Σ x Z
    square = sparse.csr_array((S.data * (S.data - 2 * expected), S.indices, S.indptr), shape=S.shape)
    squared, (squares, read) = (square.T @ found.seen).T, np.zeros((2, S.shape[1]))
    for seen, rows in found.groups():
        information, off = seen @ b, seen @ W
        some = information > 1e-9
        here = square[rows].sum(axis=0) + len(rows) * off**2
        squares += ratio(np.maximum(here, 0), np.where(some, information, 0) ** 2, 0.0)
        read += len(rows) * some.astype(np.float64)
        squared += len(rows) * np.outer(seen, off**2)
    alone = sum(sparse_gram(_scaled(A, w)) for A, w in zip(found.parts, u, strict=True) if w.any())
    knows = found.known
    return (
        sparse_gram(S) + 1j * alone, 0, met @ b, n[:, None] * b, squares, read, (with_all - u * own) * knows,
        np.maximum(met @ b - n[:, None] * b, 0) * knows,
        np.maximum(squared - 2 * u * with_all + u**2 * own, 0) * knows,
        met @ W / 2 - crossed, n[:, None] * W / 2 - u * total,
    )  # fmt: skip


def signal(sums: Any, known: Any) -> tuple[Any, FloatArray]:
    """Find the covariances of the labels' common signals at pairs that were named together, and the variances (l,).

    The same as `rater_filter._signal`, above the diagonal and on it.
    """
    b, W = known.information, known.weight * known.mean
    cells = sparse.triu(sums.together + 1e-300j * sparse.eye_array(W.shape[1]), format="csr")
    together, alone = (
        raw + paired(low, W, cells) + paired(W, low, cells)
        for raw, low in ((cells.data.real, sums.together_less), (cells.data.imag, sums.alone_less))
    )
    informed = np.maximum(paired(sums.informed, b, cells), 1e-12)
    share = paired(sums.informed_alone, b, cells) / informed
    usable = np.clip(2 * (1 - share), 0, 1)
    found = usable * (together - alone) / np.maximum(informed * (1 - share), 1e-3 * informed)
    found += (1 - usable) * together / informed
    covariances = sparse.csr_array((found, cells.indices, cells.indptr), shape=cells.shape)
    return covariances, covariances.diagonal()


def correlations(found: Any, scale: FloatArray, variance: FloatArray, n: FloatArray, active: Any) -> Any:
    """Draw covariances, divided by the labels' scale, to 0 as far as chance explains: CSR (l, l), 1 on the diagonal.

    Pairs that were never named together correlate by 0. Chance is a product of two labels' own numbers, so that pairs
    are counted by the sum of two logarithms.
    """
    l = len(variance)
    rows = np.repeat(np.arange(l), np.diff(found.indptr))
    kept = active[rows] & active[found.indices] & (rows < found.indices)
    rows, columns, values = rows[kept], found.indices[kept], found.data[kept]
    values = np.clip(values / (scale[rows] * scale[columns]), -1, 1)
    own = np.maximum(variance / np.sqrt(n), 1e-150)
    bins = np.round(_BINS * np.log(own)).astype(np.int64)
    low = int(bins[active].min(initial=0))
    bins = np.where(active, bins - low, 0)
    labels = np.bincount(bins[active], minlength=1).astype(np.float64)
    count = (np.convolve(labels, labels) - np.bincount(2 * bins[active], minlength=2 * len(labels) - 1)) / 2
    square = np.bincount(bins[rows] + bins[columns], values**2, len(count))
    chance, spread = np.exp((np.arange(len(count)) + 2 * low) / _BINS), 0.03
    for _ in range(30):  # as `raters.spread_of`
        trust = 1 / (chance + spread) ** 2
        spread = max(1e-8, float(trust @ (square - count * chance)) / max(float(trust @ count), 1e-300))
    values *= spread / (spread + own[rows] * own[columns])
    upper = sparse.csr_array((values, (rows, columns)), shape=(l, l))
    return (upper + upper.T + sparse.diags_array(active.astype(np.float64))).tocsr()


def neighbours_filter(related: Any, noise: FloatArray, gain: FloatArray, active: Any) -> Any:
    """Solve (Φ + N) w = Φ for each label and those it correlates most with: CSR (l, l), a column a label."""
    l, size = len(noise), np.diff(related.indptr)
    order = np.lexsort((-np.abs(related.data), np.repeat(np.arange(l), size)))
    place = np.arange(len(order)) - np.repeat(related.indptr[:-1], size)  # its own 1 comes first
    width = min(_NEIGHBOURS + 1, int(size.max(initial=1)))
    near, there = np.zeros((l, width), dtype=np.int64), np.zeros((l, width), dtype=np.bool_)
    rows, kept = np.repeat(np.arange(l), size), place < width
    near[rows[kept], place[kept]], there[rows[kept], place[kept]] = related.indices[order[kept]], True
    weights = np.zeros((l, width))
    every = np.flatnonzero(active)
    for start in range(0, len(every), _AT_ONCE):
        at = every[start : start + _AT_ONCE]
        own, mask = near[at], there[at][:, :, None] & there[at][:, None, :]
        pairs = np.broadcast_arrays(own[:, :, None], own[:, None, :])
        among = np.asarray(related[pairs[0].ravel(), pairs[1].ravel()]).reshape(mask.shape) * mask
        among += ~there[at][:, :, None] * np.eye(width)
        if (odd := np.linalg.eigvalsh(among)[:, 0] < 0).any():  # as `raters.label_correlations`
            values, vectors = np.linalg.eigh(among[odd])
            near_to = (vectors * np.maximum(values, 0)[:, None, :]) @ vectors.transpose(0, 2, 1)
            scale = np.sqrt(np.maximum(np.einsum("akk->ak", near_to), 1e-12))
            among[odd] = near_to / scale[:, :, None] / scale[:, None, :]
        system = among + (noise[own] + 1e-6)[:, :, None] * np.eye(width)
        weights[at] = np.linalg.solve(system, among[:, :, :1])[:, :, 0] * gain[at][:, None]
    kept = there & (weights != 0)
    columns = np.broadcast_to(np.arange(l)[:, None], kept.shape)
    return sparse.csr_array((weights[kept], (near[kept], columns[kept])), shape=(l, l))


def apply(block: Predictions, solution: Any, per_answer: Any, floor: float) -> ManyScores:
    """Pool the answers about named labels, filter by how far they are from what noes of all would be, add the vote."""
    found = said(block)
    voting, share = float(solution.votes), 1 - float(solution.votes)
    off, trusted = solution.vote * solution.mean, solution.trusted[:, None] * found.known
    silent = -off.sum(axis=0) * per_answer(solution.information.sum(axis=0), solution)
    base = share * (solution.prior + silent @ solution.filter)
    unheard = np.where(trusted.any(axis=0), 0.0, solution.prior) * voting
    default = np.maximum(base, 0) + unheard + floor * share * solution.prior
    named = found.folded(np.ones_like(off))
    votes, reading = found.folded(trusted), found.folded(solution.vote)
    informed = per_answer(found.spread(solution.information, reading), solution, reading.indices)
    reading.data = share * ((reading.data - found.spread(off, reading)) * informed - silent[reading.indices])
    heard = found.spread(trusted, votes)
    votes.data = ratio(votes.data, heard, 0.0) * voting - unheard[votes.indices]

    def made(rows: slice) -> Any:
        moved = reading[rows] @ solution.filter
        own = base[moved.indices]
        moved.data = np.maximum(own + moved.data, 0) - np.maximum(own, 0)
        return best(moved + votes[rows], default)

    cost = np.diff(solution.filter.indptr)[named.indices]
    pieces = in_pieces(np.add.reduceat(np.append(cost, 0), named.indptr[:-1]) * (np.diff(named.indptr) > 0))
    return ManyScores(sparse.vstack([made(rows) for rows in pieces], format="csr"), default)


def _scaled(A: Any, weights: FloatArray) -> Any:
    return sparse.csr_array((A.data * weights[A.indices], A.indices, A.indptr), shape=A.shape)
