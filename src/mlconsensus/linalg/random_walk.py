r"""Random walks between nodes that stop at anchors.

The rows `R` (n, v) have the Gram matrix :math:`W = R^\top R`, which holds the walk
between `v` nodes. With its row sums `d` and the anchors :math:`\alpha`, the system is

.. math:: (E - R^\top R)\, Q = H, \qquad E = \operatorname{diag}(\alpha + d).

`solve_system` solves it in the cheapest of three ways.

- If `W` was computed, Cholesky's method solves the `v` equations in place.
- With fewer rows than nodes, `n` equations are enough (Woodbury's identity):
  :math:`Q = E^{-1}(H + R^\top X)`, :math:`(I - R E^{-1} R^\top)\, X = R E^{-1} H`.
- If `W` does not fit into memory, conjugate gradients, scaled by the diagonal, multiply
  by `R` and :math:`R^\top` only. The system's matrix has no positive entry off its
  diagonal and maps the vector of ones to :math:`\alpha`, so its inverse has no negative
  entry and maps :math:`\alpha` to ones. An error of the solution is therefore at most
  :math:`\max_j |r_j| / \alpha_j` of the residual `r`. That is at most
  :math:`\|E^{-1/2} r\|_2` divided by the smallest :math:`\alpha_j / e_j^{1/2}`, which
  is the criterion to stop.

In large label spaces, `Q` does not fit into memory, and `approximate_random_walk`
approximates it. A walk soon forgets its first node: :math:`P = E^{-1} R^\top R` has one
eigenvalue near 1, whose eigenvector `x` gives the distribution
:math:`q_0 \propto H^\top x` of long walks. All other eigenvalues are at most
some :math:`\lambda < 1`. The difference between a distribution and :math:`q_0` is
multiplied by :math:`(I - P)^{-1}`. A polynomial `p` of low degree is within
:math:`\varepsilon` of :math:`1/(1 - t)` for all :math:`0 \le t \le \lambda`:

.. math::

    Q \approx p(P)\, \sigma B + (1 - p(P)\, \sigma)\, q_0^\top, \qquad
    \sigma = \alpha/(\alpha + d),

    |\Delta Q_{j\ell}| \le \varepsilon\, e_j^{-1/2}
    \bigl(\textstyle\sum_{k \in \ell} \alpha_k^2 / e_k\bigr)^{1/2} .

Frequent labels (the head) get a polynomial with a small :math:`\varepsilon`, in dense
columns. Other labels (the tail) get a polynomial of degree 1, in sparse columns.

========================  ==================  ==================================
symbol                    variable            shape
========================  ==================  ==================================
:math:`R`                 ``rows``            (n, v), or (n, k) with edges only
:math:`\alpha`            ``anchors``         (v,) or (k,)
:math:`e`                 ``diagonal``        (v,) or (k,)
:math:`H`                 ``right_side``      (v, l)
:math:`\sigma`            ``stops``           (k,) probability to stop at a node
:math:`B`                 ``labels``          (k,) label of each node
:math:`q_0`               ``prior``           (l,)
:math:`x`                 ``stationary``      (k,)
:math:`\lambda`           ``decay``           number
:math:`p`                 ``coefficients``    from degree 0 upwards
:math:`\varepsilon`       ``error``           number
:math:`1 - p(P) \sigma`   ``remainder``       (k,)
========================  ==================  ==================================
"""

from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, cg

from ..errors import InputError
from ..execution.threads import check_interrupted, get_limits, map_on_threads
from ..predictions import Array, FloatArray, IntArray
from .block_sums import product, row_sums, scale_rows
from .gram import Gram
from .head_tail_map import HeadTailMap, order_by_frequency
from .matrix_types import CSRArray, DenseOrCSR, RowSlice
from .sparse_scores import SparseScores, in_pieces, select_best

