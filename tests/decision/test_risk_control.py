import math

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import mlconsensus as mlc
from mlconsensus.decision.risk_control import _compute_losses, _compute_p_values
from mlconsensus.errors import InputError


@pytest.fixture(scope="module")
def scored():
    panel, truth = mlc.datasets.make_panel(n_instances=600, n_labels=8, random_state=2)
    return truth, mlc.weighted_consensus(panel)


def drawn(truth, size, rng):
    gold = np.full(truth.shape, np.nan)
    rows = rng.choice(len(truth), size, replace=False)
    gold[rows] = truth[rows]
    return gold


@pytest.mark.parametrize(
    "wanted", [{"recall": 0.9}, {"precision": 0.8}, {"false_discovery": 0.1}]
)
def test_promises_are_kept_in_nine_of_ten_draws(scored, wanted):
    truth, scores = scored
    rng = np.random.default_rng(0)
    held = []
    for _ in range(60):
        promise = mlc.decide(scores, drawn(truth, 100, rng), **wanted).promises[0]
        chosen = scores >= promise.threshold
        if "recall" in wanted:
            held.append(
                np.mean(
                    (truth & chosen).sum(axis=1)[truth.any(axis=1)]
                    / truth.sum(axis=1)[truth.any(axis=1)]
                )
                >= 0.9
            )
        else:
            wrong = np.mean(
                (chosen & ~truth).sum(axis=1) / np.maximum(chosen.sum(axis=1), 1)
            )
            held.append(wrong <= (0.2 if "precision" in wanted else 0.1))
    assert np.mean(held) >= 0.85  # 0.9, less what 60 draws can err


def test_a_bet_on_a_mean_that_is_not_lower_is_seldom_won():
    rng = np.random.default_rng(0)
    population = (rng.random(400) < 0.2).astype(float)
    draws = np.array([rng.permutation(population)[:100] for _ in range(500)])
    assert np.mean(_compute_p_values(draws, population.mean(), 400, 0.1) <= 0.1) <= 0.1
    assert np.mean(_compute_p_values(draws, 0.4, 400, 0.1) <= 0.1) > 0.9


def test_more_gold_gives_more_labels_at_the_same_promise(scored):
    truth, scores = scored
    rng = np.random.default_rng(1)
    set_sizes = []
    for size in (30, 300):
        promises = [
            mlc.decide(scores, drawn(truth, size, rng), false_discovery=0.1).promises[0]
            for _ in range(10)
        ]
        set_sizes.append(
            np.mean([(scores >= promise.threshold).sum() for promise in promises])
        )
    assert set_sizes[1] > set_sizes[0]


def test_what_is_known_is_taken_and_what_is_between_is_left(scored):
    truth, scores = scored
    gold = drawn(truth, 150, np.random.default_rng(0))
    decision = mlc.decide(scores, gold, recall=0.95, precision=0.9)
    has_gold = ~np.isnan(gold)
    np.testing.assert_array_equal(decision.sets[has_gold], gold[has_gold])
    lower, upper = (promise.threshold for promise in decision.promises)
    assert lower < upper
    between = (scores >= lower) & (scores < upper) & ~has_gold
    np.testing.assert_array_equal(np.isnan(decision.sets), between)
    assert (decision.n_cells, decision.n_instances) == (
        between.sum(),
        between.any(axis=1).sum(),
    )
    assert f"Left to people: {between.sum():,} of 4,800 cells" in str(decision)
    alone = mlc.decide(scores, gold, recall=0.95)
    assert alone.n_cells == 0


def test_where_nothing_can_be_promised_it_says_so(scored):
    truth, scores = scored
    gold = drawn(truth, 5, np.random.default_rng(0))
    decision = mlc.decide(scores, gold, precision=0.99)
    assert (
        decision.sets[np.isnan(gold)]
        == (scores >= decision.promises[0].threshold)[np.isnan(gold)]
    ).all()
    every = mlc.decide(scores, gold, recall=0.99)
    assert "every label is kept" in every.promises[0].sentence
    assert every.sets[np.isnan(gold)].all()


def test_what_cannot_be_promised_is_refused(scored):
    truth, scores = scored
    with pytest.raises(InputError, match="nothing to promise"):
        mlc.decide(scores, truth)
    with pytest.raises(InputError, match="recall: found 1.5"):
        mlc.decide(scores, truth, recall=1.5)
    with pytest.raises(InputError, match="no instance whose truth is known"):
        mlc.decide(scores, np.full(truth.shape, np.nan), recall=0.9)
    with pytest.raises(InputError, match="truth: found shape"):
        mlc.decide(scores, truth[:3], recall=0.9)


