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
from ..predictions import FloatArray, Matrix, Predictions
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
    probabilities = np.interp(vote, shares, true)

    n_majority = (vote >= 0.5).sum()
    n_best_f1 = (probabilities > compute_f1_threshold(probabilities)).sum()
    n_expected = np.rint(probabilities.sum())
    return int(max(n_majority, min(n_best_f1, n_expected)))


def _values(block: Matrix) -> FloatArray:
    """Return the stored entries of a CSR matrix, or all entries of an array."""
    return np.asarray(block.data if hasattr(block, "indptr") else block.ravel())


def _curve(predictions: Predictions) -> tuple[FloatArray, FloatArray]:
    """Return rising shares of votes, and the share `p` of true pairs at each."""
    annotations = make_annotations(subsample_for_diagnostics(predictions))
    vote_sum = annotations.of_instances(annotations.scores)[annotations.instance]
    n_models = annotations.of_instances(annotations.spoke)[annotations.instance]

    # The share of votes of the other models, for each prediction.
    has_others = annotations.spoke & (n_models > 1)
    others_sum = (vote_sum - annotations.scores)[has_others]
    share = (others_sum / (n_models - 1)[has_others]).clip(0, 1)
    scores = annotations.scores[has_others].astype(np.float64)

    # Predictions in bins of that share.
    bins = np.rint(share * _BINS).astype(np.int64)
    count = np.bincount(bins, minlength=_BINS + 1)
    is_used = count > 0
    count = count[is_used]
    share_sum = np.bincount(bins, share, _BINS + 1)[is_used]
    score_sum = np.bincount(bins, scores, _BINS + 1)[is_used]
    votes_alone = np.array([0.0, 1.0])
    if len(count) < 2:
        return votes_alone, votes_alone

    # r(v) rises from f, where no other model votes, to h, where most do.
    rate = optimize.isotonic_regression(score_sum / count, weights=count).x
    score_sum_above = np.cumsum(score_sum[::-1])[::-1] - score_sum
    is_high = score_sum_above < _HIGH * score_sum.sum()
    false_alarm_rate = rate[0]
    hit_rate = np.average(rate[is_high], weights=count[is_high])
    if not hit_rate > false_alarm_rate:
        return votes_alone, votes_alone

    p = (rate - false_alarm_rate) / (hit_rate - false_alarm_rate)
    return share_sum / count, np.clip(p, 0, 1)
