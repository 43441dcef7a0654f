"""Summaries of the predictions and of their models.

They contain the number of predictions of each model, the models' agreement, and the
models that are flagged.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ..combiners.base import BaseCombiner
from ..inspection.diagnostics import PanelDiagnostics
from ..inspection.effective_models import EffectiveModels
from ..inspection.families import FamilyDiagnostics, list_names
from ..inspection.model_quality import FlaggedModel
from ..inspection.pairwise import FEW
from ..predictions import FloatArray, Matrix, Predictions
from .labels import ordered, strongest

MOST_MODELS = 40  # in the agreement matrix; more would not be readable


@dataclass(frozen=True, kw_only=True)
class ModelGlance:
    """Counts of the predictions of one model."""

    name: str
    instances: int  # with a prediction
    labels: int  # with a prediction
    missing: float  # share of the instance-label pairs without a prediction
    # mean sum of the scores of an instance: its number of labels, for binary scores
    cardinality: float
    decides: bool  # whether all scores are 0 or 1


@dataclass(frozen=True, kw_only=True)
class PanelSummary:
    """Counts of the predictions of all models."""

    n_models: int
    n_instances: int
    n_labels: int
    missing: float  # share of the instance-label pairs
    cardinality: float  # mean number of labels that the models predict
    models: tuple[ModelGlance, ...]
    n_clusterings: int  # inputs that group instances without labels


def summarize_panel(predictions: Predictions, cardinality: FloatArray) -> PanelSummary:
    """Count the predictions of the models.

    Parameters
    ----------
    predictions : Predictions
        Predictions of all models.
    cardinality : ndarray of shape (n,)
        Mean number of labels that the models predict for each instance.

    Returns
    -------
    PanelSummary

    Examples
    --------
    >>> import numpy as np
    >>> import mlconsensus as mlc
    >>> scores = np.array([[0.5, np.nan], [np.nan, np.nan]])
    >>> panel = mlc.Predictions({"a": np.array([[1, 0], [1, 1]]), "b": scores})
    >>> summary = summarize_panel(panel, mlc.decision.cardinalities(panel))
    >>> summary.missing, summary.models[1].missing, summary.models[1].decides
    (0.375, 0.75, False)
    """
    m, n, l = predictions.shape
    models = []
    for name, (values, is_predicted) in zip(
        predictions.models, predictions.brought(), strict=True
    ):
        if is_predicted is None:
            is_predicted = np.ones(values.shape, dtype=np.bool_)

        n_predicted = int(is_predicted.any(axis=1).sum())
        total = float(values.sum(dtype=np.float64))
        glance = ModelGlance(
            name=name,
            instances=n_predicted,
            labels=int(is_predicted.any(axis=0).sum()),
            missing=1 - int(is_predicted.sum()) / (n * l),
            cardinality=total / max(n_predicted, 1),
            decides=_is_binary(values),
        )
        models.append(glance)

    return PanelSummary(
        n_models=m,
        n_instances=n,
        n_labels=l,
        missing=float(np.mean([model.missing for model in models])),
        cardinality=float(np.mean(cardinality)),
        models=tuple(models),
        n_clusterings=predictions.members.shape[1],
    )


def _is_binary(values: Matrix) -> bool:
    """Return whether all scores are 0 or 1."""
    if sparse.issparse(values):
        values = values.data
    if values.dtype.kind in "biu":
        return True
    return bool(((values == 0) | (values == 1)).all())


@dataclass(frozen=True, kw_only=True)
class ModelRow:
    """Diagnostics of one model, computed from the other models' predictions."""

    name: str
    reliability: float  # correlation with what the models have in common
    weight: float | None  # None: the method does not learn weights
    # the model with the highest agreement; None: few instances are shared with others
    nearest: str | None
    agreement: float | None  # with the nearest
    remark: str  # flags of the model, such as "weak; family with b"; may be empty


@dataclass(frozen=True, kw_only=True)
class ModelsSummary:
    """Agreement of the models, and the models that are flagged."""

    rows: tuple[ModelRow, ...]
    order: tuple[str, ...]  # rows and columns of the matrix, similar models adjacent
    agreement: FloatArray  # correlations over all labels; 0 if few instances are shared
    mean_agreement: float | None  # over pairs of different models
    flags: tuple[FlaggedModel, ...]
    families: FamilyDiagnostics
    effective_models: EffectiveModels


def summarize_models(
    diagnostics: PanelDiagnostics, combiner: BaseCombiner
) -> ModelsSummary:
    """Summarize the diagnostics of each model.

    Parameters
    ----------
    diagnostics : PanelDiagnostics
        Diagnostics of the predictions.
    combiner : BaseCombiner
        The fitted method, for the models' weights.

    Returns
    -------
    ModelsSummary

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, _ = mlc.datasets.make_panel(
    ...     quality=[0.8, 0.8, 0.8, 0.8, 0], shared_errors=0, random_state=0
    ... )
    >>> consensus = mlc.combine(panel)
    >>> summarize_models(consensus.diagnostics.panel, consensus.combiner).rows[4].remark
    'random'
    """
    names = diagnostics.models
    m = len(names)

    # Agreement counts only for models that share enough instances
    min_shared = max(1, min(FEW, diagnostics.shared.max()))
    is_comparable = diagnostics.shared >= min_shared
    agreement = np.where(is_comparable, diagnostics.agreement, np.eye(m))
    nearest = np.where(is_comparable, agreement, -2.0).argmax(axis=1)
    weights = getattr(combiner, "model_weights_", np.full(m, None)).tolist()

    rows = []
    for k, name in enumerate(names):
        nearest_name = None
        nearest_agreement = None
        if is_comparable[k].any():
            nearest_name = names[nearest[k]]
            nearest_agreement = float(agreement[k, nearest[k]])

        row = ModelRow(
            name=name,
            reliability=float(diagnostics.reliability[k]),
            weight=weights[k],
            nearest=nearest_name,
            agreement=nearest_agreement,
            remark=_describe_flags(diagnostics.flags, name),
        )
        rows.append(row)

    # The agreement matrix of the models that are shown
    selected = strongest(agreement, MOST_MODELS)
    selected = selected[ordered(agreement[np.ix_(selected, selected)])]
    mean_agreement = None
    if m > 1:
        mean_agreement = diagnostics.mean_agreement

    return ModelsSummary(
        rows=tuple(rows),
        order=tuple(names[k] for k in selected),
        agreement=agreement[np.ix_(selected, selected)],
        mean_agreement=mean_agreement,
        flags=diagnostics.flags,
        families=diagnostics.families,
        effective_models=diagnostics.effective_models,
    )


def _describe_flags(flags: tuple[FlaggedModel, ...], name: str) -> str:
    """Return the flags of a model as words; empty if it is not flagged."""
    quality: list[str] = []
    duplicates: list[str] = []
    members: list[str] = []
    for flag in flags:
        if name not in flag.models:
            continue
        others = [other for other in flag.models if other != name]
        if flag.kind == "duplicate":
            duplicates += others
        elif flag.kind == "family":
            members += others
        else:
            quality.append(flag.kind)

    # A duplicate needs no second mention as a member of the family.
    members = [other for other in members if other not in duplicates]
    remarks = quality
    if duplicates:
        remarks.append(f"duplicate of {list_names(duplicates)}")
    if members:
        remarks.append(f"family with {list_names(members)}")
    return "; ".join(remarks)
