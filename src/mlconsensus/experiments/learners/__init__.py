"""The kinds of base models, one a file, and the names they are called by."""

from .base import Learner, Problem
from .chains import CHAINS
from .labelsets import LABELSETS
from .logistic import LOGISTIC
from .panels import MIXED, VIEWS
from .svm import SVM
from .trees import TREES

LEARNERS: dict[str, Learner] = {
    "svm": SVM,
    "trees": TREES,
    "logistic": LOGISTIC,
    "chains": CHAINS,
    "labelsets": LABELSETS,
    "mixed": MIXED,
    "views": VIEWS,
}

__all__ = ["LEARNERS", "Learner", "Problem"]
