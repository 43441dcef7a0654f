"""The correction by gold labels against a direct optimization of its posterior."""

import numpy as np
import pytest
from scipy import optimize

from mlconsensus.combiners import gold_correction
from mlconsensus.combiners.gold_correction import _collect_pairs, _fit, _Prior


def make_pairs():
    """Return predictions, consensus scores and gold labels, and their pairs."""
    rng = np.random.default_rng(0)
    truth = rng.random((25, 3)) < 0.4
    noise = rng.random((4, *truth.shape)) < [[[0.1]], [[0.2]], [[0.4]], [[0.8]]]
    predictions = (truth ^ noise).astype(float)
    predictions[1, 4] = np.nan
    scores = np.nanmean(predictions, axis=0)
    gold = truth.astype(float)
    gold[3, 1] = np.nan
    gold[20:] = np.nan
    return predictions, scores, gold, _collect_pairs(predictions, scores, gold)


@pytest.mark.parametrize(
    "prior",
    [
        _Prior(),
        _Prior(tau=0.8),
        _Prior(sigma=0.5),
        _Prior(tau=0.4, sigma=1.0),
        _Prior(tau=1.6, sigma=0.25, has_slope=True),
    ],
    ids=repr,
)
def test_maximum_and_evidence(prior):
    predictions, scores, gold, pairs = make_pairs()
    power = 0.6

    # One row per pair: 1, t, s, y_k - s, and v in the column of its label.
    rows = []
    relevant = []
    center = scores.mean()
    largest = np.log(1.005 / 0.005)
    for instance, label in np.argwhere(~np.isnan(gold)):
        score = scores[instance, label]
        log_odds = np.log((score + 0.005) / (1 - score + 0.005))
        row = [1.0, log_odds, score - center]
        if prior.tau > 0:
            difference = predictions[:, instance, label] - score
            row.extend(np.nan_to_num(difference)[pairs.models])
        if prior.sigma > 0:
            shifts = np.zeros(3)
            shifts[label] = 1.0
            if prior.has_slope:
                shifts[label] = log_odds / largest + 1
            row.extend(shifts)
        rows.append(row)
        relevant.append(gold[instance, label])
    rows = np.array(rows)
    relevant = np.array(relevant)
    precision = [1 / 9, 1.0, 1 / 9]
    if prior.tau > 0:
        precision += [prior.tau**-2] * len(pairs.models)
    if prior.sigma > 0:
        precision += [prior.sigma**-2] * 3
    precision = np.array(precision)
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

    fit = _fit(pairs, prior, power)
    result = fit.coefficients
    if prior.sigma > 0:
        result = np.concatenate([result, fit.shifts])
    np.testing.assert_allclose(result, optimum.x, atol=1e-3)
    assert fit.log_evidence == pytest.approx(evidence, abs=1e-3)


def test_too_few_gold_labels_change_nothing():
    predictions, scores, gold, _ = make_pairs()
    gold[:] = np.nan
    gold[0] = [1, 0, 1]
    assert gold_correction.fit_correction(predictions, scores, gold) is None


def test_an_inverted_model_gets_a_negative_weight():
    predictions, scores, gold, _ = make_pairs()
    correction = gold_correction.fit_correction(predictions, scores, gold)
    assert correction is not None
    weights = correction.model_weights
    assert weights[3] < 0 < weights[0]
