r"""Cross-validated linear SVMs, exactly as scikit-learn's ``LinearSVC`` defines them, for many folds at once.

``LinearSVC(C)`` minimises :math:`\tfrac12\|w\|^2 + \tfrac12 b^2 + C\sum_i \max(0, 1 - y_i f_i)^2` with
:math:`f_i = w \cdot x_i + b`, which is strictly convex. With :math:`K = XX^\top + 1` (the one is the regularised
intercept), :math:`f = K\alpha` and :math:`M = K + I/2C`, its one optimum satisfies for every training instance

- active: :math:`(M\alpha)_i = y_i` and :math:`y_i\alpha_i \ge 0` (then :math:`y_i f_i \le 1`);
- inactive: :math:`\alpha_i = 0` and :math:`y_i (y_i - f_i) \le 0`.

That is a linear complementarity problem, which *block principal pivoting* (Júdice and Pires 1994; Kim and Park 2011,
doi:10.1137/110821172) solves exactly, by exchanging active and inactive instances.

Leaving a fold out changes little. Let `T` be the principal pivot transform of `M` on the active set `A` of the solution
on *all* instances (`N`: the inactive), `q` that solution, and `E` the instances that change sides:

.. math::
    T = \begin{pmatrix} G & H \\ -H^\top & M_{NN} - K_{NA} H \end{pmatrix}, \quad G = M_{AA}^{-1}, \quad H = G K_{AN},
    \quad q = \begin{pmatrix} \alpha_A \\ y_N - f_N \end{pmatrix}

    z = T_{EE}^{-1} q_E, \qquad v = q - T_{\cdot E}\, z, \qquad v_E = z

Then `v` holds α of the active and y − f of the inactive, held-out ones included. So a fold costs some systems of the
size of `E`, the fold's support vectors and the few that change sides, instead of passes over all data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

TOLERANCE = 1e-9  # instances closer than this to the margin stay on their side
BAND = 0.05  # the transform covers instances with y·f < 1 + BAND in the full solution; the others are checked later
PATIENCE = 3  # rounds without progress before single exchanges, which always end


def linear_kernel(features: sparse.csr_array) -> Floats:
    """Return K = XXᵀ + 1, (n, n).

    Examples
    --------
    >>> linear_kernel(sparse.csr_array(np.eye(2)))
    array([[2., 1.],
           [1., 2.]])
    """
    return np.asarray((features @ features.T).toarray() + 1.0)


def full_margins(kernel: Floats, truth: Mask, c: float = 1.0) -> Floats:
    """Return y·f of the SVMs trained on all instances, (n, l): where `out_of_fold` starts.

    Examples
    --------
    >>> full_margins(linear_kernel(sparse.csr_array(np.eye(2))), np.array([[True], [False]])).round(4)
    array([[0.6667],
           [0.6667]])
    """
    signs = np.where(truth, 1.0, -1.0)
    # With all instances active this is least squares, with one matrix for all labels.
    margins: Floats = 1.0 - signs * _solve(_ridge(kernel, c), signs) / (2 * c)
    for label, y in enumerate(signs.T):
        exchange = Exchange((margins[:, label] < 1)[None])
        wrong = True
        while wrong:
            active = np.flatnonzero(exchange.active[0])
            rows = kernel[active]
            alpha = _solve(_ridge(rows[:, active], c), y[active])
            margin = y * (alpha @ rows)
            found = exchange.swap(np.array([0]), (margin < 1 - TOLERANCE)[None], (margin > 1 + TOLERANCE)[None])
            wrong = bool(found.any())
        margins[:, label] = margin
    return margins


def out_of_fold(
    kernel: Floats, truth: Mask, margins: Floats, held_out: Sequence[NDArray[np.intp]], c: float = 1.0
) -> list[Mask]:
    """Predict every held-out set, (len(set), l), with the SVMs trained on all other instances.

    The sets need not form one partition: the folds of many shuffles share what depends on the label only. Where only
    one class is left to train on, that class is the prediction.

    Examples
    --------
    >>> kernel = linear_kernel(sparse.csr_array(np.repeat(np.eye(2), 2, axis=0)))
    >>> truth = np.array([[True], [True], [False], [False]])
    >>> out_of_fold(kernel, truth, full_margins(kernel, truth), [np.array([0, 2]), np.array([1, 3])])
    [array([[ True], [False]]), array([[ True], [False]])]
    """
    held = np.zeros((len(held_out), len(truth)), dtype=np.bool_)
    for fold, instances in enumerate(held_out):
        held[fold, instances] = True
    predicted = np.zeros((*held.shape, truth.shape[1]), dtype=np.bool_)
    for label, column in enumerate(truth.T):
        positives = (~held & column).sum(axis=1)
        one_class = (positives == 0) | (positives == (~held).sum(axis=1))
        predicted[one_class, :, label] = positives[one_class, None] > 0
        scores = _scores(kernel, np.where(column, 1.0, -1.0), margins[:, label], held[~one_class], c)
        predicted[~one_class, :, label] = scores > 0
    return [predicted[fold, instances] for fold, instances in enumerate(held_out)]


def _scores(kernel: Floats, y: Floats, margins: Floats, held: Mask, c: float) -> Floats:
    """Return f of all instances, a row for each row of `held`, trained without the instances that row marks."""
    scores = np.empty(held.shape)
    active = (margins < 1) & ~held
    near = margins < 1 + BAND
    pending = np.arange(len(held))
    while len(pending):
        band = np.flatnonzero(near)
        part = np.ix_(pending, band)
        base = margins[band] < 1
        alpha, active[part] = _pivot(kernel[np.ix_(band, band)], y[band], base, active[part], held[part], c)
        scores[pending] = alpha @ kernel[band]
        missed = (y * scores[pending] < 1 - TOLERANCE) & ~held[pending] & ~near
        active[pending] |= missed
        near |= missed.any(axis=0)
        pending = pending[missed.any(axis=1)]
    return scores


def _pivot(kernel: Floats, y: Floats, base: Mask, active: Mask, held: Mask, c: float) -> tuple[Floats, Mask]:
    """Return α (folds, b) and its active sets, from the solution with active set `base` and the guesses `active`."""
    transform, start = _transform(_ridge(kernel, c), y, base)
    exchange = Exchange(active)
    value = np.tile(start, (len(held), 1))
    pending = np.arange(len(held))
    while len(pending):
        z = np.zeros((len(pending), len(y)))
        moved = exchange.active[pending] != base
        for row, swapped in zip(z, map(np.flatnonzero, moved), strict=True):
            row[swapped] = np.linalg.solve(transform[np.ix_(swapped, swapped)], start[swapped])
        value[pending] = np.where(moved, z, start - z @ transform.T)
        signed = y * value[pending]
        pending = pending[exchange.swap(pending, (signed > TOLERANCE) & ~held[pending], signed < -TOLERANCE)]
    return np.where(exchange.active, value, 0.0), exchange.active


def _transform(system: Floats, y: Floats, base: Mask) -> tuple[Floats, Floats]:
    """Return T and q of the module's docstring."""
    a, n = np.flatnonzero(base), np.flatnonzero(~base)
    cross = system[np.ix_(a, n)]
    inverse = _solve(system[np.ix_(a, a)], np.eye(len(a)))
    pivoted = inverse @ cross
    transform, start = np.empty_like(system), np.empty_like(y)
    transform[np.ix_(a, a)], transform[np.ix_(a, n)] = inverse, pivoted
    transform[np.ix_(n, a)], transform[np.ix_(n, n)] = -pivoted.T, system[np.ix_(n, n)] - cross.T @ pivoted
    start[a] = inverse @ y[a]
    start[n] = y[n] - cross.T @ start[a]
    return transform, start


