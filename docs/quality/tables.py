"""The tables of docs/quality.md, from the results in docs/reproduction and the peers' in peers.json.

python docs/quality/tables.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import stats

from mlconsensus.evaluation.metrics import LOWER_IS_BETTER, RANKING_METRICS
from mlconsensus.tables import TITLES

HERE = Path(__file__).parent
RESULTS = HERE.parent / "reproduction"
KINDS = {
    "svm": ("linear SVMs", ["results"]),
    "trees": ("decision trees", ["trees", "trees-rcv1"]),
    "mixed": ("different learners, two of them at random", ["mixed", "mixed-rcv1"]),
    "views": ("models on disjoint groups of features", ["views", "views-rcv1"]),
}
OURS = "Filter"
PEERS = {"crowdlab": "CROWDLAB", "snorkel": "snorkel"}


class Cell(NamedTuple):
    """One data set and metric: each method's value in every repeat, higher = better."""

    dataset: str
    metric: str
    runs: dict[str, np.ndarray]  # of the methods that are compared

    def means(self) -> dict[str, float]:
        """Return each method's mean over the repeats."""
        return {method: float(runs.mean()) for method, runs in self.runs.items()}

    def rival(self) -> str:
        """Return the best of the others."""
        return max((method for method in self.runs if method != OURS), key=lambda method: self.means()[method])

    def difference(self, other: str) -> tuple[float, float | None]:
        """Return by how much ours is better than another, and the p-value of the paired t-test over repeats."""
        apart = self.runs[OURS] - self.runs[other]
        p = float(stats.ttest_1samp(apart, 0.0).pvalue) if len(apart) > 1 and apart.std() > 0 else None
        return float(apart.mean()), p


def cells(kind: str) -> list[Cell]:
    """Read all cells of one kind of panels; BM is the mean of single models and is not compared."""
    found = []
    for file in KINDS[kind][1]:
        tables = json.loads((RESULTS / f"{file}.json").read_text())
        for name, table in tables.items():
            if name in ("settings", "claims"):
                continue
            for metric in RANKING_METRICS:
                sign = -1 if metric in LOWER_IS_BETTER else 1
                runs = {method: sign * np.array(row[metric]["runs"]) for method, row in table.items() if method != "BM"}
                found.append(Cell(name, metric, runs))
    return found


def summary() -> str:
    """Count where ours is first, and where it is behind voting."""
    heads = ["base models", "cells", "first", "first, or not significantly behind the first", "behind MV"]
    rows = []
    for kind, (about, _) in KINDS.items():
        own = cells(kind)
        against = [cell.difference(cell.rival()) for cell in own]
        first = sum(apart >= 0 for apart, _ in against)
        level = sum(apart >= 0 or (p is not None and p >= 0.05) for apart, p in against)
        behind = sum(cell.difference("MV")[0] < 0 for cell in own)
        rows.append([f"{about} (`{kind}`)", str(len(own)), str(first), str(level), str(behind)])
    return piped(heads, rows)


def not_first() -> str:
    """List the cells in which another method is ahead of ours."""
    heads = ["panels", "data set", "metric", "first", "its figure", OURS, "MV", "p, to the first", "p, to MV"]
    rows = []
    for kind in KINDS:
        for cell in cells(kind):
            rival = cell.rival()
            apart, p = cell.difference(rival)
            to_vote, p_vote = cell.difference("MV")
            if apart >= 0 and to_vote >= 0:
                continue
            figures = [f"{abs(cell.means()[method]):.4f}" for method in (rival, OURS, "MV")]
            rows.append([kind, cell.dataset, TITLES[cell.metric], rival, *figures, shown(p), shown(p_vote)])
    return piped(heads, rows)


def peers_ahead() -> str:
    """List the cells in which another library is ahead of ours, over the repeats that it was judged on."""
    heads = ["panels", "data set", "metric", "library", "its figure", OURS, "p"]
    rows = []
    for kind in KINDS:
        for cell in cells(kind):
            for peer, title in PEERS.items():
                runs = peer_runs(kind, cell, peer)
                same = Cell(cell.dataset, cell.metric, {OURS: cell.runs[OURS][: len(runs)], peer: runs})
                apart, p = same.difference(peer)
                if apart < 0:
                    figures = [f"{abs(same.means()[method]):.4f}" for method in (peer, OURS)]
                    rows.append([kind, cell.dataset, TITLES[cell.metric], title, *figures, shown(p)])
    return piped(heads, rows)


def peer_runs(kind: str, cell: Cell, peer: str) -> np.ndarray:
    """Read another library's value in every repeat that it was judged on, higher = better."""
    found = json.loads((HERE / "peers.json").read_text())[kind][cell.dataset][peer]
    sign = -1 if cell.metric in LOWER_IS_BETTER else 1
    return sign * np.array([judged[cell.metric] for judged in found])


def all_cells(kind: str) -> str:
    """Show every method's mean and standard deviation, the first one of ours starred, and the other libraries'."""
    own = cells(kind)
    methods = list(own[0].runs)
    heads = ["data set", "metric", *methods, *(f"{title}¹" for title in PEERS.values())]
    rows = []
    for cell in own:
        means = cell.means()
        best = max(means.values())
        figures = [spread(runs, means[method] == best) for method, runs in cell.runs.items()]
        others = [spread(peer_runs(kind, cell, peer)) for peer in PEERS]
        arrow = "↓" if cell.metric in LOWER_IS_BETTER else "↑"
        rows.append([cell.dataset, f"{TITLES[cell.metric]} {arrow}", *figures, *others])
    return piped(heads, rows)


def spread(runs: np.ndarray, best: bool = False) -> str:
    """Write mean and standard deviation."""
    apart = f" ± {runs.std():.4f}" if len(runs) > 1 else ""
    return f"{abs(runs.mean()):.4f}{chr(92) + '*' if best else ''}{apart}"


def shown(p: float | None) -> str:
    """Write a p-value, or that there is none."""
    if p is None:
        return "one repeat"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def piped(heads: list[str], rows: list[list[str]]) -> str:
    """Lay out a Markdown table."""
    return "\n".join(f"| {' | '.join(line)} |" for line in [heads, ["---"] * len(heads), *rows])


def tables() -> dict[str, str]:
    """Return all tables by the name that marks their place in docs/quality.md."""
    listed = {"summary": summary(), "not first": not_first(), "peers ahead": peers_ahead()}
    return listed | {kind: all_cells(kind) for kind in KINDS}


if __name__ == "__main__":
    page = HERE.parent / "quality.md"
    text = page.read_text()
    for name, table in tables().items():
        begin, end = f"<!-- {name} -->", f"<!-- end {name} -->"
        before, after = text[: text.index(begin)], text[text.index(end) :]
        text = f"{before}{begin}\n{table}\n{after}"
    page.write_text(text)
