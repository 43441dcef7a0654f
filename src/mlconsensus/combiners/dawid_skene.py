r"""Dawid-Skene, label by label: error rates of the models by expectation maximization.

For each label separately, an instance has the label with probability :math:`\pi`, and
model `k` votes yes with probability :math:`a_k` if it does and :math:`b_k` if it does
not, independently of the other models. EM starts from the majority vote and alternates

.. math::

    t_i = P(\text{true} \mid \text{votes}_i) \quad\text{(E)}, \qquad
    \pi = \overline{t}, \; a_k = \frac{\sum_i t_i y_{ik}}{\sum_i t_i s_{ik}}, \;
    b_k = \frac{\sum_i (1 - t_i) y_{ik}}{\sum_i (1 - t_i) s_{ik}} \quad\text{(M)}

where :math:`s_{ik}` is 1 if model `k` voted on instance `i`. Scores of at least 0.5
are a yes. EM only needs the number of instances with each pattern of votes. These
counts can be added: one pass collects them, and all iterations run in `_solve`. Votes
of a model of weight `w` count `w` times. An instance without votes gets :math:`\pi`; a
label without votes gets 0. For gold labels, :math:`t_i` is the gold label in every
iteration: the patterns of such pairs are counted separately.

================  =====================  ========================================
symbol            variable               shape
================  =====================  ========================================
:math:`t`         ``truth``              (p,), one value per pattern
:math:`\pi`       ``prior``              (l,)
:math:`a, b`      ``if_true, if_false``  (m, l)
================  =====================  ========================================

A. P. Dawid, A. M. Skene: Maximum likelihood estimation of observer error-rates using
the EM algorithm. doi:10.2307/2346806
"""

from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np
from scipy import sparse, special

from ..execution.statistics import Axes
from ..linalg.block_sums import ratio
from ..linalg.sparse_scores import SparseScores, to_scores
from ..predictions import BoolArray, FloatArray, IntArray, Matrix
from ..predictions.blocks import PredictionBlock, VotePatterns
from ..predictions.validation import Weights, positive, whole
from .base import BaseCombiner, PredictionsLike
from .contributions import Contributions, of_label

# Smallest number of votes of each kind, so that no logarithm is infinite.
_FEWEST_VOTES = 1e-10
# The largest rate: a million yes votes and not a single no would be rounded to 1.
_LARGEST_RATE = 1 - 1e-16


@dataclass(frozen=True, kw_only=True)
class DawidSkeneStatistics:
    """Patterns of votes with the number of instances that have them."""

    # Of pairs without a gold label; at most 3**m patterns for each label.
    patterns: Annotated[VotePatterns, VotePatterns]
    # Of pairs whose gold label is no; None without gold labels.
    gold_no: Annotated[VotePatterns | None, VotePatterns] = None
    # Of pairs whose gold label is yes; None without gold labels.
    gold_yes: Annotated[VotePatterns | None, VotePatterns] = None


@dataclass(frozen=True, kw_only=True)
class DawidSkeneSolution:
    """The parameters of each label and model."""

    # Probability of the label.
    prior: Annotated[FloatArray, Axes("l", least=0, most=1)]
    # a: rate of yes votes for instances with the label.
    if_true: Annotated[FloatArray, Axes("m l", least=1e-300, most=_LARGEST_RATE)]
    # b: rate of yes votes for instances without the label.
    if_false: Annotated[FloatArray, Axes("m l", least=1e-300, most=_LARGEST_RATE)]
    # How often each vote of a model counts.
    weights: Annotated[FloatArray | float, Axes("m", least=0)] = 1.0


