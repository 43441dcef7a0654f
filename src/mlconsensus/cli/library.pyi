from ..combiners.registry import find_identifier, list_by_name
from ..consensus import Consensus
from ..datasets.registry import cache_folder, entry, fetch, is_here, registry
from ..execution.dask import DaskPredictions, connect
from ..execution.memory import available_memory, check_size
from ..execution.progress import track
from ..federated.privacy.mechanism import DEFAULT_CLIP, check_budget
from ..inspection.diagnostics import examine
from ..inspection.explanations import find_instance, find_label
from ..inspection.similar_labels import similar_labels
from ..io.files import atomic_write, check_output
from ..io.formats.clusterings import read_clustering, read_pairs
from ..io.formats.registry import check_apart, expand_folders, is_read_with
from ..io.label_names import read_names
from ..io.layouts import get_names
from ..io.memory_estimate import estimate_memory
from ..io.write import check_layout, streamed_format
from ..linalg.block_sums import dense
from ..linalg.sparse_scores import Cells, SparseScores
from ..metrics.ground_truth import (
    MatchedTruth,
    add_unnamed_labels,
    describe_empty_instances,
    match_truth_table,
)
from ..metrics.intervals import evaluate_on_gold
from ..metrics.tables import format_metrics_table, plain
from ..model_selection.comparison import (
    combine_with_families,
    find_inclusion_probabilities,
)
from ..predictions import MAX_DENSE_LABELS, ScoreTable, gold_of, split_chances
from ..predictions.sampling import select_frequent_labels
from ..report import Report, summarize
from ..report.provenance import hash_files
from ..report.render import choose_report_format
from ..reproduction import Settings, as_json, as_markdown, as_text, reproduce
from ..streamed import Written
from .demo import run_demo

__all__ = [
    "DEFAULT_CLIP",
    "MAX_DENSE_LABELS",
    "Cells",
    "Consensus",
    "DaskPredictions",
    "MatchedTruth",
    "Report",
    "ScoreTable",
    "Settings",
    "SparseScores",
    "Written",
    "add_unnamed_labels",
    "as_json",
    "as_markdown",
    "as_text",
    "atomic_write",
    "available_memory",
    "cache_folder",
    "check_apart",
    "check_budget",
    "check_layout",
    "check_output",
    "check_size",
    "choose_report_format",
    "combine_with_families",
    "connect",
    "dense",
    "describe_empty_instances",
    "entry",
    "estimate_memory",
    "evaluate_on_gold",
    "examine",
    "expand_folders",
    "fetch",
    "find_identifier",
    "find_inclusion_probabilities",
    "find_instance",
    "find_label",
    "format_metrics_table",
    "get_names",
    "gold_of",
    "hash_files",
    "is_here",
    "is_read_with",
    "list_by_name",
    "match_truth_table",
    "plain",
    "read_clustering",
    "read_names",
    "read_pairs",
    "registry",
    "reproduce",
    "run_demo",
    "select_frequent_labels",
    "similar_labels",
    "split_chances",
    "streamed_format",
    "summarize",
    "track",
]
