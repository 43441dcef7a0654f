r"""The rater filter: trust each model as far as the others bear it out, label by label, then filter along the labels.

Each model is a rater of unknown reliability. Agreement between different models shows how reliable each is on
each label (`raters`), and how labels go together in what the models have in common, not in any one's errors.
The votes on a label are pooled into one standardised reading by generalised least squares, copies and near
copies sharing one voice; the readings of all labels go through a Wiener filter, which shrinks each by its own
noise and lends it what related labels say:

.. math::

    z_{ij} = \sum_k V_{kj} (y^k_{ij} - \mu_{kj}), \qquad
    \hat y_i = \pi + z_i\, (\Phi + N)^{-1} \Phi\, \operatorname{diag}(g)

with :math:`\Phi` the correlations of the labels' common signals, `N` the noise of the readings, :math:`\pi` the
labels' frequencies and `g` the scale of the truth. Nothing is set by hand; docs/theory.md derives each part.
Scores are floored at 0; where nothing is left, labels keep the order of their frequencies.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from scipy import linalg, sparse

from ..arithmetic.grams import Gram
from ..arithmetic.products import (
    FloatArray,
    column_sums,
    connections,
    product,
    ratio,
    spoken,
    weighted_product,
    weighted_sum,
)
from ..errors import InputError
from ..panel import scales as scales_of
from ..panel.predictions import Predictions
from ..panel.scales import Scales
from ..panel.sources import Source
from ..parameters import Weights
from .contributions import Contributions, statements
from .method import Axes, Gather, Method
from .raters import Moments, bounded, first_copies, kinship, leaning, prevalence, rate


class Statistics(NamedTuple):
    """Sums over instances; `a` is a score with silence as 0, `s` is 1 where the model spoke.

    Where all models spoke, `s` adds nothing that `n_complete` and `complete` do not hold, and the last two stay 0.
    """

    products: Annotated[Any, Axes("m l m l", symmetric=True, least=0)]  # Σ a a'
    total: Annotated[Any, Axes("m l", least=0)]  # Σ a
    n_complete: Annotated[Any, Axes("", least=0)]  # instances in blocks without silence
    complete: Annotated[Any, Axes("m l", least=0)]  # Σ a over these
    said_together: Annotated[Any, Axes("m l m l", least=0)] = 0  # Σ a s' over the other blocks
    together: Annotated[Any, Axes("m l m l", symmetric=True, least=0)] = 0  # Σ s s' over the other blocks


class Solution(NamedTuple):
    """How votes are pooled into one reading of each label, and readings filtered."""

    mean: Annotated[FloatArray, Axes("m l")]  # μ
    vote: Annotated[FloatArray, Axes("m l")]  # what a vote adds to the reading, times the information in all votes
    information: Annotated[FloatArray, Axes("m l")]  # how much that is of each model
    own_noise: Annotated[FloatArray, Axes("l")]  # noise of the reading when all have spoken, from models' own errors
    noise: Annotated[FloatArray, Axes("l")]  # and with the errors that models have in common
    filter: Annotated[FloatArray, Axes("l l")]  # (Φ + N)⁻¹ Φ diag(g)
    prior: Annotated[FloatArray, Axes("l")]  # π
    overall: Annotated[FloatArray, Axes("m")]  # each model's reliability over all labels
    scale_at: Annotated[FloatArray, Axes("m ?")]  # knots that bring scores to one scale; none: they stay as they are
    scale_to: Annotated[FloatArray, Axes("m ?")]


def statistics(block: Predictions) -> Statistics:
    """Add up products of what pairs of models said about pairs of labels."""
    m, n, l = block.shape
    block = block.weighted(None)  # what the user's weights do is left to `solve`
    A, said = connections(block), spoken(block)
    total = column_sums(A).reshape(m, l)
    products = Gram.of(A, (m, l, m, l))
    if said is None:
        return Statistics(products, total, n, total, 0, 0)
    A = A.toarray() if sparse.issparse(A) else A  # no larger than what says who spoke
    return Statistics(
        products,
        total,
        0,
        np.zeros((m, l)),
        (A.T @ said).reshape(m, l, m, l),
        (said.T @ said).reshape(m, l, m, l),
    )


def solve(statistics: Statistics, weights: FloatArray | None = None, scales: Scales | None = None) -> Solution:
    """Rate the models, pool their votes, and filter along the labels."""
    every = _moments(statistics)
    m, l = every.mean.shape
    first = first_copies(every)
    kept = np.flatnonzero(first == np.arange(m))
    given = np.ones(m) if weights is None else np.array([weights[first == k].max(initial=0.0) for k in range(m)])
    moments = every if len(kept) == m else every.of_models(kept)
    raters = rate(moments.by_label(), moments.both)
    frequency, _ = prevalence(raters, raters.reliability, moments)
    c = bounded(raters.reliability, frequency, moments)
    frequency, mean_reliability = prevalence(raters, c, moments)
    alike, lean, level = kinship(moments), leaning(c, frequency, moments), _level(mean_reliability, frequency)
    bend = level ** (_strangeness(alike, raters.overall) * (1 + min(lean, 0)) / 2)
    frequency, _ = prevalence(raters, c, moments, bend)

    # Generalised least squares: a vote weighs c/(1 − c²), shared among models whose errors go together.
    varies = raters.deviation > 0
    weight = np.where(c != 0, c / (1 - c**2) / (raters.shared_errors**2).sum(axis=1), 0) * given[kept]  # (l, k)
    information = (weight * c).sum(axis=1)
    active = information > 1e-6
    pooled = np.where(active[:, None], weight / np.where(active, information, 1)[:, None], 0)
    scale = np.where(varies, 1 / np.where(varies, raters.deviation, 1), 0) * (c != 0)
    own_noise, noise = _noise(pooled * np.sqrt(1 - c**2), alike)

    gain = _gain(mean_reliability, lean, level, frequency)
    filter = np.zeros((l, l))
    if active.any():
        those = np.ix_(active, active)
        found, chance = _signal(pooled * scale, pooled * c, moments), _chance(pooled * scale, moments)
        signal = _correlations(_shrunk(found[those], chance[those]))
        system = signal + np.diag(noise[active] + 1e-6)
        filter[those] = linalg.solve(system, signal, assume_a="pos") * gain[active]

    def for_all(values: FloatArray) -> FloatArray:
        """Give (l, k) values of the kept models to all models, 0 for copies, as (m, l)."""
        out = np.zeros((m, l))
        out[kept] = values.T
        return out

    overall = np.zeros(m)
    overall[kept] = raters.overall
    return Solution(
        every.mean,
        for_all(np.where(active[:, None], weight * scale, 0)),
        for_all(np.where(active[:, None], weight * c, 0)),
        own_noise,
        noise,
        filter,
        frequency,
        overall[first],
        *(np.empty((2, m, 0)) if scales is None else scales),
    )


def apply(block: Predictions, solution: Solution) -> FloatArray:
    """Pool the votes on each label and filter the readings."""
    block = _on_scale(block, solution)
    kind = solution.vote.dtype
    A, said = connections(block, kind), spoken(block, kind)
    total = solution.information.sum(axis=0)
    if said is None:
        # The same for all instances are the information, which goes into the filter, and what the means take off.
        filter = solution.filter * ratio(np.ones_like(total), total, np.zeros_like(total))[:, None]
        scores = weighted_product(A, solution.vote, filter)
        scores += solution.prior - (solution.vote * solution.mean).sum(axis=0) @ filter
    else:
        votes = weighted_sum(A, solution.vote) - weighted_sum(said, solution.vote * solution.mean)
        reading = votes * _per_vote(weighted_sum(said, solution.information), solution)
        scores = solution.prior + product(reading, solution.filter)
    np.maximum(scores, 0, out=scores)
    scores += 1e-6 * solution.prior
    return scores


def contributions(block: Predictions, solution: Solution, label: int) -> Contributions:
    """Take the score of the block's one instance apart: by how much each vote moves it away from the frequency."""
    scores, said = statements(_on_scale(block, solution))
    votes = solution.vote * (scores - said * solution.mean)
    moved = votes * _per_vote((said * solution.information).sum(axis=0), solution) * solution.filter[:, label]
    prior = float(solution.prior[label])
    below = min(prior + float(moved.sum()), 0.0)
    return Contributions(prior + 1e-6 * prior, moved, -below)


