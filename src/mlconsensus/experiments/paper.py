"""The figures that the paper prints."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import NamedTuple

from ..evaluation.metrics import RANKING_METRICS


class Printed(NamedTuple):
    """One of the paper's tables."""

    cells: dict[str, dict[str, float]]  # method → metric → figure
    misprinted: frozenset[str]  # metrics whose column cannot be what was measured

    def figure(self, method: str, metric: str) -> float | None:
        """Return the figure to compare with, or None where there is none.

        Examples
        --------
        >>> tables()["enron"].figure("MV", "ranking_loss"), tables()["rcv1subset2"].figure("MV", "ranking_loss")
        (0.1848, None)
        """
        return None if metric in self.misprinted else self.cells.get(method, {}).get(metric)


@cache
def tables() -> dict[str, Printed]:
    """Return the paper's tables by data set.

    Examples
    --------
    >>> tables()["medical"].cells["BM"]["micro_auc"]
    0.8887
    """
    text = resources.files(__package__).joinpath("paper.toml").read_text(encoding="utf-8")
    printed = {}
    for name, rows in tomllib.loads(text).items():
        misprinted = frozenset(rows.pop("misprinted", ()))
        cells = {method: dict(zip(RANKING_METRICS, row, strict=True)) for method, row in rows.items()}
        printed[name] = Printed(cells, misprinted)
    return printed
