"""Quality on real models is at least that of the best known prototypes.

The figures are those of the table in ../shared/panels/README.md: microAUC, one error,
ranking loss, average precision.
"""

import numpy as np
import pytest

import mlconsensus as mlc

pytest_plugins = ["shared_data"]

SIGN = {"micro_auc": 1, "one_error": -1, "ranking_loss": -1, "average_precision": 1}
REACHED = {
    "medical_svm": {
        "majority_vote": (0.9246, 0.1481, 0.0667, 0.8571),
        "dawid_skene": (0.9026, 0.1705, 0.0891, 0.8220),
        "mlcm_r": (0.9500, 0.1618, 0.0376, 0.8667),
        "mlcm_a": (0.9561, 0.1495, 0.0399, 0.8700),
    },
    "medical_mixed": {
        "majority_vote": (0.9518, 0.1969, 0.0452, 0.8392),
        "dawid_skene": (0.9540, 0.1493, 0.0426, 0.8718),
        "mlcm_r": (0.9582, 0.1963, 0.0377, 0.8447),
        "mlcm_a": (0.9201, 0.4519, 0.0707, 0.6410),
    },
    "enron_trees": {
        "majority_vote": (0.8457, 0.3253, 0.1490, 0.6134),
        "dawid_skene": (0.8223, 0.4125, 0.1793, 0.5554),
        "mlcm_r": (0.8771, 0.6249, 0.1078, 0.5130),
        "mlcm_a": (0.9080, 0.2435, 0.0867, 0.6769),
    },
    "slashdot_trees": {
        "majority_vote": (0.8088, 0.4105, 0.1839, 0.6530),
        "dawid_skene": (0.7948, 0.4276, 0.1977, 0.6232),
        "mlcm_r": (0.8421, 0.4311, 0.1256, 0.6629),
        "mlcm_a": (0.8250, 0.4149, 0.1251, 0.6715),
    },
}
MARGIN = 0.005


@pytest.fixture(scope="module", params=REACHED)
def panel(request, panels_folder):
    with np.load(panels_folder / f"{request.param}.npz", allow_pickle=False) as result:
        return request.param, result["predictions"], result["truth"]


def judged(truth, scores):
    result = mlc.metrics.evaluate(truth, scores)
    return {metric: result[metric] for metric in SIGN}


@pytest.mark.parametrize("method", ["majority_vote", "dawid_skene", "mlcm_r", "mlcm_a"])
def test_as_good_as_the_prototype(panel, method):
    name, predictions, truth = panel
    result = judged(truth, mlc.COMBINERS[method]().fit_transform(predictions))
    for (metric, value), bar in zip(result.items(), REACHED[name][method], strict=True):
        assert SIGN[metric] * (value - bar) > -MARGIN, (metric, value, bar)


@pytest.mark.parametrize("method", ["majority_vote", "mlcm_a"])
def test_methods_without_choices_reach_just_what_the_prototype_did(panel, method):
    """Both are given by their equations, but for how average precision counts ties."""
    name, predictions, truth = panel
    result = judged(truth, mlc.COMBINERS[method]().fit_transform(predictions))
    assert list(result.values()) == pytest.approx(REACHED[name][method], abs=0.0025)


def test_the_default_is_ahead_of_voting(panel):
    _, predictions, truth = panel
    voting = judged(truth, mlc.majority_vote(predictions))
    default = judged(truth, mlc.combine(predictions).scores)
    for metric, sign in SIGN.items():
        assert sign * (default[metric] - voting[metric]) > 0, metric
