"""Binary relevance: base models that learn each label on its own."""

from __future__ import annotations

from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from .base import binary_relevance


def regression() -> LogisticRegression:
    """Return the regression that several learners are made of: C = 1, by LIBLINEAR, the fastest on sparse data.

    Examples
    --------
    >>> regression().C
    1.0
    """
    return LogisticRegression(C=1.0, solver="liblinear")


# The primal problem, solved tightly: nothing in it is random, and it is the one optimum that is found.
svm = binary_relevance(lambda seed: LinearSVC(C=1.0, dual=False, tol=1e-6, max_iter=100_000))
logistic = binary_relevance(lambda seed: regression())
bayes = binary_relevance(lambda seed: BernoulliNB())
tree = binary_relevance(lambda seed: DecisionTreeClassifier(random_state=seed))
random_tree = binary_relevance(lambda seed: ExtraTreeClassifier(random_state=seed))
