r"""The rater filter: trust each rater as far as the others bear it out, let related labels help, and keep the vote.

Each model is a rater of unknown reliability. Agreement between different raters shows how reliable each is (`raters`)
and how labels go together in what raters have in common, not in any one's errors. The answers about a label are pooled
into one reading by generalised least squares; the readings of all labels go through a Wiener filter, which shrinks
each by its own noise and lends it what related labels say:

.. math::

    z_{ij} = \frac{\sum_k w_{kj} (y^k_{ij} - \mu_{kj})}{\sum_k w_{kj} c_{kj} \sigma_{kj}}, \qquad
    f_i = \pi + z_i\, (\Phi + N)^{-1} \Phi\, \operatorname{diag}(g), \qquad
    \hat y_{ij} = \frac{\max(f_{ij}, 0) + h\, v_{ij}}{1 + h}, \quad h = 2 (1 - \kappa)^2

with :math:`\Phi` the correlations of the labels' common signals, `N` the noise of the readings, :math:`\pi` the labels'
frequencies, `g` the scale on which trusted raters say it, `v` the vote with each rater's reliability as its weight, and
:math:`\kappa` how far the raters are replicas of one another. Strangers' votes count twice as much as the filter's
opinion of them; replicas vote alike when they are wrong, so of those only the filter's opinion counts. docs/theory.md
derives each part and says what was chosen by looking at data with truth.

The sums are small whatever the number of instances, and need three rounds: rates of saying yes (m, l), pairs of raters
(m, m), pooled readings (l, l).
"""

from typing import Annotated, Any, NamedTuple

import numpy as np
from scipy import linalg, sparse

from ...errors import expect
from ...execution.statistics import Axes
from ...linalg.annotations import make_annotations
from ...linalg.block_sums import FloatArray, column_sums, dense, gram, product, ratio
from ...linalg.label_map import HeadTailMap
from ...linalg.vote_patterns import answers, by_model, pooled
from ...predictions import BasePredictions, Predictions
from ...predictions import quantile_normalization as scales_of
from ...predictions.validation import Weights
from ..base import BaseCombiner, Gather, PredictionsLike
from ..contributions import Contributions, statements
from . import many_raters, rater_rounds
from .learning import correction, revised, revised_parts
from .rater_rounds import Trust, centred, on_scale
from .raters import drawn, label_correlations, products_of_raters, replicas, signals

_TINY = 1e-9  # information below this is none
_MOST_NOISE = 3.0  # of a reading by raters whose errors are one
_VOTING = 2.0  # how much strangers' votes count beside the filter's opinion
_FLOOR = 1e-6  # labels about which nothing is left keep the order of their frequencies


class WeightedConsensusStatistics(NamedTuple):
    """Third round: Z = Σ_k u x is the reading of a cell, I = Σ_k b of those who spoke its information."""

    together: Annotated[Any, Axes("l l", symmetric=True)]  # Σ Z Z'
    alone: Annotated[Any, Axes("l l", symmetric=True)]  # Σ_k (u x)(u x)'
    informed: Annotated[Any, Axes("l l", symmetric=True, least=0)]  # Σ I I'
    informed_alone: Annotated[Any, Axes("l l", symmetric=True, least=0)]  # Σ_k b b'
    squares: Annotated[Any, Axes("l", least=0)]  # Σ (Z/I)²
    read: Annotated[Any, Axes("l", least=0)]  # about how many instances anybody spoke
    agreed: Annotated[Any, Axes("m l")]  # Σ x_k Z of the others
    witnessed: Annotated[Any, Axes("m l", least=0)]  # Σ I of the others, where k spoke
    witnesses: Annotated[Any, Axes("m l", least=0)]  # Σ Z² of the others, where k spoke
    levels: Annotated[
        Any, Axes("? l", least=0)
    ]  # `products_of_raters` of those that are reliable
    # Of many labels, `together` and `alone` hold the rows Σ_k u y and u y, `informed` and `informed_alone` the left of
    # two factors (m, l) whose right one is b, and what follows what means take off.
    together_less: Annotated[Any, Axes("m l")] = 0
    alone_less: Annotated[Any, Axes("m l")] = 0


