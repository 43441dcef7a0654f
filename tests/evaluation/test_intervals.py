import numpy as np
import pytest

import mlconsensus as mlc
from mlconsensus.evaluation import metrics
from mlconsensus.evaluation.intervals import judge, of_instances
from mlconsensus.evaluation.metrics import RANKING_METRICS


@pytest.fixture(scope="module")
def judged_panel():
    panel, truth = mlc.datasets.make_panel(n_instances=600, random_state=3)
    scores = {"MV": mlc.majority_vote(panel), "Filter": mlc.rater_filter(panel)}
    return truth, scores


def some(truth, rows):
    gold = np.full(truth.shape, np.nan)
    gold[rows] = truth[rows]
    return gold


def test_values_are_those_of_evaluate(judged_panel):
    truth, scores = judged_panel
    figures = judge(truth, scores["MV"]).figures()
    whole = metrics.evaluate(truth, scores["MV"])
    assert {name: figure.value for name, figure in figures.items()} == pytest.approx(
        {name: whole[name] for name in RANKING_METRICS}
    )


def test_unknown_cells_do_not_count(judged_panel):
    truth, scores = judged_panel
    known = [0, 3, 4, 5, 9, 11]
    gold = np.full(truth.shape, np.nan)
    gold[:, known] = truth[:, known]
    expected = metrics.evaluate(truth[:, known], scores["MV"][:, known])
    found = judge(gold, scores["MV"]).figures()
    assert {name: found[name].value for name in found} == pytest.approx({name: expected[name] for name in found})


def test_influence_on_a_metric_is_its_derivative(judged_panel):
    truth, scores = judged_panel
    truth, own = truth[:60], scores["MV"][:60]
    weights = np.random.default_rng(0).uniform(1, 3, 60)
    found = judge(truth, own, None, 1 / weights)
    for at in (0, 17, 59):
        more = weights.copy()
        more[at] += 1e-5
        change = (judge(truth, own, None, 1 / more).value - found.value) / 1e-5
        assert found.moved[:, at] / weights.sum() == pytest.approx(change, rel=1e-3, abs=1e-9)


def test_standard_errors_are_those_of_the_bootstrap(judged_panel):
    truth, scores = judged_panel
    truth, own, rng = truth[:150], scores["Filter"][:150], np.random.default_rng(0)
    draws = [metrics.evaluate(truth[at], own[at]) for at in rng.integers(150, size=(400, 150))]
    for name, figure in judge(truth, own).figures().items():
        assert figure.error == pytest.approx(np.std([draw[name] for draw in draws]), rel=0.15)


def test_intervals_of_figures_and_differences_cover_and_foreseeing_narrows_them(judged_panel):
    truth, scores = judged_panel
    n, rng = len(truth), np.random.default_rng(1)
    target = {name: metrics.evaluate(truth, own) for name, own in scores.items()}
    covered, width = [], []
    for _ in range(40):
        gold = some(truth, rng.choice(n, 100, replace=False))
        chance = np.full(n, 100 / n)
        found, plain = ({k: judge(gold, own, p, chance) for k, own in scores.items()} for p in (scores["Filter"], None))
        ahead = found["Filter"].ahead_of(found["MV"]).figures()
        for name, sign in zip(RANKING_METRICS, (1, -1, -1, 1), strict=True):
            own, true = found["MV"].figures()[name], target["MV"][name]
            gain = sign * (target["Filter"][name] - true)
            covered.append((own.low <= true <= own.high, ahead[name].low <= gain <= ahead[name].high))
            alone = plain["MV"].figures()[name]
            width.append((own.high - own.low) / (alone.high - alone.low))
            assert own.worth > 99.999
            assert alone.worth == pytest.approx(100)
    assert 0.8 < np.mean(covered, axis=0).min() <= np.mean(covered, axis=0).max() < 0.99
    assert np.mean(width) < 1


def test_what_foresees_nothing_is_left_alone(judged_panel):
    truth, scores = judged_panel
    gold, chance = some(truth, np.arange(50)), np.full(len(truth), 50 / len(truth))
    same = np.full(truth.shape, 0.3)
    for name, figure in judge(gold, scores["MV"], same, chance).figures().items():
        if name in ("one_error", "micro_auc"):
            assert figure.value == pytest.approx(judge(gold, scores["MV"]).figures()[name].value, abs=1e-6)


def test_inclusion_probabilities_weigh(judged_panel):
    truth, scores = judged_panel
    each, rng = of_instances(truth, ~truth, scores["MV"])[1], np.random.default_rng(0)
    chance = np.where(each > np.median(each), 0.3, 0.1)  # hard instances are asked about more often
    values, plain = [], []
    for _ in range(60):
        gold = some(truth, rng.random(len(truth)) < chance)
        values.append(judge(gold, scores["MV"], None, chance).figures()["ranking_loss"].value)
        plain.append(judge(gold, scores["MV"]).figures()["ranking_loss"].value)
    true = metrics.ranking_loss(truth, scores["MV"])
    assert np.mean(values) == pytest.approx(true, rel=0.05)
    assert np.mean(plain) > 1.2 * true


def test_all_instances_leave_no_doubt(judged_panel):
    truth, scores = judged_panel
    figure = judge(truth, scores["MV"], None, np.ones(len(truth))).figures()["one_error"]
    assert figure.low == figure.value == figure.high


def test_no_error_seen_is_not_no_error():
    truth, scores = np.array([[1.0, 0.0]] * 30), np.array([[0.9, 0.1]] * 30)
    figure = judge(truth, scores).figures()["one_error"]
    assert figure.value == figure.low == 0
    assert figure.high == pytest.approx(1 - 0.05 ** (1 / 30))  # the rule of three, at 5 %


def test_one_kind_of_cells_has_no_micro_auc():
    figures = judge(np.ones((3, 2)), np.array([[0.1, 0.2]] * 3)).figures()
    assert np.isnan(figures["micro_auc"].value)


def test_a_method_is_not_ahead_of_itself(judged_panel):
    truth, scores = judged_panel
    own = judge(some(truth, np.arange(40)), scores["MV"])
    for gain in own.ahead_of(own).figures().values():
        assert gain.value == 0
        assert not gain.sure
