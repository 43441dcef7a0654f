import math

import numpy as np
import pytest
from scipy import stats

import mlconsensus as mlc
from mlconsensus.active_learning import query
from mlconsensus.metrics import ranking
from mlconsensus.metrics.intervals import (
    GoldEvaluation,
    compute_expected_metrics,
    compute_instance_metrics,
    evaluate_on_gold,
)
from mlconsensus.metrics.ranking import RANKING_METRICS


@pytest.fixture(scope="module")
def judged_panel():
    panel, truth = mlc.datasets.make_panel(n_instances=600, random_state=3)
    scores = {"MV": mlc.majority_vote(panel), "Filter": mlc.weighted_consensus(panel)}
    return truth, scores


def some(truth, rows):
    gold = np.full(truth.shape, np.nan)
    gold[rows] = truth[rows]
    return gold


def test_values_are_those_of_evaluate(judged_panel):
    truth, scores = judged_panel
    figures = evaluate_on_gold(truth, scores["MV"]).compute_estimates()
    whole = ranking.evaluate(truth, scores["MV"])
    assert {name: figure.value for name, figure in figures.items()} == pytest.approx(
        {name: whole[name] for name in RANKING_METRICS}
    )


def test_unknown_cells_do_not_count(judged_panel):
    truth, scores = judged_panel
    known = [0, 3, 4, 5, 9, 11]
    gold = np.full(truth.shape, np.nan)
    gold[:, known] = truth[:, known]
    expected = ranking.evaluate(truth[:, known], scores["MV"][:, known])
    found = evaluate_on_gold(gold, scores["MV"]).compute_estimates()
    assert {name: found[name].value for name in found} == pytest.approx(
        {name: expected[name] for name in found}
    )


def test_influence_on_a_metric_is_its_derivative(judged_panel):
    truth, scores = judged_panel
    truth = truth[:60]
    own = scores["MV"][:60]
    weights = np.random.default_rng(0).uniform(1, 3, 60)
    found = evaluate_on_gold(truth, own, None, 1 / weights)
    for at in (0, 17, 59):
        more = weights.copy()
        more[at] += 1e-5
        change = (
            evaluate_on_gold(truth, own, None, 1 / more).value - found.value
        ) / 1e-5
        assert found.moved[:, at] / weights.sum() == pytest.approx(
            change, rel=1e-3, abs=1e-9
        )


def test_standard_errors_are_those_of_the_bootstrap(judged_panel):
    truth, scores = judged_panel
    truth = truth[:150]
    own = scores["Filter"][:150]
    rng = np.random.default_rng(0)
    draws = [
        ranking.evaluate(truth[at], own[at])
        for at in rng.integers(150, size=(400, 150))
    ]
    for name, figure in evaluate_on_gold(truth, own).compute_estimates().items():
        assert figure.error == pytest.approx(
            np.std([draw[name] for draw in draws]), rel=0.15
        )


def test_intervals_of_figures_and_differences_cover_and_foreseeing_narrows_them(
    judged_panel,
):
    truth, scores = judged_panel
    n = len(truth)
    rng = np.random.default_rng(1)
    target = {name: ranking.evaluate(truth, own) for name, own in scores.items()}
    covered = []
    width = []
    for _ in range(40):
        gold = some(truth, rng.choice(n, 100, replace=False))
        chance = np.full(n, 100 / n)
        found, plain = (
            {k: evaluate_on_gold(gold, own, p, chance) for k, own in scores.items()}
            for p in (scores["Filter"], None)
        )
        ahead = found["Filter"].subtract(found["MV"]).compute_estimates()
        for name, sign in zip(RANKING_METRICS, (1, -1, -1, 1), strict=True):
            own = found["MV"].compute_estimates()[name]
            true = target["MV"][name]
            gain = sign * (target["Filter"][name] - true)
            covered.append(
                (
                    own.low <= true <= own.high,
                    ahead[name].low <= gain <= ahead[name].high,
                )
            )
            alone = plain["MV"].compute_estimates()[name]
            width.append((own.high - own.low) / (alone.high - alone.low))
            assert own.worth > 99.999
            assert alone.worth == pytest.approx(100)
    assert 0.8 < np.mean(covered, axis=0).min() <= np.mean(covered, axis=0).max() < 0.99
    assert np.mean(width) < 1


def test_what_foresees_nothing_is_left_alone(judged_panel):
    truth, scores = judged_panel
    gold = some(truth, np.arange(50))
    chance = np.full(len(truth), 50 / len(truth))
    same = np.full(truth.shape, 0.3)
    for name, figure in (
        evaluate_on_gold(gold, scores["MV"], same, chance).compute_estimates().items()
    ):
        if name in ("one_error", "micro_auc"):
            assert figure.value == pytest.approx(
                evaluate_on_gold(gold, scores["MV"]).compute_estimates()[name].value,
                abs=1e-6,
            )