# Largest error of a solution by conjugate gradients. Its entries are in [0, 1].
_ERROR = 1e-11
# Arrays of the solution's size that conjugate gradients need at once.
_ARRAYS = 6
# ε of labels in the head that is small enough.
_SMALL = 1e-4
# Highest degree of the polynomial.
_STEPS = 12
# Iterations of the power method.
_POWER_ITERATIONS = 60
# Columns of the head that are computed at a time, so that they stay in the cache.
_COLUMNS = 32
# Numbers in the head's columns, unless there is no tail.
_MOST = 2**27
# Avoids a division by 0.
_TINY = 1e-300


def solve_system(walk: Gram, anchors: FloatArray, right_side: FloatArray) -> FloatArray:
    """Return the solution Q of (E - W) Q = H.

    Parameters
    ----------
    walk : Gram
        W, the walk between v nodes.
    anchors : ndarray of shape (v,)
        How strongly each node is tied to the right-hand side.
    right_side : ndarray of shape (v, l)
        H; it may be overwritten.

    Returns
    -------
    ndarray of shape (v, l)

    Examples
    --------
    >>> walk = Gram.from_rows(np.array([[0.6, 0.8]]))
    >>> solve_system(walk, np.ones(2), np.eye(2)).round(2)
    array([[0.76, 0.24],
           [0.24, 0.76]])
    """
    rows = walk.rows
    n_nodes = len(anchors)
    if rows is None:
        system = -np.asarray(walk).reshape(n_nodes, n_nodes)
        system[np.diag_indices(n_nodes)] += anchors - system.sum(axis=1)
        return _solve_by_cholesky(system, right_side)

    diagonal = anchors + walk.sum_rows()
    if rows.shape[0] < n_nodes:
        return _solve_by_woodbury(rows, diagonal, right_side)
    return _solve_by_conjugate_gradients(rows, diagonal, anchors, right_side)


def _transpose(rows: DenseOrCSR) -> DenseOrCSR:
    """Return the transposed matrix, as CSR if the matrix is sparse."""
    if sparse.issparse(rows):
        return rows.T.tocsr()
    return rows.T


def _solve_by_woodbury(
    rows: DenseOrCSR, diagonal: FloatArray, right_side: FloatArray
) -> FloatArray:
    """Solve a system with one equation per row instead of one per node."""
    weighted = scale_rows(_transpose(rows), 1 / diagonal)  # E⁻¹ Rᵀ
    system = np.eye(rows.shape[0]) - product(rows, weighted)
    row_solution = _solve_by_cholesky(system, product(weighted.T, right_side))  # X
    return right_side / diagonal[:, np.newaxis] + product(weighted, row_solution)


def _solve_by_cholesky(system: FloatArray, right_side: FloatArray) -> FloatArray:
    """Solve a positive definite system in place.

    SciPy's `solve` makes two copies of the system and takes longer.
    """
    # LAPACK expects columns, hence the transposed (symmetric) matrix.
    factor = linalg.cho_factor(
        system.T, lower=True, overwrite_a=True, check_finite=False
    )
    solution = linalg.cho_solve(
        factor, right_side, overwrite_b=True, check_finite=False
    )
    return np.asarray(solution)


