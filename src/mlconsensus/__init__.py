"""Combine the predictions of several multilabel models into one better ranking of labels, from the predictions alone.

This file is a table of contents; each name is imported when it is first used, so that importing stays fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from . import datasets, io
    from .asking import ask
    from .consensus import Consensus, combine
    from .engines.dask import from_dask
    from .ensemble import ConsensusClassifier
    from .errors import InputError, InputWarning
    from .estimators import COMBINERS, register, rescale  # and the methods, whose classes and functions it makes
    from .evaluation import decisions, intervals, metrics
    from .evaluation.promises import decide
    from .insight.agreement import Agreement, agreement
    from .insight.comparison import Comparison, compare, leave_out
    from .insight.explanations import Explanation, explain
    from .insight.referee import referee
    from .io import from_dataset, from_long, read_predictions, scan_predictions
    from .panel.predictions import Predictions
    from .sites import privacy
    from .sites.state import load, merge, save, save_statistics, subtract
    from .streamed import write_consensus

__all__ = ["Agreement", "Comparison", "Consensus", "ConsensusClassifier", "Explanation", "InputError", "InputWarning"]
__all__ += ["Predictions", "agreement", "ask", "combine", "compare", "decide", "explain", "from_dask", "from_dataset"]
__all__ += ["from_long", "leave_out", "read_predictions", "referee", "scan_predictions", "write_consensus"]
__all__ += ["BGCM", "COMBINERS", "DawidSkene", "MLCMa", "MLCMr", "MajorityVote", "RaterFilter"]
__all__ += ["bgcm", "dawid_skene", "majority_vote", "mlcm_a", "mlcm_r", "rater_filter", "register", "rescale"]
__all__ += ["load", "merge", "save", "save_statistics", "subtract"]
__all__ += ["datasets", "decisions", "intervals", "io", "metrics", "privacy"]

# Where each name is at home; methods, and all that is not named here, are in `estimators`.
_HOME = {
    "asking": ("ask",),
    "consensus": ("Consensus", "combine"),
    "engines.dask": ("from_dask",),
    "ensemble": ("ConsensusClassifier",),
    "errors": ("InputError", "InputWarning"),
    "evaluation.promises": ("decide",),
    "insight.agreement": ("Agreement", "agreement"),
    "insight.comparison": ("Comparison", "compare", "leave_out"),
    "insight.explanations": ("Explanation", "explain"),
    "insight.referee": ("referee",),
    "io": ("from_dataset", "from_long", "read_predictions", "scan_predictions"),
    "panel.predictions": ("Predictions",),
    "streamed": ("write_consensus",),
    "sites.state": ("load", "merge", "save", "save_statistics", "subtract"),
}
_MODULES = ("datasets", "evaluation.decisions", "evaluation.intervals", "evaluation.metrics", "io", "sites.privacy")


def __getattr__(name: str) -> Any:
    for path in _MODULES:
        if path.rpartition(".")[2] == name:
            return import_module(f".{path}", __name__)
    if not name.startswith("_"):
        home = next((home for home, names in _HOME.items() if name in names), "estimators")
        found = getattr(import_module(f".{home}", __name__), name, None)
        if found is not None:
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
