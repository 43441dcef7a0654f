r"""How reliable each model is, and which models form families.

Both follow from the correlations of the models' predictions. Centered and divided by
their standard deviations, the predictions of model `k` for instance `i` and label `j`
are

.. math::

    x_{kij} / s_{kj} = c_k t_{ij} + \sqrt{1 - c_k^2}\, e_{kij}

where `t` is the signal that all models have in common (variance 1), :math:`c_k` is the
reliability of the model, and `e` are its errors. If the errors of two models are
independent, their predictions correlate by

.. math:: R_{kq} = c_k c_q . \qquad (1)

Models whose errors are related correlate more than that. They form a *family*, which
counts as one model. The theory page (docs/theory.md) derives each step.

==================  =======================  =======================================
symbol              variable                 shape
==================  =======================  =======================================
:math:`R`           ``correlation``          (m, m)
:math:`p`           ``precision``            (m, m) inverse sampling variance of `R`
:math:`c`           ``reliability``          (m,) or (g,)
:math:`s`           ``deviation``            (g, l)
:math:`a`           ``agreement``            correlation of two branches of a family
:math:`q`           ``explained``            what other models explain of it
==================  =======================  =======================================
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy import sparse
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import cdist, squareform

from ..execution.statistics import Axes
from ..linalg.block_sums import ratio
from ..predictions import FloatArray, IntArray, Matrix
from ..predictions.blocks import PredictionBlock

# Models are a family if other models leave this share of their agreement, or of the
# errors that they can share, unexplained.
_MIN_UNEXPLAINED = 1 / 3
# Squared correlation of other models from which they can tell who is a family.
_WITNESS_INFORMATION = 0.05**2
# Number of other models that are asked, and standard errors of what they explain.
_MAX_WITNESSES = 64
_N_ERRORS = 1.0
# Standard errors by which agreement must exceed chance to be used at all.
_SIGNIFICANT = 3.0
# Reliability of a single model, whose agreement cannot be measured.
_SINGLE_MODEL = np.sqrt(0.5)
# Largest reliability.
MAX_RELIABILITY = 0.98
# Families are not searched among more models: each of a crowd is its own.
MAX_MODELS = 1000
# A model may be the only independent one only if it is at least so reliable, compared
# with the others.
_MIN_CREDIBLE = 0.4
_IDENTICAL = 1 - 1e-9


@dataclass(frozen=True, kw_only=True)
class RateStatistics:
    """Sums over instances, for the rates at which models predict labels."""

    score_sum: Annotated[FloatArray, Axes("m l", least=0)]
    square_sum: Annotated[FloatArray, Axes("m l", least=0)]
    n_predictions: Annotated[FloatArray, Axes("m l", least=0)]


@dataclass(frozen=True, kw_only=True)
class Rates:
    """How often each model predicts each label."""

    mean: Annotated[FloatArray, Axes("m l", least=0, most=1)]
    variance: Annotated[FloatArray, Axes("m l", least=0)]
    n_predictions: Annotated[FloatArray, Axes("m l", least=0)]
    prior: Annotated[FloatArray, Axes("l", least=0, most=1)]


@dataclass(frozen=True, kw_only=True)
class AgreementStatistics:
    """Sums over the instance-label pairs that two models both predicted."""

    products: Annotated[FloatArray, Axes("m m", symmetric=True)]
    squares: Annotated[FloatArray, Axes("m m", least=0)]
    n_pairs: Annotated[FloatArray, Axes("m m", symmetric=True, least=0)]


@dataclass(frozen=True, kw_only=True)
class Families:
    """Families of models, and how reliable they are. A lone model is a family of one."""

    # Number of the family of each model.
    family: Annotated[FloatArray, Axes("m", least=0)]
    # Share of each model in its family, negative for an inverted member.
    shares: Annotated[Matrix, Axes("? m", least=-1, most=1)]
    # Reliability of each model, and of each family.
    model_reliability: Annotated[FloatArray, Axes("m", least=-1, most=1)]
    reliability: Annotated[FloatArray, Axes("?", least=-1, most=1)]
    # Mean and standard deviation of each family's scores.
    mean: Annotated[FloatArray, Axes("? l", least=-1, most=1)]
    deviation: Annotated[FloatArray, Axes("? l", least=0)]
    # 1 if a family next to a lone model fits as well as independent models.
    is_ambiguous: Annotated[float, Axes("", least=0, most=1)]
    # 1 if all models are one family, whose members then count as models that were trained alike.
    is_one_family: Annotated[float, Axes("", least=0, most=1)]
    # How similar the positive rates of different families are: 1 for models trained alike.
    rate_similarity: Annotated[float, Axes("", least=0, most=1)]
    # Correlations of the models and their precision; CSR for a crowd.
    correlation: Annotated[Matrix, Axes("m m", symmetric=True, least=-1, most=1)]
    precision: Annotated[Matrix, Axes("m m", symmetric=True, least=0)]
    prior: Annotated[FloatArray, Axes("l", least=0, most=1)]


def compute_rate_statistics(block: PredictionBlock) -> RateStatistics:
    """Return the sums of the first pass."""
    return RateStatistics(
        score_sum=block.sum_scores_by_model(),
        square_sum=block.sum_squares_by_model(),
        n_predictions=block.count_predictions_by_model(),
    )


def estimate_rates(statistics: RateStatistics) -> Rates:
    """Return the mean and variance of each model's scores, and each label's prior.

    The mean starts from one prediction at the prior, so that it is defined for labels
    without predictions.
    """
    total = statistics.score_sum
    count = statistics.n_predictions
    prior = ratio(total.sum(axis=0), count.sum(axis=0), 0.0)
    mean = (total + prior) / (count + 1)
    squared_deviations = statistics.square_sum - 2 * mean * total + mean**2 * count
    variance = ratio(np.maximum(squared_deviations, 0), count, 0.0)
    variance[variance < 1e-9] = 0.0
    return Rates(mean=mean, variance=variance, n_predictions=count, prior=prior)


def compute_agreement_statistics(
    block: PredictionBlock, rates: Rates
) -> AgreementStatistics:
    """Return the sums of the second pass."""
    pairs = block.pairwise_products(rates.mean)
    return AgreementStatistics(
        products=pairs.products, squares=pairs.squares, n_pairs=pairs.n_pairs
    )


def estimate_families(
    statistics: AgreementStatistics, rates: Rates, stated: IntArray | None = None
) -> Families:
    """Find families of models and estimate their reliability.

    Parameters
    ----------
    statistics : AgreementStatistics
        Sums of the second pass.
    rates : Rates
        Result of the first pass.
    stated : ndarray of shape (m,) of int, default=None
        Family of each model if it is known. By default families are found.

    Returns
    -------
    Families
    """
    if stated is None and len(rates.mean) > MAX_MODELS:
        return estimate_crowd(statistics, rates)

    correlation, precision = correlate_models(statistics, rates)
    if stated is None:
        family = find_families(correlation, precision)
    else:
        family = stated

    # Members of the only family count as models that were trained alike.
    is_one_family = len(np.unique(family)) == 1
    if is_one_family:
        family = np.arange(len(family))
    is_across = family[:, np.newaxis] != family
    across = precision * is_across

    is_ambiguous = False
    if stated is None and not is_one_family and family.max() == len(family) - 1:
        is_ambiguous = has_lone_model(correlation, precision)
    if is_one_family and correlation.min() > _IDENTICAL:
        reliability = np.full(len(family), _SINGLE_MODEL)
    else:
        reliability = estimate_reliability(correlation, across, is_ambiguous)

    # A family predicts the mean of its members, weighted by their reliability.
    is_member = family == np.arange(family.max() + 1)[:, np.newaxis]
    shares = is_member * np.where(reliability == 0, 1e-9, reliability)
    shares /= np.abs(shares).sum(axis=1, keepdims=True)

    # Variance of this mean, compared with that of a member.
    with_itself = correlation.copy()
    np.fill_diagonal(with_itself, 1.0)
    variance_ratio = ((shares @ with_itself) * shares).sum(axis=1)
    family_reliability = shares @ reliability / np.sqrt(variance_ratio)
    variance = np.abs(shares) @ rates.variance * variance_ratio[:, np.newaxis]

    member_weight = np.maximum(reliability, 0) ** 2 * np.abs(shares).sum(axis=0)
    pair_weight = np.outer(member_weight, member_weight) * is_across
    return Families(
        family=family.astype(np.float64),
        shares=shares,
        model_reliability=reliability,
        reliability=np.clip(family_reliability, -MAX_RELIABILITY, MAX_RELIABILITY),
        mean=shares @ rates.mean,
        deviation=np.sqrt(variance),
        is_ambiguous=float(is_ambiguous),
        is_one_family=float(is_one_family),
        rate_similarity=compare_rates(statistics, rates, pair_weight),
        correlation=correlation,
        precision=precision,
        prior=rates.prior,
    )


def correlate_models(
    statistics: AgreementStatistics, rates: Rates
) -> tuple[FloatArray, FloatArray]:
    """Return the correlations of the models, and the precision of each.

    A correlation of `n` independent pairs has the sampling variance 1/n. Labels count
    by their variance, so `n` is the number of instances times the effective number of
    labels.
    """
    scale = np.sqrt(statistics.squares * statistics.squares.T)
    correlation = np.clip(ratio(statistics.products, scale, 0.0), -1, 1)
    return correlation, statistics.n_pairs * _count_effective_labels(rates)


def _count_effective_labels(rates: Rates) -> float:
    """Return the effective number of labels, as a share of their number."""
    count = rates.n_predictions
    label_variance = ratio((rates.variance * count).sum(axis=0), count.sum(axis=0), 0.0)
    squared_sum = max(float((label_variance**2).sum()), 1e-300)
    return float(label_variance.sum() ** 2 / squared_sum / len(label_variance))


def estimate_crowd(statistics: AgreementStatistics, rates: Rates) -> Families:
    """Estimate the reliability of a crowd, in which families are not searched.

    Only pairs of models that share instances are used. (1) is fitted by least squares,
    and each reliability is shrunk to the mean by empirical Bayes.

    Parameters
    ----------
    statistics : AgreementStatistics
        Sums of the second pass, dense or sparse.
    rates : Rates
        Result of the first pass.

    Returns
    -------
    Families
        Each model is its own family, and models err independently.
    """
    n_models = len(rates.mean)
    first, second = statistics.n_pairs.nonzero()
    is_pair = first != second
    first = first[is_pair]
    second = second[is_pair]
    squares = statistics.squares
    scale = np.sqrt(squares[first, second] * squares[second, first])
    correlation = ratio(statistics.products[first, second], scale, 0.0)
    precision = statistics.n_pairs[first, second] * _count_effective_labels(rates)

    total = (precision * correlation).sum()
    reliability = np.zeros(n_models)
    if total > _SIGNIFICANT * np.sqrt(2 * precision.sum()):
        reliability[:] = np.sqrt(total / precision.sum())
        for _ in range(50):
            weight = precision * reliability[second]
            information = np.bincount(first, weight * reliability[second], n_models)
            information = np.maximum(information, 1e-9)
            estimate = np.bincount(first, weight * correlation, n_models) / information
            mean = information @ estimate / information.sum()
            shrunk = shrink(estimate, mean, 1 / information)
            reliability = (reliability + shrunk) / 2
        reliability = np.clip(reliability, -MAX_RELIABILITY, MAX_RELIABILITY)

    shape = (n_models, n_models)
    return Families(
        family=np.arange(n_models, dtype=np.float64),
        shares=sparse.eye_array(n_models, format="csr"),
        model_reliability=reliability,
        reliability=reliability,
        mean=rates.mean,
        deviation=np.sqrt(rates.variance),
        is_ambiguous=0.0,
        is_one_family=0.0,
        rate_similarity=0.0,
        correlation=sparse.csr_array((correlation, (first, second)), shape=shape),
        precision=sparse.csr_array((precision, (first, second)), shape=shape),
        prior=rates.prior,
    )


def find_families(correlation: FloatArray, precision: FloatArray) -> IntArray:
    """Return the family of each model, found in the correlations.

    Models are joined in a tree by average linkage of their correlations minus the
    largest deviation expected by chance: of m (m - 1) / 2 normal deviations, the largest
    is about sqrt(2 log(m**2 / 2)). From the root down, a node of the tree is a family
    if its two branches agree more than other models explain; see `_is_family`.

    Parameters
    ----------
    correlation : ndarray of shape (m, m)
        Correlations of the models.
    precision : ndarray of shape (m, m)
        Inverse sampling variance of each correlation.

    Returns
    -------
    ndarray of shape (m,) of int
    """
    n_models = len(correlation)
    family = np.arange(n_models)
    if n_models == 1:
        return family

    largest = np.sqrt(2 * np.log(n_models**2 / 2))
    clear = correlation - largest / np.sqrt(np.maximum(precision, 1))
    is_copy = (correlation > _IDENTICAL) & (clear > 0.5)
    clear = np.where(is_copy, 1.0, clear)
    tree = linkage(squareform(1 - clear, checks=False), "average")
    members = [np.array([model]) for model in range(n_models)]
    for first, second, _, _ in tree:
        both = np.concatenate([members[int(first)], members[int(second)]])
        members.append(both)

    nodes = [len(members) - 1]
    while nodes:
        node = nodes.pop()
        if node < n_models:
            continue
        first, second, distance, _ = tree[node - n_models]
        if _is_family(correlation, precision, members[node], 1 - distance):
            family[members[node]] = members[node].min()
        else:
            nodes.extend([int(first), int(second)])
    return np.unique(family, return_inverse=True)[1]


def _is_family(
    correlation: FloatArray, precision: FloatArray, members: IntArray, agreement: float
) -> bool:
    """Return whether members agree more than others explain.

    Independent members would agree by q, their squared reliability. By (1), two other
    models o and o' see it as r_o r_o' / R_oo', where r_o is the mean correlation of o
    with the members. `explained` is the least-squares estimate over all pairs of
    others. Others may be related too: their correlation is taken to be at most that of
    equally reliable independent models.
    """
    if agreement > _IDENTICAL:
        return True
    if agreement <= 0:
        return False

    others = np.setdiff1d(np.arange(len(correlation)), members)
    with_members = np.maximum(correlation[members][:, others].mean(axis=0), 0)
    closest = np.argsort(-with_members, kind="stable")[:_MAX_WITNESSES]
    others = others[closest]
    with_members = with_members[closest]
    seen = np.outer(with_members, with_members)
    between = np.clip(correlation[np.ix_(others, others)], 0, np.sqrt(seen))
    np.fill_diagonal(between, 0)

    # Without informative pairs of others, everything counts as explained.
    information = (between**2).sum() / 2 + _WITNESS_INFORMATION
    explained = (seen * between).sum() / 2 + _WITNESS_INFORMATION * agreement
    explained = explained / information

    # Sampling error of r_o r_o' - q R_oo', for each pair of others.
    squared = np.add.outer(with_members**2, with_members**2) + explained**2
    variance = squared / np.maximum(precision[np.ix_(others, others)], 1)
    error = np.sqrt((variance * between**2).sum() / 2) / information
    unexplained = agreement - explained - _N_ERRORS * error
    return bool(unexplained > _MIN_UNEXPLAINED * min(agreement, 1 - explained))


def has_lone_model(correlation: FloatArray, precision: FloatArray) -> bool:
    """Return whether a family next to a lone model fits as well as independence.

    If all models but one agree with each other more than with that one, they may be a
    family, or the one may be less reliable. Correlations cannot tell. Equal
    reliabilities lose least if the other explanation is right.
    """
    n_models = len(correlation)
    if n_models < 3:
        return False

    # The smallest correlation of the other models: without the row of one of the
    # two models that correlate least, it is another one.
    pairs = correlation.copy()
    np.fill_diagonal(pairs, np.inf)
    smallest = np.full(n_models, pairs.min())
    for model in np.unravel_index(pairs.argmin(), pairs.shape):
        without = np.delete(np.delete(pairs, model, axis=0), model, axis=1)
        smallest[model] = without.min()

    chance = np.sqrt(2 * np.log(n_models) / np.maximum(precision.mean(), 1))
    agreement = smallest - chance
    with_others = (correlation.sum(axis=1) - np.diag(correlation)) / (n_models - 1)
    with_others = np.maximum(with_others, 0)
    limit = _MIN_UNEXPLAINED * np.minimum(agreement, 1 - with_others)
    is_related = agreement - with_others > limit
    return bool((is_related & (with_others > _MIN_CREDIBLE * agreement)).any())


def estimate_reliability(
    correlation: FloatArray, across: FloatArray, is_ambiguous: bool = False
) -> FloatArray:
    """Fit (1), R = c c', to the correlations of models of different families.

    Deviations beyond chance count linearly. Each reliability is shrunk to the mean by
    empirical Bayes; if the model fits worse than chance explains, estimates are less
    certain.

    Parameters
    ----------
    correlation : ndarray of shape (m, m)
        Correlations of the models.
    across : ndarray of shape (m, m)
        Their precision, 0 within families.
    is_ambiguous : bool, default=False
        Whether reliabilities cannot be told apart.

    Returns
    -------
    ndarray of shape (m,)
        0 if models do not agree beyond chance.
    """
    n_models = len(correlation)
    signs = find_signs(correlation, across)
    signed = correlation * np.outer(signs, signs)
    total = across.sum()
    if (signed * across).sum() <= _SIGNIFICANT * np.sqrt(2 * total):
        return np.zeros(n_models)

    average = np.sqrt(max((signed * across).sum() / total, 1e-4))
    reliability = np.full(n_models, average)
    if is_ambiguous:
        return np.asarray(signs * reliability)

    n_free = np.count_nonzero(across) / 2 - n_models
    for iteration in range(150):
        residual = signed - np.outer(reliability, reliability)
        weight = across
        misfit = 1.0
        if iteration >= 50:
            weight = across / (1 + np.abs(residual) * np.sqrt(across))
        if iteration >= 50 and n_free > 0:
            chi_squared = (across * residual**2).sum() / 2
            misfit = np.sqrt(max(1.0, chi_squared / n_free))
        information = np.maximum(weight @ reliability**2, 1e-9)
        estimate = (weight * signed) @ reliability / information
        mean = information @ estimate / information.sum()
        shrunk = shrink(estimate, mean, misfit / information)
        reliability = (reliability + shrunk) / 2
    return np.asarray(signs * np.clip(reliability, -MAX_RELIABILITY, MAX_RELIABILITY))


def find_signs(correlation: FloatArray, precision: FloatArray) -> FloatArray:
    """Return -1 for each model that clearly predicts the opposite of most, else 1."""
    weighted = np.where(precision > 0, correlation, 0.0)
    np.fill_diagonal(weighted, 0.0)
    direction = np.linalg.eigh(weighted)[1][:, -1]
    candidate = np.where(direction * np.sign(direction.sum()) < 0, -1.0, 1.0)
    evidence = (precision * weighted) @ candidate * candidate
    is_clear = evidence > _SIGNIFICANT * np.sqrt(precision.sum(axis=1))
    return np.where(is_clear, candidate, 1.0)


def shrink(
    estimates: FloatArray, expected: FloatArray | float, variance: FloatArray
) -> FloatArray:
    """Shrink estimates to expected values by empirical Bayes.

    Parameters
    ----------
    estimates : ndarray
        Estimates with sampling errors.
    expected : ndarray or float
        What the estimates are shrunk to.
    variance : ndarray
        Sampling variance of each estimate. The variance between estimates is estimated
        by the method of moments.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> shrink(np.array([0.2, 0.4]), 0.3, np.array([10.0, 10.0])).round(3)
    array([0.3, 0.3])
    """
    excess = (estimates - expected) ** 2 - variance
    between = 0.03
    for _ in range(20):
        previous = between
        weight = 1 / (variance + between) ** 2
        mean_excess = np.vdot(weight, excess) / max(weight.sum(), 1e-300)
        between = max(1e-6, float(mean_excess))
        if abs(between - previous) <= 1e-12 * between:
            break
    share = between / (between + variance)
    return np.asarray(expected + (estimates - expected) * share)


def compare_rates(
    statistics: AgreementStatistics, rates: Rates, weight: FloatArray
) -> float:
    """Return how similar the positive rates of models of different families are.

    Models trained alike predict each label equally often, except for chance: the
    ratio of the squared differences that chance explains to those observed is 1.
    Models that saw other instances were not trained alike. `weight` (m, m) is that of each
    pair of models.
    """
    n_instances = np.maximum(rates.n_predictions.mean(axis=1), 1)
    n_products = np.outer(n_instances, n_instances)
    covariance = statistics.products / n_products
    variance = np.diag(covariance)
    by_chance = np.maximum(np.add.outer(variance, variance) - 2 * covariance, 0)
    observed = cdist(rates.mean, rates.mean, "sqeuclidean")
    similarity = np.minimum(1, ratio(by_chance, observed, 1.0))

    n_both = statistics.n_pairs / len(rates.prior)
    similarity = similarity * n_both / np.sqrt(n_products)
    weight = weight * (n_both > 0)
    return min(1.0, float((weight * similarity).sum() / max(weight.sum(), 1e-300)))