def _solve_by_conjugate_gradients(
    rows: DenseOrCSR, diagonal: FloatArray, anchors: FloatArray, right_side: FloatArray
) -> FloatArray:
    """Solve (I - E^-½ RᵀR E^-½) E^½ Q = E^-½ H, some columns at a time."""
    n_nodes, n_labels = right_side.shape
    transposed = _transpose(rows)
    root = np.sqrt(diagonal)[:, np.newaxis]  # E^½

    # Several times the number of iterations that the condition number needs.
    max_iter = 50 + round(40 * np.sqrt(2 * (diagonal / anchors).max()))
    tolerance = _ERROR * float((anchors / root[:, 0]).min())

    # As many columns at a time as fit into memory.
    limits = get_limits()
    bytes_per_column = 8 * _ARRAYS * n_nodes * limits.threads
    columns_per_thread = -(-n_labels // limits.threads)
    n_columns = int(
        np.clip(limits.memory // 4 // bytes_per_column, 1, columns_per_thread)
    )

    def solve_columns(start: int) -> FloatArray:
        target = right_side[:, start : start + n_columns] / root

        def multiply(vector: FloatArray) -> FloatArray:
            columns = vector.reshape(target.shape)
            walks = product(transposed, product(rows, columns / root))
            return check_interrupted(columns - walks / root).ravel()

        with np.errstate(all="ignore"):  # the residual may vanish
            operator = LinearOperator((target.size, target.size), multiply)
            solution, status = cg(
                operator, target.ravel(), rtol=0, atol=tolerance, maxiter=max_iter
            )

        if status:
            raise InputError(
                where="MLCM-r",
                found=f"no solution to {_ERROR:g} in {max_iter} rounds of conjugate "
                "gradients",
                expected="one; a larger alpha, or more memory for a direct solution, "
                "makes it easier",
            )
        return np.asarray(solution.reshape(target.shape) / root)

    starts = range(0, n_labels, n_columns)
    return np.concatenate(list(map_on_threads(solve_columns, starts)), axis=1)


@dataclass(frozen=True, kw_only=True)
class RandomWalkMap:
    """Q in a large label space, at the k nodes that have edges."""

    nodes: IntArray  # (k,) positions of the nodes
    # From nodes to labels. Labels of the head include their share of the prior.
    label_map: HeadTailMap
    remainder: FloatArray  # (k,) share of the prior, for labels of the tail
    prior: FloatArray  # (l,) q₀, the distribution of long walks
    bound: FloatArray  # (l,) largest error of a label's scores

    def compute_column(self, label: int, n_nodes: int) -> FloatArray:
        """Return one label's column of Q, shape (v,)."""
        n_head = self.label_map.n_head
        column = self.remainder * self.prior[label]
        for position in np.flatnonzero(self.label_map.labels == label):
            if position < n_head:
                column = self.label_map.columns[:, position]
            else:
                column = column + self.label_map.tail[:, [position]].toarray()[:, 0]

        out = np.zeros(n_nodes)
        out[self.nodes] = column
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
        return approximate_random_walk(walk.rows, anchors, n_labels)

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
    distributions = np.maximum(solve_system(walk, all_anchors, right_side), 0)
    distributions /= distributions.sum(axis=1, keepdims=True)
    return distributions


def mix_distributions(
    edges: DenseOrCSR, distributions: Distributions, prior: FloatArray
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
        return distributions.compute_column(label, n_nodes)
    return np.asarray(distributions[:, label])


def _mix_large(edges: CSRArray, groups: RandomWalkMap) -> SparseScores:
    """Mix the distributions of group nodes in a large label space."""
    connected = edges[:, groups.nodes]
    remainder = connected @ groups.remainder

    # Labels of the tail share what remains of the walk, in proportion to their priors.
    n_head = groups.label_map.n_head
    tail_labels = groups.label_map.labels[n_head:]
    tail_prior = np.zeros(len(groups.prior))
    tail_prior[tail_labels] = groups.prior[tail_labels]

    def keep_best(scores: CSRArray, rows: RowSlice) -> CSRArray:
        row_remainder = np.repeat(remainder[rows], np.diff(scores.indptr))
        scores.data += row_remainder * tail_prior[scores.indices]
        scores.data -= groups.prior[scores.indices]
        return select_best(scores, groups.prior)

    scores = groups.label_map.multiply_rows(connected, tail_prior, keep_best)
    return SparseScores(scores, groups.prior)


@dataclass(frozen=True, kw_only=True)
class _LargeWalk:
    """A random walk between the k nodes that have edges."""

    nodes: IntArray  # (k,) positions of the nodes
    labels: IntArray  # (k,) label of each node
    rows: CSRArray  # CSR (n, k), R
    transposed: CSRArray  # CSR (k, n), Rᵀ
    anchors: FloatArray  # (k,) α
    degrees: FloatArray  # (k,) d
    diagonal: FloatArray  # (k,) e
    stops: FloatArray  # (k,) σ, the probability that a walk stops at a node

    def step(self, values: FloatArray) -> FloatArray:
        """Return P y for values y (k,)."""
        return np.asarray(self.transposed @ (self.rows @ values) / self.diagonal)


@dataclass(frozen=True, kw_only=True)
class _LabelOrder:
    """Labels from the most to the least frequent; the first are the head."""

    labels: IntArray  # (c,)
    n_head: int
    position: IntArray  # (l,) position of each label, -1 for labels without nodes
    node_position: IntArray  # (k,) position of each node's label


def approximate_random_walk(
    rows: CSRArray, anchors: FloatArray, n_labels: int
) -> RandomWalkMap:
    """Approximate Q in a large label space.

    Parameters
    ----------
    rows : csr_array of shape (n, v)
        R; the label of node j is ``j % n_labels``.
    anchors : ndarray of shape (v,)
        How strongly each node is tied to its label.
    n_labels : int
        Number of labels.

    Returns
    -------
    RandomWalkMap

    Examples
    --------
    >>> rows = sparse.csr_array([[0.6, 0.8]])
    >>> walk_map = approximate_random_walk(rows, np.ones(2), 2)
    >>> walk_map.compute_column(0, 2).round(2).tolist()
    [0.76, 0.24]
    """
    walk = _make_large_walk(rows, anchors, n_labels)

    # Long walks, and how fast a walk forgets its first node.
    stationary = _compute_stationary_vector(walk)
    decay = _estimate_decay(walk, stationary)
    prior = _compute_prior(walk, stationary, n_labels)

    # Where walks from an instance stop at their first node.
    order = _order_labels(walk, n_labels)
    n_head = order.n_head
    first_stops = _compute_first_stops(walk, order)

    # Frequent labels: a polynomial with a small error.
    coefficients, head_error = _choose_polynomial(decay)
    remainder = _compute_remainder(walk, coefficients)
    columns = _walk_to_head(walk, order, first_stops[:, :n_head].tocsc(), coefficients)
    columns += np.multiply.outer(
        remainder.astype(np.float32), prior[order.labels[:n_head]].astype(np.float32)
    )

    # Other labels: one step.
    coefficients, tail_error = _fit_polynomial(decay, 1)
    tail, dropped = _walk_to_tail(
        walk, order, first_stops[:, n_head:].tocsr(), coefficients
    )

    # The bound of the module's docstring, and rounding, since the map is float32.
    is_head = (order.position >= 0) & (order.position < n_head)
    label_size = np.bincount(walk.labels, walk.anchors**2 / walk.diagonal, n_labels)
    bound = np.where(is_head, head_error, tail_error) * np.sqrt(
        label_size / walk.diagonal.min(initial=np.inf)
    )
    bound += 1e-6 + np.where(is_head, 0, dropped)

    label_map = HeadTailMap(
        labels=order.labels, columns=columns, tail=tail, is_symmetric=False
    )
    return RandomWalkMap(
        nodes=walk.nodes,
        label_map=label_map,
        remainder=_compute_remainder(walk, coefficients),
        prior=prior,
        bound=bound,
    )


def _make_large_walk(rows: CSRArray, anchors: FloatArray, n_labels: int) -> _LargeWalk:
    """Return the walk between nodes with edges."""
    # Nodes with many edges come first: they are used most, and stay in the cache.
    n_edges = np.bincount(rows.indices, minlength=rows.shape[1])
    nodes = order_by_frequency(n_edges)[0][: len(rows.data)]

    connected = rows[:, nodes]
    connected.sort_indices()
    transposed = connected.T.tocsr()
    degrees = transposed @ connected.sum(axis=1)
    diagonal = anchors[nodes] + degrees
    return _LargeWalk(
        nodes=nodes,
        labels=nodes % n_labels,
        rows=connected,
        transposed=transposed,
        anchors=anchors[nodes],
        degrees=degrees,
        diagonal=diagonal,
        stops=anchors[nodes] / diagonal,
    )


def _compute_stationary_vector(walk: _LargeWalk) -> FloatArray:
    """Return x, the leading eigenvector of P, by the power method."""
    vector = np.ones(len(walk.nodes))
    for _ in range(_POWER_ITERATIONS):
        vector = walk.step(vector)
        vector /= np.abs(vector).max(initial=_TINY)
    return vector


def _estimate_decay(walk: _LargeWalk, stationary: FloatArray) -> float:
    """Return λ, slightly above the second eigenvalue of P."""
    # Eigenvectors of P are orthogonal in the inner product with weights e.
    weighted = stationary * walk.diagonal
    squared_norm = max(float(weighted @ stationary), _TINY)

    vector = np.cos(np.arange(len(walk.nodes)) ** 2.0)
    eigenvalue = 0.0
    for _ in range(_POWER_ITERATIONS):
        vector = walk.step(vector - stationary * ((weighted @ vector) / squared_norm))
        eigenvalue = float(np.sqrt((vector * walk.diagonal) @ vector))
        vector /= max(eigenvalue, _TINY)
    return min(1.05 * eigenvalue + 1e-6, 0.999)


def _compute_prior(
    walk: _LargeWalk, stationary: FloatArray, n_labels: int
) -> FloatArray:
    """Return q₀ (l,), the distribution over labels of long walks."""
    if len(walk.nodes) == 0:
        return np.full(n_labels, 1 / n_labels)
    total = max(float(walk.anchors @ stationary), _TINY)
    return np.bincount(walk.labels, walk.anchors * stationary, n_labels) / total


def _order_labels(walk: _LargeWalk, n_labels: int) -> _LabelOrder:
    """Order labels by the degrees of their nodes and choose the head."""
    # The small number keeps labels whose nodes have degree 0.
    frequency = np.bincount(walk.labels, walk.degrees + 1e-9, n_labels)
    labels, n_head = order_by_frequency(frequency)
    if len(labels) > n_head:
        n_head = min(n_head, max(1, _MOST // len(walk.nodes)))

    position = np.full(n_labels, -1)
    position[labels] = np.arange(len(labels))
    return _LabelOrder(
        labels=labels,
        n_head=n_head,
        position=position,
        node_position=position[walk.labels],
    )


def _compute_first_stops(walk: _LargeWalk, order: _LabelOrder) -> CSRArray:
    """Return R σ B as CSR (n, c): walks that stop at their first node."""
    rows = walk.rows
    entries = (
        rows.data * walk.stops[rows.indices],
        order.node_position[rows.indices],
        rows.indptr.copy(),
    )
    first_stops = sparse.csr_array(entries, shape=(rows.shape[0], len(order.labels)))
    first_stops.sum_duplicates()
    return first_stops


def _compute_remainder(walk: _LargeWalk, coefficients: list[float]) -> FloatArray:
    """Return 1 - p(P) σ (k,), the share of long walks."""
    power = walk.stops  # P^i σ
    remainder = np.ones(len(walk.nodes))
    for coefficient in coefficients:
        remainder = remainder - coefficient * power
        power = walk.step(power)
    return remainder


def _walk_to_head(
    walk: _LargeWalk,
    order: _LabelOrder,
    first_stops: CSRArray,
    coefficients: list[float],
) -> Array:
    """Return p(P) σ B of the head's labels (k, h), by Horner's rule in float32."""
    back = scale_rows(walk.transposed, 1 / walk.diagonal).astype(np.float32)  # E⁻¹ Rᵀ
    rows = walk.rows.astype(np.float32)
    first_stops = first_stops.astype(np.float32)
    columns = np.empty((len(walk.nodes), order.n_head), dtype=np.float32)

    def fill_columns(start: int) -> None:
        stop = min(order.n_head, start + _COLUMNS)
        is_inside = (order.node_position >= start) & (order.node_position < stop)
        inside = np.flatnonzero(is_inside)
        label = order.node_position[inside] - start

        def add_stops(walks: Array, coefficient: float) -> Array:
            arrived = np.asarray(check_interrupted(back @ walks))
            arrived[inside, label] += coefficient * walk.stops[inside]
            return arrived

        walks = coefficients[-1] * first_stops[:, start:stop].tocsr().toarray()
        for coefficient in coefficients[-2:0:-1]:
            walks = rows @ add_stops(walks, coefficient)
        columns[:, start:stop] = add_stops(walks, coefficients[0])

    for _ in map_on_threads(fill_columns, range(0, order.n_head, _COLUMNS)):
        pass

    return columns


def _walk_to_tail(
    walk: _LargeWalk,
    order: _LabelOrder,
    first_stops: CSRArray,
    coefficients: list[float],
) -> tuple[CSRArray, float]:
    """Return p(P) σ B of the tail's labels, and the largest entry that is dropped.

    The result is CSR (k, c) of float32. Each node keeps its best labels only.
    """
    n_head = order.n_head
    shape = (len(walk.nodes), len(order.labels))
    default = np.zeros(len(order.labels) - n_head)
    transposed = walk.transposed

    # Walks that stop at their second node: P σ B.
    n_stops = np.diff(first_stops.indptr)[transposed.indices]
    cost = np.diff(np.append(0, np.cumsum(n_stops))[transposed.indptr])
    dropped = 0.0
    pieces = [first_stops[:0]]
    for nodes in in_pieces(cost):
        second_stops = (transposed[nodes] @ first_stops).tocsr()
        second_stops = scale_rows(second_stops, coefficients[1] / walk.diagonal[nodes])
        piece = select_best(check_interrupted(second_stops), default)
        pieces.append(piece)

        # A dropped entry is at most the smallest one that is kept.
        smallest = np.minimum.reduceat(np.append(piece.data, np.inf), piece.indptr[:-1])
        has_dropped = np.diff(piece.indptr) < np.diff(second_stops.indptr)
        dropped = max(dropped, smallest[has_dropped].max(initial=0))

    second = sparse.vstack(pieces, format="csr")
    second = sparse.csr_array(
        (second.data, second.indices + n_head, second.indptr), shape=shape
    )

    # Walks that stop at their first node: σ B.
    tail_nodes = np.flatnonzero(order.node_position >= n_head)
    first = sparse.csr_array(
        (
            coefficients[0] * walk.stops[tail_nodes],
            (tail_nodes, order.node_position[tail_nodes]),
        ),
        shape=shape,
    )
    return (second + first).tocsr().astype(np.float32), dropped


def _choose_polynomial(decay: float) -> tuple[list[float], float]:
    """Return the shortest polynomial with a small error, or the best one."""
    candidates = []
    for degree in range(1, _STEPS + 1):
        candidates.append(_fit_polynomial(decay, degree))
    return min(candidates, key=lambda candidate: max(candidate[1], _SMALL))


def _fit_polynomial(decay: float, degree: int) -> tuple[list[float], float]:
    """Return a polynomial near 1/(1 - t) for 0 ≤ t ≤ decay, and its largest error."""
    angles = np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1)
    nodes = decay / 2 * (1 + np.cos(angles))  # Chebyshev nodes
    coefficients = np.linalg.solve(np.vander(nodes, increasing=True), 1 / (1 - nodes))

    grid = np.linspace(0, decay, 1000)
    values = np.polynomial.polynomial.polyval(grid, coefficients)
    error = float(np.abs(values - 1 / (1 - grid)).max())
    return coefficients.tolist(), error