def test_a_consensus_decides_by_scores_that_do_not_know_the_gold():
    panel, truth = mlc.datasets.make_panel(n_instances=300, random_state=0)
    gold = np.where(np.arange(300)[:, None] < 80, truth, np.nan)
    with_gold = mlc.combine(panel, gold=gold).decide(recall=0.9)
    without = mlc.combine(panel).decide(gold, recall=0.9)
    np.testing.assert_array_equal(with_gold.sets, without.sets)


def test_precision_is_false_discovery_said_the_other_way_round(scored):
    truth, scores = scored
    gold = drawn(truth, 100, np.random.default_rng(3))
    one = mlc.decide(scores, gold, precision=0.75)
    other = mlc.decide(scores, gold, false_discovery=0.25)
    np.testing.assert_array_equal(one.sets, other.sets)
    assert (
        "At least 75% of an instance's labels are relevant" in one.promises[0].sentence
    )
    assert "At most 25% of an instance's labels are wrong" in other.promises[0].sentence


def literal_chance(x, alpha, n, delta):
    """Waudby-Smith and Ramdas with a loop: 1 over the largest capital."""
    capital = 1.0
    most = 0.0
    seen = []
    errors = []
    for s, loss in enumerate(x, start=1):
        null = (n * alpha - sum(seen)) / (n - s + 1)
        variance = (alpha * (1 - alpha) + sum(errors)) / s
        bet = min(
            math.sqrt(2 * math.log(1 / delta) / (len(x) * variance)), 0.75 / (1 - null)
        )
        capital *= 1 - bet * (loss - null)
        errors.append((loss - (alpha + sum(seen)) / s) ** 2)
        seen.append(loss)
        most = max(most, capital)
    return min(1 / most, 1.0)


@pytest.mark.parametrize(
    ("n", "alpha", "delta"), [(40, 0.2, 0.1), (400, 0.5, 0.05), (41, 0.05, 0.3)]
)
def test_bets_are_those_of_the_equation(n, alpha, delta):
    rng = np.random.default_rng(n)
    losses = np.concatenate(
        [rng.random((6, 30)) * 0.3, rng.random((3, 30)) < 0.02, np.ones((1, 30))]
    )
    expected = [
        literal_chance(row.tolist(), alpha, n, delta) for row in losses.astype(float)
    ]
    np.testing.assert_allclose(
        _compute_p_values(losses.astype(float), alpha, n, delta), expected, rtol=1e-9
    )
    assert 1.0 in expected
    assert min(expected) < delta


def test_losses_of_a_few_instances():
    yes = np.array([[1, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]], dtype=bool)
    no = np.array(
        [[0, 0, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]], dtype=bool
    )  # a truth of one label; then of none
    chosen = np.array([[1, 0, 1, 0], [1, 1, 1, 1], [1, 0, 0, 0]], dtype=bool)
    np.testing.assert_allclose(
        _compute_losses("recall", chosen, yes, no, 0.1), [1 / 2, 0, 0.1]
    )  # nothing to lose: what is allowed
    np.testing.assert_allclose(
        _compute_losses("precision", chosen, yes, no, 0.1), [1 / 2, 2 / 3, 0]
    )
    np.testing.assert_allclose(
        _compute_losses("false_discovery", chosen, yes, no, 0.1), [1 / 2, 2 / 3, 0]
    )


def test_recall_is_of_instances_that_have_a_relevant_label():
    """About 18 of 100 instances have a label; those without do not count."""
    rng = np.random.default_rng(3)
    recalls = []
    truth = rng.random((1000, 10)) < 0.02
    has_label = truth.any(axis=1)
    scores = np.where(truth, rng.beta(3, 1, truth.shape), rng.beta(1, 4, truth.shape))
    for _ in range(40):
        decided = mlc.decide(scores, drawn(truth, 150, rng), recall=0.7)
        chosen = scores >= decided.promises[0].threshold
        recalls.append(
            (
                (truth & chosen).sum(axis=1)[has_label] / truth.sum(axis=1)[has_label]
            ).mean()
        )
    assert np.mean(np.array(recalls) >= 0.7) >= 0.9
    assert min(recalls) < 1
    assert "on average over instances that have one" in decided.promises[0].sentence


