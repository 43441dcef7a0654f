r"""How far raters agree beyond chance: Krippendorff's α, Cohen's κ and percent agreement, with bootstrap intervals.

All three are one minus the disagreement that was seen by the disagreement that chance would bring. Chance is worked out
label by label and then added up, so that raters who only know how frequent labels are score 0:

.. math:: \alpha = 1 - \frac{\sum_\ell \sum_i \frac{s Q - T^2}{s - 1}}{\sum_\ell \frac{N Q_\ell - T_\ell^2}{N - 1}}

with `s` raters of instance `i`, the sum `T` and the sum of squares `Q` of what they said, and the same sums over all
instances of label `ℓ` below (Krippendorff, *Content Analysis*). Of yes and no that is the nominal α, of scores the
interval α. Label sets differ by the MASI distance (Passonneau, 2006). Intervals are percentiles over resampled
instances, around the figure itself. All sums here are over instances: groups of these are added up once, and resampled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..arithmetic.products import FloatArray, ratio
from ..errors import expect
from ..panel.predictions import Predictions, as_predictions
from ..terminal import shown, table
from .meetings import IntArray, Sheets, looked_at, sheets, together

RESAMPLES = 400
MOST_PAIRS = 2000  # of raters; of more, those that share most instances
_MOST_COMPARISONS = 2**27  # of two answers; with more, every second, third, … instance is looked at
_GROUPS = 200  # of instances, which are resampled; of up to 200 instances each is a group
_MOST_SETS = 4096  # different label sets; with more, every second instance is looked at
_AT_ONCE = 2**21  # cells in the largest array of one step


class Figure(NamedTuple):
    """A figure and its 95 % interval; NaN where nothing could differ, or nobody met."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return "–" if np.isnan(self.value) else f"{self.value:z.3f} ({self.low:z.3f} to {self.high:z.3f})"


class LabelAgreement(NamedTuple):
    """How far raters agree on one label."""

    label: str
    instances: int  # that at least two raters spoke about
    share: Figure  # of pairs of answers, yes or no, that are alike
    alpha: Figure  # Krippendorff's, of yes and no
    score_alpha: Figure | None  # Krippendorff's, of scores; None: all are 0 or 1


class RaterAgreement(NamedTuple):
    """How far one rater agrees with the others, or two with each other."""

    raters: tuple[str, ...]  # one, or two
    instances: int  # shared
    share: Figure  # of pairs of answers, yes or no, that are alike
    kappa: Figure  # Cohen's, chance label by label; of one rater: of its answers beside each of the others'


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
    share: Figure  # of pairs of answers, yes or no, that are alike
    alpha: Figure  # Krippendorff's of all labels, chance label by label
    score_alpha: Figure | None  # the same of scores; None: all are 0 or 1
    set_alpha: Figure  # Krippendorff's of label sets, by the MASI distance
    labels: tuple[LabelAgreement, ...]
    raters: tuple[RaterAgreement, ...]
    pairs: tuple[RaterAgreement, ...]

    def to_text(self, rows: int = 12) -> str:
        """Lay out what was found, labels, raters and pairs that agree least first, at most `rows` of each."""
        lines = [
            f"{len(self.raters)} raters, {self.instances:,} instances that two or more have seen",
            f"percent agreement       {_percent(self.share)}",
            f"α, label by label       {self.alpha}",
            *([] if self.score_alpha is None else [f"α of scores             {self.score_alpha}"]),
            f"α of label sets (MASI)  {self.set_alpha}",
        ]
        scores = [] if self.score_alpha is None else ["α of scores"]
        parts = [
            _listed(
                ["label", "instances", "agreement", "Krippendorff's α", *scores],
                [
                    [shown(one.label), one.instances, one.share, one.alpha, *([one.score_alpha] * len(scores))]
                    for one in sorted(self.labels, key=lambda one: _last_if_nan(one.alpha))
                ],
                rows,
            )
        ]
        for title, found in (("rater", self.raters), ("pair", self.pairs)):
            ordered = sorted(found, key=lambda one: _last_if_nan(one.kappa))
            listed = [[" – ".join(map(shown, one.raters)), one.instances, one.share, one.kappa] for one in ordered]
            parts.append(_listed([title, "instances", "agreement", "Cohen's κ"], listed, rows))
        return "\n\n".join(["\n".join(lines), *parts])

    def to_dict(self) -> dict[str, Any]:
        """Return it as numbers, texts and lists, for JSON."""
        return {name: _plain(value) for name, value in self._asdict().items()}