def _ridge(kernel: Floats, c: float) -> Floats:
    return kernel + np.diag(np.full(len(kernel), 0.5 / c))


def _solve(system: Floats, right: Floats) -> Any:
    return cho_solve(cho_factor(system, lower=True), right)


class Exchange:
    """Active sets, one a row, under block principal pivoting.

    All that are on the wrong side change sides; where that stops helping, only the last one does, which always ends.

    Examples
    --------
    >>> exchange = Exchange(np.array([[True, False]]))
    >>> exchange.swap(np.array([0]), np.array([[False, True]]), np.array([[False, False]]))
    array([ True])
    >>> exchange.active
    array([[ True,  True]])
    """

    def __init__(self, active: Mask) -> None:
        self.active = active.copy()
        self._fewest = np.full(len(active), active.shape[1] + 1)
        self._patience = np.full(len(active), PATIENCE)

    def swap(self, rows: NDArray[np.intp], enters: Mask, leaves: Mask) -> Mask:
        """Exchange what is on the wrong side in these rows; tell which rows had any."""
        wrong = np.where(self.active[rows], leaves, enters)
        count = wrong.sum(axis=1)
        better = count < self._fewest[rows]
        self._fewest[rows] = np.minimum(count, self._fewest[rows])
        self._patience[rows] = np.where(better, PATIENCE, self._patience[rows] - 1)
        for row in np.flatnonzero((self._patience[rows] < 0) & (count > 0)):
            wrong[row, : np.flatnonzero(wrong[row])[-1]] = False
        self.active[rows] ^= wrong
        return np.asarray(count > 0)
