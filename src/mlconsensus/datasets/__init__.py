"""Panels to try the methods on: synthetic ones, made on the spot."""

from .synthetic import Panel, make_panel

__all__ = ["Panel", "make_panel"]
