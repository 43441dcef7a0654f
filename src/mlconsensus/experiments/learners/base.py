"""What a learner is: a way to get the out-of-fold predictions of base models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..shuffles import IntArray, Shuffle

BoolArray = NDArray[np.bool_]


class Problem(NamedTuple):
    """What is asked of a learner: some models' predictions of some labels, for all instances."""

    features: sparse.csr_array  # (n, d)
    truth: BoolArray  # (n, l)
    shuffles: Sequence[Shuffle]
    folds: int
    first_label: int = 0  # which of the data set's labels is the first one here

    def splits(self, shuffle: Shuffle) -> list[tuple[IntArray, IntArray]]:
        """Return (train, test) for each fold of a shuffle; both ascending, so that only the split matters."""
        n = len(self.truth)
        tests = [np.sort(fold) for fold in shuffle.folds(n, self.folds)]
        return [(np.setdiff1d(np.arange(n), test), test) for test in tests]


class Fold(NamedTuple):
    """One fold of one base model, as a learner sees it."""

    seen: sparse.csr_array  # features to train on
    unseen: sparse.csr_array  # features to predict for
    truth: BoolArray  # (n_seen, l) of those to train on
    shuffle: Shuffle
    number: int
    first_label: int

    def generator(self, label: int = 0) -> np.random.Generator:
        """Return the randomness for this fold, and for one label where labels are learnt singly."""
        return self.shuffle.generator(self.number, self.first_label + label)


class Learner(NamedTuple):
    """One kind of base models.

    `predict` answers a `Problem` with one bool array (n, l) for each shuffle, every instance predicted by the model of
    the fold that did not train on it.
    """

    about: str
    predict: Callable[[Problem], list[BoolArray]]
    version: int = 1  # raised when the same settings give other predictions than before
    labels_at_once: int | None = None  # None: labels are learnt together
    repeats_together: bool = False  # whether the models of all repeats share work
    folds: int = 10  # unless told otherwise
    panel: tuple[str, ...] = ()  # names, where the models are not copies of one


def fold_by_fold(predict_fold: Callable[[Fold], BoolArray]) -> Callable[[Problem], list[BoolArray]]:
    """Make a learner's `predict` of what predicts one fold's unseen instances.

    Examples
    --------
    >>> all_of_them = fold_by_fold(lambda fold: np.ones((fold.unseen.shape[0], 1), dtype=bool))
    >>> all_of_them(Problem(sparse.csr_array((2, 1)), np.eye(2, 1, dtype=bool), [Shuffle(0, 0, 0)], 2))[0].sum()
    np.int64(2)
    """

    def predict(problem: Problem) -> list[BoolArray]:
        features = as_int32(problem.features)
        predictions = []
        for shuffle in problem.shuffles:
            predicted = np.empty(problem.truth.shape, dtype=np.bool_)
            for number, (train, test) in enumerate(problem.splits(shuffle)):
                fold = Fold(features[train], features[test], problem.truth[train], shuffle, number, problem.first_label)
                predicted[test] = predict_fold(fold)
            predictions.append(predicted)
        return predictions

    return predict


def binary_relevance(
    fit: Callable[[Any, BoolArray, np.random.Generator], Any],
    prepare: Callable[[Any, Any], tuple[Any, Any]] | None = None,
) -> Callable[[Fold], BoolArray]:
    """Learn each label on its own.

    Parameters
    ----------
    fit
        Takes training features, targets of both classes and a generator, and returns what has ``predict``. Where all
        targets are of one class, that class is the prediction.
    prepare
        Brings seen and unseen features into the form that the learner likes, once for all labels.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> often = fold_by_fold(binary_relevance(lambda X, y, rng: DummyClassifier().fit(X, y)))
    >>> truth = np.array([[1, 0], [1, 0], [1, 0], [1, 1]], dtype=bool)
    >>> often(Problem(sparse.csr_array((4, 1)), truth, [Shuffle(0, 0, 0)], 2))[0].astype(int)
    array([[1, 0], [1, 0], [1, 0], [1, 0]])
    """

    def predict_fold(fold: Fold) -> BoolArray:
        seen, unseen = prepare(fold.seen, fold.unseen) if prepare else (fold.seen, fold.unseen)
        predicted, varied = constant_predictions(fold)
        for label in varied:
            predicted[:, label] = fit(seen, fold.truth[:, label], fold.generator(label)).predict(unseen)
        return predicted

    return predict_fold


def constant_predictions(fold: Fold) -> tuple[BoolArray, IntArray]:
    """Predict the labels that never vary in training, and tell which labels do vary.

    Examples
    --------
    >>> fold = Fold(None, sparse.csr_array((1, 1)), np.array([[1, 1], [1, 0]], dtype=bool), Shuffle(0, 0, 0), 0, 0)
    >>> constant_predictions(fold)
    (array([[ True, False]]), array([1]))
    """
    every, some = fold.truth.all(axis=0), fold.truth.any(axis=0)
    return np.tile(every, (fold.unseen.shape[0], 1)), np.flatnonzero(some & ~every)


def as_int32(features: sparse.csr_array) -> sparse.csr_array:
    """Give a CSR matrix the 32-bit indices that some of scikit-learn's learners insist on.

    Examples
    --------
    >>> as_int32(sparse.csr_array(np.eye(2))).indices.dtype
    dtype('int32')
    """
    parts = (features.data, features.indices.astype(np.int32), features.indptr.astype(np.int32))
    return sparse.csr_array(parts, shape=features.shape)


def seed_of(rng: np.random.Generator) -> int:
    """Draw a seed as scikit-learn takes it.

    Examples
    --------
    >>> seed_of(np.random.default_rng(0))
    1826701614
    """
    return int(rng.integers(2**31 - 1))
