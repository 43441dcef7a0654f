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
for models that were trained alike, whose errors agree, and 0 for models that err
independently.

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
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from scipy import linalg

from .. import decision
from ..errors import InputError
from ..execution.statistics import Axes, get_present
from ..linalg.block_sums import ratio
from ..linalg.gram import Gram, as_gram, compute_gram
from ..linalg.label_map import LabelMap, apply_label_map, get_map_column, shrink_labels
from ..linalg.sparse_scores import SparseScores, to_scores
from ..predictions import Array, BoolArray, FloatArray, Matrix, Predictions
from ..predictions.blocks import PairValues, PredictionBlock
from ..predictions.families import FamiliesLike, average_families, number_families
from ..predictions.validation import Weights
from .base import BaseCombiner, FitPass, PredictionsLike
from .contributions import Contributions
from .gold_correction import GoldCorrection, apply_correction, fit_correction
from .reliability import (
    MAX_MODELS,
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

if TYPE_CHECKING:
    from ..decision import Empty

# Share of the vote in the scores of models that err independently.
_VOTE_SHARE = 0.5
# Scores are at least this share of the label's prior, so that ties are ranked by it.
_MIN_SCORE = 1e-6
# Limits of a label's ease, compared with the average label.
_EASE_LIMITS = (0.02, 4.0)
# Information below this is none.
_TINY = 1e-9


@dataclass(frozen=True, kw_only=True)
class WeightedConsensusStatistics:
    """Sums over instances, of the estimates Z = sum u x with the information I = sum b.

    In large label spaces, `signal_gram` has the rows of the mean scores, and
    `information_gram` is None.
    """

    # Products of Z for two labels, of different families; and of I.
    signal_gram: Annotated[Gram | FloatArray, Axes("l l", symmetric=True)]
    information_gram: Annotated[FloatArray | None, Axes("l l", symmetric=True)]
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
    score_products: Annotated[FloatArray, Axes("? l")]


@dataclass(frozen=True, kw_only=True)
class WeightedConsensusSolution:
    """Weights of the families, and the map of labels."""

    family: Annotated[FloatArray, Axes("m", least=0)]
    shares: Annotated[Matrix, Axes("? m", least=-1, most=1)]
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
        first: dict[float, str] = {}
        families = {}
        for model, number in zip(self.models_, self.solution_.family, strict=True):
            families[model] = first.setdefault(number, model)
        return families

    @staticmethod
    def _make_block(predictions: Predictions) -> PredictionBlock:
        """Return predictions as a block; weights count in `_solve`."""
        return predictions.weighted(None).to_block()

    def _compute_pass_statistics(
        self, block: PredictionBlock, state: Rates | None
    ) -> RateStatistics | AgreementStatistics:
        """Return the sums of the first or the second pass."""
        if state is None:
            return compute_rate_statistics(block)
        return compute_agreement_statistics(block, state)

    def _solve_pass(
        self, statistics: Any, state: Rates | None, models: tuple[str, ...]
    ) -> Rates | Families:
        """Return the rates after the first pass, the families after the second."""
        if state is None:
            return estimate_rates(statistics)
        stated = number_families(self.families, models)
        return estimate_families(statistics, state, stated)

    def _compute_statistics(
        self, block: PredictionBlock
    ) -> WeightedConsensusStatistics:
        """Return the sums of the third pass."""
        state: Families = get_present(self.state_)
        families = block.merge_models(state.shares)
        weight, information = _weigh(state.reliability[:, np.newaxis], state.deviation)
        estimate = _sum_centered(families, weight, state.mean)
        total = families.count_predictions(information)
        sums = _sum_by_family(families, state, estimate, total, (weight, information))
        if block.is_large:
            mean = _compute_mean(families, np.maximum(state.reliability, 0))
            return WeightedConsensusStatistics(
                signal_gram=compute_gram(mean), information_gram=None, **sums
            )

        signal_gram = np.asarray(compute_gram(estimate))
        information_gram = np.asarray(compute_gram(total))
        if len(state.reliability) > 1:
            signal_gram = signal_gram - families.sum_label_products(weight, state.mean)
            within = families.count_label_products(information)
            information_gram = information_gram - within
        return WeightedConsensusStatistics(
            signal_gram=signal_gram, information_gram=information_gram, **sums
        )

    def _solve(
        self, statistics: WeightedConsensusStatistics
    ) -> WeightedConsensusSolution:
        """Return the weights of families and the map of labels."""
        families: Families = get_present(self.state_)
        n_informed = np.maximum(statistics.n_informed, 1)
        variance = statistics.squared_estimates / n_informed
        covariance = None
        ease = np.ones(len(variance))
        if statistics.information_gram is not None:
            covariance = _estimate_covariance(statistics)
            if len(families.reliability) > 1:
                ease = _estimate_ease(np.diag(covariance), variance, n_informed)

        reliability = _estimate_label_reliability(statistics, families, ease)
        weight, information = _weigh(reliability, families.deviation)
        user_weight = np.ones((len(families.reliability), 1))
        if self.weights_ is not None:
            user_weight = (abs(families.shares) @ self.weights_)[:, np.newaxis]
        information = information * user_weight

        # Noise of a typical estimate, and the part of it that families share.
        similarity = 1.0
        if not families.is_one_family:
            replication = measure_replication(statistics.score_products)
            similarity = families.rate_similarity * replication
        typical = (information * statistics.n_predictions).sum(axis=0)
        own_noise = n_informed / np.maximum(typical, _TINY)
        noise_of_one = statistics.n_predictions.sum(axis=0) / np.maximum(typical, _TINY)
        common_noise = similarity * np.maximum(noise_of_one - own_noise, 0)
        noise = own_noise + common_noise

        if covariance is None:
            label_map = _shrink_large(statistics, n_informed)
        else:
            is_across = len(families.reliability) > 1
            phi = _correlate_labels(covariance, variance, n_informed, ease, is_across)
            gain = _estimate_gain(statistics, reliability, families.deviation)
            label_map = _filter_labels(phi, noise, gain, statistics.n_informed > 0)
        vote_share = _VOTE_SHARE * (1 - similarity)
        if not families.reliability.any():
            vote_share = 1.0
        return WeightedConsensusSolution(
            family=families.family,
            shares=families.shares,
            model_reliability=families.model_reliability,
            mean=families.mean,
            weight=weight * user_weight,
            information=information,
            noise=noise,
            common_noise=common_noise,
            label_map=label_map,
            prior=families.prior,
            vote_weight=_weigh_votes(families, user_weight[:, 0]),
            vote_share=vote_share,
        )

    @staticmethod
    def _apply(
        block: PredictionBlock, solution: WeightedConsensusSolution
    ) -> FloatArray | SparseScores:
        """Return the scores of one block; Eq. (3)."""
        families = block.merge_models(solution.shares)
        if block.is_large:
            mean = _compute_mean(families, solution.vote_weight)
            if solution.label_map is None:
                return to_scores(mean)
            return apply_label_map(mean, solution.label_map)

        vote = _vote(families, solution).to_array()
        if solution.vote_share == 1 or solution.label_map is None:
            return vote
        estimate = _sum_centered(families, solution.weight, solution.mean)
        total = families.count_predictions(solution.information)
        factor = total.map(_divide_estimate, solution.noise, solution.common_noise)
        estimate = estimate.map(np.multiply, factor)
        filtered = solution.prior + apply_label_map(estimate, solution.label_map)
        filtered = np.maximum(filtered, _MIN_SCORE * solution.prior)
        scores = (1 - solution.vote_share) * filtered + solution.vote_share * vote
        if solution.correction is None:
            return np.asarray(scores)
        return apply_correction(block, scores, solution.correction)

    @staticmethod
    def _learn(
        predictions: Predictions, solution: WeightedConsensusSolution
    ) -> WeightedConsensusSolution:
        """Correct the solution by the gold labels of some instances."""
        gold = predictions.gold
        solution = replace(solution, n_gold_labels=None, curve=None)
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
        empty: "Empty" = "keep",
    ) -> Matrix:
        """Return label sets; their size follows from families, not from models.

        Families that are less than half as reliable as the average do not count. Scores
        that gold labels corrected are probabilities.
        """
        solution = self.solution_
        if solution.curve is not None:
            return decision.best_micro_f1(scores, empty=empty)
        is_counted = solution.vote_weight > 0
        if solution.vote_share < 1:
            is_counted = _is_reliable(solution.vote_weight)
        n_models = len(solution.family)
        if 0 < is_counted.sum() < n_models <= MAX_MODELS:
            predictions = average_families(predictions, solution.shares[is_counted])
        return super().choose_label_sets(scores, predictions, empty)


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


