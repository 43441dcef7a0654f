from .evaluation import evaluate, evaluate_models
from .ground_truth import match_truth
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
    "match_truth",
    "micro_auc",
    "micro_f1",
    "one_error",
    "ranking_loss",
    "subset_accuracy",
]
