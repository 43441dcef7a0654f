r"""Correction of consensus scores by gold labels.

For a pair of instance and label with the consensus score s, the log odds
:math:`t = \operatorname{logit}(s)` and the predictions :math:`y_k` of the models, gold
labels are modeled by

.. math::

    \operatorname{logit} P(\text{relevant}) =
        a + b t + c s + g_j v + \sum_k w_k (y_k - s) \qquad (4)

The curve (a, b, c) recalibrates the score, w changes the weights of models, and g
changes labels: their level (v = 1), or their slope (v increases with t). The priors are
:math:`w_k \sim N(0, \tau^2)`, :math:`g_j \sim N(0, \sigma^2)`, a and c
:math:`\sim N(0, 3^2)`, and :math:`b \sim N(1, 1)`. The fits for all :math:`\tau`,
:math:`\sigma` and kinds of v are averaged by their evidence (Laplace's approximation). If
w or g is more likely to be 0 than not, it is set to 0.

Pairs of one instance are not independent. The likelihood is therefore raised to the
power :math:`\eta \le 1`: the variance of the gradient with respect to w that the model
expects, divided by the variance between instances.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from ..predictions import FloatArray, IntArray
from ..predictions.blocks import PredictionBlock

# Standard deviations of w: log odds that a full vote of one model adds.
_TAUS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
# Standard deviations of g: log odds by which a label is off.
_SIGMAS = (0.25, 0.5, 1.0)
# Prior probability that w, or g, is 0.
_PRIOR_ABSENT = 0.3
# Scores of 0 and 1 have odds of 1 to 200.
_MARGIN = 0.005
# Prior of the curve (a, b, c).
_CURVE_MEAN = np.array([0.0, 1.0, 0.0])
_CURVE_PRECISION = np.array([1 / 9, 1.0, 1 / 9])
_N_CURVE = 3
# Smallest number of relevant and of irrelevant gold pairs.
_MIN_PAIRS = 3
_MAX_ITERATIONS = 50


@dataclass(frozen=True, kw_only=True)
class GoldCorrection:
    """What gold labels changed."""

    curve: FloatArray  # (3,) a, b and c
    model_weights: FloatArray  # (m,) w
    label_shifts: FloatArray  # (2, l) g for v = 1, and for v that increases with t

    def correct(self, scores: FloatArray) -> FloatArray:
        """Return the log odds of scores (n, l) without the models' part of (4)."""
        clipped = np.clip(scores, 0, 1)
        log_odds = compute_log_odds(clipped)
        a, b, c = self.curve
        corrected = a + b * log_odds + c * clipped + self.label_shifts[0]
        corrected += self.label_shifts[1] * _compute_slope(log_odds)
        return np.asarray(corrected)


def compute_log_odds(scores: FloatArray) -> FloatArray:
    """Return the log odds of scores in [0, 1], none of them infinite."""
    return np.asarray(np.log((scores + _MARGIN) / (1 - scores + _MARGIN)))


def _compute_slope(log_odds: FloatArray) -> FloatArray:
    """Return v, which increases from 0 to 2 with the log odds."""
    largest = np.log((1 + _MARGIN) / _MARGIN)
    return np.asarray(log_odds / largest + 1)


def apply_correction(
    block: PredictionBlock, scores: FloatArray, correction: GoldCorrection
) -> FloatArray:
    """Return the probabilities that follow from scores and gold labels; Eq. (4).

    Parameters
    ----------
    block : PredictionBlock
        Predictions of the models, without weights.
    scores : ndarray of shape (n, l)
        Consensus scores without gold labels.
    correction : GoldCorrection
        What gold labels changed.

    Returns
    -------
    ndarray of shape (n, l)
        Values in [0, 1].
    """
    weights = np.repeat(correction.model_weights[:, np.newaxis], block.n_labels, axis=1)
    from_models = block.sum_scores(weights).to_array()
    n_weighted = block.count_predictions(weights).to_array()
    difference = from_models - n_weighted * np.clip(scores, 0, 1)
    return np.asarray(expit(correction.correct(scores) + difference))


