r"""Weighted consensus, the default: reliable models count more, related models once.

Families of related models take the place of models (`reliability`). With the family's
centered predictions x, standard deviations s and reliabilities c, the best linear
estimate of the common signal t from g independent families is

.. math::

    z_{ij} = \frac{\sum_f u_{fj} x_{fij}}{\sum_f b_{fj}}, \qquad
    u = \frac{c}{(1 - c^2) s}, \qquad b = \frac{c^2}{1 - c^2} \qquad (2)

whose error has the variance :math:`1 / \sum_f b_{fj}`. Signals of different labels
correlate by :math:`\Phi`, which products of *different* families show without their
errors. The best linear estimate of all signals is :math:`z (\Phi + N)^{-1} \Phi`, with
N the noise of the labels' estimates (a Wiener filter). The score is

.. math::

    (1 - h) \max(\pi + z (\Phi + N)^{-1} \Phi \operatorname{diag}(\gamma), \epsilon\pi)
    + h\, v, \qquad h = \tfrac12 (1 - K) \qquad (3)

with the label's prior :math:`\pi`, the scale :math:`\gamma` of a reliable family's
predictions, and the mean v of the families' predictions weighted by reliability. K is 1
for replicas of one learner, whose errors agree, and 0 for models that err independently.

The statistics need three passes: rates, correlations of models, and products of
estimates. The theory page (docs/theory.md) derives each step.

==================  =======================  =======================================
symbol              variable                 shape
==================  =======================  =======================================
:math:`u, b`        ``weight``,              (g, l)
                    ``information``
:math:`c`           ``reliability``          (g, l) reliability on each label
:math:`\Phi`        ``label_correlation``    (l, l)
:math:`N`           ``noise``                (l,)
:math:`\gamma`      ``gain``                 (l,)
:math:`K`           ``similarity``           number
==================  =======================  =======================================
"""

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from scipy import linalg

from ..decision.label_sets import Empty, best_f1
from ..errors import InputError
from ..execution.statistics import Axes, get_present
from ..linalg.block_sums import ratio
from ..linalg.gram import Gram, as_gram, compute_gram
from ..linalg.label_map import LabelMap, apply_label_map, get_map_column, shrink_labels
from ..linalg.sparse_scores import SparseScores, to_scores
from ..predictions import Array, FloatArray, Matrix, Predictions
from ..predictions.blocks import PairValues, PredictionBlock
from ..predictions.families import (
    FamiliesLike,
    average_families,
    number_families,
)
from ..predictions.validation import Weights
from .base import BaseCombiner, FitPass, PredictionsLike
from .contributions import Contributions
from .gold_correction import GoldCorrection, apply_correction, fit_correction
from .reliability import (
    MAX_RELIABILITY,
    AgreementStatistics,
    Families,
    Rates,
    RateStatistics,
    compute_agreement_statistics,
    compute_rate_statistics,
    estimate_families,
    estimate_rates,
    shrink,
)

# Share of the vote in the scores of models that err independently.
_VOTE_SHARE = 0.5
# Scores are at least this share of the label's prior, so that ties are ranked by it.
_MIN_SCORE = 1e-6
# Limits of a label's ease, compared with the average label.
_EASE_LIMITS = (0.02, 4.0)
# Change of a model's log odds by gold labels that is worth a message.
_MIN_CHANGE = 0.2
# Information below this is none.
_TINY = 1e-9


@dataclass(frozen=True, kw_only=True)
class WeightedConsensusStatistics:
    """Sums over instances, of the estimates Z = sum u x with the information I = sum b.

    Sums over pairs of different families are those over all pairs (`signal_gram`)
    minus those within families (`family_gram`). In large label spaces there are only
    the rows of `signal_gram`.
    """

    # Products of Z, and of I, for two labels.
    signal_gram: Annotated[Gram | FloatArray, Axes("l l", symmetric=True)]
    information_gram: Annotated[
        FloatArray | None, Axes("l l", symmetric=True, least=0)
    ] = None
    # The same within families.
    family_gram: Annotated[FloatArray | None, Axes("l l", symmetric=True)] = None
    family_information_gram: Annotated[
        FloatArray | None, Axes("l l", symmetric=True, least=0)
    ] = None
    # (Z / I)**2, and the number of pairs with information.
    squared_estimates: Annotated[FloatArray, Axes("l", least=0)]
    n_informed: Annotated[FloatArray, Axes("l", least=0)]
    # Number of predictions of each family.
    n_predictions: Annotated[FloatArray, Axes("? l", least=0)]
    # Products of a family's x and the other families' Z; their I and their Z**2.
    agreement: Annotated[FloatArray, Axes("? l")]
    others_information: Annotated[FloatArray, Axes("? l", least=0)]
    others_squares: Annotated[FloatArray, Axes("? l", least=0)]
    # Mean products of the scores of 0 to 4 different families, over pairs that at
    # least four reliable families predicted.
    score_products: Annotated[FloatArray, Axes("? l", least=0)]


