"""Statistics with differential privacy."""

from .mechanism import Guarantee, fit

__all__ = ["Guarantee", "fit"]