def fit_correction(
    predictions: FloatArray, scores: FloatArray, gold: FloatArray
) -> GoldCorrection | None:
    """Fit (4) to gold labels.

    Parameters
    ----------
    predictions : ndarray of shape (m, n, l)
        Predictions of the models for instances with gold labels, NaN if missing.
    scores : ndarray of shape (n, l)
        Consensus scores without gold labels.
    gold : ndarray of shape (n, l)
        1 for relevant labels, 0 for others, NaN if unknown.

    Returns
    -------
    GoldCorrection or None
        None if there are too few gold labels, or if neither the weights of models nor
        labels are likely to need a correction.
    """
    pairs = _collect_pairs(predictions, scores, gold)
    n_relevant = pairs.relevant.sum()
    if min(n_relevant, len(pairs.relevant) - n_relevant) < _MIN_PAIRS:
        return None

    curve = _fit(pairs, _Prior(), power=1.0).coefficients
    power = _compute_power(pairs, curve)
    fits = _fit_all(pairs, curve, power)
    probability = _average_over(fits)
    if probability is None:
        return None
    return _average_fits(pairs, fits, probability, predictions.shape)


@dataclass(frozen=True, kw_only=True)
class _GoldPairs:
    """The pairs of instances and labels with gold labels, sorted by label."""

    relevant: FloatArray  # (p,) 1 or 0
    instance: IntArray  # (p,)
    label: IntArray  # (p,)
    starts: IntArray  # where each label begins
    curve_features: FloatArray  # (p, 3) 1, t and s minus its mean
    center: float  # mean of s
    differences: FloatArray  # (p, k) y_k - s
    models: IntArray  # (k,) models with different predictions than the consensus
    slope: FloatArray  # (p,) v that increases with t

    @property
    def n_labels(self) -> int:
        """Number of labels with gold labels."""
        return len(self.starts)

    def spread(self, values: FloatArray) -> FloatArray:
        """Return values of the labels for each pair."""
        sizes = np.diff(np.append(self.starts, len(self.relevant)))
        return np.repeat(values, sizes)

    def sum_by_label(self, values: FloatArray) -> FloatArray:
        """Return the sums over the pairs of each label."""
        return np.asarray(np.add.reduceat(values, self.starts, axis=0))


@dataclass(frozen=True, kw_only=True)
class _Prior:
    """Standard deviations of w and g; 0 if they are 0 themselves."""

    tau: float = 0.0
    sigma: float = 0.0
    has_slope: bool = False  # whether v increases with t


@dataclass(frozen=True, kw_only=True)
class _Fit:
    """The most likely coefficients for one prior, and its evidence."""

    prior: _Prior
    coefficients: FloatArray  # curve, and w unless tau is 0
    shifts: FloatArray  # g of each label
    log_evidence: float


def _collect_pairs(
    predictions: FloatArray, scores: FloatArray, gold: FloatArray
) -> _GoldPairs:
    """Return the features of all pairs with gold labels."""
    label, instance = np.nonzero(~np.isnan(gold).T)
    score = np.clip(scores[instance, label], 0, 1)
    center = float(np.clip(scores, 0, 1).mean())
    log_odds = compute_log_odds(score)
    differences = np.nan_to_num(predictions[:, instance, label] - score)
    models = np.flatnonzero(np.abs(differences).max(axis=1, initial=0) > 1e-9)
    is_first = np.ones(len(label), dtype=np.bool_)
    is_first[1:] = label[1:] != label[:-1]
    return _GoldPairs(
        relevant=gold[instance, label],
        instance=instance,
        label=label,
        starts=np.flatnonzero(is_first),
        curve_features=np.column_stack([np.ones(len(score)), log_odds, score - center]),
        center=center,
        differences=differences[models].T,
        models=models,
        slope=_compute_slope(log_odds),
    )


def _fit_all(pairs: _GoldPairs, curve: FloatArray, power: float) -> list[_Fit]:
    """Return the fits for all priors."""
    label_priors = [_Prior()]
    if pairs.n_labels > 1:
        for has_slope in (False, True):
            for sigma in _SIGMAS:
                label_priors.append(_Prior(sigma=sigma, has_slope=has_slope))

    taus: tuple[float, ...] = (0.0,)
    if len(pairs.models) > 0:
        taus = (0.0, *_TAUS)
    fits = []
    for label_prior in label_priors:
        start = _Fit(
            prior=label_prior,
            coefficients=curve,
            shifts=np.zeros(pairs.n_labels),
            log_evidence=0.0,
        )
        for tau in taus:
            prior = _Prior(
                tau=tau, sigma=label_prior.sigma, has_slope=label_prior.has_slope
            )
            start = _fit(pairs, prior, power, start)
            fits.append(start)
    return fits


@dataclass(frozen=True, kw_only=True)
class _Step:
    """A step of Newton's method, and the log determinant of the negative Hessian."""

    coefficients: FloatArray
    shifts: FloatArray
    log_determinant: float