@dataclass(frozen=True, kw_only=True)
class _Votes:
    """The patterns of votes of some labels, ready for EM."""

    labels: IntArray  # (p,)
    counts: FloatArray  # (p,)
    gold: FloatArray | None  # (p,) gold label, NaN if there is none
    n_instances: FloatArray  # (l,) number of instances of each label
    voters: Matrix  # CSR (p, 2 * m * l): 1 for each yes, then for each no vote

    def select(self, is_active: BoolArray) -> Self:
        """Return the patterns of active labels, unless most labels are active.

        Values of other labels are not used; they only cost time.
        """
        is_selected = is_active[self.labels]
        if 2 * np.count_nonzero(is_selected) > len(is_selected):
            return self

        rows = np.flatnonzero(is_selected)
        gold = self.gold
        if gold is not None:
            gold = gold[rows]
        return replace(
            self,
            labels=self.labels[rows],
            counts=self.counts[rows],
            gold=gold,
            voters=self.voters[rows],
        )

    def sum_by_label(self, values: FloatArray) -> FloatArray:
        """Return the sum of values (p,) for each label."""
        n_labels = len(self.n_instances)
        sums = np.bincount(self.labels, values, minlength=n_labels)
        return np.asarray(sums, dtype=np.float64)

    def sum_votes(self, for_yes: FloatArray, for_no: FloatArray) -> FloatArray:
        """Return the sum of what the votes of each pattern count, (p,)."""
        values = np.vstack([for_yes, for_no])
        grid = _make_grid(len(values) * np.abs(values).max(axis=0))
        values = np.round(values / grid) * grid
        return np.asarray(self.voters @ values.ravel())

    def fix_gold_labels(self, truth: FloatArray) -> FloatArray:
        """Return t on a grid, with gold labels in place of estimates."""
        grid = _make_grid(self.n_instances)[self.labels]
        rounded = np.divide(truth, grid)
        np.round(rounded, out=rounded)
        rounded *= grid
        if self.gold is None:
            return rounded
        return np.where(np.isnan(self.gold), rounded, self.gold)


@dataclass(frozen=True, kw_only=True)
class _ExpectedCounts:
    """What is expected to be counted if the truth of each pattern is known by t."""

    n_true: FloatArray  # (l,) instances with the label
    n_false: FloatArray  # (l,) instances without it
    votes_if_true: FloatArray  # (2, m, l) yes and no votes for instances with it
    votes_if_false: FloatArray  # (2, m, l) yes and no votes for the others


class DawidSkene(BaseCombiner):
    """Dawid-Skene label by label: votes weighted by the estimated error rates.

    Parameters
    ----------
    n_iter : int, default=100
        Largest number of EM iterations.
    tol : float, default=1e-5
        A label has converged when an iteration increases its log-likelihood by less
        than this for each vote.
    weights : sequence or mapping, default=None
        Weight of each model, in their order or by name. By default all are equal.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> first = [[1], [1], [0], [0]]
    >>> third = [[1], [0], [1], [0]]
    >>> mlc.DawidSkene().fit_transform([first, first, third]).round(2)
    array([[1.], [1.], [0.], [0.]])
    """

    Statistics = DawidSkeneStatistics
    Solution = DawidSkeneSolution
    identifier = "dawid_skene"
    name = "DS"
    takes_many = True

    def __init__(
        self, n_iter: int = 100, tol: float = 1e-5, weights: Weights = None
    ) -> None:
        self.n_iter = n_iter
        self.tol = tol
        self.weights = weights

    def check(self) -> None:
        """Raise an error for parameters that have no solution."""
        whole(self.n_iter, "n_iter", 1, 10**5)
        positive(self.tol, "tol")

    def _compute_statistics(self, block: PredictionBlock) -> DawidSkeneStatistics:
        """Count the patterns of votes, those of pairs with gold labels separately."""
        gold = block.gold
        if gold is None:
            return DawidSkeneStatistics(patterns=block.vote_patterns())

        gold_labels = np.full((block.n_instances, block.n_labels), np.nan)
        gold_labels[gold.at] = gold.answers
        return DawidSkeneStatistics(
            patterns=block.vote_patterns(np.isnan(gold_labels)),
            gold_no=block.vote_patterns(gold_labels == 0),
            gold_yes=block.vote_patterns(gold_labels == 1),
        )

    def _solve(self, statistics: DawidSkeneStatistics) -> DawidSkeneSolution:
        """Run EM on the patterns of all labels at once."""
        n_models = statistics.patterns.n_models
        n_labels = statistics.patterns.n_labels
        weights = np.ones(n_models) if self.weights_ is None else self.weights_
        votes, majority, n_votes = _join_patterns(statistics, weights)
        votes_by_label = votes.sum_by_label(votes.counts * n_votes)

        # Start from the majority vote.
        truth = votes.fix_gold_labels(majority)
        estimate = _maximize(_count_expected(votes, truth, n_models), weights)
        solution = estimate
        bound = np.full(n_labels, -np.inf)
        # A label without yes votes stays at probability 0.
        is_active = estimate.prior > 0

        for _ in range(whole(self.n_iter, "n_iter", 1)):
            if not is_active.any():
                break
            votes = votes.select(is_active)
            solution = _update(solution, estimate, is_active)

            # E step.
            log_odds = _compute_log_odds(solution)
            evidence = votes.sum_votes(log_odds.yes, log_odds.no)
            evidence += log_odds.prior[votes.labels]
            truth = votes.fix_gold_labels(special.expit(evidence))

            # M step, and the lower bound of the log-likelihood.
            expected = _count_expected(votes, truth, n_models)
            estimate = _maximize(expected, weights)
            entropy = votes.sum_by_label(votes.counts * _compute_entropy(truth))
            new_bound = entropy + _compute_bound(expected, estimate)

            with np.errstate(invalid="ignore"):
                gain = new_bound - bound
            is_active = is_active & (gain >= self.tol * votes_by_label)
            bound = new_bound
        return solution

    @staticmethod
    def _apply(
        block: PredictionBlock, solution: DawidSkeneSolution
    ) -> FloatArray | SparseScores:
        """Add the log-odds of the votes; E step."""
        log_odds = _compute_log_odds(solution)
        evidence = block.binarize().sum_predictions(log_odds.yes, log_odds.no)
        return to_scores(evidence.map(np.add, log_odds.prior).map(special.expit))

    @staticmethod
    def _contributions(
        block: PredictionBlock, solution: DawidSkeneSolution, label: int
    ) -> Contributions:
        """Return the log-odds of the prior and of each vote on the label."""
        log_odds = _compute_log_odds(solution)
        scores, is_present = block.binarize().get_instance(0)
        is_yes = scores[:, label] >= 0.5
        odds = np.where(is_yes, log_odds.yes[:, label], log_odds.no[:, label])
        vote_odds = is_present[:, label] * odds
        return Contributions(
            baseline=float(log_odds.prior[label]),
            predictions=of_label(vote_odds, label, solution.if_true.shape),
            scale="log-odds",
        )


