"""The floor of each method: its unavoidable arithmetic with NumPy and SciPy, on complete votes in their best form.

`FLOORS` has for each method a function that brings votes, bool (m, n, l), into that
form, a NumPy array or SciPy matrices, which is not timed, and one that does the
arithmetic. Nothing is checked or named, and all cores are used. tests/test_floors.py
holds the results to the package's.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from scipy import linalg, sparse, special
from threadpoolctl import threadpool_limits

ALPHA = 2.0
_CORES = len(os.sched_getaffinity(0))


def majority_vote(votes):
    m, n, l = votes.shape
    scores = np.empty((n, l))
    _over_rows(
        n, l, lambda rows: np.multiply(_counts(votes, rows), 1 / m, out=scores[rows])
    )
    return scores


def mlcm_a(votes):
    m, n, l = votes.shape
    # Sums of counts are whole numbers, which float32 holds exactly while they are
    # small.
    if m * m * _at_once(n, l) < 2**24:
        narrow = np.float32
    else:
        narrow = np.float64

    def second(rows):
        counts = _counts(votes, rows).astype(narrow)
        return (counts.T @ counts).astype(np.float64)

    g, V = linalg.eigh(sum(_over_rows(n, l, second)) / (m * m * n))
    h = m * g / (1 + m * g)
    filter = (V * (h / m)) @ V.T
    scores = np.empty((n, l))
    _over_rows(
        n,
        l,
        lambda rows: np.matmul(
            _counts(votes, rows).astype(np.float64), filter, out=scores[rows]
        ),
    )
    return scores


def mlcm_r(form):
    blocks, (m, n, l) = form
    walk = np.zeros((m * l, m * l))
    with _one_blas_thread(), ThreadPoolExecutor(_CORES) as pool:
        for part in pool.map(lambda block: block.T @ _by_degree(block), blocks):
            walk += part.toarray()
    degrees = walk.sum(axis=1)
    np.negative(walk, out=walk)
    walk.flat[:: m * l + 1] += ALPHA + degrees
    factor = linalg.cho_factor(walk, lower=True, overwrite_a=True, check_finite=False)
    groups = linalg.cho_solve(
        factor, np.tile(ALPHA * np.eye(l), (m, 1)), overwrite_b=True, check_finite=False
    )
    prior = degrees.reshape(m, l).sum(axis=0) / degrees.sum()
    scores = np.empty((n, l))
    places = np.cumsum([0] + [block.shape[0] for block in blocks])

    def place(block, first):
        here = scores[first : first + block.shape[0]]
        here[:] = _by_degree(block) @ groups
        here[np.diff(block.indptr) == 0] = prior

    with ThreadPoolExecutor(_CORES) as pool:
        list(pool.map(place, blocks, places[:-1]))
    return scores


def bgcm(votes):
    m, n, l = votes.shape
    cells, counts, bits = _patterns(votes)
    pairs = (bits[:, :, None] * bits[:, None, :]).reshape(-1, m * m)
    yes_yes = (counts @ pairs).reshape(l, m, m) / m
    yes = np.diagonal(yes_yes, axis1=1, axis2=2)  # votes are 0 or 1: Σ a² = Σ a
    yes_no = yes[:, :, None] - yes_yes
    no_no = n / m - yes[:, :, None] - yes[:, None, :] + yes_yes
    walk = np.block([[yes_yes, yes_no], [yes_no.transpose(0, 2, 1), no_no]])
    system = (ALPHA + walk.sum(axis=2))[:, :, None] * np.eye(2 * m) - walk
    likely = np.linalg.solve(
        system, np.broadcast_to(ALPHA * np.repeat([1.0, 0.0], m), (l, 2 * m))[..., None]
    )[..., 0]
    gain = likely[:, :m] - likely[:, m:]
    base = likely[:, m:].sum(axis=1, keepdims=True)
    return _looked_up(votes, cells, (base + gain @ bits.T) / m)


def dawid_skene(votes, n_iter=100, tol=1e-5):
    m, n, l = votes.shape
    cells, counts, bits = _patterns(votes)

    def maximise(true):
        says = []
        for weight in (counts * true, counts * (1 - true)):
            yes = weight @ bits
            total = weight.sum(axis=1, keepdims=True)
            yes, no = np.maximum(yes, 1e-10), np.maximum(total - yes, 1e-10)
            says.append(yes / (yes + no))
        return (counts * true).sum(axis=1, keepdims=True) / n, *says

    def odds(prior, if_true, if_false):
        for_no = np.log1p(-if_true) - np.log1p(-if_false)
        for_yes = np.log(if_true) - np.log(if_false)
        return (
            special.logit(prior)
            + for_no.sum(axis=1, keepdims=True)
            + (for_yes - for_no) @ bits.T
        )

    def evidence(true, prior, *says):
        likely = (
            np.log1p(-p).sum(axis=1, keepdims=True) + special.logit(p) @ bits.T
            for p in says
        )
        sides = zip((true, 1 - true), (prior, 1 - prior), likely, strict=True)
        return sum(
            (counts * (t * of + special.xlogy(t, p) - special.xlogy(t, t))).sum(axis=1)
            for t, p, of in sides
        )

    following = maximise(np.broadcast_to(bits.mean(axis=1), counts.shape))
    found = following
    bound = np.full(l, -np.inf)
    active = np.ones(l, dtype=bool)
    for _ in range(n_iter):
        found = [
            np.where(active[:, None], new, old)
            for new, old in zip(following, found, strict=True)
        ]
        true = special.expit(odds(*found))
        following = maximise(true)
        new_bound = evidence(true, *following)
        active &= new_bound - bound >= tol * m * n
        bound = new_bound
        if not active.any():
            break
    return _looked_up(votes, cells, special.expit(odds(*found)))


def connected(votes):
    """The paper's connection matrix (n, m·l) as CSR, in blocks of a size that suits SciPy's product."""
    m, n, l = votes.shape
    blocks = []
    for first, last in pairwise(
        np.linspace(0, n, max(_CORES, n // 2**14) + 1, dtype=int)
    ):
        row, column = np.nonzero(
            votes[:, first:last].transpose(1, 0, 2).reshape(last - first, m * l)
        )
        blocks.append(
            sparse.csr_array(
                (np.ones(len(row)), (row, column)), shape=(last - first, m * l)
            )
        )
    return blocks, votes.shape


# Method: how votes are brought into the best form, and the arithmetic.
FLOORS = {
    "majority_vote": (lambda votes: votes, majority_vote),
    "dawid_skene": (lambda votes: votes, dawid_skene),
    "bgcm": (lambda votes: votes, bgcm),
    "mlcm_r": (connected, mlcm_r),
    "mlcm_a": (lambda votes: votes, mlcm_a),
}


def _patterns(votes):
    """Count patterns of votes: where cells have which, their number for each label (l, 2^m), and who votes in each."""
    m, n, l = votes.shape
    bits = (np.arange(2**m)[:, None] >> np.arange(m) & 1).astype(np.float64)

    def find(rows):
        by_model = votes[:, rows].reshape(m, -1).view(np.uint8)
        where = np.flatnonzero(np.bitwise_or.reduce(by_model, axis=0))
        keys = by_model[0, where].astype(np.intp)
        for k in range(1, m):
            keys |= by_model[k, where].astype(np.intp) << k
        keys += where % l * 2**m
        return rows, where, keys

    cells = _over_rows(n, l, find)
    counts = (
        sum(np.bincount(keys, minlength=l * 2**m) for _, _, keys in cells)
        .reshape(l, 2**m)
        .astype(np.float64)
    )
    counts[:, 0] = n - counts.sum(axis=1)
    return cells, counts, bits


def _looked_up(votes, cells, table):
    """Give each cell the score (l, 2^m) of its pattern; 0 is that of a cell without votes."""
    scores = np.empty(votes.shape[1:])
    of_pattern = table.ravel()

    def place(found):
        rows, where, keys = found
        here = scores[rows]
        here[:] = table[:, 0]
        here.ravel()[where] = of_pattern[keys]

    with ThreadPoolExecutor(_CORES) as pool:
        list(pool.map(place, cells))
    return scores


def _counts(votes, rows):
    return np.add.reduce(votes[:, rows].view(np.uint8), axis=0, dtype=np.uint8)


def _by_degree(block):
    degrees = np.diff(block.indptr)
    return sparse.csr_array(
        (np.repeat(1 / np.maximum(degrees, 1), degrees), block.indices, block.indptr),
        block.shape,
    )


def _at_once(n, l):
    return min(-(-n // _CORES), max(1, 2**19 // l))


def _over_rows(n, l, function):
    """Call a function with slices of the instances, on all cores, with BLAS on one thread in each."""
    step = _at_once(n, l)
    with _one_blas_thread(), ThreadPoolExecutor(_CORES) as pool:
        return list(
            pool.map(
                function,
                [slice(first, min(first + step, n)) for first in range(0, n, step)],
            )
        )


def _one_blas_thread():
    return threadpool_limits(1, user_api="blas")
