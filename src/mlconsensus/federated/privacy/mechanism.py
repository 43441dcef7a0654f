"""Differential privacy: statistics with noise that hides whether any one instance was in the panel.

`private_sums` has what is released for each method, `noise` is where OpenDP comes in.
docs/privacy.md has the proofs, and what the noise costs.
"""

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ...combiners.base import BaseCombiner
from ...errors import InputError, InputWarning
from ...execution.local import reduce_blocks
from ...predictions import FloatArray
from ...predictions.validation import Weights, model_weights, positive, whole
from .noise import MOST_INSTANCES, add_noise, noise_scale
from .private_sums import PRIVATE, PrivateSums, from_vector, to_vector

__all__ = ["Guarantee", "fit"]

C = TypeVar("C", bound=BaseCombiner)

CLIP = 1.5  # a little more than the norm of two labels that all models give
_HIDES_LITTLE = 10.0  # from which ε on it is said
_CLIPS = 1e-6, 1e6  # between which numbers can be squared and added up
_MECHANISM = "Gaussian noise by OpenDP's make_gaussian"
_NEIGHBOURS = "panels that differ by adding or removing one instance"


class Guarantee(NamedTuple):
    """(ε, δ)-differential privacy of statistics, and how it was reached.

    Examples
    --------
    >>> print(Guarantee(1.0, 1e-6, scale=4.5, sensitivity=1.0))
    ε = 1, δ = 1e-06
    """

    epsilon: float
    delta: float
    # standard deviation of the noise in each release; √releases times that in their sum
    scale: float
    # the most that one instance adds, in Euclidean norm; `scale` is calibrated to it
    sensitivity: float
    clip: float | None = (
        None  # the norm that each instance's mean prediction is clipped to, where it is
    )
    releases: int = (
        1  # how many sites' releases were added up, each of its own instances
    )
    mechanism: str = _MECHANISM
    neighbours: str = _NEIGHBOURS

    def __str__(self) -> str:
        each = f"ε = {self.epsilon:g}, δ = {self.delta:g}"
        more = f"{each} in each of {self.releases:,} releases; those of the same people add up"
        if self.releases == 1:
            return each
        return more

    def cleared(self, combiner: BaseCombiner) -> Any:
        """Return a combiner's statistics without what can only be noise, so that they can be solved."""
        return PRIVATE[combiner.name].cleared(
            combiner.statistics_, _weights(combiner.weights_, combiner.models_)
        )


def guarantee_of(found: Any, kind: type[BaseCombiner], where: str) -> Guarantee:
    """Read the guarantee that a file gives for a method's statistics.

    Examples
    --------
    >>> from mlconsensus import MLCMr
    >>> guarantee_of(Guarantee(1.0, 1e-6, 4.5, 1.0)._asdict(), MLCMr, "a.stats, privacy").epsilon
    1.0
    """
    complete = isinstance(found, dict) and set(found) == set(Guarantee._fields)
    if not (complete):
        raise InputError(
            where=where,
            found="a broken guarantee",
            expected=", ".join(Guarantee._fields),
        )

    guarantee = Guarantee(**found)
    check(
        kind,
        guarantee.epsilon,
        guarantee.delta,
        CLIP if guarantee.clip is None else guarantee.clip,
        where,
    )
    for name in ("scale", "sensitivity"):
        positive(found[name], f"{where}, {name}")

    whole(guarantee.releases, f"{where}, releases", 1)
    known = _MECHANISM, _NEIGHBOURS
    if guarantee[-2:] != known:
        raise InputError(where=where, found=guarantee[-2:], expected=str(known))
    return guarantee


