"""The command line: parse, call the library, format. One file a theme."""

from .main import main

__all__ = ["main"]
