"""Blocks of predictions: two layouts that offer the same sums."""

from .base import InstanceInfo, ModelProducts, PairwiseProducts, PredictionBlock
from .dense import DenseBlock
from .layout import make_block, make_crowd_block
from .pair_values import DenseValues, NamedPairs, NamedValues, PairValues
from .sparse import SparseBlock
from .vote_patterns import VotePatterns

__all__ = [
    "DenseBlock",
    "DenseValues",
    "InstanceInfo",
    "ModelProducts",
    "NamedPairs",
    "NamedValues",
    "PairValues",
    "PairwiseProducts",
    "PredictionBlock",
    "SparseBlock",
    "VotePatterns",
    "make_block",
    "make_crowd_block",
]