class WeightedConsensusSolution(NamedTuple):
    """How answers are pooled into one reading of each label, and readings filtered."""

    mean: Annotated[FloatArray, Axes("m l")]  # μ
    vote: Annotated[FloatArray, Axes("m l")]  # w, what an answer adds to the reading
    information: Annotated[FloatArray, Axes("m l", least=0)]  # w c σ
    noise: Annotated[FloatArray, Axes("l", least=0)]  # N, as it usually is
    kin_noise: Annotated[
        FloatArray, Axes("l", least=0)
    ]  # the part of it that raters have in common
    filter: Annotated[Any, Axes("l l")]  # (Φ + N)⁻¹ Φ diag(g); `Headed` of many labels
    prior: Annotated[FloatArray, Axes("l")]  # π
    trusted: Annotated[
        FloatArray, Axes("m", least=0)
    ]  # how much each rater's vote weighs
    votes: Annotated[
        FloatArray, Axes("", least=0, most=1)
    ]  # h/(1 + h), the vote's part of a score
    overall: Annotated[
        FloatArray, Axes("m")
    ]  # each rater's reliability over all labels
    scale_at: Annotated[FloatArray, Axes("m ?")]
    scale_to: Annotated[FloatArray, Axes("m ?")]
    learned: Annotated[FloatArray | None, Axes("? l")] = (
        None  # what known answers correct (`learning`); empty: nothing
    )


def statistics(block: Predictions, known: Trust) -> WeightedConsensusStatistics:
    """Add up products of pooled readings, and what each rater's answers have to do with the others' readings."""
    m, n, l = block.shape
    block = on_scale(block, known)
    if block.many:
        return WeightedConsensusStatistics(
            *many_raters.sums(block, known, rater_rounds.reliable(known))
        )
    u, b, mean = known.weight, known.information, known.mean
    trusted = rater_rounds.reliable(known)
    if block.complete:
        A = answers(block)
        S, off, I = (
            pooled(A, u),
            (u * mean).sum(axis=0),
            b.sum(axis=0),
        )  # Z = S less what means take off
        S = S.tocsc() if sparse.issparse(S) else S
        alone, (squared, with_all) = np.zeros((l, l)), np.empty((2, m, l))
        for k, said in enumerate(by_model(A, m)):
            products = gram(said)
            alone += np.outer(u[k], u[k]) * products
            squared[k], with_all[k] = np.diag(products), column_sums(said * S)
        total = column_sums(A).reshape(m, l) if block.has_scores else squared
        crossed = (u * mean).T @ (u * (total - n / 2 * mean))
        alone -= crossed + crossed.T
        own = np.maximum(squared - 2 * mean * total + n * mean**2, 0)  # Σ x²
        sums = (u * total).sum(axis=0)
        beside = np.outer(off, sums - n / 2 * off)
        together = gram(S) - beside - beside.T if sparse.issparse(S) else gram(S - off)
        with_all -= off * total + mean * (sums - n * off)  # Σ x Z
        squares = np.maximum(np.diag(together), 0)
        read = np.where(I > _TINY, float(n), 0.0)
        return WeightedConsensusStatistics(
            together, alone, n * np.outer(I, I), n * b.T @ b, ratio(squares, np.where(I > _TINY, I, 0) ** 2, 0.0), read,
            with_all - u * own, np.maximum(n * (I - b), 0), np.maximum(squares - 2 * u * with_all + u**2 * own, 0),
            rater_rounds.complete_levels(block, A, trusted),
        )  # fmt: skip
    said = make_annotations(block)
    x, spoke = centred(said, mean), said.spoke.astype(np.float64)
    ux, bs = u[said.rater] * x, b[said.rater] * spoke
    Z, I = said.of_instances(ux), said.of_instances(bs)
    heard = I > _TINY
    others, informed = (Z[said.instance] - ux) * spoke, (I[said.instance] - bs) * spoke
    scores, spoken = (
        each * trusted[said.rater][:, None] for each in (said.scores, spoke)
    )
    levels = products_of_raters(
        [*map(said.of_instances, rater_rounds.powers(scores))],
        said.of_instances(spoken),
    )
    return WeightedConsensusStatistics(
        Z.T @ Z, ux.T @ ux, I.T @ I, bs.T @ bs, (ratio(Z, np.where(heard, I, 0.0), 0.0) ** 2).sum(axis=0),
        heard.sum(axis=0, dtype=np.float64),
        said.of_raters(x * others), said.of_raters(informed), said.of_raters(others**2), levels,
    )  # fmt: skip


