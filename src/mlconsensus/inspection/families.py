r"""Families of related models, with the evidence for each.

Centered and divided by their standard deviations, the predictions of model `k` are

.. math:: x_k / s_k = c_k t + \sqrt{1 - c_k^2}\, e_k

with the common signal `t` and the model's reliability :math:`c_k`, which is estimated
from models of other families. Two models that correlate by :math:`R_{kq}` thus have
errors that correlate by

.. math::

    \varepsilon_{kq} = \frac{R_{kq} - c_k c_q}{\sqrt{(1 - c_k^2)(1 - c_q^2)}} \qquad (1)

Independent models have :math:`\varepsilon = 0`, and copies have 1. The standard error
follows from the delta method,

.. math::

    \sigma^2 = \left(\frac{\partial \varepsilon}{\partial R}\right)^2
    \frac{(1 - R_{kq}^2)^2}{p_{kq}}
    + \left(\left|\frac{\partial \varepsilon}{\partial c_k}\right| \sigma_k
    + \left|\frac{\partial \varepsilon}{\partial c_q}\right| \sigma_q\right)^2,
    \qquad \sigma_k^2 = \frac{1}{\sum_o p_{ko} c_o^2} \qquad (2)

where `p` is the precision of a correlation and `o` are the models of other families.
The errors of :math:`c_k` and :math:`c_q` are taken to be perfectly correlated, because
both models are compared with the same others. The interval is symmetric on Fisher's
scale, :math:`\operatorname{atanh} \varepsilon`. That of a family is the mean over its
pairs, whose errors are taken to be perfectly correlated, too. So the interval is
rather too wide than too narrow.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..combiners.base import BaseCombiner
from ..combiners.reliability import MAX_RELIABILITY, Families
from ..combiners.weighted_consensus import WeightedConsensus
from ..linalg.block_sums import ratio
from ..metrics.estimate import Estimate
from ..predictions import FloatArray, IntArray, Predictions
from ..predictions.families import FamiliesLike, get_stem, number_families
from ..text import shown

# Where families come from.
FamilyOrigin = Literal["found", "stated", "by-name", "independent"]

_Z = 1.96  # 95 % intervals
_N_ITERATIONS = 50
_MAX_CORRELATION = 1 - 1e-9  # so that Fisher's transformation is finite
_MOST_NAMES = 6  # names in a sentence
# Families in the simulations of docs/quality.md.
_ERROR_RATE = (
    "The search found no family in any of 300 simulated sets of independent models"
)
_STATE_FAMILIES = (
    "If you know which models are related, state it with --families FILE; "
    "--families independent ignores relations"
)


@dataclass(frozen=True, kw_only=True)
class FamilyEvidence:
    """A family of related models.

    Attributes
    ----------
    models : tuple of str
        Names of the members.
    error_correlation : Estimate or None
        Mean correlation of the errors of two members, with its 95 % interval. If there
        are two families only, they are assumed to be equally reliable. None if the
        models do not agree beyond chance.
    effective_models : Estimate
        How many independent models the members are worth: Kish's s / (1 + (s - 1) ε).
    inverted : tuple of str
        Members that predict the opposite of the others.
    stem : str or None
        What the names of all members begin with, if they share a stem. This is a hint,
        not evidence.
    sentence : str
    """

    models: tuple[str, ...]
    error_correlation: Estimate | None
    effective_models: Estimate
    inverted: tuple[str, ...]
    stem: str | None
    sentence: str


@dataclass(frozen=True, kw_only=True)
class FamilyDiagnostics:
    """Families of related models, and the evidence for them.

    Attributes
    ----------
    origin : {"found", "stated", "by-name", "independent"}
        Whether families were found in the predictions or given by the user.
    family_of_model : dict of str to str
        Family of each model; a family is named after its first member.
    families : tuple of FamilyEvidence
        Families of at least two models.
    lone_model : str or None
        The model that agrees with the others less than they do with each other, so that
        the others may be a family, or this model may be less reliable.
    sentences : tuple of str
        What is known about families, and how to confirm or reject it.
    """

    origin: FamilyOrigin
    family_of_model: dict[str, str]
    families: tuple[FamilyEvidence, ...]
    lone_model: str | None
    sentences: tuple[str, ...]

    @property
    def n_families(self) -> int:
        """Number of families; a model without relations is a family of its own."""
        return len(set(self.family_of_model.values()))


def fit_families(
    predictions: Predictions,
    combiner: BaseCombiner | None = None,
    families: FamiliesLike = None,
) -> tuple[Families, FamilyOrigin]:
    """Return families of models, of a fitted weighted consensus or of a new fit.

    Parameters
    ----------
    predictions : Predictions
        Predictions of all models.
    combiner : BaseCombiner, default=None
        If it is a `WeightedConsensus` that was fitted to these models, its families are
        used.
    families : None, "independent", "by-name" or mapping, default=None
        Families of related models, as in `combine`, for a new fit.

    Returns
    -------
    families : Families
    origin : {"found", "stated", "by-name", "independent"}
    """
    fitted = combiner
    state = _get_state(combiner, predictions.models)
    if state is None:
        unlabeled = predictions.with_gold(None).without_clusterings()
        fitted = WeightedConsensus(families=families).fit(unlabeled)
        state = _get_state(fitted, predictions.models)
    assert state is not None
    assert isinstance(fitted, WeightedConsensus)
    return state, _name_origin(fitted.families)


def _get_state(
    combiner: BaseCombiner | None, models: tuple[str, ...]
) -> Families | None:
    """Return the families that a weighted consensus has estimated, if it has."""
    if not isinstance(combiner, WeightedConsensus):
        return None
    # A combiner from a file has a solution, but not the correlations of models.
    state = getattr(combiner, "state_", None)
    if not isinstance(state, Families) or combiner.models_ != models:
        return None
    return state


def _name_origin(families: FamiliesLike) -> FamilyOrigin:
    """Return where families come from."""
    if families is None:
        return "found"
    if families == "independent":
        return "independent"
    if families == "by-name":
        return "by-name"
    return "stated"


def describe_families(
    models: tuple[str, ...], state: Families, origin: FamilyOrigin = "found"
) -> FamilyDiagnostics:
    """Describe families of models and the evidence for them.

    Parameters
    ----------
    models : tuple of str
        Names of the models.
    state : Families
        Result of `fit_families`, or ``state_`` of a `WeightedConsensus`.
    origin : {"found", "stated", "by-name", "independent"}, default="found"
        Where the families come from.

    Returns
    -------
    FamilyDiagnostics

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, _ = mlc.datasets.make_panel(shared_errors=0, random_state=0)
    >>> consensus = mlc.combine(panel)
    >>> describe_families(panel.models, consensus.combiner.state_).n_families
    5
    """
    family = state.family.astype(np.int64)
    error_correlation, scale = correlate_errors(state)
    records = []
    for number in np.unique(family):
        members = np.flatnonzero(family == number)
        if len(members) > 1:
            records.append(
                _describe_family(
                    models, state, members, error_correlation, scale, origin=origin
                )
            )

    lone_model = None
    if origin == "found" and not records:
        lone = find_lone_model(state)
        if lone is not None:
            lone_model = models[lone]

    first = {int(number): int(np.argmax(family == number)) for number in family}
    family_of_model = {
        model: models[first[int(number)]]
        for model, number in zip(models, family, strict=True)
    }
    return FamilyDiagnostics(
        origin=origin,
        family_of_model=family_of_model,
        families=tuple(records),
        lone_model=lone_model,
        sentences=tuple(
            _describe_all(models, records, lone_model, origin, family_of_model)
        ),
    )


def find_signs(state: Families) -> FloatArray:
    """Return -1 for models that predict the opposite of most others, else 1.

    A model with a negative reliability must also disagree with most models of other
    families, because signs of models without shared instances cannot be compared.

    Parameters
    ----------
    state : Families
        Correlations and reliabilities of models.

    Returns
    -------
    ndarray of shape (m,)
    """
    across = state.precision * (state.family[:, np.newaxis] != state.family)
    agreement = (across * state.correlation).sum(axis=1)
    is_inverted = (state.model_reliability < 0) & (agreement < 0)
    return np.where(is_inverted, -1.0, 1.0)


def correlate_errors(state: Families) -> tuple[FloatArray, FloatArray]:
    """Compute the correlation of the errors of any two models; Eq. (1) and (2).

    Parameters
    ----------
    state : Families
        Correlations and reliabilities of models.

    Returns
    -------
    error_correlation : ndarray of shape (m, m)
        On the diagonal 1.
    standard_error : ndarray of shape (m, m)
    """
    across = state.precision * (state.family[:, np.newaxis] != state.family)
    c = _remove_shrinkage(state, across)

    # Eq. (1).
    unreliability = np.sqrt(np.maximum(1 - c**2, 1e-9))
    scale = np.outer(unreliability, unreliability)
    value = (state.correlation - np.outer(c, c)) / scale
    value = np.clip(value, -1, 1)
    np.fill_diagonal(value, 1.0)

    # Eq. (2). Without other models, the reliability is not known at all.
    information = across @ c**2
    error_of_c = np.minimum(ratio(np.ones_like(c), np.sqrt(information), 1.0), 1.0)
    by_first = np.abs(value * (c / unreliability**2)[:, np.newaxis] - c / scale)
    contribution = by_first * error_of_c[:, np.newaxis]
    variance = ratio((1 - state.correlation**2) ** 2, state.precision, 1.0) / scale**2
    variance += (contribution + contribution.T) ** 2
    return value, np.sqrt(variance)


def _remove_shrinkage(state: Families, across: FloatArray) -> FloatArray:
    """Return reliabilities (m,) that are not shrunk to their mean.

    They are the least-squares fit of c c' to the correlations between families, from
    the shrunk ones. Two families cannot show which of them is more reliable: those are
    returned as they are.
    """
    c = state.model_reliability
    if len(np.unique(state.family)) < 3:
        return c

    for _ in range(_N_ITERATIONS):
        information = across @ c**2
        estimate = ratio((across * state.correlation) @ c, information, 0.0)
        c = (c + np.clip(estimate, -MAX_RELIABILITY, MAX_RELIABILITY)) / 2
    return c


def estimate_error_correlation(
    error_correlation: FloatArray, standard_error: FloatArray, members: IntArray
) -> Estimate:
    """Estimate the mean error correlation of the pairs of some models.

    Parameters
    ----------
    error_correlation, standard_error : ndarray of shape (m, m)
        Result of `correlate_errors`.
    members : ndarray of int
        Positions of the models.

    Returns
    -------
    Estimate
        The mean on Fisher's scale, with its 95 % interval.
    """
    first, second = np.triu_indices(len(members), 1)
    pairs = (members[first], members[second])
    value = np.clip(error_correlation[pairs], -_MAX_CORRELATION, _MAX_CORRELATION)
    fisher = float(np.arctanh(value).mean())
    slope = 1 / (1 - value**2)
    fisher_error = float((slope * standard_error[pairs]).mean())
    mean = float(np.tanh(fisher))
    return Estimate(
        value=mean,
        standard_error=float(standard_error[pairs].mean()),
        low=float(np.tanh(fisher - _Z * fisher_error)),
        high=float(np.tanh(fisher + _Z * fisher_error)),
    )


def _describe_family(
    models: tuple[str, ...],
    state: Families,
    members: IntArray,
    error_correlation: FloatArray,
    standard_error: FloatArray,
    *,
    origin: FamilyOrigin,
) -> FamilyEvidence:
    """Return the record of one family."""
    names = tuple(models[member] for member in members)
    signs = find_signs(state)[members]
    inverted = tuple(name for name, sign in zip(names, signs, strict=True) if sign < 0)

    # Without a signal, there is nothing to compare with.
    estimate = None
    n_families = len(np.unique(state.family))
    if n_families > 1 and state.model_reliability.any():
        all_signs = np.ones(len(models))
        all_signs[members] = signs
        estimate = estimate_error_correlation(
            error_correlation * np.outer(all_signs, all_signs),
            standard_error,
            members,
        )

    stems = {get_stem(name) for name in names}
    stem = None
    if len(stems) == 1:
        stem = stems.pop()
    return FamilyEvidence(
        models=names,
        error_correlation=estimate,
        effective_models=_count_effective(len(members), estimate),
        inverted=inverted,
        stem=stem,
        sentence=_describe_evidence(
            names, estimate, inverted, origin, is_assumed=n_families == 2
        ),
    )


def _count_effective(size: int, correlation: Estimate | None) -> Estimate:
    """Return how many independent models a family is worth, by Kish's formula."""
    if correlation is None:
        return Estimate(value=1.0, standard_error=np.nan, low=1.0, high=float(size))

    values = np.array([correlation.value, correlation.high, correlation.low])
    counts = size / (1 + (size - 1) * np.clip(values, 0, 1))
    value, low, high = counts.tolist()
    return Estimate(
        value=value, standard_error=(high - low) / 2 / _Z, low=low, high=high
    )


