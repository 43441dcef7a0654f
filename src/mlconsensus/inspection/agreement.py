r"""Inter-annotator agreement beyond chance, with bootstrap intervals.

Krippendorff's α, Cohen's κ and percent agreement are all one minus the observed
disagreement divided by the expected one. The disagreement expected by chance is
computed for each label and then summed, so that models which only know how frequent
the labels are score 0:

.. math::

    \alpha = 1 - \frac{\sum_\ell \sum_i \frac{s T - T^2}{s - 1}}
    {\sum_\ell \frac{N T_\ell - T_\ell^2}{N - 1}}

(Krippendorff, *Content Analysis*: the nominal α). The distance of two label sets is
the MASI distance (Passonneau, 2006). Intervals are percentiles over resampled
instances. All sums are over instances: those of groups of instances are computed once,
and the groups are resampled.

===================  ==================  =============================================
symbol               variable            meaning
===================  ==================  =============================================
:math:`s`            ``n_models``        models that have predicted pair :math:`(i, l)`
:math:`T`            ``n_positive``      those of them with a positive prediction
:math:`N, T_\ell`    ``n``, ``t``        the same, summed over the instances
===================  ==================  =============================================
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import sparse

from ..errors import InputError
from ..linalg.annotations import Annotations, make_annotations, make_sum_matrix
from ..linalg.block_sums import ratio
from ..predictions import (
    Array,
    BoolArray,
    FloatArray,
    IntArray,
    Predictions,
    as_predictions,
)
from ..predictions.families import (
    FamiliesLike,
    merge_stated_families,
    number_families,
)
from ..predictions.sampling import select_frequent_labels, subsample_for_diagnostics
from ..text import plural, shown, table
from .pairwise import FEW, together

RESAMPLES = 400
# Largest number of pairs of models. With more, those that share most instances are
# compared.
MOST_PAIRS = 2000
# Largest number of comparisons of two predictions. With more, every second, third, …
# instance is used.
_MOST_COMPARISONS = 2**27
# Groups of instances that are resampled. Up to 200 instances are groups of their own.
_GROUPS = 200
# Largest number of different label sets. With more, every second instance is used.
_MOST_SETS = 4096
_AT_ONCE = 2**21  # numbers in the largest array of one step


@dataclass(frozen=True, kw_only=True)
class Agreed:
    """An agreement coefficient and its 95 % interval.

    The value is NaN if no two models share an instance, or if they could not differ.
    The ends of the interval are NaN for few instances.
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        if np.isnan(self.value):
            return "–"
        if np.isnan(self.low):
            return f"{self.value:z.3f} (–)"
        return f"{self.value:z.3f} ({self.low:z.3f} to {self.high:z.3f})"


@dataclass(frozen=True, kw_only=True)
class LabelAgreement:
    """Agreement of all models on one label."""

    label: str
    instances: int  # that at least two models have predicted
    share: Agreed  # of the pairs of predictions that are equal
    alpha: Agreed  # Krippendorff's


