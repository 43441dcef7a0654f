"""The exact solver against scikit-learn's LinearSVC, driven to a tiny tolerance."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import LinearSVC

from mlconsensus.datasets import load
from mlconsensus.experiments.learners.pivoting import Exchange, full_margins, linear_kernel, out_of_fold

pytest_plugins = ["shared_data"]


def predicted(features, truth, held_out, c):
    kernel = linear_kernel(features)
    return out_of_fold(kernel, truth, full_margins(kernel, truth, c), held_out, c)


def expected(features, truth, held, c):
    """The same by LinearSVC; NaN where its score is too close to 0 to be sure of the sign."""
    rest = np.setdiff1d(np.arange(len(truth)), held)
    out = np.empty((len(held), truth.shape[1]))
    for label, y in enumerate(truth[rest].T):
        if y.all() or not y.any():
            out[:, label] = y[0]
            continue
        model = LinearSVC(C=c, dual=False, tol=1e-8, max_iter=100_000).fit(features[rest], y)
        scores = model.decision_function(features[held])
        out[:, label] = np.where(np.abs(scores) > 1e-5, scores > 0, np.nan)
    return out


def agree(features, truth, held_out, c=1.0):
    features = sparse.csr_array(features, dtype=np.float64)
    features.indices, features.indptr = features.indices.astype(np.int32), features.indptr.astype(np.int32)
    for held, ours in zip(held_out, predicted(features, truth, held_out, c), strict=True):
        theirs = expected(features, truth, held, c)
        sure = ~np.isnan(theirs)
        assert sure.mean() > 0.9
        np.testing.assert_array_equal(ours[sure], theirs[sure].astype(bool))


@pytest.mark.parametrize("c", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_linear_svc(seed, c):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(80, 12)) * (rng.random((80, 12)) < 0.4)
    truth = features[:, :4] + rng.normal(size=(80, 4)) > [0.3, 0.8, 1.5, 2.5]
    agree(features, truth, np.array_split(rng.permutation(80), 5), c)


def test_more_features_than_instances():
    rng = np.random.default_rng(0)
    agree(rng.random((30, 200)) < 0.1, rng.random((30, 3)) < 0.3, np.array_split(rng.permutation(30), 3))


def test_one_class_left_to_train_on():
    truth = np.array([[1, 0, 1], [0, 0, 1], [0, 0, 0]], dtype=bool)
    parts = predicted(sparse.csr_array(np.eye(3)), truth, [np.array([0]), np.array([2])], 1.0)
    np.testing.assert_array_equal(parts[0][0, :2], [False, False])
    np.testing.assert_array_equal(parts[1][0, 1:], [False, True])


def test_sets_need_not_be_a_partition():
    rng = np.random.default_rng(1)
    features, truth = sparse.csr_array(rng.random((40, 20)) < 0.2, dtype=float), rng.random((40, 2)) < 0.4
    alone = predicted(features, truth, [np.arange(5)], 1.0)[0]
    among = predicted(features, truth, [np.arange(3, 9), np.arange(5), np.array([0])], 1.0)[1]
    np.testing.assert_array_equal(alone, among)


def test_exchange_falls_back_to_single_steps():
    exchange = Exchange(np.zeros((1, 3), dtype=bool))
    everything = np.ones((1, 3), dtype=bool)
    moved = []
    for _ in range(6):
        before = exchange.active.copy()
        exchange.swap(np.array([0]), everything, everything)
        moved.append(int((before != exchange.active).sum()))
    assert moved == [3, 3, 3, 3, 1, 1]


@pytest.mark.parametrize(("name", "labels"), [("medical", 4), pytest.param("slashdot", 1, marks=pytest.mark.slow)])
def test_agrees_on_real_data(data_folder, name, labels):
    data = load(name)
    rng = np.random.default_rng(0)
    n = data.features.shape[0]
    agree(data.features, data.labels[:, :labels].toarray(), [np.sort(rng.choice(n, n // 10, replace=False))])