def find_lone_model(state: Families) -> int | None:
    """Return the model next to which all others may be a family, or None.

    The others agree with each other more than with this model. Either they are related,
    or this model is less reliable: correlations alone cannot show which.

    Parameters
    ----------
    state : Families
        Correlations of the models, and whether they are ambiguous.

    Returns
    -------
    int or None
        Position of the model that agrees least with the others.
    """
    if not state.is_ambiguous:
        return None
    with_others = state.correlation.sum(axis=1) - np.diag(state.correlation)
    return int(with_others.argmin())


def list_names(names: tuple[str, ...] | list[str]) -> str:
    """Return names as a list in a sentence, at most six of them.

    Examples
    --------
    >>> list_names(("a", "b", "c"))
    'a, b and c'
    """
    displayed = [shown(name) for name in names]
    if len(displayed) > _MOST_NAMES:
        n_omitted = len(displayed) - _MOST_NAMES + 1
        displayed = [*displayed[: _MOST_NAMES - 1], f"{n_omitted:,} more"]
    if len(displayed) == 1:
        return displayed[0]
    return f"{', '.join(displayed[:-1])} and {displayed[-1]}"


def format_interval(estimate: Estimate) -> str:
    """Return an estimate with its interval, such as ``0.71 (0.65–0.77)``."""
    low = f"{estimate.low:z.2f}"
    high = f"{estimate.high:z.2f}"
    if estimate.low < 0:
        return f"{estimate.value:z.2f} ({low} to {high})"
    return f"{estimate.value:z.2f} ({low}–{high})"


