"""Differential privacy: noise that hides whether an instance is in the data.

`private_sums` has the sums that are released for each method, and `noise` calls OpenDP.
docs/privacy.md has the proofs, and what the noise costs.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import TypeVar

import numpy as np

from ...combiners.base import BaseCombiner, PredictionsLike
from ...errors import InputError, InputWarning
from ...execution.local import reduce_blocks
from ...predictions import BasePredictions, FloatArray
from ...predictions.validation import Weights, model_weights, positive, whole
from .noise import MAX_INSTANCES, add_noise, find_noise_scale
from .private_sums import PRIVATE_METHODS, from_vector, to_vector

__all__ = ["Guarantee", "fit"]

C = TypeVar("C", bound=BaseCombiner)

# A little more than the norm of two labels that all models give.
DEFAULT_CLIP = 1.5
_LARGE_EPSILON = 10.0  # from here on, a warning says that little is hidden
_MIN_CLIP = 1e-6  # between these limits, numbers can be squared and summed
_MAX_CLIP = 1e6
_MECHANISM = "Gaussian noise by OpenDP's make_gaussian"
_NEIGHBOURS = "panels that differ by adding or removing one instance"


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """(ε, δ)-differential privacy of statistics, and how it was reached.

    Parameters
    ----------
    epsilon, delta : float
        ε and δ.
    scale : float
        Standard deviation of the noise in each release. The sum of releases has noise
        of ``scale * sqrt(releases)``.
    sensitivity : float
        The most that one instance adds, in Euclidean norm. `scale` is calibrated to it.
    clip : float, default=None
        The norm that each instance's mean prediction is clipped to. None: it is not
        clipped.
    releases : int, default=1
        Number of sites' releases that were added, each of different instances.
    mechanism, neighbours : str
        The mechanism, and the panels that it makes hard to distinguish.

    Examples
    --------
    >>> print(Guarantee(epsilon=1.0, delta=1e-6, scale=4.5, sensitivity=1.0))
    ε = 1, δ = 1e-06
    """

    epsilon: float
    delta: float
    scale: float
    sensitivity: float
    clip: float | None = None
    releases: int = 1
    mechanism: str = _MECHANISM
    neighbours: str = _NEIGHBOURS

    def __str__(self) -> str:
        budget = f"ε = {self.epsilon:g}, δ = {self.delta:g}"
        if self.releases == 1:
            return budget
        return (
            f"{budget} in each of {self.releases:,} releases; those of the same people "
            "add up"
        )

    def remove_noise(self, combiner: BaseCombiner) -> object:
        """Return statistics without numbers that only noise can make.

        Parameters
        ----------
        combiner : BaseCombiner
            A combiner with private statistics.

        Returns
        -------
        dataclass or NamedTuple
            Statistics that can be solved.
        """
        weights = _get_weights(combiner.weights_, combiner.models_)
        method = PRIVATE_METHODS[combiner.identifier]
        return method.remove_noise(combiner.statistics_, weights)


def read_guarantee(
    value: object, combiner_type: type[BaseCombiner], where: str
) -> Guarantee:
    """Check the guarantee in a file.

    Parameters
    ----------
    value : object
        The parsed JSON.
    combiner_type : type
        Class of the combiner whose statistics are in the file.
    where : str
        Place of the guarantee in error messages.

    Returns
    -------
    Guarantee

    Examples
    --------
    >>> from dataclasses import asdict
    >>> from mlconsensus import MLCMr
    >>> value = asdict(Guarantee(epsilon=1.0, delta=1e-6, scale=4.5, sensitivity=1.0))
    >>> read_guarantee(value, MLCMr, "a.stats, privacy").epsilon
    1.0
    """
    names = [field.name for field in fields(Guarantee)]
    if not isinstance(value, dict) or set(value) != set(names):
        raise InputError(
            where=where, found="a broken guarantee", expected=", ".join(names)
        )

    guarantee = Guarantee(**value)
    clip = guarantee.clip
    if clip is None:
        clip = DEFAULT_CLIP

    check_budget(
        combiner_type,
        epsilon=guarantee.epsilon,
        delta=guarantee.delta,
        clip=clip,
        where=where,
    )
    positive(guarantee.scale, f"{where}, scale")
    positive(guarantee.sensitivity, f"{where}, sensitivity")
    whole(guarantee.releases, f"{where}, releases", 1)

    description = (guarantee.mechanism, guarantee.neighbours)
    expected = (_MECHANISM, _NEIGHBOURS)
    if description != expected:
        raise InputError(where=where, found=description, expected=str(expected))

    return guarantee


def check_budget(
    combiner_type: type[BaseCombiner],
    *,
    epsilon: float,
    delta: float,
    clip: float = DEFAULT_CLIP,
    where: str = "privacy",
) -> None:
    """Check that a method's statistics can be private, with this ε, δ and clip.

    Parameters
    ----------
    combiner_type : type
        Class of the combiner.
    epsilon, delta, clip : float
        As in `fit`.
    where : str, default="privacy"
        Place of the numbers in error messages.

    Examples
    --------
    >>> from mlconsensus import MLCMr, WeightedConsensus
    >>> check_budget(MLCMr, epsilon=1.0, delta=1.5)
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: privacy, delta: found 1.5, expected a number above 0
    and below 1
    >>> check_budget(WeightedConsensus, epsilon=1.0, delta=1e-6)
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: privacy: found weighted_consensus, for whose ...
    expected mlcm_r or mlcm_a
    """
    name = combiner_type.identifier
    if name not in PRIVATE_METHODS:
        raise InputError(
            where=where,
            found=f"{name}, for whose statistics no bound is known on what one "
            "instance adds",
            expected=" or ".join(PRIVATE_METHODS),
        )

    positive(epsilon, f"{where}, epsilon")
    if positive(delta, f"{where}, delta") >= 1:
        raise InputError(
            where=f"{where}, delta",
            found=repr(delta),
            expected="a number above 0 and below 1",
        )
    if not _MIN_CLIP <= positive(clip, f"{where}, clip") <= _MAX_CLIP:
        raise InputError(
            where=f"{where}, clip",
            found=repr(clip),
            expected=f"a number from {_MIN_CLIP:g} to {_MAX_CLIP:g}",
        )


def fit(
    combiner: C,
    predictions: PredictionsLike,
    *,
    epsilon: float,
    delta: float,
    clip: float = DEFAULT_CLIP,
) -> C:
    """Fit a combiner to statistics that are (ε, δ)-differentially private.

    From the statistics, and from anything made of them, it is hard to tell whether an
    instance was in the data. The names of models and labels are not private. A second
    release of the same instances adds its ε and δ to those of the first.

    Parameters
    ----------
    combiner : MLCMr or MLCMa
        The combiner to fit.
    predictions : Predictions or array-like of shape (m, n, l)
        `Predictions`, or anything that its constructor takes.
    epsilon, delta : float
        The smaller, the more private and the noisier. δ should be far below 1 divided
        by the number of instances.
    clip : float, default=1.5
        For `MLCMa`, the norm that each instance's mean prediction is scaled down to,
        where it is larger; from 1e-6 to 1e6. It must not be chosen by looking at the
        data.

    Returns
    -------
    MLCMr or MLCMa
        The combiner.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> predictions, _ = mlc.datasets.make_panel(random_state=0)
    >>> private = mlc.privacy.fit(mlc.MLCMr(), predictions, epsilon=1.0, delta=1e-6)
    >>> print(private.privacy_, private.n_instances_)
    ε = 1, δ = 1e-06 None
    """
    check_budget(type(combiner), epsilon=epsilon, delta=delta, clip=clip)
    checked: BasePredictions = combiner.check_predictions(predictions)
    _check_predictions(checked, delta)

    # The exact sums.
    method = PRIVATE_METHODS[combiner.identifier]
    weights = _get_weights(combiner.weights, checked.models)
    exact = reduce_blocks(checked, partial(method.compute_sums, weights, clip))
    exact_vector = to_vector(exact)

    # The noise. How it compares with the exact sums is not part of the release.
    scale = find_noise_scale(epsilon, delta, method.sensitivity, len(exact_vector))
    _warn_about_noise(epsilon, scale, float(np.abs(exact_vector).max()))
    noisy = from_vector(add_noise(exact_vector, scale), len(exact.gram))

    guarantee = Guarantee(
        epsilon=float(epsilon),
        delta=float(delta),
        scale=scale,
        sensitivity=method.sensitivity,
        clip=float(clip) if method.clips else None,
    )
    return combiner.take(
        None,
        models=checked.models,
        labels=checked.labels,
        statistics=method.make_statistics(noisy, weights, clip),
        privacy=guarantee,
    )


def _check_predictions(predictions: BasePredictions, delta: float) -> None:
    """Check that statistics of these predictions can be private."""
    if predictions.clusters:
        raise InputError(
            where="privacy",
            found="clusterings, whose clusters are made of the instances",
            expected="none",
        )

    n_instances = len(predictions)
    if n_instances > MAX_INSTANCES:
        raise InputError(
            where="privacy",
            found=f"{n_instances:,} instances",
            expected=f"at most {MAX_INSTANCES:,}",
        )

    # With probability δ an instance may be revealed.
    n_revealed = delta * n_instances
    if n_revealed > 0.1:
        raise InputError(
            where="privacy, delta",
            found=f"{delta:g} for {n_instances:,} instances, of which {n_revealed:.2g} "
            "may be shown as they are",
            expected=f"at most a tenth of 1 / {n_instances:,}",
        )


def _warn_about_noise(epsilon: float, scale: float, largest_sum: float) -> None:
    """Warn if the noise hides little, or more than all sums."""
    if epsilon > _LARGE_EPSILON:
        warnings.warn(
            f"privacy: ε = {epsilon:g} hides little: what is released may be "
            f"e^{epsilon:g} times as likely with an instance as without it; 1 is usual",
            InputWarning,
            stacklevel=3,
        )

    if scale > largest_sum:
        warnings.warn(
            f"privacy: the noise (±{scale:.3g}) is larger than every sum; a larger ε "
            "or more instances give scores that mean something",
            InputWarning,
            stacklevel=3,
        )


def _get_weights(weights: Weights, models: Sequence[str]) -> FloatArray:
    """Return the weight of each model, shape (m,); 1 without weights."""
    checked = model_weights(weights, models)
    if checked is None:
        return np.ones(len(models))
    return checked
