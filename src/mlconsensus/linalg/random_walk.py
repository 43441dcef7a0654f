r"""The linear system of a walk that stops at its anchors, solved on whichever side is cheapest.

With rows `R` (n × v) whose Gram matrix :math:`W = R^\top R` holds the walk between `v`
nodes, row sums `d` of it and anchors :math:`\alpha`,

.. math:: (E - R^\top R)\, Q = H, \qquad E = \operatorname{diag}(\alpha + d).

- Where `W` is at hand, Cholesky's method solves the `v` equations in place.
- Fewer rows than nodes: `n` equations do (Woodbury's identity),
  :math:`Q = E^{-1}(H + R^\top X)`, :math:`(I - R E^{-1} R^\top)\, X = R E^{-1} H`.
- `W` does not fit into memory: conjugate gradients, scaled by the diagonal, multiply by
  `R` and :math:`R^\top` only. The matrix has no positive entry off its diagonal and
  maps the vector of ones to :math:`\alpha`, so its inverse has no negative entry and
  maps :math:`\alpha` to ones: an error of the solution is nowhere larger than
  :math:`\max_j |r_j| / \alpha_j` of the residual `r`, and that is at most
  :math:`\|E^{-1/2} r\|_2` divided by the least :math:`\alpha_j / e_j^{1/2}`, which is
  what ends the rounds.

Where labels are many, `Q` itself would not fit. A walk soon forgets where it began:
:math:`P = E^{-1} R^\top R` has one eigenvalue near 1, whose eigenvector `x` says where
walks come to stop as usual, :math:`q_0 \propto H^\top x`, and all others are at most
some :math:`\lambda < 1`. What is left of a distribution beside :math:`q_0` is
multiplied by :math:`(I - P)^{-1}`, for which a polynomial in `P` of few steps does that
is within :math:`\varepsilon` of :math:`1/(1 - t)` for all :math:`0 \le t \le \lambda`:

.. math:: Q \approx p(P)\, \sigma B + (1 - p(P)\, \sigma)\, q_0^\top, \qquad \sigma = \alpha/(\alpha + d), \qquad
    |\Delta Q_{j\ell}| \le \varepsilon\, e_j^{-1/2} \bigl(\textstyle\sum_{k \in \ell} \alpha_k^2 / e_k\bigr)^{1/2} .

Labels of the head get as many steps as make :math:`\varepsilon` small, in dense
columns; others two, at the nodes that they were named beside.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, cg

from ..errors import InputError
from ..execution.threads import check_interrupted, get_limits, map_on_threads
from ..predictions import Array, Matrix
from .block_sums import FloatArray, product, row_sums, scaled
from .gram import Gram
from .label_map import HeadTailMap, head_first
from .sparse_scores import SparseScores, best, in_pieces

# that conjugate gradients leave in the solution, whose entries are shares between 0 and
# 1
_ERROR = 1e-11
_ARRAYS = 6  # of the solution's size that they need at once
_SMALL = 1e-4  # ε of the head's labels
_STEPS = 12  # that a walk takes at most before the rest counts as usual
_COLUMNS = 32  # of the head that are worked out at a time
_MOST = 2**27  # numbers in the head's columns, unless there is no tail


def solved(walk: Gram, anchors: FloatArray, held: FloatArray) -> FloatArray:
    """Return Q (v, l), given the walk, the anchors (v,) and H (v, l).

    Examples
    --------
    >>> solved(Gram.of(np.array([[0.6, 0.8]])), np.ones(2), np.eye(2)).round(2)
    array([[0.76, 0.24],
           [0.24, 0.76]])
    """
    rows = walk.rows
    v = len(anchors)
    if rows is None:
        system = -np.asarray(walk).reshape(v, v)
        system[np.diag_indices(v)] += anchors - system.sum(axis=1)
        return _by_cholesky(system, held)

    diagonal = anchors + walk.sums()
    if rows.shape[0] < v:
        return _on_the_rows_side(rows, diagonal, held)
    return _by_conjugate_gradients(rows, diagonal, anchors, held)


def _on_the_rows_side(rows: Any, diagonal: FloatArray, held: FloatArray) -> FloatArray:
    weighted = scaled(
        rows.T.tocsr() if sparse.issparse(rows) else rows.T, 1 / diagonal
    )  # E⁻¹ Rᵀ
    system = np.eye(rows.shape[0]) - product(rows, weighted)
    return held / diagonal[:, None] + product(
        weighted, _by_cholesky(system, product(weighted.T, held))
    )


def _by_cholesky(system: FloatArray, held: FloatArray) -> FloatArray:
    """Solve a positive definite system in its own place; SciPy's `solve` makes two copies of it, and takes longer."""
    factor = linalg.cho_factor(
        system.T, lower=True, overwrite_a=True, check_finite=False
    )  # columns, as LAPACK wants
    return np.asarray(
        linalg.cho_solve(factor, held, overwrite_b=True, check_finite=False)
    )


