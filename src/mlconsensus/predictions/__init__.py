"""What was said: predictions of models, matched by name, with silence; the only place where data is validated.

What other rooms use of this one they import from here.
"""

from .alignment import (
    Array,
    BoolArray,
    FloatArray,
    How,
    IntArray,
    Names,
    as_array,
    as_names,
    first_again,
    positions_of,
)
from .answer_rows import AnswerRows
from .gold_labels import CHANCE, Gold, gold_of, split_chances, truth_table
from .model_scores import AlignedScores, Matrix, StoredMatrix, as_matrix
from .predictions import Predictions, as_predictions, joined
from .quantile_normalization import Scales
from .score_tables import (
    ScoreTable,
    aligned,
    as_polars,
    canonical_csr,
    check_similar_labels,
    find_rare_labels,
    is_frame,
    table_of,
    tables_of,
    with_names,
)
from .source import (
    MAX_DENSE_LABELS,
    BasePredictions,
    LazyPredictions,
    Steps,
    positions,
    prepared,
)

__all__ = [
    "CHANCE",
    "MAX_DENSE_LABELS",
    "Array",
    "BoolArray",
    "FloatArray",
    "Gold",
    "How",
    "IntArray",
    "LazyPredictions",
]
__all__ += [
    "AlignedScores",
    "AnswerRows",
    "BasePredictions",
    "Matrix",
    "Names",
    "Predictions",
    "Scales",
    "ScoreTable",
    "Steps",
    "StoredMatrix",
]
__all__ += [
    "aligned",
    "as_array",
    "as_names",
    "as_predictions",
    "canonical_csr",
    "check_similar_labels",
    "find_rare_labels",
    "first_again",
    "gold_of",
    "is_frame",
]
__all__ += [
    "joined",
    "positions",
    "positions_of",
    "prepared",
    "split_chances",
    "table_of",
    "tables_of",
    "truth_table",
]
__all__ += ["as_matrix", "as_polars", "with_names"]
