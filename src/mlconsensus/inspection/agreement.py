r"""How far raters agree beyond chance: Krippendorff's α, Cohen's κ and percent agreement, with bootstrap intervals.

All three are one minus the disagreement that was seen by the disagreement that chance
would bring. Chance is worked out label by label and then added up, so that raters who
only know how frequent labels are score 0:

.. math:: \alpha = 1 - \frac{\sum_\ell \sum_i \frac{s T - T^2}{s - 1}}{\sum_\ell \frac{N T_\ell - T_\ell^2}{N - 1}}

with `s` raters of instance `i`, of whom `T` said yes, and the same counts over all
instances of label `ℓ` below (Krippendorff, *Content Analysis*: the nominal α). Label
sets differ by the MASI distance (Passonneau, 2006). Intervals are percentiles over
resampled instances, around the figure itself. All sums here are over instances: groups
of these are added up once, and resampled.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..errors import InputError
from ..linalg.annotations import adding, make_annotations
from ..linalg.block_sums import ratio
from ..predictions import (
    Array,
    BoolArray,
    FloatArray,
    IntArray,
    Predictions,
    as_predictions,
)
from ..predictions.sampling import select_frequent_labels, subsample_for_diagnostics
from ..text import plural, shown, table
from .pairwise import FEW, together

RESAMPLES = 400
MOST_PAIRS = 2000  # of raters; of more, those that share most instances
_MOST_COMPARISONS = (
    2**27
)  # of two answers; with more, every second, third, … instance is looked at
# of instances, which are resampled; up to 200 instances are each resampled by
# themselves
_GROUPS = 200
_MOST_SETS = 4096  # different label sets; with more, every second instance is looked at
_AT_ONCE = 2**21  # cells in the largest array of one step


class Agreed(NamedTuple):
    """A figure and its 95 % interval; NaN where nothing could differ, or nobody met; few instances give no interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        if np.isnan(self.low):
            ends = "–"
        else:
            ends = f"{self.low:z.3f} to {self.high:z.3f}"

        if np.isnan(self.value):
            return "–"
        return f"{self.value:z.3f} ({ends})"


class LabelAgreement(NamedTuple):
    """How far raters agree on one label."""

    label: str
    instances: int  # that at least two raters spoke about
    share: Agreed  # of pairs of answers, yes or no, that are alike
    alpha: Agreed  # Krippendorff's, of yes and no


class RaterAgreement(NamedTuple):
    """How far one rater agrees with the others, or two with each other."""

    raters: tuple[str, ...]  # one, or two
    instances: int  # shared
    share: Agreed  # of pairs of answers, yes or no, that are alike
    # Cohen's, chance label by label; of one rater: of its answers beside each of the
    # others'
    kappa: Agreed


class Agreement(NamedTuple):
    """How far the raters of a panel agree, beyond chance.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> found = mlc.agreement({"ana": [[1, 0], [0, 1], [1, 0]], "bob": [[1, 0], [0, 1], [1, 1]]})
    >>> round(found.share.value, 3), round(found.alpha.value, 3)
    (0.833, 0.706)
    >>> [(one.label, round(one.alpha.value, 3)) for one in found.labels]
    [('label_0', 1.0), ('label_1', 0.444)]
    """

    instances: int  # that at least two raters spoke about
    share: Agreed  # of pairs of answers, yes or no, that are alike
    alpha: Agreed  # Krippendorff's of all labels, chance label by label
    set_alpha: Agreed  # Krippendorff's of label sets, by the MASI distance
    labels: tuple[LabelAgreement, ...]
    raters: tuple[RaterAgreement, ...]
    pairs: tuple[RaterAgreement, ...]
    note: str = ""  # what of the panel is looked at, where it is not all

    def to_text(self, rows: int = 12) -> str:
        """Lay out what was found for a terminal, those that agree least first, and last those seen on few instances.

        Parameters
        ----------
        rows
            How many labels, raters and pairs are listed at most.

        Returns
        -------
        Lines of text.
        """
        titles = ["agreement", "α, label by label", "α of label sets (MASI)"]
        lines = [
            f"{len(self.raters)} raters, {plural(self.instances, 'instance')} that two or more have seen"
        ]
        lines += [self.note] if self.note else []
        lines += [
            f"{name:23} {one}" for name, one in zip(titles, self[1:4], strict=True)
        ]
        labels = _listed("label", "Krippendorff's α", self.labels, rows)
        raters = (
            _listed("rater", "Cohen's κ", self.raters, rows),
            _listed("pair", "Cohen's κ", self.pairs, rows),
        )
        return "\n\n".join(["\n".join(lines), labels, *raters])


