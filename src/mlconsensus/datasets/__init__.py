"""Data to try the methods on: the paper's data sets, support tickets, and synthetic."""

from .registry import Dataset, Entry, fetch, load, registry
from .support_tickets import SupportTickets, load_support_tickets
from .synthetic import Panel, make_panel

__all__ = [
    "Dataset",
    "Entry",
    "Panel",
    "SupportTickets",
    "fetch",
    "load",
    "load_support_tickets",
    "make_panel",
    "registry",
]