def _weigh(
    reliability: FloatArray, deviation: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the weight u and the information b of each family and label; Eq. (2)."""
    odds = reliability / (1 - reliability**2)
    weight = ratio(odds * np.ones_like(deviation), deviation, 0.0)
    return weight, weight * deviation * reliability


def _sum_centered(
    families: PredictionBlock, weight: FloatArray, mean: FloatArray
) -> PairValues:
    """Return Z, the sum of the families' weighted centered scores."""
    return families.sum_predictions(weight * (1 - mean), -weight * mean)


def _sum_by_family(
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
    total_squares = families.count_predictions_by_model(estimate.map(np.square))
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
        "score_products": _multiply_scores(families, state.reliability),
    }


def _is_informed(information: Array) -> FloatArray:
    """Return 1 where there is information, else 0."""
    return np.asarray(information > _TINY, dtype=np.float64)


def _is_reliable(reliability: FloatArray) -> BoolArray:
    """Return which families are at least half as reliable as the average."""
    positive = np.maximum(reliability, 0)
    average = (positive**3).sum() / max((positive**2).sum(), 1e-300)
    return np.asarray(2 * positive > average)


def _multiply_scores(families: PredictionBlock, reliability: FloatArray) -> FloatArray:
    """Return the sums of the mean products of 0 to 4 different families' scores.

    Only reliable families count, and pairs that four of them predicted.
    """
    selected = _is_reliable(reliability)[:, np.newaxis] * np.ones(families.n_labels)
    count = families.count_predictions(selected)
    powers = []
    for power in (1, 2, 3, 4):
        powers.append(families.raise_scores(power).sum_scores(selected))
    sums = []
    for n_factors in range(5):
        products = count.map(partial(_compute_mean_product, n_factors), *powers)
        sums.append(products.sum_over_instances())
    return np.array(sums)


def _compute_mean_product(n_factors: int, count: Array, *powers: Array) -> FloatArray:
    """Return the mean product of different families' scores, from sums of powers.

    With the sums p_i of the i-th powers, Newton's identities give the elementary
    symmetric polynomials k e_k = e_(k-1) p_1 - e_(k-2) p_2 + ...; e_k is a sum of
    count over k products.
    """
    is_usable = np.asarray(count > 3.5, dtype=np.float64)
    n_families = np.maximum(count, 4)
    n_products = np.ones_like(is_usable)
    polynomials = [is_usable]
    for k in range(1, n_factors + 1):
        n_products = n_products * (n_families - k + 1) / k
        signed = is_usable * 0
        for i in range(1, k + 1):
            signed = signed - (-1) ** i * polynomials[k - i] * powers[i - 1]
        polynomials.append(signed / k)
    return np.asarray(polynomials[n_factors] / n_products)


# The solution.


def _estimate_covariance(statistics: WeightedConsensusStatistics) -> FloatArray:
    """Return the covariances of signals, (l, l): products of Z over those of I.

    They are 0 for labels that no two families predicted.
    """
    information = get_present(statistics.information_gram)
    is_known = information > 1e-12 * information.max(initial=0)
    return ratio(np.asarray(statistics.signal_gram), information * is_known, 0.0)


def _estimate_ease(
    signal_variance: FloatArray, variance: FloatArray, n_informed: FloatArray
) -> FloatArray:
    """Return how much easier each label is than the average: its signal's variance."""
    ease = np.ones(len(variance))
    is_known = signal_variance != 0
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
    sign = np.sign(families.reliability)[:, np.newaxis]
    reliability = families.reliability[:, np.newaxis] * scale
    reliability = np.clip(reliability, -MAX_RELIABILITY, MAX_RELIABILITY)
    others = scale * statistics.others_information
    estimate = ratio(ratio(statistics.agreement, families.deviation, 0.0), others, 0.0)
    chance = ratio(statistics.others_squares * (1 - reliability**2), others**2, 0.0)

    is_usable = (statistics.others_information > _TINY) & (chance > 0)
    is_usable &= (families.deviation > 0) & (is_usable.sum(axis=1, keepdims=True) > 1)
    if families.is_ambiguous:
        is_usable[:] = False
    for number in np.flatnonzero(is_usable.any(axis=1)):
        usable = is_usable[number]
        reliability[number, usable] = shrink(
            estimate[number, usable],
            reliability[number, usable],
            chance[number, usable],
        )

    # A family keeps its sign on all labels.
    return np.asarray(sign * np.clip(sign * reliability, 0, MAX_RELIABILITY))


def measure_replication(score_products: FloatArray) -> float:
    """Return 1 if families err on the same pairs, as if trained alike, else 0.

    The probability of a positive prediction differs between pairs. If errors depend
    only on the truth, it has two values, and Pearson's inequality for its central
    moments, m4 v - m3**2 - v**3 >= 0, is an equality. For models that were trained alike it has a continuous
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
    covariance: FloatArray,
    variance: FloatArray,
    n_informed: FloatArray,
    ease: FloatArray,
    is_across: bool,
) -> FloatArray:
    """Return the correlations of the labels' signals, without negative eigenvalues."""
    chance = variance / ease / np.sqrt(n_informed)
    scale = np.sqrt(ease)
    if not is_across:
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

    None if rare labels occur together so often that no such map exists.
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


def _weigh_votes(families: Families, user_weight: FloatArray) -> FloatArray:
    """Return the weight of each family in the vote, at most 1."""
    weight = np.maximum(families.reliability, 0)
    if not weight.any():
        weight = np.bincount(families.family.astype(int)).astype(np.float64)
    weight = weight * user_weight
    return weight / max(float(weight.max()), 1e-300)


# Applying it.


def _divide_estimate(
    information: Array, noise: FloatArray, common_noise: FloatArray
) -> FloatArray:
    """Return the factor of Z: 1 / I, times the usual noise over that of the pair."""
    is_informed = information > _TINY
    divisor = np.where(is_informed, information, 1.0)
    factor = (1 + noise) / (1 + common_noise + 1 / divisor) / divisor
    return np.where(is_informed, factor, 0.0)


def _vote(families: PredictionBlock, solution: WeightedConsensusSolution) -> PairValues:
    """Return the mean score of each pair, weighted by the families' reliability.

    The vote of an inverted member is 1 - y.
    """
    weight = solution.vote_weight[:, np.newaxis] * np.ones(families.n_labels)
    inverted = (abs(solution.shares) - solution.shares).sum(axis=1) / 2
    inverted = inverted[:, np.newaxis]
    total = families.sum_predictions(weight * (1 + inverted), weight * inverted)
    return total.divide(families.count_predictions(weight), solution.prior)


def _compute_mean(families: PredictionBlock, weight: FloatArray) -> PairValues:
    """Return the mean score of each pair, weighted by (g,) weights."""
    if not weight.any():
        weight = np.ones_like(weight)
    weights = weight[:, np.newaxis] * np.ones(families.n_labels)
    return families.sum_scores(weights).divide(families.count_predictions(weights), 0.0)


# Explanations.


def _explain_score(
    scores: FloatArray,
    presence: FloatArray,
    solution: WeightedConsensusSolution,
    label: int,
) -> Contributions:
    """Return what each prediction (m, l) of one instance adds to a label's score."""
    family = solution.family.astype(int)
    n_models, n_labels = scores.shape
    share = solution.shares[family, np.arange(n_models)][:, np.newaxis]
    members = abs(solution.shares)

    # Part of each member in its family's score, and the score that it gives.
    present_share = members @ presence
    part = ratio(np.abs(share) * presence, present_share[family], 0.0)
    family_score = np.sign(share) * part * scores
    is_present = present_share > 0
    vote_weight = solution.vote_weight[:, np.newaxis]
    vote_part = ratio(vote_weight[family] * part, (vote_weight * is_present).sum(0), 0)

    column = np.zeros(n_labels)
    column[label] = 1.0
    if solution.label_map is not None:
        column = get_map_column(solution.label_map, label, n_labels)
    if not isinstance(solution.label_map, np.ndarray):
        terms = vote_part * np.sign(share) * scores * column
        return Contributions(baseline=0.0, predictions=terms)

    # The filtered estimate.
    centered = family_score - part * solution.mean[family]
    information = (solution.information * is_present).sum(axis=0)
    factor = _divide_estimate(information, solution.noise, solution.common_noise)
    vote_share = solution.vote_share
    terms = (1 - vote_share) * solution.weight[family] * centered * factor * column
    prior = float(solution.prior[label])
    filtered = (1 - vote_share) * prior + float(terms.sum())
    remainder = max((1 - vote_share) * _MIN_SCORE * prior - filtered, 0.0)

    # The vote: an inverted member votes 1 - y.
    vote = np.where(share < 0, 1 - scores, scores)[:, label] - prior
    terms[:, label] += vote_share * vote_part[:, label] * vote
    contributions = Contributions(
        baseline=prior, predictions=terms, remainder=remainder
    )
    if solution.correction is None:
        return contributions
    return _explain_correction(
        contributions, scores, presence, solution.correction, label
    )


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
