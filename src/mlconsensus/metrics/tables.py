"""Tables of metrics as plain text, and conversion of records for JSON."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from ..text import table
from .ranking import LOWER_IS_BETTER, RANKING_METRICS, is_better

Rows = Mapping[Any, Mapping[str, float]]  # row → metric → value
# A model that is evaluated on a smaller share of the instance-label pairs is not
# compared with methods that are evaluated on all of them.
ENOUGH = 0.5
TITLES = {
    "micro_auc": "microAUC",
    "one_error": "one error",
    "ranking_loss": "ranking loss",
    "average_precision": "avg precision",
    "hamming_loss": "Hamming loss",
    "subset_accuracy": "subset acc.",
    "micro_f1": "micro F1",
    "macro_f1": "macro F1",
}


def title(metric: str) -> str:
    """Return the column heading of a metric, with an arrow to its better end.

    Parameters
    ----------
    metric : str
        Name of the metric, such as ``"one_error"``.

    Returns
    -------
    str

    Examples
    --------
    >>> title("one_error"), title("micro_auc")
    ('one error ↓', 'microAUC ↑')
    """
    if metric in LOWER_IS_BETTER:
        arrow = "↓"
    else:
        arrow = "↑"

    return f"{TITLES[metric]} {arrow}"


def best_rows(results: Rows, metric: str) -> set[Any]:
    """Return the rows with the best value of a metric, rounded to four decimals.

    Rows that are evaluated on less than half of the instance-label pairs, and rows
    without a value, are left out.

    Parameters
    ----------
    results : mapping
        Row → metric → value.
    metric : str
        Name of the metric.

    Returns
    -------
    set
        Keys of `results`.

    Examples
    --------
    >>> best_rows({"a": {"one_error": 0.2}, "b": {"one_error": 0.1}}, "one_error")
    {'b'}
    """
    rounded = {}
    for row, values in results.items():
        is_comparable = values.get("share", 1.0) >= ENOUGH
        if is_comparable and not math.isnan(values[metric]):
            rounded[row] = round(values[metric], 4)

    best = set()
    for row, value in rounded.items():
        if not any(is_better(metric, other, value) for other in rounded.values()):
            best.add(row)

    return best


def metrics_table(
    results: Rows,
    metrics: Sequence[str] = RANKING_METRICS,
    *,
    first: str = "method",
    mark: bool = True,
) -> str:
    """Return a text table with one row per method and one column per metric.

    Parameters
    ----------
    results : mapping
        Row → metric → value.
    metrics : sequence of str
        The columns.
    first : str, default="method"
        Heading of the first column.
    mark : bool, default=True
        Whether ``*`` marks the best value of each column.

    Returns
    -------
    str

    Examples
    --------
    >>> results = {"MV": {"one_error": 0.25}, "BM": {"one_error": 0.5}}
    >>> print(metrics_table(results, ["one_error"]))
    method  one error ↓
    MV          0.2500*
    BM          0.5000
    """
    best: dict[str, set[Any]] = {metric: set() for metric in metrics}
    if mark:
        best = {metric: best_rows(results, metric) for metric in metrics}

    rows = []
    for name, values in results.items():
        row = [name]
        for metric in metrics:
            if name in best[metric]:
                suffix = "*"
            else:
                suffix = " "
            row.append(f"{values[metric]:.4f}{suffix}")
        rows.append(row)

    headings = [f"{title(metric):>11}" for metric in metrics]
    return table([first, *headings], rows)


def plain(value: Any) -> Any:
    """Convert records, tuples and arrays to values that JSON can represent.

    Parameters
    ----------
    value : object
        A dataclass, named tuple, dict, sequence, array or scalar.

    Returns
    -------
    dict, list, float, int, str or None
        Records become dicts, sequences become lists; NaN and infinity become None.

    Examples
    --------
    >>> plain((1, float("nan"), np.array([2.0])))
    [1, None, [2.0]]
    """
    if is_dataclass(value):
        return {
            field.name: plain(getattr(value, field.name)) for field in fields(value)
        }
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
