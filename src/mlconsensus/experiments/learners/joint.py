"""Base models that already know how labels go together: classifier chains and random labelsets.

Read, Pfahringer, Holmes, Frank: Classifier chains for multi-label classification. Machine Learning 85, 2011.
Tsoumakas, Katakis, Vlahavas: Random k-labelsets for multilabel classification. IEEE TKDE 23, 2011.
"""

from __future__ import annotations

import numpy as np
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain

from .base import BoolArray, Fold, constant_predictions, seed_of
from .single import regression

N_CHAINS = 5
SIZE = 3  # labels of a set, as the paper's authors recommend


def chains(fold: Fold) -> BoolArray:
    """Let chains in random orders, each trained on a bootstrap sample, vote on each label.

    Examples
    --------
    >>> from scipy import sparse
    >>> from mlconsensus.experiments.shuffles import Shuffle
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
            chain = ClassifierChain(regression(), order="random", random_state=seed_of(rng))
            predicted[:, varied] = chain.fit(sample.seen, sample.truth[:, varied]).predict(fold.unseen) > 0.5
        votes += predicted
    return np.asarray(votes > N_CHAINS / 2)


def labelsets(fold: Fold) -> BoolArray:
    """Cut the labels at random into disjoint sets, and predict which combination of each set's labels an instance has.

    Examples
    --------
    >>> from scipy import sparse
    >>> from mlconsensus.experiments.shuffles import Shuffle
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
        combinations, codes = np.unique(fold.truth[:, labels], axis=0, return_inverse=True)
        chosen = OneVsRestClassifier(regression()).fit(fold.seen, codes).predict(fold.unseen)
        predicted[:, labels] = combinations[chosen]
    return predicted