def solve(
    sums: WeightedConsensusStatistics, weights: FloatArray | None, known: Trust
) -> WeightedConsensusSolution:
    """Rate the raters label by label, correlate the labels, and filter along them."""
    l = len(known.frequency)
    n = np.maximum(sums.read, 1)
    active = sums.read * known.information.sum(axis=0) > _TINY
    signal = None if isinstance(sums.together, tuple) else signals(*sums[:4])
    size = many_raters.variances(sums, known) if signal is None else np.diag(signal)
    variance = sums.squares / n
    ease = np.ones(l)
    if active.any():
        # How much easier a label is than usual. Standardised signals have no sampling variance, their noise has.
        chance = 2 * np.maximum(variance**2 - 1, 0.01) / n
        ease[active] = np.clip(
            drawn(size[active], 1.0, chance[active], least=1e-3), 0.02, 4.0
        )
    c = _by_label(sums, known, np.sqrt(ease), active)
    # Raters of equal rates may still err each on its own.
    known = known._replace(
        alike=np.where(
            np.eye(len(known.alike)), 1.0, known.alike * replicas(sums.levels)
        )
    )

    # Of copies, that of the loudest.
    given = known.voice * (known.copies * (1.0 if weights is None else weights)).max(
        axis=1
    )
    vote, information = (
        each * given[:, None]
        for each in rater_rounds.answer_weights(c, known.deviation)
    )
    noise, kin = _noise(c, known, information, n)
    gain, level = rater_rounds.gain_of(c, known)
    at, easily = np.flatnonzero(active), np.sqrt(ease)
    filter: Any = np.zeros((l, l)) if signal is not None else None
    if signal is None:
        filter = many_raters.filtering(
            sums, known, easily, variance / ease / np.sqrt(n), active, noise
        )
        filter = filter._replace(after=filter.after * gain[filter.labels])
    elif len(at):
        correlations = label_correlations(
            signal / np.outer(easily, easily), variance / ease, n, active
        )
        system = correlations + np.diag(noise[at] + 1e-6)
        filter[np.ix_(at, at)] = (
            linalg.solve(system, correlations, assume_a="pos") * gain[at]
        )
    trusted = np.maximum(known.reliability, 0)
    if not (trusted * given).any():
        trusted = (known.heard.sum(axis=1) > 0).astype(np.float64)
    trusted = trusted * given
    h, overall = (
        _VOTING * (1 - rater_rounds.kinship_of_all(known, level)) ** 2,
        known.copies @ known.reliability,
    )
    votes = (
        h / (1 + h) if overall.any() and len(overall) > 1 else 1.0
    )  # without a signal there is nothing else
    return WeightedConsensusSolution(
        known.mean, vote, information, noise, kin, filter, known.frequency, trusted / (trusted.max() or 1.0),
        np.asarray(votes), overall, known.scale_at, known.scale_to,
    )  # fmt: skip


def apply(block: Predictions, solution: WeightedConsensusSolution) -> Any:
    """Pool the answers about each label, filter the readings, and add the vote."""
    block = on_scale(block, solution)
    if isinstance(solution.filter, HeadTailMap):
        return many_raters.apply(block, solution, _per_answer, _FLOOR)
    kind = solution.vote.dtype
    # Both parts of the score are multiplied before they are made, not after: each pass over (n, l) counts.
    share = kind.type(1 - solution.votes)
    filter, prior = solution.filter * share, solution.prior * share
    floor = _FLOOR * prior
    trusted = np.repeat(
        solution.trusted[:, None] * solution.votes, len(prior), axis=1
    ).astype(kind)
    if block.complete:
        A = answers(block, kind)
        # The same for all instances: the factor of the readings, which goes into the filter, and what means take off.
        filter = (
            filter * _per_answer(solution.information.sum(axis=0), solution)[:, None]
        )
        scores = product(pooled(A, solution.vote), filter)
        scores += prior + floor - (solution.vote * solution.mean).sum(axis=0) @ filter
        vote = dense(pooled(A, trusted / kind.type(solution.trusted.sum() or 1.0)))
    else:
        said = make_annotations(block)
        rater, spoke = said.rater, said.spoke.astype(kind)
        reading = said.of_instances(solution.vote[rater] * centred(said, solution.mean))
        reading = reading * _per_answer(
            said.of_instances(solution.information[rater] * spoke), solution
        )
        scores = prior + floor + product(reading, filter)
        heard = said.of_instances(solution.trusted[rater][:, None] * spoke)
        silent = np.broadcast_to(
            (solution.prior * solution.votes).astype(kind), heard.shape
        )
        vote = ratio(said.of_instances(trusted[rater] * said.scores), heard, silent)
    np.maximum(scores, floor, out=scores)
    scores += vote
    if solution.learned is None or not len(solution.learned):
        return np.asarray(scores, dtype=kind)
    said = make_annotations(block)
    moved = said.of_instances(
        solution.learned[2:][said.rater] * centred(said, solution.mean)
    )
    return np.asarray(revised(scores, moved, solution.learned), dtype=kind)