def agreement(predictions: Any) -> Agreement:
    """Tell how far raters agree beyond chance, over what both have spoken about.

    Of panels with more than 2²⁴ answers, or 2²⁷ comparisons of two, instances at even
    distances are looked at, and of a panel in files the first block; of many labels the
    500 named most. `Agreement.note` says so.

    Parameters
    ----------
    predictions
        `Predictions` of at least two raters, or anything that its constructor takes. A
        score of at least 0.5 is a yes.

    Returns
    -------
    Figures for all raters together, each label, each rater, and pairs of raters.
    """
    source = as_predictions(predictions)
    if not (len(source.models) > 1):
        raise InputError(
            where="agreement",
            found="one rater",
            expected="at least two, who can differ",
        )

    panel, note = select_frequent_labels(source)
    panel = subsample_for_diagnostics(panel)
    said = make_annotations(panel)
    comparisons = int((np.bincount(said.instance) ** 2).sum()) * len(panel.labels)
    if comparisons > _MOST_COMPARISONS:
        panel = panel[:: -(-comparisons // _MOST_COMPARISONS)]
        said = make_annotations(panel)

    (m, n, l) = panel.shape
    r = len(said.rater)
    note += (
        f" Of {len(source):,} instances, {n:,} are looked at."
        if n < len(source)
        else ""
    )
    _, at = np.unique(said.instance, return_inverse=True)
    speakers = np.bincount(at)
    group = at % _GROUPS
    by_instance = adding(at, len(speakers))
    own = [np.flatnonzero(said.rater == k) for k in range(m)]
    pairs = list(_meeting(said.rater, at, own))

    of_labels = np.zeros((2, 2, RESAMPLES + 1, l))
    met = np.zeros(l, dtype=np.int64)
    of_raters, of_pairs = (
        np.zeros((len(found), 2, 2, RESAMPLES + 1)) for found in (own, pairs)
    )
    step = max(1, _AT_ONCE // max(r, 4 * RESAMPLES))
    for columns in (slice(start, start + step) for start in range(0, l, step)):
        # as bool, which pairs are faster with
        heard = said.spoke[:, columns]
        agreed = said.scores[:, columns] >= 0.5
        spoke = heard.astype(np.float64)
        yes = agreed.astype(np.float64)
        s = by_instance @ spoke
        total = by_instance @ yes
        met[columns] = (s > 1).sum(axis=0)
        of_labels[..., columns] = _label_sums(s, total, np.arange(len(s)) % _GROUPS)
        for found, rows in zip(of_raters, own, strict=True):
            others = (s[at[rows]] - 1) * spoke[rows]
            also = (total[at[rows]] - yes[rows]) * spoke[rows]
            found += _rater_sums(
                [others, yes[rows] * others, also, yes[rows] * also], group[rows]
            )

        for found, (_, _, a, b) in zip(of_pairs, pairs, strict=True):
            both = heard[a] & heard[b]
            found += _rater_sums(
                [both, agreed[a] & both, agreed[b] & both, agreed[a] & agreed[b]],
                group[a],
            )

    each = zip(panel.labels, met.tolist(), np.moveaxis(of_labels, -1, 0), strict=True)
    labels = tuple(
        LabelAgreement(name, n, *_figures(sums, n)) for name, n, sums in each
    )
    names = panel.models
    shared = [int((speakers[at[rows]] > 1).sum()) for rows in own]
    raters = [_rated((names[k],), shared[k], sums) for k, sums in enumerate(of_raters)]
    twos = [
        _rated((names[k], names[q]), len(a), of_pairs[p])
        for p, (k, q, a, _) in enumerate(pairs)
    ]
    several = int((speakers > 1).sum())
    share, alpha = _figures(of_labels.sum(axis=-1), several)
    return Agreement(
        several,
        share,
        alpha,
        _set_alpha(panel),
        labels,
        tuple(raters),
        tuple(twos),
        note.strip(),
    )


@cache
def _weights() -> FloatArray:
    """Say how often each group of instances is drawn: once at first, then at random (resamples + 1, groups)."""
    drawn = np.random.default_rng(0).multinomial(
        _GROUPS, np.full(_GROUPS, 1 / _GROUPS), RESAMPLES
    )
    return np.vstack([np.ones(_GROUPS), drawn])


def _resampled(fields: Array, group: IntArray) -> FloatArray:
    """Add up rows by their group, and groups as often as each is drawn (resamples + 1, columns)."""
    return np.asarray(_weights() @ (adding(group, _GROUPS) @ fields))


def _meeting(
    rater: IntArray, at: IntArray, own: list[IntArray]
) -> Iterator[tuple[int, int, IntArray, IntArray]]:
    """Yield two raters that share instances, and the sheets of both about these, in the same order."""
    seen = sparse.csr_array(
        (np.ones(len(at)), (rater, at)), shape=(len(own), max(len(at), 1))
    )
    shared = sparse.triu(seen @ seen.T, 1).tocoo()
    most = np.argsort(-shared.data, kind="stable")[:MOST_PAIRS]
    for k, q in sorted(
        zip(shared.row[most].tolist(), shared.col[most].tolist(), strict=True)
    ):
        _, first, second = np.intersect1d(
            at[own[k]], at[own[q]], assume_unique=True, return_indices=True
        )
        yield k, q, own[k][first], own[q][second]


def _label_sums(s: FloatArray, total: FloatArray, group: IntArray) -> FloatArray:
    """Return (2, 2, resamples, l) how often two answers differed and could, and the same as Krippendorff counts it."""
    several = s > 1
    apart = s * total - total**2
    within = several * apart / np.maximum(s - 1, 1)
    fields = apart, s * (s - 1) / 2, within, s * several, total * several
    differed, could, seen, n, t = (_resampled(field, group) for field in fields)
    expected = (n * t - t**2) / np.maximum(n - 1, 1)
    return np.array(
        [[differed, could], [seen, np.where(expected > 1e-9 * t, expected, 0)]]
    )


def _rater_sums(fields: list[Array], group: IntArray) -> FloatArray:
    """Return (2, 2, resamples) how often two sides differed and could, and again beside chance: sums over labels.

    The fields (rows, l) count answers, the first's yes, the second's yes, and yes from
    both.
    """
    n, first, second, both = np.split(_resampled(np.hstack(fields), group), 4, axis=1)
    chance = ratio(first * (n - second) + second * (n - first), n, 0.0)
    differed, could, expected = (
        field.sum(axis=1) for field in (first + second - 2 * both, n, chance)
    )
    return np.array([[differed, could], [differed, expected]])


def _set_alpha(panel: Predictions) -> Agreed:
    """Krippendorff's α of the sets of labels that raters said yes to; two empty sets are alike."""
    said = make_annotations(panel)
    yes = said.scores >= 0.5
    _, first, kind = np.unique(
        np.packbits(yes, axis=1), axis=0, return_index=True, return_inverse=True
    )
    if len(first) > _MOST_SETS:
        return _set_alpha(panel[::2])

    distance = compute_masi_distances(yes[first])
    kind = kind.reshape(-1)
    _, at, speakers = np.unique(said.instance, return_inverse=True, return_counts=True)
    observed = np.zeros((_GROUPS, 1))
    for _, rows in together(said, 1):
        apart = distance[kind[rows][:, :, None], kind[rows][:, None, :]].sum(
            axis=(1, 2)
        ) / (rows.shape[1] - 1)
        np.add.at(observed[:, 0], at[rows[:, 0]] % _GROUPS, apart)

    met = np.flatnonzero(speakers[at] > 1)
    sets = sparse.csr_array(
        (np.ones(len(met)), (at[met] % _GROUPS, kind[met])), shape=(_GROUPS, len(first))
    )
    counts = _weights() @ sets
    expected = ((counts @ distance) * counts).sum(axis=1) / np.maximum(
        counts.sum(axis=1) - 1, 1
    )
    return _one_minus(
        (_weights() @ observed)[:, 0], expected, int((speakers > 1).sum())
    )


def compute_masi_distances(sets: BoolArray) -> FloatArray:
    """Return how far any two label sets are apart: 1 − Jaccard's share × 1 if equal, ⅔ if one has the other, else ⅓.

    Parameters
    ----------
    sets
        Label sets (u, l).

    Returns
    -------
    ndarray (u, u), 0 on its diagonal.

    Examples
    --------
    >>> compute_masi_distances(np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0]], dtype=bool)).round(2).tolist()
    [[0.0, 0.67, 1.0], [0.67, 0.0, 1.0], [1.0, 1.0, 0.0]]
    """
    members = sparse.csr_array(sets.astype(np.float64))
    shared = (members @ members.T).toarray()
    size = sets.sum(axis=1)
    either = np.add.outer(size, size) - shared
    monotone = np.where(
        shared == either,
        1,
        np.where(shared == np.minimum.outer(size, size), 2 / 3, 1 / 3),
    )
    return 1 - ratio(shared, either, 1.0) * monotone


def _figures(sums: FloatArray, instances: int) -> Iterator[Agreed]:
    """Return the share that is alike, and α or κ."""
    return (_one_minus(seen, could, instances) for seen, could in sums)


def _rated(raters: tuple[str, ...], instances: int, sums: FloatArray) -> RaterAgreement:
    return RaterAgreement(raters, instances, *_figures(sums, instances))


def _one_minus(observed: FloatArray, expected: FloatArray, instances: int) -> Agreed:
    """Return 1 − observed ÷ expected of the panel itself, which comes first, and its interval over the resamples."""
    found = 1 - ratio(observed, expected, np.nan)
    if (
        np.isnan(found[0]) or instances < FEW
    ):  # few instances, drawn anew, are much the same: intervals too short
        return Agreed(float(found[0]), np.nan, np.nan)

    resampled = found[
        ~np.isnan(found)
    ]  # all that can be worked out; the figure itself is one
    # Instances that are drawn twice agree with themselves: chance is underrated, so
    # that the resamples lie too low.
    low, high = found[0] + np.percentile(resampled, [2.5, 97.5]) - resampled.mean()
    return Agreed(float(found[0]), float(low), min(float(high), 1.0))


def _listed(
    what: str, figure: str, found: Sequence[LabelAgreement | RaterAgreement], rows: int
) -> str:
    ordered = sorted(
        found, key=lambda one: (one[1] < FEW, np.nan_to_num(one[3].value, nan=np.inf))
    )[:rows]
    names = ([one[0]] if isinstance(one[0], str) else one[0] for one in ordered)
    cells = [
        [" – ".join(map(shown, name)), *one[1:]]
        for name, one in zip(names, ordered, strict=True)
    ]
    listed = table([what, "instances", "agreement", figure], cells)
    return listed + (f"\n… and {len(found) - rows:,} more" if len(found) > rows else "")
