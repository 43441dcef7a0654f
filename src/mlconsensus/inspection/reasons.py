r"""Why a consensus is as it is, in one plain text per case.

The text says which method was used, what it estimated about families and reliability,
and what gold labels changed.

Gold labels change the weights of models. With the log odds t of the score s of
`WeightedConsensus`, its correction is

.. math::

    \operatorname{logit} P = a + b t + c s + \sum_k w_k (x_k - s)

(`combiners.gold_correction`). The weight of a model is the derivative by its prediction
x. At s = 1/2, where t grows four times as fast as s, it is before and after

.. math::

    4 S_k, \qquad (4 b + c - \textstyle\sum_q w_q) S_k + w_k

where S is the derivative of the score by x, averaged over labels by their prior. A
model is inverted if its weight changes from positive to negative.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..combiners.base import BaseCombiner
from ..combiners.reliability import Families
from ..combiners.weighted_consensus import (
    WeightedConsensus,
    WeightedConsensusSolution,
)
from ..linalg.block_sums import ratio
from ..predictions import Array, FloatArray
from ..text import plural, shown
from .families import find_lone_model, list_names

# Cases of a reason, as in JSON.
ReasonCode = Literal[
    "requested",
    "one_model",
    "no_agreement",
    "independent",
    "ambiguous",
    "stated_independent",
    "families_found",
    "families_stated",
    "gold_changed",
    "gold_unchanged",
]

# Change of a model's weight by gold labels that is worth a sentence.
_MIN_CHANGE = 0.2
_MOST_CHANGES = 3  # models with a changed weight in a sentence
_MOST_FAMILIES = 3


@dataclass(frozen=True, kw_only=True)
class MethodReason:
    """Why a consensus is as it is.

    Attributes
    ----------
    codes : tuple of str
        The cases that apply, as in JSON.
    sentence : str
        What they mean for this consensus, without a full stop.
    """

    codes: tuple[ReasonCode, ...]
    sentence: str

    def __str__(self) -> str:
        return self.sentence


def describe_method(
    combiner: BaseCombiner,
    *,
    is_requested: bool,
    scores: object = None,
    vote: Array | None = None,
) -> MethodReason:
    """Describe why a method was used, and what it estimated.

    Parameters
    ----------
    combiner : BaseCombiner
        The fitted method.
    is_requested : bool
        Whether the user asked for this method.
    scores, vote : ndarray of shape (n, l), default=None
        Consensus scores, and scores of majority voting. If both are arrays, the
        sentence ends with how similar they are.

    Returns
    -------
    MethodReason

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, _ = mlc.datasets.make_panel(shared_errors=0, random_state=0)
    >>> combiner = mlc.WeightedConsensus().fit(panel)
    >>> reason = describe_method(combiner, is_requested=False)
    >>> reason.codes
    ('independent',)
    >>> describe_method(mlc.MajorityVote().fit(panel), is_requested=True).sentence
    'the method was requested'
    """
    codes: list[ReasonCode] = []
    sentences = []
    if is_requested:
        codes.append("requested")
        sentences.append("the method was requested")
    if isinstance(combiner, WeightedConsensus):
        code, sentence = _describe_models(combiner)
        codes.append(code)
        sentences.append(sentence)
        if combiner.solution_.n_gold_labels is not None:
            code, sentence = _describe_gold(combiner)
            codes.append(code)
            sentences.append(sentence)
    if isinstance(scores, np.ndarray) and vote is not None and len(scores):
        sentences.append(describe_similarity(scores, vote))
    return MethodReason(codes=tuple(codes), sentence="; ".join(sentences))


def describe_similarity(scores: Array, vote: Array) -> str:
    """Return how similar the result is to voting.

    Parameters
    ----------
    scores, vote : ndarray of shape (n, l)
        Consensus scores, and scores of majority voting.

    Returns
    -------
    str

    Examples
    --------
    >>> describe_similarity(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([[1, 0], [1, 0]]))
    'the first label is the same as with voting for 50.0% of the instances'
    """
    first = scores.argmax(axis=1)[:, np.newaxis]
    vote_of_first = np.take_along_axis(vote, first, axis=1)[:, 0]
    share = float((vote_of_first >= vote.max(axis=1)).mean())
    return (
        f"the first label is the same as with voting for {share:.1%} of the instances"
    )


def _describe_models(combiner: WeightedConsensus) -> tuple[ReasonCode, str]:
    """Return what was estimated about families and reliability."""
    models = combiner.models_
    reliability = combiner.solution_.model_reliability
    if len(models) == 1:
        return (
            "one_model",
            "there is one model: its scores are filtered along label correlations",
        )
    if not reliability.any():
        return (
            "no_agreement",
            "the models do not agree beyond chance, so that votes are used",
        )

    lowest = f"{reliability.min():z.2f}"
    weights = f"all models have the same reliability, {lowest}"
    if f"{reliability.max():z.2f}" != lowest:
        weights = (
            f"reliability {reliability.min():z.2f} ({shown(models[reliability.argmin()])}) "
            f"to {reliability.max():z.2f} ({shown(models[reliability.argmax()])})"
        )
    members: dict[str, list[str]] = {}
    for model, family in combiner.families_.items():
        members.setdefault(family, []).append(model)
    groups = [group for group in members.values() if len(group) > 1]
    if not groups:
        if combiner.families == "independent":
            return (
                "stated_independent",
                f"models are treated as independent, as stated; {weights}",
            )
        sentence = _describe_ambiguity(combiner)
        if sentence is not None:
            return "ambiguous", sentence
        return "independent", f"no family of related models was found; {weights}"

    listed = "; ".join(list_names(group) for group in groups[:_MOST_FAMILIES])
    if len(groups) > _MOST_FAMILIES:
        listed += f"; and {len(groups) - _MOST_FAMILIES:,} more"
    n_models = plural(len(models), "model")
    code: ReasonCode = "families_found"
    origin = "found"
    if combiner.families is not None:
        code = "families_stated"
        origin = "stated"
    sentence = (
        f"{n_models} in {len(members):,} families or alone, and each counts once "
        f"({origin} related: {listed}); {weights}"
    )
    return code, sentence


def _describe_ambiguity(combiner: WeightedConsensus) -> str | None:
    """Return what to do if a family next to a lone model fits as well, or None."""
    # A combiner from a file has a solution, but not the correlations of models.
    state = getattr(combiner, "state_", None)
    if not isinstance(state, Families):
        return None
    lone = find_lone_model(state)
    if lone is None:
        return None

    models = combiner.models_
    others = [model for model in models if model != models[lone]]
    return (
        f"{list_names(others)} agree more with each other than with "
        f"{shown(models[lone])}; either they are related, or {shown(models[lone])} is "
        "less reliable, and predictions alone cannot show which; so all models count "
        "as equally reliable; if you know which models are related, state it with "
        "--families (in Python families=)"
    )


def _describe_gold(combiner: WeightedConsensus) -> tuple[ReasonCode, str]:
    """Return what gold labels changed."""
    solution = combiner.solution_
    if solution.correction is None:
        return "gold_unchanged", "gold labels did not change the scores"

    before, after = compare_weights(solution)
    change = np.abs(after - before)
    order = np.argsort(-change, kind="stable")
    changed = [int(k) for k in order if change[k] >= _MIN_CHANGE]
    if not changed:
        return "gold_changed", "gold labels changed the scores, but no model's weight"

    parts = []
    for k in changed[:_MOST_CHANGES]:
        effect = "counts more than before"
        if after[k] < before[k]:
            effect = "counts less than before"
        if after[k] < 0 < before[k]:
            effect = "is inverted"
        elif abs(after[k]) > abs(before[k]):
            effect = "counts more than before"
        parts.append(
            f"{shown(combiner.models_[k])} {effect}, weight "
            f"{_format(before[k])} → {_format(after[k])}"
        )
    n_omitted = len(changed) - _MOST_CHANGES
    if n_omitted > 0:
        verb = "changes" if n_omitted == 1 else "change"
        parts.append(f"{plural(n_omitted, 'other model')} {verb}, too")
    return "gold_changed", f"gold labels: {'; '.join(parts)}"


def _format(weight: float) -> str:
    """Return a weight with a true minus sign."""
    return f"{weight:z.2f}".replace("-", "−")


def compare_weights(
    solution: WeightedConsensusSolution,
) -> tuple[FloatArray, FloatArray]:
    """Compute the weight of each model before and after gold labels.

    Parameters
    ----------
    solution : WeightedConsensusSolution
        With a correction by gold labels.

    Returns
    -------
    before, after : ndarray of shape (m,)
        Change of the log odds with a model's prediction, at a score of 1/2.
    """
    correction = solution.correction
    assert correction is not None
    slope = _differentiate_score(solution)
    log_odds_slope, score_slope = correction.curve[1:].tolist()
    weights = correction.model_weights
    common = 4 * log_odds_slope + score_slope - weights.sum()
    return 4 * slope, common * slope + weights


def _differentiate_score(solution: WeightedConsensusSolution) -> FloatArray:
    """Return the derivative (m,) of a label's score by each model's prediction.

    It is averaged over labels by their prior, for pairs that all models predict.
    """
    family = solution.family.astype(np.int64)
    share = solution.shares[family, np.arange(len(family))]
    total_vote = max(float(solution.vote_weight.sum()), 1e-300)
    of_vote = solution.vote_share * solution.vote_weight / total_vote  # (g,)
    of_family = np.repeat(of_vote[:, np.newaxis], len(solution.prior), axis=1)

    # The filtered estimate
    if isinstance(solution.label_map, np.ndarray) and solution.vote_share < 1:
        information = solution.information.sum(axis=0)
        estimate = ratio(solution.weight, information, 0.0)
        gain = (1 - solution.vote_share) * np.diag(solution.label_map)
        of_family = of_family + estimate * gain

    mean = ratio(of_family @ solution.prior, solution.prior.sum(), 0.0)
    return np.asarray(share * mean[family])
