"""The first two rounds of the rater filter: how often raters say yes, and how far each can be trusted."""

from typing import Annotated, Any, NamedTuple

import numpy as np

from ...execution.statistics import Axes
from ...linalg.annotations import Annotations, make_annotations
from ...linalg.block_sums import FloatArray, dense, model_sums, product, ratio
from ...linalg.vote_patterns import counts, pooled
from ...predictions import Predictions, Scales
from ..base import Round
from . import many_raters
from .raters import (
    agreement,
    highest,
    kinship,
    of_cells,
    products_of_raters,
    reliability,
)

_SILENT = (
    1e-12  # a variance below this says that a rater never changes its mind on a label,
)
_ROUNDED = 1e-8  # and so does one below this part of its mean square, of which rounding takes too much
_RAISED = 0.5  # by which power of the panel's reliability the scale of a very rare label is raised
_RARE = (
    0.1  # how frequent a label is that raters no longer keep silent about when in doubt
)


class Rates(NamedTuple):
    """First round: how often each rater says yes to each label; `y` is a score with silence as 0."""

    total: Annotated[Any, Axes("m l", least=0)]  # Σ y
    squares: Annotated[Any, Axes("m l", least=0)]  # Σ y²
    heard: Annotated[Any, Axes("m l", least=0)]  # about how many instances it spoke
    products: Annotated[
        Any, Axes("m m", symmetric=True, least=0)
    ]  # Σ y y' over blocks without silence
    n_complete: Annotated[Any, Axes("", least=0)]  # how many instances these have


class Means(NamedTuple):
    """What the first round tells."""

    mean: Annotated[FloatArray, Axes("m l")]  # μ
    variance: Annotated[FloatArray, Axes("m l", least=0)]  # σ²
    total: Annotated[FloatArray, Axes("m l", least=0)]
    heard: Annotated[FloatArray, Axes("m l", least=0)]
    products: Annotated[FloatArray, Axes("m m", symmetric=True, least=0)]
    n_complete: Annotated[FloatArray, Axes("", least=0)]
    scale_at: Annotated[
        FloatArray, Axes("m ?")
    ]  # knots that bring scores to one scale; none: they stay as they are
    scale_to: Annotated[FloatArray, Axes("m ?")]


class Pairs(NamedTuple):
    """Second round: sums over cells that two raters spoke about; x = y − μ."""

    products: Annotated[Any, Axes("m m", symmetric=True)]  # Σ x x'
    squares: Annotated[Any, Axes("m m", least=0)]  # Σ x²
    both: Annotated[Any, Axes("m m", symmetric=True, least=0)]  # how many


class Trust(NamedTuple):
    """What the second round tells, beside `Means`."""

    mean: Annotated[FloatArray, Axes("m l")]  # μ
    deviation: Annotated[FloatArray, Axes("m l", least=0)]  # σ
    heard: Annotated[FloatArray, Axes("m l", least=0)]  # 0 for copies of another rater
    frequency: Annotated[FloatArray, Axes("l")]  # π
    reliability: Annotated[FloatArray, Axes("m")]  # r, over all labels; 0 for copies
    voice: Annotated[
        FloatArray, Axes("m", least=0, most=1)
    ]  # how much of a voice of its own each has
    alike: Annotated[FloatArray, Axes("m m", symmetric=True)]  # kinship
    copies: Annotated[
        FloatArray, Axes("m m", symmetric=True, least=0, most=1)
    ]  # 1 for raters that say the same
    highest: Annotated[FloatArray, Axes("m l")]  # what reliability can be at most
    weight: Annotated[FloatArray, Axes("m l")]  # u, what an answer adds to the reading
    information: Annotated[
        FloatArray, Axes("m l", least=0)
    ]  # b, and how much that is worth
    scale_at: Annotated[FloatArray, Axes("m ?")]
    scale_to: Annotated[FloatArray, Axes("m ?")]


def rates(block: Predictions, known: Scales | None) -> Rates:
    """Add up how often raters say yes."""
    m, n, l = block.shape
    block = (
        block.weighted(None) if known is None else block.weighted(None).rescaled(known)
    )
    if block.many:
        return Rates(*many_raters.rates(block))
    if block.complete:
        total, squares, products = model_sums(block)
        return Rates(total, squares, np.full((m, l), float(n)), products, float(n))
    said = make_annotations(block)
    scores = said.scores.astype(np.float64)
    total, squares, heard = map(
        said.of_raters, (scores, scores**2, said.spoke.astype(np.float64))
    )
    return Rates(total, squares, heard, np.zeros((m, m)), 0.0)