@dataclass(frozen=True, kw_only=True)
class WeightedConsensusSolution:
    """Weights of the families, and the map of labels."""

    family: Annotated[FloatArray, Axes("m", least=0)]
    shares: Annotated[FloatArray, Axes("? m")]
    model_reliability: Annotated[FloatArray, Axes("m", least=-1, most=1)]
    mean: Annotated[FloatArray, Axes("? l")]
    weight: Annotated[FloatArray, Axes("? l")]
    information: Annotated[FloatArray, Axes("? l", least=0)]
    # Variance of an estimate's error, and the part of it that families share.
    noise: Annotated[FloatArray, Axes("l", least=0)]
    common_noise: Annotated[FloatArray, Axes("l", least=0)]
    # In large label spaces None if labels are too dense for a map.
    label_map: Annotated[LabelMap | None, Axes("l l")]
    prior: Annotated[FloatArray, Axes("l", least=0, most=1)]
    # Weight of each family in the vote, and share of the vote in the score.
    vote_weight: Annotated[FloatArray, Axes("?", least=0)]
    vote_share: Annotated[float, Axes("", least=0, most=1)]
    # Number of gold labels, and what they changed; None without gold labels, or if they
    # changed nothing.
    n_gold_labels: Annotated[float | None, Axes("", least=0)] = None
    curve: Annotated[FloatArray | None, Axes("?")] = None
    model_correction: Annotated[FloatArray | None, Axes("m")] = None
    label_correction: Annotated[FloatArray | None, Axes("? l")] = None

    @property
    def correction(self) -> GoldCorrection | None:
        """What gold labels changed, or None."""
        if self.curve is None:
            return None
        return GoldCorrection(
            curve=self.curve,
            model_weights=get_present(self.model_correction),
            label_shifts=get_present(self.label_correction),
        )


