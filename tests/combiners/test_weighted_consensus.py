"""Weighted consensus against its literal transcription, and what it promises."""

import numpy as np
import pandas as pd
import pytest

import mlconsensus as mlc
import weighted_oracle
from mlconsensus.combiners.reliability import find_families, shrink
from mlconsensus.predictions.families import number_families


def make_models(seed, quality, n_instances=120, n_labels=6, kind="votes", missing=0.0):
    """Return scores (m, n, l) of models, and the truth. Negative quality: inverted."""
    rng = np.random.default_rng(seed)
    truth = rng.random((n_instances, n_labels)) < 0.3
    truth[:, 1] |= truth[:, 0] & (rng.random(n_instances) < 0.7)
    scores = []
    for value in quality:
        is_right = rng.random(truth.shape) < abs(value)
        guess = rng.random(truth.shape) < 0.3
        prediction = np.where(is_right, truth if value > 0 else ~truth, guess)
        values = prediction.astype(float)
        if kind == "scores":
            values = np.clip(0.2 + 0.6 * values + rng.normal(0, 0.1, truth.shape), 0, 1)
        scores.append(values)
    scores = np.array(scores)
    scores[rng.random(scores.shape[:2]) < missing] = np.nan
    return scores, truth


def make_family(seed, base, shares):
    """Return models that repeat most predictions of a base model."""
    rng = np.random.default_rng(seed)
    members = []
    for share in shares:
        is_new = rng.random(base.shape) < share
        members.append(np.where(is_new, rng.random(base.shape) < 0.3, base))
    return np.array(members, dtype=float)


CASES = {
    "independent": ([0.8, 0.7, 0.5, 0.6], [0, 1, 2, 3], {}),
    "two families": ([0.8, 0.7, 0.5, 0.6, 0.4], [0, 0, 1, 1, 2], {}),
    "a pair of models": ([0.8, 0.6], [0, 1], {}),
    "one model": ([0.7], [0], {}),
    "one family": ([0.7, 0.6, 0.5], [0, 0, 0], {}),
    "an inverted model": ([0.9, 0.8, -0.7, 0.6, 0.7], [0, 1, 2, 3, 4], {}),
    "an inverted member": ([0.9, -0.8, 0.7, 0.6, 0.7], [0, 0, 1, 2, 3], {}),
    "no signal": ([0.0, 0.0, 0.0], [0, 1, 2], {}),
    "scores": ([0.8, 0.7, 0.5, 0.6], [0, 1, 1, 2], {"kind": "scores"}),
    "missing rows": ([0.8, 0.7, 0.5, 0.6, 0.6], [0, 1, 1, 2, 3], {"missing": 0.3}),
    "few instances": ([0.8, 0.7, 0.5], [0, 1, 2], {"n_instances": 7}),
    "one label": ([0.8, 0.7, 0.5, 0.6], [0, 1, 2, 3], {"n_labels": 2}),
}


@pytest.mark.parametrize("case", CASES)
def test_equals_the_transcription(case):
    quality, family, options = CASES[case]
    scores, _ = make_models(1, quality, **options)
    models = [f"model {k}" for k in range(len(quality))]
    families = {
        model: f"family {number}" for model, number in zip(models, family, strict=True)
    }
    predictions = mlc.Predictions(scores, models=models)
    result = mlc.weighted_consensus(predictions, families=families)
    expected = weighted_oracle.combine(scores, np.array(family))
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("case", ["two families", "missing rows", "scores"])
def test_layouts_give_the_same_scores(case):
    quality, family, options = CASES[case]
    scores, _ = make_models(2, quality, n_instances=60, **options)
    predictions = mlc.Predictions(scores)
    families = {
        model: str(number)
        for model, number in zip(predictions.models, family, strict=True)
    }
    combiner = mlc.WeightedConsensus(families=families)
    expected = combiner.fit_transform(predictions)
    longer = []
    for model, instance, label in np.ndindex(scores.shape):
        score = scores[model, instance, label]
        if not np.isnan(score):
            longer.append((predictions.models[model], f"{instance:03}", label, score))
    frame = pd.DataFrame(longer, columns=["model", "instance", "label", "score"])
    crowd = mlc.from_long(frame)
    order = [sorted(crowd.labels).index(str(label)) for label in range(scores.shape[2])]
    result = mlc.WeightedConsensus(families=families).fit_transform(crowd)
    rows = [list(crowd.instances).index(f"{i:03}") for i in range(scores.shape[1])]
    np.testing.assert_allclose(result[rows][:, order], expected, atol=1e-10)


def test_families_are_found():
    good, truth = make_models(3, [0.75, 0.75, 0.7], n_instances=500, n_labels=20)
    rng = np.random.default_rng(4)
    base = np.where(rng.random(truth.shape) < 0.5, truth, rng.random(truth.shape) < 0.3)
    family = make_family(5, base, [0.1, 0.1, 0.1, 0.1])
    scores = np.concatenate([family, good])
    consensus = mlc.combine(scores)
    names = list(consensus.families.values())
    assert len(set(names[:4])) == 1
    assert len(set(names)) == 4

    average_precision = mlc.metrics.average_precision
    vote = average_precision(truth, mlc.majority_vote(scores))
    assert average_precision(truth, consensus.scores) > vote + 0.02


def test_no_family_among_independent_models():
    for seed in range(10):
        scores, _ = make_models(seed, [0.8, 0.7, 0.6, 0.5, 0.7], n_instances=300)
        families = mlc.combine(scores).families
        assert len(set(families.values())) == 5, seed


def test_copies_are_a_family_and_count_once():
    scores, _ = make_models(6, [0.8, 0.7, 0.6], n_instances=400)
    copied = np.concatenate([scores, scores[:1], scores[:1]])
    once = mlc.combine(scores).scores
    thrice = mlc.combine(copied)
    assert len(set(thrice.families.values())) == 3
    np.testing.assert_allclose(thrice.scores, once, atol=0.02)


