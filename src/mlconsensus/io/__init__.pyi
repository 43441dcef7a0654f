# "as" marks a name as public for editors, which do not all read `__all__`.
from .files import atomic_write as atomic_write
from .formats.registry import FORMATS as FORMATS
from .formats.registry import format_of as format_of
from .read import from_dataset as from_dataset
from .read import from_long as from_long
from .read import label_counts as label_counts
from .read import read_predictions as read_predictions
from .read import read_table as read_table
from .read import read_tables as read_tables
from .scan import FilePredictions as FilePredictions
from .scan import scan_predictions as scan_predictions
from .write import write_table as write_table

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
