import numpy as np
import pytest
from hypothesis import given

import mlconsensus as mlc
from mlconsensus.inspection.diagnostics import examine
from panels import DEGENERATE, panels


def _panel(scores):
    return mlc.Predictions(scores, models=[f"m{k}" for k in range(len(scores))])


@pytest.fixture(scope="module")
def four():
    return mlc.datasets.make_panel(
        2000, 8, 4, quality=0.8, shared_errors=0, random_state=0
    ).predictions.to_array()


def test_random_inverted_and_duplicate_models_are_flagged(four):
    rng = np.random.default_rng(1)
    at_random = rng.permuted(four[0], axis=0)
    copied = np.where(rng.random(four[1].shape) < 0.002, 1 - four[1], four[1])
    result = mlc.combine(
        _panel([*four, at_random, 1 - four[2], copied])
    ).diagnostics.panel
    assert [(one.kind, one.models) for one in result.flags] == [
        ("random", ("m4",)),
        ("inverted", ("m5",)),
        ("duplicate", ("m1", "m6")),
        ("family", ("m1", "m6")),
    ]
    assert result.reliability[4] == pytest.approx(0, abs=0.05)
    assert [sentence.split(":")[0] for sentence in result.warnings()][:3] == [
        "m4 is random",
        "m5 is inverted",
        "m6 is a near duplicate of m1",
    ]
    either = (four[1] + copied > 0).sum()
    both = (four[1] * copied).sum()
    assert (
        f"of {either:,} pairs of an instance and a label that either predicts, both "
        f"predict {both / either:.1%} (2,000 shared instances)" in result.warnings()[2]
    )


def test_good_models_are_not_flagged(four):
    result = mlc.combine(_panel(four)).diagnostics.panel
    assert not result.flags
    assert (result.reliability > 0.5).all()


def test_agreement_is_the_correlation_over_all_labels(four):
    result = mlc.combine(_panel(four)).diagnostics.panel
    centred = four - four.mean(axis=1, keepdims=True)
    expected = np.corrcoef(centred.reshape(4, -1))
    np.testing.assert_allclose(result.agreement, expected, atol=1e-10)


def test_dispute_is_how_often_two_models_differ(four):
    result = mlc.combine(_panel(four)).diagnostics.panel
    pairs = [(k, q) for k in range(4) for q in range(4) if k != q]
    expected = np.mean([(four[k] != four[q]).mean(axis=0) for k, q in pairs], axis=0)
    np.testing.assert_allclose(result.dispute, expected, atol=1e-10)
    assert result.most_disputed(1)[0][1] == pytest.approx(expected.max())


def test_departure_from_voting(four):
    assert mlc.combine(_panel(four), method="mv").diagnostics.moved == 0
    assert mlc.combine(_panel(four), method="mlcm-r").diagnostics.moved > 0


def test_intervals_hold_every_leave_one_out_score(four):
    consensus = mlc.combine(_panel(four[:, :50]))
    low, high = consensus.intervals()
    assert (low <= consensus.scores).all()
    assert (consensus.scores <= high).all()
    without = mlc.WeightedConsensus().fit_transform(four[1:, :50])
    assert (low <= without + 1e-12).all()
    assert (without <= high + 1e-12).all()


@given(scores=panels())
def test_always_finite(scores):
    result = mlc.combine(scores).diagnostics
    panel = result.panel
    for figures in (
        panel.agreement,
        panel.reliability,
        panel.dispute,
        result.moved,
        [
            result.effective_models.estimate,
            result.effective_models.low,
            result.effective_models.high,
        ],
    ):
        assert np.isfinite(figures).all()
    assert (panel.dispute >= -1e-12).all()
    assert (
        1
        <= result.effective_models.low
        <= result.effective_models.estimate
        <= result.effective_models.high
        <= len(scores)
    )
    assert not result.flags  # nine instances prove nothing
    assert str(result)


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_panels(name):
    consensus = mlc.combine(DEGENERATE[name])
    assert np.isfinite(consensus.diagnostics.panel.agreement).all()
    assert all(np.isfinite(end).all() for end in consensus.intervals())


def test_pairs_that_never_met_do_not_lower_the_mean_agreement():
    """Three of 60 models see each instance: most pairs share none, others agree."""
    panel, _ = mlc.datasets.make_panel(400, 8, 60, quality=0.9, random_state=0)
    answers = panel.to_array()
    rng = np.random.default_rng(0)
    answers[rng.random((60, 400)).argsort(axis=0).argsort(axis=0) >= 3] = np.nan
    result = mlc.combine(answers).diagnostics.panel
    assert (result.shared == 0).mean() > 0.2
    assert result.mean_agreement == pytest.approx(
        mlc.combine(panel).diagnostics.panel.mean_agreement, abs=0.1
    )


def test_what_rounding_leaves_between_copies_is_no_difference():
    one = np.array(
        [[0.9, 0.1, 0, 1], [0.2, np.nan, 0.5, 0], [1, 0.25, 0, 0.75], [0, 1, 1, 0.125]]
    )
    other = one.copy()
    other[0, 1] = 0.09999999997362466
    with np.errstate(all="raise"):
        assert np.isfinite(examine(_panel([other, one])).agreement).all()