def test_the_promise_has_the_number_that_was_asked_for(scored):
    truth, scores = scored
    gold = drawn(truth, 1, np.random.default_rng(3))
    for level, percentage in ((0.796, "79.6%"), (0.999, "99.9%")):
        promise = (
            mlc.decide(scores, gold, precision=level, certainty=0.995)
            .promises[0]
            .sentence
        )
        assert (
            f"at least {percentage} of an instance's labels are relevant (of none, "
            f"all), " in promise.lower()
        )
        assert (
            "with a certainty of 99.5%, if the gold (1 instance) was drawn at random"
            in promise
        )


@pytest.mark.parametrize(
    "wanted", [{"recall": 0.8}, {"precision": 0.7}, {"false_discovery": 0.2}], ids=str
)
@pytest.mark.parametrize("certainty", [0.9, 0.6])
def test_the_threshold_is_the_last_before_one_fails(wanted, certainty):
    """The guarantee by hand: each score is a threshold, bets in the drawn order."""
    rng = np.random.default_rng(5)
    truth = rng.random((150, 2)) < 0.4
    scores = np.round(
        np.where(truth, 0.65, 0.35) + rng.normal(0, 0.25, truth.shape), 1
    )  # few, all of them tried
    has_gold = np.arange(150) < 120
    (about, level), *_ = wanted.items()
    promise = mlc.decide(
        scores,
        np.where(has_gold[:, None], truth, np.nan),
        **wanted,
        certainty=certainty,
    ).promises[0]
    order = np.random.default_rng(0).permutation(120)
    if about == "false_discovery":
        alpha = level
    else:
        alpha = 1 - level
    last = None
    for threshold in sorted(set(scores.ravel()), reverse=about != "recall"):
        chosen = scores >= threshold
        losses = []
        for i in order:
            named = chosen[i].sum()
            right = (chosen[i] & truth[i]).sum()
            lost, of = (
                (truth[i].sum() - right, truth[i].sum())
                if about == "recall"
                else (named - right, named)
            )
            losses.append(float(lost / of) if of else alpha * (about == "recall"))
        if literal_chance(losses, alpha, 150, 1 - certainty) > 1 - certainty:
            break
        last = threshold
    assert last is not None
    assert promise.threshold == last
    assert (promise.about, promise.level, promise.certainty) == (
        about,
        level,
        certainty,
    )


def test_the_more_of_two_promises_about_wrong_labels_counts(scored):
    truth, scores = scored
    gold = drawn(truth, 200, np.random.default_rng(4))
    both = mlc.decide(scores, gold, precision=0.7, false_discovery=0.1)
    strict = mlc.decide(scores, gold, false_discovery=0.1)
    np.testing.assert_array_equal(both.sets, strict.sets)
    assert both.n_cells == 0
    decision = mlc.decide(
        scores, gold, recall=0.5, precision=0.55
    )  # the lower is above: nothing is left to people
    assert decision.n_cells == 0


def test_levels_are_between_0_and_1(scored):
    truth, scores = scored
    for level in (0, 1, -0.1):
        with pytest.raises(InputError, match="precision: found"):
            mlc.decide(scores, truth, precision=level)
        with pytest.raises(InputError, match="certainty: found"):
            mlc.decide(scores, truth, precision=0.9, certainty=level)


def test_truth_and_scores_may_be_sparse_or_frames_that_are_matched_by_name(scored):
    truth, scores = scored
    expected = mlc.decide(scores, truth, recall=0.9).promises
    frames = pd.DataFrame(truth)[::-1], pd.DataFrame(scores)
    for gold_table, judged in (
        (sparse.csr_array(truth), scores),
        (truth, sparse.csr_array(scores)),
        frames,
    ):
        assert mlc.decide(judged, gold_table, recall=0.9).promises == expected


def test_what_is_no_truth_or_no_score_is_refused(scored):
    truth, scores = scored
    for gold_table, judged in (
        (-1 * truth, scores),
        (scores, scores),
        ("x", scores),
        (truth, scores * np.nan),
        (truth, 1j * scores),
    ):
        with pytest.raises(InputError, match="^(truth|scores): found "):
            mlc.decide(judged, gold_table, recall=0.9)
    with pytest.raises(InputError, match="^recall: found 'high'"):
        mlc.decide(scores, truth, recall="high")
