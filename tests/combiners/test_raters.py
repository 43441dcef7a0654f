import numpy as np
import pytest

import mlconsensus as mlc
from mlconsensus.combiners._old_default import raters, weighted_consensus
from mlconsensus.execution.local import reduce_blocks

DENSE = 1e4  # answers that two raters share, by which a correlation is known to 0.01


def product_of(reliable, noise=0.0, seed=0):
    output = np.outer(reliable, reliable) + np.random.default_rng(seed).normal(
        0, noise, 2 * (len(reliable),)
    )
    output = np.clip((output + output.T) / 2, -1, 1)
    np.fill_diagonal(output, 1.0)
    return output


def precise(m, shared=DENSE):
    return shared * (1 - np.eye(m))


def reliability(agreed, precision):
    return raters.reliability(agreed, precision, np.ones(agreed.shape))[0]


@pytest.mark.parametrize(
    "reliable",
    [
        [0.4, 0.5, 0.6, 0.7, 0.8, 0.9],
        [0.9, 0.8, 0.0, 0.7],
        [0.9, 0.8, 0.7, -0.6],
        [0.9, 0.5, 0.7],
        [0.9, 0.3, 0.6],
    ],
    ids=repr,
)
def test_agreement_that_reliability_alone_explains_gives_it_back(reliable):
    """Also where one rater answers at random or says the opposite; three agreements determine three reliabilities."""
    result = reliability(product_of(reliable), precise(len(reliable)))
    np.testing.assert_allclose(result, reliable, atol=0.01)
    for seed in range(5):
        result = reliability(product_of(reliable, 0.01, seed), precise(len(reliable)))
        np.testing.assert_allclose(result, reliable, atol=0.06)


@pytest.mark.parametrize("quality", [-0.7, 0.6])
def test_a_pair_that_agrees_more_than_its_reliability_explains_hardly_moves_the_others(
    quality,
):
    reliable = np.array([0.9, 0.8, 0.7, 0.6, quality])
    agreed = product_of(reliable)
    agreed[0, 1] = agreed[1, 0] = 1.0
    np.testing.assert_allclose(
        reliability(agreed, precise(5, 1e6)), reliable, atol=0.01
    )


def with_copies(reliable, copies, alike=0.95):
    """Agreement of raters of which the last are one that is there so many times."""
    agreed = product_of(np.r_[reliable, copies * [0.6]])
    agreed[-copies:, -copies:] = alike
    np.fill_diagonal(agreed, 1.0)
    return agreed


@pytest.mark.parametrize(("strangers", "copies"), [(5, 2), (5, 5), (5, 8), (2, 4)])
def test_near_copies_count_as_one_whose_reliability_others_show(strangers, copies):
    reliable = np.linspace(0.5, 0.7, strangers)
    m = strangers + copies
    result, voice = raters.reliability(
        with_copies(reliable, copies), precise(m), np.ones((m, m))
    )
    np.testing.assert_allclose(result, np.r_[reliable, copies * [0.6]], atol=0.05)
    np.testing.assert_allclose(voice[:strangers], 1.0)
    # 1 − ε = (1 − 0.95)/(1 − 0.6²), less two standard errors of 0.01; what goes beyond
    # ½ is shared with each other one.
    shared = 2 * (0.95 - 0.02 - 0.36) / (1 - 0.36) - 1
    np.testing.assert_allclose(
        voice[strangers:], 1 / (1 + (copies - 1) * shared), rtol=0.1
    )


def test_raters_that_agree_because_they_are_right_are_not_taken_for_copies():
    result, voice = raters.reliability(
        product_of([0.97, 0.97, 0.97, 0.4, 0.4, 0.4]), precise(6), np.ones((6, 6))
    )
    np.testing.assert_allclose(voice, 1.0)
    assert result[:3].min() > 0.95


def test_raters_share_a_voice_as_far_as_they_answered_the_same_questions_and_clearly():
    agreed = with_copies(np.full(5, 0.6), 3)
    of_all, of_half, of_few = (
        raters.reliability(agreed, precise(8, shared), np.full((8, 8), overlap))[1][-1]
        for shared, overlap in ((1e4, 1.0), (1e4, 0.5), (10, 1.0))
    )
    assert 1 / of_half - 1 == pytest.approx((1 / of_all - 1) / 2, rel=0.05)
    assert of_few == pytest.approx(1)


def test_two_raters_are_trusted_alike():
    r = reliability(product_of([0.5, 0.8]), precise(2))
    assert r[0] == pytest.approx(r[1])
    assert r[0] * r[1] == pytest.approx(0.4, abs=0.01)


