r"""How far each rater can be trusted, from the raters' answers alone.

The picture behind it: on label `j` the raters have a signal :math:`t_j` in common. What rater `k` says, minus its own
mean and divided by its own deviation, is :math:`x_{kj} = c_{kj} t_j + \sqrt{1 - c_{kj}^2}\, e_{kj}`, and errors `e` of
different raters are independent. Then :math:`\operatorname{corr}(x_{kj}, x_{qj}) = c_{kj} c_{qj}`: agreement between
raters gives each one's reliability `c` without any truth. What is estimated from few answers is drawn to what is usual
in the panel by empirical Bayes, as far as chance explains the difference. docs/theory.md has the derivations.
"""

from __future__ import annotations

import numpy as np

from ..arithmetic.products import FloatArray, ratio

_ROUNDS = 200  # of reweighted least squares; half of each step is taken
_KINK = 1e-3  # how small a deviation is no longer an absolute one
_MOST = 0.98  # the highest reliability of a rater over all labels
_SIDES = 0.1  # by how much of all reliability those who do not say the opposite must be ahead
_BEYOND = 3.0  # how many standard errors the raters' agreement must be above none
_OPPOSITE = 0.3  # a rater says the opposite of the others if its reliability is below minus so much of the median


def agreement(products: FloatArray, squares: FloatArray) -> FloatArray:
    """Correlate raters over the cells that both spoke about (m, m); 0 where they share none.

    Parameters
    ----------
    products
        Σ x_k x_q (m, m).
    squares
        Σ x_k² over the cells that q spoke about too (m, m).

    Examples
    --------
    >>> agreement(np.array([[2.0, 1.0], [1.0, 2.0]]), np.full((2, 2), 2.0)).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    return np.clip(ratio(products, np.sqrt(squares * squares.T), 0.0), -1, 1)


def reliability(agreed: FloatArray, precision: FloatArray) -> FloatArray:
    r"""Fit the correlations of different raters by a product :math:`r_k r_q`, and return `r` (m,).

    Deviations beyond chance count by their size, not their square, so that near copies, which agree beyond any product,
    are left aside. Each `r` is drawn to the panel's mean by empirical Bayes: raters who answered little are taken for
    usual ones. Without a signal all are 0: where raters agree neither on the whole nor along the fit beyond chance, or
    where as many say the opposite as do not, so that nobody can tell which side is right.

    Parameters
    ----------
    agreed
        Correlations of the raters' answers (m, m).
    precision
        One over the sampling variance of each (m, m), 0 on the diagonal and where it says nothing.

    Examples
    --------
    >>> r = np.array([0.9, 0.6, 0.5, 0.3])
    >>> reliability(np.outer(r, r), 1e4 * (1 - np.eye(4))).round(2).tolist()
    [0.9, 0.6, 0.5, 0.3]
    """
    m = len(agreed)
    if not precision.any():  # nobody to compare with: what is said is believed
        return np.full(m, _MOST)
    usual = float((precision * agreed).sum() / max(precision.sum(), 1e-12))
    r, spread = np.full(m, np.sqrt(max(usual, 1e-4))), 0.05
    chance = np.clip(1 / np.sqrt(np.maximum(precision, 1)), _KINK, 1)
    for at in range(_ROUNDS):
        weight = precision / (1 + np.abs(agreed - np.outer(r, r)) / chance)
        information, weighted = weight @ (r * r), (weight * agreed) @ r
        mean = float(information @ r / max(information.sum(), 1e-12))
        r = 0.5 * r + 0.5 * np.clip((weighted + mean / spread) / (information + 1 / spread), -1, 1)
        if at > 5:
            known = np.maximum(information, 1e-9)
            trust = (information / (information + 1 / spread)) ** 2
            excess = (weighted / known - mean) ** 2 - 1 / known
            spread = max(1e-5, float(trust @ excess / max(trust.sum(), 1e-12)))
    r = r if r.sum() >= 0 else -r
    # Along the fit chance alone gives √(2m), the largest eigenvalue of a random matrix.
    whole, fitted = (
        float((precision * agreed * shape).sum() / np.sqrt(max(2 * (precision * shape**2).sum(), 1e-300)))
        for shape in (1.0, np.outer(r, r))
    )
    if (whole < _BEYOND and fitted < _BEYOND + np.sqrt(2 * m)) or r.sum() < _SIDES * np.abs(r).sum():
        return np.zeros(m)
    opposite = r < -_OPPOSITE * max(float(np.median(r)), 0.0) - 1e-9  # and not merely useless
    return np.clip(np.where(opposite, r, np.maximum(r, 0)), -_MOST, _MOST)


def kinship(shift: FloatArray, expected: FloatArray, overlap: FloatArray) -> FloatArray:
    """Tell how alike two raters are made (m, m): 1 for replicas of one learner, near 0 for strangers.

    Replicas say yes to a label equally often but for chance (McNemar): the share of the squared difference of their
    rates that chance explains, squared, is taken for the correlation of their errors, which agreement cannot show. It
    counts as far as they answered the same questions.

    Parameters
    ----------
    shift
        Squared difference of two raters' rates of saying yes, summed over labels (m, m).
    expected
        What chance alone would make of it (m, m).
    overlap
        Share of their questions that both answered (m, m).

    Examples
    --------
    >>> kinship(np.array([[0.0, 4.0], [4.0, 0.0]]), np.ones((2, 2)), np.ones((2, 2))).tolist()
    [[1.0, 0.0625], [0.0625, 1.0]]
    """
    alike = np.minimum(1, np.maximum(expected, 0) / np.maximum(shift, 1e-12)) ** 2 * overlap
    np.fill_diagonal(alike, 1.0)
    return alike


def highest(rate: FloatArray, frequency: FloatArray) -> FloatArray:
    """Bound the reliability of a rater that says yes at `rate` (m, l) on labels of some frequency (l,).

    Hit and false-alarm rates lie between 0 and 1, which bounds the squared correlation by the odds ratio of the
    two rates.

    Examples
    --------
    >>> highest(np.array([[0.5], [0.2]]), np.array([0.5])).round(2).tolist()
    [[1.0], [0.5]]
    """
    says, true = (np.clip(each, 1e-9, 1 - 1e-9) for each in (rate, frequency))
    return np.asarray(np.exp(-np.abs(np.log(says / (1 - says) * (1 - true) / true)) / 2))


def spread_of(deviations: FloatArray, chance: FloatArray, least: float = 1e-5) -> float:
    """Estimate by moments how far true values lie from what is expected of them, given deviations that hold chance too.

    Parameters
    ----------
    deviations
        What was found minus what was expected.
    chance
        Sampling variance of each.
    least
        The smallest answer.

    Returns
    -------
    The variance of the true deviations.

    Examples
    --------
    >>> spread_of(np.array([1.0, -1.0, 1.0, -1.0]), np.full(4, 0.25))
    0.75
    """
    spread = 0.03
    for _ in range(30):
        trust = 1 / (chance + spread) ** 2
        spread = max(least, float((trust * (deviations**2 - chance)).sum() / max(trust.sum(), 1e-300)))
    return spread


def drawn(found: FloatArray, expected: FloatArray | float, chance: FloatArray, least: float = 1e-5) -> FloatArray:
    """Draw what was found to what was expected, as far as chance explains the difference (empirical Bayes).

    Examples
    --------
    >>> drawn(np.array([2.0, 0.0, 2.0, 0.0]), 1.0, np.full(4, 0.5)).tolist()
    [1.5, 0.5, 1.5, 0.5]
    """
    spread = spread_of(found - expected, chance, least)
    return (found * spread + expected * chance) / (spread + chance)
