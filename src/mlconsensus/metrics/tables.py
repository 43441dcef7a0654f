"""Tables of metrics as plain text, and conversion of results to JSON types."""

import dataclasses
import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np

from ..text import table
from .ranking import LOWER_IS_BETTER, RANKING_METRICS, is_better

RowName = TypeVar("RowName", bound=Hashable)

# Smallest share of the instance-label pairs on which a model must be evaluated to be
# compared with methods that are evaluated on all pairs.
ENOUGH = 0.5
TITLES = {
    "micro_auc": "microAUC",
    "one_error": "one-error",
    "ranking_loss": "ranking loss",
    "average_precision": "LRAP",
    "hamming_loss": "Hamming loss",
    "subset_accuracy": "subset acc.",
    "micro_f1": "micro F1",
    "macro_f1": "macro F1",
}


@runtime_checkable
class _Record(Protocol):
    """A record whose keys in JSON differ from its fields."""

    def to_dict(self) -> dict[str, object]: ...


def title(metric: str) -> str:
    """Return a metric's title, with an arrow in the direction of better values.

    Parameters
    ----------
    metric : str
        A key of `TITLES`.

    Returns
    -------
    str

    Examples
    --------
    >>> title("one_error"), title("micro_auc")
    ('one-error ↓', 'microAUC ↑')
    """
    arrow = "↓" if metric in LOWER_IS_BETTER else "↑"
    return f"{TITLES[metric]} {arrow}"


def find_best_rows(
    results: Mapping[RowName, Mapping[str, float]], metric: str
) -> set[RowName]:
    """Return the rows with the best value of a metric, rounded to four digits.

    Rows that are evaluated on a small share of the instance-label pairs are left out.

    Parameters
    ----------
    results : mapping of row name to mapping of metric to value
        The table.
    metric : str
        A column of the table.

    Returns
    -------
    set of row names

    Examples
    --------
    >>> find_best_rows({"a": {"one_error": 0.2}, "b": {"one_error": 0.1}}, "one_error")
    {'b'}
    """
    values = {}
    for name, row in results.items():
        has_enough_pairs = row.get("share", 1.0) >= ENOUGH
        if has_enough_pairs and not math.isnan(row[metric]):
            values[name] = round(row[metric], 4)

    best = set()
    for name, value in values.items():
        if not any(is_better(metric, other, value) for other in values.values()):
            best.add(name)

    return best


def format_metrics_table(
    results: Mapping[str, Mapping[str, float]],
    metrics: Sequence[str] = RANKING_METRICS,
    *,
    first: str = "method",
    mark: bool = True,
) -> str:
    """Return a table with a row for each method and a column for each metric.

    Parameters
    ----------
    results : mapping of row name to mapping of metric to value
        The table.
    metrics : sequence of str
        The columns.
    first : str, default="method"
        Title of the first column.
    mark : bool, default=True
        Mark the best value of each column with ``*``.

    Returns
    -------
    str

    Examples
    --------
    >>> results = {"MV": {"one_error": 0.25}, "BM": {"one_error": 0.5}}
    >>> print(format_metrics_table(results, ["one_error"]))
    method  one-error ↓
    MV          0.2500*
    BM          0.5000
    """
    best: dict[str, set[str]] = {}
    for metric in metrics:
        best[metric] = find_best_rows(results, metric) if mark else set()

    rows = []
    for name, values in results.items():
        cells = [name]
        for metric in metrics:
            star = "*" if name in best[metric] else " "
            cells.append(f"{values[metric]:.4f}{star}")

        rows.append(cells)

    heads = [first]
    heads += [f"{title(metric):>11}" for metric in metrics]
    return table(heads, rows)


def plain(value: object) -> object:
    """Return a value that consists of JSON types only.

    Parameters
    ----------
    value : object
        Records (dataclasses and named tuples) and mappings become dicts, records with
        a method ``to_dict`` by that; tuples and arrays become lists; numbers that are
        not finite become None.

    Returns
    -------
    object

    Examples
    --------
    >>> plain((1, float("nan"), np.array([2.0])))
    [1, None, [2.0]]
    """
    if isinstance(value, _Record):
        return plain(value.to_dict())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return {name: plain(getattr(value, name)) for name in names}
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
