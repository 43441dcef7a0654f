"""What the paper prints: its figures, and what it claims of them."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from ..metrics.ranking import RANKING_METRICS


class Printed(NamedTuple):
    """One of the paper's tables."""

    cells: dict[str, dict[str, float]]  # method → metric → figure
    misprinted: frozenset[str]  # metrics whose column cannot be what was measured

    def figure(self, method: str, metric: str) -> float | None:
        """Return the figure to compare with, or None where there is none.

        Examples
        --------
        >>> tables()["enron"].figure("MV", "ranking_loss")
        0.1848
        >>> tables()["rcv1subset2"].figure("MV", "ranking_loss") is None
        True
        """
        if metric in self.misprinted:
            return None
        return self.cells.get(method, {}).get(metric)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim that the first method of each pair is better than the second.

    It is about the share of comparisons, or about the largest gain.
    """

    text: str
    metrics: list[str]
    pairs: list[tuple[str, str]]
    share: float = 1.0  # of the cells in which it is ahead
    # the largest gain relative to the second; None: the claim is not about it
    gain: float | None = None


def tables() -> dict[str, Printed]:
    """Return the paper's tables by data set.

    Examples
    --------
    >>> tables()["medical"].cells["BM"]["micro_auc"]
    0.8887
    """
    printed = {}
    for name, table in _content()["tables"].items():
        rows = dict(table)
        misprinted = frozenset(rows.pop("misprinted", ()))
        cells = {
            method: dict(zip(RANKING_METRICS, row, strict=True))
            for method, row in rows.items()
        }
        printed[name] = Printed(cells, misprinted)

    return printed


def claims() -> list[Claim]:
    """Return the paper's claims, in its order.

    Examples
    --------
    >>> claims()[1].gain
    0.41
    """
    return [Claim(**claim) for claim in _content()["claims"]]


@cache
def _content() -> dict[str, Any]:
    return tomllib.loads(
        resources.files(__package__).joinpath("paper.toml").read_text(encoding="utf-8")
    )
