from .calibration import calibrate_scores
from .expected_f1 import choose_label_sets
from .expected_metric import METRICS, Metric, best_f1, best_hamming, find_metric
from .label_sets import (
    Empty,
    Top,
    best_micro_f1,
    cardinalities,
    match_instances,
    match_total,
    threshold,
    top_k,
    top_labels,
    vote_shares,
)
from .risk_control import RiskControlledSets, decide

__all__ = [
    "METRICS",
    "Empty",
    "Metric",
    "RiskControlledSets",
    "Top",
    "best_f1",
    "best_hamming",
    "best_micro_f1",
    "calibrate_scores",
    "cardinalities",
    "choose_label_sets",
    "decide",
    "find_metric",
    "match_instances",
    "match_total",
    "threshold",
    "top_k",
    "top_labels",
    "vote_shares",
]
