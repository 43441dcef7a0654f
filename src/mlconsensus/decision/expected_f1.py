r"""Estimate how many labels all instances have together, from the votes alone.

Consider the instance-label pairs for which a share `v` of the other models votes. A
model that is left out votes for a share

.. math::

    r(v) = f + (h - f)\, p(v), \qquad p(v) = \frac{r(v) - f}{h - f},

of them, if a share `p` of them is true and models make independent errors. True pairs
get a vote with probability `h`, the hit rate, and others with probability `f`, the
false alarm rate. The rate `f` is seen where no other model votes, and `h` where nearly
all others do. The mean of the votes contains false alarms; the mean of `p` does not.

==============  ======================  =========================================
symbol          variable                shape
==============  ======================  =========================================
:math:`v`       ``share``               of each prediction, or of each bin
:math:`r`       ``rate``                of each bin
:math:`f`       ``false_alarm_rate``    number
:math:`h`       ``hit_rate``            number
:math:`p`       ``p``                   of each bin
==============  ======================  =========================================
"""

import numpy as np
from scipy import optimize, sparse

from ..linalg.annotations import make_annotations
from ..linalg.sparse_scores import SparseScores
from ..predictions import BoolArray, FloatArray, Predictions
from ..predictions.sampling import subsample_for_diagnostics
from .label_sets import (
    Empty,
    cardinalities,
    compute_f1_threshold,
    match_instances,
    match_total,
    vote_shares,
)

# Bins of the share of votes.
_N_BINS = 40
# Share of all votes. The pairs with these votes and the largest shares of other votes
# are taken as true.
_HIGH_SHARE = 0.05


def choose_label_sets(
    scores: FloatArray | SparseScores,
    predictions: Predictions,
    comparable: bool = True,
    empty: Empty = "keep",
) -> BoolArray | sparse.csr_array:
    """Return label sets of the best scores, as many as are expected.

    Parameters
    ----------
    scores : ndarray or SparseScores of shape (n, l)
        Consensus scores.
    predictions : Predictions
        The predictions of all models.
    comparable : bool, default=True
        Whether scores of different instances can be compared. The best scores of all
        instances are then chosen (`match_total`). Otherwise each instance gets as many
        labels as the models give it on average.
    empty : {"keep", "top"}, default="keep"
        As in `match_total`.

    Returns
    -------
    ndarray of bool of shape (n, l), or csr_array for large label spaces

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> scores = np.array([[0.9, 0.8, 0.1], [0.3, 0.2, 0.1]])
    >>> choose_label_sets(scores, mlc.Predictions([[[1, 1, 0], [0, 0, 0]]]))
    array([[ True,  True, False],
           [False, False, False]])
    """
    if comparable:
        return match_total(scores, estimate_total_labels(predictions), empty=empty)
    return match_instances(scores, cardinalities(predictions), empty=empty)


def estimate_total_labels(predictions: Predictions) -> int:
    """Estimate how many labels all instances should have together.

    The number lies between that of the label sets with the highest expected F1 and the
    expected number of true labels. It is at least the number of labels with a majority;
    ties count half.

    Parameters
    ----------
    predictions : Predictions
        The predictions of all models.

    Returns
    -------
    int

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random((500, 10)) < 0.1
    >>> models = []
    >>> for _ in range(5):
    ...     hits = rng.random(truth.shape) < 0.8
    ...     false_alarms = rng.random(truth.shape) < 0.05
    ...     models.append(np.where(truth, hits, false_alarms))
    >>> int(truth.sum()), int(np.mean(models, axis=0).sum())
    (527, 651)
    >>> estimate_total_labels(mlc.Predictions(models))
    501
    """
    shares, p = _estimate_true_shares(predictions)
    blocks = [_get_values(block) for block in vote_shares(predictions)]
    vote = np.concatenate(blocks)
    probabilities = np.interp(vote, shares, p)

    n_majority = ((vote > 0.5).sum() + (vote >= 0.5).sum()) / 2
    n_best_f1 = (probabilities > compute_f1_threshold(probabilities)).sum()
    n_expected = probabilities.sum()
    n_between = (min(n_best_f1, n_expected) + n_expected) / 2
    return int(np.rint(max(n_majority, n_between)))


def _get_values(block: FloatArray | sparse.csr_array) -> FloatArray:
    """Return the stored entries of a CSR matrix, or all entries of an array."""
    if sparse.issparse(block):
        return np.asarray(block.data)
    return np.asarray(block.ravel())


def _estimate_true_shares(predictions: Predictions) -> tuple[FloatArray, FloatArray]:
    """Return rising shares of votes, and the share `p` of true pairs at each."""
    annotations = make_annotations(subsample_for_diagnostics(predictions))
    vote_sum = annotations.sum_by_instance(annotations.scores)[annotations.instance]
    n_models = annotations.sum_by_instance(annotations.is_present)[annotations.instance]

    # The share of votes of the other models, for each prediction.
    has_others = annotations.is_present & (n_models > 1)
    others_sum = (vote_sum - annotations.scores)[has_others]
    share = (others_sum / (n_models - 1)[has_others]).clip(0, 1)
    scores = annotations.scores[has_others].astype(np.float64)

    # Predictions in bins of that share.
    bins = np.rint(share * _N_BINS).astype(np.int64)
    count = np.bincount(bins, minlength=_N_BINS + 1)
    is_used = count > 0
    count = count[is_used]
    share_sum = np.bincount(bins, share, _N_BINS + 1)[is_used]
    score_sum = np.bincount(bins, scores, _N_BINS + 1)[is_used]
    votes_alone = np.array([0.0, 1.0])
    if len(count) < 2:
        return votes_alone, votes_alone

    # r(v) rises from f, where no other model votes, to h, where most do.
    rate = optimize.isotonic_regression(score_sum / count, weights=count).x
    score_sum_above = np.cumsum(score_sum[::-1])[::-1] - score_sum
    is_high = score_sum_above < _HIGH_SHARE * score_sum.sum()
    false_alarm_rate = rate[0]
    hit_rate = np.average(rate[is_high], weights=count[is_high])
    if not hit_rate > false_alarm_rate:
        return votes_alone, votes_alone

    p = (rate - false_alarm_rate) / (hit_rate - false_alarm_rate)
    return share_sum / count, np.clip(p, 0, 1)
