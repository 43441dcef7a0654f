r"""Dawid–Skene, label by label: how often each model says yes to true and to false, by expectation maximisation.

For each label by itself, an instance has it with probability :math:`\pi`, and model `k`
says yes with probability :math:`a_k` if it does and :math:`b_k` if it does not,
independently of the other models. EM alternates

.. math::

    t_i = P(\text{true} \mid \text{votes}_i) \quad\text{(E)}, \qquad
    \pi = \overline{t}, \; a_k = \frac{\sum_i t_i y_{ik}}{\sum_i t_i s_{ik}}, \;
    b_k = \frac{\sum_i (1 - t_i) y_{ik}}{\sum_i (1 - t_i) s_{ik}} \quad\text{(M)}

from the majority vote, sums taken over what was said (`s`). Scores of at least 0.5 are
a yes. All that EM needs to know of the instances is how often each pattern of votes
occurs, and these counts add up: one pass gathers them, and all rounds run in `solve`.
Votes of a model of weight `w` count `w` times. An instance that no model spoke about
gets :math:`\pi`; a label that nobody spoke about gets 0. Where the answer is known,
:math:`t_i` is that answer in every round: patterns of such cells are counted apart.

A. P. Dawid, A. M. Skene: Maximum likelihood estimation of observer error-rates using
the EM algorithm. doi:10.2307/2346806
"""

from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from scipy import sparse, special

from ..errors import InputError
from ..execution.statistics import Axes
from ..linalg import vote_patterns
from ..linalg.block_sums import dense, ratio
from ..linalg.sparse_scores import Said, SparseScores, at_cells
from ..predictions import Array, BoolArray, FloatArray, Predictions
from ..predictions.validation import Weights, positive, whole
from .base import BaseCombiner, PredictionsLike
from .contributions import Contributions, of_label, statements

# weight that every answer of every model keeps, so that no logarithm is infinite
_LEAST = 1e-10
_SURE = 1 - 1e-16  # the highest of its rates: a million yes and no no would round to 1
_LABEL_BYTES = 4