def dawid_skene(
    predictions: PredictionsLike,
    n_iter: int = 100,
    tol: float = 1e-5,
    weights: Weights = None,
) -> FloatArray:
    """Return the consensus scores of Dawid-Skene.

    Parameters
    ----------
    predictions : Predictions or array-like of shape (m, n, l)
        `Predictions`, or anything that its constructor takes.
    n_iter : int, default=100
        Largest number of EM iterations.
    tol : float, default=1e-5
        A label has converged when an iteration increases its log-likelihood by less
        than this for each vote.
    weights : sequence or mapping, default=None
        Weight of each model, in their order or by name. By default all are equal.

    Returns
    -------
    ndarray of shape (n, l)
        Higher scores are more relevant.
    """
    combiner = DawidSkene(n_iter=n_iter, tol=tol, weights=weights)
    return combiner.fit_transform(predictions)


@dataclass(frozen=True, kw_only=True)
class _LogOdds:
    """Log-odds of the label before any vote, and what each vote adds."""

    prior: FloatArray  # (l,)
    yes: FloatArray  # (m, l)
    no: FloatArray  # (m, l)


def _join_patterns(
    statistics: DawidSkeneStatistics, weights: FloatArray
) -> tuple[_Votes, FloatArray, FloatArray]:
    """Return all patterns that have votes or a gold label.

    Also return the weighted share of yes votes and the number of votes of each, (p,).
    """
    n_models = len(weights)
    n_labels = statistics.patterns.n_labels
    parts = [(statistics.patterns, np.nan)]
    if statistics.gold_no is not None and statistics.gold_yes is not None:
        parts += [(statistics.gold_no, 0.0), (statistics.gold_yes, 1.0)]

    labels = np.concatenate([part.labels for part, _ in parts])
    counts = np.concatenate([part.counts for part, _ in parts])
    gold = None
    if len(parts) > 1:
        sizes = [len(part.labels) for part, _ in parts]
        gold = np.repeat([label for _, label in parts], sizes)
    choices = sparse.vstack([part.votes for part, _ in parts], format="csr")

    n_votes = choices @ np.tile(weights, 2)
    n_yes = choices @ np.concatenate([weights, np.zeros(n_models)])
    is_used = n_votes > 0
    if gold is not None:
        is_used |= ~np.isnan(gold)
    if not is_used.all():
        rows = np.flatnonzero(is_used)
        choices = choices[rows]
        labels = labels[rows]
        counts = counts[rows]
        n_votes = n_votes[rows]
        n_yes = n_yes[rows]
        if gold is not None:
            gold = gold[rows]

    entry_labels = np.repeat(labels, np.diff(choices.indptr))
    columns = choices.indices.astype(np.int64) * n_labels + entry_labels
    voters = sparse.csr_array(
        (np.ones(len(columns)), columns, choices.indptr),
        shape=(len(labels), 2 * n_models * n_labels),
    )
    n_instances = np.bincount(labels, counts, minlength=n_labels).astype(np.float64)
    votes = _Votes(
        labels=labels,
        counts=counts,
        gold=gold,
        n_instances=n_instances,
        voters=voters,
    )
    majority = ratio(n_yes, n_votes, 0.0)
    return votes, majority, n_votes


