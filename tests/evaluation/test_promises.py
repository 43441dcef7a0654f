import numpy as np
import pytest

import mlconsensus as mlc
from mlconsensus.errors import InputError
from mlconsensus.evaluation.promises import _chance


@pytest.fixture(scope="module")
def scored():
    panel, truth = mlc.datasets.make_panel(n_instances=600, n_labels=8, random_state=2)
    return truth, mlc.rater_filter(panel)


def drawn(truth, size, rng):
    gold = np.full(truth.shape, np.nan)
    at = rng.choice(len(truth), size, replace=False)
    gold[at] = truth[at]
    return gold


@pytest.mark.parametrize("wanted", [{"recall": 0.9}, {"precision": 0.8}, {"false_discovery": 0.1}])
def test_promises_are_kept_in_nine_of_ten_draws(scored, wanted):
    truth, scores = scored
    rng, kept = np.random.default_rng(0), []
    for _ in range(60):
        promise = mlc.decide(scores, drawn(truth, 100, rng), **wanted).promises[0]
        given = scores >= promise.threshold
        if "recall" in wanted:
            kept.append(
                np.mean((truth & given).sum(axis=1)[truth.any(axis=1)] / truth.sum(axis=1)[truth.any(axis=1)]) >= 0.9
            )
        else:
            wrong = np.mean((given & ~truth).sum(axis=1) / np.maximum(given.sum(axis=1), 1))
            kept.append(wrong <= (0.2 if "precision" in wanted else 0.1))
    assert np.mean(kept) >= 0.85  # 0.9, less what 60 draws can err


def test_a_bet_on_a_mean_that_is_not_lower_is_seldom_won():
    rng = np.random.default_rng(0)
    population = (rng.random(400) < 0.2).astype(float)
    draws = np.array([rng.permutation(population)[:100] for _ in range(500)])
    assert np.mean(_chance(draws, population.mean(), 400, 0.1) <= 0.1) <= 0.1
    assert np.mean(_chance(draws, 0.4, 400, 0.1) <= 0.1) > 0.9


def test_more_gold_gives_more_labels_at_the_same_promise(scored):
    truth, scores = scored
    rng = np.random.default_rng(1)
    given = []
    for size in (30, 300):
        found = [mlc.decide(scores, drawn(truth, size, rng), false_discovery=0.1).promises[0] for _ in range(10)]
        given.append(np.mean([(scores >= promise.threshold).sum() for promise in found]))
    assert given[1] > given[0]


def test_what_is_known_is_taken_and_what_is_between_is_left(scored):
    truth, scores = scored
    gold = drawn(truth, 150, np.random.default_rng(0))
    found = mlc.decide(scores, gold, recall=0.95, precision=0.9)
    known = ~np.isnan(gold)
    np.testing.assert_array_equal(found.sets[known], gold[known])
    lower, upper = (promise.threshold for promise in found.promises)
    assert lower < upper
    between = (scores >= lower) & (scores < upper) & ~known
    np.testing.assert_array_equal(np.isnan(found.sets), between)
    assert (found.n_cells, found.n_instances) == (between.sum(), between.any(axis=1).sum())
    assert f"Left to people: {between.sum():,} of 4,800 cells" in str(found)
    alone = mlc.decide(scores, gold, recall=0.95)
    assert alone.n_cells == 0


def test_where_nothing_can_be_promised_it_says_so(scored):
    truth, scores = scored
    gold = drawn(truth, 5, np.random.default_rng(0))
    found = mlc.decide(scores, gold, precision=0.99)
    assert (found.sets[np.isnan(gold)] == (scores >= found.promises[0].threshold)[np.isnan(gold)]).all()
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
    one, other = mlc.decide(scores, gold, precision=0.75), mlc.decide(scores, gold, false_discovery=0.25)
    np.testing.assert_array_equal(one.sets, other.sets)
    assert "At least 75% of an instance's labels are relevant" in one.promises[0].sentence
    assert "At most 25% of an instance's labels are wrong" in other.promises[0].sentence
