import numpy as np
import pytest

import mlconsensus as mlc
from mlconsensus.active_learning.query import (
    _in_proportion,
    compute_inclusion_probabilities,
    draw_instances,
    select_queries,
)
from mlconsensus.metrics.intervals import evaluate_on_gold
from mlconsensus.predictions.gold_labels import CHANCE


@pytest.fixture(scope="module")
def asked_panel():
    return mlc.datasets.make_panel(n_instances=400, random_state=4)


def filled(queries, truth):
    cells = queries.table.scores.copy()
    new = np.isnan(cells[:, 1])
    cells[new, 1:] = truth[queries.at]
    return queries.table._replace(scores=cells)


def test_shares_add_up_and_none_is_above_one():
    share = _in_proportion(np.array([100.0, 1, 1, 0, 50]), 3)
    assert share.sum() == pytest.approx(3)
    np.testing.assert_allclose(share, [1, 0.5, 0.5, 0, 1], atol=1e-6)


def test_instances_are_chosen_as_often_as_is_said():
    rng = np.random.default_rng(0)
    likely = rng.beta(0.5, 2, (30, 5))
    times = np.zeros(30)
    chances = {}
    for seed in range(600):
        result = select_queries(
            likely, likely, np.zeros(30, dtype=bool), 8, "consensus", seed
        )
        assert len(result.at) == 8
        times[result.at] += 1
        chances |= dict(zip(result.at.tolist(), result.chance.tolist(), strict=True))
    for position, chance in chances.items():
        assert times[position] / 600 == pytest.approx(chance, abs=0.07)


@pytest.mark.parametrize("goal", ["consensus", "figures"])
def test_no_more_than_there_are_and_none_twice(asked_panel, goal):
    panel, _ = asked_panel
    result = mlc.ask(panel, 1000, goal)
    assert sorted(result.at) == list(range(400))
    assert str(result) == "400 instances to ask about"


def test_answers_to_what_was_asked_bring_more_than_answers_at_random(asked_panel):
    panel, truth = asked_panel

    def loss(gold):
        result = mlc.combine(panel, gold=gold).evaluate(truth)
        return (
            result["ranking_loss"]
            + result["one_error"]
            + 1
            - result["average_precision"]
        )

    asked = [loss(filled(mlc.ask(panel, 60, seed=seed), truth)) for seed in range(4)]
    rng = np.random.default_rng(0)
    at_random = []
    for _ in range(4):
        gold = np.full(truth.shape, np.nan)
        position = rng.choice(400, 60, replace=False)
        gold[position] = truth[position]
        at_random.append(loss(gold))
    assert np.mean(asked) < np.mean(at_random)


def test_a_second_round_keeps_answers_and_still_judges_without_bias(asked_panel):
    panel, truth = asked_panel
    true = mlc.metrics.one_error(truth, mlc.majority_vote(panel))
    values = []
    for seed in range(6):
        first = filled(mlc.ask(panel, 40, "figures", seed=seed), truth)
        second = mlc.ask(panel, 40, "figures", gold=first, seed=100 + seed)
        assert len(second.table.scores) == 80
        assert not set(panel.instances[second.at]) & set(first.instances)
        assert second.table.labels[0] == CHANCE
        result = mlc.compare(
            panel, filled(second, truth), None, {"MV": mlc.MajorityVote()}
        )
        assert "with the probabilities in the file" in result.drawn
        values.append(result.figures["MV"]["one_error"].value)
    assert np.mean(values) == pytest.approx(true, abs=0.05)


def test_asking_for_figures_gives_narrower_intervals(asked_panel):
    panel, truth = asked_panel
    widths = []
    for goal in ("consensus", "figures"):
        gold = filled(mlc.ask(panel, 80, goal), truth)
        result = mlc.compare(panel, gold, None, {"MV": mlc.MajorityVote()}).figures[
            "MV"
        ]["one_error"]
        widths.append(result.high - result.low)
    assert widths[1] < widths[0]


def test_answers_asked_for_consensus_judge_as_surely_as_others():
    """A fifth of them is drawn evenly: a tenth, as before, covered one error in 76 %."""
    panel, truth = mlc.datasets.make_panel(n_instances=1500, random_state=0)
    vote = mlc.majority_vote(panel)
    likely = np.clip(mlc.weighted_consensus(panel), 0, 1)
    true = evaluate_on_gold(truth, vote).value
    chance = compute_inclusion_probabilities(likely, likely, 300, "consensus")
    assert chance.sum() == pytest.approx(300)
    assert chance.min() >= 0.2 * 300 / 1500
    covered = np.zeros((80, 4))
    for seed in range(80):
        position = draw_instances(chance, np.random.default_rng(seed))
        gold = np.full(truth.shape, np.nan)
        gold[position] = truth[position]
        figures = (
            evaluate_on_gold(gold, vote, likely, chance).compute_estimates().values()
        )
        covered[seed] = [
            figure.low <= value <= figure.high
            for figure, value in zip(figures, true, strict=True)
        ]
    assert covered.mean() > 0.86
    assert (covered.mean(axis=0) > 0.82).all()


def test_each_metric_has_its_share_of_the_questions():
    """The instances with most labels are most uncertain, but their first label is right: others must be asked, too."""
    many = np.tile([0.98, *[0.5] * 9], (50, 1))
    few = np.tile([0.55, *[0.02] * 9], (50, 1))
    likely = np.concatenate([many, few])
    chance = compute_inclusion_probabilities(likely, likely, 30, "consensus")
    assert min(chance[:50].sum(), chance[50:].sum()) > 8


def test_nobody_is_left_to_ask():
    likely = np.full((3, 2), 0.5)
    with pytest.raises(
        mlc.InputError,
        match="found answers about every instance, expected some instance to ask about",
    ):
        select_queries(likely, likely, np.ones(3, dtype=bool), 2, "figures")


def test_instances_that_most_likely_have_no_label_are_not_asked_about_first():
    """Whatever is put first there is wrong, and no answer changes that; one of two that are equally likely can be."""
    rng = np.random.default_rng(0)
    nothing = [0.1, 0.01, 0, 0]
    doubtful = [0.5, 0.49, 0.02, 0.02]
    plain = [1, 0, 0, 0]
    likely = np.repeat([nothing, doubtful, plain], [50, 50, 100], axis=0)
    likely = np.clip(likely + rng.uniform(0, 0.005, likely.shape), 0, 1)
    chance = compute_inclusion_probabilities(likely, likely, 40, "consensus")
    assert chance[:50].sum() < 4  # little more than those that are drawn evenly, two
    assert chance[50:100].sum() > 30


def test_a_panel_may_bring_its_answers_to_what_is_asked_next():
    panel, truth = mlc.datasets.make_panel(n_instances=60, random_state=0)
    gold = np.where(np.arange(60)[:, None] < 20, truth, np.nan)
    assert (
        mlc.ask(panel.with_gold(gold), 5).at.tolist()
        == mlc.ask(panel, 5, gold=gold).at.tolist()
    )


@pytest.mark.parametrize(
    "asked",
    [{"budget": 0}, {"budget": 1.5}, {"goal": "fame"}, {"seed": -1}, {"seed": "x"}],
)
def test_what_cannot_be_asked_is_refused(asked):
    with pytest.raises(mlc.InputError, match=f"^{next(iter(asked))}: found "):
        mlc.ask([[[1, 0], [0, 1]]], **{"budget": 1} | asked)
