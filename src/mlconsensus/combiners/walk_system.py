r"""The linear system of a walk that stops at its anchors, solved on whichever side is cheapest.

With rows `R` (n × v) whose Gram matrix :math:`W = R^\top R` holds the walk between `v` nodes, row sums `d` of it and
anchors :math:`\alpha`,

.. math:: (E - R^\top R)\, Q = H, \qquad E = \operatorname{diag}(\alpha + d).

- Where `W` is at hand, Cholesky's method solves the `v` equations in place.
- Fewer rows than nodes: `n` equations do (Woodbury's identity),
  :math:`Q = E^{-1}(H + R^\top X)`, :math:`(I - R E^{-1} R^\top)\, X = R E^{-1} H`.
- `W` does not fit into memory: conjugate gradients, with the diagonal as preconditioner, multiply by `R` and
  :math:`R^\top` only. The matrix has no positive entry off its diagonal and maps the vector of ones to
  :math:`\alpha`, so its inverse has no negative entry and maps :math:`\alpha` to ones: an error of the solution is
  nowhere larger than :math:`\max_j |r_j| / \alpha_j` of the residual `r`, which is what ends the rounds.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from scipy import linalg, sparse

from ..arithmetic.budget import granted
from ..arithmetic.grams import Gram
from ..arithmetic.products import FloatArray, product, scaled
from ..errors import InputError

_ERROR = 1e-11  # that conjugate gradients leave in the solution, whose entries are shares between 0 and 1
_ARRAYS = 6  # of the solution's size that they need at once


def solved(walk: Gram, anchors: FloatArray, held: FloatArray) -> FloatArray:
    """Return Q (v, l), given the walk, the anchors (v,) and H (v, l).

    Examples
    --------
    >>> solved(Gram.of(np.array([[0.6, 0.8]])), np.ones(2), np.eye(2)).round(2)
    array([[0.76, 0.24],
           [0.24, 0.76]])
    """
    rows, v = walk.rows, len(anchors)
    if rows is None:
        system = -np.asarray(walk).reshape(v, v)
        system[np.diag_indices(v)] += anchors - system.sum(axis=1)
        return _by_cholesky(system, held)
    diagonal = anchors + walk.sums()
    if rows.shape[0] < v:
        return _on_the_rows_side(rows, diagonal, held)
    return _by_conjugate_gradients(rows, diagonal, anchors, held)


def _on_the_rows_side(rows: Any, diagonal: FloatArray, held: FloatArray) -> FloatArray:
    weighted = scaled(rows.T.tocsr() if sparse.issparse(rows) else rows.T, 1 / diagonal)  # E⁻¹ Rᵀ
    system = np.eye(rows.shape[0]) - product(rows, weighted)
    return held / diagonal[:, None] + product(weighted, _by_cholesky(system, product(weighted.T, held)))


def _by_cholesky(system: FloatArray, held: FloatArray) -> FloatArray:
    """Solve a positive definite system in its own place; SciPy's `solve` makes two copies of it, and takes longer."""
    factor = linalg.cho_factor(system.T, lower=True, overwrite_a=True, check_finite=False)  # columns, as LAPACK wants
    return np.asarray(linalg.cho_solve(factor, held, overwrite_b=True, check_finite=False))


def _by_conjugate_gradients(rows: Any, diagonal: FloatArray, anchors: FloatArray, held: FloatArray) -> FloatArray:
    v, l = held.shape
    across = rows.T.tocsr() if sparse.issparse(rows) else rows.T
    most = 50 + round(40 * np.sqrt(2 * (diagonal / anchors).max()))  # several times what the condition number asks for
    memory, threads, stop = granted()
    at_once = int(np.clip(memory // 4 // (8 * _ARRAYS * v * threads), 1, -(-l // threads)))

    def work_out(start: int) -> FloatArray:
        own = held[:, start : start + at_once]
        found = own / diagonal[:, None]
        residual = product(across, product(rows, found))  # H − (E − RᵀR) E⁻¹ H
        ahead = residual / diagonal[:, None]
        size = (residual * ahead).sum(axis=0)
        for _ in range(most):
            if stop.is_set():
                raise KeyboardInterrupt
            if (np.abs(residual).max(axis=1) / anchors).max() <= _ERROR:
                return found
            moved = diagonal[:, None] * ahead - product(across, product(rows, ahead))
            step = size / np.maximum((ahead * moved).sum(axis=0), 1e-300)
            found += step * ahead
            residual -= step * moved
            smaller = residual / diagonal[:, None]
            new_size = (residual * smaller).sum(axis=0)
            ahead *= new_size / np.maximum(size, 1e-300)
            ahead += smaller
            size = new_size
        raise InputError(
            f"MLCM-r: found no solution to {_ERROR:g} in {most} rounds of conjugate gradients, expected one; "
            "a larger alpha, or more memory for a direct solution, makes it easier"
        )

    with ThreadPoolExecutor(threads) as pool:
        return np.concatenate(list(pool.map(work_out, range(0, l, at_once))), axis=1)