class WeightedConsensus(BaseCombiner):
    """Weighted consensus: reliable models count more, related models count once.

    Parameters
    ----------
    families : None, "independent", "by-name" or mapping, default=None
        Which models are related. By default families are found. ``"independent"``
        ignores relations, ``"by-name"`` groups names that share a stem, and a mapping
        gives the family of each model.
    weights : sequence or mapping, default=None
        Weight of each model, in their order or by name, in addition to its
        reliability. By default all are equal.

    Attributes
    ----------
    model_weights_ : ndarray of shape (m,)
        Reliability of each model: the correlation of its predictions with the signal
        that models have in common. Negative if it predicts the opposite.
    families_ : dict
        Family of each model, by name.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> predictions, _ = mlc.datasets.make_panel(
    ...     quality=[0.8, 0.8, 0.8, 0.8, 0], shared_errors=0, random_state=0
    ... )
    >>> reliability = mlc.WeightedConsensus().fit(predictions).model_weights_
    >>> (reliability[:4] > 0.5).all() and abs(reliability[4]) < 0.1
    np.True_
    """

    Statistics = WeightedConsensusStatistics
    Solution = WeightedConsensusSolution
    identifier = "weighted_consensus"
    name = "Weighted"
    passes = (
        FitPass(RateStatistics, Rates),
        FitPass(AgreementStatistics, Families),
    )
    learns_from_gold = True
    takes_many = True
    pairs_labels = True
    one_thread_below = 512

    def __init__(self, families: FamiliesLike = None, weights: Weights = None) -> None:
        self.families = families
        self.weights = weights

    @property
    def families_(self) -> dict[str, str]:
        """Family of each model; a family is named after its first member."""
        numbers = self.solution_.family.astype(int)
        first: dict[int, str] = {}
        for model, number in zip(self.models_, numbers, strict=True):
            first.setdefault(int(number), model)
        return {
            model: first[int(number)]
            for model, number in zip(self.models_, numbers, strict=True)
        }

    @staticmethod
    def _make_block(predictions: Predictions) -> PredictionBlock:
        """Return predictions as a block; weights count in `_solve`."""
        return predictions.weighted(None).to_block()

    def _compute_pass_statistics(
        self, block: PredictionBlock, state: object
    ) -> RateStatistics | AgreementStatistics:
        """Return the sums of the first or the second pass."""
        if state is None:
            return compute_rate_statistics(block)
        assert isinstance(state, Rates)
        return compute_agreement_statistics(block, state)

    def _solve_pass(
        self, statistics: object, state: object, models: tuple[str, ...]
    ) -> Rates | Families:
        """Return the rates after the first pass, the families after the second."""
        if isinstance(statistics, RateStatistics):
            return estimate_rates(statistics)
        assert isinstance(statistics, AgreementStatistics)
        assert isinstance(state, Rates)
        stated = number_families(self.families, models)
        return estimate_families(statistics, state, stated)

    def _compute_statistics(
        self, block: PredictionBlock
    ) -> WeightedConsensusStatistics:
        """Return the sums of the third pass."""
        state = self.state_
        assert isinstance(state, Families)
        reliability = _limit(state.reliability[:, np.newaxis], state)
        weight, information = _weigh(reliability, state.deviation)
        families = block.merge_models(state.shares)
        estimate = _sum_centered(families, weight, state.mean)
        total = families.count_predictions(information)
        if block.is_large:
            return _sum_large(families, state, estimate, total, (weight, information))

        sums = _sum_others(families, state, estimate, total, (weight, information))
        return WeightedConsensusStatistics(
            signal_gram=compute_gram(estimate),
            information_gram=np.asarray(compute_gram(total)),
            family_gram=families.sum_label_products(weight, state.mean),
            family_information_gram=families.count_label_products(information),
            score_products=_multiply_scores(families, state.reliability),
            **sums,
        )

    def _solve(
        self, statistics: WeightedConsensusStatistics
    ) -> WeightedConsensusSolution:
        """Return the weights of families and the map of labels."""
        families = self.state_
        assert isinstance(families, Families)
        n_families = len(families.reliability)
        is_large = statistics.family_gram is None

        signal = _compute_signal(statistics, n_families)
        n_informed = np.maximum(statistics.n_informed, 1)
        variance = statistics.squared_estimates / n_informed
        ease = np.ones(len(variance))
        if signal.is_across:
            ease = _estimate_ease(signal.diagonal, variance, n_informed)
        reliability = _estimate_label_reliability(statistics, families, ease)

        similarity = families.rate_similarity
        if n_families > 1 and similarity < 1:
            similarity *= measure_replication(statistics.score_products)
        model_weights = self._get_family_weights(families)
        weight, information = _weigh(reliability, families.deviation)
        weight = weight * model_weights
        information = information * model_weights

        noise, common_noise = _estimate_noise(
            statistics, information, n_informed, similarity
        )
        gain = _estimate_gain(statistics, reliability, families.deviation)
        if is_large:
            label_map = _shrink_large(statistics, n_informed)
        else:
            phi = _correlate_labels(signal, variance / ease, n_informed, ease)
            label_map = _filter_labels(phi, noise, gain, statistics.n_informed > 0)
        return WeightedConsensusSolution(
            family=families.family,
            shares=families.shares,
            model_reliability=families.model_reliability,
            mean=families.mean,
            weight=weight,
            information=information,
            noise=noise,
            common_noise=common_noise,
            label_map=label_map,
            prior=families.prior,
            vote_weight=_weigh_votes(families, model_weights),
            vote_share=_choose_vote_share(families, similarity),
        )

    def _get_family_weights(self, families: Families) -> FloatArray:
        """Return the user's weight of each family, (g, 1)."""
        if self.weights_ is None:
            return np.ones((len(families.shares), 1))
        return (np.abs(families.shares) @ self.weights_)[:, np.newaxis]

    @staticmethod
    def _apply(
        block: PredictionBlock, solution: WeightedConsensusSolution
    ) -> FloatArray | SparseScores:
        """Return the scores of one block; Eq. (3)."""
        families = block.merge_models(solution.shares)
        if block.is_large:
            mean = _compute_weighted_mean(families, solution)
            if solution.label_map is None:
                return to_scores(mean)
            return apply_label_map(mean, solution.label_map)

        vote = _vote(families, solution).to_array()
        scores = vote
        if solution.vote_share < 1 and solution.label_map is not None:
            estimate = _estimate_signal(families, solution)
            filtered = apply_label_map(estimate, solution.label_map)
            filtered = np.maximum(
                solution.prior + filtered, _MIN_SCORE * solution.prior
            )
            share = solution.vote_share
            scores = (1 - share) * filtered + share * vote
        correction = solution.correction
        if correction is None:
            return np.asarray(scores)
        return apply_correction(block, scores, correction)

    @staticmethod
    def _learn(
        predictions: Predictions, solution: WeightedConsensusSolution
    ) -> WeightedConsensusSolution:
        """Correct the solution by the gold labels of some instances."""
        gold = predictions.gold
        solution = replace(
            solution,
            n_gold_labels=None,
            curve=None,
            model_correction=None,
            label_correction=None,
        )
        if gold is None:
            return solution
        block = WeightedConsensus._make_block(predictions)
        scores = np.asarray(WeightedConsensus._apply(block, solution))
        n_gold_labels = float(np.count_nonzero(~np.isnan(gold.answers)))
        solution = replace(solution, n_gold_labels=n_gold_labels)
        correction = fit_correction(predictions.to_array(), scores, gold.answers)
        if correction is None:
            return solution
        return replace(
            solution,
            curve=correction.curve,
            model_correction=correction.model_weights,
            label_correction=correction.label_shifts,
        )

    @staticmethod
    def _contributions(
        block: PredictionBlock, solution: WeightedConsensusSolution, label: int
    ) -> Contributions:
        """Return by how much each prediction moves the score away from the prior."""
        scores, presence = block.get_instance(0)
        return _explain_score(scores, presence, solution, label)

    def choose_label_sets(
        self,
        scores: FloatArray | SparseScores,
        predictions: Predictions,
        empty: Empty = "keep",
    ) -> Matrix:
        """Return label sets; their size follows from families, not from models.

        Families that are less than half as reliable as the average do not count. Scores
        that gold labels corrected are probabilities.
        """
        solution = self.solution_
        if isinstance(scores, SparseScores):
            return super().choose_label_sets(scores, predictions, empty)
        if solution.curve is not None:
            return best_f1(scores, empty=empty)
        is_counted = solution.vote_weight > 0
        if solution.vote_share < 1:
            weight = solution.vote_weight
            limit = (weight**3).sum() / max(2 * (weight**2).sum(), 1e-300)
            is_counted = weight >= limit
        shares = solution.shares[is_counted]
        n_models = solution.shares.shape[1]
        if len(shares) < n_models and len(shares) > 0:
            predictions = average_families(predictions, shares)
        return super().choose_label_sets(scores, predictions, empty)

    def describe_solution(self, solution: WeightedConsensusSolution) -> str:
        """Return a few words about the reliability of the models."""
        reliability = solution.model_reliability
        if solution.n_gold_labels is not None:
            return _describe_correction(solution, self.models_)
        if len(reliability) == 1:
            return "there is one model"
        if not reliability.any():
            return "the models do not agree beyond chance, so votes are used"
        n_families = len(solution.shares)
        text = f"reliability {reliability.min():.2f} to {reliability.max():.2f}"
        if n_families < len(reliability):
            text += f"; {len(reliability)} models in {n_families} families"
        return f"{text}; the vote is {solution.vote_share:.0%} of a score"


