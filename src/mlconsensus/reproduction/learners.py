"""Base models, which predict the instances of a fold from all other folds.

Binary relevance learns each label on its own. Chains and labelsets know how labels go
together. Panels are as real users have them: models that differ in kind, in what they
see, and in whether they know anything.

Read, Pfahringer, Holmes, Frank: Classifier chains for multi-label classification.
Machine Learning 85, 2011. Tsoumakas, Katakis, Vlahavas: Random k-labelsets for
multilabel classification. IEEE TKDE 23, 2011.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain
from sklearn.naive_bayes import BernoulliNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from ..linalg.matrix_types import DenseOrCSR
from ..predictions import BoolArray, IntArray

N_CHAINS = 5
SIZE = 3  # labels of a set, as the paper's authors recommend
N_VIEWS = 5


class Shuffle(NamedTuple):
    """The source of all randomness of one base model: seed, repeat and model.

    Its streams are numpy's ``SeedSequence`` of (seed, repeat, model, purpose), so that
    no model's predictions depend on which others are made, where, or in which order.

    Examples
    --------
    >>> [fold.tolist() for fold in Shuffle(seed=0, repeat=0, model=0).folds(5, 2)]
    [[2, 4, 3], [0, 1]]
    """

    seed: int
    repeat: int
    model: int

    def folds(self, n: int, k: int) -> list[IntArray]:
        """Shuffle `n` instances and split them into `k` parts of about equal size."""
        return np.array_split(self.generator(0).permutation(n), k)

    def generator(self, *purpose: int) -> np.random.Generator:
        """Return the random generator for one purpose.

        Purposes are 0 for the folds, 1 for fitting a fold, 2 for choices that all folds
        share, and 3 for choices that all models share.
        """
        return np.random.default_rng(
            np.random.SeedSequence((self.seed, self.repeat, self.model, *purpose))
        )


@dataclass(frozen=True, kw_only=True)
class Fold:
    """One fold of one base model, as a learner sees it."""

    seen: sparse.csr_array  # features to train on
    unseen: sparse.csr_array  # features to predict for
    truth: BoolArray  # (n_seen, l) of those to train on
    shuffle: Shuffle
    number: int

    def generator(self, label: int = 0) -> np.random.Generator:
        """Return the random generator for this fold, or for one label of it."""
        return self.shuffle.generator(1, self.number, label)

    def seeing(self, features: IntArray) -> Self:
        """Return the same with some of the features alone."""
        part = np.sort(features)
        return replace(self, seen=self.seen[:, part], unseen=self.unseen[:, part])


Model = Callable[[Fold], BoolArray]  # predicts the unseen instances, (n_unseen, l)


@dataclass(frozen=True, kw_only=True)
class Learner:
    """One kind of base models."""

    about: str
    predict_fold: Model
    version: int = 1  # raised when the same settings give other predictions than before
    folds: int = 10  # by default
    panel: tuple[str, ...] = ()  # names, where the models are not copies of one


def out_of_fold(
    model: Model, features: DenseOrCSR, truth: BoolArray, shuffle: Shuffle, folds: int
) -> BoolArray:
    """Predict each instance by the model that was not fitted on its fold.

    Parameters
    ----------
    model : callable
        Predicts one fold.
    features : csr_array of shape (n, d)
        Features of the instances.
    truth : ndarray of shape (n, l) of bool
        Labels of the instances.
    shuffle : Shuffle
        How instances are put into folds.
    folds : int
        Number of folds.

    Returns
    -------
    ndarray of shape (n, l) of bool
        Predictions.

    Examples
    --------
    >>> all_of_them = lambda fold: np.ones((fold.unseen.shape[0], 1), dtype=bool)
    >>> truth = np.eye(2, 1, dtype=bool)
    >>> out_of_fold(all_of_them, np.zeros((2, 1)), truth, Shuffle(0, 0, 0), 2).sum()
    np.int64(2)
    """
    features = sparse.csr_array(features)
    # Some of scikit-learn's learners insist on indices of 32 bits.
    features.indices = features.indices.astype(np.int32)
    features.indptr = features.indptr.astype(np.int32)
    predicted = np.empty(truth.shape, dtype=np.bool_)
    for number, part in enumerate(shuffle.folds(len(truth), folds)):
        test = np.sort(part)  # both ascending, so that only the split matters
        train = np.setdiff1d(np.arange(len(truth)), test)
        predicted[test] = model(
            Fold(
                seen=features[train],
                unseen=features[test],
                truth=truth[train],
                shuffle=shuffle,
                number=number,
            )
        )

    return predicted


def binary_relevance(make: Callable[[int], ClassifierMixin], fold: Fold) -> BoolArray:
    """Learn each label on its own.

    Parameters
    ----------
    make
        Takes a seed and returns a classifier of scikit-learn. Labels that never vary in
        training are predicted without it.
    fold
        What to learn from, and what to predict.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> often = partial(binary_relevance, lambda seed: DummyClassifier())
    >>> truth = np.array([[1, 0], [1, 0], [1, 0], [1, 1]], dtype=bool)
    >>> out_of_fold(often, np.zeros((4, 1)), truth, Shuffle(0, 0, 0), 2).astype(int)
    array([[1, 0], [1, 0], [1, 0], [1, 0]])
    """
    predicted, varied = constant_predictions(fold)
    for label in varied:
        classifier = make(seed_of(fold.generator(label)))
        predicted[:, label] = classifier.fit(fold.seen, fold.truth[:, label]).predict(
            fold.unseen
        )

    return predicted


def constant_predictions(fold: Fold) -> tuple[BoolArray, IntArray]:
    """Predict the labels that are constant in training, and return the other labels.

    Examples
    --------
    >>> truth = np.array([[1, 1], [1, 0]], dtype=bool)
    >>> fold = Fold(
    ...     seen=None, unseen=sparse.csr_array((1, 1)), truth=truth,
    ...     shuffle=Shuffle(0, 0, 0), number=0,
    ... )
    >>> constant_predictions(fold)
    (array([[ True, False]]), array([1]))
    """
    is_always_true = fold.truth.all(axis=0)
    is_ever_true = fold.truth.any(axis=0)
    predicted = np.tile(is_always_true, (fold.unseen.shape[0], 1))
    return predicted, np.flatnonzero(is_ever_true & ~is_always_true)


def seed_of(rng: np.random.Generator) -> int:
    """Draw a seed as scikit-learn takes it.

    Examples
    --------
    >>> seed_of(np.random.default_rng(0))
    1826701614
    """
    return int(rng.integers(2**31 - 1))


def regression() -> LogisticRegression:
    """Return a logistic regression with C = 1.

    LIBLINEAR is the fastest solver for sparse data.

    Examples
    --------
    >>> regression().C
    1.0
    """
    return LogisticRegression(C=1.0, solver="liblinear")


# The primal problem, solved tightly: nothing in it is random, and it is the one optimum
# that is found.
svm = partial(
    binary_relevance,
    lambda seed: LinearSVC(C=1.0, dual=False, tol=1e-6, max_iter=100_000),
)
logistic = partial(binary_relevance, lambda seed: regression())
bayes = partial(binary_relevance, lambda seed: BernoulliNB())
tree = partial(binary_relevance, lambda seed: DecisionTreeClassifier(random_state=seed))
random_tree = partial(
    binary_relevance, lambda seed: ExtraTreeClassifier(random_state=seed)
)


def chains(fold: Fold) -> BoolArray:
    """Predict by a majority vote of classifier chains.

    Each chain has a random order of labels and is fitted on a bootstrap sample.

    Examples
    --------
    >>> X = sparse.csr_array(np.repeat(np.eye(2), 10, axis=0))
    >>> fold = Fold(
    ...     seen=X, unseen=X[::10], truth=X.toarray() > 0,
    ...     shuffle=Shuffle(0, 0, 0), number=0,
    ... )
    >>> chains(fold).tolist()
    [[True, False], [False, True]]
    """
    rng = fold.generator()
    votes = np.zeros((fold.unseen.shape[0], fold.truth.shape[1]))
    for _ in range(N_CHAINS):
        chosen = rng.integers(len(fold.truth), size=len(fold.truth))
        sample = replace(fold, seen=fold.seen[chosen], truth=fold.truth[chosen])
        predicted, varied = constant_predictions(sample)
        if len(varied):
            chain = ClassifierChain(
                regression(), order="random", random_state=seed_of(rng)
            )
            predicted[:, varied] = (
                chain.fit(sample.seen, sample.truth[:, varied]).predict(fold.unseen)
                > 0.5
            )

        votes += predicted

    return np.asarray(votes > N_CHAINS / 2)


def labelsets(fold: Fold) -> BoolArray:
    """Predict combinations of labels, for a random partition of the labels.

    Each set of the partition is one multiclass problem.

    Examples
    --------
    >>> X = sparse.csr_array(np.repeat(np.eye(3), 4, axis=0))
    >>> fold = Fold(
    ...     seen=X, unseen=X[::4], truth=X.toarray() > 0,
    ...     shuffle=Shuffle(0, 0, 0), number=0,
    ... )
    >>> labelsets(fold).astype(int)
    array([[1, 0, 0],
           [0, 1, 0],
           [0, 0, 1]])
    """
    predicted, varied = constant_predictions(fold)
    order = fold.generator().permutation(varied)
    for start in range(0, len(order), SIZE):
        labels = order[start : start + SIZE]
        combinations, codes = np.unique(
            fold.truth[:, labels], axis=0, return_inverse=True
        )
        chosen = (
            OneVsRestClassifier(regression()).fit(fold.seen, codes).predict(fold.unseen)
        )
        predicted[:, labels] = combinations[chosen]

    return predicted


def neighbours(fold: Fold) -> BoolArray:
    """Predict what most of the five nearest instances have."""
    model = KNeighborsClassifier(n_neighbors=min(5, len(fold.truth)))
    return (
        np.asarray(model.fit(fold.seen, fold.truth).predict(fold.unseen)).reshape(
            -1, fold.truth.shape[1]
        )
        > 0
    )


def at_random(times: float, fold: Fold) -> BoolArray:
    """Predict each label at random, this many times as often as it was seen."""
    drawn = fold.generator().random((fold.unseen.shape[0], fold.truth.shape[1]))
    return np.asarray(drawn < times * fold.truth.mean(axis=0))


def on_share(model: Model, share: float, fold: Fold) -> BoolArray:
    """Let a model see a random share of the features, the same one in all folds."""
    d = fold.seen.shape[1]
    return model(
        fold.seeing(
            fold.shuffle.generator(2).choice(d, max(1, round(share * d)), replace=False)
        )
    )


def in_view(model: Model, view: int, fold: Fold) -> BoolArray:
    """Predict from one of five disjoint groups of features.

    All models of a repeat have the same groups.
    """
    every = fold.shuffle._replace(model=0).generator(3).permutation(fold.seen.shape[1])
    return model(fold.seeing(np.array_split(every, N_VIEWS)[view]))


def panel(about: str, models: dict[str, Model]) -> Learner:
    """Make a learner of models that are not copies of one."""
    kinds = list(models.values())
    return Learner(
        about=about,
        predict_fold=lambda fold: kinds[fold.shuffle.model](fold),
        version=3,
        folds=5,
        panel=tuple(models),
    )


MIXED_MODELS: dict[str, Model] = {
    "logistic": logistic,
    "bayes": bayes,
    "tree": tree,
    "random-tree-a": random_tree,
    "random-tree-b": random_tree,
    "neighbours": neighbours,
    "logistic-fifth": partial(on_share, logistic, 1 / 5),
    "tree-third": partial(on_share, tree, 1 / 3),
    "random-a": partial(at_random, 1.0),
    "random-b": partial(at_random, 3.0),
}

VIEWS_MODELS: dict[str, Model] = {
    **{
        f"view{view}-logistic": partial(in_view, logistic, view)
        for view in range(N_VIEWS)
    },
    "view0-bayes": partial(in_view, bayes, 0),
    "view1-tree": partial(in_view, tree, 1),
    "view2-tree": partial(in_view, tree, 2),
}

LEARNERS = {
    # The default: of all learners tried it comes closest to the paper's base models.
    "svm": Learner(
        about="binary relevance with linear SVMs (squared hinge, C = 1)",
        predict_fold=svm,
        version=2,
    ),
    # Trees differ more from shuffle to shuffle than linear models do.
    "trees": Learner(
        about="binary relevance with decision trees", predict_fold=tree, version=2
    ),
    "logistic": Learner(
        about="binary relevance with logistic regression (C = 1)",
        predict_fold=logistic,
    ),
    "chains": Learner(
        about=f"ensembles of {N_CHAINS} classifier chains of logistic regressions",
        predict_fold=chains,
    ),
    "labelsets": Learner(
        about=f"random disjoint labelsets of {SIZE} labels, each a multiclass logistic"
        " regression",
        predict_fold=labelsets,
    ),
    "mixed": panel(
        "ten models of different kinds, two of which answer at random", MIXED_MODELS
    ),
    "views": panel("eight models on five disjoint groups of features", VIEWS_MODELS),
}
