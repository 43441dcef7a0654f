"""One plain text per case of a consensus."""

from dataclasses import replace

import numpy as np
import pytest

import mlconsensus as mlc
from mlconsensus.inspection.reasons import (
    compare_weights,
    describe_method,
    describe_similarity,
)


def _make_models(rng, truth, m=5, hit=0.8, false_alarm=0.05):
    """Return predictions (m, n, l) with independent errors."""
    drawn = rng.random((m, *truth.shape))
    return np.where(truth, drawn < hit, drawn < false_alarm).astype(float)


@pytest.fixture(scope="module")
def truth():
    return np.random.default_rng(0).random((400, 8)) < 0.3


def _describe(predictions, **settings):
    combiner = mlc.WeightedConsensus(**settings).fit(predictions)
    return describe_method(combiner, is_requested=False)


def test_each_case_has_its_code_and_text(truth):
    rng = np.random.default_rng(1)
    scores = _make_models(rng, truth)
    independent = _describe(scores)
    assert independent.codes == ("independent",)
    assert independent.sentence.startswith("no family of related models was found; ")
    assert _describe(scores, families="independent").codes == ("stated_independent",)

    related = np.concatenate([scores, scores[:1]])
    found = _describe(related)
    assert found.codes == ("families_found",)
    assert "(found related: model_0 and model_5)" in found.sentence
    assert found.sentence.startswith("6 models in 5 families or alone")
    stated = _describe(scores, families={"model_1": "x", "model_2": "x"})
    assert stated.codes == ("families_stated",)
    assert "(stated related: model_1 and model_2)" in stated.sentence

    weak = _make_models(rng, truth, m=1, hit=0.45, false_alarm=0.15)
    near = np.where(rng.random(scores.shape) < 0.3, scores[:1], scores)
    lone = _describe(np.concatenate([near[:4], weak]))
    assert lone.codes == ("ambiguous",)
    assert "agree more with each other than with model_4" in lone.sentence
    assert lone.sentence.endswith("(in Python families=)")

    one = _describe(scores[:1])
    assert one.codes == ("one_model",)
    noise = (rng.random((4, 400, 8)) < 0.3).astype(float)
    random = _describe(noise)
    assert random.codes == ("no_agreement",)
    assert random.sentence.endswith("so that votes are used")

    voting = mlc.MajorityVote().fit(scores)
    requested = describe_method(voting, is_requested=True)
    assert requested.codes == ("requested",)
    assert str(requested) == "the method was requested"


def test_gold_labels_show_the_weight_before_and_after(truth):
    """Three of five models predict the opposite of a hidden label."""
    rng = np.random.default_rng(2)
    confounder = rng.random(truth.shape) < 0.3
    scores = _make_models(rng, confounder, m=4)
    opposite = 1 - _make_models(rng, truth, m=1, hit=0.95)
    mixed = np.where(rng.random(truth.shape) < 0.5, opposite[0], scores[0])
    predictions = mlc.Predictions(np.stack([*scores, mixed]))
    gold = np.full(truth.shape, np.nan)
    gold[:150] = truth[:150]
    combiner = mlc.WeightedConsensus().fit(predictions.with_gold(gold))
    before, after = compare_weights(combiner.solution_)
    assert before[4] > 0 > after[4]
    reason = describe_method(combiner, is_requested=False)
    assert reason.codes[-1] == "gold_changed"
    weights = f"{before[4]:.2f} → −{-after[4]:.2f}"
    assert f"model_4 is inverted, weight {weights}" in reason.sentence


def test_weights_are_derivatives_of_the_log_odds(truth):
    rng = np.random.default_rng(3)
    scores = _make_models(rng, truth, m=4, hit=0.7)
    scores[3] = np.where(rng.random(truth.shape) < 0.5, scores[2], scores[3])
    combiner = mlc.WeightedConsensus().fit(scores)
    solution = combiner.solution_

    # A correction that changes nothing
    neutral = replace(
        solution,
        curve=np.array([0.0, 1.0, 0.0]),
        model_correction=np.zeros(4),
        label_correction=np.zeros((2, 8)),
    )
    before, after = compare_weights(neutral)
    np.testing.assert_allclose(before, after)

    # The numerical derivative of each label's score by a model's prediction
    start = np.full((4, 1, 8), 0.5)
    for k in range(4):
        slopes = []
        for label in range(8):
            changed = start.copy()
            changed[k, 0, label] += 0.01
            difference = combiner.transform(changed) - combiner.transform(start)
            slopes.append(difference[0, label] / 0.01)
        slope = np.average(slopes, weights=solution.prior)
        assert before[k] == pytest.approx(4 * slope, rel=0.02)


def test_a_consensus_describes_its_similarity_to_voting(truth):
    scores = _make_models(np.random.default_rng(4), truth)
    consensus = mlc.combine(scores)
    assert consensus.method_reason.codes == ("independent",)
    similarity = describe_similarity(consensus.scores, consensus.vote)
    assert consensus.reason.endswith(f"; {similarity}")
    assert mlc.combine(scores, "mv").reason == "the method was requested"


def test_similarity_counts_ties_of_voting_as_equal():
    scores = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.7, 0.3]])
    vote = np.array([[1, 0], [1, 0], [0.5, 0.5], [1, 0]])
    assert describe_similarity(scores, vote) == (
        "the first label is the same as with voting for 75.0% of the instances"
    )
