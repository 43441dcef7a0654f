"""Ranking metrics, metrics of label sets, and their intervals."""

from .ranking import (
    LABEL_SET_METRICS,
    LOWER_IS_BETTER,
    RANKING_METRICS,
    average_precision,
    evaluate,
    evaluate_models,
    hamming_loss,
    macro_f1,
    micro_auc,
    micro_f1,
    one_error,
    ranking_loss,
    subset_accuracy,
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