@dataclass(frozen=True, kw_only=True)
class ModelAgreement:
    """Agreement of one model with the others, or of two models with each other."""

    models: tuple[str, ...]  # one model, or two
    instances: int  # shared
    share: Agreed  # of the pairs of predictions that are equal
    # Cohen's, with chance computed for each label. For one model, each of its
    # predictions is compared with those of all others.
    kappa: Agreed


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Agreement of models beyond chance.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel = {"ana": [[1, 0], [0, 1], [1, 0]], "bob": [[1, 0], [0, 1], [1, 1]]}
    >>> result = mlc.agreement(panel)
    >>> round(result.share.value, 3), round(result.alpha.value, 3)
    (0.833, 0.706)
    >>> for label in result.labels:
    ...     print(label.label, label.alpha)
    label_0 1.000 (–)
    label_1 0.444 (–)
    """

    instances: int  # that at least two models have predicted
    share: Agreed  # of the pairs of predictions that are equal
    alpha: Agreed  # Krippendorff's over all labels, with chance computed for each label
    set_alpha: Agreed  # Krippendorff's of label sets, with the MASI distance
    labels: tuple[LabelAgreement, ...]
    models: tuple[ModelAgreement, ...]
    pairs: tuple[ModelAgreement, ...]
    note: str = ""  # which part of the predictions is used; empty for all

    def to_text(self, rows: int = 12) -> str:
        """Return tables for a terminal.

        Labels, models and pairs with the lowest agreement are first; those with few
        instances are last.

        Parameters
        ----------
        rows : int, default=12
            Maximum number of labels, of models and of pairs.

        Returns
        -------
        str
        """
        seen = plural(self.instances, "instance")
        lines = [f"{len(self.models)} models, {seen} with predictions of two or more"]
        if self.note:
            lines.append(self.note)
        lines.append(f"{'agreement':23} {self.share}")
        lines.append(f"{'α, label by label':23} {self.alpha}")
        lines.append(f"{'α of label sets (MASI)':23} {self.set_alpha}")

        labels = []
        for label in self.labels:
            name = shown(label.label)
            labels.append(_make_row(name, label, coefficient=label.alpha))

        sections = [
            "\n".join(lines),
            _format_table("label", "Krippendorff's α", labels, rows),
            _format_table("model", "Cohen's κ", _make_model_rows(self.models), rows),
            _format_table("pair", "Cohen's κ", _make_model_rows(self.pairs), rows),
        ]
        return "\n\n".join(sections)


@dataclass(frozen=True, kw_only=True)
class _TableRow:
    """A row of the tables of `Agreement.to_text`."""

    name: str
    instances: int
    share: Agreed
    coefficient: Agreed


@dataclass(frozen=True, kw_only=True)
class _PairRows:
    """The rows of two models for the instances that they share."""

    models: tuple[int, int]
    first: IntArray  # (shared,) rows of the first model
    second: IntArray  # (shared,) rows of the second, for the same instances


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """Predictions in long format, with an index by instance, model and pair."""

    annotations: Annotations  # r rows
    instance: IntArray  # (r,) number among the instances with predictions
    n_models: IntArray  # (instances,) models that have predicted each
    of_models: list[IntArray]  # rows of each model
    pairs: list[_PairRows]


@dataclass(frozen=True, kw_only=True)
class _DisagreementSums:
    """Sums of all instances and of the resamples, RESAMPLES + 1 of them.

    The first axis of two is that of percent agreement and of the coefficient, the
    second that of the observed and of the expected disagreement.
    """

    labels: FloatArray  # (2, 2, resamples + 1, l)
    models: FloatArray  # (m, 2, 2, resamples + 1)
    pairs: FloatArray  # (pairs, 2, 2, resamples + 1)
    n_shared: IntArray  # (l,) instances that at least two models have predicted


def agreement(predictions: object, families: FamiliesLike = None) -> Agreement:
    """Measure how far models agree beyond chance.

    Only a part of large panels is used: instances at even distances of panels with more
    than 2²⁴ predictions or 2²⁷ comparisons, the first block of a panel in files, and
    the 500 most frequent of many labels. `Agreement.note` says so.

    Parameters
    ----------
    predictions : Predictions or array-like
        Predictions of at least two models, or input of the constructor of
        `Predictions`. Scores of at least 0.5 are positive.
    families : None, "independent", "by-name" or mapping, default=None
        Families of related models, as in `combine`. A stated family is one model: the
        mean of its members. By default, all models are compared.

    Returns
    -------
    Agreement
        Coefficients of all models together, of each label, of each model, and of pairs
        of models.
    """
    source = as_predictions(predictions)
    _check_two(len(source.models), "model")
    numbers = number_families(families, source.models)
    if numbers is not None:
        _check_two(len(np.unique(numbers)), "family")

    panel, note = _select_part(source)
    panel = merge_stated_families(panel, families)
    rows = _index_rows(make_annotations(panel))
    sums = _sum_disagreement(rows)

    # Labels
    labels = []
    for j, name in enumerate(panel.labels):
        n_shared = int(sums.n_shared[j])
        share, alpha = _estimate_both(sums.labels[..., j], n_shared)
        labels.append(
            LabelAgreement(label=name, instances=n_shared, share=share, alpha=alpha)
        )

    # Models
    models = []
    for k, name in enumerate(panel.models):
        has_others = rows.n_models[rows.instance[rows.of_models[k]]] > 1
        n_shared = int(has_others.sum())
        models.append(_make_model_agreement((name,), n_shared, sums.models[k]))

    # Pairs of models
    pairs = []
    for pair, pair_sums in zip(rows.pairs, sums.pairs, strict=True):
        first, second = pair.models
        names = (panel.models[first], panel.models[second])
        pairs.append(_make_model_agreement(names, len(pair.first), pair_sums))

    # All labels and models together
    n_shared = int((rows.n_models > 1).sum())
    share, alpha = _estimate_both(sums.labels.sum(axis=-1), n_shared)
    return Agreement(
        instances=n_shared,
        share=share,
        alpha=alpha,
        set_alpha=_estimate_set_alpha(panel),
        labels=tuple(labels),
        models=tuple(models),
        pairs=tuple(pairs),
        note=note,
    )


def _select_part(source: Predictions) -> tuple[Predictions, str]:
    """Return the predictions that are compared, and a note if they are not all."""
    panel, note = select_frequent_labels(source)
    panel = subsample_for_diagnostics(panel)

    models_per_instance = np.bincount(make_annotations(panel).instance)
    n_comparisons = int((models_per_instance**2).sum()) * len(panel.labels)
    if n_comparisons > _MOST_COMPARISONS:
        step = -(-n_comparisons // _MOST_COMPARISONS)
        panel = panel[::step]

    if len(panel) < len(source):
        note += f" Of {len(source):,} instances, {len(panel):,} are looked at."
    return panel, note.strip()


def _index_rows(annotations: Annotations) -> _Rows:
    """Find the rows of each model, and those of pairs of models."""
    _, instance = np.unique(annotations.instance, return_inverse=True)
    of_models = []
    for model in range(annotations.shape[0]):
        of_models.append(np.flatnonzero(annotations.model == model))

    return _Rows(
        annotations=annotations,
        instance=instance,
        n_models=np.bincount(instance),
        of_models=of_models,
        pairs=_match_pairs(annotations.model, instance, of_models),
    )


def _match_pairs(
    model: IntArray, instance: IntArray, of_models: list[IntArray]
) -> list[_PairRows]:
    """Find the rows of two models that are about the same instances."""
    # Number of shared instances of each pair
    shape = (len(of_models), max(len(instance), 1))
    seen = sparse.csr_array((np.ones(len(instance)), (model, instance)), shape=shape)
    shared = sparse.triu(seen @ seen.T, 1).tocoo()

    selected = np.argsort(-shared.data, kind="stable")[:MOST_PAIRS]
    firsts = shared.row[selected].tolist()
    seconds = shared.col[selected].tolist()
    pairs = []
    for k, q in sorted(zip(firsts, seconds, strict=True)):
        _, first, second = np.intersect1d(
            instance[of_models[k]],
            instance[of_models[q]],
            assume_unique=True,
            return_indices=True,
        )
        pair = _PairRows(
            models=(k, q), first=of_models[k][first], second=of_models[q][second]
        )
        pairs.append(pair)

    return pairs


def _sum_disagreement(rows: _Rows) -> _DisagreementSums:
    """Sum the observed and the expected disagreement, over a few labels at a time."""
    m, _, l = rows.annotations.shape
    n_rows = len(rows.instance)
    labels = np.zeros((2, 2, RESAMPLES + 1, l))
    models = np.zeros((m, 2, 2, RESAMPLES + 1))
    pairs = np.zeros((len(rows.pairs), 2, 2, RESAMPLES + 1))
    n_shared = np.zeros(l, dtype=np.int64)

    by_instance = make_sum_matrix(rows.instance, len(rows.n_models))
    instance_group = np.arange(len(rows.n_models)) % _GROUPS
    step = max(1, _AT_ONCE // max(n_rows, 4 * RESAMPLES))
    for start in range(0, l, step):
        columns = slice(start, start + step)
        is_present = rows.annotations.is_present[:, columns]
        is_positive = rows.annotations.scores[:, columns] >= 0.5

        # Sums over the models of each instance-label pair
        n_models = by_instance @ is_present.astype(np.float64)
        n_positive = by_instance @ is_positive.astype(np.float64)
        n_shared[columns] = (n_models > 1).sum(axis=0)
        labels[..., columns] = _sum_over_labels(n_models, n_positive, instance_group)

        for k in range(m):
            models[k] += _sum_over_model(
                rows.of_models[k],
                rows,
                is_present=is_present,
                is_positive=is_positive,
                n_models=n_models,
                n_positive=n_positive,
            )
        for total, pair in zip(pairs, rows.pairs, strict=True):
            total += _sum_over_pair(pair, rows, is_present, is_positive)

    return _DisagreementSums(
        labels=labels, models=models, pairs=pairs, n_shared=n_shared
    )


def _sum_over_labels(
    n_models: FloatArray, n_positive: FloatArray, group: IntArray
) -> FloatArray:
    """Return the disagreement (2, 2, resamples + 1, l) of all models on each label.

    `n_models` and `n_positive` have the shape (instances, l).
    """
    is_shared = n_models > 1
    n_different = n_models * n_positive - n_positive**2
    within = is_shared * n_different / np.maximum(n_models - 1, 1)

    # Percent agreement
    different = _resample(n_different, group)
    possible = _resample(n_models * (n_models - 1) / 2, group)

    # Krippendorff's α
    observed = _resample(within, group)
    n = _resample(n_models * is_shared, group)
    t = _resample(n_positive * is_shared, group)
    expected = (n * t - t**2) / np.maximum(n - 1, 1)
    expected = np.where(expected > 1e-9 * t, expected, 0)
    return np.array([[different, possible], [observed, expected]])


def _sum_over_model(
    positions: IntArray,
    rows: _Rows,
    *,
    is_present: BoolArray,
    is_positive: BoolArray,
    n_models: FloatArray,
    n_positive: FloatArray,
) -> FloatArray:
    """Return the disagreement (2, 2, resamples + 1) of one model with the others.

    `positions` are the rows of the model.
    """
    instance = rows.instance[positions]
    present = is_present[positions].astype(np.float64)
    positive = is_positive[positions].astype(np.float64)
    n_others = (n_models[instance] - 1) * present
    n_others_positive = (n_positive[instance] - positive) * present
    return _compare_two_sides(
        n_others,
        positive * n_others,
        n_others_positive,
        positive * n_others_positive,
        group=instance % _GROUPS,
    )


def _sum_over_pair(
    pair: _PairRows, rows: _Rows, is_present: BoolArray, is_positive: BoolArray
) -> FloatArray:
    """Return the disagreement (2, 2, resamples + 1) of two models."""
    # Arrays of bool are faster than of float here, and there are many pairs.
    is_shared = is_present[pair.first] & is_present[pair.second]
    first = is_positive[pair.first]
    second = is_positive[pair.second]
    return _compare_two_sides(
        is_shared,
        first & is_shared,
        second & is_shared,
        first & second,
        group=rows.instance[pair.first] % _GROUPS,
    )


def _compare_two_sides(
    n_compared: Array, first: Array, second: Array, both: Array, *, group: IntArray
) -> FloatArray:
    """Return the disagreement (2, 2, resamples + 1) of two sides over all labels.

    The arrays (rows, l) count comparisons, and those in which the first side, the
    second, and both are positive.
    """
    columns = np.hstack([n_compared, first, second, both])
    n, n_first, n_second, n_both = np.split(_resample(columns, group), 4, axis=1)
    chance = n_first * (n - n_second) + n_second * (n - n_first)

    observed = (n_first + n_second - 2 * n_both).sum(axis=1)
    possible = n.sum(axis=1)
    expected = ratio(chance, n, 0.0).sum(axis=1)
    return np.array([[observed, possible], [observed, expected]])


@cache
def _draw_weights() -> FloatArray:
    """Return how often each group is drawn (resamples + 1, groups), at first once."""
    draws = np.random.default_rng(0).multinomial(
        _GROUPS, np.full(_GROUPS, 1 / _GROUPS), RESAMPLES
    )
    return np.vstack([np.ones(_GROUPS), draws])


def _resample(values: Array, group: IntArray) -> FloatArray:
    """Sum rows by group, and the groups of each resample (resamples + 1, columns)."""
    group_sums = make_sum_matrix(group, _GROUPS) @ values
    return np.asarray(_draw_weights() @ group_sums)


def _estimate_set_alpha(panel: Predictions) -> Agreed:
    """Estimate Krippendorff's α of label sets; two empty sets are equal."""
    annotations = make_annotations(panel)
    is_positive = annotations.scores >= 0.5
    _, first, kind = np.unique(
        np.packbits(is_positive, axis=1), axis=0, return_index=True, return_inverse=True
    )
    if len(first) > _MOST_SETS:
        return _estimate_set_alpha(panel[::2])

    kind = kind.reshape(-1)  # (r,) which label set each row has
    distance = compute_masi_distances(is_positive[first])
    _, instance, n_models = np.unique(
        annotations.instance, return_inverse=True, return_counts=True
    )

    # Observed disagreement of each group of instances
    observed = np.zeros(_GROUPS)
    for _, rows in together(annotations, 1):
        sets = kind[rows]  # (instances, models)
        distances = distance[sets[:, :, None], sets[:, None, :]].sum(axis=(1, 2))
        group = instance[rows[:, 0]] % _GROUPS
        np.add.at(observed, group, distances / (rows.shape[1] - 1))

    # Expected disagreement, from the frequency of each label set
    shared = np.flatnonzero(n_models[instance] > 1)
    set_counts = sparse.csr_array(
        (np.ones(len(shared)), (instance[shared] % _GROUPS, kind[shared])),
        shape=(_GROUPS, len(first)),
    )
    counts = _draw_weights() @ set_counts
    n_other_sets = np.maximum(counts.sum(axis=1) - 1, 1)
    expected = ((counts @ distance) * counts).sum(axis=1) / n_other_sets

    n_shared = int((n_models > 1).sum())
    return _estimate(_draw_weights() @ observed, expected, n_shared)


