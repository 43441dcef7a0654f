"""Flag random, inverted and weak models, duplicates and families.

Models are tested at a false discovery rate of 1 %, among all models and pairs of models
that are tested. The quality of a model is judged by models of other families only.
That a model is a duplicate or a member of a family is a note, not evidence against it.
docs/diagnostics.md derives the tests and has their error rates in simulations.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from ..linalg.annotations import Annotations
from ..linalg.block_sums import ratio
from ..predictions import BoolArray, FloatArray
from ..text import shown
from .families import FamilyDiagnostics
from .pairwise import FEW, PairwiseStatistics, Reliability, compute_product_scale

FlagKind = Literal["random", "inverted", "weak", "duplicate", "family"]
# Flags that are evidence against a model; the others are notes.
QUALITY_FLAGS: tuple[FlagKind, ...] = ("random", "inverted", "weak")

FALSE_DISCOVERIES = 0.01
_Z = 1.96  # 95 % intervals

# A random model agrees with the others less than this share of their agreement among
# themselves, and its interval contains 0. An inverted model disagrees by more than a
# quarter of it. A weak model agrees less than a third as much, so that it explains less
# than a ninth as much of the variance.
_RANDOM = 0.6
_INVERTED = -0.25
_WEAK = 1 / 3
# Families and easy instances let models differ less often than independent errors
# would: half as often is ordinary. A duplicate differs significantly less often than
# that, and by its interval less than a quarter as often.
_FAMILY = 0.5
_DUPLICATE = 0.25
# Duplicates that share less than this are called near duplicates.
_EQUAL = 0.995
# Models that correlate more than this do not do so by being right. Without this limit,
# duplicates in a panel of two or three would be taken for models without errors.
_MOST_RELIABLE = 0.98


@dataclass(frozen=True, kw_only=True)
class FlaggedModel:
    """A flag of one model, or of several, and the evidence for it.

    ``"random"``, ``"inverted"`` and ``"weak"`` are about the quality of one model.
    ``"duplicate"`` is a note about two models that make the same predictions, and
    ``"family"`` a note about models with related errors.
    """

    kind: FlagKind
    models: tuple[str, ...]  # names of the models
    sentence: str
    instances: int  # that the model shares with others, or the two with each other
    cells: int  # instance-label pairs of these instances that both sides have predicted
    # Correlation with models of other families; for two models: how often they differ,
    # divided by how often that is expected; for families: the correlation of errors
    statistic: float
    low: float  # of its 95 % interval
    high: float
    expected: float  # the statistic of ordinary models; for two models: 1
    # None for families, which are not found by a test
    p_value: float | None = None
    q_value: float | None = None  # false discovery rate at which it is still flagged

    @property
    def is_about_quality(self) -> bool:
        """Whether this is evidence against the model, and not only a note."""
        return self.kind in QUALITY_FLAGS


@dataclass(frozen=True, kw_only=True)
class _Correlations:
    """Correlation of each model with the others, and what is expected of it (m,)."""

    value: FloatArray
    error: FloatArray  # standard error
    low: FloatArray  # of the 95 % interval
    high: FloatArray
    expected: FloatArray  # correlation of an ordinary model with the same others
    expected_error: FloatArray
    is_tested: BoolArray


@dataclass(frozen=True, kw_only=True)
class _Differences:
    """How often two models differ, divided by how often that is expected (m, m)."""

    value: FloatArray
    low: FloatArray
    high: FloatArray
    p_value: FloatArray
    q_value: FloatArray


def flag_models(
    statistics: PairwiseStatistics,
    reliability: Reliability,
    annotations: Annotations,
    names: tuple[str, ...],
    pair_weights: FloatArray,
) -> tuple[FlaggedModel, ...]:
    """Return the models that are random, inverted or weak, and pairs of duplicates.

    Parameters
    ----------
    statistics : PairwiseStatistics
        Sums over the instances that two models share.
    reliability : Reliability
        Of each model, estimated from `statistics`.
    annotations : Annotations
        Predictions in long format.
    names : tuple of str
        Names of the models.
    pair_weights : ndarray of shape (m, m)
        Result of `pairwise.weigh_pairs`, which `statistics` and `reliability` were
        computed with, too.

    Returns
    -------
    tuple of FlaggedModel

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> from mlconsensus.inspection import pairwise
    >>> from mlconsensus.linalg.annotations import make_annotations
    >>> panel, _ = mlc.datasets.make_panel(
    ...     quality=[0.8, 0.8, 0.8, 0.8, 0], shared_errors=0, random_state=0
    ... )
    >>> annotations = make_annotations(panel)
    >>> statistics = pairwise.compute_pairwise_statistics(annotations)
    >>> reliability = pairwise.estimate_reliability(statistics)
    >>> weights = pairwise.weigh_pairs(np.arange(5), np.ones(5))
    >>> flagged = flag_models(
    ...     statistics, reliability, annotations, panel.models, weights
    ... )
    >>> flagged[0].kind, flagged[0].models, len(flagged)
    ('random', ('model_4',), 1)
    """
    correlations = _correlate_with_others(statistics, reliability, pair_weights)
    return (
        *_flag_by_correlation(correlations, statistics, names),
        *_flag_constant(statistics, annotations, names),
        *_flag_duplicates(statistics, reliability, annotations, names),
    )


def flag_families(
    families: FamilyDiagnostics, statistics: PairwiseStatistics, names: tuple[str, ...]
) -> Iterator[FlaggedModel]:
    """Return a note for each family that was found.

    Parameters
    ----------
    families : FamilyDiagnostics
        Result of `describe_families`.
    statistics : PairwiseStatistics
        Sums over the instances that two models share.
    names : tuple of str
        Names of the models.

    Yields
    ------
    FlaggedModel
    """
    position = {name: k for k, name in enumerate(names)}
    for record in families.families:
        correlation = record.error_correlation
        if families.origin != "found" or correlation is None:
            continue
        members = [position[name] for name in record.models]
        pairs = np.ix_(members, members)
        is_pair = ~np.eye(len(members), dtype=np.bool_)
        yield FlaggedModel(
            kind="family",
            models=record.models,
            sentence=record.sentence,
            instances=int(statistics.instances[pairs][is_pair].max()),
            cells=int(statistics.cells[pairs][is_pair].max()),
            statistic=correlation.value,
            low=correlation.low,
            high=correlation.high,
            expected=0.0,
        )


def _flag_constant(
    statistics: PairwiseStatistics, annotations: Annotations, names: tuple[str, ...]
) -> Iterator[FlaggedModel]:
    """Flag models with constant predictions, if the rates of the others would vary."""
    scores = annotations.scores.astype(np.float64)
    count = annotations.sum_by_model(annotations.is_present)  # (m, l)
    total = annotations.sum_by_model(annotations.scores)
    squared = annotations.sum_by_model(scores**2)
    variation = (squared - ratio(total**2, count, 0.0)).sum(axis=1)
    is_constant = variation <= 1e-9 * (1 + squared.sum(axis=1))

    # Probability of the same predictions at the rates of the other models
    other_total = total.sum(axis=0) - total
    other_count = count.sum(axis=0) - count
    rate = (other_total + 0.5) / (other_count + 1)
    log_positive = special.xlogy(total, rate)
    log_negative = special.xlogy(count - total, 1 - rate)
    p_value = np.exp((log_positive + log_negative).sum(axis=1))
    q_value = _adjust(p_value, is_constant)

    n_instances = np.diag(statistics.instances)
    is_flagged = (q_value <= FALSE_DISCOVERIES) & is_constant & (n_instances >= FEW)
    for k in np.flatnonzero(is_flagged).tolist():
        is_predicted = count[k] > 0
        is_positive = total[k] >= count[k] / 2
        n_positive = int((is_positive & is_predicted).sum())
        sentence = (
            f"{shown(names[k])} is random: it gives the same {n_positive:,} of "
            f"{int(is_predicted.sum()):,} labels to each of its "
            f"{int(n_instances[k]):,} instances"
        )
        yield FlaggedModel(
            kind="random",
            models=(names[k],),
            sentence=sentence,
            instances=int(n_instances[k]),
            cells=int(statistics.cells[k, k]),
            statistic=0,
            low=0,
            high=0,
            expected=0,
            p_value=float(p_value[k]),
            q_value=float(q_value[k]),
        )


def _flag_by_correlation(
    correlations: _Correlations,
    statistics: PairwiseStatistics,
    names: tuple[str, ...],
) -> Iterator[FlaggedModel]:
    """Flag random, inverted and weak models by their correlation with the others."""
    value = correlations.value

    is_undecided = correlations.low <= 0
    is_not_inverted = value > _INVERTED * correlations.expected
    yield from _flag_below(
        _RANDOM,
        correlations,
        statistics,
        names,
        kind="random",
        is_candidate=is_undecided & is_not_inverted,
    )
    yield from _flag_below(
        _INVERTED,
        correlations,
        statistics,
        names,
        kind="inverted",
        is_candidate=value < 0,
    )
    yield from _flag_below(
        _WEAK,
        correlations,
        statistics,
        names,
        kind="weak",
        is_candidate=correlations.low > 0,
    )


def _correlate_with_others(
    statistics: PairwiseStatistics, reliability: Reliability, pair_weights: FloatArray
) -> _Correlations:
    """Compute each model's correlation with the others, and what is expected of it.

    The others are the models of other families. Inverted ones count with their sign.
    """
    signs = np.where((pair_weights < 0).any(axis=0), -1.0, 1.0)
    scale = compute_product_scale(statistics.squares) * np.abs(pair_weights)
    product = (statistics.products * (scale > 0) * signs).sum(axis=1)
    size = scale.sum(axis=1)
    total_size = float(size.sum())
    value = ratio(product, size, 0.0)

    # Variance from instance to instance. That of few instances can be too low by
    # chance, so it is averaged with the variance of all models.
    mean_square = ratio(product**2, np.diag(statistics.instances), 0.0)
    variance = np.maximum(statistics.with_others - mean_square, 0)
    common_variance = variance.sum() / max(total_size, 1e-12) * size
    variance = (variance + np.maximum(variance, common_variance)) / 2
    error = ratio(np.sqrt(variance), size, 9.0)

    # Typical reliability of the other models, estimated without the model. If most of
    # them are inverted or random, it is 0 and the model is not flagged.
    rest = total_size - 2 * size
    rest = np.where(rest > 1e-9 * total_size, rest, 0)
    # Here the signs of both models of a pair count.
    signed_product = signs * product
    rest_product = signed_product.sum() - 2 * signed_product
    typical_square = ratio(rest_product, rest, 0.0)
    typical = np.sqrt(np.maximum(typical_square, 0))

    # Expected correlation: the typical reliability times that of the models with which
    # the model shares instances.
    partner_reliability = np.clip(signs * reliability.without.T, -1, 1)
    partners = ratio((scale * partner_reliability).sum(axis=1), size, 0.0)
    partner_variance = ((scale * reliability.error.T) ** 2).sum(axis=1)
    partners_error = ratio(np.sqrt(partner_variance), size, 1.0)
    return _Correlations(
        value=value,
        error=error,
        low=np.clip(value - _Z * error, -1, 1),
        high=np.clip(value + _Z * error, -1, 1),
        expected=typical * partners,
        expected_error=typical * partners_error,
        is_tested=size > 0,
    )


def _flag_below(
    share: float,
    correlations: _Correlations,
    statistics: PairwiseStatistics,
    names: tuple[str, ...],
    *,
    kind: Literal["random", "inverted", "weak"],
    is_candidate: BoolArray,
) -> Iterator[FlaggedModel]:
    """Flag candidates whose correlation is below this share of what is expected."""
    value = correlations.value
    expected = correlations.expected
    n_instances = np.diag(statistics.instances)

    # t-test of value - share * expected
    error = np.hypot(correlations.error, share * correlations.expected_error)
    t = (value - share * expected) / np.maximum(error, 1e-9)
    p_value = special.stdtr(np.maximum(n_instances - 1, 1), t)
    is_expected = expected > 2 * correlations.expected_error
    q_value = _adjust(np.where(is_expected, p_value, 1.0), correlations.is_tested)

    is_flagged = (q_value <= FALSE_DISCOVERIES) & is_candidate
    for k in np.flatnonzero(is_flagged).tolist():
        low = float(correlations.low[k])
        high = float(correlations.high[k])
        sentence = (
            f"{shown(names[k])} is {kind}: its correlation with other models is "
            f"{value[k]:z.2f} ({low:z.2f} to {high:z.2f}) over "
            f"{int(n_instances[k]):,} instances, where {expected[k]:z.2f} is usual"
        )
        yield FlaggedModel(
            kind=kind,
            models=(names[k],),
            sentence=sentence,
            instances=int(n_instances[k]),
            cells=int(statistics.cells[k, k]),
            statistic=float(value[k]),
            low=low,
            high=high,
            expected=float(expected[k]),
            p_value=float(p_value[k]),
            q_value=float(q_value[k]),
        )


def _flag_duplicates(
    statistics: PairwiseStatistics,
    reliability: Reliability,
    annotations: Annotations,
    names: tuple[str, ...],
) -> Iterator[FlaggedModel]:
    """Flag two models that differ less often than their reliabilities let expect."""
    differences = _compare_pairs(statistics, reliability, annotations)
    is_flagged = (
        (differences.q_value <= FALSE_DISCOVERIES)
        & (differences.high < _DUPLICATE)
        & (statistics.instances >= FEW)
    )
    for k, q in np.argwhere(is_flagged).tolist():
        n_instances = int(statistics.instances[k, q])
        value = float(differences.value[k, q])
        low = float(differences.low[k, q])
        high = float(differences.high[k, q])
        share, n_positive = _compare_positives(annotations, k, q)
        description = "a duplicate" if share > _EQUAL else "a near duplicate"
        sentence = (
            f"{shown(names[q])} is {description} of {shown(names[k])}: of "
            f"{n_positive:,} pairs of an instance and a label that either predicts, "
            f"both predict {share:.1%} ({n_instances:,} shared instances); they differ {value:.0%} "
            f"({low:.0%} to {high:.0%}) as often as independent models would"
        )
        yield FlaggedModel(
            kind="duplicate",
            models=(names[k], names[q]),
            sentence=sentence,
            instances=n_instances,
            cells=int(statistics.cells[k, q]),
            statistic=value,
            low=low,
            high=high,
            expected=1.0,
            p_value=float(differences.p_value[k, q]),
            q_value=float(differences.q_value[k, q]),
        )


def _compare_pairs(
    statistics: PairwiseStatistics, reliability: Reliability, annotations: Annotations
) -> _Differences:
    """Compare how often two models differ with how often that is expected."""
    scale = compute_product_scale(statistics.squares)
    square = statistics.squares + statistics.squares.T
    observed = np.maximum(square - 2 * statistics.products, 0)

    # Models with independent errors correlate by the product of their reliabilities,
    # which are estimated from third models; a standard error is added to each.
    r = reliability.without
    upper = np.minimum(np.abs(r) + reliability.error, 1)
    correlation = np.minimum(upper * upper.T, _MOST_RELIABLE)
    correlation = np.where(r * r.T < 0, 0, correlation)
    expected = np.maximum(square - 2 * correlation * scale, 0)

    # Chernoff's bound for sums that are never negative, from their mean and mean square
    size = _compute_cluster_size(observed, statistics, annotations)
    share = np.minimum(ratio(observed, _FAMILY * expected, 1.0), 1)
    exponent = 1 - share + special.xlogy(share, share)
    p_value = np.exp(-_FAMILY * expected / size * exponent)

    # Interval by Anscombe's transformation, as for counts
    root = np.sqrt(observed / size + 3 / 8)
    lower_root = np.maximum(root - _Z / 2, 0)
    upper_root = np.maximum(root + _Z / 2, 0)
    low = size * np.maximum(lower_root**2 - 3 / 8, 0)
    high = size * np.maximum(upper_root**2 - 3 / 8, 0)
    return _Differences(
        value=ratio(observed, expected, 1.0),
        low=ratio(low, expected, 1.0),
        high=ratio(high, expected, 1.0),
        p_value=p_value,
        q_value=_adjust(p_value, np.triu(scale) > 0),
    )


def _compute_cluster_size(
    observed: FloatArray, statistics: PairwiseStatistics, annotations: Annotations
) -> FloatArray:
    """Return the mean size (m, m) of the instance's difference that a difference is in.

    Differences come in clusters, one for each instance. The size is at least that of a
    positive and a negative prediction, however close the scores of third models are.
    """
    size = ratio(statistics.spread.sum(axis=1), observed.sum(axis=1), 1.0)

    # 1 for each prediction of 0 or 1, 0 for 0.5
    certainty = np.abs(2 * annotations.scores - annotations.is_present)
    total_certainty = annotations.sum_by_model(certainty).sum(axis=1)
    n_predictions = annotations.sum_by_model(annotations.is_present).sum(axis=1)
    mean_certainty = ratio(total_certainty, n_predictions, 0.0)

    larger_size = np.maximum.outer(size, size)
    return np.maximum(larger_size, np.outer(mean_certainty, mean_certainty))


def _adjust(p_value: FloatArray, is_tested: BoolArray) -> FloatArray:
    """Return false discovery rates (Benjamini–Hochberg); 1 for values not tested."""
    q_value = np.ones(p_value.shape)
    q_value[is_tested] = _control_false_discoveries(p_value[is_tested])
    return q_value


def _compare_positives(
    annotations: Annotations, first: int, second: int
) -> tuple[float, int]:
    """Return the share of positive pairs of two models that are positive in both.

    The second value is the number of instance-label pairs that are positive in either.
    """
    rows = np.flatnonzero(annotations.model == first)
    other_rows = np.flatnonzero(annotations.model == second)
    _, position, other_position = np.intersect1d(
        annotations.instance[rows],
        annotations.instance[other_rows],
        assume_unique=True,
        return_indices=True,
    )
    rows = rows[position]
    other_rows = other_rows[other_position]

    is_shared = annotations.is_present[rows] & annotations.is_present[other_rows]
    scores = annotations.scores[rows] * is_shared
    other_scores = annotations.scores[other_rows] * is_shared
    n_either = float(np.maximum(scores, other_scores).sum())
    n_both = float(np.minimum(scores, other_scores).sum())
    return n_both / max(n_either, 1e-12), round(n_either)


def _control_false_discoveries(p_value: FloatArray) -> FloatArray:
    """Return q-values by the method of Benjamini and Hochberg.

    This is `scipy.stats.false_discovery_control`; `scipy.stats` takes longer to import
    than a small consensus to compute.
    """
    n_tests = len(p_value)
    order = np.argsort(p_value)
    scaled = p_value[order] * n_tests / np.arange(1, n_tests + 1)

    # A test is not less significant than the tests with a larger p-value.
    smallest_above = np.minimum.accumulate(scaled[::-1])[::-1]
    q_value = np.empty(n_tests)
    q_value[order] = np.minimum(smallest_above, 1)
    return q_value
