r"""How far each rater can be trusted, from the raters' answers alone.

The picture behind it: on label `j` the raters have a signal :math:`t_j` in common. What rater `k` says, minus its own
mean and divided by its own deviation, is :math:`x_{kj} = c_{kj} t_j + \sqrt{1 - c_{kj}^2}\, e_{kj}`, and errors `e` of
different raters are independent. Then :math:`\operatorname{corr}(x_{kj}, x_{qj}) = c_{kj} c_{qj}`: agreement between
raters gives each one's reliability `c` without any truth. What is estimated from few answers is drawn to what is usual
in the panel by empirical Bayes, as far as chance explains the difference. docs/theory.md has the derivations.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import linalg

from ...linalg.block_sums import FloatArray, ratio

_ROUNDS = 200  # of reweighted least squares; half of each step is taken
_KINK = 1e-3  # how small a deviation is no longer an absolute one
_MOST = 0.98  # the highest reliability of a rater over all labels
_SIDES = 0.1  # by how much of all reliability those who do not say the opposite must be ahead
_BEYOND = 3.0  # how many standard errors the raters' agreement must be above none
_NOW_AND_THEN = 5  # after how many rounds it is looked at again who shares a voice
_CLEARLY = 2.0  # standard errors
_ORDINARY = (
    0.5  # how far honest raters' errors correlate at most, as in insight.suspects
)
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


def reliability(
    agreed: FloatArray, precision: FloatArray, overlap: FloatArray
) -> tuple[FloatArray, FloatArray]:
    r"""Fit the correlations of different raters by a product :math:`r_k r_q`, near copies as one.

    Deviations beyond chance count by their size, not their square, and near copies, which agree beyond any product,
    count as one rater: how reliable they are is seen in others. Each `r` is drawn to the panel's mean by empirical
    Bayes: raters who answered little are taken for usual ones. Without a signal all are 0: where raters agree neither
    on the whole nor along the fit beyond chance, or where as many say the opposite as do not, so that nobody can tell
    which side is right.

    Parameters
    ----------
    agreed
        Correlations of the raters' answers (m, m).
    precision
        One over the sampling variance of each (m, m), 0 on the diagonal and where it says nothing.
    overlap
        Share of their questions that both answered (m, m).

    Returns
    -------
    `r` (m,), and how much of a voice of its own each rater has (m,), see `voices`.

    Examples
    --------
    >>> r = np.array([0.9, 0.6, 0.5, 0.3])
    >>> r, voice = reliability(np.outer(r, r), 1e4 * (1 - np.eye(4)), np.ones((4, 4)))
    >>> r.round(2).tolist(), voice.tolist()
    ([0.9, 0.6, 0.5, 0.3], [1.0, 1.0, 1.0, 1.0])
    """
    m = len(agreed)
    if not precision.any():  # nobody to compare with: what is said is believed
        return np.full(m, _MOST), np.ones(m)
    usual = float((precision * agreed).sum() / max(precision.sum(), 1e-12))
    r, spread = np.full(m, np.sqrt(max(usual, 1e-4))), 0.05
    chance = np.clip(1 / np.sqrt(np.maximum(precision, 1)), _KINK, 1)
    overlap, voice = overlap * (precision > 0), np.ones(m)
    for at in range(_ROUNDS):
        beyond = agreed - r[:, None] * r
        if at % _NOW_AND_THEN == 0:
            now = voices(beyond - _CLEARLY * chance, r, overlap)
            voice = (voice + now) / 2 if at else now  # half of each step, as for r
        weight = precision * (voice[:, None] * voice) / (1 + np.abs(beyond) / chance)
        information, weighted = weight @ (r * r), (weight * agreed) @ r
        mean = float(information @ r / max(information.sum(), 1e-12))
        r = 0.5 * r + 0.5 * np.clip(
            (weighted + mean / spread) / (information + 1 / spread), -1, 1
        )
        if at > 5:
            known = np.maximum(information, 1e-9)
            trust = (information / (information + 1 / spread)) ** 2
            excess = (weighted / known - mean) ** 2 - 1 / known
            spread = max(1e-5, float(trust @ excess / max(trust.sum(), 1e-12)))
    r = r if r.sum() >= 0 else -r
    # Along the fit chance alone gives √(2m), the largest eigenvalue of a random matrix.
    along = [
        (precision * np.outer(each, each), np.outer(each, each))
        for each in (voice, voice * r)
    ]
    whole, fitted = (
        (p * agreed).sum() / np.sqrt(max(2 * (p * shape).sum(), 1e-300))
        for p, shape in along
    )
    if (
        whole < _BEYOND and fitted < _BEYOND + np.sqrt(2 * m)
    ) or r.sum() < _SIDES * np.abs(r).sum():
        return np.zeros(m), np.ones(m)
    opposite = (
        r < -_OPPOSITE * max(float(np.median(r)), 0.0) - 1e-9
    )  # and not merely useless
    return np.clip(np.where(opposite, r, np.maximum(r, 0)), -_MOST, _MOST), voice


def voices(beyond: FloatArray, r: FloatArray, overlap: FloatArray) -> FloatArray:
    r"""Tell how much of a voice of its own each rater has (m,): 1, or less where it shares errors with others.

    Raters whose errors correlate by :math:`\varepsilon` differ :math:`1 - \varepsilon` times as often as raters with
    errors of their own. Half as often is ordinary: some instances are easy for everybody. Where two differ less often
    than that, the rest is a voice that they share: of `s` raters that never differ each has `1/s`.

    Parameters
    ----------
    beyond
        By how much two raters clearly agree beyond the product of their reliabilities (m, m).
    r
        Their reliabilities (m,).
    overlap
        Share of their questions that both answered (m, m), 0 for a rater with itself.

    Examples
    --------
    >>> voices(np.array([[0, 0.75, 0], [0.75, 0, 0], [0, 0, 0]]), np.full(3, 0.5), 1 - np.eye(3)).tolist()
    [0.5, 0.5, 1.0]
    """
    own = np.sqrt(np.maximum(1 - r * r, 1 - _MOST**2))
    errors = np.minimum(beyond / np.outer(own, own), 1)  # how far they correlate
    shared = np.maximum(errors - _ORDINARY, 0) / (1 - _ORDINARY)
    return np.asarray(1 / (1 + (shared * overlap).sum(axis=1)))


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
    alike = (
        np.minimum(1, np.maximum(expected, 0) / np.maximum(shift, 1e-12)) ** 2 * overlap
    )
    np.fill_diagonal(alike, 1.0)
    return alike


def of_cells(values: FloatArray) -> FloatArray:
    """Add up values of cells (n, l) to those of labels (l,)."""
    return np.asarray(values.sum(axis=0, dtype=np.float64))


def products_of_raters(
    powers: Sequence[FloatArray],
    spoke: FloatArray,
    added: Callable[[FloatArray], FloatArray] = of_cells,
) -> FloatArray:
    """Add up over cells the mean product of the scores of 1, 2, 3 and 4 different raters, behind how many cells (5, l).

    Parameters
    ----------
    powers
        For each cell (n, l) the sum of its raters' scores, of their squares, cubes and fourth powers.
    spoke
        How many raters spoke about each cell (n, l); cells with fewer than four are left out.
    added
        What adds up over the cells of a label, where they are in another shape.

    Examples
    --------
    >>> four = np.array([[4.0, 2.0]])  # raters said yes, of four each
    >>> products_of_raters([four] * 4, np.full((1, 2), 4.0))[:, 1].round(3).tolist()
    [1.0, 0.5, 0.167, 0.0, 0.0]
    """
    one, two, three, four = powers
    pairs = one * one - two
    triples = one * (pairs - 2 * two) + 2 * three  # Newton's identities
    fours = one * (triples - 3 * one * two + 6 * three) + 3 * two * two - 6 * four
    told = spoke > 3
    share = told.astype(np.float64)
    found = [added(share)]
    for taken, product in enumerate((one, pairs, triples, fours)):
        share = share / np.where(told, spoke - taken, 1.0)
        found.append(added(product * share))
    return np.stack(found)


def replicas(levels: FloatArray) -> float:
    r"""Tell whether raters err on the same cells, as replicas of one learner do (1), or each on its own (0).

    How likely raters are to say yes differs from cell to cell. Where each errs on its own it has two levels, one for
    what is true and one for what is not, and by Pearson's inequality :math:`m_4 v - m_3^2 - v^3 \ge 0` is 0 for two
    levels only. Replicas are sure of some cells and waver at others: a beta distribution of the same mean and variance
    says what it is then. The ratio of the two, over all labels, cut to [0, 1].

    Parameters
    ----------
    levels
        What `products_of_raters` adds up (5, l); without cells of four raters nobody can tell, and it is 0.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> def found(chance):
    ...     said = rng.binomial(8, chance).astype(float)
    ...     return replicas(products_of_raters([said] * 4, np.full(said.shape, 8.0)))
    >>> own_errors = found(np.where(rng.random((50_000, 2)) < 0.4, 0.7, 0.2))
    >>> round(own_errors, 1), round(found(rng.beta(0.4, 0.6, (50_000, 2))), 1)
    (0.0, 1.0)
    """
    cells, *products = levels
    mean, second, third, fourth = (ratio(product, cells, 0.0) for product in products)
    v, q = second - mean**2, mean * (1 - mean)
    usable = (v > 1e-9) & (cells > 0)
    m3 = third - 3 * mean * second + 2 * mean**3
    m4 = fourth - 4 * mean * third + 6 * mean**2 * second - 3 * mean**4
    found = (cells * (m4 * v - m3**2 - v**3))[usable].sum()
    s = np.maximum(
        ratio(q, np.where(usable, v, 0.0), 1.0) - 1, 0
    )  # the beta distribution's two parameters, added up
    of_beta = (
        2
        * s
        * (q * s**2 + s + 1)
        * v**3
        / np.maximum(q * (s + 2) ** 2 * (s + 3), 1e-300)
    )
    expected = (cells * of_beta)[usable].sum()
    if expected <= 1e-12 * cells.sum():  # they never differ, or nobody can tell
        return float(usable.any())
    return float(np.clip(found / expected, 0, 1))


def signals(
    together: FloatArray,
    alone: FloatArray,
    informed: FloatArray,
    informed_alone: FloatArray,
) -> FloatArray:
    """Find the covariances of labels' common signals, from pairs of different raters where there are any.

    Readings of different raters have but the signal in common: E ZZ' = Φ II', without what one rater says alone. Where
    one rater brings more than half of the information there are few such pairs, and all of ZZ' is used instead.

    Parameters
    ----------
    together, alone
        Σ ZZ' and the part of it that single raters bring, of pairs of labels.
    informed, informed_alone
        Σ II', likewise.

    Examples
    --------
    >>> signals(np.array([5.0]), np.array([3.0]), np.array([8.0]), np.array([4.0]))
    array([0.5])
    """
    informed = np.maximum(informed, 1e-12)
    pairs = np.maximum(informed - informed_alone, 1e-3 * informed)
    usable = np.clip(2 * (1 - informed_alone / informed), 0, 1)
    return np.asarray(
        usable * (together - alone) / pairs + (1 - usable) * together / informed
    )


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
    return np.asarray(
        np.exp(-np.abs(np.log(says / (1 - says) * (1 - true) / true)) / 2)
    )


def spread_of(
    deviations: FloatArray, chance: FloatArray, least: float = 1e-5, count: Any = 1.0
) -> float:
    """Estimate by moments how far true values lie from what is expected of them, given deviations that hold chance too.

    Parameters
    ----------
    deviations
        What was found minus what was expected.
    chance
        Sampling variance of each.
    least
        The smallest answer.
    count
        How many each stands for.

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
        trust = count / (chance + spread) ** 2
        spread = max(
            least,
            float((trust * (deviations**2 - chance)).sum() / max(trust.sum(), 1e-300)),
        )
    return spread