class PatternCounts:
    """How often each pattern of votes occurs for each label; adding two gives the counts of both.

    A pattern is a row of bytes: the label's position, a bit for each model that said
    yes, a bit for each that spoke.

    Examples
    --------
    >>> rows = np.array([[0, 3], [0, 3], [0, 1]], dtype=np.uint8)
    >>> both = PatternCounts.of(rows, (2, 1)) + PatternCounts.of(rows, (2, 1))
    >>> both.rows.tolist(), both.counts.tolist()
    ([[0, 1], [0, 3]], [2.0, 4.0])
    """

    def __init__(self, rows: Array, counts: FloatArray, shape: tuple[int, int]) -> None:
        self.rows = rows  # (vote_patterns, bytes), each once
        self.counts = counts  # (vote_patterns,)
        self.shape = shape  # (m, l)

    @classmethod
    def of(
        cls, rows: Array, shape: tuple[int, int], counts: FloatArray | None = None
    ) -> Self:
        """Count equal rows, each as often as `counts` says (once without)."""
        # Sorting whole numbers is several times as fast as sorting bytes.
        width = rows.shape[1]
        padded = np.zeros((len(rows), -(-width // 8) * 8), dtype=np.uint8)
        padded[:, :width] = rows
        keys = padded.view(">u8").astype(np.uint64)
        if keys.shape[1] == 1:
            axis = None
        else:
            axis = 0

        _, first, inverse = np.unique(
            keys, axis=axis, return_index=True, return_inverse=True
        )
        return cls(
            rows[first],
            np.bincount(inverse.ravel(), counts, len(first)).astype(np.float64),
            shape,
        )

    def __add__(self, other: Self | int) -> Self:
        if isinstance(other, int):  # the empty statistics
            return self

        rows = np.concatenate([self.rows, other.rows])
        return type(self).of(
            rows, self.shape, np.concatenate([self.counts, other.counts])
        )

    __radd__ = __add__

    def __sub__(self, other: Self) -> Self:
        left = self + type(self)(other.rows, -other.counts, self.shape)
        if not (left.counts.min(initial=0) >= 0):
            raise InputError(
                where="patterns",
                found="more than there are",
                expected="some that were added",
            )

        return type(self)(
            left.rows[left.counts > 0], left.counts[left.counts > 0], self.shape
        )

    def unpacked(self) -> tuple[Array, FloatArray, FloatArray]:
        """Return each pattern's label (p,), who said yes (p, m) and who spoke (p, m)."""
        m, _ = self.shape
        labels = (
            np.ascontiguousarray(self.rows[:, :_LABEL_BYTES])
            .view(">u4")
            .ravel()
            .astype(np.intp)
        )
        bits = self.rows[:, _LABEL_BYTES:].reshape(len(self.rows), 2, -(-m // 8))
        votes = np.unpackbits(bits, axis=2, count=m).astype(np.float64)
        return labels, votes[:, 0], votes[:, 1]

    def reordered(self, models: Array, labels: Array) -> Self:
        """Put models and labels into another order: which old position each new one is taken from (-1: none)."""
        old, *votes = self.unpacked()
        place = np.argsort(labels, kind="stable")[(labels < 0).sum() :]
        yes, spoke = ((each[:, models] > 0) & (models >= 0) for each in votes)
        return type(self).of(
            _packed(place[old], yes, spoke), (len(models), len(labels)), self.counts
        )

    def arrays(self) -> dict[str, Array]:
        """Return what a file needs to keep."""
        return {"rows": self.rows, "counts": self.counts}

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, Array], shape: tuple[int, int], where: str
    ) -> Self:
        """Make counts of what a file kept, after checking that they can be counts of votes."""
        m, l = shape
        rows = arrays.get("rows", np.empty(0))
        counts = arrays.get("counts", np.empty(0))
        expected = (*counts.shape, _LABEL_BYTES + 2 * -(-m // 8))
        fits = (
            rows.dtype == np.uint8
            and counts.dtype == np.float64
            and counts.ndim == 1
            and rows.shape == expected
        )
        if not (fits):
            raise InputError(
                where=where,
                found=f"rows {rows.shape}, counts {counts.shape}",
                expected=f"patterns of {m} votes",
            )
        if not (counts.min(initial=0) >= 0):
            raise InputError(
                where=where,
                found=f"{counts.min(initial=0):g}",
                expected="no number below 0",
            )

        found = cls(rows, counts, shape)
        labels, yes, spoke = found.unpacked()
        possible = not ((labels >= l).any() or (yes > spoke).any())
        if not (possible):
            raise InputError(
                where=where,
                found=f"patterns that no {m} models can give {l} labels",
                expected="votes",
            )

        return found


def _packed(labels: Array, yes: BoolArray, spoke: BoolArray) -> Array:
    """Write patterns as rows of bytes, given each one's label (p,), who said yes (p, m) and who spoke (p, m)."""
    names = labels.astype(">u4").view(np.uint8).reshape(-1, _LABEL_BYTES)
    return np.hstack([names, np.packbits(yes, axis=1), np.packbits(spoke, axis=1)])


class DawidSkeneStatistics(NamedTuple):
    """Sums over instances."""

    patterns: Annotated[
        Any, PatternCounts
    ]  # at most 3^m patterns for each label, whatever n
    known_no: Annotated[Any, PatternCounts] = (
        0  # of cells whose answer is known to be no
    )
    known_yes: Annotated[Any, PatternCounts] = 0


class DawidSkeneSolution(NamedTuple):
    """What EM finds out about each label and model."""

    prior: Annotated[FloatArray, Axes("l", least=0, most=1)]  # π
    if_true: Annotated[
        FloatArray, Axes("m l", least=1e-300, most=_SURE)
    ]  # a, how often the model says yes to true
    if_false: Annotated[
        FloatArray, Axes("m l", least=1e-300, most=_SURE)
    ]  # b, how often the model says yes to false
    weights: Annotated[FloatArray | float, Axes("m", least=0)] = (
        1.0  # how often each vote counts
    )


def _counted(block: Predictions, some: Any = None) -> PatternCounts:
    """Count the patterns of votes of all cells, or of some (n, l)."""
    m, n, l = block.shape
    if block.many:
        return _many_patterns(Said.by(block.weighted(None)), (m, l))
    if some is None and (found := vote_patterns.codes(block)) is not None:
        counts = vote_patterns.counts(found, 2**m)
        labels, kinds = np.nonzero(counts)
        said_yes = vote_patterns.bits(m)[kinds] > 0
        rows = _packed(labels, said_yes, np.ones_like(said_yes))
        return PatternCounts(rows, counts[labels, kinds], (m, l))

    yes, spoke = np.empty((2, n, l, m), dtype=np.bool_)
    for k, (values, said) in enumerate(block.cells()):
        yes[:, :, k] = _says_yes(values)
        spoke[:, :, k] = True if said is None else said

    rows = _packed(
        np.tile(np.arange(l), n), yes.reshape(n * l, m), spoke.reshape(n * l, m)
    )
    return PatternCounts.of(rows if some is None else rows[np.ravel(some)], (m, l))


def _many_patterns(found: Said, shape: tuple[int, int]) -> PatternCounts:
    """Count the patterns of the cells that somebody named, and of each label's others by who could have spoken."""
    rows = []
    counts = []
    for seen, at in found.groups():
        spoke = (found.known * seen[:, None]).T > 0  # (l, m)
        cells = found.folded(np.ones_like(found.known), at)
        yes = np.stack([_says_yes(own[at], cells) for own in found.parts], axis=1)
        rows += [
            _packed(cells.indices, yes, spoke[cells.indices]),
            _packed(np.arange(shape[1]), spoke & False, spoke),
        ]
        counts += [
            np.ones(cells.nnz),
            len(at) - np.bincount(cells.indices, minlength=shape[1]),
        ]

    return PatternCounts.of(np.concatenate(rows), shape, np.concatenate(counts))


def _added(
    votes: FloatArray, for_yes: FloatArray, for_no: FloatArray, labels: Array
) -> FloatArray:
    """Add up for each pattern (p,) what its votes count, given (m, l) for a yes and for a no."""
    each = np.vstack([for_yes, for_no])
    return np.asarray(
        np.einsum(
            "pk,pk->p",
            votes,
            _exact(each, len(each) * np.abs(each).max(axis=0)).T[labels],
        )
    )


def _exact(values: FloatArray, most: FloatArray) -> FloatArray:
    """Round to a grid on which sums of up to `most` are exact.

    Models that are alike then stay so to the last bit, whatever their order: EM may
    part them by rounding alone.
    """
    grid = np.exp2(np.ceil(np.log2(np.maximum(most, 1e-290))) - 52)
    return np.asarray(np.round(values / grid) * grid)


def _maximise(
    true: FloatArray,
    sums: Any,
    votes: FloatArray,
    counts: FloatArray,
    weights: FloatArray,
) -> DawidSkeneSolution:
    """M step."""
    prior = ratio(sums @ (counts * true), sums @ counts, 0.0)
    rates = []
    for weight in (counts * true, counts * (1 - true)):
        yes, no = np.split(np.maximum(sums @ (weight[:, None] * votes), _LEAST).T, 2)
        rates.append(np.minimum(yes / (yes + no), _SURE))

    return DawidSkeneSolution(prior, rates[0], rates[1], weights)


def _log_odds(
    solution: DawidSkeneSolution,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Find what is known before any vote, and what a yes and a no of each model add to it."""
    prior, if_true, if_false, weights = solution
    weights = np.reshape(weights, (-1, 1))
    with np.errstate(
        divide="ignore"
    ):  # a label that is never, or always, true has infinite odds
        start = np.log(prior) - np.log1p(-prior)

    return (
        start,
        weights * np.log(if_true / if_false),
        weights * np.log((1 - if_true) / (1 - if_false)),
    )


def _evidence(
    true: FloatArray, solution: DawidSkeneSolution, labels: Array, votes: FloatArray
) -> FloatArray:
    """Lower bound of the log-likelihood of one instance with each pattern; EM never lowers it."""
    prior = solution.prior[labels]
    weights = np.reshape(solution.weights, (-1, 1))
    logs = [
        (weights * np.log(says), weights * np.log(1 - says)) for says in solution[1:3]
    ]
    of_votes = [_added(votes, *own, labels) for own in logs]
    sides = zip((true, 1 - true), (prior, 1 - prior), of_votes, strict=True)
    return np.asarray(
        sum(
            t * votes + special.xlogy(t, p) - special.xlogy(t, t)
            for t, p, votes in sides
        )
    )


def _says_yes(values: Any, cells: Any = None) -> BoolArray:
    return np.asarray(
        (dense(values) if cells is None else at_cells(values, cells)) >= 0.5
    )


class DawidSkene(BaseCombiner):
    """Dawid–Skene label by label: votes weighed by how reliable each model turns out to be.

    Parameters
    ----------
    n_iter
        Rounds of EM at the most.
    tol
        A label rests when a round raises its log-likelihood by less than this for each
        vote.
    weights
        How much each model counts, in their order or by name; ``None``: all alike.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.DawidSkene().fit_transform([[[1], [1], [0], [0]], [[1], [1], [0], [0]], [[1], [0], [1], [0]]]).round(2)
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
        """Refuse settings that no solution can be found with."""
        whole(self.n_iter, "n_iter", 1, 10**5)
        positive(self.tol, "tol")

    def _compute_statistics(self, block: Predictions) -> DawidSkeneStatistics:
        """Count the patterns of votes, those of cells whose answer is known apart."""
        gold = block.gold
        if gold is None:
            return DawidSkeneStatistics(_counted(block))

        known = block[gold.at]
        others = np.setdiff1d(np.arange(len(block)), gold.at)
        sides = np.isnan(gold.answers), gold.answers == 0, gold.answers == 1
        open_cells, no, yes = (_counted(known, side) for side in sides)
        return DawidSkeneStatistics(
            open_cells + (_counted(block[others]) if len(others) else 0), no, yes
        )

    def _solve(self, statistics: DawidSkeneStatistics) -> DawidSkeneSolution:
        """Run EM on the patterns, all labels at once; a label rests when a round gains it less than `self.tol` for each vote."""
        sides = [
            (each, answer)
            for each, answer in zip(statistics, (np.nan, 0.0, 1.0), strict=True)
            if each != 0
        ]
        labels, yes, spoke = map(
            np.concatenate, zip(*(each.unpacked() for each, _ in sides), strict=True)
        )
        answer = np.concatenate(
            [np.full(len(each.rows), answer) for each, answer in sides]
        )
        m, l = statistics.patterns.shape
        weights = self.weights_
        if weights is None:
            weights = np.ones(m)

        counts = np.concatenate([each.counts for each, _ in sides])
        heard = spoke @ weights
        some = (heard > 0) | ~np.isnan(
            answer
        )  # of whom nobody spoke, nothing is to be learned
        labels, yes, spoke, answer, counts, heard = (
            each[some] for each in (labels, yes, spoke, answer, counts, heard)
        )
        votes = np.hstack([yes, spoke - yes])  # (p, 2m) who said yes, who said no
        # Multiplying by it adds up over each label's patterns.
        sums = sparse.csr_array(
            (np.ones(len(labels)), (labels, np.arange(len(labels)))),
            shape=(l, len(labels)),
        )
        n_votes = sums @ (counts * heard)
        n_patterns = (sums @ counts)[labels]

        # Start from the majority vote; what is known stays.
        true = np.where(
            np.isnan(answer),
            _exact(ratio(yes @ weights, heard, 0.0), n_patterns),
            answer,
        )
        following = _maximise(true, sums, votes, counts, weights)
        found = following
        bound = np.full(l, -np.inf)
        at = np.arange(l)
        active = following.prior > 0  # what nobody has said yes to is never likely
        for _ in range(whole(self.n_iter, "n_iter", 1)):
            if not active.any():
                break

            # Labels that rest are not worked on any more.
            some = active[labels]
            left = (each[..., active] for each in following[:3])
            following = DawidSkeneSolution(*left)._replace(weights=weights)
            labels = (np.cumsum(active) - 1)[labels[some]]
            sums = sums[np.flatnonzero(active)][:, np.flatnonzero(some)]
            votes, counts, answer, n_patterns = (
                each[some] for each in (votes, counts, answer, n_patterns)
            )
            at = at[active]
            bound = bound[active]
            n_votes = n_votes[active]
            for field, new in zip(found[:3], following[:3], strict=True):
                field[..., at] = new

            start, if_yes, if_no = _log_odds(following)
            likely = special.expit(
                start[labels] + _added(votes, if_yes, if_no, labels)
            )  # E step
            true = np.where(np.isnan(answer), _exact(likely, n_patterns), answer)
            following = _maximise(true, sums, votes, counts, weights)  # M step
            new_bound = sums @ (counts * _evidence(true, following, labels, votes))
            active = new_bound - bound >= positive(self.tol, "tol") * n_votes
            bound = new_bound

        return found

    @staticmethod
    def _apply(block: Predictions, solution: DawidSkeneSolution) -> Any:
        """Add up the log-odds of the votes; E step."""
        _, n, l = block.shape
        start, if_yes, if_no = _log_odds(solution)
        if block.many:
            everything = Said.by(block.weighted(None))
            default = special.expit(start + (if_no * everything.known).sum(axis=0))
            by_no = if_no * everything.known
            cells = everything.folded(np.ones_like(if_no))
            odds = start[cells.indices] + everything.spread(by_no, cells)
            for own, moved in zip(
                everything.parts, (if_yes - if_no) * everything.known, strict=True
            ):
                odds += _says_yes(own, cells) * moved[cells.indices]

            cells.data = special.expit(odds) - default[cells.indices]
            return SparseScores(cells, default)

        if (found := vote_patterns.codes(block)) is not None:
            table = special.expit(
                start
                + if_no.sum(axis=0)
                + vote_patterns.bits(len(if_no)) @ (if_yes - if_no)
            )  # (2**m, l)
            return (
                dense(vote_patterns.looked_up(found, (table - table[0]).T)) + table[0]
            )

        odds = np.broadcast_to(start, (n, l)).copy()
        for (values, said), for_yes, for_no in zip(
            block.cells(), if_yes, if_no, strict=True
        ):
            says_yes = _says_yes(values)
            odds += (
                np.where(says_yes, for_yes, for_no)
                if said is None
                else said * np.where(says_yes, for_yes, for_no)
            )

        return np.asarray(special.expit(odds))

    @staticmethod
    def _contributions(
        block: Predictions, solution: DawidSkeneSolution, label: int
    ) -> Contributions:
        """Take the log-odds of the block's one instance apart: the prior's, and those of each vote on the label."""
        start, if_yes, if_no = (each[..., label] for each in _log_odds(solution))
        scores, said = (each[:, label] for each in statements(block.weighted(None)))
        odds = said * np.where(scores >= 0.5, if_yes, if_no)
        return Contributions(
            float(start),
            of_label(odds, label, solution.if_true.shape),
            scale="log-odds",
        )


def dawid_skene(
    predictions: PredictionsLike,
    n_iter: int = 100,
    tol: float = 1e-5,
    weights: Weights = None,
) -> FloatArray:
    """Return the consensus scores of `DawidSkene`.

    Parameters
    ----------
    predictions
        `Predictions`, or anything that its constructor takes.
    n_iter
        Rounds of EM at the most.
    tol
        A label rests when a round raises its log-likelihood by less than this for each
        vote.
    weights
        How much each model counts, in their order or by name; ``None``: all alike.

    Returns
    -------
    ndarray of shape (n, l)
        Higher scores are more relevant.
    """
    return DawidSkene(n_iter=n_iter, tol=tol, weights=weights).fit_transform(
        predictions
    )
