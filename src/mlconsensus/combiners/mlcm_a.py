r"""MLCM-a: averaging regularised by the labels' precision matrix, for microAUC.

Algorithm 1 starts from :math:`Y = \bar Y` and alternates `T` times

.. math::

    \Omega = \tfrac1n Y^\top Y, \qquad
    Y = m \bar Y (\Omega^{-1} + m I)^{-1} \qquad\text{(Eq. averaging\_omega)}

Every iterate commutes with :math:`G = \bar Y^\top \bar Y / n = V \operatorname{diag}(g)
V^\top`, so one eigendecomposition serves any `T`: with :math:`w_0 = g`,

.. math::

    h_t = \frac{m w_{t-1}}{1 + m w_{t-1}}, \quad w_t = g h_t^2, \quad Y = \bar Y V
    \operatorname{diag}(h_T) V^\top .

Written so, nothing is inverted that may be singular (labels never predicted, l > n).
For :math:`T \to \infty`, :math:`x = m w` is the larger root of :math:`x^2 + (2 - m g) x
+ 1 = 0` where :math:`m g \ge 4`, and 0 elsewhere.

The mean is taken over the models that spoke; a cell about which none did gets the
label's prior, and `m` is the mean number (with weights: the mean weight) of the models
that spoke about a cell. With nothing missing and no weights that is the paper's
algorithm to the letter.

Where all answers about some instances are known, the linear map :math:`W` from means to
consensus fits these, drawn to the truth-free filter `F`, on the scale `c` that fits
best, as to :math:`\tau` instances on which it is right:

.. math::

    \min_W \sum_{i\,\text{known}} \|y_i - \bar y_i W\|^2 + \tau \operatorname{tr} (W -
    cF)^\top G (W - cF), \qquad W = cF + (S + \tau G)^{-1} (C - cSF), \quad c =
    \frac{\langle F, C\rangle}{\langle F, SF\rangle}

with :math:`S = \sum \bar y_i^\top \bar y_i` and :math:`C = \sum \bar y_i^\top y_i` over
the known ones. The evidence of :math:`y_{ij} \sim N(\bar y_i W_j, \sigma_j^2)` with
:math:`W_j - cF_j \sim N(0, \sigma_j^2 G^{-1}/\tau)` is largest at the :math:`\tau` that
is taken (empirical Bayes).

Xie, Kong, Gao, Fan, Yu: Multilabel Consensus Classification.
"""

from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from scipy import linalg, sparse

from ..errors import InputError
from ..execution.statistics import Axes
from ..linalg.block_sums import (
    FloatArray,
    column_sums,
    dense,
    gram,
    mean,
    product,
    ratio,
    votes,
)
from ..linalg.gram import Gram, as_gram
from ..linalg.label_map import (
    HeadTailMap,
    among_tail,
    head_first,
    shrunk,
    single,
    with_head,
)
from ..linalg.sparse_scores import Said, SparseScores, best, many_means, telling
from ..predictions import Matrix, Predictions
from ..predictions.validation import Weights, whole
from .base import BaseCombiner, PredictionsLike
from .contributions import Contributions, statements

_TAUS = tuple(
    np.geomspace(1e5, 200, 26)
)  # instances that the truth-free filter may count as
_NOISE = 0.05  # a label's squared errors, beside those that are seen


class MLCMaStatistics(NamedTuple):
    """Sums over instances; `z` is ȳ with 0 where nobody spoke, `u` is 1 there and 0 elsewhere."""

    n_instances: Annotated[Any, Axes("", least=0)]
    spoken: Annotated[
        Any, Axes("", least=0)
    ]  # how many of the m·n·l cells were spoken about, times models' weights
    known: Annotated[Any, Axes("l", least=0)]  # instances about which somebody spoke
    total: Annotated[Any, Axes("l", least=0)]  # Σ z
    known_gram: Annotated[Any, Axes("l l", symmetric=True, least=0)]  # Σ zᵀz
    cross_gram: Annotated[Any, Axes("l l", least=0)] = 0  # Σ uᵀz; 0 where u is
    unknown_gram: Annotated[Any, Axes("l l", symmetric=True, least=0)] = (
        0  # Σ uᵀu; 0 where u is
    )
    gold: Annotated[Any, Axes("", least=0)] = 0  # how many instances are known whole
    gold_gram: Annotated[Any, Axes("l l", symmetric=True, least=0)] = (
        0  # S, unheard cells as 0
    )
    gold_cross: Annotated[Any, Axes("l l", least=0)] = 0  # C
    gold_yes: Annotated[Any, Axes("l", least=0)] = 0  # Σ y

    def with_silence(self, labels: Any) -> Self:
        """Say that nobody spoke about some labels (l,) of bool, whose sums are 0: u is 1 there, for every instance."""
        gap = self.n_instances - self.known
        rows = labels[:, None]
        unknown = np.where(rows, gap, np.where(labels, gap[:, None], self.unknown_gram))
        return self._replace(
            cross_gram=np.where(rows, self.total, self.cross_gram), unknown_gram=unknown
        )