def _check_two(count: int, unit: str) -> None:
    """Check that there are two models or families to compare."""
    if count < 2:
        raise InputError(
            where="agreement",
            found=f"one {unit}",
            expected="at least two to compare",
        )


def compute_masi_distances(sets: BoolArray) -> FloatArray:
    """Compute the MASI distance of any two label sets.

    It is one minus the Jaccard similarity, which is first multiplied by 2/3 if one set
    is a subset of the other, and by 1/3 if neither is.

    Parameters
    ----------
    sets : ndarray of bool of shape (u, l)
        Label sets.

    Returns
    -------
    ndarray of shape (u, u)

    Examples
    --------
    >>> sets = np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0]], dtype=bool)
    >>> compute_masi_distances(sets).round(2).tolist()
    [[0.0, 0.67, 1.0], [0.67, 0.0, 1.0], [1.0, 1.0, 0.0]]
    """
    members = sparse.csr_array(sets.astype(np.float64))
    size = sets.sum(axis=1)
    intersection = (members @ members.T).toarray()
    union = np.add.outer(size, size) - intersection

    is_subset = intersection == np.minimum.outer(size, size)
    monotonicity = np.where(is_subset, 2 / 3, 1 / 3)
    monotonicity = np.where(intersection == union, 1, monotonicity)
    return 1 - ratio(intersection, union, 1.0) * monotonicity


