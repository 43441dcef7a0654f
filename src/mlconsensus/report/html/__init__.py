"""A summary as a page."""

from .page import to_html

__all__ = ["to_html"]
