r"""How far each model can be trusted for each label, from the models' predictions alone.

All of it is read off means and covariances of what the models said. The picture behind it: on label `j` the
models have a signal in common, the standardised prediction of model `k` is :math:`x_{kj} = c_{kj} t_j + \sqrt{1
- c_{kj}^2}\, e_{kj}`, and errors `e` of different models are independent. Then
:math:`\operatorname{corr}(x_{kj}, x_{qj}) = c_{kj} c_{qj}`, so that agreement between models gives each one's
reliability `c` without any truth. docs/theory.md has the derivations.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..arithmetic.products import FloatArray

_SILENT = 1e-9  # a standard deviation below this says that a model never changes its mind on a label
_KINK = 1e-3  # how small a deviation is no longer an absolute one
_ROUNDS = (20, 40, 80, 160, 300)  # after which a minimum is looked for nearby; after the last there need be none
_NEAR = 0.05  # how far from where the rounds have led it may be


class Moments(NamedTuple):
    """Means and covariances of what the models said."""

    mean: FloatArray  # (m, l)
    covariance: FloatArray  # (m, l, m, l)
    both: FloatArray  # (l, m, m) how often both models spoke about the label

    def of_models(self, models: NDArray[np.intp]) -> Moments:
        """Restrict to some models."""
        return Moments(
            self.mean[models],
            self.covariance[models][:, :, models],
            self.both[:, models][:, :, models],
        )

    def by_label(self) -> FloatArray:
        """Return the models' covariances on each label by itself (l, m, m)."""
        return np.ascontiguousarray(np.einsum("kjqj->jkq", self.covariance))

    def differences(self) -> tuple[FloatArray, FloatArray]:
        """Return the squared difference of two models' means, and the mean of their squared difference (l, m, m)."""
        within, mean = self.by_label(), self.mean.T
        variance = np.einsum("jkk->jk", within)
        shift = (mean[:, :, None] - mean[:, None, :]) ** 2
        return shift, variance[:, :, None] + variance[:, None, :] - 2 * within + shift


class Raters(NamedTuple):
    """What agreement tells about the models."""

    reliability: FloatArray  # (l, m) c, 0 where the model never changes its mind
    believed: FloatArray  # (l, m) c, also there: what the model's other labels let expect
    overall: FloatArray  # (m,) over all labels
    deviation: FloatArray  # (l, m) standard deviation of what the model said
    shared_errors: FloatArray  # (m, m) correlation of two models' errors beyond the common signal


def first_copies(moments: Moments) -> NDArray[np.intp]:
    """Find for each model the first that says exactly the same of the same instances (m,); itself if there is none."""
    both, (_, apart) = moments.both, moments.differences()
    spoke = np.einsum("jkk->jk", both)
    spoke_alike = (both == spoke[:, :, None]) & (both == spoke[:, None, :])
    same = (spoke_alike & (apart <= 1e-10)).all(axis=0)
    every = np.arange(len(same))
    first = every.copy()
    for k in every:
        first[k] = np.argmax(same[k] & (first == every))  # itself at the latest
    return first


def kinship(moments: Moments) -> FloatArray:
    r"""Tell how alike two models are made (m, m): 1 for replicas of one learner, near 0 for strangers.

    Replicas say yes to a label equally often but for chance. McNemar's statistic compares the rates of two models with
    what chance explains; the share that chance explains is squared, and it is the correlation of errors that
    agreement cannot show.
    """
    n, (shift, apart) = moments.both, moments.differences()
    differ = apart * n > 0.5
    statistic = np.where(differ, n * shift / np.where(differ, apart, 1), 0).sum(axis=0)
    expected = differ.sum(axis=0)
    share = np.where(expected > 0, np.minimum(1, expected / np.maximum(statistic, 1e-12)), 1)
    return np.asarray(share**2)