def agreement(predictions: Any) -> Agreement:
    """Tell how far raters agree beyond chance, over what both have spoken about.

    Of panels with more than 2²⁴ answers, or 2²⁷ comparisons of two, instances at even distances are looked at, and of a
    panel in files the first block.

    Parameters
    ----------
    predictions
        `Predictions` of at least two raters, or anything that its constructor takes. A score of at least 0.5 is a yes.

    Returns
    -------
    Figures for all raters together, each label, each rater, and pairs of raters.
    """
    source = as_predictions(predictions)
    expect(len(source.models) > 1, "agreement", "one rater", "at least two, who can differ")
    panel = looked_at(source)
    said = sheets(panel)
    comparisons = int((np.bincount(said.instance) ** 2).sum()) * len(panel.labels)
    if comparisons > _MOST_COMPARISONS:
        panel = panel[:: -(-comparisons // _MOST_COMPARISONS)]
        said = sheets(panel)
    (m, _, l), r = panel.shape, len(said.rater)
    _, at = np.unique(said.instance, return_inverse=True)
    speakers = np.bincount(at)
    groups = min(len(speakers), _GROUPS)
    weights = _weights(groups)
    by_instance, by_group = _adding(at, len(speakers)), _adding(np.arange(len(speakers)) % groups, groups)
    graded = bool(((said.scores != 0) & (said.scores != 1)).any())
    pairs = list(_meeting(said, at, m))
    own = [np.flatnonzero(said.rater == k) for k in range(m)]

    alphas, shares, met = np.zeros((2, 2, len(weights), l)), np.zeros((2, len(weights), l)), np.zeros(l)
    of_raters, of_pairs = (np.zeros((len(found), 3, len(weights))) for found in (own, pairs))
    step = max(1, _AT_ONCE // max(r, 4 * len(weights)))
    for columns in (slice(start, start + step) for start in range(0, l, step)):
        spoke, scores = said.spoke[:, columns].astype(np.float64), said.scores[:, columns].astype(np.float64)
        heard, agreed = said.spoke[:, columns], scores >= 0.5  # as bool, which pairs are faster with
        yes = agreed.astype(np.float64)
        s, total = by_instance @ spoke, by_instance @ yes
        met[columns] = (s > 1).sum(axis=0)
        alphas[0, :, :, columns] = _observed_and_expected(s, total, total, by_group, weights)
        if graded:
            sums = by_instance @ scores, by_instance @ scores**2
            alphas[1, :, :, columns] = _observed_and_expected(s, *sums, by_group, weights)
        for to, cells in enumerate((s * total - total**2, s * (s - 1) / 2)):
            shares[to, :, columns] = weights @ (by_group @ cells)
        for found, rows in zip(of_raters, own, strict=True):
            others, also = (s[at[rows]] - 1) * spoke[rows], (total[at[rows]] - yes[rows]) * spoke[rows]
            found += _table(others, yes[rows] * others, also, yes[rows] * also, at[rows] % groups, weights)
        for found, (_, a, b) in zip(of_pairs, pairs, strict=True):
            both = heard[a] & heard[b]
            found += _table(both, agreed[a] & both, agreed[b] & both, agreed[a] & agreed[b], at[a] % groups, weights)

    labels = [
        LabelAgreement(
            name, int(met[j]), _one_minus(*shares[..., j]), _one_minus(*alphas[0, ..., j]),
            _one_minus(*alphas[1, ..., j]) if graded else None,
        )
        for j, name in enumerate(panel.labels)
    ]  # fmt: skip
    share, alpha, score_alpha = (_one_minus(*one.sum(axis=-1)) for one in (shares, *alphas))
    names = panel.models
    return Agreement(
        int((speakers > 1).sum()),
        share,
        alpha,
        score_alpha if graded else None,
        _set_alpha(panel),
        tuple(labels),
        tuple(_rated((names[k],), int((speakers[at[own[k]]] > 1).sum()), of_raters[k]) for k in range(m)),
        tuple(
            _rated((names[k], names[q]), len(a), found) for ((k, q), a, _), found in zip(pairs, of_pairs, strict=True)
        ),
    )


def _weights(groups: int) -> FloatArray:
    """Say how often each group of instances is drawn: once at first, then at random (resamples + 1, groups)."""
    drawn = np.random.default_rng(0).multinomial(groups, np.full(groups, 1 / groups), RESAMPLES)
    return np.vstack([np.ones(groups), drawn])


def _adding(to: IntArray, size: int) -> Any:
    """Make a sparse matrix (size, rows) that adds up rows of another: row `k` to its row ``to[k]``."""
    return sparse.csr_array((np.ones(len(to)), (to, np.arange(len(to)))), shape=(size, len(to)))


def _meeting(said: Sheets, at: IntArray, m: int) -> Iterator[tuple[tuple[int, int], IntArray, IntArray]]:
    """Yield two raters that share instances, and the sheets of both about these, in the same order."""
    sheet = sparse.csr_array((np.arange(1, len(at) + 1), (said.rater, at)), shape=(m, int(at.max()) + 1))
    seen = sheet.astype(bool).astype(np.int64)
    shared = sparse.triu(seen @ seen.T, 1).tocoo()
    most = np.argsort(-shared.data, kind="stable")[:MOST_PAIRS]
    for k, q in sorted(zip(shared.row[most].tolist(), shared.col[most].tolist(), strict=True)):
        rows = [np.flatnonzero(said.rater == rater) for rater in (k, q)]
        _, first, second = np.intersect1d(at[rows[0]], at[rows[1]], assume_unique=True, return_indices=True)
        yield (k, q), rows[0][first], rows[1][second]


def _observed_and_expected(
    s: FloatArray, total: FloatArray, squared: FloatArray, by_group: Any, weights: FloatArray
) -> FloatArray:
    """Return the disagreement (2, resamples, l) that was seen and that chance would bring, as Krippendorff does."""
    several = s > 1
    within = several * (s * squared - total**2) / np.maximum(s - 1, 1)
    seen, n, t, q = (weights @ (by_group @ (field * several)) for field in (within, s, total, squared))
    expected = (n * q - t**2) / np.maximum(n - 1, 1)
    return np.stack([seen, np.where(expected > 1e-9 * q, expected, 0)])


def _table(
    n: NDArray[Any],
    first: NDArray[Any],
    second: NDArray[Any],
    both: NDArray[Any],
    group: IntArray,
    weights: FloatArray,
) -> FloatArray:
    """Return (3, resamples) how often two sides differed, would by chance, and could: sums over labels.

    The fields (rows, l) count answers, the first's yes, the second's yes, and yes from both.
    """
    sums = weights @ (_adding(group, weights.shape[1]).astype(np.float32) @ np.hstack([n, first, second, both]))
    n, first, second, both = np.split(sums, 4, axis=1)
    chance = ratio(first * (n - second) + second * (n - first), n, 0.0)
    return np.stack([field.sum(axis=1) for field in (first + second - 2 * both, chance, n)])


def _set_alpha(panel: Predictions) -> Figure:
    """Krippendorff's α of the sets of labels that raters said yes to; two empty sets are alike."""
    said = sheets(panel)
    yes = said.scores >= 0.5
    _, first, kind = np.unique(np.packbits(yes, axis=1), axis=0, return_index=True, return_inverse=True)
    if len(first) > _MOST_SETS:
        return _set_alpha(panel[::2])
    distance = masi_distances(yes[first])
    _, at = np.unique(said.instance, return_inverse=True)
    speakers = np.bincount(at)
    groups = min(len(speakers), _GROUPS)
    weights, observed = _weights(groups), np.zeros(groups)
    for _, rows in together(said, 1):
        kinds = kind.reshape(-1)[rows]
        apart = distance[kinds[:, :, None], kinds[:, None, :]].sum(axis=(1, 2)) / (rows.shape[1] - 1)
        np.add.at(observed, at[rows[:, 0]] % groups, apart)
    met = np.flatnonzero(speakers[at] > 1)
    where = at[met] % groups, kind.reshape(-1)[met]
    counts = weights @ sparse.csr_array((np.ones(len(met)), where), shape=(groups, len(first)))
    expected = ((counts @ distance) * counts).sum(axis=1) / np.maximum(counts.sum(axis=1) - 1, 1)
    return _one_minus(weights @ observed, expected)


def masi_distances(sets: NDArray[np.bool_]) -> FloatArray:
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
    >>> masi_distances(np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0]], dtype=bool)).round(2).tolist()
    [[0.0, 0.67, 1.0], [0.67, 0.0, 1.0], [1.0, 1.0, 0.0]]
    """
    members = sparse.csr_array(sets.astype(np.float64))
    shared, size = (members @ members.T).toarray(), sets.sum(axis=1)
    either = np.add.outer(size, size) - shared
    monotone = np.where(shared == either, 1, np.where(shared == np.minimum.outer(size, size), 2 / 3, 1 / 3))
    return 1 - ratio(shared, either, 1.0) * monotone


def _one_minus(observed: FloatArray, expected: FloatArray) -> Figure:
    """Return 1 − observed ÷ expected of the panel itself, which comes first, and its interval over the resamples."""
    found = 1 - ratio(observed, expected, np.nan)
    if np.isnan(found[0]):
        return Figure(np.nan, np.nan, np.nan)
    resampled = found[~np.isnan(found)]  # all that can be worked out; the figure itself is one
    # Instances that are drawn twice agree with themselves: chance is underrated, so that the resamples lie too low.
    low, high = found[0] + np.percentile(resampled, [2.5, 97.5]) - resampled.mean()
    return Figure(float(found[0]), float(low), min(float(high), 1.0))


def _rated(raters: tuple[str, ...], instances: int, sums: FloatArray) -> RaterAgreement:
    differ, chance, answers = sums
    return RaterAgreement(raters, instances, _one_minus(differ, answers), _one_minus(differ, chance))


def _percent(share: Figure) -> str:
    return "–" if np.isnan(share.value) else f"{share.value:.1%} ({share.low:.1%} to {share.high:.1%})"


def _last_if_nan(figure: Figure) -> float:
    return np.inf if np.isnan(figure.value) else figure.value


def _listed(heads: Sequence[str], cells: list[list[Any]], rows: int) -> str:
    more = [f"… and {len(cells) - rows:,} more"] if len(cells) > rows else []
    for row in cells:
        row[2] = "–" if np.isnan(row[2].value) else f"{row[2].value:.1%}"
    return "\n".join([table(heads, cells[:rows]), *more])


def _plain(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return {name: _plain(part) for name, part in value._asdict().items()}
    return [_plain(part) for part in value] if isinstance(value, tuple) else value
