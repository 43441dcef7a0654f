"""Tables of metrics as plain text, best cell marked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from .evaluation.metrics import LOWER_IS_BETTER, RANKING_METRICS, is_better
from .terminal import padded, width

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


def best_rows(results: Mapping[str, Mapping[str, float]], metric: str) -> set[str]:
    """Which rows hold the best value of a metric, as printed to four places.

    Examples
    --------
    >>> best_rows({"a": {"one_error": 0.2}, "b": {"one_error": 0.1}}, "one_error")
    {'b'}
    """
    shown = {row: round(cells[metric], 4) for row, cells in results.items() if not math.isnan(cells[metric])}
    return {row for row, value in shown.items() if not any(is_better(metric, v, value) for v in shown.values())}


def metrics_table(
    results: Mapping[str, Mapping[str, float]],
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
    heads = [f"{TITLES[metric]} {'↓' if metric in LOWER_IS_BETTER else '↑'}" for metric in metrics]
    best = {metric: best_rows(results, metric) if mark else set() for metric in metrics}
    columns = max(width(name) for name in (first, *results))
    lines = [f"{padded(first, columns)}  " + "  ".join(f"{head:>11}" for head in heads)]
    for row, cells in results.items():
        shown = [
            f"{cells[metric]:.4f}{'*' if row in best[metric] else ' '}".rjust(max(11, len(head)))
            for metric, head in zip(metrics, heads, strict=True)
        ]
        lines.append(f"{padded(row, columns)}  {'  '.join(shown)}".rstrip())
    return "\n".join(lines)
