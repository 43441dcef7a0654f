"""Panels as real users have them: models that differ in kind, in what they see, and in whether they know anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from sklearn.naive_bayes import BernoulliNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import ExtraTreeClassifier

from .base import BoolArray, Fold, Learner, binary_relevance, fold_by_fold, seed_of
from .logistic import fit_logistic
from .trees import fit_tree, for_trees

N_VIEWS = 5
Model = Callable[[Fold], BoolArray]

logistic = binary_relevance(fit_logistic)
bayes = binary_relevance(lambda features, targets, rng: BernoulliNB().fit(features, targets))
tree = binary_relevance(fit_tree, for_trees)
random_tree = binary_relevance(
    lambda features, targets, rng: ExtraTreeClassifier(random_state=seed_of(rng)).fit(features, targets)
)


def neighbours(fold: Fold) -> BoolArray:
    """Predict what most of the five nearest instances have."""
    model = KNeighborsClassifier(n_neighbors=min(5, len(fold.truth)))
    return np.asarray(model.fit(fold.seen, fold.truth).predict(fold.unseen)).reshape(-1, fold.truth.shape[1]) > 0


def on_part(model: Model, share: float) -> Model:
    """Let a model see a random part of the features, the same one in all folds."""

    def predict_fold(fold: Fold) -> BoolArray:
        d = fold.seen.shape[1]
        part = np.sort(fold.shuffle.of_model().choice(d, max(1, round(share * d)), replace=False))
        return model(fold._replace(seen=fold.seen[:, part], unseen=fold.unseen[:, part]))

    return predict_fold


def at_random(times: float) -> Model:
    """Predict each label at random, this many times as often as it was seen."""

    def predict_fold(fold: Fold) -> BoolArray:
        drawn = fold.generator().random((fold.unseen.shape[0], fold.truth.shape[1]))
        return np.asarray(drawn < times * fold.truth.mean(axis=0))

    return predict_fold


def in_view(model: Model, view: int) -> Model:
    """Let a model see one of five disjoint groups of features, the same groups for all models of a repeat."""

    def predict_fold(fold: Fold) -> BoolArray:
        groups = np.array_split(fold.shuffle.of_repeat().permutation(fold.seen.shape[1]), N_VIEWS)
        part = np.sort(groups[view])
        return model(fold._replace(seen=fold.seen[:, part], unseen=fold.unseen[:, part]))

    return predict_fold


MIXED_MODELS: dict[str, Model] = {
    "logistic": logistic,
    "bayes": bayes,
    "tree": tree,
    "random-tree-a": random_tree,
    "random-tree-b": random_tree,
    "neighbours": neighbours,
    "logistic-fifth": on_part(logistic, 1 / 5),
    "tree-third": on_part(tree, 1 / 3),
    "random-a": at_random(1.0),
    "random-b": at_random(3.0),
}

VIEWS_MODELS: dict[str, Model] = {
    **{f"view{view}-logistic": in_view(logistic, view) for view in range(N_VIEWS)},
    "view0-bayes": in_view(bayes, 0),
    "view1-tree": in_view(tree, 1),
    "view2-tree": in_view(tree, 2),
}


def _panel(about: str, models: dict[str, Model]) -> Learner:
    kinds: Sequence[Model] = list(models.values())
    predict = fold_by_fold(lambda fold: kinds[fold.shuffle.model](fold))
    return Learner(about, predict, version=2, folds=5, panel=tuple(models))


MIXED = _panel("ten models of different kinds, two of which answer at random", MIXED_MODELS)
VIEWS = _panel("eight models on five disjoint groups of features", VIEWS_MODELS)
