"""The panel at a glance, and its models: what each said, who agrees with whom, who looks random or copied."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..combiners.base import BaseCombiner
from ..inspection.diagnostics import PanelDiagnostics
from ..inspection.effective_models import EffectiveModels
from ..inspection.model_quality import FlaggedModel
from ..inspection.pairwise import FEW
from ..predictions import FloatArray, Predictions
from .labels import ordered, strongest

MOST_MODELS = 40  # in the agreement matrix; more would not be readable


@dataclass(frozen=True, kw_only=True)
class ModelGlance:
    """How much one model said."""

    name: str
    instances: int  # about which it said anything
    labels: int  # about which it said anything
    missing: float  # share of the panel's cells about which it was silent
    # sum of its scores over an instance about which it spoke: its labels, if it decides
    cardinality: float
    decides: bool  # whether all its scores are 0 or 1


@dataclass(frozen=True, kw_only=True)
class PanelSummary:
    """How much the models said."""

    n_models: int
    n_instances: int
    n_labels: int
    missing: float  # share of the cells
    cardinality: float  # mean number of labels the models give an instance
    models: tuple[ModelGlance, ...]
    n_clusterings: int  # members of the panel that group instances and know no labels


def summarize_panel(predictions: Predictions, cardinality: Any) -> PanelSummary:
    """Count what the models said; `cardinality` (n,) is the number of labels they gave each instance on average.

    Examples
    --------
    >>> import numpy as np
    >>> import mlconsensus as mlc
    >>> panel = mlc.Predictions({"a": np.array([[1, 0], [1, 1]]), "b": np.array([[0.5, np.nan], [np.nan, np.nan]])})
    >>> found = summarize_panel(panel, mlc.decision.cardinalities(panel))
    >>> found.missing, found.models[1]
    (0.375, ModelGlance(name='b', instances=1, labels=1, missing=0.75, cardinality=0.5, decides=False))
    """
    m, n, l = predictions.shape
    models = []
    for name, (values, spoken) in zip(
        predictions.models, predictions.brought(), strict=True
    ):
        if spoken is None:
            spoken = np.ones(values.shape, dtype=np.bool_)

        seen, known = (int(spoken.any(axis=axis).sum()) for axis in (1, 0))
        silent = 1 - int(spoken.sum()) / (n * l)
        mean = float(values.sum(dtype=np.float64)) / max(seen, 1)
        glance = ModelGlance(
            name=name,
            instances=seen,
            labels=known,
            missing=silent,
            cardinality=mean,
            decides=_decides(values),
        )
        models.append(glance)

    missing = float(np.mean([model.missing for model in models]))
    labels = float(np.mean(cardinality))
    return PanelSummary(
        n_models=m,
        n_instances=n,
        n_labels=l,
        missing=missing,
        cardinality=labels,
        models=tuple(models),
        n_clusterings=predictions.members.shape[1],
    )


def _decides(values: Any) -> bool:
    if sparse.issparse(values):
        cells = values.data
    else:
        cells = values

    return cells.dtype.kind in "biu" or bool(((cells == 0) | (cells == 1)).all())


@dataclass(frozen=True, kw_only=True)
class ModelRow:
    """What the others' predictions tell about one model."""

    name: str
    reliability: float  # correlation of what it says with what models have in common
    weight: float | None  # as the method learned it, if it learns any
    nearest: (
        str | None
    )  # the model with which it agrees most; None if it shares few instances with any
    agreement: float | None  # with the nearest
    remark: str  # what should be looked at; empty if nothing


@dataclass(frozen=True, kw_only=True)
class ModelsSummary:
    """Who agrees with whom."""

    rows: tuple[ModelRow, ...]
    order: tuple[str, ...]  # rows and columns of the agreement matrix, like beside like
    # correlation of what two models say, over all labels together; 0 where they share
    # few
    agreement: FloatArray
    mean_agreement: float | None  # over pairs of different models
    suspects: tuple[
        FlaggedModel, ...
    ]  # models that look random, inverted or copied, with the evidence and a sentence
    voices: EffectiveModels  # how many models with errors of their own the panel is worth at most


def summarize_models(found: PanelDiagnostics, combiner: BaseCombiner) -> ModelsSummary:
    """Say of each model what the panel tells about it.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, _ = mlc.datasets.make_panel(quality=[0.8, 0.8, 0.8, 0.8, 0], shared_errors=0, random_state=0)
    >>> consensus = mlc.combine(panel)
    >>> summarize_models(consensus.diagnostics.panel, consensus.combiner).rows[4].remark
    'answers as if at random'
    """
    names = found.models
    m = len(found.models)
    enough = found.shared >= max(1, min(FEW, found.shared.max()))
    agreement = np.where(enough, found.agreement, np.eye(m))
    weights = getattr(combiner, "model_weights_", np.full(m, None)).tolist()
    nearest = np.where(enough, agreement, -2.0).argmax(axis=1)
    rows = []
    for k, name in enumerate(names):
        nearest_name = None
        correlation = None
        if enough[k].any():
            nearest_name = names[nearest[k]]
            correlation = float(agreement[k, nearest[k]])

        row = ModelRow(
            name=name,
            reliability=float(found.reliability[k]),
            weight=weights[k],
            nearest=nearest_name,
            agreement=correlation,
            remark=_remark(found.suspects, name),
        )
        rows.append(row)

    kept = strongest(agreement, MOST_MODELS)
    kept = kept[ordered(agreement[np.ix_(kept, kept)])]
    order = tuple(names[k] for k in kept)
    shown = agreement[np.ix_(kept, kept)]
    if m > 1:
        mean = found.mean_agreement
    else:
        mean = None

    return ModelsSummary(
        rows=tuple(rows),
        order=order,
        agreement=shown,
        mean_agreement=mean,
        suspects=found.suspects,
        voices=found.voices,
    )


def _remark(suspects: tuple[FlaggedModel, ...], name: str) -> str:
    own = [found for found in suspects if name in found.raters]
    kinds = {found.kind for found in own}
    if "random" in kinds:
        return "answers as if at random"
    if "inverted" in kinds:
        return "says the opposite of the others"

    alike = [other for found in own for other in found.raters if other != name]
    if alike:
        return f"makes the same errors as {' and '.join(alike[:3])}, as copies do"
    return ""
