"""TSV: tab-separated text, otherwise as `csv`."""

from __future__ import annotations

from functools import partial

from . import csv

read = partial(csv.read, separator="\t")
write = partial(csv.write, separator="\t")