def drawn(
    found: FloatArray,
    expected: FloatArray | float,
    chance: FloatArray,
    least: float = 1e-5,
) -> FloatArray:
    """Draw what was found to what was expected, as far as chance explains the difference (empirical Bayes).

    Examples
    --------
    >>> drawn(np.array([2.0, 0.0, 2.0, 0.0]), 1.0, np.full(4, 0.5)).tolist()
    [1.5, 0.5, 1.5, 0.5]
    """
    spread = spread_of(found - expected, chance, least)
    return (found * spread + expected * chance) / (spread + chance)


def label_correlations(
    found: FloatArray, variance: FloatArray, n: FloatArray, active: Any
) -> FloatArray:
    """Draw the active labels' correlations to 0 as far as chance explains them, and make them ones there can be.

    Labels that have nothing to do with each other correlate by chance, with variance v v'/n.

    Examples
    --------
    >>> found = np.array([[1.0, 0.1], [0.1, 1.0]])
    >>> label_correlations(found, np.ones(2), np.full(2, 25.0), np.ones(2, dtype=bool)).round(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    at = np.flatnonzero(active)
    found = np.clip(found[np.ix_(at, at)], -1, 1)
    different = ~np.eye(len(at), dtype=np.bool_)
    if different.any():
        chance = np.outer(variance[at], variance[at]) / np.sqrt(np.outer(n[at], n[at]))
        found[different] = drawn(found[different], 0.0, chance[different], least=1e-8)
        found = (found + found.T) / 2
    return possible(found)


def possible(found: FloatArray) -> FloatArray:
    """Return the correlations that there can be nearest to some: without negative eigenvalues, and 1 with themselves.

    Examples
    --------
    >>> possible(np.array([[1.0, 0.5], [0.5, 1.0]])).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    np.fill_diagonal(found, 1.0)
    try:
        linalg.cholesky(found)
    except linalg.LinAlgError:
        values, vectors = linalg.eigh(found)
        near = (vectors * np.maximum(values, 0)) @ vectors.T
        size = np.sqrt(np.maximum(np.diag(near), 1e-12))
        return np.asarray(near / np.outer(size, size))
    return found