class _Posterior:
    """The logarithm of the posterior for one prior, as a function of (a, b, c, w) and g.

    Parameters
    ----------
    pairs : _GoldPairs
        Pairs with gold labels.
    prior : _Prior
        Standard deviations of w and g.
    power : float
        Power of the likelihood.
    """

    def __init__(self, pairs: _GoldPairs, prior: _Prior, power: float) -> None:
        self.pairs = pairs
        self.power = power
        self.features = pairs.curve_features
        self.precision = _CURVE_PRECISION
        if prior.tau > 0:
            precision = np.full(len(pairs.models), prior.tau**-2)
            self.features = np.hstack([self.features, pairs.differences])
            self.precision = np.append(self.precision, precision)
        self.mean = np.zeros(len(self.precision))
        self.mean[:_N_CURVE] = _CURVE_MEAN

        self.has_shifts = prior.sigma > 0
        self.shift_precision = 0.0
        if self.has_shifts:
            self.shift_precision = prior.sigma**-2
        self.kind = np.ones(len(pairs.relevant))
        if prior.has_slope:
            self.kind = pairs.slope

    def compute_log_odds(
        self, coefficients: FloatArray, shifts: FloatArray
    ) -> FloatArray:
        """Return the log odds of each pair; Eq. (4)."""
        return np.asarray(
            self.features @ coefficients + self.kind * self.pairs.spread(shifts)
        )

    def compute_value(self, coefficients: FloatArray, shifts: FloatArray) -> float:
        """Return the tempered log likelihood plus the log prior without constants."""
        log_odds = self.compute_log_odds(coefficients, shifts)
        likelihood = self.pairs.relevant * log_odds - np.logaddexp(0, log_odds)
        penalty = self.precision @ (coefficients - self.mean) ** 2
        penalty += self.shift_precision * shifts @ shifts
        return float(self.power * likelihood.sum() - penalty / 2)

    def compute_step(self, coefficients: FloatArray, shifts: FloatArray) -> _Step:
        """Return a step of Newton's method.

        The Hessian with respect to g is diagonal, so g is eliminated.
        """
        pairs = self.pairs
        features = self.features
        probability = expit(self.compute_log_odds(coefficients, shifts))
        residual = self.power * (pairs.relevant - probability)
        curvature = self.power * probability * (1 - probability)
        hessian = (features * curvature[:, np.newaxis]).T @ features
        hessian += np.diag(self.precision)
        gradient = features.T @ residual
        gradient -= self.precision * (coefficients - self.mean)
        if not self.has_shifts:
            step = np.linalg.solve(hessian, gradient)
            log_determinant = float(np.linalg.slogdet(hessian)[1])
            return _Step(
                coefficients=step,
                shifts=np.zeros_like(shifts),
                log_determinant=log_determinant,
            )

        weighted = (curvature * self.kind)[:, np.newaxis]
        cross = pairs.sum_by_label(features * weighted)
        diagonal = pairs.sum_by_label(curvature * self.kind**2) + self.shift_precision
        shift_gradient = pairs.sum_by_label(residual * self.kind)
        shift_gradient -= self.shift_precision * shifts
        hessian -= cross.T @ (cross / diagonal[:, np.newaxis])
        gradient -= cross.T @ (shift_gradient / diagonal)
        step = np.linalg.solve(hessian, gradient)
        log_determinant = np.linalg.slogdet(hessian)[1] + np.log(diagonal).sum()
        return _Step(
            coefficients=step,
            shifts=(shift_gradient - cross @ step) / diagonal,
            log_determinant=float(log_determinant),
        )

    def compute_log_prior_scale(self) -> float:
        """Return twice the log of the prior's normalization, without powers of 2 pi."""
        scale = float(np.log(self.precision).sum())
        if self.has_shifts:
            scale += self.pairs.n_labels * float(np.log(self.shift_precision))
        return scale


