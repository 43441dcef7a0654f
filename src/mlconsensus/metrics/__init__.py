"""Ranking metrics, metrics of label sets, and their intervals."""

from .evaluation import evaluate, evaluate_models
from .label_sets import (
    LABEL_SET_METRICS,
    hamming_loss,
    macro_f1,
    micro_f1,
    subset_accuracy,
)
from .ranking import (
    LOWER_IS_BETTER,
    RANKING_METRICS,
    average_precision,
    micro_auc,
    one_error,
    ranking_loss,
)

__all__ = [
    "LABEL_SET_METRICS",
    "LOWER_IS_BETTER",
    "RANKING_METRICS",
    "average_precision",
    "evaluate",
    "evaluate_models",
    "hamming_loss",
    "macro_f1",
    "micro_auc",
    "micro_f1",
    "one_error",
    "ranking_loss",
    "subset_accuracy",
]
