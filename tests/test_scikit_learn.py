"""Combiners and predictions in scikit-learn's tools; data frames."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.exceptions import SkipTestWarning
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import _safe_indexing
from sklearn.utils import estimator_checks as checks
from sklearn.utils.validation import _num_samples

import mlconsensus as mlc

PANEL, TRUTH = mlc.datasets.make_panel(
    n_instances=90, n_labels=6, n_models=4, missing=0.1, random_state=0
)
KINDS = list(mlc.COMBINERS.values())


def test_instances_come_first():
    assert PANEL.shape == (4, 90, 6)
    assert (PANEL.shape[0], PANEL.shape[1:]) == (4, (90, 6))
    assert _num_samples(PANEL) == len(PANEL) == 90
    assert _safe_indexing(PANEL, [3, 1]).instances.tolist() == [3, 1]
    subset, rest, some_truth, _ = train_test_split(
        PANEL, TRUTH, test_size=30, random_state=0
    )
    assert (len(subset), len(rest)) == (60, 30)
    assert (some_truth == TRUTH[subset.instances]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_cross_validation_is_that_done_by_hand(kind):
    result = cross_val_score(kind(), PANEL, TRUTH, cv=3)
    by_hand = [
        mlc.metrics.average_precision(
            TRUTH[new], kind().fit(PANEL[seen]).transform(PANEL[new])
        )
        for seen, new in KFold(3).split(TRUTH)
    ]
    assert result == pytest.approx(by_hand)


def test_model_selection_and_pipelines():
    settings = {"alpha": [0.1, 2.0, 50.0]}
    search = GridSearchCV(mlc.MLCMr(), settings, cv=3).fit(PANEL, TRUTH)
    alone = [
        cross_val_score(mlc.MLCMr(alpha), PANEL, TRUTH, cv=3).mean()
        for alpha in settings["alpha"]
    ]
    assert search.cv_results_["mean_test_score"] == pytest.approx(alone)
    chain = make_pipeline(mlc.MLCMa())
    assert (chain.fit(PANEL, TRUTH).transform(PANEL) == mlc.mlcm_a(PANEL)).all()
    assert chain.score(PANEL, TRUTH) == pytest.approx(
        mlc.metrics.average_precision(TRUTH, mlc.mlcm_a(PANEL))
    )
    assert cross_val_predict(mlc.MajorityVote(), PANEL, cv=3).shape == TRUTH.shape


def test_score_matches_frames_by_name():
    panel = mlc.Predictions(
        PANEL.to_array(), labels=list("abcdef"), instances=[f"i{i}" for i in range(90)]
    )
    truth = pd.DataFrame(TRUTH, panel.instances.tolist(), panel.labels)
    fitted = mlc.MLCMa().fit(panel)
    assert fitted.score(panel, truth.iloc[::-1, ::-1]) == pytest.approx(
        fitted.score(panel, TRUTH)
    )


@pytest.mark.parametrize("kind", KINDS)
def test_tags_are_honest(kind):
    """check_estimator has no data of three dimensions; its other checks pass."""
    with pytest.warns(SkipTestWarning, match="Can't test estimator"):
        checks.check_estimator(kind())
    for check in (
        checks.check_estimator_repr,
        checks.check_no_attributes_set_in_init,
        checks.check_valid_tag_types,
        checks.check_parameters_default_constructible,
        checks.check_get_params_invariance,
        checks.check_set_params,
    ):
        check(kind.__name__, kind())


@pytest.mark.parametrize("kind", KINDS)
def test_frames_keep_instances(kind):
    panel = mlc.Predictions(
        PANEL.to_array(), labels=list("abcdef"), instances=[f"i{i}" for i in range(90)]
    )
    combiner = kind().set_output(transform="pandas")
    for frame in (
        combiner.fit_transform(panel),
        combiner.transform(panel),
        clone(combiner).fit_transform(panel),
    ):
        assert frame.index.tolist() == panel.instances.tolist()
        assert frame.columns.tolist() == list("abcdef")
    assert (frame.to_numpy() == kind().fit_transform(panel)).all()
    assert combiner.score(panel, TRUTH) == kind().fit(panel).score(panel, TRUTH)


def test_a_consensus_as_a_frame():
    panel = mlc.Predictions(
        PANEL.to_array(), labels=list("abcdef"), instances=[f"i{i}" for i in range(90)]
    )
    result = mlc.combine(panel, method="mv")
    frame = result.to_frame()
    assert frame.loc["i7", "c"] == result.scores[7, 2]
    other = result.to_frame("polars")
    assert other.columns == ["instance", *"abcdef"]
    assert other.filter(pl.col("instance") == "i7")["c"].item() == result.scores[7, 2]
    with pytest.raises(
        mlc.InputError, match="library: found 'spark', expected 'pandas' or 'polars'"
    ):
        result.to_frame("spark")


def test_a_panel_as_frames_and_back():
    again = mlc.Predictions({model: PANEL.to_frame(model) for model in PANEL.models})
    assert np.array_equal(again.to_array(), PANEL.to_array(), equal_nan=True)
    with pytest.raises(mlc.InputError, match="models: found 'nobody'"):
        PANEL.to_frame("nobody")


def test_lists_of_probabilities_are_taken():
    X, y = make_multilabel_classification(40, n_classes=3, random_state=0)
    result = (
        DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y).predict_proba(X)
    )
    panel = mlc.Predictions({"tree": result, "truth": y})
    assert np.array_equal(
        panel.to_array()[0], np.stack([item[:, 1] for item in result], axis=1)
    )
    y[:, 1] = 0
    with pytest.raises(
        mlc.InputError,
        match="'tree', label 1: found probabilities of one class, expected two",
    ):
        mlc.Predictions({"tree": DecisionTreeClassifier().fit(X, y).predict_proba(X)})


def test_frames_without_a_common_label_are_refused():
    a = pd.DataFrame([[1, 0]], columns=["x", "y"])
    b = pd.DataFrame([[1, 0]], columns=["X", "Y"])
    with pytest.raises(
        mlc.InputError,
        match="model 'b': found no label in model 'b' that another model has",
    ):
        mlc.Predictions({"a": a, "b": b})


def test_metrics_match_frames_by_name():
    scores = pd.DataFrame(mlc.majority_vote(PANEL), columns=list("abcdef"))
    sets = scores >= 0.3
    truth = pd.DataFrame(TRUTH, columns=list("abcdef"))
    straight = mlc.metrics.evaluate(TRUTH, scores, sets)
    mixed = mlc.metrics.evaluate(
        truth.iloc[::-1, [2, 0, 1, 5, 4, 3]], scores, sets.iloc[:, ::-1]
    )
    assert mixed == pytest.approx(straight)
    assert mlc.metrics.evaluate(
        truth.iloc[::-1], scores, sets.to_numpy()
    ) == pytest.approx(straight)
    with pytest.raises(
        mlc.InputError, match="scores: found other labels than the truth has"
    ):
        mlc.metrics.evaluate(truth.rename(columns={"a": "A"}), scores)
