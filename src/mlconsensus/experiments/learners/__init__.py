"""The kinds of base models, and the names they are called by."""

from .base import Learner
from .joint import CHAINS, LABELSETS
from .panels import MIXED, VIEWS
from .single import LOGISTIC, SVM, TREES

LEARNERS: dict[str, Learner] = {
    "svm": SVM,
    "trees": TREES,
    "logistic": LOGISTIC,
    "chains": CHAINS,
    "labelsets": LABELSETS,
    "mixed": MIXED,
    "views": VIEWS,
}

__all__ = ["LEARNERS", "Learner"]
