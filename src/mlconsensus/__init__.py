"""Combine the predictions of several multilabel models into one better ranking of labels, from the predictions alone.

This file is a table of contents; each name is imported when it is first used, so that importing stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from . import datasets
    from .combiners import BGCM, COMBINERS, DawidSkene, MajorityVote, MLCMa, MLCMr, RaterFilter
    from .combiners.bgcm import bgcm
    from .combiners.dawid_skene import dawid_skene
    from .combiners.majority_vote import majority_vote
    from .combiners.mlcm_a import mlcm_a
    from .combiners.mlcm_r import mlcm_r
    from .combiners.rater_filter import rater_filter
    from .consensus import Consensus, combine
    from .engines.streaming import write_consensus
    from .errors import InputError
    from .evaluation import decisions, metrics
    from .insight.explanations import Explanation
    from .io import read_predictions, scan_predictions
    from .panel.predictions import Predictions
    from .panel.scales import rescale
    from .sites import privacy
    from .sites.state import load, merge

__all__ = [
    "BGCM",
    "COMBINERS",
    "Consensus",
    "DawidSkene",
    "Explanation",
    "InputError",
    "MLCMa",
    "MLCMr",
    "MajorityVote",
    "Predictions",
    "RaterFilter",
    "bgcm",
    "combine",
    "datasets",
    "dawid_skene",
    "decisions",
    "load",
    "majority_vote",
    "merge",
    "metrics",
    "mlcm_a",
    "mlcm_r",
    "privacy",
    "rater_filter",
    "read_predictions",
    "rescale",
    "scan_predictions",
    "write_consensus",
]

_HOME = {
    "BGCM": "combiners",
    "COMBINERS": "combiners",
    "Consensus": "consensus",
    "DawidSkene": "combiners",
    "Explanation": "insight.explanations",
    "InputError": "errors",
    "MLCMa": "combiners",
    "MLCMr": "combiners",
    "MajorityVote": "combiners",
    "Predictions": "panel.predictions",
    "RaterFilter": "combiners",
    "bgcm": "combiners.bgcm",
    "combine": "consensus",
    "dawid_skene": "combiners.dawid_skene",
    "load": "sites.state",
    "majority_vote": "combiners.majority_vote",
    "merge": "sites.state",
    "mlcm_a": "combiners.mlcm_a",
    "mlcm_r": "combiners.mlcm_r",
    "rater_filter": "combiners.rater_filter",
    "read_predictions": "io",
    "rescale": "panel.scales",
    "scan_predictions": "io",
    "write_consensus": "engines.streaming",
}
_MODULES = {
    "datasets": "datasets",
    "decisions": "evaluation.decisions",
    "metrics": "evaluation.metrics",
    "privacy": "sites.privacy",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    if name in _MODULES:
        return import_module(f".{_MODULES[name]}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
