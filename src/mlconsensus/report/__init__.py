"""Reports people open: summarise once, render many."""

from .render import Report
from .summary import Summary, summarise

__all__ = ["Report", "Summary", "summarise"]