class MLCMaSolution(NamedTuple):
    """The linear map from the mean prediction to the consensus."""

    filter: Annotated[Any, Axes("l l")]  # V diag(h_T) Vᵀ, or W; `Headed` of many labels
    prior: Annotated[
        FloatArray, Axes("l", least=0, most=1)
    ]  # in place of a mean over no models


def _of_means(block: Predictions) -> MLCMaStatistics:
    _, n, l = block.shape
    if block.many:  # where nobody spoke, the mean is taken for 0
        every_one = Said.by(block)
        average = many_means(block, np.zeros(l)).above
        known = sum(
            len(rows) * ((seen @ every_one.known) > 0)
            for seen, rows in every_one.groups()
        )
        spoken = float((every_one.seen.sum(axis=0) @ every_one.known).sum())
        return MLCMaStatistics(n, spoken, known, average.sum(axis=0), telling(average))

    said = votes(block)
    heard = said.heard
    if isinstance(heard, float):
        every = np.full(l, float(n))
        return MLCMaStatistics(
            n,
            heard * n * l,
            every,
            column_sums(said.total) / heard,
            _products(said.total, heard),
        )

    average = mean(said, np.zeros(l))
    silent = (heard == 0).astype(np.float64)
    found = MLCMaStatistics(
        n, heard.sum(), n - silent.sum(axis=0), column_sums(average), Gram.of(average)
    )
    if not silent.any():
        return found
    return found._replace(
        cross_gram=np.asarray(silent.T @ average), unknown_gram=gram(silent)
    )


def _products(total: Matrix, m: float) -> Gram:
    """Multiply the means of `m` models; counted decisions in float32, twice as fast and exact while sums are small."""
    n, l = total.shape
    if total.dtype.kind == "f" or n < l or m**2 * n >= 2**24:
        return Gram.of(total / m)
    return as_gram(gram(total.astype(np.float32)).astype(np.float64) / m**2)


def _fitted(
    filter: FloatArray, sums: MLCMaStatistics, g: FloatArray, V: FloatArray
) -> FloatArray:
    """Fit the filter to instances that are known, in directions in which G is 1 and S diagonal."""
    some = g > 1e-10 * max(float(g.max()), 1e-300)
    whitened = V[:, some] / np.sqrt(g[some])
    s, turned = linalg.eigh(whitened.T @ sums.gold_gram @ whitened)
    s = np.maximum(s, 0)
    directions = whitened @ turned
    passed = sums.gold_gram @ filter
    scale = max(
        float(ratio((filter * sums.gold_cross).sum(), (filter * passed).sum(), 1.0)),
        1e-3,
    )
    filter = scale * filter
    wrong = sums.gold_cross - scale * passed
    along = directions.T @ wrong
    left = sums.gold_yes - (filter * (sums.gold_cross + wrong)).sum(
        axis=0
    )  # Σ (y − ȳ c F)²

    def evidence(tau: float) -> float:
        noise = np.maximum(left - (1 / (s + tau)) @ along**2, 0) + _NOISE
        return float(
            -len(filter) * np.log1p(s / tau).sum() - sums.gold * np.log(noise).sum()
        )

    tau = max(_TAUS, key=evidence)
    return np.asarray(filter + directions @ (along / (s + tau)[:, None]))


def _rounds(mg: FloatArray, n_iter: int) -> FloatArray:
    """Iterate h_t = x/(1 + x), x ← m·g·h_t² from x = m·g, all in units of 1/m."""
    mg = np.maximum(mg, 0.0)  # a Gram matrix has no negative eigenvalue but by rounding
    x = mg
    h = np.ones_like(mg)
    for _ in range(n_iter):
        h = x / (1 + x)
        x = mg * h**2

    return h


def _limit(mg: FloatArray) -> FloatArray:
    """Find the fixed point of `_rounds` that it falls to: x² + (2 − m·g)x + 1 = 0, or 0 where m·g < 4."""
    half = np.maximum(mg, 4.0) / 2 - 1
    x = half + np.sqrt(np.maximum(half**2 - 1, 0.0))
    return np.where(mg >= 4, x / (1 + x), 0.0)


