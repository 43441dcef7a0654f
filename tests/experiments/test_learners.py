"""One contract for every learner, and what is particular to some."""

import numpy as np
import pytest
from scipy import sparse

from mlconsensus.experiments.learners import LEARNERS, Problem
from mlconsensus.experiments.learners.panels import MIXED_MODELS, VIEWS_MODELS
from mlconsensus.experiments.shuffles import Shuffle

N, D, L = 60, 20, 5


@pytest.fixture(scope="module")
def easy():
    """Labels that are features seen through little noise, one that is never true and one that always is."""
    rng = np.random.default_rng(0)
    features = rng.random((N, D)) < 0.3
    truth = features[:, :L] ^ (rng.random((N, L)) < 0.03)
    truth[:, 3], truth[:, 4] = False, True
    return sparse.csr_array(features, dtype=np.float64), truth


def problem(easy, models, first_label=0, labels=slice(None), repeat=0):
    shuffles = [Shuffle(0, repeat, model) for model in models]
    return Problem(easy[0], easy[1][:, labels], shuffles, 4, first_label)


@pytest.mark.parametrize("name", LEARNERS)
def test_predicts_every_instance_with_every_model(easy, name):
    learner = LEARNERS[name]
    models = range(len(learner.panel) or 2)
    made = learner.predict(problem(easy, models))
    assert len(made) == len(models)
    truth = easy[1]
    for model, predicted in enumerate(made):
        assert predicted.shape == (N, L)
        assert predicted.dtype == np.bool_
        at_random = learner.panel and learner.panel[model].startswith("random-") and "tree" not in learner.panel[model]
        if not at_random:
            assert not predicted[:, 3].any()
            assert predicted[:, 4].all()
    good = made[0][:, :3] == truth[:, :3]
    assert good.mean() > (0.55 if name == "views" else 0.75)


@pytest.mark.parametrize("name", LEARNERS)
def test_the_same_whatever_else_is_made(easy, name):
    """A model's predictions do not depend on the models beside it."""
    learner = LEARNERS[name]
    alone = learner.predict(problem(easy, [1]))[0]
    np.testing.assert_array_equal(alone, learner.predict(problem(easy, [0, 1]))[1])


@pytest.mark.parametrize("name", [name for name, learner in LEARNERS.items() if learner.labels_at_once])
def test_labels_learnt_singly_may_be_cut_anywhere(easy, name):
    learner = LEARNERS[name]
    whole = learner.predict(problem(easy, [0]))[0]
    part = learner.predict(problem(easy, [0], first_label=1, labels=slice(1, 3)))[0]
    np.testing.assert_array_equal(whole[:, 1:3], part)


def test_models_are_not_trained_on_what_they_predict():
    """Labels without any connection to the features cannot be predicted out of fold, only learnt by heart."""
    rng = np.random.default_rng(0)
    features, truth = sparse.csr_array(rng.normal(size=(200, 300))), rng.random((200, 3)) < 0.5
    for name in ("svm", "trees", "logistic"):
        made = LEARNERS[name].predict(Problem(features, truth, [Shuffle(0, 0, 0)], 10))[0]
        assert abs((made == truth).mean() - 0.5) < 0.1


def test_panels_are_as_described():
    assert len(MIXED_MODELS) == 10
    assert len(VIEWS_MODELS) == 8
    assert LEARNERS["mixed"].folds == LEARNERS["views"].folds == 5


def test_models_at_random_have_the_frequencies_they_should(easy):
    rng = np.random.default_rng(0)
    truth = rng.random((2000, 4)) < 0.1
    random = LEARNERS["mixed"].predict(
        Problem(sparse.csr_array((2000, 3)), truth, [Shuffle(0, 0, 8), Shuffle(0, 0, 9)], 5)
    )
    assert abs(random[0].mean() / truth.mean() - 1) < 0.15
    assert abs(random[1].mean() / truth.mean() - 3) < 0.3


def test_views_see_disjoint_features_that_change_with_the_repeat():
    """The first label is one feature: only the view that has it can know the label."""
    rng = np.random.default_rng(0)
    features = rng.random((120, 10)) < 0.4
    knowing = []
    for repeat in range(6):
        data = Problem(
            sparse.csr_array(features, dtype=float), features[:, :1], [Shuffle(0, repeat, k) for k in range(5)], 5
        )
        accuracy = [(made == data.truth).mean() for made in LEARNERS["views"].predict(data)]
        assert sum(value == 1.0 for value in accuracy) == 1
        knowing.append(int(np.argmax(accuracy)))
    assert len(set(knowing)) > 1
