"""The kinds of base models, and the names they are called by."""

from .base import Learner, Model
from .joint import N_CHAINS, SIZE, chains, labelsets
from .panels import MIXED_MODELS, VIEWS_MODELS
from .single import logistic, svm, tree

__all__ = ["LEARNERS", "Learner"]


def _panel(about: str, models: dict[str, Model]) -> Learner:
    kinds = list(models.values())
    return Learner(about, lambda fold: kinds[fold.shuffle.model](fold), version=3, folds=5, panel=tuple(models))


LEARNERS = {
    # The default: of all learners tried it comes closest to the paper's base models.
    "svm": Learner("binary relevance with linear SVMs (squared hinge, C = 1)", svm, version=2),
    # Trees differ more from shuffle to shuffle than linear models do.
    "trees": Learner("binary relevance with decision trees", tree, version=2),
    "logistic": Learner("binary relevance with logistic regression (C = 1)", logistic),
    "chains": Learner(f"ensembles of {N_CHAINS} classifier chains of logistic regressions", chains),
    "labelsets": Learner(
        f"random disjoint labelsets of {SIZE} labels, each a multiclass logistic regression", labelsets
    ),
    "mixed": _panel("ten models of different kinds, two of which answer at random", MIXED_MODELS),
    "views": _panel("eight models on five disjoint groups of features", VIEWS_MODELS),
}
