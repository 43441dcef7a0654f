"""What a learner is: a way to predict the instances of a fold from those of all other folds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..shuffles import IntArray, Shuffle

BoolArray = NDArray[np.bool_]


class Fold(NamedTuple):
    """One fold of one base model, as a learner sees it."""

    seen: sparse.csr_array  # features to train on
    unseen: sparse.csr_array  # features to predict for
    truth: BoolArray  # (n_seen, l) of those to train on
    shuffle: Shuffle
    number: int

    def generator(self, label: int = 0) -> np.random.Generator:
        """Return the randomness for this fold, and for one label where labels are learnt singly."""
        return self.shuffle.generator(self.number, label)


Model = Callable[[Fold], BoolArray]  # predicts the unseen instances, (n_unseen, l)


class Learner(NamedTuple):
    """One kind of base models."""

    about: str
    predict_fold: Model
    version: int = 1  # raised when the same settings give other predictions than before
    folds: int = 10  # unless told otherwise
    panel: tuple[str, ...] = ()  # names, where the models are not copies of one


def out_of_fold(model: Model, features: Any, truth: BoolArray, shuffle: Shuffle, folds: int) -> BoolArray:
    """Cross-validate: predict every instance by the model of the fold that did not train on it.

    Parameters
    ----------
    model
        Predicts one fold.
    features
        Sparse matrix (n, d).
    truth
        Labels, (n, l).
    shuffle, folds
        How instances are put into folds, and into how many.

    Returns
    -------
    ndarray of bool
        Predictions, (n, l).

    Examples
    --------
    >>> all_of_them = lambda fold: np.ones((fold.unseen.shape[0], 1), dtype=bool)
    >>> out_of_fold(all_of_them, np.zeros((2, 1)), np.eye(2, 1, dtype=bool), Shuffle(0, 0, 0), 2).sum()
    np.int64(2)
    """
    features = sparse.csr_array(features)
    # Some of scikit-learn's learners insist on indices of 32 bits.
    features.indices, features.indptr = features.indices.astype(np.int32), features.indptr.astype(np.int32)
    predicted = np.empty(truth.shape, dtype=np.bool_)
    for number, part in enumerate(shuffle.folds(len(truth), folds)):
        test = np.sort(part)  # both ascending, so that only the split matters
        train = np.setdiff1d(np.arange(len(truth)), test)
        predicted[test] = model(Fold(features[train], features[test], truth[train], shuffle, number))
    return predicted


def binary_relevance(make: Callable[[int], Any]) -> Model:
    """Learn each label on its own.

    Parameters
    ----------
    make
        Takes a seed and returns a classifier of scikit-learn. Labels that never vary in training are predicted
        without it.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> often = binary_relevance(lambda seed: DummyClassifier())
    >>> truth = np.array([[1, 0], [1, 0], [1, 0], [1, 1]], dtype=bool)
    >>> out_of_fold(often, np.zeros((4, 1)), truth, Shuffle(0, 0, 0), 2).astype(int)
    array([[1, 0], [1, 0], [1, 0], [1, 0]])
    """

    def predict_fold(fold: Fold) -> BoolArray:
        predicted, varied = constant_predictions(fold)
        for label in varied:
            classifier = make(seed_of(fold.generator(label)))
            predicted[:, label] = classifier.fit(fold.seen, fold.truth[:, label]).predict(fold.unseen)
        return predicted

    return predict_fold


def constant_predictions(fold: Fold) -> tuple[BoolArray, IntArray]:
    """Predict the labels that never vary in training, and tell which labels do vary.

    Examples
    --------
    >>> fold = Fold(None, sparse.csr_array((1, 1)), np.array([[1, 1], [1, 0]], dtype=bool), Shuffle(0, 0, 0), 0)
    >>> constant_predictions(fold)
    (array([[ True, False]]), array([1]))
    """
    every, some = fold.truth.all(axis=0), fold.truth.any(axis=0)
    return np.tile(every, (fold.unseen.shape[0], 1)), np.flatnonzero(some & ~every)


def seed_of(rng: np.random.Generator) -> int:
    """Draw a seed as scikit-learn takes it.

    Examples
    --------
    >>> seed_of(np.random.default_rng(0))
    1826701614
    """
    return int(rng.integers(2**31 - 1))
