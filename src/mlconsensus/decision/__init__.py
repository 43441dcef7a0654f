"""From scores to label sets: thresholds, expected F1, risk control and calibration."""

from .label_sets import (
    best_f1,
    cardinalities,
    match_instances,
    match_total,
    threshold,
    top_k,
    top_labels,
    vote_shares,
)

__all__ = [
    "best_f1",
    "cardinalities",
    "match_instances",
    "match_total",
    "threshold",
    "top_k",
    "top_labels",
    "vote_shares",
]
