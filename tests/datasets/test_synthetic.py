import numpy as np
import pytest

import mlconsensus as mlc
from mlconsensus.datasets import make_panel


def test_the_same_seed_gives_the_same_panel():
    one = make_panel(30, 5, 3, random_state=3)
    other = make_panel(30, 5, 3, random_state=3)
    np.testing.assert_array_equal(
        one.predictions.to_array(), other.predictions.to_array()
    )
    np.testing.assert_array_equal(one.truth, other.truth)
    assert (make_panel(30, 5, 3, random_state=4).truth != one.truth).any()


def test_cardinality_is_met():
    assert make_panel(4000, 30, 1, cardinality=3.5, random_state=0).truth.sum(
        axis=1
    ).mean() == pytest.approx(3.5, abs=0.05)


def test_correlation_is_planted():
    def strongest(correlation):
        truth = make_panel(
            4000, 12, 1, cardinality=2, correlation=correlation, random_state=0
        ).truth
        return np.abs(np.corrcoef(truth.T) - np.eye(12)).max()

    assert strongest(0.0) < 0.1
    assert strongest(0.9) > 0.4


def test_quality_orders_models():
    panel, truth = make_panel(2000, 10, 4, quality=[0, 0.3, 0.8, 1], random_state=0)
    result = mlc.metrics.evaluate_models(truth, panel)
    auc = [result[model]["micro_auc"] for model in panel.models]
    assert auc == sorted(auc)
    assert result["model_3"]["subset_accuracy"] == 1


def test_knowledge_and_silence():
    panel = make_panel(
        500, 20, 4, known_labels=0.5, missing=0.2, random_state=0
    ).predictions
    unknown = np.isnan(panel.to_array()).all(axis=1)
    assert (unknown.sum(axis=1) == 10).all()
    assert panel.n_missing / (4 * 500 * 20) == pytest.approx(0.6, abs=0.02)


def test_probabilities():
    scores = make_panel(
        50, 5, 2, probabilities=True, random_state=0
    ).predictions.to_array()
    assert ((scores > 0) & (scores < 1)).all()
    assert len(np.unique(scores)) > 100


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_instances": 0}, "n_instances: found 0"),
        ({"n_labels": 2.5}, "n_labels: found 2.5"),
        ({"n_models": "3"}, "n_models: found '3'"),
        (
            {"correlation": 1.5},
            r"correlation: found 1.5, expected a number in \[0, 1\]",
        ),
        (
            {"cardinality": 21},
            "cardinality: found 21.0, expected at most the number of labels, 20",
        ),
        ({"quality": [0.5, 0.5]}, "quality: found"),
        ({"missing": -0.1}, "missing: found"),
    ],
)
def test_bad_settings(wrong, message):
    with pytest.raises(mlc.InputError, match=message):
        make_panel(**wrong)
