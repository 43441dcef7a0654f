"""The paper's claims, one by one, held against figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from ..evaluation.metrics import LOWER_IS_BETTER, RANKING_METRICS, is_better
from . import paper
from .protocol import Results

Verdict = Literal["holds", "holds in part", "does not"]
Means = Mapping[str, Mapping[str, Mapping[str, float]]]  # data set → method → metric → mean
Cell = tuple[str, str, str, str]  # data set, metric, the method that should be ahead, the one behind

PROPOSED = ("MLCM-r", "MLCM-a")


class Judged(NamedTuple):
    """What became of a claim."""

    claim: str
    verdict: Verdict
    ours: str  # the evidence
    paper: str  # the same, from the paper's own tables


def judge_claims(results: Results) -> list[Judged]:
    """Judge each of the paper's claims by the means of a run.

    A claim on how often one method is ahead holds if that is so in at least the share of cells that the paper names,
    and in part if in at least half of them. One on the largest gain holds if ours is at least as large as the largest
    in the paper's own tables of the same data sets, or as the paper says, and in part if at least half of that.

    Examples
    --------
    >>> from mlconsensus.experiments.protocol import Figure
    >>> from mlconsensus.experiments import Settings
    >>> good, bad = Figure(0.9, 0, None), Figure(0.8, 0, None)
    >>> rows = {"BM": bad, "MV": good, "MLCM-r": good, "MLCM-a": good}
    >>> table = {method: dict.fromkeys(RANKING_METRICS, figure) for method, figure in rows.items()}
    >>> judge_claims(Results(Settings(), {"enron": 1702}, {"enron": table}))[0][1:]
    ('holds in part', 'ahead in 2 of 4 cells; not in enron: one error, ranking loss', 'ahead in 4 of 4 cells')
    """
    ours = {
        name: {method: {metric: figure.mean for metric, figure in row.items()} for method, row in table.items()}
        for name, table in results.tables.items()
    }
    printed = _printed(ours)
    return [
        Judged(claim.text, claim.verdict(ours), claim.evidence(ours), claim.evidence(printed)) for claim in _claims()
    ]


class _Claim(NamedTuple):
    text: str
    verdict: Callable[[Means], Verdict]
    evidence: Callable[[Means], str]


def _claims() -> list[_Claim]:
    return [
        _ahead("MV is ahead of BM", 1.0, RANKING_METRICS, [("MV", "BM")]),
        _gain("MV gains over BM in ranking loss, at most", 0.41, "ranking_loss", [("MV", "BM")]),
        _gain("MV gains over BM in microAUC, at most", 0.128, "micro_auc", [("MV", "BM")]),
        _ahead("MLCM-r is ahead of MV in ranking loss", 1.0, ["ranking_loss"], [("MLCM-r", "MV")]),
        _ahead("MLCM-r is ahead of MV in microAUC", 1.0, ["micro_auc"], [("MLCM-r", "MV")]),
        _ahead("MLCM-a is ahead of MV in ranking loss", 1.0, ["ranking_loss"], [("MLCM-a", "MV")]),
        _ahead("MLCM-a is ahead of MV in microAUC", 1.0, ["micro_auc"], [("MLCM-a", "MV")]),
        _gain("the algorithms gain over MV in ranking loss, at most", 0.45, "ranking_loss", _over("MV")),
        _gain("the algorithms gain over MV in microAUC, at most", 0.20, "micro_auc", _over("MV")),
        _ahead("MLCM-r is ahead of MLCM-a in ranking loss, 5 of 6 times", 5 / 6, ["ranking_loss"], [PROPOSED]),
        _gain("MLCM-r gains over MLCM-a in ranking loss, at most", 0.12, "ranking_loss", [PROPOSED]),
        _ahead("MLCM-a is ahead of MLCM-r in microAUC, 4 of 6 times", 4 / 6, ["micro_auc"], [PROPOSED[::-1]]),
        _gain("MLCM-a gains over MLCM-r in microAUC, at most", 0.058, "micro_auc", [PROPOSED[::-1]]),
        _ahead("the algorithms are ahead of MV in one error", 1.0, ["one_error"], _over("MV")),
        _ahead("the algorithms are ahead of MV in average precision", 1.0, ["average_precision"], _over("MV")),
    ]


def _over(method: str) -> list[tuple[str, str]]:
    return [(proposed, method) for proposed in PROPOSED]


def _ahead(text: str, share: float, metrics: tuple[str, ...] | list[str], pairs: list[tuple[str, str]]) -> _Claim:
    """Claim that in each pair the first method is ahead of the second, in this share of cells."""

    def verdict(means: Means) -> Verdict:
        cells = _cells(means, metrics, pairs)
        won = sum(_wins(means, cell) for cell in cells)
        if won >= round(share * len(cells), 9):
            return "holds"
        return "holds in part" if 2 * won >= len(cells) else "does not"

    def evidence(means: Means) -> str:
        cells = _cells(means, metrics, pairs)
        lost = [cell for cell in cells if not _wins(means, cell)]
        ahead = f"ahead in {len(cells) - len(lost)} of {len(cells)} cells"
        return f"{ahead}; not in {_listed(lost, metrics, pairs)}" if lost else ahead

    return _Claim(text, verdict, evidence)


def _gain(text: str, claimed: float, metric: str, pairs: list[tuple[str, str]]) -> _Claim:
    """Claim how large the largest gain of the first method of a pair over the second is, relative to the second."""

    def largest(means: Means) -> tuple[float, Cell] | None:
        gains = [(_relative(means, cell), cell) for cell in _cells(means, [metric], pairs)]
        return max(gains) if gains else None

    def verdict(means: Means) -> Verdict:
        ours, printed = largest(means), largest(_printed(means))
        gain = ours[0] if ours else 0.0
        wanted = min(claimed, printed[0]) if printed else claimed
        return "holds" if gain >= wanted else "holds in part" if gain >= wanted / 2 else "does not"

    def evidence(means: Means) -> str:
        found = largest(means)
        if found is None:
            return "no figures"
        gain, (name, _, method, _) = found
        return f"{gain:.1%} ({name}{f', {method}' if len(pairs) > 1 else ''})"

    return _Claim(f"{text} {claimed:.1%}".replace(".0%", "%"), verdict, evidence)


def _cells(means: Means, metrics: tuple[str, ...] | list[str], pairs: list[tuple[str, str]]) -> list[Cell]:
    return [
        (name, metric, first, second)
        for name in means
        for metric in metrics
        for first, second in pairs
        if metric in means[name][first]
    ]


def _wins(means: Means, cell: Cell) -> bool:
    name, metric, first, second = cell
    return is_better(metric, means[name][first][metric], means[name][second][metric])


def _relative(means: Means, cell: Cell) -> float:
    name, metric, first, second = cell
    ahead, behind = means[name][first][metric], means[name][second][metric]
    return (behind - ahead if metric in LOWER_IS_BETTER else ahead - behind) / behind


def _listed(cells: list[Cell], metrics: tuple[str, ...] | list[str], pairs: list[tuple[str, str]]) -> str:
    by_name: dict[str, list[str]] = {}
    for name, metric, method, _ in cells:
        detail = [method] * (len(pairs) > 1) + [metric.replace("_", " ")] * (len(metrics) > 1)
        by_name.setdefault(name, []).append(" ".join(detail))
    return "; ".join(f"{name}: {', '.join(details)}" if details[0] else name for name, details in by_name.items())


def _printed(means: Means) -> Means:
    """Return the paper's figures for the same data sets, without the misprinted ones."""
    return {
        name: {
            method: {metric: value for metric, value in row.items() if metric not in table.misprinted}
            for method, row in table.cells.items()
        }
        for name, table in paper.tables().items()
        if name in means
    }
