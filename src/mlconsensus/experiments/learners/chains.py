"""Ensembles of classifier chains: base models that already know how labels go together.

Read, Pfahringer, Holmes, Frank: Classifier chains for multi-label classification. Machine Learning 85, 2011.
"""

from __future__ import annotations

import numpy as np
from sklearn.multioutput import ClassifierChain

from .base import BoolArray, Fold, Learner, constant_predictions, fold_by_fold, seed_of
from .logistic import regression

N_CHAINS = 5


def predict_fold(fold: Fold) -> BoolArray:
    """Let chains in random orders, each trained on a bootstrap sample, vote on each label.

    Examples
    --------
    >>> from scipy import sparse
    >>> from mlconsensus.experiments.shuffles import Shuffle
    >>> X = sparse.csr_array(np.repeat(np.eye(2), 10, axis=0))
    >>> predict_fold(Fold(X, X[::10], X.toarray() > 0, Shuffle(0, 0, 0), 0, 0)).tolist()
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


CHAINS = Learner(f"ensembles of {N_CHAINS} classifier chains of logistic regressions", fold_by_fold(predict_fold))
