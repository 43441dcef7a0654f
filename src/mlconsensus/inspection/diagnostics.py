"""Diagnostics of predictions without ground truth: agreement, flagged models."""

from dataclasses import dataclass

import numpy as np

from ..combiners.base import BaseCombiner
from ..combiners.reliability import Families
from ..linalg.annotations import make_annotations
from ..linalg.block_sums import ratio
from ..predictions import BasePredictions, FloatArray, Predictions
from ..predictions.families import FamiliesLike
from ..predictions.sampling import subsample_for_diagnostics
from .effective_models import (
    EffectiveModels,
    combine_families,
    estimate_effective_models,
)
from .families import FamilyDiagnostics, describe_families, find_signs, fit_families
from .model_quality import FlaggedModel, flag_families, flag_models
from .pairwise import (
    PairwiseStatistics,
    compute_pairwise_statistics,
    compute_product_scale,
    estimate_reliability,
    weigh_pairs,
)


@dataclass(frozen=True, kw_only=True)
class PanelDiagnostics:
    """Diagnostics of the models and labels of some predictions.

    Attributes
    ----------
    flags : tuple of FlaggedModel
        Models that are random, inverted or weak, and notes about duplicates and
        families.
    families : FamilyDiagnostics
        Families of related models, with the evidence for each.
    effective_models : EffectiveModels
        How many independent models all models are worth. A family counts by Kish's
        formula.
    """

    models: tuple[str, ...]
    labels: tuple[str, ...]
    agreement: FloatArray  # (m, m) correlation of two models' scores over all labels
    shared: FloatArray  # (m, m) number of instances of both models; 0 on the diagonal
    reliability: FloatArray  # (m,) correlation of a model with the common factor
    # (l,) mean squared difference of two models' scores: for 0/1 predictions, how often
    # they differ
    dispute: FloatArray
    flags: tuple[FlaggedModel, ...]
    families: FamilyDiagnostics
    effective_models: EffectiveModels

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
        return [flag.sentence for flag in self.flags]

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
    >>> [(flag.kind, flag.models) for flag in diagnostics.flags]
    [('random', ('model_4',))]
    >>> print(diagnostics.effective_models)
    5 models are worth at most ... independent models (95 % interval ...)
    """

    panel: PanelDiagnostics
    # share of instances whose first label is not among those that voting ranks first
    moved: float

    @property
    def flags(self) -> tuple[FlaggedModel, ...]:
        """Models flagged as random, inverted, weak, or related, with the evidence."""
        return self.panel.flags

    @property
    def families(self) -> FamilyDiagnostics:
        """Families of related models, with the evidence for each."""
        return self.panel.families

    @property
    def effective_models(self) -> EffectiveModels:
        """Effective number of models, an upper estimate."""
        return self.panel.effective_models

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
        if self.effective_models.sentence:
            lines.append(self.effective_models.sentence)
        for flag in self.flags:
            # Families have sentences of their own.
            if flag.kind != "family":
                lines.append(flag.sentence)
        lines.extend(self.families.sentences)
        return "\n".join(lines)


def examine(
    predictions: BasePredictions,
    combiner: BaseCombiner | None = None,
    families: FamiliesLike = None,
) -> PanelDiagnostics:
    """Compute diagnostics of the models and labels.

    At most 2²⁴ predictions are used, and only the first block of predictions in files.

    Parameters
    ----------
    predictions : BasePredictions
        In memory or in files.
    combiner : BaseCombiner, default=None
        The fitted method. The families of a `WeightedConsensus` are used; otherwise
        they are estimated.
    families : None, "independent", "by-name" or mapping, default=None
        Families of related models, as in `combine`, if they are estimated here.

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
    models = predictions.models
    sample = subsample_for_diagnostics(predictions)
    annotations = make_annotations(sample)

    # Families, which quality is judged across
    state, origin = fit_families(sample, combiner, families)
    family_diagnostics = describe_families(models, state, origin)
    pair_weights = weigh_pairs(state.family.astype(np.int64), find_signs(state))
    statistics = compute_pairwise_statistics(annotations, pair_weights)
    m = len(models)

    # Correlation of each pair of models
    correlation = ratio(
        statistics.products, compute_product_scale(statistics.squares), 0.0
    )
    correlation = np.clip(correlation, -1, 1)
    np.fill_diagonal(correlation, 1.0)

    # Flagged models
    reliability = estimate_reliability(statistics, pair_weights)
    flags = [
        *flag_models(statistics, reliability, annotations, models, pair_weights),
        *flag_families(family_diagnostics, statistics, models),
    ]

    return PanelDiagnostics(
        models=predictions.models,
        labels=predictions.labels,
        agreement=correlation,
        shared=statistics.instances * (1 - np.eye(m)),
        reliability=reliability.of_each,
        dispute=statistics.dispute,
        flags=tuple(flags),
        families=family_diagnostics,
        effective_models=_count_effective_models(
            sample, statistics, state, family_diagnostics, flags
        ),
    )


def _count_effective_models(
    sample: Predictions,
    statistics: PairwiseStatistics,
    state: Families,
    families: FamilyDiagnostics,
    flags: list[FlaggedModel],
) -> EffectiveModels:
    """Return how many independent models all models are worth."""
    models = sample.models
    if not families.families:
        # Duplicates are a lower bound of the correlation of errors.
        n_duplicates = sum(flag.kind == "duplicate" for flag in flags)
        n_pairs = max(len(models) * (len(models) - 1) / 2, 1)
        return estimate_effective_models(
            len(models), statistics.departures, n_duplicates / n_pairs
        )

    # One model of each family: that with the largest share
    representatives = np.unique(np.abs(state.shares).argmax(axis=1))
    selected = sample.select(models=[models[k] for k in representatives])
    departures = compute_pairwise_statistics(make_annotations(selected)).departures
    between = estimate_effective_models(len(representatives), departures)
    n_alone = families.n_families - len(families.families)
    return combine_families(
        len(models),
        between,
        [record.effective_models for record in families.families],
        n_alone,
    )


def diagnose(
    predictions: Predictions,
    scores: FloatArray,
    vote: FloatArray,
    combiner: BaseCombiner | None = None,
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
    combiner : BaseCombiner, default=None
        The fitted method, as in `examine`.

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
    return Diagnostics(
        panel=examine(predictions, combiner), moved=float(is_moved.mean())
    )


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
