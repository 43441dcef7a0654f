"""Differential privacy: statistics with noise that hides whether any one instance was in the panel.

`private_sums` has what is released for each method, `noise` is where OpenDP comes in. docs/privacy.md has the proofs,
and what the noise costs.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple, TypeVar

from ..arithmetic.products import FloatArray
from ..engines import gather
from ..errors import InputError
from ..estimators import Combiner
from ..panel.predictions import Predictions
from ..parameters import model_weights, positive, whole
from .noise import MOST_INSTANCES, add_noise, noise_scale
from .private_sums import PRIVATE, PrivateSums, from_vector, to_vector

__all__ = ["Guarantee", "fit"]

C = TypeVar("C", bound=Combiner)

CLIP = 1.5  # a little more than the norm of two labels that all models give
_CLIPS = 1e-6, 1e6  # between which numbers can be squared and added up
_MECHANISM = "Gaussian noise by OpenDP's make_gaussian"
_NEIGHBOURS = "panels that differ by adding or removing one instance"


class Guarantee(NamedTuple):
    """(ε, δ)-differential privacy of statistics, and how it was reached.

    Examples
    --------
    >>> Guarantee(1.0, 1e-6, 4.5, 1.0, releases=4).total_scale
    9.0
    """

    epsilon: float
    delta: float
    scale: float  # standard deviation of the noise
    sensitivity: float  # the most that one instance adds, in Euclidean norm; `scale` is calibrated to it
    clip: float | None = None  # the norm that each instance's mean prediction is clipped to, where it is
    releases: int = 1  # how many sites' releases were added up, each of its own instances
    mechanism: str = _MECHANISM
    neighbours: str = _NEIGHBOURS

    @property
    def total_scale(self) -> float:
        """Standard deviation of the noise in the sum of all releases."""
        return self.scale * math.sqrt(self.releases)

    def __str__(self) -> str:
        return f"ε = {self.epsilon:g}, δ = {self.delta:g}"


def guarantee_of(found: Any, kind: type[Combiner], where: str) -> Guarantee:
    """Read the guarantee that a file gives for a method's statistics.

    Examples
    --------
    >>> from mlconsensus.estimators import MLCMr
    >>> guarantee_of(Guarantee(1.0, 1e-6, 4.5, 1.0)._asdict(), MLCMr, "a.stats, privacy").epsilon
    1.0
    """
    if not isinstance(found, dict) or set(found) != set(Guarantee._fields):
        raise InputError(f"{where}: found a broken guarantee, expected {', '.join(Guarantee._fields)}")
    guarantee = Guarantee(**found)
    check(kind, guarantee.epsilon, guarantee.delta, CLIP if guarantee.clip is None else guarantee.clip, where)
    for name in ("scale", "sensitivity"):
        positive(found[name], f"{where}, {name}")
    whole(guarantee.releases, f"{where}, releases", 1)
    for name, known in (("mechanism", _MECHANISM), ("neighbours", _NEIGHBOURS)):
        if found[name] != known:
            raise InputError(f"{where}, {name}: found {found[name]!r}, expected {known!r}")
    return guarantee


def check(kind: type[Combiner], epsilon: float, delta: float, clip: float = CLIP, where: str = "privacy") -> None:
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
    >>> from mlconsensus.estimators import MLCMr, RaterFilter
    >>> check(MLCMr, 1.0, 1.5)
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: privacy, delta: found 1.5, expected a number above 0 and below 1
    >>> check(RaterFilter, 1.0, 1e-6)
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: privacy: found Filter, for whose statistics ..., expected MLCM-r or MLCM-a
    """
    if kind.name not in PRIVATE:
        raise InputError(
            f"{where}: found {kind.name}, for whose statistics no bound is known on what one instance adds, "
            f"expected {' or '.join(PRIVATE)}"
        )
    positive(epsilon, f"{where}, epsilon")
    if not positive(delta, f"{where}, delta") < 1:
        raise InputError(f"{where}, delta: found {delta!r}, expected a number above 0 and below 1")
    least, most = _CLIPS
    if not least <= positive(clip, f"{where}, clip") <= most:
        raise InputError(f"{where}, clip: found {clip!r}, expected a number from {least:g} to {most:g}")


def fit(combiner: C, predictions: Any, *, epsilon: float, delta: float, clip: float = CLIP) -> C:
    """Fit a combiner to statistics with noise, so that they are (ε, δ)-differentially private.

    Whoever sees the statistics, or anything made of them, can hardly tell whether any one instance was in the
    panel. Names of models and labels are taken for public. A second release of the same instances adds its ε and δ
    to those of the first.

    Parameters
    ----------
    combiner
        `MLCMr` or `MLCMa`.
    predictions
        `Predictions`, or anything that its constructor takes.
    epsilon, delta
        The smaller, the more private and the noisier. δ should be far below 1 divided by the number of instances.
    clip
        For `MLCMa`, the norm that each instance's mean prediction is scaled down to, where it is larger; from 1e-6 to
        1e6. It must not be chosen by looking at the data.

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
        raise InputError("privacy: found clusterings, whose clusters are made of the instances, expected none")
    if len(panel) > MOST_INSTANCES:
        raise InputError(f"privacy: found {len(panel):,} instances, expected at most {MOST_INSTANCES:,}")
    form, (m, _, l) = PRIVATE[combiner.name], panel.shape
    weights = model_weights(combiner.weights, panel.models)
    exact = gather(panel, partial(_private_sums, form, weights, clip))
    values = to_vector(exact)
    scale = noise_scale(epsilon, delta, form.sensitivity, len(values))
    noisy = from_vector(add_noise(values, scale), len(exact.gram))
    guarantee = Guarantee(float(epsilon), float(delta), scale, form.sensitivity, float(clip) if form.clips else None)
    statistics = form.statistics(noisy, m, l, weights, clip)
    return combiner.take(panel.models, panel.labels, None, statistics=statistics, **private(combiner, guarantee))


def private(combiner: Combiner, guarantee: Guarantee | None) -> dict[str, Any]:
    """Return what `Combiner.take` needs to know of private statistics: before solving, mere noise is taken off them."""
    return {"privacy": guarantee, "adjust": guarantee and PRIVATE[combiner.name].cleared}


def _private_sums(form: Any, weights: FloatArray | None, clip: float, block: Predictions) -> PrivateSums:
    sums: PrivateSums = form.sums(block.weighted(weights), clip)
    return sums