def test_better_models_are_more_reliable():
    scores, _ = make_models(7, [0.9, 0.7, 0.5, 0.3, 0.0], n_instances=800)
    reliability = mlc.WeightedConsensus().fit(scores).model_weights_
    assert (np.diff(reliability) < 0).all()
    assert abs(reliability[-1]) < 0.1


def test_two_inverted_models_of_six_do_not_disable_the_method():
    quality = [0.8, 0.7, 0.7, 0.8, -0.7, -0.8]
    scores, truth = make_models(8, quality, n_instances=500, n_labels=10)
    combiner = mlc.WeightedConsensus(families="independent").fit(scores)
    reliability = combiner.model_weights_
    assert (reliability[:4] > 0.3).all()
    assert (reliability[4:] < -0.3).all()
    result = mlc.metrics.average_precision(truth, combiner.transform(scores))
    vote = mlc.metrics.average_precision(truth, mlc.majority_vote(scores))
    assert result > vote + 0.05


def test_without_a_signal_scores_are_votes():
    scores, _ = make_models(9, [0.0, 0.0, 0.0], n_instances=300)
    np.testing.assert_allclose(
        mlc.weighted_consensus(scores), mlc.majority_vote(scores)
    )


def test_weights_of_users_count():
    scores, _ = make_models(10, [0.7, 0.7, 0.7], n_instances=300)
    ignored = mlc.weighted_consensus(scores, weights=[1, 1, 0])
    assert np.abs(ignored - mlc.weighted_consensus(scores)).max() > 0.01
    changed = scores.copy()
    changed[2] = scores[2]
    np.testing.assert_allclose(
        mlc.weighted_consensus(changed, weights=[2, 2, 0]), ignored, atol=0.2
    )


def test_shrinkage_keeps_what_is_certain():
    estimates = np.array([0.1, 0.9, 0.5])
    certain = shrink(estimates, 0.5, np.full(3, 1e-9))
    np.testing.assert_allclose(certain, estimates, atol=1e-6)
    uncertain = shrink(estimates, 0.5, np.full(3, 1e3))
    np.testing.assert_allclose(uncertain, 0.5, atol=1e-3)


def test_perfectly_explained_models_are_no_family():
    c = np.array([0.9, 0.8, 0.7, 0.6, 0.5])
    correlation = np.outer(c, c)
    np.fill_diagonal(correlation, 1.0)
    precision = np.full((5, 5), 1e4)
    assert find_families(correlation, precision).tolist() == [0, 1, 2, 3, 4]

    # The first two share errors.
    correlation[0, 1] = correlation[1, 0] = 0.95
    assert find_families(correlation, precision).tolist() == [0, 0, 1, 2, 3]


def test_names_that_share_a_stem():
    models = ["gpt-4o-t0", "gpt-4o-t1", "llama-3-8b", "llama-3-70b", "ann", "bob"]
    numbers = number_families("by-name", models)
    assert numbers.tolist() == [0, 0, 1, 1, 2, 3]


@pytest.mark.parametrize("families", ["related", {"nobody": "a"}, 3])
def test_families_that_cannot_be_used(families):
    scores, _ = make_models(11, [0.8, 0.7, 0.6])
    with pytest.raises(mlc.InputError, match="families"):
        mlc.combine(scores, families=families)


def test_a_stated_family_is_one_model_for_other_methods():
    scores, _ = make_models(12, [0.8, 0.7, 0.6])
    families = {"model_0": "a", "model_1": "a"}
    result = mlc.combine(scores, method="mv", families=families).scores
    expected = (scores[:2].mean(axis=0) + scores[2]) / 2
    np.testing.assert_allclose(result, expected)


def test_gold_labels_find_the_good_model_among_related_ones():
    scores, truth = make_models(14, [0.8], n_instances=600, n_labels=5)
    base = np.random.default_rng(15).random(truth.shape) < 0.3
    related = make_family(16, base, [0.2, 0.2, 0.2])
    scores = np.concatenate([scores, related])
    gold = np.full(truth.shape, np.nan)
    gold[:100] = truth[:100]
    options = {"families": "independent"}
    without = mlc.combine(scores, **options).scores[100:]
    corrected = mlc.combine(scores, gold=gold, **options)
    micro_auc = mlc.metrics.micro_auc
    gain = micro_auc(truth[100:], corrected.scores[100:]) - micro_auc(
        truth[100:], without
    )
    assert gain > 0.05
    assert (corrected.scores[:100] == truth[:100]).all()


def test_ambiguous_models_are_equally_reliable():
    """A pair next to one model: either it is a family, or the one is less reliable."""
    scores, truth = make_models(17, [0.8, 0.8], n_instances=500, n_labels=10)
    pair = make_family(18, scores[0], [0.1, 0.1])
    combiner = mlc.WeightedConsensus().fit(np.concatenate([pair, scores[1:]]))
    assert combiner.state_.is_ambiguous
    assert len(set(combiner.families_.values())) == 3
    assert np.ptp(combiner.model_weights_) < 1e-12


def test_gold_labels_that_add_nothing_do_no_harm():
    scores, truth = make_models(15, [0.9, 0.9, 0.9, 0.9], n_instances=400)
    gold = np.full(truth.shape, np.nan)
    gold[:5] = truth[:5]
    with_gold = mlc.combine(scores, gold=gold).scores[5:]
    without = mlc.combine(scores).scores[5:]
    average_precision = mlc.metrics.average_precision
    loss = average_precision(truth[5:], without) - average_precision(
        truth[5:], with_gold
    )
    assert abs(loss) < 0.002