def rate(within: FloatArray, both: FloatArray, rounds: int = 80) -> Raters:
    """Estimate each model's reliability on each label by empirical Bayes.

    `within` are the models' covariances on each label (l, m, m), `both` how often both spoke about it (l, m, m).

    Reliabilities of rare labels are noisy, so each is drawn to the product of its model's reliability and its label's
    difficulty, the more the less the label's own data say. The spreads that decide how much are estimated too.
    """
    l, m, _ = within.shape
    variance = np.maximum(np.einsum("jkk->jk", within), 0)
    deviation = np.sqrt(variance)
    varies = deviation > _SILENT
    scale = np.where(varies, 1 / np.where(varies, deviation, 1), 0)
    agreement = np.clip(within * scale[:, :, None] * scale[:, None, :], -1, 1)
    pooled = variance.sum(axis=0)
    overall_agreement = np.clip(within.sum(axis=0) / np.sqrt(np.maximum(np.outer(pooled, pooled), 1e-30)), -1, 1)
    overall = _common_factor(overall_agreement)
    different = ~np.eye(m, dtype=np.bool_)
    if m > 1:
        cells = max(1.0, both.max() * max(1.0, pooled.sum() ** 2 / max((variance.sum(axis=1) ** 2).sum(), 1e-30)))
        if np.median(overall) * overall.max() < 3 / np.sqrt(cells):
            # Most models agree with nobody beyond chance: agreement cannot tell who is right, so all are trusted alike.
            common = max(np.sqrt(max(overall_agreement[different].mean(), 0.0)), min(0.5, cells**-0.25))
            overall = np.full(m, common)
            agreement = np.where(different, common**2, agreement)
    opposite = overall < -0.5 * max(float(np.median(overall)), 0.0) - 1e-9  # and not merely useless
    overall = np.where(opposite, overall, np.maximum(overall, 0))
    free = np.maximum(1 - overall**2, 1e-3)
    shared = np.clip((overall_agreement - np.outer(overall, overall)) / np.sqrt(np.outer(free, free)), 0, 1)
    np.fill_diagonal(shared, 1.0)

    usable = different & varies[:, :, None] & varies[:, None, :] & (both > 1)
    trusted = (1 - shared**2) ** 4  # near copies say nothing about each other
    spread = np.maximum(deviation, _SILENT)
    rarity = 1 / (spread[:, :, None] * spread[:, None, :])
    witnesses = np.where(usable, trusted * np.maximum(both, 1), 0)
    product = np.outer(overall, overall)
    least, most = np.where(opposite, -0.99, 0.0), np.where(opposite, 0.0, 0.99)
    of_label, ease = np.tile(overall, (l, 1)), np.ones(l)
    model_spread, label_spread = np.full(m, 0.03), 0.1
    for at in range(rounds):
        if at == 0 or at % 5 == 1:  # what hangs on `ease`, which the round before may have changed
            expected = np.clip(overall * ease[:, None], -0.99, 0.99)
            # Sampling variance of the correlation of two rare binary variables.
            rare = np.abs(expected[:, :, None] * expected[:, None, :]) * rarity
            precision = witnesses / (1 + rare)
            agreed = precision * agreement
        if at % 5 == 0:
            ease, label_spread = _ease(precision, agreed, product, label_spread)
        information = np.einsum("jkq,jq->jk", precision, of_label**2)
        weighted = np.einsum("jkq,jq->jk", agreed, of_label)
        drawn_by = 1 / model_spread
        whole = information + drawn_by
        drawn = (weighted + expected * drawn_by) / whole
        of_label = 0.5 * of_label + 0.5 * np.minimum(np.maximum(drawn, least), most)
        if at > 10:
            trust = (information / whole) ** 2
            known = np.maximum(information, 1e-12)
            excess = trust * ((weighted / known - expected) ** 2 - 1 / known)
            found = excess.sum(axis=0) / np.maximum(trust.sum(axis=0), 1e-12)
            model_spread = np.maximum(1e-5, 0.5 * model_spread + 0.5 * found)
    return Raters(np.where(varies, of_label, 0), of_label, overall, deviation, shared)


def prevalence(
    raters: Raters, reliability: FloatArray, moments: Moments, bend: float = 1.0
) -> tuple[FloatArray, FloatArray]:
    """Tell how frequent labels are as trusted models see it (l,), and how reliable these are on the whole (l,).

    A model that says yes when that is likelier than no says rare labels too seldom and frequent ones too often, the
    more the less it knows: the probit of its rate is that of the frequency divided by what it knows. `bend` takes that
    back, where all models decide; scores are not bent.
    """
    varies = raters.deviation > _SILENT
    m = reliability.shape[1]
    mean = np.clip(moments.mean, 0, 1).T
    trust = _shares(np.maximum(reliability, 0) ** 2 * varies, m)
    mean_reliability = np.sqrt((trust * reliability**2).sum(axis=1))
    frequency = (trust * mean).sum(axis=1)
    # A model that never says a label says no to it, unless, were the others right, it would have spoken by now.
    n = np.einsum("jkk->jk", moments.both)
    still = np.exp(-n * (np.minimum(frequency, 1 - frequency) * mean_reliability**2)[:, None])
    trust = _shares(np.where(varies, np.maximum(reliability, 0) ** 2, np.maximum(raters.believed, 0) ** 2 * still), m)
    if bend < 1:
        variance = np.maximum(np.einsum("kjkj->jk", moments.covariance), 0)
        if (variance.sum(axis=0) >= 0.999 * (mean * (1 - mean)).sum(axis=0)).all():
            mean = special.ndtr(bend * special.ndtri(mean))
    return (trust * mean).sum(axis=1), mean_reliability


