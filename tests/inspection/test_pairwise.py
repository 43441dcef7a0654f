from dataclasses import astuple
from itertools import product

import numpy as np
import pytest
from hypothesis import given

import mlconsensus as mlc
from mlconsensus.inspection import pairwise
from mlconsensus.inspection.pairwise import (
    compute_pairwise_statistics,
    estimate_reliability,
    sum_deviations,
)
from mlconsensus.linalg.annotations import make_annotations
from mlconsensus.predictions import sampling
from mlconsensus.predictions.sampling import subsample_for_diagnostics
from panels import panels


@given(scores=panels())
def test_sums_are_those_of_plain_loops(scores):
    result = compute_pairwise_statistics(make_annotations(mlc.Predictions(scores)))
    m, n, _ = scores.shape
    is_present = ~np.isnan(scores)
    a = np.where(is_present, scores, 0)
    mean = a.sum(axis=1) / np.maximum(is_present.sum(axis=1), 1)
    x = np.where(is_present, a - mean[:, None], 0)
    with_others = np.zeros(m)
    pairs = {
        name: np.zeros((m, m))
        for name in ("products", "squares", "cells", "instances", "spread")
    }
    for i in range(n):
        speakers = [k for k in range(m) if is_present[k, i].any()]
        if len(speakers) < 2:
            continue
        for k in speakers:
            with_others[k] += sum(x[k, i] @ x[q, i] for q in speakers if q != k) ** 2
        for k, q in product(speakers, speakers):
            both = is_present[k, i] & is_present[q, i]
            pairs["products"][k, q] += x[k, i] @ x[q, i]
            pairs["squares"][k, q] += (x[k, i, both] ** 2).sum()
            pairs["cells"][k, q] += both.sum()
            pairs["instances"][k, q] += both.any()
            pairs["spread"][k, q] += ((x[k, i, both] - x[q, i, both]) ** 2).sum() ** 2
    for name, expected in pairs.items():
        np.testing.assert_allclose(getattr(result, name), expected, atol=1e-10)
    np.testing.assert_allclose(result.with_others, with_others, atol=1e-10)


def test_departures_are_counted_from_the_majority():
    votes = np.array(
        [[[1], [1], [1], [0]], [[0], [0], [0], [0]], [[1], [1], [0], [0]]], dtype=float
    )  # (n, m, l)
    spoke = np.full((3, 1), 4.0)
    cells, far, square, both = sum_deviations(
        spoke, votes.sum(axis=1), votes.sum(axis=1)
    )[:, :, 0]
    np.testing.assert_allclose(
        cells, [1, 2]
    )  # the majority says no once; a tie counts as yes
    np.testing.assert_allclose(far, [0, 1 / 4 + 2 / 4])
    np.testing.assert_allclose(square, far)
    np.testing.assert_allclose(
        both, [0, 0 + 2 / 12]
    )  # of twelve ordered pairs, two depart together in the tie


def test_three_raters_tell_nothing_about_departures():
    assert not sum_deviations(
        np.full((1, 1), 3.0), np.ones((1, 1)), np.ones((1, 1))
    ).any()


def test_reliabilities_multiply_to_agreement():
    rng = np.random.default_rng(0)
    true = np.array([0.9, 0.7, 0.5, 0.3, -0.6])
    signal = rng.normal(size=(4000, 5))
    noise = rng.normal(size=(5, 4000, 5))
    seen = true[:, None, None] * signal + np.sqrt(1 - true**2)[:, None, None] * noise
    result = estimate_reliability(
        compute_pairwise_statistics(
            make_annotations(mlc.Predictions(1 / (1 + np.exp(-0.2 * seen))))
        )
    )
    np.testing.assert_allclose(result.of_each, true, atol=0.03)
    np.testing.assert_allclose(
        result.without[~np.eye(5, dtype=bool)], np.repeat(true, 4), atol=0.06
    )


def test_large_panels_are_looked_at_in_part(monkeypatch):
    panel = mlc.Predictions(np.zeros((2, 100, 3), dtype=bool))
    monkeypatch.setattr(sampling, "MOST_CELLS", 150)
    assert subsample_for_diagnostics(panel).instances.tolist() == list(range(0, 100, 4))


@pytest.mark.parametrize("at_once", [1, 64])
def test_steps_add_up(monkeypatch, at_once):
    rng = np.random.default_rng(0)
    scores = rng.random((4, 60, 3))
    scores[rng.random((4, 60)) < 0.3] = np.nan
    annotations = make_annotations(mlc.Predictions(scores))
    whole = compute_pairwise_statistics(annotations)
    monkeypatch.setattr(pairwise, "_AT_ONCE", at_once)
    in_steps = compute_pairwise_statistics(annotations)
    for one, other in zip(astuple(whole), astuple(in_steps), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)