def _describe_correction(
    solution: WeightedConsensusSolution, models: tuple[str, ...]
) -> str:
    """Return which models count more or less because of gold labels."""
    if solution.curve is None:
        return "gold labels did not change the scores"
    change = get_present(solution.model_correction)
    largest = np.abs(change).max()
    if largest < _MIN_CHANGE:
        return "gold labels changed the levels of labels"
    parts = []
    for direction, word in ((1, "more"), (-1, "less")):
        is_changed = direction * change > max(largest / 4, _MIN_CHANGE)
        names = [models[model] for model in np.flatnonzero(is_changed)]
        if names:
            verb = "counts" if len(names) == 1 else "count"
            shown = ", ".join(names[:4])
            if len(names) > 4:
                shown += f" and {len(names) - 4} others"
            parts.append(f"{shown} {verb} {word}")
    return f"gold labels: {'; '.join(parts)}"


def weighted_consensus(
    predictions: PredictionsLike,
    families: FamiliesLike = None,
    weights: Weights = None,
) -> FloatArray:
    """Return the consensus scores of `WeightedConsensus`.

    Parameters
    ----------
    predictions : Predictions or array-like of shape (m, n, l)
        `Predictions`, or anything that its constructor takes.
    families : None, "independent", "by-name" or mapping, default=None
        Which models are related. By default families are found.
    weights : sequence or mapping, default=None
        Weight of each model, in their order or by name. By default all are equal.

    Returns
    -------
    ndarray of shape (n, l)
        Higher scores are more relevant.
    """
    combiner = WeightedConsensus(families=families, weights=weights)
    return combiner.fit_transform(predictions)


# The third pass.


def _limit(reliability: FloatArray, families: Families) -> FloatArray:
    """Return reliabilities (g, l) within the bounds of the families' rates."""
    bound = np.minimum(families.max_reliability, MAX_RELIABILITY)
    return np.clip(reliability, -bound, bound)


