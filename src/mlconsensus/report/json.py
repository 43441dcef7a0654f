"""A summary as JSON: all of it, names in full, figures to the last digit."""

from __future__ import annotations

import json
import math
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from .summary import Summary


def to_json(summary: Summary) -> str:
    """Render a summary as JSON that every parser reads: a figure that has no value is null.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> from mlconsensus.report import summarise
    >>> json.loads(to_json(summarise(mlc.combine([[[1, 0]]]))))["panel"]["n_labels"]
    2
    """
    return json.dumps(plain(summary), indent=1, allow_nan=False) + "\n"


def plain(found: Any) -> Any:
    """Turn dataclasses, tuples and arrays into what JSON has.

    Examples
    --------
    >>> plain((1, float("nan"), np.array([2.0])))
    [1, None, [2.0]]
    """
    if is_dataclass(found):
        return {field.name: plain(getattr(found, field.name)) for field in fields(found)}
    if hasattr(found, "_asdict"):
        return plain(found._asdict())
    if isinstance(found, dict):
        return {key: plain(value) for key, value in found.items()}
    if isinstance(found, tuple | list):
        return [plain(value) for value in found]
    if isinstance(found, np.ndarray):
        return plain(found.tolist())
    return None if isinstance(found, float) and not math.isfinite(found) else found