def _by_conjugate_gradients(
    rows: Any, diagonal: FloatArray, anchors: FloatArray, held: FloatArray
) -> FloatArray:
    (v, l) = held.shape
    root = np.sqrt(diagonal)[:, None]
    if sparse.issparse(rows):
        across = rows.T.tocsr()
    else:
        across = rows.T

    most = 50 + round(
        40 * np.sqrt(2 * (diagonal / anchors).max())
    )  # several times what the condition number asks for
    small = _ERROR * float((anchors / root[:, 0]).min())
    limits = get_limits()
    memory = limits.memory
    threads = limits.threads
    at_once = int(
        np.clip(memory // 4 // (8 * _ARRAYS * v * threads), 1, -(-l // threads))
    )

    def work_out(
        start: int,
    ) -> FloatArray:  # some columns as one vector: (I − E^-½ RᵀR E^-½) E^½ Q = E^-½ H
        own = held[:, start : start + at_once] / root

        def moved(x: FloatArray) -> FloatArray:
            y = x.reshape(own.shape)
            return check_interrupted(
                y - product(across, product(rows, y / root)) / root
            ).ravel()

        with np.errstate(all="ignore"):  # a residual that has vanished
            operator = LinearOperator((own.size, own.size), moved)
            found, going_on = cg(
                operator, own.ravel(), rtol=0, atol=small, maxiter=most
            )

        missed = f"no solution to {_ERROR:g} in {most} rounds of conjugate gradients"
        advice = (
            "one; a larger alpha, or more memory for a direct solution, makes it easier"
        )
        if going_on:
            raise InputError(where="MLCM-r", found=missed, expected=advice)
        return np.asarray(found.reshape(own.shape) / root)

    return np.concatenate(list(map_on_threads(work_out, range(0, l, at_once))), axis=1)


class RandomWalkMap(NamedTuple):
    """Q of many labels: what is beside the usual distribution, at nodes that have edges."""

    nodes: Any  # (k,) their positions
    map: HeadTailMap  # from nodes to labels; those of the head with the usual part
    rest: FloatArray  # (k,) how much of a walk is usual, for labels of the tail
    usual: FloatArray  # (l,) q₀
    bound: FloatArray  # (l,) on the error of a label's scores

    def column(self, label: int, v: int) -> FloatArray:
        """Return one label's column of Q (v,)."""
        own = self.map
        h = self.map.columns.shape[1]
        found = self.rest * self.usual[label]
        for place in np.flatnonzero(own.labels == label):
            if place < h:
                found = own.columns[:, place]
            else:
                found = found + own.tail[:, [place]].toarray()[:, 0]

        out = np.zeros(v)
        out[self.nodes] = found
        return out


# Distributions over labels, one row per node.
Distributions = FloatArray | RandomWalkMap


def solve_random_walk(
    walk: Gram,
    anchors: FloatArray,
    n_labels: int,
    source: FloatArray | None = None,
    anchors_without_label: Array | None = None,
) -> Distributions:
    """Return where walks from each node stop.

    Parameters
    ----------
    walk : Gram
        Walks between v nodes. The first nodes stand for the labels, in turn for each
        model; further nodes (clusters) do not stand for a label.
    anchors : ndarray
        How strongly each node that stands for a label is tied to it.
    n_labels : int
        Number of labels.
    source : ndarray of shape (v, l), default=None
        Added to the right-hand side.
    anchors_without_label : ndarray, default=None
        Anchors of the further nodes, which are tied to what `source` has for them.

    Returns
    -------
    ndarray of shape (v, l) or RandomWalkMap
        Rows are distributions. In large label spaces the result is approximate.
    """
    if walk.is_large:
        return walked(walk.rows, n_labels, lambda nodes, _: anchors[nodes])

    nodes = np.arange(len(anchors))
    if anchors_without_label is not None:
        all_anchors = np.append(anchors, anchors_without_label)
    else:
        all_anchors = anchors
    right_side = np.zeros((len(all_anchors), n_labels))
    if source is not None:
        right_side += source
    right_side[nodes, nodes % n_labels] += anchors

    # Rows are distributions; rounding errors are largest in their sums.
    distributions = np.maximum(solved(walk, all_anchors, right_side), 0)
    distributions /= distributions.sum(axis=1, keepdims=True)
    return distributions


def mix_distributions(
    edges: Matrix, distributions: Distributions, prior: FloatArray
) -> FloatArray | SparseScores:
    """Mix the distributions of the nodes that each instance is connected to.

    Parameters
    ----------
    edges : matrix of shape (n, v)
        Shares of the nodes; rows sum to 1, or to 0 for an instance without edges.
    distributions : ndarray of shape (v, l) or RandomWalkMap
        Distribution over labels of each node.
    prior : ndarray of shape (l,)
        Distribution of an instance without edges.

    Returns
    -------
    ndarray of shape (n, l) or SparseScores
    """
    if isinstance(distributions, RandomWalkMap):
        return _mix_large(edges, distributions)

    scores = product(edges, distributions)
    scores[row_sums(edges) == 0] = prior
    return np.asarray(np.clip(scores, 0, 1, out=scores))


def get_distribution_column(
    distributions: Distributions, label: int, n_nodes: int
) -> FloatArray:
    """Return the probability of one label at each node, (v,)."""
    if isinstance(distributions, RandomWalkMap):
        return distributions.column(label, n_nodes)
    return np.asarray(distributions[:, label])


def _mix_large(edges: Matrix, groups: RandomWalkMap) -> SparseScores:
    """Mix the distributions of group nodes in a large label space."""
    connected = edges[:, groups.nodes]
    remainder = connected @ groups.rest

    # Labels of the tail share what remains of the walk, in proportion to their priors.
    head_size = groups.map.columns.shape[1]
    tail_labels = groups.map.labels[head_size:]
    tail_prior = np.zeros(len(groups.usual))
    tail_prior[tail_labels] = groups.usual[tail_labels]

    def keep_best(scores: Any, rows: slice) -> Any:
        row_remainder = np.repeat(remainder[rows], np.diff(scores.indptr))
        scores.data += row_remainder * tail_prior[scores.indices]
        scores.data -= groups.usual[scores.indices]
        return best(scores, groups.usual)

    scores = groups.map.applied(connected, tail_prior, keep_best)
    return SparseScores(scores, groups.usual)


def walked(rows: Any, l: int, anchors_of: Any) -> RandomWalkMap:
    """Solve for Q (v, l) of many labels, given the rows as CSR, and what makes anchors of nodes (k,) and degrees (k,).

    Examples
    --------
    >>> found = walked(sparse.csr_array([[0.6, 0.8]]), 2, lambda nodes, degrees: np.ones(2))
    >>> found.column(0, 2).round(2).tolist()
    [0.76, 0.24]
    """
    # Nodes with many edges first: they are met most, and stay in the processor's
    # memory.
    nodes = head_first(np.bincount(rows.indices, minlength=rows.shape[1]))[0][
        : len(rows.data)
    ]
    R = rows[:, nodes]
    R.sort_indices()
    across = R.T.tocsr()
    label = nodes % l
    degrees = across @ R.sum(axis=1)
    anchors = anchors_of(nodes, degrees)
    e = anchors + degrees
    stops = anchors / e

    def step(y: FloatArray) -> FloatArray:
        return np.asarray(across @ (R @ y) / e)

    x = np.ones(len(nodes))
    y = np.cos(np.arange(len(nodes)) ** 2.0)
    top = 0.0
    for _ in range(60):  # the leading eigenvector, and the eigenvalue that follows
        x = step(x)
        x /= np.abs(x).max(initial=1e-300)

    for _ in range(60):
        y = step(y - x * (((x * e) @ y) / max((x * e) @ x, 1e-300)))
        y /= max(top := float(np.sqrt((y * e) @ y)), 1e-300)

    top = min(1.05 * top + 1e-6, 0.999)
    if len(nodes):
        usual = np.bincount(label, anchors * x, l) / max(anchors @ x, 1e-300)
    else:
        usual = np.full(l, 1 / l)

    tried = (_polynomial(top, degree) for degree in range(1, _STEPS + 1))
    c, small = min(tried, key=lambda own: max(own[1], _SMALL))
    order, h = head_first(
        np.bincount(label, degrees + 1e-9, l)
    )  # every node has a label there
    if len(order) > h:
        h = min(h, max(1, _MOST // len(nodes)))

    place = np.full(l, -1)
    place[order] = np.arange(len(order))
    at = place[label]

    # Where walks from an instance stop at their first node; across the nodes, where
    # they stop at the second.
    direct = R.data * stops[R.indices], at[R.indices], R.indptr.copy()
    direct = sparse.csr_array(direct, shape=(R.shape[0], len(order)))
    direct.sum_duplicates()  # in place

    def rest(coefficients: list[float]) -> FloatArray:
        y = stops
        out = np.ones(len(nodes))
        for own in coefficients:
            out = out - own * y
            y = step(y)

        return out

    # Labels of the head, some at a time, so few that they stay in the processor's
    # memory.
    back, there, first = (
        own.astype(np.float32)
        for own in (scaled(across, 1 / e), R, direct[:, :h].tocsc())
    )
    going = rest(c).astype(np.float32)[:, None]
    often = usual[order].astype(np.float32)
    columns = np.empty((len(nodes), h), dtype=np.float32)

    def work_out(start: int) -> None:  # by Horner's rule
        some = slice(start, min(h, start + _COLUMNS))
        inside = np.flatnonzero((at >= some.start) & (at < some.stop))

        def arrived(walks: FloatArray, share: float) -> FloatArray:
            found = np.asarray(check_interrupted(back @ walks))
            found[inside, at[inside] - start] += share * stops[inside]
            return found

        walks = c[-1] * first[:, some].tocsr().toarray()
        for own in c[-2:0:-1]:
            walks = there @ arrived(walks, own)

        columns[:, some] = arrived(walks, c[0]) + going * often[some]

    for _ in map_on_threads(work_out, range(0, h, _COLUMNS)):
        pass

    # Labels of the tail, at the nodes that they were named beside most.
    c, rough = _polynomial(top, 1)
    direct = direct[:, h:].tocsr()
    none = np.zeros(len(order) - h)
    dropped = 0.0
    parts = [direct[:0]]
    cost = np.diff(
        np.append(0, np.cumsum(np.diff(direct.indptr)[across.indices]))[across.indptr]
    )
    for some in in_pieces(cost):
        near = check_interrupted(
            scaled((across[some] @ direct).tocsr(), c[1] / e[some])
        )
        parts.append(best(near, none))
        least = np.minimum.reduceat(
            np.append(parts[-1].data, np.inf), parts[-1].indptr[:-1]
        )
        dropped = max(
            dropped,
            least[np.diff(parts[-1].indptr) < np.diff(near.indptr)].max(initial=0),
        )

    far = np.flatnonzero(at >= h)
    own = sparse.csr_array(
        (c[0] * stops[far], (far, at[far])), shape=(len(nodes), len(order))
    )
    near = sparse.vstack(parts, format="csr")
    tail = (
        sparse.csr_array((near.data, near.indices + h, near.indptr), shape=own.shape)
        + own
    )
    inside = (place >= 0) & (place < h)
    bound = np.where(inside, small, rough) * np.sqrt(
        np.bincount(label, anchors**2 / e, l) / e.min(initial=np.inf)
    )
    bound += 1e-6 + np.where(inside, 0, dropped)  # the map is float32
    found = HeadTailMap(
        order, columns, tail.tocsr().astype(np.float32), symmetric=False
    )
    return RandomWalkMap(nodes, found, rest(c), usual, bound)


def _polynomial(top: float, degree: int) -> tuple[list[float], float]:
    """Return the coefficients of a polynomial that is near 1/(1 − t) for 0 ≤ t ≤ top, and how near."""
    t = (
        top / 2 * (1 + np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1)))
    )  # Chebyshev's points
    found = np.linalg.solve(np.vander(t, increasing=True), 1 / (1 - t))
    t = np.linspace(0, top, 1000)
    return found.tolist(), float(
        np.abs(np.polynomial.polynomial.polyval(t, found) - 1 / (1 - t)).max()
    )