def means(sums: Rates, known: Scales | None) -> Means:
    """Find each rater's mean and variance on each label.

    A rater's mean starts from one answer at the label's frequency, which matters where it gave but a few.
    """
    total, squares, heard, products, n_complete = sums
    frequency = ratio(total.sum(axis=0), heard.sum(axis=0), 0.0)
    mean = (total + frequency) / (heard + 1)
    variance = ratio(
        np.maximum(squares - 2 * mean * total + mean**2 * heard, 0), heard, 0.0
    )
    variance = np.where(
        variance > np.maximum(_SILENT, _ROUNDED * ratio(squares, heard, 0.0)),
        variance,
        0.0,
    )
    scales = np.empty((2, len(total), 0)) if known is None else known
    return Means(mean, variance, total, heard, products, n_complete, *scales)


def pairs(block: Predictions, known: Means) -> Pairs:
    """Add up products of what two raters said about the same cell."""
    block = on_scale(block, known)
    if block.many:
        return Pairs(*many_raters.pairs(block, known.mean))
    if block.complete:
        total, _, products = model_sums(block)
        return _complete_pairs(products, total, known.mean, len(block))
    said = make_annotations(block)
    x, spoke = (
        said.by_cell(centred(said, known.mean)),
        said.by_cell(said.spoke.astype(np.float64)),
    )
    return Pairs(product(x, x.T), product(x * x, spoke.T), product(spoke, spoke.T))


def pairs_told(known: Means) -> Pairs | None:
    """Take the pairs from the first round, where nobody was silent anywhere."""
    n = float(known.n_complete)
    return (
        _complete_pairs(known.products, known.total, known.mean, n)
        if (known.heard == n).all()
        else None
    )


def _complete_pairs(
    products: FloatArray, total: FloatArray, mean: FloatArray, n: float
) -> Pairs:
    m, l = mean.shape
    crossed = mean @ total.T
    products = products - crossed - crossed.T + n * mean @ mean.T
    squares = np.repeat(np.maximum(np.diag(products), 0)[:, None], m, axis=1)
    return Pairs(products, squares, np.full((m, m), float(n * l)))


def trust(sums: Pairs, known: Means) -> Trust:
    """Rate the raters over all labels, find copies and kin, and weigh their answers."""
    mean, variance, total, heard, _, _, *scale = known
    l = mean.shape[1]
    count, own = heard.sum(axis=1) / l, variance.sum(axis=1)
    both = sums.both / l
    first = _first_copies(sums, known)
    kept = first == np.arange(len(first))
    heard = heard * kept[:, None]
    pooled = ratio((variance * heard).sum(axis=0), heard.sum(axis=0), 0.0)
    # Labels count by their variance: so many of equal variance would tell as much.
    labels = pooled.sum() ** 2 / max(float((pooled**2).sum()), 1e-300)
    precision = both * labels * np.outer(kept, kept) * (1 - np.eye(len(kept)))
    overlap = both / np.sqrt(np.maximum(np.outer(count, count), 1))
    squares = np.where(
        sums.squares > _SILENT * sums.both, sums.squares, 0.0
    )  # no correlation of rounding errors
    found, voice = reliability(agreement(sums.products, squares), precision, overlap)
    r = np.where(kept, found, 0.0)
    if not r.any():  # no signal: votes are all there is, a copy has one too, and each counts as it was given
        first = np.arange(len(first))
        kept, heard, scale = (
            kept | True,
            known.heard,
            list(np.empty((2, len(first), 0))),
        )
    frequency = ratio((total * kept[:, None]).sum(axis=0), heard.sum(axis=0), 0.0)
    # Rates differ by chance: where both answered by how they differ there, elsewhere by the variance of each.
    apart = ratio(sums.squares + sums.squares.T - 2 * sums.products, both, 0.0)
    per = 1 / np.maximum(count, 1)
    shared = both * np.outer(per, per)
    expected = (
        apart * shared
        + np.add.outer(own * per, own * per)
        - np.add.outer(own, own) * shared
    )
    rate = ratio(total, known.heard, np.broadcast_to(frequency, total.shape))
    size = (rate**2).sum(axis=1)
    shift = np.maximum(np.add.outer(size, size) - 2 * rate @ rate.T, 0)
    alike = kinship(shift, expected, overlap)
    bound = highest(mean, frequency)
    deviation = np.sqrt(variance)
    answers = answer_weights(
        np.sign(r)[:, None] * np.minimum(np.abs(r)[:, None], bound), deviation
    )
    weight, information = (each * voice[:, None] for each in answers)
    copies = (first[:, None] == first).astype(np.float64)
    return Trust(
        mean,
        deviation,
        heard,
        frequency,
        r,
        voice,
        alike,
        copies,
        bound,
        weight,
        information,
        *scale,
    )