def _make_model_agreement(
    models: tuple[str, ...], instances: int, sums: FloatArray
) -> ModelAgreement:
    """Make the record of one model or of two."""
    share, kappa = _estimate_both(sums, instances)
    return ModelAgreement(models=models, instances=instances, share=share, kappa=kappa)


def _estimate_both(sums: FloatArray, instances: int) -> tuple[Agreed, Agreed]:
    """Estimate percent agreement and the coefficient, from (2, 2, resamples + 1)."""
    share, coefficient = sums
    return (
        _estimate(share[0], share[1], instances),
        _estimate(coefficient[0], coefficient[1], instances),
    )


def _estimate(observed: FloatArray, expected: FloatArray, instances: int) -> Agreed:
    """Return 1 − observed / expected, with its interval over the resamples.

    The first value of either array is that of all instances.
    """
    coefficients = 1 - ratio(observed, expected, np.nan)
    value = float(coefficients[0])

    # Resamples of few instances are much the same: the interval would be too short.
    if np.isnan(value) or instances < FEW:
        return Agreed(value=value, low=np.nan, high=np.nan)

    # An instance that is drawn twice agrees with itself. Chance is underestimated, and
    # the coefficients of the resamples are too low: center them at the value.
    resamples = coefficients[~np.isnan(coefficients)]
    low, high = value + np.percentile(resamples, [2.5, 97.5]) - resamples.mean()
    return Agreed(value=value, low=float(low), high=min(float(high), 1.0))


