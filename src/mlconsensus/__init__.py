"""Combine the predictions of several multilabel models into one better ranking of labels, from the predictions alone.

This file is a table of contents; each name is imported when it is first used, so that importing stays fast.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from . import datasets
    from .consensus import Consensus, combine, write_consensus
    from .engines.dask import from_dask
    from .errors import InputError
    from .estimators import (
        BGCM,
        COMBINERS,
        DawidSkene,
        MajorityVote,
        MLCMa,
        MLCMr,
        RaterFilter,
        bgcm,
        dawid_skene,
        majority_vote,
        mlcm_a,
        mlcm_r,
        rater_filter,
        register,
        rescale,
    )
    from .evaluation import decisions, metrics
    from .insight.explanations import Explanation, explain
    from .insight.referee import referee
    from .io import read_predictions, scan_predictions
    from .panel.predictions import Predictions
    from .sites import privacy
    from .sites.state import load, merge, save, save_statistics

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
    "explain",
    "from_dask",
    "load",
    "majority_vote",
    "merge",
    "metrics",
    "mlcm_a",
    "mlcm_r",
    "privacy",
    "rater_filter",
    "read_predictions",
    "referee",
    "register",
    "rescale",
    "save",
    "save_statistics",
    "scan_predictions",
    "write_consensus",
]

_HOME = {
    "BGCM": "estimators",
    "COMBINERS": "estimators",
    "Consensus": "consensus",
    "DawidSkene": "estimators",
    "Explanation": "insight.explanations",
    "explain": "insight.explanations",
    "from_dask": "engines.dask",
    "register": "estimators",
    "save": "sites.state",
    "save_statistics": "sites.state",
    "InputError": "errors",
    "MLCMa": "estimators",
    "MLCMr": "estimators",
    "MajorityVote": "estimators",
    "Predictions": "panel.predictions",
    "RaterFilter": "estimators",
    "bgcm": "estimators",
    "combine": "consensus",
    "dawid_skene": "estimators",
    "load": "sites.state",
    "majority_vote": "estimators",
    "merge": "sites.state",
    "mlcm_a": "estimators",
    "mlcm_r": "estimators",
    "rater_filter": "estimators",
    "read_predictions": "io",
    "referee": "insight.referee",
    "rescale": "estimators",
    "scan_predictions": "io",
    "write_consensus": "consensus",
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
    if not name.startswith("_"):  # a method that was added to the registry
        with suppress(AttributeError):
            return getattr(import_module(".estimators", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
