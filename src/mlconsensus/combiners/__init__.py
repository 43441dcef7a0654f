"""The methods, one a file; a new one adds one line to `METHODS`."""

from ._old_default.weighted_consensus import WeightedConsensus
from .bgcm import BGCM
from .dawid_skene import DawidSkene
from .majority_vote import MajorityVote
from .method import Method
from .mlcm_a import MLCMa
from .mlcm_r import MLCMr

METHODS: tuple[type[Method], ...] = (
    MajorityVote,
    DawidSkene,
    BGCM,
    MLCMr,
    MLCMa,
    WeightedConsensus,
)

__all__ = ["METHODS", "Method"]
