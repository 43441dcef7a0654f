import numpy as np
import pytest

from mlconsensus.combiners.registry import list_by_name
from mlconsensus.errors import InputError
from mlconsensus.metrics.ranking import RANKING_METRICS, average_precision, ranking_loss
from mlconsensus.model_selection.comparison import evaluate_methods
from mlconsensus.predictions import Predictions
from mlconsensus.reproduction import Settings, reproduce
from mlconsensus.reproduction.protocol import summarize

pytest_plugins = ["shared_data"]


@pytest.fixture
def panel():
    rng = np.random.default_rng(0)
    truth = rng.random((50, 6)) < 0.3
    return truth, np.stack([truth ^ (rng.random((50, 6)) < 0.2) for _ in range(4)])


def test_every_method_is_judged(panel):
    truth, predictions = panel
    judged = evaluate_methods(truth, Predictions(predictions))
    assert list(judged) == ["BM", *list_by_name()]
    for row in judged.values():
        assert tuple(row)[:4] == RANKING_METRICS
    losses = [ranking_loss(truth, model.astype(float)) for model in predictions]
    assert judged["BM"]["ranking_loss"] == pytest.approx(np.mean(losses))
    mean = predictions.mean(axis=0)
    assert judged["MV"]["ranking_loss"] == pytest.approx(ranking_loss(truth, mean))
    assert judged["MV"]["average_precision"] == pytest.approx(
        average_precision(truth, mean)
    )


def test_mean_and_deviation():
    runs = [{"BM": dict.fromkeys(RANKING_METRICS, value)} for value in (0.1, 0.2, 0.6)]
    figure = summarize(runs, "enron")["BM"]["one_error"]
    assert figure.mean == pytest.approx(0.3)
    assert figure.std == pytest.approx(np.std([0.1, 0.2, 0.6]))
    assert figure.paper == 0.5024
    assert summarize(runs, "rcv1subset2")["BM"]["ranking_loss"].paper is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            Settings(learner="svn"),
            "learner: found 'svn', expected one of svm, .*; did you mean 'svm'",
        ),
        (
            Settings(folds=979),
            "folds: found 979, expected at most 978, the number of instances",
        ),
        (Settings(folds=1), "folds: found 1, expected a whole number of at least 2"),
        (Settings(models=-1), "models: found -1"),
        (Settings(seed=-1), "seed: found -1"),
        (
            Settings(learner="views", models=10),
            "models: found 10, expected the 8 that views has",
        ),
    ],
)
def test_bad_settings(settings, message, tmp_path):
    with pytest.raises(InputError, match=message):
        reproduce(["medical"], settings, tmp_path)


def test_panels_bring_their_own_numbers():
    views = Settings(learner="views").checked()
    assert (views.models, views.folds) == (8, 5)
    mixed = Settings(learner="mixed", folds=3).checked()
    assert (mixed.models, mixed.folds) == (10, 3)


@pytest.mark.slow
def test_medical_is_near_the_paper(data_folder, tmp_path):
    """One core, two cores and the cache give the same results, near the paper's."""
    settings = Settings(repeats=1, models=5, folds=5)
    first = reproduce(["medical"], settings, tmp_path / "a", jobs=1)
    assert first == reproduce(["medical"], settings, tmp_path / "a", jobs=1)
    assert first == reproduce(["medical"], settings, tmp_path / "b", jobs=2)
    assert first.instances == {"medical": 978}
    table = first.tables["medical"]
    for metric, sign in (("micro_auc", 1), ("ranking_loss", -1)):
        ranked = [
            sign * table[method][metric].mean for method in ("BM", "MV", "MLCM-r")
        ]
        assert ranked == sorted(ranked)
    for method in ("BM", "MV", "MLCM-r", "MLCM-a"):
        for metric, figure in table[method].items():
            assert figure.mean == pytest.approx(figure.paper, abs=0.04), (
                method,
                metric,
            )