def learn(
    block: Predictions, solution: WeightedConsensusSolution
) -> WeightedConsensusSolution:
    """Find out from instances with known answers how the scores are to be corrected, if at all."""
    solution = solution._replace(
        learned=None
    )  # what was learned before is learned anew
    said, gold = on_scale(block, solution).to_array(), block.gold
    answers = said[0] * np.nan if gold is None else gold.answers
    found = correction(
        apply(block, solution), np.nan_to_num(said - solution.mean[:, None]), answers
    )
    return solution._replace(learned=said[0, :0] if found is None else found)


def contributions(
    block: Predictions, solution: WeightedConsensusSolution, label: int
) -> Contributions:
    """Take the score of the block's one instance apart: by how much each answer moves it away from the frequency."""
    scores, said = statements(on_scale(block, solution))
    answers = solution.vote * (scores - said * solution.mean)
    many = isinstance(solution.filter, HeadTailMap)
    filter = (
        solution.filter.column(label, scores.shape[1])
        if many
        else solution.filter[:, label]
    )
    moved = (
        answers
        * _per_answer((said * solution.information).sum(axis=0), solution)
        * filter
    )
    prior = float(solution.prior[label])
    below = min(prior + float(moved.sum()), 0.0)
    heard = float((solution.trusted * said[:, label]).sum())
    votes = float(solution.votes)
    moved *= 1 - votes
    if heard > 0:
        moved[:, label] += (
            votes * solution.trusted * (scores - said * prior)[:, label] / heard
        )
    found = Contributions(
        (1 + _FLOOR * (1 - votes)) * prior, moved, (votes - 1) * below
    )
    return revised_parts(found, scores - said * solution.mean, solution.learned, label)


def _by_label(
    sums: WeightedConsensusStatistics, known: Trust, ease: FloatArray, active: Any
) -> FloatArray:
    """Estimate each rater's reliability on each label (m, l), drawn to what its rater and label let expect."""
    r, bound = known.reliability, known.highest
    c = np.clip(
        np.sign(r)[:, None] * np.minimum(np.abs(r)[:, None], bound) * ease, -0.99, 0.99
    )
    others = np.maximum(ease * sums.witnessed, 1e-12)
    most = (
        known.deviation * np.sqrt(known.heard) * np.sqrt(sums.witnesses)
    )  # Cauchy–Schwarz; files may say anything
    found = ratio(np.clip(sums.agreed, -most, most), known.deviation, 0.0) / others
    chance = np.maximum(sums.witnesses, 1e-12) / others**2 * (1 - c**2)
    usable = (
        (sums.witnessed > _TINY) & (known.deviation > 0) & (known.heard > 0) & active
    )
    for k in np.flatnonzero(usable.sum(axis=1) > 1):
        some = usable[k]
        c[k, some] = drawn(found[k, some], c[k, some], chance[k, some])
    negative = (r < 0)[:, None]
    c = np.clip(c, np.where(negative, -0.99, 0.0), np.where(negative, 0.0, 0.99))
    return np.where(known.deviation > 0, np.sign(c) * np.minimum(np.abs(c), bound), 0.0)


