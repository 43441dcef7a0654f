"""`ConsensusClassifier` with scikit-learn's checks and all forms of predictions."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import mlconsensus as mlc

X, Y = make_multilabel_classification(120, n_features=8, n_classes=4, random_state=0)
NEW = X[90:]


def trees(**settings):
    members = [
        (f"depth_{depth}", DecisionTreeClassifier(max_depth=depth, random_state=0))
        for depth in (1, 2, 3)
    ]
    return mlc.ConsensusClassifier(members, **settings)


@parametrize_with_checks([trees(), trees(combiner=mlc.MLCMr()), trees(combiner="mv")])
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_checks(estimator, check):
    check(estimator)


class OnlyDecides(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.tree_ = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
        self.classes_ = self.tree_.classes_
        return self

    def predict(self, X):
        return self.tree_.predict(X)


def test_every_form_of_answer_is_taken():
    logistic = LogisticRegression()
    members = {
        "list": DecisionTreeClassifier(max_depth=3, random_state=0),
        "list of one-label models": MultiOutputClassifier(logistic),
        "matrix": OneVsRestClassifier(logistic),
        "chain": ClassifierChain(logistic),
        "margins": OneVsRestClassifier(LinearSVC()),
        "ridge": RidgeClassifier(),
        "decisions": OnlyDecides(),
    }
    ensemble = mlc.ConsensusClassifier(
        list(members.items()), combiner=mlc.MajorityVote()
    ).fit(X[:90], Y[:90])
    panel = dict(zip(members, ensemble.panel(NEW).to_array(), strict=True))
    fitted = ensemble.named_estimators_
    assert np.allclose(
        panel["list"],
        np.stack([p[:, 1] for p in fitted["list"].predict_proba(NEW)], axis=1),
    )
    assert np.allclose(panel["matrix"], fitted["matrix"].predict_proba(NEW))
    for name in ("margins", "ridge"):
        assert ((panel[name] > 0.5) == (fitted[name].decision_function(NEW) > 0)).all()
    assert (panel["decisions"] == fitted["decisions"].predict(NEW)).all()
    assert np.allclose(
        ensemble.decision_function(NEW), np.mean(list(panel.values()), axis=0)
    )
    assert np.allclose(
        ensemble.predict_proba(NEW), ensemble.decision_function(NEW), atol=1e-9
    )
    assert (
        ensemble.predict(NEW)
        == mlc.decision.match_instances(
            ensemble.decision_function(NEW),
            mlc.decision.cardinalities(ensemble.panel(NEW)),
        )
    ).all()


def test_labels_that_are_never_or_always_there():
    y = Y[:90].copy()
    y[:, 0], y[:, 1] = 0, 1
    result = trees(combiner="mv").fit(X[:90], y).decision_function(NEW)
    assert (result[:, 0] == 0).all()
    assert (result[:, 1] == 1).all()


def test_prefit_needs_no_truth_and_fits_nothing_again():
    members = [(name, one.fit(X[:60], Y[:60])) for name, one in trees().estimators]
    ensemble = mlc.ConsensusClassifier(members, mlc.MLCMa(), prefit=True).fit(X[60:])
    assert [id(one) for one in ensemble.estimators_] == [id(one) for _, one in members]
    panel = [
        np.stack([p[:, 1] for p in one.predict_proba(X[60:])], axis=1)
        for _, one in members
    ]
    assert np.allclose(ensemble.decision_function(X[60:]), mlc.mlcm_a(panel))
    with pytest.raises(sklearn.exceptions.NotFittedError):
        mlc.ConsensusClassifier(
            [*trees().estimators[:1], ("new", OnlyDecides())], prefit=True
        ).fit(X)


def test_names_of_labels_and_sparse_truth():
    frame = pd.DataFrame(Y, columns=["sport", "news", "war", "art"])
    named = trees(combiner="mlcm-a").fit(X, frame)
    assert named.labels_ == ("sport", "news", "war", "art")
    assert named.panel(NEW).labels == named.labels_
    same = trees(combiner="mlcm-a").fit(X, sparse.csr_array(Y))
    assert (same.decision_function(NEW) == named.decision_function(NEW)).all()


def test_model_selection():
    search = GridSearchCV(
        trees(combiner=mlc.MLCMr()),
        {"combiner__alpha": [0.5, 4.0], "depth_1": ["drop", KNeighborsClassifier()]},
        cv=2,
    ).fit(X, Y)
    assert set(search.best_params_) == {"combiner__alpha", "depth_1"}
    for scoring in (None, "roc_auc", "average_precision", "f1_micro"):
        assert (cross_val_score(trees(), X, Y, cv=2, scoring=scoring) > 0).all()


def test_weights_and_metadata_reach_the_classifiers():
    weight = np.zeros(120)
    weight[:40] = 1
    weighted = (
        trees(combiner="mv").fit(X, Y, sample_weight=weight).decision_function(NEW)
    )
    assert np.allclose(
        weighted, trees(combiner="mv").fit(X[:40], Y[:40]).decision_function(NEW)
    )
    with pytest.raises(TypeError, match="groups"):
        trees().fit(X, Y, groups=weight)
    with sklearn.config_context(enable_metadata_routing=True):
        asked = [
            (name, one.set_fit_request(sample_weight=True))
            for name, one in trees().estimators
        ]
        routed = mlc.ConsensusClassifier(asked, "mv").fit(X, Y, sample_weight=weight)
    assert (routed.decision_function(NEW) == weighted).all()


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "got None"),
        (
            Y + np.arange(4),
            "y: found a multiclass-multioutput target, expected a binary matrix",
        ),
        (Y / 3, "Unknown label type"),
    ],
)
def test_other_targets_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        trees().fit(X, y)


def test_a_stated_family_is_one_model_for_voting():
    X, y = make_multilabel_classification(random_state=0)
    members = [(name, DecisionTreeClassifier(max_depth=2)) for name in ("t-1", "t-2")]
    estimators = [*members, ("near", KNeighborsClassifier())]
    ensemble = mlc.ConsensusClassifier(
        estimators, combiner="majority_vote", families="by-name"
    ).fit(X, y)
    tree, _, near = ensemble.panel(X).to_array()
    np.testing.assert_allclose(ensemble.decision_function(X), (tree + near) / 2)
    assert ensemble.combiner_.models_ == ("t-1 + t-2", "near")
    assert ensemble.predict(X).shape == y.shape
