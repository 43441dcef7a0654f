"""Sums over the instances that two models have both predicted.

The cost is proportional to the number of predictions, not to models × instances.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..linalg.annotations import Annotations
from ..linalg.block_sums import ratio
from ..predictions import Array, FloatArray, IntArray

GROUPS = 10  # groups of instances, for the jackknife
FEW = 10  # with fewer shared instances, the agreement of two models is mostly chance
_AT_ONCE = 2**21  # numbers in the largest array of one step


@dataclass(frozen=True, kw_only=True)
class PairwiseStatistics:
    r"""Sums over instances, for each pair of models (k, q).

    :math:`x_k` is the score of model `k` minus its mean on the label, and
    :math:`d = \sum_\ell (x_k - x_q)^2` the distance of two models on an instance.
    """

    dispute: FloatArray  # (l,) mean squared difference of two models' scores
    # (GROUPS, 4, 2, l) sums of `sum_deviations`, for the jackknife
    departures: FloatArray
    with_others: FloatArray  # (m,) Σ_i (Σ_q w_kq Σ_ℓ x_k x_q)², w the pair weights
    of_pairs: float  # Σ_i Σ_k Σ_q (Σ_ℓ x_k x_q)²
    products: FloatArray  # (m, m) Σ x_k x_q
    squares: FloatArray  # (m, m) Σ x_k² over the instance-label pairs of both
    cells: FloatArray  # (m, m) number of instance-label pairs of both
    instances: FloatArray  # (m, m) number of instances of both
    spread: FloatArray  # (m, m) Σ_i d²


def compute_pairwise_statistics(
    annotations: Annotations, pair_weights: FloatArray | None = None
) -> PairwiseStatistics:
    """Compute sums over the instances that two models have both predicted.

    Parameters
    ----------
    annotations : Annotations
        Predictions in long format.
    pair_weights : ndarray of shape (m, m), default=None
        Result of `weigh_pairs`. By default all pairs of models have the weight 1.

    Returns
    -------
    PairwiseStatistics

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> from mlconsensus.linalg.annotations import make_annotations
    >>> panel = mlc.Predictions([[[1], [0]], [[1], [0]], [[0], [np.nan]]])
    >>> statistics = compute_pairwise_statistics(make_annotations(panel))
    >>> statistics.cells[0].tolist(), statistics.dispute.round(2).tolist()
    ([2.0, 2.0, 1.0], [0.5])
    """
    m, _, l = annotations.shape
    if pair_weights is None:
        pair_weights = weigh_pairs(np.arange(m), np.ones(m))
    label_means = annotations.mean  # (m, l)
    departures = np.zeros((GROUPS, 4, 2, l))
    squared_differences = np.zeros(l)
    n_comparisons = np.zeros(l)
    with_others = np.zeros(m)
    of_pairs = 0.0
    products = np.zeros((m, m))
    squares = np.zeros((m, m))
    cells = np.zeros((m, m))
    instances = np.zeros((m, m))
    spread = np.zeros((m, m))

    for group, rows in together(annotations, l):
        # b instances with predictions of s models each
        models = annotations.model[rows]  # (b, s)
        mask = annotations.is_present[rows].astype(np.float64)  # (b, s, l)
        scores = annotations.scores[rows].astype(np.float64)  # (b, s, l)

        # Sums over the models of each instance-label pair
        count = mask.sum(axis=1)  # (b, l)
        total = scores.sum(axis=1)
        squared = (scores**2).sum(axis=1)
        departures[group] += sum_deviations(count, total, squared)
        squared_differences += (count * squared - total**2).sum(axis=0)
        n_comparisons += (count * (count - 1) / 2).sum(axis=0)

        # Sums over the labels of each pair of models
        x = (scores - label_means[models]) * mask
        other_mask = mask.transpose(0, 2, 1)
        product = x @ x.transpose(0, 2, 1)  # (b, s, s)
        square = x**2 @ other_mask
        n_shared = mask @ other_mask
        distance = square + square.transpose(0, 2, 1) - 2 * product

        # Add them up by the models' positions
        position = (models[:, :, None] * m + models[:, None, :]).ravel()
        _add_at(products, position, product)
        _add_at(squares, position, square)
        _add_at(cells, position, n_shared)
        _add_at(instances, position, n_shared > 0)
        _add_at(spread, position, distance**2)

        # Variation from instance to instance, without pairs of a model with itself
        product *= 1 - np.eye(models.shape[1])
        weighted = product * pair_weights[models[:, :, None], models[:, None, :]]
        _add_at(with_others, models.ravel(), weighted.sum(axis=2) ** 2)
        of_pairs += float((product**2).sum())

    return PairwiseStatistics(
        dispute=np.maximum(ratio(squared_differences, n_comparisons, 0.0), 0),
        departures=departures,
        with_others=with_others,
        of_pairs=of_pairs,
        products=products,
        squares=squares,
        cells=cells,
        instances=instances,
        spread=spread,
    )


def weigh_pairs(family: IntArray, signs: FloatArray) -> FloatArray:
    """Return the weight of each pair of models when a model is compared with others.

    Parameters
    ----------
    family : ndarray of shape (m,) of int
        Family of each model.
    signs : ndarray of shape (m,)
        -1 for models that predict the opposite of most, else 1.

    Returns
    -------
    ndarray of shape (m, m)
        In row `k`, the sign of each model of another family; 0 for members of the
        model's own family, which are not evidence about its quality.

    Examples
    --------
    >>> weigh_pairs(np.array([0, 0, 1]), np.array([1.0, 1.0, -1.0])).tolist()
    [[0.0, 0.0, -1.0], [0.0, 0.0, -1.0], [1.0, 1.0, 0.0]]
    """
    is_across = family[:, np.newaxis] != family
    return np.where(is_across, signs, 0.0)


def _add_at(total: FloatArray, position: IntArray, values: Array) -> None:
    """Add values to the flattened `total` in place; positions may repeat."""
    np.add.at(total.reshape(-1), position, values.ravel())


def sum_deviations(
    count: FloatArray, total: FloatArray, squared: FloatArray
) -> FloatArray:
    """Sum the models' deviations from the majority, of one model and of two.

    Pairs with fewer than four models are left out: two of three models cannot both
    deviate from the majority.

    Parameters
    ----------
    count, total, squared : ndarray of shape (n, l)
        Number of predictions of each instance-label pair, the sum of their scores, and
        the sum of their squares.

    Returns
    -------
    ndarray of shape (4, 2, l)
        Number of pairs, mean deviation, mean square, and mean product of two models'
        deviations; for a negative and for a positive majority.
    """
    is_positive = total >= count / 2
    deviation = np.where(is_positive, count - total, total)
    square = np.where(is_positive, count - 2 * total + squared, squared)

    n_models = np.maximum(count, 4)
    n_ordered_pairs = n_models * (n_models - 1)
    means = np.stack(
        [
            np.ones_like(deviation),
            deviation / n_models,
            square / n_models,
            (deviation**2 - square) / n_ordered_pairs,
        ]
    )

    is_included = count > 3
    negative = (means * (is_included & ~is_positive)).sum(axis=1)
    positive = (means * (is_included & is_positive)).sum(axis=1)
    return np.stack([negative, positive], axis=1)


def compute_product_scale(squares: FloatArray) -> FloatArray:
    """Return the products (m, m) of models whose scores are perfectly correlated.

    The diagonal is 0: a model is not compared with itself.
    """
    scale = np.sqrt(squares * squares.T) * (1 - np.eye(len(squares)))
    return np.where(scale > 1e-12, scale, 0.0)


@dataclass(frozen=True, kw_only=True)
class Reliability:
    """Correlation of each model with the common factor of all models."""

    of_each: FloatArray  # (m,)
    without: FloatArray  # (m, m) that of model k, estimated without its pair with q
    error: FloatArray  # (m, m) its standard error, 1 if k shares instances with q only


def estimate_reliability(
    statistics: PairwiseStatistics,
    pair_weights: FloatArray | None = None,
    n_iterations: int = 100,
) -> Reliability:
    r"""Estimate the reliability of each model from the pairwise correlations.

    Two models with independent errors correlate by :math:`r_k r_q`. Each pair is
    weighted by the precision of its correlation. Residuals larger than one standard
    error count by their absolute value, so that duplicates do not distort the fit.

    Parameters
    ----------
    statistics : PairwiseStatistics
        Sums over the instances that two models share.
    pair_weights : ndarray of shape (m, m), default=None
        Result of `weigh_pairs`: models are compared with those of other families only.
        By default all pairs of models have the weight 1.
    n_iterations : int, default=100
        Number of iterations.

    Returns
    -------
    Reliability
    """
    scale = compute_product_scale(statistics.squares)
    signs = np.ones(len(scale))
    if pair_weights is not None:
        scale = scale * np.abs(pair_weights)
        signs = np.where((pair_weights < 0).any(axis=0), -1.0, 1.0)
    correlation = ratio(statistics.products, scale, 0.0)
    total_scale = max(float(scale.sum()), 1e-12)

    # Standard error of each correlation, from the mean variance of all pairs
    mean_variance = np.full_like(scale, statistics.of_pairs / total_scale)
    error = np.maximum(np.sqrt(ratio(mean_variance, scale, 0.0)), 1e-3)

    # Start from equally reliable models: their mean correlation is r².
    signed = statistics.products * np.outer(signs, signs)
    mean_correlation = float(signed[scale > 0].sum()) / total_scale
    r = signs * np.sqrt(max(mean_correlation, 1e-6))

    # Iteratively reweighted least squares of correlation ≈ r_k r_q, with half steps
    for _ in range(n_iterations):
        residual = np.abs(correlation - r[:, None] * r)
        weight = (scale > 0) / (error * (residual + error))
        moment = weight * correlation * r
        precision = weight * r**2
        updated = ratio(moment.sum(axis=1), precision.sum(axis=1), 0.0)
        r = (r + np.clip(updated, -1, 1)) / 2

    # The same without one of the models, for each pair
    moment = moment.sum(axis=1, keepdims=True) - moment
    precision = precision.sum(axis=1, keepdims=True) - precision
    precision = np.where(precision > 1e-9, precision, 0.0)

    # The sign of r is arbitrary: most models are right.
    sign = 1
    if (signs * r).sum() < 0:
        sign = -1

    return Reliability(
        of_each=sign * r,
        without=sign * ratio(moment, precision, 0.0),
        error=ratio(np.ones_like(precision), np.sqrt(precision), 1.0),
    )


def together(annotations: Annotations, l: int) -> Iterator[tuple[int, IntArray]]:
    """Yield groups of instances that have predictions of equally many models.

    Parameters
    ----------
    annotations : Annotations
        Predictions in long format.
    l : int
        Number of labels, which bounds the number of instances of one step.

    Yields
    ------
    group : int
        Jackknife group of the instances.
    rows : ndarray of shape (instances, models)
        Positions in `annotations`.
    """
    order = np.argsort(annotations.instance, kind="stable")
    _, first, n_models = np.unique(
        annotations.instance[order], return_index=True, return_counts=True
    )
    groups = np.arange(len(first)) % GROUPS
    for s in np.unique(n_models[n_models > 1]).tolist():
        step = max(1, _AT_ONCE // (s * max(s, l)))
        for group in range(GROUPS):
            starts = first[(n_models == s) & (groups == group)]
            for begin in range(0, len(starts), step):
                rows = starts[begin : begin + step, None] + np.arange(s)
                yield group, order[rows]
