"""Figures for people and programs: tables of metrics as plain text, best cell marked, and what JSON can hold."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..text import table
from .ranking import LOWER_IS_BETTER, RANKING_METRICS, is_better

Rows = Mapping[Any, Mapping[str, float]]  # row → metric → figure
# of the cells; a model that is judged on a smaller share is not compared with what is
# judged on all
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
    """Name a metric for the head of a column, with an arrow to where it is better.

    Examples
    --------
    >>> title("one_error"), title("micro_auc")
    ('one error ↓', 'microAUC ↑')
    """
    return f"{TITLES[metric]} {'↓' if metric in LOWER_IS_BETTER else '↑'}"


def best_rows(results: Rows, metric: str) -> set[Any]:
    """Which rows hold the best value of a metric, as printed to four places; none that is judged on few cells.

    Examples
    --------
    >>> best_rows({"a": {"one_error": 0.2}, "b": {"one_error": 0.1}}, "one_error")
    {'b'}
    """
    enough = {
        row: cells[metric]
        for row, cells in results.items()
        if cells.get("share", 1.0) >= ENOUGH
    }
    shown = {
        row: round(value, 4) for row, value in enough.items() if not math.isnan(value)
    }
    return {
        row
        for row, value in shown.items()
        if not any(is_better(metric, v, value) for v in shown.values())
    }


def metrics_table(
    results: Rows,
    metrics: Sequence[str] = RANKING_METRICS,
    *,
    first: str = "method",
    mark: bool = True,
) -> str:
    """Lay out one row a method and one column a metric; ``*`` marks the best of each column, if asked to.

    Examples
    --------
    >>> print(metrics_table({"MV": {"one_error": 0.25}, "BM": {"one_error": 0.5}}, ["one_error"]))
    method  one error ↓
    MV          0.2500*
    BM          0.5000
    """
    best = {metric: best_rows(results, metric) if mark else set() for metric in metrics}
    rows = [
        [
            name,
            *(
                f"{cells[metric]:.4f}{'*' if name in best[metric] else ' '}"
                for metric in metrics
            ),
        ]
        for name, cells in results.items()
    ]
    return table([first, *(f"{title(metric):>11}" for metric in metrics)], rows)


def plain(found: Any) -> Any:
    """Turn named tuples, tuples and arrays into what JSON has.

    Examples
    --------
    >>> plain((1, float("nan"), np.array([2.0])))
    [1, None, [2.0]]
    """
    if hasattr(found, "_asdict"):
        return plain(found._asdict())
    if isinstance(found, dict):
        return {key: plain(value) for key, value in found.items()}
    if isinstance(found, tuple | list | np.ndarray):
        return [
            plain(value)
            for value in (found.tolist() if isinstance(found, np.ndarray) else found)
        ]
    if isinstance(found, float) and not math.isfinite(found):
        return None
    return found