def _make_row(
    name: str, record: LabelAgreement | ModelAgreement, *, coefficient: Agreed
) -> _TableRow:
    """Make the row of a label, a model or a pair."""
    return _TableRow(
        name=name,
        instances=record.instances,
        share=record.share,
        coefficient=coefficient,
    )


def _make_model_rows(records: Sequence[ModelAgreement]) -> list[_TableRow]:
    """Make the rows of models or of pairs of models."""
    rows = []
    for record in records:
        name = " – ".join(map(shown, record.models))
        rows.append(_make_row(name, record, coefficient=record.kappa))

    return rows


def _sort_key(row: _TableRow) -> tuple[bool, float]:
    """Return a key that sorts low coefficients first, few instances last."""
    coefficient = float(np.nan_to_num(row.coefficient.value, nan=np.inf))
    return row.instances < FEW, coefficient


def _format_table(
    kind: str, coefficient: str, rows: Sequence[_TableRow], most: int
) -> str:
    """Return a table of at most so many rows, those with the lowest agreement."""
    cells = []
    for row in sorted(rows, key=_sort_key)[:most]:
        cells.append((row.name, row.instances, row.share, row.coefficient))

    text = table([kind, "instances", "agreement", coefficient], cells)
    if len(rows) > most:
        text += f"\n… and {len(rows) - most:,} more"
    return text
