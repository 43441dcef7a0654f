r"""What known answers teach: a correction of a truth-free score, label by label, if it proves its worth.

The truth-free score `s` of a cell, as log-odds :math:`L = \log\frac{s + \epsilon}{1 - s + \epsilon}`, is where it
starts. How often a label is really true, on which scale the score says so, and how far each rater can be believed
beyond what its agreement shows, move it:

.. math::

    \eta_{ij} = L_{ij} + z_{ij} \beta_j, \qquad z_{ij} = (1, \tfrac12 (L_{ij} - \bar L_j), x_{1ij}, \dots, x_{mij}),
    \qquad \beta_j = b + d_j, \quad d_j \sim N(0, T), \quad P(y_{ij} = 1) = 1/(1 + e^{-\eta_{ij}})

with `x` what raters said minus what they say on average. `b` is the same for all labels, `d` a label's own, and `T`,
how far labels differ, is estimated too (empirical Bayes): few answers shrink to the truth-free score, and labels help
each other. All is maximised by Pólya–Gamma EM: with :math:`\omega = \tanh(\eta/2) / 2\eta`, each round is weighted
least squares on sums over known cells, :math:`\sum \omega z z^\top` and :math:`\sum z (y - \frac12 - \omega L)`, and
cannot overshoot. The correction is used only if it ranks known instances that it was not fitted to better than `s`.

N. G. Polson, J. G. Scott, J. Windle: Bayesian inference for logistic models using Pólya–Gamma latent variables.
doi:10.1080/01621459.2013.829001
"""

from typing import Any

import numpy as np
from scipy import special, stats

from ...linalg.block_sums import FloatArray
from ..contributions import Contributions

_SURE = 0.01  # ε: how near to 0 or 1 a truth-free score is no longer told apart
_ROUNDS = 15  # of EM
_FOLDS = 5
_BEYOND = 3.0  # standard errors that the gain must be above
_SPOKEN = 0.25  # share of the known instances that a rater must have spoken about to be rated by them
_SPREAD = 0.05, 0.05, 0.3  # T to begin with: of intercept, slope and answers
_FEW = 5  # instances to be ranked, below which there is nothing to go by


def log_odds(scores: FloatArray) -> FloatArray:
    """Return truth-free scores as log-odds, none of them infinite.

    Examples
    --------
    >>> log_odds(np.array([0.0, 0.5, 2.0])).round(1).tolist()
    [-4.6, 0.0, 4.6]
    """
    likely = np.clip(scores, 0, 1)
    return np.asarray(np.log((likely + _SURE) / (1 - likely + _SURE)))


def correction(
    scores: FloatArray, said: FloatArray, answers: FloatArray
) -> FloatArray | None:
    """Find by what the log-odds of scores are corrected; ``None``: nothing shows that it would help.

    Parameters
    ----------
    scores
        Truth-free, of instances with known answers (g, l).
    said
        What raters said minus what they say on average (m, g, l), 0 where they are silent.
    answers
        1, 0, or NaN (g, l).

    Returns
    -------
    Intercept, slope, and what each rater's answer adds (2 + m, l).
    """
    starts, known, folds = (
        log_odds(scores),
        ~np.isnan(answers),
        np.arange(len(scores)) % _FOLDS,
    )
    before, held_out = _ranked(starts, answers), starts.copy()
    judged = ~np.isnan(before).any(axis=1)
    if judged.sum() < _FEW:
        return None
    some = (said != 0).any(axis=2).mean(axis=1) >= _SPOKEN
    for fold in range(_FOLDS):
        at, others = folds == fold, folds != fold
        fitted = _fitted(starts[others], said[:, others], answers[others], some)
        held_out[at] = (
            fitted[0]
            + fitted[1] * starts[at]
            + np.einsum("kij,kj->ij", said[:, at], fitted[2:])
        )
    gains = (_ranked(held_out, answers) - before)[judged]
    cells = stats.rankdata(held_out[known]) - stats.rankdata(starts[known])
    total, mean = gains.sum(axis=1), gains.mean(axis=0)
    helps = (
        mean.sum() > _BEYOND * total.std(ddof=1) / np.sqrt(len(gains))
        and (mean >= 0).all()
    )
    return (
        _fitted(starts, said, answers, some)
        if helps and cells[answers[known] > 0].sum() > 0
        else None
    )


