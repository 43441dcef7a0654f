"""Families of related models, with the evidence for each."""

import numpy as np
import pytest

import mlconsensus as mlc
from mlconsensus.inspection.families import describe_families

_NAMES = ("a-1", "a-2", "a-3", "b", "c", "d")
_STATED = dict(zip(_NAMES, ("a", "a", "a", "b", "c", "d"), strict=True))


def _predict(rng, truth, hit, false_alarm):
    """Return binary predictions (n, l) with independent errors."""
    drawn = rng.random(truth.shape)
    return np.where(truth, drawn < hit, drawn < false_alarm)


def _make_models(seed, n=300, shares=(0.1, 0.3, 0.3)):
    """Return predictions (6, n, 10): three related models and three others."""
    rng = np.random.default_rng(seed)
    truth = rng.random((n, 10)) < 0.3
    base = _predict(rng, truth, 0.8, 0.05)
    scores = []
    for share in shares:
        again = _predict(rng, truth, 0.8, 0.05)
        scores.append(np.where(rng.random(truth.shape) < share, again, base))
    for hit, false_alarm in ((0.75, 0.05), (0.85, 0.08), (0.7, 0.04)):
        scores.append(_predict(rng, truth, hit, false_alarm))
    return mlc.Predictions(np.array(scores, dtype=float), models=_NAMES)


def _describe(predictions, families=None):
    return mlc.combine(predictions, families=families).diagnostics.families


def test_intervals_contain_the_error_correlation():
    """The errors of two members correlate where neither predicts again."""
    expected = (0.9 * 0.7 + 0.9 * 0.7 + 0.7 * 0.7) / 3
    n_contained = 0
    for seed in range(40):
        (family,) = _describe(_make_models(seed), _STATED).families
        estimate = family.error_correlation
        n_contained += estimate.low <= expected <= estimate.high
        assert 0.02 < estimate.high - estimate.low < 0.2
    assert n_contained >= 35


def test_found_families_show_their_evidence_and_what_to_do():
    diagnostics = _describe(_make_models(0))
    (family,) = diagnostics.families
    assert diagnostics.origin == "found"
    assert family.models == ("a-1", "a-2", "a-3")
    assert family.stem == "a"
    size = 3 / (1 + 2 * family.error_correlation.value)
    assert family.effective_models.value == pytest.approx(size)
    estimate = family.error_correlation
    assert family.sentence == (
        "a-1, a-2 and a-3 behave like one model: error correlation "
        f"{estimate.value:.2f} ({estimate.low:.2f}–{estimate.high:.2f})"
    )
    assert "none of" not in diagnostics.sentences[1]
    assert "300 simulated sets" in diagnostics.sentences[1]
    assert "--families independent" in diagnostics.sentences[1]


def test_stated_families_that_predictions_do_not_show():
    predictions = _make_models(1, shares=(1, 1, 1))
    (family,) = _describe(predictions, _STATED).families
    assert family.error_correlation.low < 0 < family.error_correlation.high
    assert "as stated, but their predictions do not show it" in family.sentence
    hints = _describe(predictions)
    assert not hints.families
    assert hints.sentences == (
        "The names of a-1, a-2 and a-3 share a stem, but their predictions do not "
        "show that they are one family; --families by-name makes them one.",
    )
    by_name = _describe(predictions, "by-name")
    assert by_name.families[0].sentence.startswith("a-1, a-2 and a-3 are one family by")
    independent = _describe(predictions, "independent")
    assert independent.sentences == (
        "The models are treated as independent, as stated.",
    )


def test_a_pair_next_to_one_model_cannot_be_recognized():
    predictions = _make_models(2, shares=(0.1, 0.1, 0)).select(
        models=["a-1", "a-2", "d"]
    )
    diagnostics = _describe(predictions)
    assert diagnostics.lone_model == "d"
    assert not diagnostics.families
    assert diagnostics.sentences[0].startswith(
        "a-1 and a-2 agree with each other more than with d: either they are related, "
        "or d is less reliable, and predictions alone cannot show which."
    )


def test_two_families_are_assumed_to_be_equally_reliable():
    predictions = _make_models(3).select(models=["a-1", "a-2", "a-3", "b"])
    families = {"a-1": "a", "a-2": "a", "a-3": "a", "b": "b"}
    (family,) = _describe(predictions, families).families
    assert family.sentence.endswith(", if both families are equally reliable")


def test_an_inverted_member_is_named():
    scores = _make_models(4).to_array()
    scores[1] = 1 - scores[1]
    predictions = mlc.Predictions(scores, models=_NAMES)
    (family,) = _describe(predictions, _STATED).families
    assert family.inverted == ("a-2",)
    assert family.error_correlation.low > 0.4
    assert family.sentence.endswith("; a-2 predicts the opposite of the others")


def test_a_combiner_from_a_file_is_fitted_again(tmp_path):
    predictions = _make_models(5)
    consensus = mlc.combine(predictions)
    state = consensus.combiner.state_
    direct = describe_families(predictions.models, state)
    assert direct == consensus.diagnostics.families
    voting = mlc.combine(predictions, method="majority_vote").diagnostics.families
    assert voting.family_of_model == direct.family_of_model
