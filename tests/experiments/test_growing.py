"""Trees against scikit-learn's; the growing function is run as plain Python, and as what Numba makes of it."""

import builtins

import numpy as np
import pytest
from scipy import sparse
from sklearn.tree import DecisionTreeClassifier

from mlconsensus.errors import InputError
from mlconsensus.experiments.learners import growing
from mlconsensus.experiments.learners.growing import Tree, grow, grow_tree, sorted_entries


def plain(features, targets, order):
    """Grow without compiling."""
    entries = sorted_entries(sparse.csr_array(features))
    return Tree(*grow(entries.rows, entries.features, entries.values, targets, order))


def impurity(features, targets, feature, threshold):
    """The weighted Gini impurity that a split leaves."""
    parts = [targets[features[:, feature] <= threshold], targets[features[:, feature] > threshold]]
    return sum(len(part) * 2 * part.mean() * (1 - part.mean()) for part in parts)


@pytest.mark.parametrize("seed", range(6))
def test_splits_are_as_good_as_those_of_scikit_learn(seed):
    """Real features, negative and zero ones too."""
    rng = np.random.default_rng(seed)
    features = (rng.normal(size=(60, 6)) * (rng.random((60, 6)) < 0.7)).astype(np.float32)
    targets = features[:, 0] + features[:, 1] + rng.normal(size=60) * 0.5 > 0
    theirs = DecisionTreeClassifier(random_state=0).fit(features, targets)
    ours = plain(features, targets, np.arange(6, dtype=np.int32))
    splits = [(ours.feature[0], ours.threshold[0]), (theirs.tree_.feature[0], theirs.tree_.threshold[0])]
    np.testing.assert_allclose(*(impurity(features, targets, *split) for split in splits))
    np.testing.assert_array_equal(ours.predict(sparse.csr_array(features)), targets)


def test_as_good_as_scikit_learn_on_binary_features():
    """Among equal splits both choose at random: sizes and accuracies agree on average."""
    rng = np.random.default_rng(0)
    features = rng.random((300, 25)) < 0.3
    targets = (features[:, 0] & features[:, 1]) | (features[:, 2] & (rng.random(300) < 0.8))
    train, test = slice(0, 200), slice(200, 300)
    sizes, hits = [], []
    for seed in range(8):
        ours = plain(
            features[train].astype(float), targets[train], np.random.default_rng(seed).permutation(25).astype(np.int32)
        )
        theirs = DecisionTreeClassifier(random_state=seed).fit(features[train], targets[train])
        sizes.append((len(ours.feature), theirs.tree_.node_count))
        unseen = sparse.csr_array(features[test], dtype=float)
        hits.append([(model.predict(unseen) == targets[test]).mean() for model in (ours, theirs)])
    np.testing.assert_allclose(*np.mean(sizes, axis=0), rtol=0.1)
    np.testing.assert_allclose(*np.mean(hits, axis=0), atol=0.03)


def test_instances_that_cannot_be_told_apart():
    tree = plain(np.ones((4, 2)), np.array([True, True, True, False]), np.arange(2, dtype=np.int32))
    assert len(tree.feature) == 1
    np.testing.assert_array_equal(tree.predict(sparse.csr_array(np.zeros((2, 2)))), [True, True])


def test_compiled_is_plain():
    rng = np.random.default_rng(1)
    features = sparse.csr_array(rng.random((60, 10)) < 0.3, dtype=float)
    targets = rng.random(60) < 0.3
    order = np.random.default_rng(2).permutation(10).astype(np.int32)
    for ours, theirs in zip(
        plain(features, targets, order),
        grow_tree(sorted_entries(features), targets, np.random.default_rng(2)),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_without_the_package(monkeypatch):
    def without(name, *args, **options):
        if name == "numba":
            raise ModuleNotFoundError(name)
        return real(name, *args, **options)

    real = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match="learner trees: found no package to compile with, expected numba"):
        growing._compiled.__wrapped__()
