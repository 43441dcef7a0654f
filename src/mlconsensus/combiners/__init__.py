"""Combiners, one method per file: equations, class, function."""

from .base import BaseCombiner
from .registry import COMBINERS, register

__all__ = ["COMBINERS", "BaseCombiner", "register"]