def _on_scale(block: Predictions, solution: Solution) -> Predictions:
    """Bring a block's scores to the scale that was fitted."""
    block = block.weighted(None)
    return block.rescaled(Scales(solution.scale_at, solution.scale_to)) if solution.scale_at.size else block


def _per_vote(heard: FloatArray, solution: Solution) -> FloatArray:
    """Tell by what votes are multiplied to give readings, where those that spoke bring the information `heard`."""
    total = solution.information.sum(axis=0)
    some = heard > 1e-9 * np.maximum(total, 1e-300)
    # Fewer votes, more noise: the reading is shrunk by how much more there is than the filter expects.
    fewer = solution.own_noise * total / np.where(some, heard, 1.0)
    noise = fewer + solution.noise - solution.own_noise
    return np.where(some, (1 + solution.noise) / (1 + noise) / np.where(some, heard, 1.0), 0.0)


def _moments(statistics: Statistics) -> Moments:
    """Turn sums to means and covariances, each over the instances about which both models spoke."""
    m, l = statistics.total.shape
    together = statistics.together + float(statistics.n_complete)
    pairs = np.broadcast_to(together, (m, l, m, l))
    said = statistics.said_together + statistics.complete[:, :, None, None]
    spoke = np.einsum("kjkj->kj", pairs)
    mean = ratio(statistics.total, spoke, 0.0)
    here, there = mean[:, :, None, None], mean[None, None]
    crossed = said * there
    covariance = np.asarray(statistics.products) - crossed  # large, so worked on in place
    covariance -= crossed.transpose(2, 3, 0, 1)
    covariance += np.multiply(together * here, there, out=crossed)
    covariance /= np.maximum(together, 1)
    return Moments(mean, covariance, np.einsum("kjqj->jkq", pairs).copy())


