"""The command line: commands parse options, call the library and print."""

import os
import sys

# NumPy 2.0 cannot be imported if the shell has closed standard error.
if sys.stderr is None:
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115

from .main import main

__all__ = ["main"]
