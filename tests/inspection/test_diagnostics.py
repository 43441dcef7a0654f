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


def test_random_inverted_and_copied_models_are_named(four):
    rng = np.random.default_rng(1)
    at_random = rng.permuted(four[0], axis=0)
    copied = np.where(rng.random(four[1].shape) < 0.002, 1 - four[1], four[1])
    diagnostics = mlc.combine(
        _panel([*four, at_random, 1 - four[2], copied])
    ).diagnostics.panel
    assert [(one.kind, one.raters) for one in diagnostics.suspects] == [
        ("random", ("m4",)),
        ("inverted", ("m5",)),
        ("copy", ("m1", "m6")),
    ]
    assert diagnostics.reliability[4] == pytest.approx(0, abs=0.05)
    assert [warning.split(":")[0] for warning in diagnostics.warnings()][:2] == [
        "m4 answers as if at random",
        "m5 says the opposite of the others",
    ]
    assert diagnostics.warnings()[2].startswith("m6 answers as m1 does in 9")
    either = (four[1] + copied > 0).sum()
    both = (four[1] * copied).sum()
    assert (
        f"{both / either:.1%} of {either:,} cells where either says yes (2,000 shared instances)"
        in diagnostics.warnings()[2]
    )


def test_sound_models_are_left_in_peace(four):
    diagnostics = mlc.combine(_panel(four)).diagnostics.panel
    assert not diagnostics.suspects
    assert (diagnostics.reliability > 0.5).all()


def test_agreement_is_the_correlation_over_all_labels(four):
    diagnostics = mlc.combine(_panel(four)).diagnostics.panel
    centred = four - four.mean(axis=1, keepdims=True)
    expected = np.corrcoef(centred.reshape(4, -1))
    np.testing.assert_allclose(diagnostics.agreement, expected, atol=1e-10)


def test_dispute_is_how_often_two_models_differ(four):
    diagnostics = mlc.combine(_panel(four)).diagnostics.panel
    pairs = [(k, q) for k in range(4) for q in range(4) if k != q]
    expected = np.mean([(four[k] != four[q]).mean(axis=0) for k, q in pairs], axis=0)
    np.testing.assert_allclose(diagnostics.dispute, expected, atol=1e-10)
    assert diagnostics.most_disputed(1)[0][1] == pytest.approx(expected.max())


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
    diagnostics = mlc.combine(scores).diagnostics
    panel = diagnostics.panel
    for figures in (
        panel.agreement,
        panel.reliability,
        panel.dispute,
        diagnostics.moved,
        [diagnostics.voices.estimate, diagnostics.voices.low, diagnostics.voices.high],
    ):
        assert np.isfinite(figures).all()
    assert (panel.dispute >= -1e-12).all()
    assert (
        1
        <= diagnostics.voices.low
        <= diagnostics.voices.estimate
        <= diagnostics.voices.high
        <= len(scores)
    )
    assert not diagnostics.suspects  # nine instances prove nothing
    assert str(diagnostics)


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_panels(name):
    consensus = mlc.combine(DEGENERATE[name])
    assert np.isfinite(consensus.diagnostics.panel.agreement).all()
    assert all(np.isfinite(end).all() for end in consensus.intervals())


def test_pairs_that_never_met_do_not_lower_the_mean_agreement():
    """Of 60 workers three look at each item: most pairs share none, and those that do agree."""
    panel, _ = mlc.datasets.make_panel(400, 8, 60, quality=0.9, random_state=0)
    scores = panel.to_array()
    rng = np.random.default_rng(0)
    scores[rng.random((60, 400)).argsort(axis=0).argsort(axis=0) >= 3] = np.nan
    diagnostics = mlc.combine(scores).diagnostics.panel
    assert (diagnostics.shared == 0).mean() > 0.2
    assert diagnostics.mean_agreement == pytest.approx(
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
