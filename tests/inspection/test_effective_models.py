import numpy as np
import pytest

import mlconsensus as mlc
from mlconsensus.inspection.diagnostics import examine
from mlconsensus.inspection.effective_models import (
    EffectiveModels,
    combine_families,
    estimate_effective_models,
)
from mlconsensus.inspection.pairwise import compute_pairwise_statistics
from mlconsensus.linalg.annotations import make_annotations
from mlconsensus.metrics.estimate import Estimate


def _make_models(m, error, seed, n=500, l=6):
    """Make scores (m, n, l) with independent errors of probability `error`."""
    rng = np.random.default_rng(seed)
    truth = rng.random((n, l)) < 0.4
    return (truth ^ (rng.random((m, n, l)) < error)).astype(float)


@pytest.mark.parametrize("m", [4, 7, 12])
def test_independent_make_models_are_as_many_as_they_are(m):
    result = examine(mlc.Predictions(_make_models(m, 0.1, seed=m))).effective_models
    assert result.estimate > 0.95 * m
    assert result.high == pytest.approx(m, rel=0.02)


def test_copies_of_one_model_count_once():
    result = examine(
        mlc.Predictions(np.repeat(_make_models(1, 0.1, seed=0), 6, axis=0))
    ).effective_models
    assert result.estimate == pytest.approx(1)


def test_two_families_of_copies_are_two():
    result = examine(
        mlc.Predictions(np.repeat(_make_models(2, 0.1, seed=1), 5, axis=0))
    ).effective_models
    assert result.estimate == pytest.approx(2, abs=0.15)


def test_intervals_contain_the_true_number():
    """Errors correlate because some pairs are hard: p ~ Beta(2, 38).

    The correlation is 1 / (2 + 38 + 1).

    The majority is hardly ever wrong there; where it is, the number is too high
    (docs/diagnostics.md).
    """
    m = 10
    expected = 10 / (1 + 9 / 41)
    held = 0
    for seed in range(100):
        hard = np.random.default_rng(1000 + seed).beta(2, 38, (300, 4))
        result = estimate_effective_models(
            m,
            compute_pairwise_statistics(
                make_annotations(mlc.Predictions(_make_models(m, hard, seed, 300, 4)))
            ).departures,
        )
        held += result.low <= expected <= result.high
    assert held >= 88


def test_too_few_make_models_to_tell():
    result = examine(mlc.Predictions(_make_models(3, 0.1, seed=0))).effective_models
    assert (result.low, result.high) == (1, 3)


def test_a_family_in_a_sparse_crowd_counts_as_one():
    scores = _make_models(60, 0.1, seed=0, n=2000, l=8)
    scores[np.random.default_rng(1).random((60, 2000)) > 0.1] = np.nan
    scores[1] = scores[0]
    result = examine(mlc.Predictions(scores))
    expected = [
        ("duplicate", ("model_0", "model_1")),
        ("family", ("model_0", "model_1")),
    ]
    assert [(flag.kind, flag.models) for flag in result.flags] == expected
    effective_models = result.effective_models
    assert effective_models.low < 58
    assert effective_models.high == pytest.approx(59)


def test_families_are_combined_by_kish():
    """Errors of two families correlate by 0.1, those in the first one by 0.5."""
    between = EffectiveModels(estimate=4 / 1.3, low=4 / 1.6, high=4.0, sentence="")
    size = 3 / (1 + 2 * 0.5)
    family = Estimate(value=size, standard_error=0.1, low=1.0, high=3.0)
    result = combine_families(6, between, [family], n_alone=3)
    total = 3 + size
    assert result.estimate == pytest.approx(total / (1 + (total - 1) * 0.1))
    assert result.low == pytest.approx(4 / (1 + 3 * 0.2))
    assert result.high == pytest.approx(6)


def test_an_uninformative_interval_is_not_shown():
    """Models without shared instances can be any number, except for two duplicates."""
    result = estimate_effective_models(60, np.zeros((10, 4, 2, 6)), copied=1 / 1770)
    assert (result.low, result.sentence) == (1, "")
    assert 57 < result.high < 60
    two = mlc.combine([[[1, 0]], [[1, 0]]])
    for text in (two.report().to_text(), two.report().to_html(), str(two.diagnostics)):
        assert "independent models" not in text
    expected = estimate_effective_models(
        60,
        compute_pairwise_statistics(
            make_annotations(mlc.Predictions(_make_models(60, 0.1, 0, 400)))
        ).departures,
    )
    assert expected.sentence.startswith("60 models are worth at most ")
