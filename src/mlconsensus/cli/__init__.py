"""The command line: parse, call the library, format. One file a theme."""

import os
import sys

if sys.stderr is None:  # where the shell has closed it, NumPy 2.0 cannot be imported
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115

from .main import main

__all__ = ["main"]
