"""Panels as real users have them: models that differ in kind, in what they see, and in whether they know anything."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from ..shuffles import IntArray, Shuffle
from .base import BoolArray, Fold, Model
from .single import bayes, logistic, random_tree, tree

N_VIEWS = 5


def neighbours(fold: Fold) -> BoolArray:
    """Predict what most of the five nearest instances have."""
    model = KNeighborsClassifier(n_neighbors=min(5, len(fold.truth)))
    return np.asarray(model.fit(fold.seen, fold.truth).predict(fold.unseen)).reshape(-1, fold.truth.shape[1]) > 0


def at_random(times: float) -> Model:
    """Predict each label at random, this many times as often as it was seen."""

    def predict_fold(fold: Fold) -> BoolArray:
        drawn = fold.generator().random((fold.unseen.shape[0], fold.truth.shape[1]))
        return np.asarray(drawn < times * fold.truth.mean(axis=0))

    return predict_fold


def seeing(model: Model, choose: Callable[[Shuffle, int], IntArray]) -> Model:
    """Let a model see only the features that are chosen, given the shuffle and the number of all features."""

    def predict_fold(fold: Fold) -> BoolArray:
        part = np.sort(choose(fold.shuffle, fold.seen.shape[1]))
        return model(fold._replace(seen=fold.seen[:, part], unseen=fold.unseen[:, part]))

    return predict_fold


def on_share(model: Model, share: float) -> Model:
    """Let a model see a random share of the features, the same one in all folds."""
    return seeing(model, lambda shuffle, d: shuffle.of_model().choice(d, max(1, round(share * d)), replace=False))


def in_view(model: Model, view: int) -> Model:
    """Let a model see one of five disjoint groups of features, the same groups for all models of a repeat."""
    return seeing(model, lambda shuffle, d: np.array_split(shuffle.of_repeat().permutation(d), N_VIEWS)[view])


MIXED_MODELS: dict[str, Model] = {
    "logistic": logistic,
    "bayes": bayes,
    "tree": tree,
    "random-tree-a": random_tree,
    "random-tree-b": random_tree,
    "neighbours": neighbours,
    "logistic-fifth": on_share(logistic, 1 / 5),
    "tree-third": on_share(tree, 1 / 3),
    "random-a": at_random(1.0),
    "random-b": at_random(3.0),
}

VIEWS_MODELS: dict[str, Model] = {
    **{f"view{view}-logistic": in_view(logistic, view) for view in range(N_VIEWS)},
    "view0-bayes": in_view(bayes, 0),
    "view1-tree": in_view(tree, 1),
    "view2-tree": in_view(tree, 2),
}
