import math

import numpy as np
import pytest
from scipy import stats

import mlconsensus as mlc
from mlconsensus import metrics
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
def evaluated():
    panel, truth = mlc.datasets.make_panel(n_instances=600, random_state=3)
    scores = {"MV": mlc.majority_vote(panel), "Weighted": mlc.weighted_consensus(panel)}
    return truth, scores


def keep_gold(truth, rows):
    gold = np.full(truth.shape, np.nan)
    gold[rows] = truth[rows]
    return gold


def test_values_are_those_of_evaluate(evaluated):
    truth, scores = evaluated
    estimates = evaluate_on_gold(truth, scores["MV"]).compute_estimates()
    expected = metrics.evaluate(truth, scores["MV"])
    assert {
        name: estimate.value for name, estimate in estimates.items()
    } == pytest.approx({name: expected[name] for name in RANKING_METRICS})


def test_unknown_cells_do_not_count(evaluated):
    truth, scores = evaluated
    columns = [0, 3, 4, 5, 9, 11]
    gold = np.full(truth.shape, np.nan)
    gold[:, columns] = truth[:, columns]
    expected = metrics.evaluate(truth[:, columns], scores["MV"][:, columns])
    estimates = evaluate_on_gold(gold, scores["MV"]).compute_estimates()
    assert {name: estimates[name].value for name in estimates} == pytest.approx(
        {name: expected[name] for name in estimates}
    )


def test_influence_on_a_metric_is_its_derivative(evaluated):
    truth, scores = evaluated
    truth = truth[:60]
    model_scores = scores["MV"][:60]
    weights = np.random.default_rng(0).uniform(1, 3, 60)
    evaluation = evaluate_on_gold(truth, model_scores, None, 1 / weights)
    for row in (0, 17, 59):
        more = weights.copy()
        more[row] += 1e-5
        change = (
            evaluate_on_gold(truth, model_scores, None, 1 / more).value
            - evaluation.value
        ) / 1e-5
        assert evaluation.influence[:, row] / weights.sum() == pytest.approx(
            change, rel=1e-3, abs=1e-9
        )


def test_standard_errors_are_those_of_the_bootstrap(evaluated):
    truth, scores = evaluated
    truth = truth[:150]
    model_scores = scores["Weighted"][:150]
    rng = np.random.default_rng(0)
    draws = [
        metrics.evaluate(truth[rows], model_scores[rows])
        for rows in rng.integers(150, size=(400, 150))
    ]
    for name, estimate in (
        evaluate_on_gold(truth, model_scores).compute_estimates().items()
    ):
        assert estimate.standard_error == pytest.approx(
            np.std([draw[name] for draw in draws]), rel=0.15
        )


def test_intervals_cover_and_expected_metrics_narrow_them(
    evaluated,
):
    truth, scores = evaluated
    n = len(truth)
    rng = np.random.default_rng(1)
    target = {
        name: metrics.evaluate(truth, model_scores)
        for name, model_scores in scores.items()
    }
    covered = []
    width = []
    for _ in range(40):
        gold = keep_gold(truth, rng.choice(n, 100, replace=False))
        inclusion = np.full(n, 100 / n)
        powered, plain = (
            {
                k: evaluate_on_gold(gold, model_scores, p, inclusion)
                for k, model_scores in scores.items()
            }
            for p in (scores["Weighted"], None)
        )
        ahead = powered["Weighted"].subtract(powered["MV"]).compute_estimates()
        for name, sign in zip(RANKING_METRICS, (1, -1, -1, 1), strict=True):
            estimate = powered["MV"].compute_estimates()[name]
            true = target["MV"][name]
            gain = sign * (target["Weighted"][name] - true)
            covered.append(
                (
                    estimate.low <= true <= estimate.high,
                    ahead[name].low <= gain <= ahead[name].high,
                )
            )
            plain_estimate = plain["MV"].compute_estimates()[name]
            width.append(
                (estimate.high - estimate.low)
                / (plain_estimate.high - plain_estimate.low)
            )
            assert estimate.effective_gold > 99.999
            assert plain_estimate.effective_gold == pytest.approx(100)
    assert 0.8 < np.mean(covered, axis=0).min() <= np.mean(covered, axis=0).max() < 0.99
    assert np.mean(width) < 1