def test_raters_of_few_answers_are_taken_for_usual_ones():
    """The same disagreement weighs little where it rests on ten answers, and much where it rests on ten thousand."""
    agreed = product_of([0.7, 0.7, 0.7, 0.7, 0.1])
    of_few, of_many = (
        reliability(agreed, precise(5, shared)) for shared in (10, 10_000)
    )
    assert of_many[4] == pytest.approx(0.1, abs=0.02)
    assert of_few[4] > 0.25
    assert np.ptp(of_few) < np.ptp(of_many)


def test_without_anybody_to_compare_with_raters_are_believed():
    assert (reliability(np.eye(3), np.zeros((3, 3))) > 0.9).all()


def test_order_does_not_matter_without_a_signal():
    """Where raters hardly agree there are many fits of equal worth; the one that is found hangs on nobody's place."""
    rng = np.random.default_rng(0)
    scores = (rng.random((6, 40, 5)) < 0.3).astype(float)
    straight = mlc.WeightedConsensus().fit_transform(scores)
    for _ in range(20):
        m, n, l = (rng.permutation(size) for size in scores.shape)
        turned = mlc.WeightedConsensus().fit_transform(scores[m][:, n][:, :, l])
        np.testing.assert_allclose(turned, straight[n][:, l], atol=1e-8)


def seven_raters(silent):
    """Copies (1, 3, 5), all but a copy that says yes more often (0, 2), strangers, and one that never says yes."""
    rng = np.random.default_rng(0)
    Y = np.where(
        rng.random((7, 60, 4)) < 0.6,
        rng.random((60, 4)) < 0.4,
        rng.random((7, 60, 4)) < 0.4,
    ).astype(float)
    Y[rng.random(Y.shape) < silent] = np.nan
    Y[3] = Y[5] = Y[1]
    Y[2] = Y[0]
    Y[2, :4] = 1.0
    Y[6] = 0.0
    return Y


def trusted(Y):
    panel = mlc.Predictions(Y)
    return weighted_consensus.WeightedConsensus().prepare(
        panel, lambda statistics: reduce_blocks(panel, statistics)
    )


@pytest.mark.parametrize("silent", [0.0, 0.2])
def test_copies_count_once(silent):
    assert (trusted(seven_raters(silent)).heard.sum(axis=1) > 0).tolist() == [
        True,
        True,
        True,
        False,
        True,
        False,
        True,
    ]


def test_kin_are_found_as_by_loops_over_pairs():
    """McNemar over all labels: what chance explains of the squared differences of two raters' rates."""
    Y = seven_raters(0.0)
    alike = trusted(Y).alike
    for k in range(7):
        for q in range(k):
            shift = ((Y[k].mean(axis=0) - Y[q].mean(axis=0)) ** 2).sum()
            chance = (Y[k] - Y[q]).var(axis=0).sum() / 60
            if shift > 0:
                assert alike[k, q] == pytest.approx(
                    min(1, chance / shift) ** 2, abs=0.02
                )


def test_strangers_votes_count_and_replicas_do_not():
    rng = np.random.default_rng(0)
    margin = rng.normal(size=(2000, 10)) - 1.2  # what one learner makes of an instance
    replicas = np.stack(
        [margin + 0.4 * rng.normal(size=margin.shape) > 0 for _ in range(6)]
    ).astype(float)
    truth = rng.random((2000, 10)) < 0.15
    strangers = np.stack(
        [
            np.where(truth, rng.random(truth.shape) < hit, 0.0)
            for hit in (0.2, 0.35, 0.5, 0.7, 0.9)
        ]
    )
    votes = [
        float(mlc.WeightedConsensus().fit(panel).solution_.votes)
        for panel in (replicas, strangers)
    ]
    assert votes[0] < 0.1
    assert votes[1] > 0.45


@pytest.mark.parametrize("knows", [0.15, 0.3, 0.5, 0.8])
@pytest.mark.parametrize("n_raters", [3, 5, 8, 20])
def test_annotators_of_equal_rates_who_err_each_on_its_own_are_no_replicas(
    knows, n_raters
):
    """Each knows some answers and guesses the rest by the label's frequency, so that votes are all there is to know.

    Ties are broken by frequency, which costs a little here; taken for replicas they
    lost 0.07.
    """
    rng = np.random.default_rng(1)
    frequency = rng.uniform(0.02, 0.6, 40)
    truth = rng.random((400, 40)) < frequency
    panel = np.where(
        rng.random((n_raters, 400, 40)) < knows,
        truth,
        rng.random((n_raters, 400, 40)) < frequency,
    )
    result, vote = (
        mlc.metrics.evaluate(truth, scores(panel))
        for scores in (mlc.weighted_consensus, mlc.majority_vote)
    )
    for metric in ("micro_auc", "average_precision"):
        assert result[metric] > vote[metric] - 0.03
