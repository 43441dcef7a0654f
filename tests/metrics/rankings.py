"""Random truths and scores, and definitions of metrics as loops over pairs."""

from itertools import pairwise, permutations

import numpy as np
from hypothesis import strategies as st


@st.composite
def truths_and_scores(draw, min_labels=1, max_labels=5):
    """Draw a truth and scores (n, l); few levels of the scores make many ties."""
    n = draw(st.integers(1, 5))
    l = draw(st.integers(min_labels, max_labels))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    levels = draw(st.sampled_from([1, 2, 3, 1000]))
    truth = rng.random((n, l)) < draw(st.sampled_from([0.2, 0.5, 0.9]))
    scores = rng.integers(0, levels, (n, l)) / levels
    return truth, scores


def average_over_orders(compute_metric, truth, scores):
    """Average a metric of one ranked instance over all orders of tied labels."""
    means = []
    for relevant, score in zip(truth, scores, strict=True):
        values = []
        for order in permutations(range(len(score))):
            if all(score[a] >= score[b] for a, b in pairwise(order)):
                values.append(compute_metric([bool(relevant[j]) for j in order]))

        means.append(np.mean(values))

    return np.mean(means)


def compare_pairs(truth, scores, tied):
    """Return the share of ordered pairs, with a weight for tied ones."""
    relevant = scores[truth]
    irrelevant = scores[~truth]
    if not (relevant.size and irrelevant.size):
        return np.nan

    is_above = relevant[:, None] > irrelevant
    is_tied = relevant[:, None] == irrelevant
    return (is_above + tied * is_tied).mean()