def _fitted(
    starts: FloatArray, said: FloatArray, answers: FloatArray, some: Any
) -> FloatArray:
    """Maximise the evidence, with the answers of some of the raters (m,) beside intercept and slope."""
    usual, known = starts.mean(axis=0), ~np.isnan(answers.T)
    L, y = starts.T, np.where(known, answers.T, 0.5)  # (l, g)
    Z = np.stack(
        [np.ones_like(L), (starts - usual).T / 2, *said[some].transpose(0, 2, 1)],
        axis=2,
    )  # (l, g, p)
    across, p = Z.transpose(0, 2, 1), Z.shape[2]
    kind = np.minimum(np.arange(p), 2)
    T, T_all = np.array(_SPREAD)[kind], np.array([1.0, 1.0, 0.1])[kind]
    both = np.zeros((len(L), p))
    for _ in range(_ROUNDS):
        eta = np.maximum(np.abs(L + np.einsum("jip,jp->ji", Z, both)), 1e-3)
        omega = np.where(known, np.tanh(eta / 2) / (2 * eta), 0.0)
        H, c = (
            (across * omega[:, None, :]) @ Z,
            (across @ (y - 0.5 - omega * L)[..., None])[..., 0],
        )
        V = np.linalg.inv(
            H + np.diag(1 / T)
        )  # (l, p, p) how uncertain a label's own part is
        rest = (
            H - H @ V @ H
        )  # what is known of the common part when each label's own is averaged over
        V_all = np.linalg.inv(rest.sum(axis=0) + np.diag(1 / T_all))
        common = V_all @ (c - np.einsum("jpq,jq->jp", H @ V, c)).sum(axis=0)
        own = np.einsum("jpq,jq->jp", V, c - H @ common)
        both = common + own
        size = np.maximum((own**2 + np.einsum("jpp->jp", V)).mean(axis=0), 1e-5)
        T = (np.bincount(kind, size) / np.bincount(kind))[kind]
        if p > 2:
            T_all[2:] = np.maximum((common**2 + np.diag(V_all))[2:].mean(), 1e-5)
    learned = np.zeros((2 + len(said), len(L)))
    learned[0], learned[1] = both[:, 0] - both[:, 1] * usual / 2, 1 + both[:, 1] / 2
    learned[2:][some] = both[:, 2:].T
    return learned


def _ranked(scores: FloatArray, answers: FloatArray) -> FloatArray:
    """Judge how each instance's known labels are ranked (g, 3): top label, pairs, precision; NaN: nothing to rank."""
    out = np.full((len(scores), 3), np.nan)
    for at, (own, truth) in enumerate(zip(scores, answers, strict=True)):
        hits = truth[np.argsort(-own, kind="stable")]
        hits = hits[~np.isnan(hits)]
        place, r = np.flatnonzero(hits), int(hits.sum())
        if 0 < r < len(hits):
            before = np.arange(r)
            out[at] = (
                hits[0],
                1 - (place - before).mean() / (len(hits) - r),
                ((before + 1) / (place + 1)).mean(),
            )
    return out


def revised(scores: FloatArray, moved: FloatArray, learned: FloatArray) -> FloatArray:
    """Correct scores, given what raters' answers add to the log-odds (n, l).

    Examples
    --------
    >>> revised(np.array([[0.5]]), np.array([[1.0]]), np.array([[-1.0], [1.0], [2.0]]))
    array([[0.5]])
    """
    return np.asarray(special.expit(learned[0] + learned[1] * log_odds(scores) + moved))


def revised_parts(
    found: Contributions, said: FloatArray, learned: FloatArray | None, label: int
) -> Contributions:
    """Correct the parts of a score of one label, given what raters said minus what they say on average (m, l).

    Log-odds are no sum: each statement gets its share of how far all of them move these.
    """
    if learned is None or not len(learned):
        return found
    moved = float(found.statements.sum() + found.remainder)
    before, after = log_odds(np.array([found.baseline, found.baseline + moved]))
    per = learned[1, label] * (after - before) / (moved or 1.0)
    parts = per * found.statements
    parts[:, label] += learned[2:, label] * said[:, label]
    return Contributions(
        learned[0, label] + learned[1, label] * before,
        parts,
        per * found.remainder,
        scale="log-odds",
    )