def test_inclusion_probabilities_weigh(judged_panel):
    truth, scores = judged_panel
    each = compute_instance_metrics(truth, ~truth, scores["MV"])[1]
    rng = np.random.default_rng(0)
    chance = np.where(
        each > np.median(each), 0.3, 0.1
    )  # hard instances are asked about more often
    values = []
    plain = []
    for _ in range(60):
        gold = some(truth, rng.random(len(truth)) < chance)
        values.append(
            evaluate_on_gold(gold, scores["MV"], None, chance)
            .compute_estimates()["ranking_loss"]
            .value
        )
        plain.append(
            evaluate_on_gold(gold, scores["MV"])
            .compute_estimates()["ranking_loss"]
            .value
        )
    true = ranking.ranking_loss(truth, scores["MV"])
    assert np.mean(values) == pytest.approx(true, rel=0.05)
    assert np.mean(plain) > 1.2 * true


def test_all_instances_leave_no_doubt(judged_panel):
    truth, scores = judged_panel
    figure = evaluate_on_gold(
        truth, scores["MV"], None, np.ones(len(truth))
    ).compute_estimates()["one_error"]
    assert figure.low == figure.value == figure.high


def test_no_error_seen_is_not_no_error():
    truth = np.array([[1.0, 0.0]] * 30)
    scores = np.array([[0.9, 0.1]] * 30)
    figure = evaluate_on_gold(truth, scores).compute_estimates()["one_error"]
    assert figure.value == figure.low == 0
    assert figure.high == pytest.approx(
        1 - 0.05 ** (1 / 30)
    )  # the rule of three, at 5 %
    figure = evaluate_on_gold(truth, scores).compute_estimates()["average_precision"]
    assert figure.value == pytest.approx(1)
    assert figure.high == 1
    assert figure.low == pytest.approx(0.05 ** (1 / 30))


def test_one_kind_of_cells_has_no_micro_auc():
    figures = evaluate_on_gold(
        np.ones((3, 2)), np.array([[0.1, 0.2]] * 3)
    ).compute_estimates()
    assert np.isnan(
        [
            figures["micro_auc"].value,
            figures["micro_auc"].low,
            figures["micro_auc"].high,
        ]
    ).all()


def test_a_method_is_not_ahead_of_itself(judged_panel):
    truth, scores = judged_panel
    own = evaluate_on_gold(some(truth, np.arange(40)), scores["MV"])
    for gain in own.subtract(own).compute_estimates().values():
        assert gain.value == 0
        assert not gain.is_significant


def figure_by_loops(value, psi, shift, foreseen, w, pi):
    """The estimate and its error as the equation has them, instance by instance."""
    g = len(w)
    all_of = sum(w)
    spread = [(1 - pi[i]) * w[i] ** 2 / all_of**2 for i in range(g)]
    tuned = sum(s * a * b for s, a, b in zip(spread, psi, foreseen, strict=True))
    tuned /= sum(s * b * b for s, b in zip(spread, foreseen, strict=True))
    extreme = (
        max(abs(a) for a in psi) ** 2 * sum(spread) / g / 2
    )  # half an instance more
    whole = sum(w[i] * foreseen[i] ** 2 for i in range(g))
    variance = {}
    for lam in (0.0, tuned):
        variance[lam] = extreme
        for i in range(g):
            leverage = w[i] / all_of + (w[i] * foreseen[i] ** 2 / whole if lam else 0.0)
            variance[lam] += (
                spread[i]
                * ((psi[i] - lam * foreseen[i]) / max(1 - leverage, 0.05)) ** 2
            )
    lam = min(variance, key=variance.get)
    worth = g * variance[0.0] / variance[lam]
    return (
        value + lam * shift,
        math.sqrt(variance[lam]),
        worth,
        all_of**2 / sum(each**2 for each in w),
    )


@pytest.mark.parametrize("seed", range(6))
def test_figures_equal_the_equations_written_with_loops(seed):
    rng = np.random.default_rng(seed)
    g = 9
    foreseen = rng.normal(0, 0.2, (4, g))
    psi = rng.normal(0, 0.3, (4, g)) + foreseen * np.array([[0.0], [0.3], [1], [-1]])
    pi = rng.uniform(0.2, 0.9, g)
    pi[0], pi[1] = (
        0.02 if seed % 2 else 0.5,
        1.0,
    )  # one that stands for many, and one for itself alone
    value = rng.uniform(0.3, 0.6, 4)
    shift = rng.normal(0, 0.05, 4)
    share = seed < 3
    found = GoldEvaluation(
        value, psi, shift, foreseen, 1 / pi, 1 - pi, share
    ).compute_estimates()
    for at, name in enumerate(RANKING_METRICS):
        theta, error, worth, effective = figure_by_loops(
            value[at], psi[at], shift[at], foreseen[at], 1 / pi, pi
        )
        figure = found[name]
        assert (figure.value, figure.error, figure.worth) == pytest.approx(
            (theta, error, worth)
        )
        t = stats.t.ppf(0.95, max(effective - 1, 1))
        if share:
            p = min(max(theta, min(error, 0.5)), 1 - min(error, 0.5))
            odds = math.log(p / (1 - p))
            half = t * error / (p * (1 - p))
            within = (
                theta - t * error > 0,
                theta + t * error < 1,
            )  # else as far as there
            ends = (
                within[0] / (1 + math.exp(half - odds)),
                1 / (1 + within[1] * math.exp(-half - odds)),
            )
        else:
            ends = theta - t * error, theta + t * error
        assert (figure.low, figure.high) == pytest.approx(ends)
        assert figure.is_significant == (ends[0] > 0 or ends[1] < 0)