def _describe_evidence(
    names: tuple[str, ...],
    correlation: Estimate | None,
    inverted: tuple[str, ...],
    origin: FamilyOrigin,
    *,
    is_assumed: bool,
) -> str:
    """Return a sentence about one family.

    With two families, their reliability is assumed to be equal.
    """
    listed = list_names(names)
    sentence = f"{listed} behave like one model"
    if origin == "by-name":
        sentence = f"{listed} are one family by their names"
    elif origin == "stated":
        sentence = f"{listed} are one family, as stated"

    if correlation is None:
        sentence += (
            ": the correlation of their errors is not known, because the models do not "
            "agree beyond chance"
        )
    elif origin != "found" and correlation.low <= 0:
        sentence += (
            f", but their predictions do not show it: error correlation "
            f"{format_interval(correlation)}"
        )
    else:
        sentence += f": error correlation {format_interval(correlation)}"
    if is_assumed and correlation is not None:
        sentence += ", if both families are equally reliable"
    if inverted:
        verb = "predicts" if len(inverted) == 1 else "predict"
        sentence += f"; {list_names(inverted)} {verb} the opposite of the others"
    return sentence


def _describe_all(
    models: tuple[str, ...],
    records: list[FamilyEvidence],
    lone_model: str | None,
    origin: FamilyOrigin,
    family_of_model: Mapping[str, str],
) -> list[str]:
    """Return what is known about families, and how to confirm or reject it."""
    sentences = [f"{record.sentence}." for record in records]
    if origin == "independent":
        return ["The models are treated as independent, as stated."]
    if origin == "found" and records:
        sentences.append(f"{_ERROR_RATE}. {_STATE_FAMILIES}.")
    if lone_model is not None:
        others = [model for model in models if model != lone_model]
        sentences.append(
            f"{list_names(others)} agree with each other more than with "
            f"{shown(lone_model)}: either they are related, or {shown(lone_model)} is "
            f"less reliable, and predictions alone cannot show which. {_STATE_FAMILIES}."
        )
    if origin == "found":
        sentences += _suggest_names(models, family_of_model)
    return sentences


def _suggest_names(
    models: tuple[str, ...], family_of_model: Mapping[str, str]
) -> list[str]:
    """Return hints about names that share a stem but are in different families."""
    names_by_stem: dict[str, list[str]] = {}
    numbers = number_families("by-name", models)
    assert numbers is not None
    if len(np.unique(numbers)) == 1:
        # Names such as model_0 to model_9 say nothing about relations.
        return []
    for model in models:
        names_by_stem.setdefault(get_stem(model), []).append(model)

    hints = []
    for names in names_by_stem.values():
        if len({family_of_model[name] for name in names}) > 1:
            hints.append(
                f"The names of {list_names(names)} share a stem, but their predictions "
                "do not show that they are one family; --families by-name makes them "
                "one."
            )
    return hints