def _noise(errors: FloatArray, alike: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Find the noise of each label's reading from the weights (l, k) of the models' errors.

    Models made alike may err alike, which their agreement cannot show. What they have in common is taken to be a
    reading of the truth as noisy as each is a reading of it; 2, the mean squared difference of unrelated standardised
    votes, is the most there can be.
    """
    own = (errors**2).sum(axis=1)
    kin = np.maximum(np.einsum("jk,kq,jq->j", errors, alike, errors) - own, 0)
    return own, np.maximum(own, np.minimum((1 + kin) ** 2 - 1, 2.0))


def _level(reliability: FloatArray, frequency: FloatArray) -> float:
    """Average the squared reliability over labels, each by its variance, and return its root."""
    variance = np.maximum(frequency * (1 - frequency), 0)
    return max(float(np.sqrt((variance * reliability**2).sum() / max(variance.sum(), 1e-12))), 0.03)


def _strangeness(alike: FloatArray, overall: FloatArray) -> float:
    """Average 1 minus the kinship over pairs of different models, each pair by how reliable both are."""
    weight = np.outer(overall**2, overall**2) * (1 - np.eye(len(overall)))
    return 1 - float((weight * alike).sum() / max(weight.sum(), 1e-12))


def _gain(reliability: FloatArray, lean: float, level: float, frequency: FloatArray) -> FloatArray:
    """Find the scale of the truth on each label (l,).

    The truth reads like one more rater, as reliable on a label as those who are trusted there; over the panel its
    reliability lies between theirs, `level`, and 1, and the middle (of the logarithms) is taken.
    """
    variance = np.maximum(frequency * (1 - frequency), 0)
    gain = np.maximum(reliability, 0.03) ** (1 - lean / 2) / np.sqrt(level) * np.sqrt(variance)
    return np.asarray(np.where(reliability > 0, gain, 0))


def _signal(votes: FloatArray, reliable: FloatArray, moments: Moments) -> FloatArray:
    """Correlate the labels' common signals (l, l), from pairs of different models as far as there are any."""
    together = np.einsum("jk,kjqi,iq->ji", votes, moments.covariance, votes, optimize=True)
    alone = np.einsum("jk,kjki,ik->ji", votes, moments.covariance, votes, optimize=True)
    of_pairs = 1 - reliable @ reliable.T
    usable = np.clip(2 * of_pairs, 0, 1)
    found = usable * (together - alone) / np.maximum(of_pairs, 1e-3) + (1 - usable) * together
    found = (found + found.T) / 2
    np.fill_diagonal(found, 1.0)
    return np.asarray(found)


def _chance(votes: FloatArray, moments: Moments) -> FloatArray:
    """Tell the sampling variance of the correlations that `_signal` finds (l, l), were the labels unrelated."""
    variance = np.einsum("jk,jkq,jq->j", votes, moments.by_label(), votes, optimize=True)
    size, n = np.abs(votes), np.einsum("jkk->jk", moments.both)
    n = np.maximum((size * n).sum(axis=1) / np.maximum(size.sum(axis=1), 1e-300), 1)
    return np.asarray(np.outer(variance, variance) / np.sqrt(np.outer(n, n)))


def _shrunk(found: FloatArray, chance: FloatArray, rounds: int = 50) -> FloatArray:
    """Draw correlations to 0 as far as chance explains them; their spread is estimated from all of them."""
    different = ~np.eye(len(found), dtype=np.bool_)
    squared, chance = found[different] ** 2, chance[different]
    if not squared.size:
        return found
    spread = max(float((squared - chance).mean()), 1e-6)
    for _ in range(rounds):
        trust = (spread / (spread + chance)) ** 2
        spread = max(float((trust * (squared - chance)).sum() / max(trust.sum(), 1e-300)), 1e-8)
    drawn = found.copy()
    drawn[different] *= spread / (spread + chance)
    return drawn


def _correlations(found: FloatArray) -> FloatArray:
    """Make a matrix of estimates one that correlations can have: no negative eigenvalue, ones on the diagonal."""
    values, vectors = linalg.eigh(found)
    if values[0] >= 0:
        return found
    near = (vectors * np.maximum(values, 0)) @ vectors.T
    size = np.sqrt(np.maximum(np.diag(near), 1e-12))
    return np.asarray(near / np.outer(size, size))


class RaterFilter(Method):
    """The rater filter: reliable models, label by label, and related labels; nothing needs to be set.

    Parameters
    ----------
    weights
        How much each model counts beside what its agreement with the others says: a number for each, in their order or
        by name. A vote of weight 2 weighs twice as much, one of weight 0 nothing; ``None``: all alike.
    rescale
        Whether models' scores are brought to one scale first (see `rescale`); decisions stay as they are.

    Attributes
    ----------
    model_weights_
        How reliable each model is over all labels (m,): the correlation of what it says with what models have in
        common. Near 0 it answers at random; below 0 it says the opposite.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, _ = mlc.datasets.make_panel(quality=[0.8, 0.8, 0.8, 0.8, 0], shared_errors=0, random_state=0)
    >>> weights = mlc.RaterFilter().fit(panel).model_weights_
    >>> (weights[:4] > 0.5).all() and abs(weights[4]) < 0.1
    np.True_
    """

    name = "Filter"
    in_float32 = ("mean", "vote", "information", "own_noise", "noise", "filter", "prior")
    one_thread_below = 512

    def __init__(self, weights: Weights = None, rescale: bool = True) -> None:
        self.weights = weights
        self.rescale = rescale

    def check(self) -> None:
        """Refuse settings that no solution can be found with."""
        if not isinstance(self.rescale, bool):
            raise InputError(f"rescale: found {self.rescale!r}, expected True or False")

    def prepare(self, source: Source, gather: Gather[Any]) -> Scales | None:
        """Find the scale that scores are brought to, in a pass of its own."""
        return scales_of.solve(gather(scales_of.statistics)) if self.rescale and source.has_scores else None

    def sums(self, block: Predictions, prepared: Scales | None) -> Statistics:
        """Return the statistics of a block, its scores on one scale."""
        return statistics(block if prepared is None else block.rescaled(prepared))

    def solve(self, statistics: Statistics, weights: FloatArray | None, prepared: Scales | None) -> Solution:
        """Solve with this method's settings."""
        return solve(statistics, weights, prepared)
