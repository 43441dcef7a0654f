"""Prediction files: one module a format, chosen by suffix, and what makes tables and panels of them."""

from .files import whole_file
from .formats import FORMATS, format_of
from .reading import from_dataset, from_long, label_counts, read_predictions, read_table, read_tables
from .scanning import ScannedPanel, scan_predictions
from .writing import write_table

__all__ = ["FORMATS", "ScannedPanel", "format_of", "from_dataset", "from_long", "label_counts", "read_predictions"]
__all__ += ["read_table", "read_tables", "scan_predictions", "whole_file", "write_table"]