def _noise(
    c: FloatArray, known: Trust, information: FloatArray, n: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Find the usual noise of each label's reading, and the part of it that kin have in common (l,).

    Raters made alike may err alike, which their agreement cannot show. What they have in common is taken to be a
    reading of the truth as noisy as each is a reading of it.
    """
    usual = np.maximum(
        (information * known.heard).sum(axis=0) / n, _TINY
    )  # of those who speak about an instance
    own = 1 / usual
    total = np.maximum(information.sum(axis=0), _TINY)
    errors = (
        np.where(information > 0, np.sqrt(np.maximum(information, 0)), 0.0) / total
    )  # w σ √(1 − c²) = √(w c σ)
    kin = np.maximum(
        np.einsum("kj,kq,qj->j", errors, known.alike, errors, optimize=True)
        - 1 / total,
        0,
    )
    noise = np.maximum(own, np.minimum((1 + kin) ** 2 - 1, _MOST_NOISE))
    return noise, noise - own


def _per_answer(
    heard: FloatArray, solution: WeightedConsensusSolution, labels: Any = slice(None)
) -> FloatArray:
    """Tell by what pooled answers are multiplied to give readings, where those who spoke bring the information `heard`.

    Fewer answers, more noise: the reading is shrunk by how much more there is than the filter expects.
    """
    some = heard > _TINY
    heard = np.where(some, heard, 1.0)
    return np.where(
        some,
        (1 + solution.noise[labels])
        / (1 + 1 / heard + solution.kin_noise[labels])
        / heard,
        0.0,
    )


class WeightedConsensus(BaseCombiner):
    """The rater filter: reliable raters, related labels and the vote; nothing needs to be set.

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
        common; negative where it says the opposite.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, _ = mlc.datasets.make_panel(quality=[0.8, 0.8, 0.8, 0.8, 0], shared_errors=0, random_state=0)
    >>> weights = mlc.WeightedConsensus().fit(panel).model_weights_
    >>> (weights[:4] > 0.5).all() and abs(weights[4]) < 0.1
    np.True_
    """

    Statistics = WeightedConsensusStatistics
    Solution = WeightedConsensusSolution
    learns_from_gold = True
    identifier = "weighted_consensus"
    name = "Filter"
    takes_many = True
    pairs_labels = True
    in_float32 = (
        "mean",
        "vote",
        "information",
        "noise",
        "kin_noise",
        "filter",
        "prior",
    )
    one_thread_below = 512
    rounds = rater_rounds.ROUNDS

    def __init__(self, weights: Weights = None, rescale: bool = True) -> None:
        self.weights = weights
        self.rescale = rescale

    @staticmethod
    def _replace_fields(solution: Any, changes: Any) -> Any:
        return solution._replace(**changes)

    @staticmethod
    def _make_block(predictions: Predictions) -> Any:
        return predictions

    def check(self) -> None:
        """Refuse settings that no solution can be found with."""
        expect(
            isinstance(self.rescale, bool),
            "rescale",
            repr(self.rescale),
            "True or False",
        )

    def prepare(self, source: BasePredictions, reduce_blocks: Gather[Any]) -> Any:
        """Find the scale that scores are brought to, then go through the rounds before the last."""
        scaled = self.rescale and source.has_scores
        return self.go_through(
            scales_of.estimate_scales(reduce_blocks(scales_of.count_scores)) if scaled else None,
            reduce_blocks,
        )

    def _compute_pass(self, block: Predictions, state: Any) -> Any:
        """Return the statistics of one block in the pass that follows `state`."""
        if self.rounds_behind(state) == len(self.rounds):
            return statistics(block, state)
        return super()._compute_pass(block, state)

    def _compute_statistics(self, block: Any) -> WeightedConsensusStatistics:
        """Return the statistics of the last pass."""
        return statistics(block, self.prepared_)

    def _solve(
        self, statistics: WeightedConsensusStatistics
    ) -> WeightedConsensusSolution:
        """Return the solution of the merged statistics."""
        return solve(statistics, self.weights_, self.prepared_)

    @staticmethod
    def _apply(block: Any, solution: WeightedConsensusSolution) -> Any:
        """Return the consensus scores of one block."""
        return apply(block, solution)

    @staticmethod
    def _learn(
        block: Predictions, solution: WeightedConsensusSolution
    ) -> WeightedConsensusSolution:
        """Correct the solution by the gold labels of a block."""
        return learn(block, solution)

    @staticmethod
    def _contributions(
        block: Any, solution: WeightedConsensusSolution, label: int
    ) -> Contributions:
        """Return what the score of the block's one instance is the sum of."""
        return contributions(block, solution, label)

    def describe_solution(self, solution: WeightedConsensusSolution) -> str:
        """Say in a few words what the raters' agreement showed."""
        r, share = solution.overall, float(solution.votes)
        if solution.learned is not None:
            return "known answers " + (
                "correct it"
                if len(solution.learned)
                else "show nothing that would be better"
            )
        if len(r) == 1:
            return "there is one model, which is believed"
        if not r.any():
            return "the models do not agree beyond chance, so the scores are votes"
        alike = ", much alike" if share < 0.35 else ""
        return f"reliability {r.min():.2f} to {r.max():.2f}{alike}; plain votes are {share:.0%} of a score"


def weighted_consensus(
    predictions: PredictionsLike, weights: Weights = None, rescale: bool = True
) -> FloatArray:
    """Return the consensus scores of `WeightedConsensus`.

    Parameters
    ----------
    predictions
        `Predictions`, or anything that its constructor takes.
    weights
        Weight of each model, in their order or by name; by default all are equal.
    rescale
        Whether models' scores are brought to one scale first.

    Returns
    -------
    ndarray of shape (n, l)
        Higher scores are more relevant.
    """
    return WeightedConsensus(weights=weights, rescale=rescale).fit_transform(
        predictions
    )
