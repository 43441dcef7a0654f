"""Diagnostics of predictions without ground truth: agreement, flagged models."""

from dataclasses import dataclass

import numpy as np

from ..combiners.base import BaseCombiner
from ..linalg.annotations import make_annotations
from ..linalg.block_sums import ratio
from ..predictions import BasePredictions, FloatArray, Predictions
from ..predictions.sampling import subsample_for_diagnostics
from .effective_models import EffectiveModels, estimate_effective_models
from .model_quality import FlaggedModel, flag_models
from .pairwise import (
    compute_pairwise_statistics,
    compute_product_scale,
    estimate_reliability,
)


@dataclass(frozen=True, kw_only=True)
class PanelDiagnostics:
    """Diagnostics of the models and labels of some predictions."""

    models: tuple[str, ...]
    labels: tuple[str, ...]
    agreement: FloatArray  # (m, m) correlation of two models' scores over all labels
    shared: FloatArray  # (m, m) number of instances of both models; 0 on the diagonal
    reliability: FloatArray  # (m,) correlation of a model with the common factor
    # (l,) mean squared difference of two models' scores: for 0/1 predictions, how often
    # they differ
    dispute: FloatArray
    suspects: tuple[FlaggedModel, ...]  # flagged models
    voices: EffectiveModels  # effective number of models

    @property
    def mean_agreement(self) -> float:
        """Mean correlation of two models, weighted by shared instances; 1 for one."""
        if len(self.models) > 1:
            weights = self.shared
        else:
            weights = np.ones((1, 1))

        return float(ratio((self.agreement * weights).sum(), weights.sum(), 0.0))

    def warnings(self) -> list[str]:
        """Return one sentence for each flagged model."""
        return [flagged.sentence for flagged in self.suspects]

    def most_disputed(self, count: int = 10) -> list[tuple[str, float]]:
        """Return the labels on which models differ most, and their `dispute`.

        Parameters
        ----------
        count : int, default=10
            Maximum number of labels.

        Returns
        -------
        list of (str, float)
            The most disputed label first.
        """
        order = np.argsort(-self.dispute, kind="stable")[:count]
        return [(self.labels[j], float(self.dispute[j])) for j in order]


@dataclass(frozen=True, kw_only=True)
class Diagnostics:
    """Diagnostics of predictions, and how far their consensus departs from voting.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, _ = mlc.datasets.make_panel(
    ...     quality=[0.8, 0.8, 0.8, 0.8, 0], shared_errors=0, random_state=0
    ... )
    >>> diagnostics = mlc.combine(panel).diagnostics
    >>> [(flagged.kind, flagged.raters) for flagged in diagnostics.suspects]
    [('random', ('model_4',))]
    >>> print(diagnostics.voices)
    5 models are worth at most ... independent models (95 % interval ...)
    """

    panel: PanelDiagnostics
    # share of instances whose first label is not among those that voting ranks first
    moved: float

    @property
    def suspects(self) -> tuple[FlaggedModel, ...]:
        """Models flagged as random, inverted or duplicate, with the evidence."""
        return self.panel.suspects

    @property
    def voices(self) -> EffectiveModels:
        """Effective number of models, an upper estimate."""
        return self.panel.voices

    def __str__(self) -> str:
        disputed = ", ".join(
            f"{label} ({dispute:.2f})" for label, dispute in self.panel.most_disputed(3)
        )
        lines = [
            "models agree with a mean correlation of "
            f"{self.panel.mean_agreement:.2f}; most disputed: {disputed}",
            "the consensus puts another label first than voting for "
            f"{self.moved:.1%} of the instances",
        ]
        if self.voices.sentence:
            lines.append(self.voices.sentence)
        lines.extend(self.panel.warnings())
        return "\n".join(lines)


def examine(predictions: BasePredictions) -> PanelDiagnostics:
    """Compute diagnostics of the models and labels.

    At most 2²⁴ predictions are used, and only the first block of predictions in files.

    Parameters
    ----------
    predictions : BasePredictions
        In memory or in files.

    Returns
    -------
    PanelDiagnostics

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, _ = mlc.datasets.make_panel(random_state=0)
    >>> examine(panel).warnings()
    []
    """
    annotations = make_annotations(subsample_for_diagnostics(predictions))
    statistics = compute_pairwise_statistics(annotations)
    m = len(predictions.models)

    # Correlation of each pair of models
    correlation = ratio(
        statistics.products, compute_product_scale(statistics.squares), 0.0
    )
    correlation = np.clip(correlation, -1, 1)
    np.fill_diagonal(correlation, 1.0)

    # Flagged models
    reliability = estimate_reliability(statistics)
    flagged = flag_models(statistics, reliability, annotations, predictions.models)

    # Effective number of models
    n_duplicates = sum(model.kind == "copy" for model in flagged)
    n_pairs = max(m * (m - 1) / 2, 1)
    effective_models = estimate_effective_models(
        m, statistics.departures, n_duplicates / n_pairs
    )

    return PanelDiagnostics(
        models=predictions.models,
        labels=predictions.labels,
        agreement=correlation,
        shared=statistics.instances * (1 - np.eye(m)),
        reliability=reliability.of_each,
        dispute=statistics.dispute,
        suspects=flagged,
        voices=effective_models,
    )


def diagnose(
    predictions: Predictions, scores: FloatArray, vote: FloatArray
) -> Diagnostics:
    """Compute diagnostics of the predictions and of their consensus.

    Parameters
    ----------
    predictions : Predictions
        The predictions that were combined.
    scores : ndarray of shape (n, l)
        Consensus scores.
    vote : ndarray of shape (n, l)
        Scores of majority voting.

    Returns
    -------
    Diagnostics

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, _ = mlc.datasets.make_panel(random_state=0)
    >>> vote = mlc.majority_vote(panel)
    >>> diagnose(panel, vote, vote).moved
    0.0
    """
    first_label = scores.argmax(axis=1)[:, None]
    vote_of_first = np.take_along_axis(vote, first_label, axis=1)[:, 0]
    is_moved = vote_of_first < vote.max(axis=1)
    return Diagnostics(panel=examine(predictions), moved=float(is_moved.mean()))


def leave_one_model_out(
    predictions: Predictions, combiner: BaseCombiner
) -> tuple[FloatArray, FloatArray]:
    """Return the range of the scores if any one model is left out.

    Parameters
    ----------
    predictions : Predictions
        The predictions that are combined.
    combiner : BaseCombiner
        Clones of it are fitted.

    Returns
    -------
    low, high : ndarray of shape (n, l)
        The lowest and the highest score. The score of all models is within.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, _ = mlc.datasets.make_panel(n_instances=20, n_models=3, random_state=0)
    >>> low, high = leave_one_model_out(panel, mlc.WeightedConsensus())
    >>> low.shape, bool((low <= high).all())
    ((20, 20), True)
    """
    low = high = combiner.make_unfitted_copy().fit_transform(predictions)
    if len(predictions.models) == 1:
        return low, high

    for left_out in predictions.models:
        others = [model for model in predictions.models if model != left_out]
        scores = combiner.make_unfitted_copy().fit_transform(
            predictions.select(models=others)
        )
        low = np.minimum(low, scores)
        high = np.maximum(high, scores)

    return low, high
