"""Data to try the methods on: the paper's six data sets, and synthetic predictions."""

from .registry import Dataset, Entry, fetch, load, registry
from .synthetic import Panel, make_panel

__all__ = ["Dataset", "Entry", "Panel", "fetch", "load", "make_panel", "registry"]
