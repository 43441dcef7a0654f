"""The metrics that the paper prints, compared with loops and with scikit-learn."""

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given
from rankings import average_over_orders, compare_pairs, truths_and_scores

from mlconsensus.reproduction.printed_metrics import (
    average_precision_printed,
    micro_auc_printed,
    ranking_loss_printed,
)


def compute_precision(ranked):
    """Average the precision over every number of retrieved labels."""
    n_retrieved = np.arange(1, len(ranked) + 1)
    return np.mean(np.cumsum(ranked) / n_retrieved)


@given(example=truths_and_scores())
def test_printed_average_precision_is_the_mean_over_orders_of_ties(example):
    expected = average_over_orders(compute_precision, *example)
    assert average_precision_printed(*example) == pytest.approx(expected, abs=1e-12)


@given(example=truths_and_scores())
def test_printed_micro_auc_counts_ties_as_wrong(example):
    expected = compare_pairs(*example, tied=0.0)
    assert micro_auc_printed(*example) == pytest.approx(expected, nan_ok=True)


@given(example=truths_and_scores(min_labels=2))  # scikit-learn refuses one label
def test_printed_ranking_loss_is_scikit_learns_times_n(example):
    truth, scores = example
    expected = sklearn.metrics.label_ranking_loss(truth, scores) * len(truth)
    assert ranking_loss_printed(truth, scores) == pytest.approx(expected)
