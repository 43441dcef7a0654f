"""Synthetic panels: labels that go together, and models of chosen quality, knowledge and silence."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from ..predictions import Predictions
from ..predictions.validation import fraction, positive, whole


class Panel(NamedTuple):
    """Predictions, and the truth they are about."""

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
    r"""Make a panel of models that see the truth through noise.

    Instance `i` has a relevance :math:`r_{i\ell} = \sqrt{c}\, f_i \cdot w_\ell +
    \sqrt{1 - c}\, \varepsilon_{i\ell}` for each label, with a few hidden topics
    :math:`f_i` that labels share through :math:`w_\ell`; the labels of highest
    relevance are the true ones. Model `k` sees :math:`\sqrt{q_k}\, r + \sqrt{1 - q_k}\,
    (\sqrt{s}\, \eta + \sqrt{1 - s}\, \eta^k)` and keeps the labels for which that
    exceeds each label's own threshold. Noise :math:`\eta` that all models have in
    common, as models trained on the same data do, is what voting cannot remove.

    Parameters
    ----------
    n_instances, n_labels, n_models
        Size of the panel.
    cardinality
        Mean number of true labels of an instance; labels differ in frequency.
    correlation
        Share of the relevance that labels have in common, in [0, 1]: 0 makes them
        independent.
    quality
        How much of what a model sees is true, in [0, 1], for all models or for each: 1
        never errs, 0 answers at random.
    shared_errors
        Share `s` of the models' noise that they have in common, in [0, 1].
    known_labels
        Share of the labels that each model knows; it is silent (NaN) about the others.
    missing
        Share of the remaining cells about which models are silent, at random.
    probabilities
        Give scores in [0, 1] instead of decisions.
    random_state
        Seed or generator; the same seed gives the same panel.

    Returns
    -------
    Panel
        ``(predictions, truth)``.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel = mlc.datasets.make_panel(n_instances=100, n_labels=8, n_models=3, missing=0.25, random_state=0)
    >>> panel.predictions.shape, panel.truth.shape
    ((3, 100, 8), (100, 8))
    """
    sizes = {"n_instances": n_instances, "n_labels": n_labels, "n_models": n_models}
    n, l, m = (whole(size, name, 1) for name, size in sizes.items())
    correlation = fraction(correlation, "correlation")
    shared_errors = fraction(shared_errors, "shared_errors")
    cardinality = positive(cardinality, "cardinality")
    if not (cardinality <= l):
        raise InputError(
            where="cardinality",
            found=cardinality,
            expected=f"at most the number of labels, {l}",
        )

    qualities = np.asarray(quality, dtype=np.float64)
    right = qualities.shape in ((), (m,)) and bool(
        ((qualities >= 0) & (qualities <= 1)).all()
    )
    if not (right):
        raise InputError(
            where="quality",
            found=repr(quality),
            expected=f"a number in [0, 1] or {m} of them",
        )

    rng = np.random.default_rng(random_state)

    n_topics = max(1, round(np.sqrt(l)))
    weights = rng.normal(size=(n_topics, l)) ** 3  # a few strong ties, most weak
    weights /= np.linalg.norm(weights, axis=0)
    shared = rng.normal(size=(n, n_topics)) @ weights
    relevance = np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * rng.normal(
        size=(n, l)
    )
    thresholds = _thresholds(relevance, rng.permutation(_frequencies(l, cardinality)))

    scores = np.empty((m, n, l))
    in_common = np.sqrt(shared_errors) * rng.normal(size=(n, l))
    for k, q in enumerate(np.broadcast_to(qualities, m)):
        noise = in_common + np.sqrt(1 - shared_errors) * rng.normal(size=(n, l))
        margin = np.sqrt(q) * relevance + np.sqrt(1 - q) * noise - thresholds
        scores[k] = 1 / (1 + np.exp(-3 * margin)) if probabilities else margin >= 0

    scores[
        _silence(
            rng,
            (m, n, l),
            fraction(known_labels, "known_labels"),
            fraction(missing, "missing"),
        )
    ] = np.nan
    return Panel(Predictions(scores), relevance >= thresholds)


def _frequencies(n_labels: int, cardinality: float) -> NDArray[np.float64]:
    """How often each label is true: falling like 1/rank, adding up to the cardinality, none above 1."""
    frequency = 1 / np.arange(1, n_labels + 1)
    low = 0.0
    high = float(n_labels)
    for _ in range(60):
        scale = (low + high) / 2
        low, high = (
            (scale, high)
            if np.minimum(scale * frequency, 1).sum() < cardinality
            else (low, scale)
        )

    return np.minimum(high * frequency, 1)


def _thresholds(
    relevance: NDArray[np.float64], frequency: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Find the relevance that the wanted share of instances reaches, label by label."""
    descending = -np.sort(-relevance, axis=0)
    wanted = np.clip(
        np.round(frequency * len(relevance)).astype(int), 1, len(relevance)
    )
    return np.asarray(descending[wanted - 1, np.arange(len(frequency))])


def _silence(
    rng: np.random.Generator, shape: tuple[int, int, int], known: float, missing: float
) -> NDArray[np.bool_]:
    m, _, l = shape
    n_known = max(1, round(known * l))
    knows = np.array(
        [np.isin(range(l), rng.choice(l, n_known, replace=False)) for _ in range(m)]
    )
    return np.asarray(~knows[:, None] | (rng.random(shape) < missing))
