import numpy as np
import pytest

import mlconsensus as mlc
from mlconsensus.inspection.diagnostics import examine
from mlconsensus.inspection.effective_models import estimate_effective_models
from mlconsensus.inspection.pairwise import compute_pairwise_statistics
from mlconsensus.linalg.annotations import make_annotations


def _raters(m, error, seed, n=500, l=6):
    """Make scores (m, n, l) with independent errors of probability `error`."""
    rng = np.random.default_rng(seed)
    truth = rng.random((n, l)) < 0.4
    return (truth ^ (rng.random((m, n, l)) < error)).astype(float)


@pytest.mark.parametrize("m", [4, 7, 12])
def test_independent_raters_are_as_many_as_they_are(m):
    result = examine(mlc.Predictions(_raters(m, 0.1, seed=m))).voices
    assert result.estimate > 0.95 * m
    assert result.high == pytest.approx(m, rel=0.02)


def test_copies_of_one_rater_are_one():
    result = examine(
        mlc.Predictions(np.repeat(_raters(1, 0.1, seed=0), 6, axis=0))
    ).voices
    assert result.estimate == pytest.approx(1)


def test_two_families_of_copies_are_two():
    result = examine(
        mlc.Predictions(np.repeat(_raters(2, 0.1, seed=1), 5, axis=0))
    ).voices
    assert result.estimate == pytest.approx(2, abs=0.15)


def test_intervals_hold_the_known_number():
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
                make_annotations(mlc.Predictions(_raters(m, hard, seed, 300, 4)))
            ).departures,
        )
        held += result.low <= expected <= result.high
    assert held >= 88


def test_too_few_raters_to_tell():
    result = examine(mlc.Predictions(_raters(3, 0.1, seed=0))).voices
    assert (result.low, result.high) == (1, 3)


def test_an_interval_has_a_width_where_copies_set_the_number():
    """Errors of a sparse crowd correlate less than with one pair of duplicates."""
    scores = _raters(60, 0.1, seed=0, n=2000, l=8)
    scores[np.random.default_rng(1).random((60, 2000)) > 0.1] = np.nan
    scores[1] = scores[0]
    panel = mlc.Predictions(scores)
    result = examine(panel)
    assert [(one.kind, one.raters) for one in result.suspects] == [
        ("copy", ("model_0", "model_1"))
    ]
    expected = 60 / (
        1 + 59 / 1770
    )  # one pair of 1,770 errs together, the others do not
    assert result.voices.low < expected - 1
    assert result.voices.high == pytest.approx(expected)


def test_an_interval_from_one_voice_to_nearly_all_is_not_told():
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
            make_annotations(mlc.Predictions(_raters(60, 0.1, 0, 400)))
        ).departures,
    )
    assert expected.sentence.startswith("60 models are worth at most ")
