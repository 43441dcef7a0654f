"""Random labelsets, disjoint (RAkEL-d): base models that know how the labels of a few small sets go together.

Tsoumakas, Katakis, Vlahavas: Random k-labelsets for multilabel classification. IEEE TKDE 23, 2011.
"""

from __future__ import annotations

import numpy as np
from sklearn.multiclass import OneVsRestClassifier

from .base import BoolArray, Fold, Learner, constant_predictions, fold_by_fold
from .logistic import regression

SIZE = 3  # labels of a set, as the paper's authors recommend


def predict_fold(fold: Fold) -> BoolArray:
    """Cut the labels at random into sets, and predict for each set which combination of its labels an instance has.

    Examples
    --------
    >>> from scipy import sparse
    >>> from mlconsensus.experiments.shuffles import Shuffle
    >>> X = sparse.csr_array(np.repeat(np.eye(3), 4, axis=0))
    >>> predict_fold(Fold(X, X[::4], X.toarray() > 0, Shuffle(0, 0, 0), 0, 0)).astype(int)
    array([[1, 0, 0],
           [0, 1, 0],
           [0, 0, 1]])
    """
    predicted, varied = constant_predictions(fold)
    order = fold.generator().permutation(varied)
    for start in range(0, len(order), SIZE):
        labels = order[start : start + SIZE]
        combinations, codes = np.unique(fold.truth[:, labels], axis=0, return_inverse=True)
        chosen = OneVsRestClassifier(regression()).fit(fold.seen, codes).predict(fold.unseen)
        predicted[:, labels] = combinations[chosen]
    return predicted


LABELSETS = Learner(
    f"random disjoint labelsets of {SIZE} labels, each a multiclass logistic regression", fold_by_fold(predict_fold)
)
