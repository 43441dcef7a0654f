"""The tables that the paper prints, and its claims about them."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import NotRequired, TypedDict, cast

from ..metrics.ranking import RANKING_METRICS


@dataclass(frozen=True, kw_only=True)
class Printed:
    """One of the paper's tables."""

    cells: dict[str, dict[str, float]]  # method → metric → value
    misprinted: frozenset[str]  # metrics whose column repeats another one

    def get_value(self, method: str, metric: str) -> float | None:
        """Return the value to compare with; None if there is none or a misprint.

        Examples
        --------
        >>> tables()["enron"].get_value("MV", "ranking_loss")
        0.1848
        >>> tables()["rcv1subset2"].get_value("MV", "ranking_loss") is None
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
    share: float = 1.0  # of the comparisons in which the first method is better
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
    for name, table in _read_content()["tables"].items():
        cells = {}
        for method, row in table.items():
            if method != "misprinted":
                cells[method] = dict(zip(RANKING_METRICS, row, strict=True))

        misprinted = frozenset(map(str, table.get("misprinted", ())))
        printed[name] = Printed(cells=cells, misprinted=misprinted)

    return printed


def claims() -> list[Claim]:
    """Return the paper's claims, in its order.

    Examples
    --------
    >>> claims()[1].gain
    0.41
    """
    return [Claim(**claim) for claim in _read_content()["claims"]]


class _ClaimEntry(TypedDict):
    """A claim as paper.toml has it."""

    text: str
    metrics: list[str]
    pairs: list[tuple[str, str]]
    share: NotRequired[float]
    gain: NotRequired[float]


class _PaperContent(TypedDict):
    """The content of paper.toml."""

    tables: dict[str, dict[str, list[float]]]
    claims: list[_ClaimEntry]


@cache
def _read_content() -> _PaperContent:
    """Read paper.toml."""
    file = resources.files(__package__).joinpath("paper.toml")
    content = tomllib.loads(file.read_text(encoding="utf-8"))
    return cast(_PaperContent, content)
