r"""Dawid–Skene, label by label: how often each model says yes to true and to false, by expectation maximisation.

For each label by itself, an instance has it with probability :math:`\pi`, and model `k` says yes with probability
:math:`a_k` if it does and :math:`b_k` if it does not, independently of the other models. EM alternates

.. math::

    t_i = P(\text{true} \mid \text{votes}_i) \quad\text{(E)}, \qquad
    \pi = \overline{t}, \; a_k = \frac{\sum_i t_i y_{ik}}{\sum_i t_i s_{ik}}, \;
    b_k = \frac{\sum_i (1 - t_i) y_{ik}}{\sum_i (1 - t_i) s_{ik}} \quad\text{(M)}

from the majority vote, sums taken over what was said (`s`). Scores of at least 0.5 are a yes. All that EM needs to know
of the instances is how often each pattern of votes occurs, and these counts add up: one pass gathers them, and all
rounds run in `solve`. Votes of a model of weight `w` count `w` times. An instance that no model spoke about gets
:math:`\pi`; a label that nobody spoke about gets 0.

A. P. Dawid, A. M. Skene: Maximum likelihood estimation of observer error-rates using the EM algorithm.
doi:10.2307/2346806
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special

from ..arithmetic import patterns
from ..arithmetic.products import FloatArray, ratio
from ..errors import InputError
from ..panel.predictions import Predictions
from ..parameters import Weights, positive, whole
from .contributions import Contributions, of_label
from .method import Axes, Method

_LEAST = 1e-10  # weight that every answer of every model keeps, so that no logarithm is infinite
_LABEL_BYTES = 4


class PatternCounts:
    """How often each pattern of votes occurs for each label; adding two gives the counts of both.

    A pattern is a row of bytes: the label's position, a bit for each model that said yes, a bit for each that spoke.

    Examples
    --------
    >>> rows = np.array([[0, 3], [0, 3], [0, 1]], dtype=np.uint8)
    >>> both = PatternCounts.of(rows, (2, 1)) + PatternCounts.of(rows, (2, 1))
    >>> both.rows.tolist(), both.counts.tolist()
    ([[0, 1], [0, 3]], [2.0, 4.0])
    """

    def __init__(self, rows: NDArray[np.uint8], counts: FloatArray, shape: tuple[int, int]) -> None:
        self.rows = rows  # (patterns, bytes), each once
        self.counts = counts  # (patterns,)
        self.shape = shape  # (m, l)

    @classmethod
    def of(cls, rows: NDArray[np.uint8], shape: tuple[int, int], counts: FloatArray | None = None) -> PatternCounts:
        """Count equal rows, each as often as `counts` says (once without)."""
        # Sorting whole numbers is several times as fast as sorting bytes.
        width = rows.shape[1]
        padded = np.zeros((len(rows), -(-width // 8) * 8), dtype=np.uint8)
        padded[:, :width] = rows
        keys = padded.view(">u8").astype(np.uint64)
        if keys.shape[1] == 1:
            _, first, inverse = np.unique(keys[:, 0], return_index=True, return_inverse=True)
        else:
            _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        return cls(
            rows[first], np.bincount(inverse.ravel(), weights=counts, minlength=len(first)).astype(np.float64), shape
        )

    def __add__(self, other: PatternCounts | int) -> PatternCounts:
        if isinstance(other, int):  # the empty statistics
            return self
        rows = np.concatenate([self.rows, other.rows])
        return PatternCounts.of(rows, self.shape, np.concatenate([self.counts, other.counts]))

    __radd__ = __add__

    def unpacked(self) -> tuple[NDArray[np.intp], FloatArray, FloatArray]:
        """Return each pattern's label (p,), who said yes (p, m) and who spoke (p, m)."""
        m, _ = self.shape
        labels = np.ascontiguousarray(self.rows[:, :_LABEL_BYTES]).view(">u4").ravel().astype(np.intp)
        bits = self.rows[:, _LABEL_BYTES:].reshape(len(self.rows), 2, -(-m // 8))
        votes = np.unpackbits(bits, axis=2, count=m).astype(np.float64)
        return labels, votes[:, 0], votes[:, 1]

    def reordered(self, models: NDArray[np.intp], labels: NDArray[np.intp]) -> PatternCounts:
        """Put models and labels into another order: which old position each new one is taken from."""
        old, yes, spoke = self.unpacked()
        new = np.argsort(labels).astype(">u4")[old]
        bits = [np.packbits(said[:, models] > 0, axis=1) for said in (yes, spoke)]
        rows = np.concatenate([new.view(np.uint8).reshape(-1, _LABEL_BYTES), *bits], axis=1)
        return PatternCounts.of(rows, self.shape, self.counts)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a file needs to keep."""
        return {"rows": self.rows, "counts": self.counts}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], shape: tuple[int, int], where: str) -> PatternCounts:
        """Make counts of what a file kept, after checking that they can be counts of votes."""
        m, l = shape
        rows, counts = arrays.get("rows", np.empty(0)), arrays.get("counts", np.empty(0))
        expected = (*counts.shape, _LABEL_BYTES + 2 * -(-m // 8))
        if rows.dtype != np.uint8 or counts.dtype != np.float64 or counts.ndim != 1 or rows.shape != expected:
            raise InputError(f"{where}: found rows {rows.shape}, counts {counts.shape}, expected patterns of {m} votes")
        if (counts < 0).any():
            raise InputError(f"{where}: found {counts.min():g}, expected no number below 0")
        found = cls(rows, counts, shape)
        labels, yes, spoke = found.unpacked()
        if (labels >= l).any() or (yes > spoke).any():
            raise InputError(f"{where}: found patterns that no {m} models can give {l} labels, expected votes")
        return found


class Statistics(NamedTuple):
    """Sums over instances."""

    patterns: Annotated[Any, PatternCounts]  # at most 3^m patterns for each label, whatever n


class Solution(NamedTuple):
    """What EM finds out about each label and model."""

    prior: Annotated[FloatArray, Axes("l", least=0, most=1)]  # π
    if_true: Annotated[FloatArray, Axes("m l", least=0, most=1)]  # a, how often the model says yes to true
    if_false: Annotated[FloatArray, Axes("m l", least=0, most=1)]  # b, how often the model says yes to false
    weights: Annotated[FloatArray | float, Axes("m", least=0)] = 1.0  # how often each vote counts


def statistics(block: Predictions) -> Statistics:
    """Count the patterns of votes."""
    m, n, l = block.shape
    if (found := patterns.codes(block)) is not None:
        counts = patterns.counts(found, m)
        labels, kinds = np.nonzero(counts)
        names = np.ascontiguousarray(labels.astype(">u4")).view(np.uint8).reshape(-1, _LABEL_BYTES)
        yes = np.packbits(patterns.bits(m).astype(np.bool_), axis=1)[kinds]
        spoke = np.broadcast_to(np.packbits(np.ones(m, dtype=np.bool_)), yes.shape)
        return Statistics(PatternCounts(np.hstack([names, yes, spoke]), counts[labels, kinds], (m, l)))
    width = -(-m // 8)
    rows = np.zeros((n, l, _LABEL_BYTES + 2 * width), dtype=np.uint8)
    rows[:, :, :_LABEL_BYTES] = np.arange(l, dtype=">u4")[:, None].view(np.uint8)
    for k, (values, said) in enumerate(block.cells()):
        byte, bit = divmod(k, 8)
        mark = np.uint8(128 >> bit)
        rows[:, :, _LABEL_BYTES + byte] |= _says_yes(values) * mark
        rows[:, :, _LABEL_BYTES + width + byte] |= mark if said is None else said * mark
    return Statistics(PatternCounts.of(rows.reshape(n * l, -1), (m, l)))


def solve(statistics: Statistics, n_iter: int = 100, tol: float = 1e-5, weights: FloatArray | None = None) -> Solution:
    """Run EM on the patterns, all labels at once; a label rests when a round gains it less than `tol` for each vote."""
    labels, yes, spoke = statistics.patterns.unpacked()
    m, l = statistics.patterns.shape
    weights = np.ones(m) if weights is None else weights
    heard = spoke @ weights
    counts = statistics.patterns.counts * (heard > 0)
    votes = np.hstack([yes, spoke - yes])  # (p, 2m) who said yes, who said no
    # Multiplying by it adds up over each label's patterns.
    sums = sparse.csr_array((np.ones(len(labels)), (labels, np.arange(len(labels)))), shape=(l, len(labels)))
    n_votes = sums @ (counts * heard)

    true = ratio(yes @ weights, heard, 0.0)  # start from the majority vote
    following = _maximise(true, sums, votes, counts)
    found, bound, active = following, np.full(l, -np.inf), np.ones(l, dtype=np.bool_)
    for _ in range(whole(n_iter, "n_iter", 1)):
        settled = (np.where(active, new, old) for new, old in zip(following[:3], found[:3], strict=True))
        found = Solution(*settled)._replace(weights=weights)
        start, if_yes, if_no = _log_odds(found)
        true = special.expit(start[labels] + _added(votes, if_yes, if_no, labels))  # E step
        following = _maximise(true, sums, votes, counts)  # M step
        new_bound = sums @ (counts * _evidence(true, following._replace(weights=weights), labels, votes))
        active &= new_bound - bound >= positive(tol, "tol") * n_votes
        bound = new_bound
        if not active.any():
            break
    return found


def apply(block: Predictions, solution: Solution) -> FloatArray:
    """Add up the log-odds of the votes; E step."""
    _, n, l = block.shape
    start, if_yes, if_no = _log_odds(solution)
    if (found := patterns.codes(block)) is not None:
        table = start + if_no.sum(axis=0) + patterns.bits(len(if_no)) @ (if_yes - if_no)  # (2**m, l)
        return patterns.looked_up(found, special.expit(table).T)
    odds = np.broadcast_to(start, (n, l)).copy()
    for (values, said), for_yes, for_no in zip(block.cells(), if_yes, if_no, strict=True):
        says_yes = _says_yes(values)
        odds += np.where(says_yes, for_yes, for_no) if said is None else said * np.where(says_yes, for_yes, for_no)
    return np.asarray(special.expit(odds))


def contributions(block: Predictions, solution: Solution, label: int) -> Contributions:
    """Take the log-odds of the block's one instance apart: the prior's, and those of each vote on the label."""
    start, if_yes, if_no = _log_odds(solution)
    odds = [
        float(np.where(_says_yes(values), for_yes, for_no)[0, label]) * (said is None or bool(said[0, label]))
        for (values, said), for_yes, for_no in zip(block.cells(), if_yes, if_no, strict=True)
    ]
    return Contributions(float(start[label]), of_label(np.array(odds), label, if_yes.shape), scale="log-odds")


def _added(votes: FloatArray, for_yes: FloatArray, for_no: FloatArray, labels: NDArray[np.intp]) -> FloatArray:
    """Add up for each pattern (p,) what its votes count, given (m, l) for a yes and for a no."""
    return np.asarray(np.einsum("pk,pk->p", votes, np.vstack([for_yes, for_no]).T[labels]))


def _maximise(true: FloatArray, sums: Any, votes: FloatArray, counts: FloatArray) -> Solution:
    """M step."""
    prior = ratio(sums @ (counts * true), sums @ counts, 0.0)
    rates = []
    for weight in (counts * true, counts * (1 - true)):
        yes, no = np.split(np.maximum(sums @ (weight[:, None] * votes), _LEAST).T, 2)
        rates.append(yes / (yes + no))
    return Solution(prior, *rates)


def _log_odds(solution: Solution) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Find what is known before any vote, and what a yes and a no of each model add to it."""
    prior, if_true, if_false, weights = solution
    weights = np.reshape(weights, (-1, 1))
    with np.errstate(divide="ignore"):  # a label that is never, or always, true has infinite odds
        start = np.log(prior) - np.log1p(-prior)
    return start, weights * np.log(if_true / if_false), weights * np.log((1 - if_true) / (1 - if_false))


def _evidence(true: FloatArray, solution: Solution, labels: NDArray[np.intp], votes: FloatArray) -> FloatArray:
    """Lower bound of the log-likelihood of one instance with each pattern; EM never lowers it."""
    prior, weights = solution.prior[labels], np.reshape(solution.weights, (-1, 1))
    of_votes = [
        _added(votes, weights * np.log(says), weights * np.log(1 - says), labels)
        for says in (solution.if_true, solution.if_false)
    ]
    sides = zip((true, 1 - true), (prior, 1 - prior), of_votes, strict=True)
    return np.asarray(sum(t * votes + special.xlogy(t, p) - special.xlogy(t, t) for t, p, votes in sides))


def _says_yes(values: Any) -> NDArray[np.bool_]:
    return np.asarray((values.toarray() if sparse.issparse(values) else values) >= 0.5)


class DawidSkene(Method):
    """Dawid–Skene label by label: votes weighed by how reliable each model turns out to be.

    Parameters
    ----------
    n_iter
        Rounds of EM at the most.
    tol
        A label rests when a round raises its log-likelihood by less than this for each vote.
    weights
        How much each model counts, in their order or by name; ``None``: all alike.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.DawidSkene().fit_transform([[[1], [1], [0], [0]], [[1], [1], [0], [0]], [[1], [0], [1], [0]]]).round(2)
    array([[1.], [1.], [0.], [0.]])
    """

    name = "DS"

    def __init__(self, n_iter: int = 100, tol: float = 1e-5, weights: Weights = None) -> None:
        self.n_iter = n_iter
        self.tol = tol
        self.weights = weights

    def check(self) -> None:
        """Refuse settings that no solution can be found with."""
        whole(self.n_iter, "n_iter", 1)
        positive(self.tol, "tol")

    def solve(self, statistics: Statistics, weights: FloatArray | None, prepared: Any) -> Solution:
        """Solve with this method's settings."""
        return solve(statistics, self.n_iter, self.tol, weights)
