"""One contract for every learner, and what is particular to some."""

import numpy as np
import pytest
from scipy import sparse

from mlconsensus.reproduction.learners import (
    LEARNERS,
    MIXED_MODELS,
    VIEWS_MODELS,
    Shuffle,
    out_of_fold,
)

N = 60
D = 20
L = 5


@pytest.fixture(scope="module")
def easy():
    """Labels that are noisy features, one that is never and one always true."""
    rng = np.random.default_rng(0)
    features = rng.random((N, D)) < 0.3
    truth = features[:, :L] ^ (rng.random((N, L)) < 0.03)
    truth[:, 3], truth[:, 4] = False, True
    return sparse.csr_array(features, dtype=np.float64), truth


def predicted(name, data, model=0, repeat=0, folds=4):
    return out_of_fold(
        LEARNERS[name].predict_fold, *data, Shuffle(0, repeat, model), folds
    )


@pytest.mark.parametrize("name", LEARNERS)
def test_predicts_every_instance_with_every_model(easy, name):
    learner = LEARNERS[name]
    made = [predicted(name, easy, model) for model in range(len(learner.panel) or 2)]
    for model, result in enumerate(made):
        assert result.shape == (N, L)
        assert result.dtype == np.bool_
        if not learner.panel or learner.panel[model] not in ("random-a", "random-b"):
            assert not result[:, 3].any()
            assert result[:, 4].all()
    good = made[0][:, :3] == easy[1][:, :3]
    assert good.mean() > (0.55 if name == "views" else 0.75)


@pytest.mark.parametrize("name", LEARNERS)
def test_the_same_again(easy, name):
    np.testing.assert_array_equal(predicted(name, easy, 1), predicted(name, easy, 1))


def test_models_are_not_trained_on_what_they_predict():
    """Labels that are independent of the features cannot be predicted."""
    rng = np.random.default_rng(0)
    features = sparse.csr_array(rng.normal(size=(150, 50)))
    truth = rng.random((150, 4)) < 0.5
    for name in ("svm", "trees", "logistic"):
        assert (
            abs((predicted(name, (features, truth), folds=5) == truth).mean() - 0.5)
            < 0.1
        )


def test_panels_are_as_described():
    assert len(MIXED_MODELS) == 10
    assert len(VIEWS_MODELS) == 8
    assert LEARNERS["mixed"].folds == LEARNERS["views"].folds == 5


def test_models_at_random_have_the_frequencies_they_should():
    rng = np.random.default_rng(0)
    truth = rng.random((2000, 4)) < 0.1
    random = [
        predicted("mixed", (sparse.csr_array((2000, 3)), truth), model)
        for model in (8, 9)
    ]
    assert abs(random[0].mean() / truth.mean() - 1) < 0.15
    assert abs(random[1].mean() / truth.mean() - 3) < 0.3


def test_views_see_disjoint_features_that_change_with_the_repeat():
    """The first label is one feature: only the view that has it can know the label."""
    rng = np.random.default_rng(0)
    features = rng.random((120, 10)) < 0.4
    knowing = []
    for repeat in range(6):
        data = sparse.csr_array(features, dtype=float), features[:, :1]
        accuracy = [
            (predicted("views", data, model, repeat, folds=5) == data[1]).mean()
            for model in range(5)
        ]
        assert sum(value == 1.0 for value in accuracy) == 1
        knowing.append(int(np.argmax(accuracy)))
    assert len(set(knowing)) > 1