def _weigh(
    reliability: FloatArray, deviation: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the weight u and the information b of each family and label; Eq. (2)."""
    odds = reliability / (1 - reliability**2)
    weight = ratio(odds, deviation, 0.0)
    information = np.where(deviation > 0, odds * reliability, 0.0)
    return weight, information


def _sum_centered(
    families: PredictionBlock, weight: FloatArray, mean: FloatArray
) -> PairValues:
    """Return Z, the sum of the families' weighted centered scores."""
    return families.sum_predictions(weight * (1 - mean), -weight * mean)


def _sum_others(
    families: PredictionBlock,
    state: Families,
    estimate: PairValues,
    total: PairValues,
    weights: tuple[FloatArray, FloatArray],
) -> dict[str, FloatArray]:
    """Return the sums of a family's scores with what the other families predict."""
    weight, information = weights
    mean = state.mean
    count = families.count_predictions_by_model()
    score_sum = families.sum_scores_by_model()
    squares = families.sum_squares_by_model() - 2 * mean * score_sum + mean**2 * count
    squares = np.maximum(squares, 0)

    # Sums of x Z, of I and of Z**2; then without the family's own part.
    with_all = families.sum_scores_by_model(estimate)
    with_all = with_all - mean * families.count_predictions_by_model(estimate)
    total_information = families.count_predictions_by_model(total)
    squared = estimate.map(np.square)
    total_squares = families.count_predictions_by_model(squared)
    others_squares = total_squares - 2 * weight * with_all + weight**2 * squares
    others_information = total_information - information * count

    informed = total.map(_is_informed)
    standardized = estimate.divide(total.map(np.multiply, informed), 0.0)
    return {
        "squared_estimates": standardized.map(np.square).sum_over_instances(),
        "n_informed": informed.sum_over_instances(),
        "n_predictions": count,
        "agreement": with_all - weight * squares,
        "others_information": np.maximum(others_information, 0),
        "others_squares": np.maximum(others_squares, 0),
    }


def _sum_large(
    families: PredictionBlock,
    state: Families,
    estimate: PairValues,
    total: PairValues,
    weights: tuple[FloatArray, FloatArray],
) -> WeightedConsensusStatistics:
    """Return the sums for a large label space: products of weighted mean scores."""
    mean = _divide_by_share(families, np.maximum(state.reliability, 0))
    return WeightedConsensusStatistics(
        signal_gram=compute_gram(mean),
        score_products=np.zeros((5, families.n_labels)),
        **_sum_others(families, state, estimate, total, weights),
    )


def _is_informed(information: Array) -> FloatArray:
    """Return 1 where there is information, else 0."""
    return np.asarray(information > _TINY, dtype=np.float64)


def _multiply_scores(families: PredictionBlock, reliability: FloatArray) -> FloatArray:
    """Return the sums of the mean products of 0 to 4 different families' scores.

    Only families count that are at least half as reliable as the average, and pairs
    that four of them predicted. Newton's identities give the products of different
    families from the sums of powers.
    """
    positive = np.maximum(reliability, 0)
    is_reliable = 2 * positive * (positive**2).sum() > (positive**3).sum()
    selected = np.repeat(is_reliable[:, np.newaxis], families.n_labels, axis=1)
    weights = selected.astype(np.float64)
    count = families.count_predictions(weights)
    powers = [
        families.raise_scores(power).sum_scores(weights) for power in (1, 2, 3, 4)
    ]
    sums = []
    for n_factors in range(5):
        products = count.map(_PRODUCTS[n_factors], *powers)
        sums.append(products.sum_over_instances())
    return np.array(sums)


def _count_usable(count: Array, *powers: Array) -> FloatArray:
    """Return 1 for pairs with predictions of at least four families."""
    return np.asarray(count > 3.5, dtype=np.float64)


def _multiply_1(count: Array, first: Array, *powers: Array) -> FloatArray:
    """Return the mean score of each pair."""
    return np.where(count > 3.5, first / np.maximum(count, 1), 0.0)


def _multiply_2(count: Array, first: Array, second: Array, *_: Array) -> FloatArray:
    """Return the mean product of two different families' scores."""
    first = np.asarray(first, dtype=np.float64)
    n_products = np.maximum(count, 4) * (np.maximum(count, 4) - 1)
    return np.where(count > 3.5, (first**2 - second) / n_products, 0.0)


def _multiply_3(
    count: Array, first: Array, second: Array, third: Array, *_: Array
) -> FloatArray:
    """Return the mean product of three different families' scores."""
    first = np.asarray(first, dtype=np.float64)
    n = np.maximum(count, 4)
    triples = first**3 - 3 * first * second + 2 * np.asarray(third, np.float64)
    return np.where(count > 3.5, triples / (n * (n - 1) * (n - 2)), 0.0)


def _multiply_4(
    count: Array, first: Array, second: Array, third: Array, fourth: Array
) -> FloatArray:
    """Return the mean product of four different families' scores."""
    first = np.asarray(first, dtype=np.float64)
    second = np.asarray(second, dtype=np.float64)
    n = np.maximum(count, 4)
    products = first**4 - 6 * first**2 * second + 3 * second**2
    products = products + 8 * first * third - 6 * np.asarray(fourth, np.float64)
    return np.where(count > 3.5, products / (n * (n - 1) * (n - 2) * (n - 3)), 0.0)


_PRODUCTS = (_count_usable, _multiply_1, _multiply_2, _multiply_3, _multiply_4)


# The solution.


@dataclass(frozen=True, kw_only=True)
class _Signal:
    """Covariances of the labels' signals."""

    covariance: FloatArray | None  # (l, l); None in large label spaces
    is_across: bool  # whether they are from products of different families
    is_observed: Array | None  # (l,) labels with products of different families

    @property
    def diagonal(self) -> FloatArray:
        """Variance of each label's signal, NaN if it is unknown."""
        variances = np.diag(get_present(self.covariance)).copy()
        variances[~get_present(self.is_observed)] = np.nan
        return variances


def _compute_signal(
    statistics: WeightedConsensusStatistics, n_families: int
) -> _Signal:
    """Return the covariances of signals: products of Z divided by those of I."""
    if statistics.family_gram is None:
        return _Signal(covariance=None, is_across=False, is_observed=None)

    signal_gram = np.asarray(statistics.signal_gram)
    information_gram = get_present(statistics.information_gram)
    within = get_present(statistics.family_information_gram)
    across = information_gram - within
    across = np.where(across > 1e-6 * information_gram, across, 0.0)
    is_across = n_families > 1 and bool(across.any())
    covariance = ratio(signal_gram, information_gram, 0.0)
    if is_across:
        covariance = ratio(signal_gram - statistics.family_gram, across, 0.0)
    return _Signal(
        covariance=covariance, is_across=is_across, is_observed=np.diag(across) > 0
    )


def _estimate_ease(
    signal_variance: FloatArray, variance: FloatArray, n_informed: FloatArray
) -> FloatArray:
    """Return how much easier each label is than the average: its signal's variance."""
    ease = np.ones(len(variance))
    is_known = ~np.isnan(signal_variance)
    if is_known.any():
        chance = 2 * np.maximum(variance**2 - 1, 0.01) / n_informed
        estimates = shrink(signal_variance[is_known], 1.0, chance[is_known])
        ease[is_known] = np.clip(estimates, *_EASE_LIMITS)
    return ease


def _estimate_label_reliability(
    statistics: WeightedConsensusStatistics, families: Families, ease: FloatArray
) -> FloatArray:
    """Return the reliability of each family on each label, (g, l).

    The regression of a family's predictions on the other families' estimates is shrunk
    to the family's reliability times the ease of the label.
    """
    scale = np.sqrt(ease)
    start = _limit(families.reliability[:, np.newaxis], families) * scale
    reliability = np.clip(start, -MAX_RELIABILITY, MAX_RELIABILITY)
    others = scale * statistics.others_information
    estimate = ratio(ratio(statistics.agreement, families.deviation, 0.0), others, 0.0)
    chance = ratio(statistics.others_squares * (1 - reliability**2), others**2, 0.0)

    is_usable = statistics.others_information > _TINY
    is_usable &= (chance > 0) & (families.deviation > 0)
    for number in np.flatnonzero(is_usable.sum(axis=1) > 1):
        usable = is_usable[number]
        reliability[number, usable] = shrink(
            estimate[number, usable],
            reliability[number, usable],
            chance[number, usable],
        )

    # A family keeps its sign on all labels.
    sign = np.sign(families.reliability)[:, np.newaxis]
    positive = np.clip(sign * reliability, 0, MAX_RELIABILITY)
    return _limit(sign * positive, families)


def measure_replication(score_products: FloatArray) -> float:
    """Return 1 if families err on the same pairs, as replicas do, and 0 if not.

    The probability of a positive prediction differs between pairs. If errors depend
    only on the truth, it has two values, and Pearson's inequality for its central
    moments, m4 v - m3**2 - v**3 >= 0, is an equality. For replicas it has a continuous
    distribution, here a beta distribution of the same mean and variance.

    Parameters
    ----------
    score_products : ndarray of shape (5, l)
        Sums of the mean products of 0 to 4 different families' scores.

    Returns
    -------
    float
    """
    count = score_products[0]
    mean, second, third, fourth = ratio(score_products[1:], count, 0.0)
    variance = second - mean**2
    m3 = third - 3 * mean * second + 2 * mean**3
    m4 = fourth - 4 * mean * third + 6 * mean**2 * second - 3 * mean**4
    observed = m4 * variance - m3**2 - variance**3

    # The same expression for a beta distribution with a + b = s.
    spread = mean * (1 - mean)
    s = np.maximum(ratio(spread, np.maximum(variance, 0), 1.0) - 1, 0)
    numerator = 2 * s * (spread * s**2 + s + 1) * variance**3
    of_beta = ratio(numerator, spread * (s + 2) ** 2 * (s + 3), 0.0)

    weight = count * (variance > 1e-9)
    if not weight.any():
        return 0.0
    expected = (weight * of_beta).sum()
    if expected <= 0:
        return 1.0
    return float(np.clip((weight * observed).sum() / expected, 0, 1))


def _estimate_noise(
    statistics: WeightedConsensusStatistics,
    information: FloatArray,
    n_informed: FloatArray,
    similarity: float,
) -> tuple[FloatArray, FloatArray]:
    """Return the noise N of a typical estimate, and the part that families share."""
    typical = (information * statistics.n_predictions).sum(axis=0)
    typical = np.maximum(typical, _TINY)
    own_noise = n_informed / typical
    noise_of_one = statistics.n_predictions.sum(axis=0) / typical
    common_noise = similarity * np.maximum(noise_of_one - own_noise, 0)
    return own_noise + common_noise, common_noise


def _estimate_gain(
    statistics: WeightedConsensusStatistics,
    reliability: FloatArray,
    deviation: FloatArray,
) -> FloatArray:
    """Return the covariance of a reliable family's predictions with the signal."""
    weight = np.maximum(reliability, 0) ** 2 * statistics.n_predictions
    covariance = (weight * reliability * deviation).sum(axis=0)
    return ratio(covariance, weight.sum(axis=0), 0.0)


def _correlate_labels(
    signal: _Signal, variance: FloatArray, n_informed: FloatArray, ease: FloatArray
) -> FloatArray:
    """Return the correlations of the labels' signals, without negative eigenvalues."""
    covariance = get_present(signal.covariance)
    chance = variance / np.sqrt(n_informed)
    scale = np.sqrt(ease)
    if not signal.is_across:
        chance = 1 / np.sqrt(n_informed)
        scale = np.sqrt(np.maximum(np.diag(covariance), 1e-12))

    phi = np.clip(covariance / np.outer(scale, scale), -1, 1)
    is_pair = ~np.eye(len(phi), dtype=bool)
    if is_pair.any():
        chance_of_pairs = np.maximum(np.outer(chance, chance)[is_pair], 1e-300)
        phi[is_pair] = shrink(phi[is_pair], 0.0, chance_of_pairs)
    np.fill_diagonal(phi, 1.0)
    eigenvalues, eigenvectors = linalg.eigh((phi + phi.T) / 2)
    return np.asarray((eigenvectors * np.maximum(eigenvalues, 0)) @ eigenvectors.T)


def _filter_labels(
    phi: FloatArray, noise: FloatArray, gain: FloatArray, is_informed: Array
) -> FloatArray:
    """Return the Wiener filter (Phi + N)^-1 Phi diag(gain), 0 for unknown labels."""
    label_map = np.zeros_like(phi)
    labels = np.flatnonzero(is_informed)
    if len(labels) == 0:
        return label_map
    is_selected = np.ix_(labels, labels)
    system = phi[is_selected] + np.diag(noise[labels] + _MIN_SCORE)
    label_map[is_selected] = (
        linalg.solve(system, phi[is_selected], assume_a="pos") * gain[labels]
    )
    return label_map


def _shrink_large(
    statistics: WeightedConsensusStatistics, n_informed: FloatArray
) -> LabelMap | None:
    """Return the map of a large label space: that of MLCM-a for weighted means.

    None if rare labels occur together so often that there is no such map.
    """
    n_instances = float(n_informed.max())
    n_families = statistics.n_predictions.max(axis=1).sum() / n_instances
    rows = as_gram(statistics.signal_gram)
    try:
        return shrink_labels(rows, n_families / n_instances, _shrink_once, 1)
    except InputError:
        return None


def _shrink_once(signal: FloatArray) -> FloatArray:
    """Return the shrinkage x / (1 + x) of signal-to-noise ratios."""
    signal = np.maximum(signal, 0)
    return signal / (1 + signal)


def _weigh_votes(families: Families, model_weights: FloatArray) -> FloatArray:
    """Return the weight of each family in the vote, at most 1."""
    weight = np.maximum(families.reliability, 0)
    if not weight.any():
        weight = np.count_nonzero(families.shares, axis=1).astype(np.float64)
    weight = weight * model_weights[:, 0]
    return weight / max(float(weight.max()), 1e-300)


def _choose_vote_share(families: Families, similarity: float) -> float:
    """Return the share h of the vote in a score; 1 if there is no signal."""
    if not families.reliability.any():
        return 1.0
    return _VOTE_SHARE * (1 - similarity)


# Applying it.


def _estimate_signal(
    families: PredictionBlock, solution: WeightedConsensusSolution
) -> PairValues:
    """Return z, shrunk where fewer families than usual made a prediction; Eq. (2)."""
    estimate = _sum_centered(families, solution.weight, solution.mean)
    total = families.count_predictions(solution.information)
    factor = total.map(_divide_estimate, solution.noise, solution.common_noise)
    return estimate.map(np.multiply, factor)


def _divide_estimate(
    information: Array, noise: FloatArray, common_noise: FloatArray
) -> FloatArray:
    """Return the factor of Z: 1 / I, times the usual noise over that of the pair."""
    is_informed = information > _TINY
    divisor = np.where(is_informed, information, 1.0)
    factor = (1 + noise) / (1 + common_noise + 1 / divisor) / divisor
    return np.where(is_informed, factor, 0.0)


def _vote(families: PredictionBlock, solution: WeightedConsensusSolution) -> PairValues:
    """Return the mean score of each pair, weighted by the families' reliability."""
    weight = np.repeat(solution.vote_weight[:, np.newaxis], families.n_labels, axis=1)
    inverted = _count_inverted(solution.shares)[:, np.newaxis]
    total = families.sum_predictions(weight * (1 + inverted), weight * inverted)
    return total.divide(families.count_predictions(weight), solution.prior)


def _count_inverted(shares: FloatArray) -> FloatArray:
    """Return the share of inverted members in each family: their votes are 1 - y."""
    return np.asarray(np.maximum(-shares, 0).sum(axis=1))


def _compute_weighted_mean(
    families: PredictionBlock, solution: WeightedConsensusSolution
) -> PairValues:
    """Return the weighted mean score of each pair, 0 if there is no prediction."""
    return _divide_by_share(families, solution.vote_weight)


def _divide_by_share(families: PredictionBlock, weight: FloatArray) -> PairValues:
    """Return the mean score of each pair, weighted by (g,) weights."""
    if not weight.any():
        weight = np.ones_like(weight)
    weights = np.repeat(weight[:, np.newaxis], families.n_labels, axis=1)
    return families.sum_scores(weights).divide(families.count_predictions(weights), 0.0)


# Explanations.


def _explain_score(
    scores: FloatArray,
    presence: FloatArray,
    solution: WeightedConsensusSolution,
    label: int,
) -> Contributions:
    """Return what each prediction (m, l) of one instance adds to a label's score."""
    shares = solution.shares
    members = np.abs(shares)
    # Each member's part of its family's score, and of its family's presence.
    present_share = members @ presence
    is_present = present_share > 0
    part = ratio(np.ones_like(present_share), present_share, 0.0)
    family = solution.family.astype(int)
    own_share = shares[family, np.arange(len(family))][:, np.newaxis]
    score_part = own_share * scores * part[family]
    presence_part = np.abs(own_share) * presence * part[family]

    n_labels = scores.shape[1]
    column = np.zeros(n_labels)
    column[label] = 1.0
    if solution.label_map is not None:
        column = get_map_column(solution.label_map, label, n_labels)
    vote_weight = solution.vote_weight[:, np.newaxis]
    total_vote = (vote_weight * is_present).sum(axis=0)
    if not isinstance(solution.label_map, np.ndarray):
        mean_part = vote_weight[family] * score_part
        return Contributions(
            baseline=0.0, predictions=ratio(mean_part, total_vote, 0.0) * column
        )

    # The filtered estimate.
    centered = score_part - presence_part * solution.mean[family]
    information = (solution.information * is_present).sum(axis=0)
    factor = _divide_estimate(information, solution.noise, solution.common_noise)
    share = solution.vote_share
    statements = (1 - share) * solution.weight[family] * centered * factor * column
    prior = float(solution.prior[label])
    filtered = (1 - share) * prior + float(statements.sum())
    remainder = max((1 - share) * _MIN_SCORE * prior - filtered, 0.0)

    # The vote: an inverted member votes 1 - y.
    if total_vote[label] > 0:
        inverted = np.maximum(-own_share, 0) * presence * part[family]
        votes = score_part + inverted - presence_part * prior
        vote_part = share * vote_weight[family] * votes / total_vote[label]
        statements[:, label] += vote_part[:, label]
    contributions = Contributions(
        baseline=prior, predictions=statements, remainder=remainder
    )
    correction = solution.correction
    if correction is None:
        return contributions
    return _explain_correction(contributions, scores, presence, correction, label)


def _explain_correction(
    contributions: Contributions,
    scores: FloatArray,
    presence: FloatArray,
    correction: GoldCorrection,
    label: int,
) -> Contributions:
    """Return contributions to the corrected log odds; Eq. (4).

    The curve is nonlinear: it changes all contributions by the same factor.
    """
    statements = contributions.predictions
    moved = float(statements.sum()) + contributions.remainder
    score = contributions.baseline + moved
    row = np.zeros((2, scores.shape[1]))
    row[:, label] = (contributions.baseline, score)
    baseline, corrected = correction.correct(row)[:, label]
    factor = 0.0
    if moved != 0:
        factor = (corrected - baseline) / moved
    else:
        baseline = corrected

    statements = statements * factor
    difference = scores[:, label] - presence[:, label] * np.clip(score, 0, 1)
    statements[:, label] += correction.model_weights * difference
    return Contributions(
        baseline=float(baseline),
        predictions=statements,
        remainder=contributions.remainder * factor,
        scale="log-odds",
    )
