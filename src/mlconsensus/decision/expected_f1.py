r"""How many labels all instances should have together, from the votes alone.

Of the cells for which a share `v` of the other raters votes, a rater that is left out
says yes to a share

.. math::

    r(v) = f + (h - f) p(v), \qquad p(v) = \frac{r(v) - f}{h - f},

if `p` of them are true and raters err on their own: true cells get a yes with
probability `h`, others with `f`, which show where nearly all others say yes, and where
nobody does. False alarms add up in the mean of the votes, and not in the mean of `p`.
"""

from typing import Any

import numpy as np
from scipy import optimize

from ..linalg.annotations import make_annotations
from ..linalg.block_sums import FloatArray
from ..predictions import Predictions
from ..predictions.sampling import subsample_for_diagnostics
from .label_sets import (
    Empty,
    cardinalities,
    compute_f1_threshold,
    match_instances,
    match_total,
    vote_shares,
)

_BINS = 40  # of shares of votes
_HIGH = 0.05  # of the yes answers: where most others agree, cells are taken for true


def choose_label_sets(
    scores: Any,
    predictions: Predictions,
    comparable: bool = True,
    empty: Empty = "keep",
) -> Any:
    """Keep as many of the best scores of all instances as there should be labels in all; see `decisions.match_total`.

    Where scores of different instances are not comparable, as many of each as the
    models gave it on average.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> choose_label_sets(np.array([[0.9, 0.8, 0.1], [0.3, 0.2, 0.1]]), mlc.Predictions([[[1, 1, 0], [0, 0, 0]]]))
    array([[ True,  True, False],
           [False, False, False]])
    """
    if comparable:
        return match_total(scores, estimate_total_labels(predictions), empty=empty)
    return match_instances(scores, cardinalities(predictions), empty=empty)


def estimate_total_labels(predictions: Predictions) -> int:
    """Return how many labels to expect: at least those that a majority gives, at most as many as are true.

    Between the two, as many as promise label sets of the highest F1.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random((500, 10)) < 0.1
    >>> said = [np.where(truth, rng.random(truth.shape) < 0.8, rng.random(truth.shape) < 0.05) for _ in range(5)]
    >>> int(truth.sum()), estimate_total_labels(mlc.Predictions(said)), int(np.mean(said, axis=0).sum())
    (527, 499, 651)
    """
    shares, true = _curve(predictions)
    vote = np.concatenate([_values(block) for block in vote_shares(predictions)])
    likely = np.interp(vote, shares, true)
    best = (likely > compute_f1_threshold(likely)).sum()
    return int(max((vote >= 0.5).sum(), min(best, np.rint(likely.sum()))))


def _values(block: Any) -> FloatArray:
    return np.asarray(block.data if hasattr(block, "indptr") else block.ravel())


def _curve(predictions: Predictions) -> tuple[FloatArray, FloatArray]:
    """Return shares of votes, rising, and which part `p` of such cells is true."""
    said = make_annotations(subsample_for_diagnostics(predictions))
    total, others = (
        said.of_instances(values)[said.instance] for values in (said.scores, said.spoke)
    )
    at = said.spoke & (others > 1)
    share = ((total - said.scores)[at] / (others - 1)[at]).clip(0, 1)
    own = said.scores[at].astype(np.float64)
    where = np.rint(share * _BINS).astype(np.int64)
    sums = np.stack(
        [np.bincount(where, weights, _BINS + 1) for weights in (None, share, own)]
    )
    count, shares, yes = sums[:, sums[0] > 0]
    if len(count) > 1:
        rate = optimize.isotonic_regression(yes / count, weights=count).x
        shares = shares / count
        high = np.cumsum(yes[::-1])[::-1] - yes < _HIGH * yes.sum()
        most = np.average(rate[high], weights=count[high])
        if most > rate[0]:
            return shares, np.clip((rate - rate[0]) / (most - rate[0]), 0, 1)

    return np.array([0.0, 1.0]), np.array(
        [0.0, 1.0]
    )  # nobody to compare with: votes are all there is
