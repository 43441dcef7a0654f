"""Synthetic predictions: correlated labels, and models of chosen quality."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from ..predictions import Predictions
from ..predictions.validation import fraction, positive, whole


class Panel(NamedTuple):
    """Predictions and their ground truth; a tuple, so that callers can unpack it."""

    predictions: Predictions
    truth: NDArray[np.bool_]  # (n, l)


def make_panel(
    n_instances: int = 1000,
    n_labels: int = 20,
    n_models: int = 5,
    *,
    cardinality: float = 2.0,
    correlation: float = 0.8,
    quality: float | ArrayLike = 0.6,
    shared_errors: float = 0.7,
    known_labels: float = 1.0,
    missing: float = 0.0,
    probabilities: bool = False,
    random_state: int | np.random.Generator | None = None,
) -> Panel:
    r"""Return the predictions of models that see the ground truth through noise.

    Instance `i` has a relevance :math:`r_{i\ell} = \sqrt{c}\, f_i \cdot w_\ell +
    \sqrt{1 - c}\, \varepsilon_{i\ell}` for each label, with a few hidden topics
    :math:`f_i` that labels share through :math:`w_\ell`; the labels of highest
    relevance are the true ones. Model `k` sees :math:`\sqrt{q_k}\, r + \sqrt{1 - q_k}\,
    (\sqrt{s}\, \eta + \sqrt{1 - s}\, \eta^k)` and predicts the labels for which that
    exceeds the label's threshold. Voting cannot remove the noise :math:`\eta` that all
    models share, as models trained on the same data do.

    Parameters
    ----------
    n_instances, n_labels, n_models : int
        Shape of the predictions.
    cardinality : float, default=2.0
        Mean number of true labels of an instance; labels differ in frequency.
    correlation : float, default=0.8
        Share `c` of the relevance that labels have in common, in [0, 1]: 0 makes them
        independent.
    quality : float or array-like of shape (m,), default=0.6
        Share `q` of the truth in what a model sees, in [0, 1], for all models or for
        each: 1 never errs, 0 predicts at random.
    shared_errors : float, default=0.7
        Share `s` of the noise that the models have in common, in [0, 1].
    known_labels : float, default=1.0
        Share of the labels that each model predicts; it abstains (NaN) on the others.
    missing : float, default=0.0
        Share of the remaining predictions that are missing, at random.
    probabilities : bool, default=False
        Return scores in [0, 1] instead of label sets.
    random_state : int, Generator or None, default=None
        Seed or generator; the same seed gives the same predictions.

    Returns
    -------
    Panel
        ``(predictions, truth)``.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> predictions, truth = mlc.datasets.make_panel(
    ...     n_instances=100, n_labels=8, n_models=3, missing=0.25, random_state=0
    ... )
    >>> predictions.shape, truth.shape
    ((3, 100, 8), (100, 8))
    """
    n = whole(n_instances, "n_instances", 1)
    l = whole(n_labels, "n_labels", 1)
    m = whole(n_models, "n_models", 1)
    correlation = fraction(correlation, "correlation")
    shared_errors = fraction(shared_errors, "shared_errors")
    cardinality = positive(cardinality, "cardinality")
    if cardinality > l:
        raise InputError(
            where="cardinality",
            found=cardinality,
            expected=f"at most the number of labels, {l}",
        )

    qualities = _check_qualities(quality, m)
    known_labels = fraction(known_labels, "known_labels")
    missing = fraction(missing, "missing")
    rng = np.random.default_rng(random_state)

    # Ground truth.
    relevance = _draw_relevance(rng, n, l, correlation)
    frequency = rng.permutation(_compute_frequencies(l, cardinality))
    thresholds = _compute_thresholds(relevance, frequency)

    # Predictions of each model.
    scores = np.empty((m, n, l))
    shared_noise = np.sqrt(shared_errors) * rng.normal(size=(n, l))
    for k, q in enumerate(qualities):
        noise = shared_noise + np.sqrt(1 - shared_errors) * rng.normal(size=(n, l))
        margin = np.sqrt(q) * relevance + np.sqrt(1 - q) * noise - thresholds
        if probabilities:
            scores[k] = 1 / (1 + np.exp(-3 * margin))
        else:
            scores[k] = margin >= 0

    is_missing = _draw_missing(rng, scores.shape, known_labels, missing)
    scores[is_missing] = np.nan
    return Panel(predictions=Predictions(scores), truth=relevance >= thresholds)


def _check_qualities(quality: float | ArrayLike, n_models: int) -> NDArray[np.float64]:
    """Return the quality (m,) of each model."""
    qualities = np.asarray(quality, dtype=np.float64)
    has_right_shape = qualities.shape in ((), (n_models,))
    is_in_range = bool(((qualities >= 0) & (qualities <= 1)).all())
    if not (has_right_shape and is_in_range):
        raise InputError(
            where="quality",
            found=repr(quality),
            expected=f"a number in [0, 1] or {n_models} of them",
        )

    return np.broadcast_to(qualities, n_models)


def _draw_relevance(
    rng: np.random.Generator, n_instances: int, n_labels: int, correlation: float
) -> NDArray[np.float64]:
    """Draw the relevance (n, l) of labels that share a few hidden topics."""
    n_topics = max(1, round(np.sqrt(n_labels)))
    # The third power makes a few weights strong and most of them weak.
    weights = rng.normal(size=(n_topics, n_labels)) ** 3
    weights /= np.linalg.norm(weights, axis=0)
    shared = rng.normal(size=(n_instances, n_topics)) @ weights
    independent = rng.normal(size=(n_instances, n_labels))
    relevance = np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * independent
    return np.asarray(relevance)


def _compute_frequencies(n_labels: int, cardinality: float) -> NDArray[np.float64]:
    """Return frequencies (l,) like 1/rank that sum to the cardinality, none above 1."""
    frequency = 1 / np.arange(1, n_labels + 1)

    # Bisection: the sum increases with the scale.
    low = 0.0
    high = float(n_labels)
    for _ in range(60):
        scale = (low + high) / 2
        if np.minimum(scale * frequency, 1).sum() < cardinality:
            low = scale
        else:
            high = scale

    return np.minimum(high * frequency, 1)


def _compute_thresholds(
    relevance: NDArray[np.float64], frequency: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the relevance (l,) that this share of the instances reaches."""
    n_instances, n_labels = relevance.shape
    descending = -np.sort(-relevance, axis=0)
    n_relevant = np.round(frequency * n_instances).astype(int)
    n_relevant = np.clip(n_relevant, 1, n_instances)
    return np.asarray(descending[n_relevant - 1, np.arange(n_labels)])


def _draw_missing(
    rng: np.random.Generator,
    shape: tuple[int, ...],
    known_labels: float,
    missing: float,
) -> NDArray[np.bool_]:
    """Draw which predictions (m, n, l) are missing: by label, then at random."""
    n_models, _, n_labels = shape
    n_known = max(1, round(known_labels * n_labels))
    is_known = np.zeros((n_models, n_labels), dtype=np.bool_)
    for k in range(n_models):
        is_known[k, rng.choice(n_labels, n_known, replace=False)] = True

    return np.asarray(~is_known[:, np.newaxis] | (rng.random(shape) < missing))
