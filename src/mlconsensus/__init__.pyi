from . import datasets, decision, io, metrics
from .combiners.base import BaseCombiner
from .combiners.bgcm import BGCM, bgcm
from .combiners.dawid_skene import DawidSkene, dawid_skene
from .combiners.majority_vote import MajorityVote, majority_vote
from .combiners.mlcm_a import MLCMa, mlcm_a
from .combiners.mlcm_r import MLCMr, mlcm_r
from .combiners.registry import COMBINERS, register, rescale
from .combiners.weighted_consensus import WeightedConsensus, weighted_consensus
from .consensus import Consensus, combine
from .decision.risk_control import decide
from .ensemble import ConsensusClassifier
from .errors import InputError, InputWarning
from .execution.dask import from_dask
from .federated import privacy
from .federated.combiner_files import load, save, save_statistics
from .federated.merge import merge, subtract
from .inspection.agreement import Agreement, agreement
from .inspection.explanations import Explanation, explain
from .io import from_dataset, from_long, read_predictions, scan_predictions
from .model_selection.comparison import Comparison, compare, leave_out
from .model_selection.held_out_models import compare_on_held_out_models
from .predictions.predictions import Predictions
from .query_selection import ask
from .streamed import write_consensus

__version__: str

__all__ = [
    "BGCM",
    "COMBINERS",
    "Agreement",
    "BaseCombiner",
    "Comparison",
    "Consensus",
    "ConsensusClassifier",
    "DawidSkene",
    "Explanation",
    "InputError",
    "InputWarning",
    "MLCMa",
    "MLCMr",
    "MajorityVote",
    "Predictions",
    "WeightedConsensus",
    "agreement",
    "ask",
    "bgcm",
    "combine",
    "compare",
    "compare_on_held_out_models",
    "datasets",
    "dawid_skene",
    "decide",
    "decision",
    "explain",
    "from_dask",
    "from_dataset",
    "from_long",
    "io",
    "leave_out",
    "load",
    "majority_vote",
    "merge",
    "metrics",
    "mlcm_a",
    "mlcm_r",
    "privacy",
    "read_predictions",
    "register",
    "rescale",
    "save",
    "save_statistics",
    "scan_predictions",
    "subtract",
    "weighted_consensus",
    "write_consensus",
]
