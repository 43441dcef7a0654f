"""Does it help here? What a panel tells about itself without any truth."""

from typing import NamedTuple

import numpy as np
from sklearn.base import clone

from ..combiners.base import BaseCombiner
from ..linalg.annotations import make_annotations
from ..linalg.block_sums import FloatArray, ratio
from ..predictions import BasePredictions, Predictions
from ..predictions.sampling import subsample_for_diagnostics
from .effective_models import Voices, count_voices
from .model_quality import Suspect, suspects
from .pairwise import common_factor, compute_pairwise_statistics, scale_of


class Examined(NamedTuple):
    """What a panel tells about its models and labels."""

    models: tuple[str, ...]
    labels: tuple[str, ...]
    # (m, m) correlation of what two models say, over all labels together
    agreement: FloatArray
    # (m, m) how many instances two models spoke about; 0 for a model with itself
    shared: FloatArray
    # (m,) correlation of what a model says with what models have in common
    reliability: FloatArray
    # (l,) mean squared difference of two models' scores: how often they differ, if they
    # decide
    dispute: FloatArray
    suspects: tuple[Suspect, ...]  # models that the evidence is against
    voices: Voices  # effective number of models

    @property
    def mean_agreement(self) -> float:
        """Mean correlation of two different models, by how many instances they share; 1 for one model alone."""
        if len(self.models) > 1:
            shared = self.shared
        else:
            shared = np.ones((1, 1))

        return float(ratio((self.agreement * shared).sum(), shared.sum(), 0.0))

    def warnings(self) -> list[str]:
        """Say in one sentence each which models should be looked at."""
        return [found.sentence for found in self.suspects]

    def most_disputed(self, count: int = 10) -> list[tuple[str, float]]:
        """Return the labels on which models differ most, with how far."""
        return [
            (self.labels[j], float(self.dispute[j]))
            for j in np.argsort(-self.dispute, kind="stable")[:count]
        ]


class Diagnostics(NamedTuple):
    """What a panel tells about itself, and how far its consensus departs from voting.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, _ = mlc.datasets.make_panel(quality=[0.8, 0.8, 0.8, 0.8, 0], shared_errors=0, random_state=0)
    >>> found = mlc.combine(panel).diagnostics
    >>> [(one.kind, one.raters) for one in found.suspects]
    [('random', ('model_4',))]
    >>> print(found.voices)
    5 models speak with at most ... independent voices (95 % interval ...)
    """

    panel: Examined
    # share of instances whose first label is none of those that voting puts first
    moved: float

    @property
    def suspects(self) -> tuple[Suspect, ...]:
        """Models that the evidence is against, with the evidence."""
        return self.panel.suspects

    @property
    def voices(self) -> Voices:
        """How many models with errors of their own the panel is worth at most."""
        return self.panel.voices

    def __str__(self) -> str:
        disputed = ", ".join(
            f"{name} ({far:.2f})" for name, far in self.panel.most_disputed(3)
        )
        agree = f"models agree with a mean correlation of {self.panel.mean_agreement:.2f}; most disputed: {disputed}"
        moved = f"the consensus puts another label first than voting for {self.moved:.1%} of the instances"
        return "\n".join(
            [
                agree,
                moved,
                *filter(None, [self.voices.sentence]),
                *self.panel.warnings(),
            ]
        )


def examine(predictions: BasePredictions) -> Examined:
    """Look at the models and labels of a panel: at most 2²⁴ cells of it, and the first block of one in files.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, _ = mlc.datasets.make_panel(random_state=0)
    >>> examine(panel).warnings()
    []
    """
    said = make_annotations(subsample_for_diagnostics(predictions))
    met = compute_pairwise_statistics(said)
    names = predictions.models
    m = len(predictions.models)
    agreement = np.clip(ratio(met.products, scale_of(met.squares), 0.0), -1, 1)
    np.fill_diagonal(agreement, 1.0)
    reliability = common_factor(met)
    accused = suspects(met, reliability, said, names)
    copied = sum(found.kind == "copy" for found in accused) / max(m * (m - 1) / 2, 1)
    voices = count_voices(m, met.departures, copied)
    shared = met.instances * (1 - np.eye(m))
    return Examined(
        names,
        predictions.labels,
        agreement,
        shared,
        reliability.of_each,
        met.dispute,
        accused,
        voices,
    )


def diagnose(
    predictions: Predictions, scores: FloatArray, vote: FloatArray
) -> Diagnostics:
    """Look at a panel, and at how far the consensus `scores` (n, l) departs from the majority `vote` (n, l).

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, _ = mlc.datasets.make_panel(random_state=0)
    >>> vote = mlc.majority_vote(panel)
    >>> diagnose(panel, vote, vote).moved
    0.0
    """
    first = np.take_along_axis(vote, scores.argmax(axis=1)[:, None], axis=1)[:, 0]
    return Diagnostics(examine(predictions), float((first < vote.max(axis=1)).mean()))


def leave_one_model_out(
    predictions: Predictions, combiner: BaseCombiner
) -> tuple[FloatArray, FloatArray]:
    """Find the lowest and the highest score (n, l) that each cell gets when any one model is left out.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, _ = mlc.datasets.make_panel(n_instances=20, n_models=3, random_state=0)
    >>> low, high = leave_one_model_out(panel, mlc.WeightedConsensus())
    >>> low.shape, bool((low <= high).all())
    ((20, 20), True)
    """
    low = high = clone(combiner).fit_transform(predictions)
    if len(predictions.models) > 1:
        for left_out in predictions.models:
            kept = [model for model in predictions.models if model != left_out]
            scores = clone(combiner).fit_transform(predictions.select(models=kept))
            low = np.minimum(low, scores)
            high = np.maximum(high, scores)

    return low, high