def check(
    kind: type[BaseCombiner],
    epsilon: float,
    delta: float,
    clip: float = CLIP,
    where: str = "privacy",
) -> None:
    """Refuse methods whose statistics cannot be private, and numbers that promise no privacy, or none that noise gives.

    Parameters
    ----------
    kind
        The method's estimator class.
    epsilon, delta, clip
        As in `fit`.
    where
        Says in error messages where they come from.

    Examples
    --------
    >>> from mlconsensus import MLCMr, WeightedConsensus
    >>> check(MLCMr, 1.0, 1.5)
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: privacy, delta: found 1.5, expected a number above 0 and below 1
    >>> check(WeightedConsensus, 1.0, 1e-6)
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: privacy: found Filter, for whose statistics ..., expected MLCM-r or MLCM-a
    """
    unknown = (
        f"{kind.name}, for whose statistics no bound is known on what one instance adds"
    )
    if kind.name not in PRIVATE:
        raise InputError(where=where, found=unknown, expected=" or ".join(PRIVATE))

    positive(epsilon, f"{where}, epsilon")
    if not (positive(delta, f"{where}, delta") < 1):
        raise InputError(
            where=f"{where}, delta",
            found=repr(delta),
            expected="a number above 0 and below 1",
        )

    least, most = _CLIPS
    fits = least <= positive(clip, f"{where}, clip") <= most
    if not (fits):
        raise InputError(
            where=f"{where}, clip",
            found=repr(clip),
            expected=f"a number from {least:g} to {most:g}",
        )


def fit(
    combiner: C, predictions: Any, *, epsilon: float, delta: float, clip: float = CLIP
) -> C:
    """Fit a combiner to statistics with noise, so that they are (ε, δ)-differentially private.

    Whoever sees the statistics, or anything made of them, can hardly tell whether any
    one instance was in the panel. Names of models and labels are taken for public. A
    second release of the same instances adds its ε and δ to those of the first.

    Parameters
    ----------
    combiner
        `MLCMr` or `MLCMa`.
    predictions
        `Predictions`, or anything that its constructor takes.
    epsilon, delta
        The smaller, the more private and the noisier. δ should be far below 1 divided
        by the number of instances.
    clip
        For `MLCMa`, the norm that each instance's mean prediction is scaled down to,
        where it is larger; from 1e-6 to 1e6. It must not be chosen by looking at the
        data.

    Returns
    -------
    The combiner.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, _ = mlc.datasets.make_panel(random_state=0)
    >>> private = mlc.privacy.fit(mlc.MLCMr(), panel, epsilon=1.0, delta=1e-6)
    >>> print(private.privacy_, private.n_instances_)
    ε = 1, δ = 1e-06 None
    """
    check(type(combiner), epsilon, delta, clip)
    panel = combiner.checked_panel(predictions)
    if panel.clusters:
        raise InputError(
            where="privacy",
            found="clusterings, whose clusters are made of the instances",
            expected="none",
        )
    if not (len(panel) <= MOST_INSTANCES):
        raise InputError(
            where="privacy",
            found=f"{len(panel):,} instances",
            expected=f"at most {MOST_INSTANCES:,}",
        )

    # With chance δ an instance may be shown as it is: of n instances, n·δ are.
    found = f"{delta:g} for {len(panel):,} instances, of which {delta * len(panel):.2g} may be shown as they are"
    if not (delta * len(panel) <= 0.1):
        raise InputError(
            where="privacy, delta",
            found=found,
            expected=f"at most a tenth of 1 / {len(panel):,}",
        )

    form = PRIVATE[combiner.name]
    weights = _weights(combiner.weights, panel.models)
    exact: PrivateSums = reduce_blocks(panel, partial(form.sums, weights, clip))
    values = to_vector(exact)
    scale = noise_scale(epsilon, delta, form.sensitivity, len(values))
    if epsilon > _HIDES_LITTLE:
        tells = f"what is released may be e^{epsilon:g} times as likely with an instance as without it"
        warnings.warn(
            f"privacy: ε = {epsilon:g} hides little: {tells}; 1 is usual",
            InputWarning,
            2,
        )

    if scale > np.abs(values).max():  # which is said here, and is not in the release
        wanted = "a larger ε or more instances give scores that mean something"
        warnings.warn(
            f"privacy: the noise (±{scale:.3g}) is larger than every sum; {wanted}",
            InputWarning,
            2,
        )

    noisy = from_vector(add_noise(values, scale), len(exact.gram))
    guarantee = Guarantee(
        float(epsilon),
        float(delta),
        scale,
        form.sensitivity,
        float(clip) if form.clips else None,
    )
    statistics = form.statistics(noisy, weights, clip)
    return combiner.take(
        None,
        models=panel.models,
        labels=panel.labels,
        statistics=statistics,
        privacy=guarantee,
    )


def _weights(weights: Weights, models: Sequence[str]) -> FloatArray:
    found = model_weights(weights, models)
    if found is None:
        return np.ones(len(models))
    return found
