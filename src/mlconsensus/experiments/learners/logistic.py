"""Binary relevance with logistic regression."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from .base import BoolArray, Learner, binary_relevance, fold_by_fold


def regression() -> LogisticRegression:
    """Return the regression that this and other learners are made of: C = 1, by LIBLINEAR, the fastest on sparse data.

    Examples
    --------
    >>> regression().C
    1.0
    """
    return LogisticRegression(C=1.0, solver="liblinear")


def fit_logistic(features: Any, targets: BoolArray, rng: np.random.Generator) -> LogisticRegression:
    """Fit one regression; nothing in it is random.

    Examples
    --------
    >>> model = fit_logistic(np.eye(2), np.array([True, False]), np.random.default_rng(0))
    >>> model.predict(np.eye(2)).tolist()
    [True, False]
    """
    return regression().fit(features, targets)


LOGISTIC = Learner(
    "binary relevance with logistic regression (C = 1)", fold_by_fold(binary_relevance(fit_logistic)), labels_at_once=16
)
