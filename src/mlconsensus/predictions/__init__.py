"""Predictions of models, matched by name: the only place where data is validated.

Other folders import what they use of this one from here.
"""

from .alignment import How, as_array, as_names, first_again, in_common, positions_of
from .answer_rows import AnswerRows
from .array_types import Array, BoolArray, FloatArray, IntArray, Matrix, Names
from .gold_labels import CHANCE, Gold, gold_of, split_chances, truth_table
from .model_scores import AlignedScores, StoredMatrix, as_matrix
from .predictions import Predictions, as_predictions, joined
from .quantile_normalization import Scales
from .score_tables import (
    ScoreTable,
    as_polars,
    canonical_csr,
    is_frame,
    make_table,
    make_tables,
)
from .source import (
    MAX_DENSE_LABELS,
    BasePredictions,
    LazyPredictions,
    Steps,
    positions,
    prepared,
)
from .table_alignment import (
    add_names,
    align_tables,
    check_similar_labels,
    find_rare_labels,
)

__all__ = [
    "CHANCE",
    "MAX_DENSE_LABELS",
    "AlignedScores",
    "AnswerRows",
    "Array",
    "BasePredictions",
    "BoolArray",
    "FloatArray",
    "Gold",
    "How",
    "IntArray",
    "LazyPredictions",
    "Matrix",
    "Names",
    "Predictions",
    "Scales",
    "ScoreTable",
    "Steps",
    "StoredMatrix",
    "add_names",
    "align_tables",
    "as_array",
    "as_matrix",
    "as_names",
    "as_polars",
    "as_predictions",
    "canonical_csr",
    "check_similar_labels",
    "find_rare_labels",
    "first_again",
    "gold_of",
    "in_common",
    "is_frame",
    "joined",
    "make_table",
    "make_tables",
    "positions",
    "positions_of",
    "prepared",
    "split_chances",
    "truth_table",
]
