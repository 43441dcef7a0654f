from .files import atomic_write
from .formats.registry import FORMATS, format_of
from .read import (
    from_dataset,
    from_long,
    label_counts,
    read_predictions,
    read_table,
    read_tables,
)
from .scan import FilePredictions, scan_predictions
from .write import write_table

__all__ = [
    "FORMATS",
    "FilePredictions",
    "atomic_write",
    "format_of",
    "from_dataset",
    "from_long",
    "label_counts",
    "read_predictions",
    "read_table",
    "read_tables",
    "scan_predictions",
    "write_table",
]
