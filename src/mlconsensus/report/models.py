"""The models of a panel: who agrees with whom, who looks random or copied, whom the method trusts."""

from typing import NamedTuple

import numpy as np

from ..arithmetic.products import FloatArray
from ..estimators import Combiner
from ..insight.diagnostics import Examined
from ..insight.suspects import Suspect
from ..insight.voices import Voices
from .similarity import ordered, strongest

MOST_MODELS = 40  # in the agreement matrix; more would not be readable


class ModelRow(NamedTuple):
    """What the others' predictions tell about one model."""

    name: str
    reliability: float  # correlation of what it says with what models have in common
    weight: float | None  # as the method learned it, if it learns any
    nearest: str | None  # the model with which it agrees most; None if it is alone
    agreement: float | None  # with the nearest
    remark: str  # what should be looked at; empty if nothing


class ModelsSummary(NamedTuple):
    """Who agrees with whom."""

    rows: tuple[ModelRow, ...]
    order: tuple[str, ...]  # rows and columns of the agreement matrix, like beside like
    agreement: FloatArray  # correlation of what two models say, over all labels together
    mean_agreement: float | None  # over pairs of different models
    looks_random: tuple[str, ...]
    opposite: tuple[str, ...]  # models that say the opposite of the others
    copies: tuple[tuple[str, str], ...]  # pairs that make the same errors
    suspects: tuple[Suspect, ...]  # all of these, each with the evidence and a sentence
    voices: Voices  # how many models with errors of their own the panel is worth at most


def summarise_models(found: Examined, combiner: Combiner) -> ModelsSummary:
    """Say of each model what the panel tells about it.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, _ = mlc.datasets.make_panel(quality=[0.8, 0.8, 0.8, 0.8, 0], shared_errors=0, random_state=0)
    >>> consensus = mlc.combine(panel)
    >>> summarise_models(consensus.diagnostics.panel, consensus.combiner).rows[4].remark
    'answers as if at random'
    """
    names, m = found.models, len(found.models)
    agreement = found.agreement.tolist()
    weights = getattr(combiner, "model_weights_", np.full(m, None)).tolist()
    nearest = (found.agreement - 3 * np.eye(m)).argmax(axis=1)
    rows = []
    for k, name in enumerate(names):
        beside, correlation = (names[nearest[k]], agreement[k][nearest[k]]) if m > 1 else (None, None)
        reliability = float(found.reliability[k])
        rows.append(ModelRow(name, reliability, weights[k], beside, correlation, _remark(found, name)))
    kept = strongest(found.agreement, MOST_MODELS)
    kept = kept[ordered(found.agreement[np.ix_(kept, kept)])]
    order, shown = tuple(names[k] for k in kept), found.agreement[np.ix_(kept, kept)]
    mean = float(found.agreement[~np.eye(m, dtype=np.bool_)].mean()) if m > 1 else None
    named = found.looks_random, found.opposite, found.copies, found.suspects
    return ModelsSummary(tuple(rows), order, shown, mean, *named, found.voices)


def _remark(found: Examined, name: str) -> str:
    if name in found.looks_random:
        return "answers as if at random"
    if name in found.opposite:
        return "says the opposite of the others"
    alike = [one if other == name else other for one, other in found.copies if name in (one, other)]
    return f"makes the same errors as {' and '.join(alike[:3])}, as copies do" if alike else ""