def test_what_is_foreseen_of_a_few_labels():
    likely = np.array([[0.5, 0.25, 1.0], [0.0, 0.0, 0.0]])
    scores = np.array([[0.9, 0.1, 0.5], [0.3, 0.2, 0.1]])
    # Ranked: 0.5, 1, 0.25. Wrong pairs: 1·(1 − 0.5) + 0.25·(2 − 1.5); pairs: 1.75
    # relevant times 1.25 that are not.
    wrong = 1 * 0.5 + 0.25 * 0.5
    pairs = 1.75 * 1.25
    precision = (0.5 * 1 + 1 * 1.5 / 2 + 0.25 * 2.5 / 3) / 1.75
    np.testing.assert_allclose(
        compute_expected_metrics(likely, scores),
        [[0.5, 1], [wrong / pairs, 0], [precision, 1]],
    )


def test_a_difference_is_ahead_where_its_figure_is_better(judged_panel):
    truth, scores = judged_panel
    one = evaluate_on_gold(truth, scores["Filter"])
    other = evaluate_on_gold(truth, scores["MV"])
    for name, ahead in one.subtract(other).compute_estimates().items():
        if name in ranking.LOWER_IS_BETTER:
            sign = -1
        else:
            sign = 1
        apart = (
            one.compute_estimates()[name].value - other.compute_estimates()[name].value
        )
        assert ahead.value == pytest.approx(sign * apart)
        assert ahead.low < ahead.value < ahead.high


@pytest.mark.parametrize("blank", [0.1, 0.3, 0.5])
def test_cells_that_are_not_known_move_one_error_no_further_than_its_interval(blank):
    """Where no relevant label of an instance was among its known cells, whatever came first counted as wrong."""
    panel, truth = mlc.datasets.make_panel(1500, 8, 5, cardinality=1.5, random_state=1)
    scores = mlc.weighted_consensus(panel)
    rng = np.random.default_rng(0)
    gold = np.where(rng.random(truth.shape) < blank, np.nan, truth)
    found = evaluate_on_gold(
        gold, scores, scores, np.ones(len(truth))
    ).compute_estimates()
    true = mlc.metrics.evaluate(truth, scores)
    assert abs(found["one_error"].value - true["one_error"]) < 0.02
    assert found["one_error"].low < true["one_error"] < found["one_error"].high
    assert abs(found["micro_auc"].value - true["micro_auc"]) < 0.01
    gold = np.where(truth, np.nan, 0.0)[
        truth.any(axis=1)
    ]  # no yes is known: how labels are ranked nobody can tell
    assert np.isnan(
        evaluate_on_gold(gold, scores[truth.any(axis=1)])
        .compute_estimates()["average_precision"]
        .value
    )


def test_figures_are_within_their_intervals_which_cover_where_raters_are_good():
    """Odds taken one error away from 1 left values near 1 outside of their own intervals, and the truth with them."""
    rng = np.random.default_rng(0)
    truth = rng.random((600, 8)) < 0.25
    panel = np.array(
        [
            rng.random(truth.shape) < np.where(truth, hit, 0.05)
            for hit in (0.95, 0.9, 0.85, 0.85, 0.8)
        ]
    )
    vote = panel.mean(axis=0)
    likely = np.clip(mlc.weighted_consensus(panel.astype(float)), 0, 1)
    true = evaluate_on_gold(truth, vote).value
    chance = query.compute_inclusion_probabilities(likely, likely, 50, "consensus")
    covered = np.zeros((100, 4))
    for seed in range(100):
        at = query.drawn(chance, np.random.default_rng(seed))
        figures = (
            evaluate_on_gold(some(truth, at), vote, likely, chance)
            .compute_estimates()
            .values()
        )
        covered[seed] = [
            figure.low <= value <= figure.high
            for figure, value in zip(figures, true, strict=True)
        ]
        assert all(
            0 <= figure.low <= figure.value <= figure.high <= 1 for figure in figures
        )
    assert (covered.mean(axis=0) > 0.84).all()  # 0.9, less what 100 draws can err