def bounded(reliability: FloatArray, frequency: FloatArray, moments: Moments) -> FloatArray:
    """Hold reliability to what a model that says yes this often can know of a label this frequent.

    Hit and false-alarm rates lie between 0 and 1, which bounds the squared correlation by the odds ratio of the
    two rates.
    """
    says, true = (np.clip(rate, 1e-9, 1 - 1e-9) for rate in (moments.mean.T, frequency[:, None]))
    odds = np.log(says / (1 - says) * (1 - true) / true)
    return np.asarray(np.sign(reliability) * np.minimum(np.abs(reliability), np.exp(-np.abs(odds) / 2)))


def leaning(reliability: FloatArray, frequency: FloatArray, moments: Moments) -> float:
    """Tell how models that know a label less behave: 1 they stay silent, -1 they say it too often, 0 neither shows.

    It is the slope, within labels, of the log of precision times recall (the squared reliability) on the
    log-odds of how often the model says yes.
    """
    n = np.einsum("jkk->jk", moments.both)
    says = np.clip(moments.mean.T, 1e-9, 1 - 1e-9)
    usable = (reliability > 0.05) & (says * n >= 5) & ((1 - says) * n >= 5)
    weight = usable * np.sqrt(np.maximum(frequency, 0))[:, None]
    known = np.where(usable, 2 * np.log(np.where(usable, reliability, 1)), 0)
    often = np.where(usable, np.log(says / (1 - says)), 0)
    total = np.maximum(weight.sum(axis=1, keepdims=True), 1e-12)
    known = known - (weight * known).sum(axis=1, keepdims=True) / total
    often = often - (weight * often).sum(axis=1, keepdims=True) / total
    chance = (weight * np.where(usable, 1 / (np.maximum(n, 1) * says), 0)).sum()  # sampling variance of `often`
    return float(np.clip((weight * often * known).sum() / max((weight * often**2).sum() + chance, 1e-12), -1, 1))


def _common_factor(agreement: FloatArray) -> FloatArray:
    """Fit the correlations of different models by a product r_k r_q; least absolute deviations leave copies aside.

    Reweighted least squares, slow in the end, show which of several minima is meant; Newton's method goes there.
    """
    m = len(agreement)
    if m == 1:
        return np.ones(1)
    different = 1 - np.eye(m)
    r = np.full(m, np.sqrt(max(agreement[different > 0].mean(), 1e-6)))
    for at in range(1, _ROUNDS[-1] + 1):
        weight = np.abs(agreement - r[:, None] * r)
        weight += _KINK
        np.divide(different, weight, out=weight)
        fitted = ((weight * agreement) @ r) / np.maximum(weight @ (r * r), 1e-12)
        r = 0.5 * r + 0.5 * np.minimum(np.maximum(fitted, -1.0), 1.0)  # in such small arrays twice as fast as clip
        if at in _ROUNDS and (there := _minimum_near(agreement, different, r)) is not None:
            r = there
            break
    return r if r.sum() >= 0 else -r


def _minimum_near(agreement: FloatArray, different: FloatArray, start: FloatArray) -> FloatArray | None:
    r"""Minimise Σ ρ(a_kq − r_k r_q), ρ'(e) = e/(|e| + κ), by Newton's method; ``None`` where that leads away.

    The gradient is 0 just where `_common_factor`'s rounds come to rest.
    """
    r = start
    for _ in range(12):
        error = agreement - r[:, None] * r
        weight = different / (np.abs(error) + _KINK)
        slope, bend = weight * error, _KINK * weight**2  # ρ' and ρ''
        hessian = bend * (r[:, None] * r) - slope
        np.fill_diagonal(hessian, bend @ (r * r))
        values, vectors = np.linalg.eigh(hessian)
        if values[0] <= 1e-8 * values[-1]:  # no minimum, or a valley of them as two models have
            return None
        step: FloatArray = vectors @ ((slope @ r) @ vectors / values)
        r = r + step
        if max(np.abs(r - start).max() / _NEAR, np.abs(r).max()) > 1:
            return None
        if np.abs(step).max() <= 1e-12:
            return r
    return None


def _ease(precision: FloatArray, agreed: FloatArray, product: FloatArray, spread: float) -> tuple[FloatArray, float]:
    """Estimate how easy each label is (l,), 1 on average, drawn to 1 by a spread that is estimated with it.

    `agreed` are the agreements times their precision.
    """
    information = np.einsum("jkq,kq->j", precision, product**2) / 2
    weighted = np.einsum("jkq,kq->j", agreed, product) / 2
    known = np.maximum(information, 1e-12)
    excess = (weighted / known - 1) ** 2 - 1 / known
    for _ in range(10):
        trust = (information / (information + 1 / spread)) ** 2
        spread = max(1e-4, float(trust @ excess / max(trust.sum(), 1e-12)))
    return np.sqrt(np.clip((weighted + 1 / spread) / (information + 1 / spread), 0.01, 4)), spread


def _shares(weight: FloatArray, m: int) -> FloatArray:
    total: Any = weight.sum(axis=1, keepdims=True)
    return np.asarray(np.where(total > 1e-12, weight / np.maximum(total, 1e-12), 1 / m))
