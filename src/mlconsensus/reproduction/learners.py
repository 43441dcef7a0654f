"""The kinds of base models: ways to predict the instances of a fold from those of all other folds.

Binary relevance learns each label on its own. Chains and labelsets know how labels go
together. Panels are as real users have them: models that differ in kind, in what they
see, and in whether they know anything.

Read, Pfahringer, Holmes, Frank: Classifier chains for multi-label classification.
Machine Learning 85, 2011. Tsoumakas, Katakis, Vlahavas: Random k-labelsets for
multilabel classification. IEEE TKDE 23, 2011.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain
from sklearn.naive_bayes import BernoulliNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from ..predictions import BoolArray, IntArray

N_CHAINS = 5
SIZE = 3  # labels of a set, as the paper's authors recommend
N_VIEWS = 5


class Shuffle(NamedTuple):
    """Where all randomness of one base model comes from: the seed, the repeat and the model, and nothing else.

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
        """Shuffle `n` instances and cut them into `k` parts of equal size, but for one instance."""
        return np.array_split(self.generator(0).permutation(n), k)

    def generator(self, *purpose: int) -> np.random.Generator:
        """Return the randomness for one purpose: 0 folds, 1 learning a fold, 2 what all folds share, 3 all models."""
        return np.random.default_rng(
            np.random.SeedSequence((self.seed, self.repeat, self.model, *purpose))
        )


class Fold(NamedTuple):
    """One fold of one base model, as a learner sees it."""

    seen: sparse.csr_array  # features to train on
    unseen: sparse.csr_array  # features to predict for
    truth: BoolArray  # (n_seen, l) of those to train on
    shuffle: Shuffle
    number: int

    def generator(self, label: int = 0) -> np.random.Generator:
        """Return the randomness for this fold, and for one label where labels are learnt singly."""
        return self.shuffle.generator(1, self.number, label)

    def seeing(self, features: IntArray) -> Self:
        """Return the same with some of the features alone."""
        part = np.sort(features)
        return self._replace(seen=self.seen[:, part], unseen=self.unseen[:, part])


Model = Callable[[Fold], BoolArray]  # predicts the unseen instances, (n_unseen, l)


class Learner(NamedTuple):
    """One kind of base models."""

    about: str
    predict_fold: Model
    version: int = 1  # raised when the same settings give other predictions than before
    folds: int = 10  # unless told otherwise
    panel: tuple[str, ...] = ()  # names, where the models are not copies of one


def out_of_fold(
    model: Model, features: Any, truth: BoolArray, shuffle: Shuffle, folds: int
) -> BoolArray:
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
    features.indices, features.indptr = (
        features.indices.astype(np.int32),
        features.indptr.astype(np.int32),
    )
    predicted = np.empty(truth.shape, dtype=np.bool_)
    for number, part in enumerate(shuffle.folds(len(truth), folds)):
        test = np.sort(part)  # both ascending, so that only the split matters
        train = np.setdiff1d(np.arange(len(truth)), test)
        predicted[test] = model(
            Fold(features[train], features[test], truth[train], shuffle, number)
        )

    return predicted


def binary_relevance(make: Callable[[int], Any], fold: Fold) -> BoolArray:
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
    """Predict the labels that never vary in training, and tell which labels do vary.

    Examples
    --------
    >>> fold = Fold(None, sparse.csr_array((1, 1)), np.array([[1, 1], [1, 0]], dtype=bool), Shuffle(0, 0, 0), 0)
    >>> constant_predictions(fold)
    (array([[ True, False]]), array([1]))
    """
    every = fold.truth.all(axis=0)
    some = fold.truth.any(axis=0)
    return np.tile(every, (fold.unseen.shape[0], 1)), np.flatnonzero(some & ~every)


def seed_of(rng: np.random.Generator) -> int:
    """Draw a seed as scikit-learn takes it.

    Examples
    --------
    >>> seed_of(np.random.default_rng(0))
    1826701614
    """
    return int(rng.integers(2**31 - 1))


def regression() -> LogisticRegression:
    """Return the regression that several learners are made of: C = 1, by LIBLINEAR, the fastest on sparse data.

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
    """Let chains in random orders, each trained on a bootstrap sample, vote on each label.

    Examples
    --------
    >>> X = sparse.csr_array(np.repeat(np.eye(2), 10, axis=0))
    >>> chains(Fold(X, X[::10], X.toarray() > 0, Shuffle(0, 0, 0), 0)).tolist()
    [[True, False], [False, True]]
    """
    rng = fold.generator()
    votes = np.zeros((fold.unseen.shape[0], fold.truth.shape[1]))
    for _ in range(N_CHAINS):
        chosen = rng.integers(len(fold.truth), size=len(fold.truth))
        sample = fold._replace(seen=fold.seen[chosen], truth=fold.truth[chosen])
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
    """Cut the labels at random into disjoint sets, and predict which combination of each set's labels an instance has.

    Examples
    --------
    >>> X = sparse.csr_array(np.repeat(np.eye(3), 4, axis=0))
    >>> labelsets(Fold(X, X[::4], X.toarray() > 0, Shuffle(0, 0, 0), 0)).astype(int)
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
    """Let a model see one of five disjoint groups of features, the same groups for all models of a repeat."""
    every = fold.shuffle._replace(model=0).generator(3).permutation(fold.seen.shape[1])
    return model(fold.seeing(np.array_split(every, N_VIEWS)[view]))


def panel(about: str, models: dict[str, Model]) -> Learner:
    """Make a learner of models that are not copies of one."""
    kinds = list(models.values())
    return Learner(
        about,
        lambda fold: kinds[fold.shuffle.model](fold),
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
        "binary relevance with linear SVMs (squared hinge, C = 1)", svm, version=2
    ),
    # Trees differ more from shuffle to shuffle than linear models do.
    "trees": Learner("binary relevance with decision trees", tree, version=2),
    "logistic": Learner("binary relevance with logistic regression (C = 1)", logistic),
    "chains": Learner(
        f"ensembles of {N_CHAINS} classifier chains of logistic regressions", chains
    ),
    "labelsets": Learner(
        f"random disjoint labelsets of {SIZE} labels, each a multiclass logistic regression",
        labelsets,
    ),
    "mixed": panel(
        "ten models of different kinds, two of which answer at random", MIXED_MODELS
    ),
    "views": panel("eight models on five disjoint groups of features", VIEWS_MODELS),
}
