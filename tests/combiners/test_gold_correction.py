"""The correction by gold labels against a direct optimization of its posterior."""

import numpy as np
import pytest
from scipy import optimize, sparse

from mlconsensus.combiners import gold_correction


def make_gold():
    """Return predictions (4, 25, 3), consensus scores and gold labels."""
    rng = np.random.default_rng(0)
    truth = rng.random((25, 3)) < 0.4
    noise = rng.random((4, *truth.shape)) < [[[0.1]], [[0.2]], [[0.4]], [[0.8]]]
    predictions = (truth ^ noise).astype(float)
    predictions[1, 4] = np.nan
    scores = np.nanmean(predictions, axis=0)
    gold = truth.astype(float)
    gold[3, 1] = np.nan
    gold[20:] = np.nan
    return predictions, scores, gold


def make_rows(predictions, scores, gold):
    """Return one row per gold pair: 1, t, s, y_k - s, and 1 and v of its label."""
    rows = []
    relevant = []
    pairs = np.argwhere(~np.isnan(gold))
    center = np.mean([scores[instance, label] for instance, label in pairs])
    largest = np.log(1.005 / 0.005)
    for instance, label in pairs:
        score = scores[instance, label]
        log_odds = np.log((score + 0.005) / (1 - score + 0.005))
        row = [1.0, log_odds, score - center]
        row.extend(np.nan_to_num(predictions[:, instance, label] - score))
        levels = np.zeros(3)
        levels[label] = 1.0
        row.extend(levels)
        row.extend(levels * (log_odds / largest + 1))
        rows.append(row)
        relevant.append(gold[instance, label])
    return np.array(rows), np.array(relevant)


@pytest.mark.parametrize(("tau", "sigma"), [(0.8, 0.5), (0.4, 1.0), (3.0, 0.3)])
def test_maximum_and_evidence(tau, sigma):
    rows, relevant = make_rows(*make_gold())
    power = 0.6
    deviation = [3.0, 1.0, 3.0] + [tau] * 4 + [sigma] * 6
    precision = np.array(deviation) ** -2
    mean = np.zeros(len(precision))
    mean[1] = 1.0

    def compute_loss(coefficients):
        log_odds = rows @ coefficients
        likelihood = relevant * log_odds - np.logaddexp(0, log_odds)
        penalty = precision @ (coefficients - mean) ** 2
        return penalty / 2 - power * likelihood.sum()

    optimum = optimize.minimize(compute_loss, mean, method="BFGS", tol=1e-9)
    probability = 1 / (1 + np.exp(-rows @ optimum.x))
    curvature = power * probability * (1 - probability)
    hessian = rows.T @ (rows * curvature[:, np.newaxis]) + np.diag(precision)
    evidence = -optimum.fun
    evidence += (np.log(precision).sum() - np.linalg.slogdet(hessian)[1]) / 2

    coefficients, log_evidence = gold_correction._fit_logistic(
        sparse.csr_array(rows), relevant, mean, precision, power=power, start=mean
    )
    np.testing.assert_allclose(coefficients, optimum.x, atol=1e-3)
    assert log_evidence == pytest.approx(evidence, abs=1e-3)


def test_the_correction_is_the_average_of_all_fits():
    predictions, scores, gold = make_gold()
    rows, relevant = make_rows(predictions, scores, gold)
    instance = np.nonzero(~np.isnan(gold))[0]
    power = gold_correction._compute_power(
        rows[:, :3], rows[:, 3:7], relevant, instance
    )
    mean = np.zeros(rows.shape[1])
    mean[1] = 1.0
    weight_sum = 0.0
    total = np.zeros(rows.shape[1])
    shares = {}
    for tau in gold_correction._TAUS:
        for sigma in gold_correction._SIGMAS:
            deviation = np.array([3.0, 1.0, 3.0] + [tau] * 4 + [sigma] * 6)
            coefficients, log_evidence = gold_correction._fit_logistic(
                sparse.csr_array(rows),
                relevant,
                mean,
                deviation**-2,
                power=power,
                start=mean,
            )
            prior = 0.3 if tau < 0.01 else 0.7 / (len(gold_correction._TAUS) - 1)
            prior *= 0.3 if sigma < 0.01 else 0.7 / (len(gold_correction._SIGMAS) - 1)
            shares[tau, sigma] = (np.exp(log_evidence) * prior, coefficients)
    everything = sum(weight for weight, _ in shares.values())
    with_weights = sum(w for (tau, _), (w, _) in shares.items() if tau > 0.01)
    with_shifts = sum(w for (_, sigma), (w, _) in shares.items() if sigma > 0.01)
    assert with_weights > 0.9 * everything
    keeps_shifts = with_shifts > 0.5 * everything
    for (_, sigma), (weight, coefficients) in shares.items():
        if sigma < 0.01 or keeps_shifts:
            weight_sum += weight
            total += weight * coefficients
    expected = total / weight_sum
    correction = gold_correction.fit_correction(predictions, scores, gold)
    np.testing.assert_allclose(correction.model_weights, expected[3:7], atol=1e-3)
    np.testing.assert_allclose(correction.curve[1:], expected[1:3], atol=1e-3)


def test_too_few_gold_labels_change_nothing():
    predictions, scores, gold = make_gold()
    gold[:] = np.nan
    gold[0] = [1, 0, 1]
    assert gold_correction.fit_correction(predictions, scores, gold) is None


def test_an_inverted_model_gets_a_negative_weight():
    correction = gold_correction.fit_correction(*make_gold())
    assert correction is not None
    weights = correction.model_weights
    assert weights[3] < 0 < weights[0]
