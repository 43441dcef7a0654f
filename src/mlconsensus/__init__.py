"""Combine the predictions of several multilabel models into one better ranking of labels, from the predictions alone.

This file is a table of contents; each name is imported when it is first used, so that importing stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from . import datasets, decisions, metrics, privacy
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
    from .explain import Explanation
    from .io import read_predictions, scan_predictions
    from .predictions import Predictions
    from .scales import rescale
    from .state import load, merge

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
    "Explanation": "explain",
    "InputError": "errors",
    "MLCMa": "combiners",
    "MLCMr": "combiners",
    "MajorityVote": "combiners",
    "Predictions": "predictions",
    "RaterFilter": "combiners",
    "bgcm": "combiners.bgcm",
    "combine": "consensus",
    "dawid_skene": "combiners.dawid_skene",
    "load": "state",
    "majority_vote": "combiners.majority_vote",
    "merge": "state",
    "mlcm_a": "combiners.mlcm_a",
    "mlcm_r": "combiners.mlcm_r",
    "rater_filter": "combiners.rater_filter",
    "read_predictions": "io",
    "scan_predictions": "io",
    "write_consensus": "engines.streaming",
    "rescale": "scales",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    if name in __all__:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