class MLCMa(BaseCombiner):
    """MLCM-a: averaging regularised by the labels' precision matrix, for microAUC.

    Parameters
    ----------
    n_iter
        Rounds of Algorithm 1; ``None`` for the limit in closed form.
    weights
        How much each model counts, in their order or by name; ``None``: all alike.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.MLCMa(n_iter=1).fit_transform([[[1, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 0, 1]]]).round(2)
    array([[0.56, 0.28, 0.  ],
           [0.  , 0.  , 0.5 ]])
    """

    Statistics = MLCMaStatistics
    Solution = MLCMaSolution
    identifier = "mlcm_a"
    name = "MLCM-a"
    takes_many = True
    pairs_labels = True
    in_float32 = ("filter", "prior")

    def __init__(self, n_iter: int | None = 1, weights: Weights = None) -> None:
        self.n_iter = n_iter
        self.weights = weights

    def check(self) -> None:
        """Refuse settings that no solution can be found with."""
        if self.n_iter is not None:
            whole(self.n_iter, "n_iter", 0, 10**5)

    def _compute_statistics(self, block: Predictions) -> MLCMaStatistics:
        """Add up the products of the mean predictions, and apart those of instances that are known whole."""
        found = _of_means(block)
        gold = block.gold
        if gold is None:
            whole = np.zeros(0, dtype=np.bool_)
        else:
            whole = ~np.isnan(gold.answers).any(axis=1)

        if gold is None or not whole.any():
            return found

        average = dense(mean(votes(block[gold.at[whole]]), np.zeros(len(block.labels))))
        y = gold.answers[whole]
        return found._replace(
            gold=len(y),
            gold_gram=gram(average),
            gold_cross=average.T @ y,
            gold_yes=y.sum(axis=0),
        )

    def _solve(self, statistics: MLCMaStatistics) -> MLCMaSolution:
        """Find the filter of Algorithm 1 after `self.n_iter` rounds, or in the limit for ``None``."""
        n = statistics.n_instances
        l = len(statistics.total)
        m = statistics.spoken / (n * l)
        prior = ratio(statistics.total, statistics.known, 0.0)
        if isinstance(statistics.known_gram, tuple):
            if self.n_iter != 1:
                raise InputError(
                    where="n_iter",
                    found=self.n_iter,
                    expected="1, for a panel of many labels",
                )

            rows = sparse.vstack(statistics.known_gram, format="csr")
            order, size = head_first(rows.sum(axis=0))
            head = np.empty((size, len(order)), dtype=single(size, len(order)))
            for some, own in with_head(rows, order, size):
                head[some] = own * (m / n)

            diagonal = rows.power(2).sum(axis=0)[order[size:]] * (m / n)
            found = shrunk(
                order,
                head,
                diagonal,
                ((at, own * (m / n)) for at, (own,) in among_tail(order, size, rows)),
            )
            together = (
                f"labels beside the {size:,} most frequent that go together too often"
            )
            if not (np.isfinite(found.bound)):
                raise InputError(
                    where="MLCM-a",
                    found=together,
                    expected="fewer of these; --method filter takes such panels",
                )

            return MLCMaSolution(found, prior)

        rows = as_gram(statistics.known_gram).rows
        if (
            rows is not None
            and rows.shape[0] < l
            and np.ndim(statistics.unknown_gram) == 0
            and self.n_iter != 0
        ):
            # Fewer instances than labels: their singular values are all there is, and the
            # rest of `h` is 0.
            _, singular, directions = linalg.svd(dense(rows), full_matrices=False)
            g = singular**2 / n
            V = directions.T
        else:
            # Ȳ = Z + U diag(prior), multiplied out.
            cross = prior[:, None] * statistics.cross_gram
            second = (
                np.asarray(statistics.known_gram)
                + cross
                + cross.T
                + np.outer(prior, prior) * statistics.unknown_gram
            )
            g, V = linalg.eigh(second / n, overwrite_a=True)

        if self.n_iter is None:
            h = _limit(m * g)
        else:
            h = _rounds(m * g, whole(self.n_iter, "n_iter", 0))

        filter = (V * h) @ V.T
        # Labels that never go together have 0 here, up to rounding that would rank them by
        # chance: make it 0 again.
        filter[np.abs(filter) < 10 * l * np.finfo(np.float64).eps * h.max()] = 0.0
        return MLCMaSolution(
            _fitted(filter, statistics, g, V) if statistics.gold else filter, prior
        )

    @staticmethod
    def _apply(block: Predictions, solution: MLCMaSolution) -> Any:
        """Filter the mean prediction; Eq. averaging_omega."""
        if isinstance(solution.filter, HeadTailMap):
            average = many_means(block, np.zeros(len(solution.prior))).above
            default = np.zeros(len(solution.prior))
            cells = average[:, solution.filter.labels]
            return SparseScores(
                solution.filter.applied(
                    cells, default, lambda moved, _: best(moved, default)
                ),
                default,
            )

        return product(mean(votes(block), solution.prior), solution.filter)

    @staticmethod
    def _contributions(
        block: Predictions, solution: MLCMaSolution, label: int
    ) -> Contributions:
        """Take the filtered mean of the block's one instance apart; where nobody spoke, the prior is filtered too."""
        scores, said = statements(block)
        heard = said.sum(axis=0)
        many = isinstance(solution.filter, HeadTailMap)
        if many:
            passed = solution.filter.column(label, scores.shape[1])
        else:
            passed = solution.filter[:, label]

        unheard = (solution.prior * passed)[heard == 0].sum()
        return Contributions(float(unheard), ratio(scores, heard, 0.0) * passed)


def mlcm_a(
    predictions: PredictionsLike, n_iter: int | None = 1, weights: Weights = None
) -> FloatArray:
    """Return the consensus scores of `MLCMa`.

    Parameters
    ----------
    predictions
        `Predictions`, or anything that its constructor takes.
    n_iter
        Rounds of Algorithm 1; ``None`` for the limit in closed form.
    weights
        How much each model counts, in their order or by name; ``None``: all alike.

    Returns
    -------
    ndarray of shape (n, l)
        Higher scores are more relevant.
    """
    return MLCMa(n_iter=n_iter, weights=weights).fit_transform(predictions)
