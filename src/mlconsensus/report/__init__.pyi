from .render import Report
from .summary import Summary, summarize

__all__ = [
    "Report",
    "Summary",
    "summarize",
]