def _count_expected(votes: _Votes, truth: FloatArray, n_models: int) -> _ExpectedCounts:
    """Return the expected counts of instances and votes, given t."""
    # One column for instances with the label, and one for those without.
    weights = np.stack([votes.counts * truth, votes.counts * (1 - truth)], axis=1)
    vote_counts = votes.voters.T @ weights
    if_true, if_false = vote_counts.T.reshape(2, 2, n_models, -1)
    return _ExpectedCounts(
        n_true=votes.sum_by_label(weights[:, 0]),
        n_false=votes.sum_by_label(weights[:, 1]),
        votes_if_true=if_true,
        votes_if_false=if_false,
    )


def _maximize(expected: _ExpectedCounts, weights: FloatArray) -> DawidSkeneSolution:
    """Return the parameters that fit the expected counts best; M step."""
    n_instances = expected.n_true + expected.n_false
    return DawidSkeneSolution(
        prior=ratio(expected.n_true, n_instances, 0.0),
        if_true=_estimate_rates(expected.votes_if_true),
        if_false=_estimate_rates(expected.votes_if_false),
        weights=weights,
    )


def _estimate_rates(vote_counts: FloatArray) -> FloatArray:
    """Return the rate of yes votes of each model and label, (m, l)."""
    yes, no = np.maximum(vote_counts, _FEWEST_VOTES)
    return np.asarray(np.minimum(yes / (yes + no), _LARGEST_RATE))


def _compute_log_odds(solution: DawidSkeneSolution) -> _LogOdds:
    """Return the log-odds of a label that its prior and the votes stand for."""
    weights = np.reshape(solution.weights, (-1, 1))
    # A label that is never, or always, true has infinite odds.
    with np.errstate(divide="ignore"):
        prior = np.log(solution.prior) - np.log1p(-solution.prior)
    ratio_no = (1 - solution.if_true) / (1 - solution.if_false)
    return _LogOdds(
        prior=prior,
        yes=weights * np.log(solution.if_true / solution.if_false),
        no=weights * np.log(ratio_no),
    )


def _compute_entropy(truth: FloatArray) -> FloatArray:
    """Return how uncertain the truth of each pattern is, (p,)."""
    return np.asarray(special.entr(truth) + special.entr(1 - truth))


def _compute_bound(
    expected: _ExpectedCounts, solution: DawidSkeneSolution
) -> FloatArray:
    """Return the expected log-likelihood of each label.

    With the entropy of t, it is a lower bound of the log-likelihood; EM never lowers
    it.
    """
    weights = np.reshape(solution.weights, (-1, 1))
    bound = special.xlogy(expected.n_true, solution.prior)
    bound += special.xlogy(expected.n_false, 1 - solution.prior)
    for (yes, no), rates in (
        (expected.votes_if_true, solution.if_true),
        (expected.votes_if_false, solution.if_false),
    ):
        log_likelihoods = yes * np.log(rates) + no * np.log(1 - rates)
        bound += (weights * log_likelihoods).sum(axis=0)
    return np.asarray(bound)


def _update(
    solution: DawidSkeneSolution, estimate: DawidSkeneSolution, is_active: BoolArray
) -> DawidSkeneSolution:
    """Return the new estimate for active labels, and the old one for the others."""
    return DawidSkeneSolution(
        prior=np.where(is_active, estimate.prior, solution.prior),
        if_true=np.where(is_active, estimate.if_true, solution.if_true),
        if_false=np.where(is_active, estimate.if_false, solution.if_false),
        weights=solution.weights,
    )


def _make_grid(largest_sum: FloatArray) -> FloatArray:
    """Return the distances of a grid on which sums up to `largest_sum` are exact.

    Models that vote alike then get equal rates to the last bit, in every order; EM
    could separate them by rounding errors alone.
    """
    exponent = np.ceil(np.log2(np.maximum(largest_sum, 1e-290)))
    return np.asarray(np.exp2(exponent - 52))