def on_scale(block: Predictions, known: Any) -> Predictions:
    """Bring a block's scores to the scale that was fitted, whatever knows it: `Means`, `Trust` or the solution."""
    block = block.weighted(None)  # what the user's weights do is left to `solve`
    return (
        block.rescaled(Scales(known.scale_at, known.scale_to))
        if known.scale_at.size
        else block
    )


def centred(said: Annotations, mean: FloatArray) -> FloatArray:
    """Take each rater's mean (m, l) off what it said (r, l); silence stays 0."""
    return (said.scores - mean[said.rater]) * said.spoke


def answer_weights(
    c: FloatArray, deviation: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return what an answer adds to the reading, c/(1 − c²)/σ, and how much that is worth, c²/(1 − c²) (m, l)."""
    varies = deviation > 0
    weight = np.where(varies, c / (1 - c**2) / np.where(varies, deviation, 1), 0.0)
    return weight, weight * c * deviation


def gain_of(c: FloatArray, known: Trust) -> tuple[FloatArray, float]:
    """Find the scale on which trusted raters say each label (l,), and how reliable these are on the whole.

    The truth is taken for one more rater, as reliable as those who are trusted. Of rare labels raters keep silent when
    in doubt, the more so the less they know: these are said too seldom, and their scale is raised.
    """
    trusted = np.maximum(c, 0) ** 2 * known.heard
    total = np.maximum(trusted.sum(axis=0), 1e-12)
    usual = (trusted * c**2).sum(axis=0) / total
    variance = ratio(
        (known.deviation**2 * known.heard).sum(axis=0), known.heard.sum(axis=0), 0.0
    )
    level = max(
        float(np.sqrt((variance * usual).sum() / max(float(variance.sum()), 1e-300))),
        0.05,
    )
    gain = (trusted * c * known.deviation).sum(axis=0) / total
    return np.asarray(
        gain / level ** (_RAISED * np.exp(-known.frequency / _RARE))
    ), level


def reliable(known: Trust) -> FloatArray:
    """Tell who is at least half as reliable as raters that are trusted usually are (m,): 1, else 0."""
    r = np.maximum(known.reliability, 0)
    return np.asarray(2 * r * (r**2).sum() > (r**3).sum(), dtype=np.float64)


def powers(scores: Any) -> tuple[Any, ...]:
    """Return scores, their squares, cubes and fourth powers."""
    squares = scores * scores
    return scores, squares, squares * scores, squares * squares


def complete_levels(block: Predictions, A: Any, trusted: FloatArray) -> FloatArray:
    """Add up products of trusted raters' scores where everybody spoke; decisions by how many cells got how many yes."""
    (_, n, l), m = block.shape, int(trusted.sum())
    if m < 4:  # too few to tell
        return np.zeros((5, l))
    weights = np.repeat(trusted[:, None], l, axis=1)
    if block.has_scores:
        said = [dense(pooled(scores, weights)) for scores in powers(A)]
        return products_of_raters(said, np.full((n, l), float(m)))
    cells, yes = (
        counts(pooled(A, weights).astype(np.uint16), m + 1).T,
        np.arange(m + 1.0)[:, None],
    )
    return products_of_raters(
        [yes] * 4, np.full_like(yes, m), lambda values: of_cells(cells * values)
    )


def kinship_of_all(known: Trust, level: float) -> float:
    """Average the kinship κ of pairs of different raters, each pair by how reliable both are.

    Raters who hardly agree are nobody's replicas, however alike their rates: without a signal, votes are all there is.
    """
    trusted = np.maximum(known.reliability, 0) ** 2
    weight = np.outer(trusted, trusted) * (1 - np.eye(len(trusted)))
    return float((weight * known.alike).sum() / max(float(weight.sum()), 1e-300)) * min(
        1.0, 2 * level
    )


def _first_copies(sums: Pairs, known: Means) -> Any:
    """Find for each rater the first that says exactly the same of the same cells (m,); itself if there is none."""
    answered = known.heard.sum(axis=1)
    same = (sums.both == answered[:, None]) & (sums.both == answered)
    same &= sums.squares + sums.squares.T - 2 * sums.products <= 1e-9 * np.maximum(
        sums.both, 1
    )
    first = np.arange(len(same))
    for k, q in np.argwhere(np.tril(same, -1)):  # few are that alike
        if (
            first[k] == k
            and first[q] == q
            and np.abs(known.mean[k] - known.mean[q]).max() <= 1e-12
        ):
            first[k] = q
    return first


ROUNDS = (
    Round(Rates, rates, Means, means),
    Round(Pairs, pairs, Trust, trust, pairs_told),
)