def _fit(
    pairs: _GoldPairs, prior: _Prior, power: float, start: _Fit | None = None
) -> _Fit:
    """Maximize the posterior for one prior by Newton's method."""
    posterior = _Posterior(pairs, prior, power)
    coefficients = posterior.mean.copy()
    shifts = np.zeros(pairs.n_labels)
    if start is not None:
        n_shared = min(len(coefficients), len(start.coefficients))
        coefficients = np.zeros(len(coefficients))
        coefficients[:n_shared] = start.coefficients[:n_shared]
        shifts = start.shifts

    value = posterior.compute_value(coefficients, shifts)
    log_determinant = 0.0
    for _ in range(_MAX_ITERATIONS):
        step = posterior.compute_step(coefficients, shifts)
        log_determinant = step.log_determinant

        # Halve the step until the posterior does not decrease.
        size = 1.0
        while True:
            new_coefficients = coefficients + size * step.coefficients
            new_shifts = shifts + size * step.shifts
            new_value = posterior.compute_value(new_coefficients, new_shifts)
            if new_value >= value - 1e-9 or size <= 1e-4:
                break
            size /= 2
        change = abs(new_value - value)
        coefficients = new_coefficients
        shifts = new_shifts
        value = new_value
        if change < 1e-6:
            break

    # Laplace's approximation.
    correction = (posterior.compute_log_prior_scale() - log_determinant) / 2
    return _Fit(
        prior=prior,
        coefficients=coefficients,
        shifts=shifts,
        log_evidence=value + correction,
    )


def _compute_power(pairs: _GoldPairs, curve: FloatArray) -> float:
    """Return the power of the likelihood, at most 1, for dependent pairs.

    The expected variance of the gradient of w, with the curve eliminated, divided by
    its variance between instances; about half of it for many pairs per instance.
    """
    if len(pairs.models) == 0:
        return 1.0
    probability = expit(pairs.curve_features @ curve)
    curvature = (probability * (1 - probability))[:, np.newaxis]
    features = pairs.curve_features
    weighted = (features * curvature).T
    system = weighted @ features + 1e-9 * np.eye(_N_CURVE)
    projection = np.linalg.solve(system, weighted @ pairs.differences)
    remaining = pairs.differences - features @ projection

    instances, number = np.unique(pairs.instance, return_inverse=True)
    n_instances = len(instances)
    if n_instances < 2:
        return 1e-3
    gradient = np.zeros((n_instances, remaining.shape[1]))
    residual = (pairs.relevant - probability)[:, np.newaxis]
    np.add.at(gradient, number, remaining * residual)
    between = gradient.var(axis=0, ddof=1).sum() * n_instances
    expected = (remaining**2 * curvature).sum()
    pairs_per_instance = len(pairs.relevant) / n_instances
    power = min(1.0, float(expected / max(between, 1e-300)))
    return power * (1 + 1 / pairs_per_instance) / 2


def _average_over(fits: list[_Fit]) -> FloatArray | None:
    """Return the probability of each fit, or None if a correction is unlikely.

    If w, or g, is more likely to be 0 than not, the fits with it get probability 0.
    """
    log_posterior = []
    for fit in fits:
        prior_of_tau = _PRIOR_ABSENT
        if fit.prior.tau > 0:
            prior_of_tau = (1 - _PRIOR_ABSENT) / len(_TAUS)
        prior_of_sigma = _PRIOR_ABSENT
        if fit.prior.sigma > 0:
            prior_of_sigma = (1 - _PRIOR_ABSENT) / 2 / len(_SIGMAS)
        log_posterior.append(fit.log_evidence + np.log(prior_of_tau * prior_of_sigma))

    posterior = np.array(log_posterior)
    probability = np.exp(posterior - posterior.max())
    probability /= probability.sum()
    has_weights = np.array([fit.prior.tau > 0 for fit in fits])
    has_shifts = np.array([fit.prior.sigma > 0 for fit in fits])
    n_dropped = 0
    for has_part in (has_weights, has_shifts):
        if probability[has_part].sum() < 0.5:
            n_dropped += 1
            probability = np.where(has_part, 0.0, probability)
            probability /= probability.sum()
    if n_dropped == 2:
        return None
    return np.asarray(probability)


def _average_fits(
    pairs: _GoldPairs,
    fits: list[_Fit],
    probability: FloatArray,
    shape: tuple[int, ...],
) -> GoldCorrection:
    """Return the mean coefficients of all fits."""
    n_models, _, n_labels = shape
    curve = np.zeros(_N_CURVE)
    model_weights = np.zeros(n_models)
    label_shifts = np.zeros((2, n_labels))
    labels = pairs.label[pairs.starts]
    for share, fit in zip(probability, fits, strict=True):
        curve += share * fit.coefficients[:_N_CURVE]
        if fit.prior.tau > 0:
            model_weights[pairs.models] += share * fit.coefficients[_N_CURVE:]
        kind = int(fit.prior.has_slope)
        label_shifts[kind, labels] += share * fit.shifts
    curve[0] -= curve[2] * pairs.center
    return GoldCorrection(
        curve=curve, model_weights=model_weights, label_shifts=label_shifts
    )
