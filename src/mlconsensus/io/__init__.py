"""Prediction files: one module a format, chosen by suffix, and what makes tables and panels of them."""

from .files import whole_file
from .formats import FORMATS, Format, Layout, format_of
from .reading import read_predictions, read_table, read_tables, with_names
from .scanning import ScannedPanel, scan_predictions
from .writing import write_table

__all__ = [
    "FORMATS",
    "Format",
    "Layout",
    "ScannedPanel",
    "format_of",
    "read_predictions",
    "read_table",
    "read_tables",
    "scan_predictions",
    "whole_file",
    "with_names",
    "write_table",
]
