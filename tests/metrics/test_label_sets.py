"""Metrics of label sets, compared with their definitions."""

import numpy as np
import pytest
from hypothesis import given
from rankings import truths_and_scores

import mlconsensus as mlc
from mlconsensus.metrics import label_sets as metrics


def compute_f1(truth, label_sets):
    n_sum = truth.sum() + label_sets.sum()
    if n_sum == 0:
        return 0.0
    return 2 * (truth & label_sets).sum() / n_sum


@given(example=truths_and_scores())
def test_label_sets(example):
    truth, scores = example
    label_sets = scores > 0.5
    is_right = truth == label_sets
    hamming_loss = metrics.hamming_loss(truth, label_sets)
    assert hamming_loss == pytest.approx(1 - is_right.mean())
    accuracy = metrics.subset_accuracy(truth, label_sets)
    assert accuracy == pytest.approx(is_right.all(axis=1).mean())

    micro_f1 = metrics.micro_f1(truth, label_sets)
    assert micro_f1 == pytest.approx(compute_f1(truth, label_sets))
    label_f1 = list(map(compute_f1, truth.T, label_sets.T))
    macro_f1 = metrics.macro_f1(truth, label_sets)
    assert macro_f1 == pytest.approx(np.mean(label_f1))


def test_label_sets_must_be_binary():
    message = "label sets: found values other than 0 and 1"
    with pytest.raises(mlc.InputError, match=message):
        metrics.hamming_loss([[1, 0]], [[0.5, 0.1]])