def test_uninformative_probabilities_change_nothing(evaluated):
    truth, scores = evaluated
    gold = keep_gold(truth, np.arange(50))
    inclusion = np.full(len(truth), 50 / len(truth))
    same = np.full(truth.shape, 0.3)
    for name, estimate in (
        evaluate_on_gold(gold, scores["MV"], same, inclusion)
        .compute_estimates()
        .items()
    ):
        if name in ("one_error", "micro_auc"):
            assert estimate.value == pytest.approx(
                evaluate_on_gold(gold, scores["MV"]).compute_estimates()[name].value,
                abs=1e-6,
            )


def test_inclusion_probabilities_weigh(evaluated):
    truth, scores = evaluated
    losses = compute_instance_metrics(truth, ~truth, scores["MV"])[1]
    rng = np.random.default_rng(0)
    inclusion = np.where(
        losses > np.median(losses), 0.3, 0.1
    )  # hard instances are asked about more often
    values = []
    plain = []
    for _ in range(60):
        gold = keep_gold(truth, rng.random(len(truth)) < inclusion)
        values.append(
            evaluate_on_gold(gold, scores["MV"], None, inclusion)
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


def test_all_instances_leave_no_doubt(evaluated):
    truth, scores = evaluated
    estimate = evaluate_on_gold(
        truth, scores["MV"], None, np.ones(len(truth))
    ).compute_estimates()["one_error"]
    assert estimate.low == estimate.value == estimate.high


def test_no_error_seen_is_not_no_error():
    truth = np.array([[1.0, 0.0]] * 30)
    scores = np.array([[0.9, 0.1]] * 30)
    estimate = evaluate_on_gold(truth, scores).compute_estimates()["one_error"]
    assert estimate.value == estimate.low == 0
    assert estimate.high == pytest.approx(
        1 - 0.05 ** (1 / 30)
    )  # the rule of three, at 5 %
    estimate = evaluate_on_gold(truth, scores).compute_estimates()["average_precision"]
    assert estimate.value == pytest.approx(1)
    assert estimate.high == 1
    assert estimate.low == pytest.approx(0.05 ** (1 / 30))


def test_micro_auc_needs_relevant_and_irrelevant_labels():
    estimates = evaluate_on_gold(
        np.ones((3, 2)), np.array([[0.1, 0.2]] * 3)
    ).compute_estimates()
    assert np.isnan(
        [
            estimates["micro_auc"].value,
            estimates["micro_auc"].low,
            estimates["micro_auc"].high,
        ]
    ).all()


def test_a_method_is_not_ahead_of_itself(evaluated):
    truth, scores = evaluated
    evaluation = evaluate_on_gold(keep_gold(truth, np.arange(40)), scores["MV"])
    for gain in evaluation.subtract(evaluation).compute_estimates().values():
        assert gain.value == 0
        assert not gain.is_significant


def estimate_by_loops(value, psi, shift, expected_psi, w, pi):
    """The estimate and its error as the equation has them, instance by instance."""
    g = len(w)
    all_of = sum(w)
    spread = [(1 - pi[i]) * w[i] ** 2 / all_of**2 for i in range(g)]
    tuned = sum(s * a * b for s, a, b in zip(spread, psi, expected_psi, strict=True))
    tuned /= sum(s * b * b for s, b in zip(spread, expected_psi, strict=True))
    extreme = (
        max(abs(a) for a in psi) ** 2 * sum(spread) / g / 2
    )  # half an instance more
    total_square = sum(w[i] * expected_psi[i] ** 2 for i in range(g))
    variance = {}
    for lam in (0.0, tuned):
        variance[lam] = extreme
        for i in range(g):
            leverage = w[i] / all_of + (
                w[i] * expected_psi[i] ** 2 / total_square if lam else 0.0
            )
            variance[lam] += (
                spread[i]
                * ((psi[i] - lam * expected_psi[i]) / max(1 - leverage, 0.05)) ** 2
            )
    lam = min(variance, key=variance.get)
    worth = g * variance[0.0] / variance[lam]
    return (
        value + lam * shift,
        math.sqrt(variance[lam]),
        worth,
        all_of**2 / sum(weight**2 for weight in w),
    )


@pytest.mark.parametrize("seed", range(6))
def test_estimates_equal_the_equations_written_with_loops(seed):
    rng = np.random.default_rng(seed)
    g = 9
    expected_psi = rng.normal(0, 0.2, (4, g))
    psi = rng.normal(0, 0.3, (4, g)) + expected_psi * np.array(
        [[0.0], [0.3], [1], [-1]]
    )
    pi = rng.uniform(0.2, 0.9, g)
    pi[0], pi[1] = (
        0.02 if seed % 2 else 0.5,
        1.0,
    )  # one that stands for many, and one for itself alone
    value = rng.uniform(0.3, 0.6, 4)
    shift = rng.normal(0, 0.05, 4)
    is_proportion = seed < 3
    estimates = GoldEvaluation(
        value=value,
        influence=psi,
        expected_shift=shift,
        expected_influence=expected_psi,
        weight=1 / pi,
        unseen=1 - pi,
        is_proportion=is_proportion,
    ).compute_estimates()
    for position, name in enumerate(RANKING_METRICS):
        theta, error, worth, effective = estimate_by_loops(
            value[position],
            psi[position],
            shift[position],
            expected_psi[position],
            1 / pi,
            pi,
        )
        estimate = estimates[name]
        assert (
            estimate.value,
            estimate.standard_error,
            estimate.effective_gold,
        ) == pytest.approx((theta, error, worth))
        t = stats.t.ppf(0.95, max(effective - 1, 1))
        if is_proportion:
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
        assert (estimate.low, estimate.high) == pytest.approx(ends)
        assert estimate.is_significant == (ends[0] > 0 or ends[1] < 0)


def test_expected_metrics_of_a_few_labels():
    probabilities = np.array([[0.5, 0.25, 1.0], [0.0, 0.0, 0.0]])
    scores = np.array([[0.9, 0.1, 0.5], [0.3, 0.2, 0.1]])
    # Ranked: 0.5, 1, 0.25. Wrong pairs: 1·(1 − 0.5) + 0.25·(2 − 1.5); pairs: 1.75
    # relevant times 1.25 that are not.
    wrong = 1 * 0.5 + 0.25 * 0.5
    pairs = 1.75 * 1.25
    precision = (0.5 * 1 + 1 * 1.5 / 2 + 0.25 * 2.5 / 3) / 1.75
    np.testing.assert_allclose(
        compute_expected_metrics(probabilities, scores),
        [[0.5, 1], [wrong / pairs, 0], [precision, 1]],
    )


def test_a_difference_is_positive_if_the_metric_is_better(evaluated):
    truth, scores = evaluated
    one = evaluate_on_gold(truth, scores["Weighted"])
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
def test_unknown_labels_change_one_error_within_its_interval(blank):
    """Instances whose known cells have no relevant label do not count."""
    panel, truth = mlc.datasets.make_panel(1500, 8, 5, cardinality=1.5, random_state=1)
    scores = mlc.weighted_consensus(panel)
    rng = np.random.default_rng(0)
    gold = np.where(rng.random(truth.shape) < blank, np.nan, truth)
    estimates = evaluate_on_gold(
        gold, scores, scores, np.ones(len(truth))
    ).compute_estimates()
    true = mlc.metrics.evaluate(truth, scores)
    assert abs(estimates["one_error"].value - true["one_error"]) < 0.02
    assert estimates["one_error"].low < true["one_error"] < estimates["one_error"].high
    assert abs(estimates["micro_auc"].value - true["micro_auc"]) < 0.01
    gold = np.where(truth, np.nan, 0.0)[
        truth.any(axis=1)
    ]  # no yes is known: how labels are ranked nobody can tell
    assert np.isnan(
        evaluate_on_gold(gold, scores[truth.any(axis=1)])
        .compute_estimates()["average_precision"]
        .value
    )


def test_estimates_are_within_intervals_that_cover_for_good_models():
    """Intervals near 1 contain their own estimate and the true value."""
    rng = np.random.default_rng(0)
    truth = rng.random((600, 8)) < 0.25
    panel = np.array(
        [
            rng.random(truth.shape) < np.where(truth, hit, 0.05)
            for hit in (0.95, 0.9, 0.85, 0.85, 0.8)
        ]
    )
    vote = panel.mean(axis=0)
    probabilities = np.clip(mlc.weighted_consensus(panel.astype(float)), 0, 1)
    true = evaluate_on_gold(truth, vote).value
    inclusion = query.compute_inclusion_probabilities(
        probabilities, probabilities, 50, "consensus"
    )
    covered = np.zeros((100, 4))
    for seed in range(100):
        rows = query.draw_instances(inclusion, np.random.default_rng(seed))
        estimates = (
            evaluate_on_gold(keep_gold(truth, rows), vote, probabilities, inclusion)
            .compute_estimates()
            .values()
        )
        covered[seed] = [
            estimate.low <= value <= estimate.high
            for estimate, value in zip(estimates, true, strict=True)
        ]
        assert all(
            0 <= estimate.low <= estimate.value <= estimate.high <= 1
            for estimate in estimates
        )
    assert (covered.mean(axis=0) > 0.84).all()  # 0.9, less what 100 draws can err
