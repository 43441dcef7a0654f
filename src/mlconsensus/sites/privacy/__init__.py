"""Differential privacy: statistics with noise that hides whether any one instance was in the panel.

One file for each method whose statistics can be released so, `mlcm_r` and `mlcm_a`; `noise` is where OpenDP comes in.
docs/privacy.md has the proofs, and what the noise costs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from ...engines import gather
from ...errors import InputError
from ...estimators import COMBINERS, Combiner
from ...panel.predictions import Predictions
from ...parameters import model_weights, positive
from . import mlcm_a, mlcm_r
from .guarantee import Guarantee
from .noise import MOST_INSTANCES, add_noise, noise_scale

__all__ = ["Guarantee", "fit"]

C = TypeVar("C", bound=Combiner)

CLIP = 1.5  # a little more than the norm of two labels that all models give
_METHODS: dict[str, Any] = {"MLCM-r": mlcm_r, "MLCM-a": mlcm_a}


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
        For `MLCMa`, the norm that each instance's mean prediction is scaled down to, where it is larger. It must not
        be chosen by looking at the data.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, _ = mlc.datasets.make_panel(random_state=0)
    >>> private = mlc.privacy.fit(mlc.MLCMr(), panel, epsilon=1.0, delta=1e-6)
    >>> print(private.privacy_, private.n_instances_)
    ε = 1, δ = 1e-06 None
    """
    method = method_of(type(combiner))
    check_budget(epsilon, delta, clip)
    panel = combiner._checked(predictions)
    if panel.clusters:
        raise InputError("privacy: found clusterings, whose clusters are made of the instances, expected none")
    if len(panel) > MOST_INSTANCES:
        raise InputError(f"privacy: found {len(panel):,} instances, expected at most {MOST_INSTANCES:,}")
    weights = model_weights(combiner.weights, panel.models)
    values = method.to_vector(gather(panel, partial(_sums, method.sums, weights, clip)))
    scale = noise_scale(epsilon, delta, method.SENSITIVITY, len(values))
    noisy = add_noise(values, scale)
    statistics = method.from_vector(noisy, len(panel.models), len(panel.labels), weights, clip)
    clipped = float(clip) if method is mlcm_a else None
    guarantee = Guarantee(float(epsilon), float(delta), scale, method.SENSITIVITY, clipped)
    return marked(combiner.take(panel.models, panel.labels, None, statistics=statistics), guarantee)


def marked(combiner: C, guarantee: Guarantee | None) -> C:
    """Say what a combiner's statistics guarantee; private ones are cleared of what is mere noise before solving."""
    combiner.privacy_, combiner.prepared_ = guarantee, None
    combiner.adjust_ = None if guarantee is None else partial(method_of(type(combiner)).cleared, combiner)
    return combiner


def check_budget(epsilon: float, delta: float, clip: float = CLIP) -> None:
    """Refuse numbers that promise no privacy, or none that noise can give.

    Examples
    --------
    >>> check_budget(1.0, 1.5)
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: delta: found 1.5, expected a number above 0 and below 1
    """
    positive(epsilon, "epsilon")
    positive(clip, "clip")
    if not positive(delta, "delta") < 1:
        raise InputError(f"delta: found {delta!r}, expected a number above 0 and below 1")


def _sums(sums: Callable[[Predictions, float], Any], weights: Any, clip: float, block: Predictions) -> Any:
    return sums(block.weighted(weights), clip)


def method_of(kind: type[Combiner]) -> Any:
    """Return what makes a method's statistics private; refuse a method that has no such thing.

    Examples
    --------
    >>> from mlconsensus.estimators import RaterFilter
    >>> method_of(RaterFilter)
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: privacy: found Filter, for whose statistics ..., expected MLCM-r or MLCM-a
    """
    if kind.name not in _METHODS:
        known = " or ".join(name for name in COMBINERS if name in _METHODS)
        raise InputError(
            f"privacy: found {kind.name}, for whose statistics no bound is known on what one instance adds, "
            f"expected {known}"
        )
    return _METHODS[kind.name]
