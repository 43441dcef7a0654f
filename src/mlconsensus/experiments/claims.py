"""The paper's claims, one by one, held against figures."""

from itertools import product
from typing import Literal, NamedTuple

from ..evaluation.metrics import LOWER_IS_BETTER
from .paper import Claim, claims
from .protocol import Results, Table

Verdict = Literal["holds", "holds in part", "does not"]


class JudgedClaim(NamedTuple):
    """What became of a claim."""

    claim: str
    verdict: Verdict
    ours: str  # the evidence
    paper: str  # the same, from the paper's own tables


def judge_claims(results: Results) -> list[JudgedClaim]:
    """Judge each of the paper's claims by the means of a run.

    A claim on how often one method is ahead holds if that is so in at least the share of cells that the paper names,
    and in part if in at least half of them. One on the largest gain holds if ours is at least as large as the largest
    in the paper's own tables of the same data sets, or as the paper says, and in part if at least half of that.

    Examples
    --------
    >>> from mlconsensus.experiments.protocol import MeanOfRepeats
    >>> from mlconsensus.evaluation.metrics import RANKING_METRICS
    >>> from mlconsensus.experiments import Settings
    >>> good, bad = MeanOfRepeats(0.9, 0, None), MeanOfRepeats(0.8, 0, None)
    >>> rows = {"BM": bad, "MV": good, "MLCM-r": good, "MLCM-a": good}
    >>> table = {method: dict.fromkeys(RANKING_METRICS, figure) for method, figure in rows.items()}
    >>> judge_claims(Results(Settings(), {"enron": 1702}, {"enron": table}))[0][1:]
    ('holds in part', 'ahead in 2 of 4 cells; not in enron: one error, ranking loss', 'no figures')
    """
    judged = []
    for claim in claims():
        ours, papers = (_cells(results.tables, claim, which) for which in ("mean", "paper"))
        evidence = _ahead if claim.gain is None else _largest_gain
        seen = [evidence(claim, cells) if cells else "no figures" for cells in (ours, papers)]
        judged.append(JudgedClaim(claim.text, _verdict(claim, ours, papers), *seen))
    return judged


class _Cell(NamedTuple):
    dataset: str
    metric: str
    method: str  # that should be ahead
    difference: float  # by how much it is better than the other
    behind: float  # the other's figure

    @property
    def gain(self) -> float:
        return self.difference / self.behind


def _cells(tables: dict[str, Table], claim: Claim, which: str) -> list[_Cell]:
    """Find the cells that a claim is about, with our figures or the paper's."""
    found = []
    for name, metric, (first, second) in product(tables, claim.metrics, claim.pairs):
        ahead, behind = (getattr(tables[name][method][metric], which) for method in (first, second))
        if ahead is not None and behind is not None:
            difference = behind - ahead if metric in LOWER_IS_BETTER else ahead - behind
            found.append(_Cell(name, metric, first, difference, behind))
    return found


def _verdict(claim: Claim, ours: list[_Cell], papers: list[_Cell]) -> Verdict:
    if claim.gain is None:
        reached, wanted, half = sum(cell.difference > 0 for cell in ours) / len(ours), claim.share, 0.5
    else:
        reached = max(cell.gain for cell in ours)
        wanted = min([claim.gain, max((cell.gain for cell in papers), default=claim.gain)])
        half = wanted / 2
    return "holds" if reached >= wanted - 1e-12 else "holds in part" if reached >= half else "does not"


def _ahead(claim: Claim, cells: list[_Cell]) -> str:
    lost: dict[str, list[str]] = {}
    for cell in cells:
        if cell.difference <= 0:
            detail = [cell.method] * (len(claim.pairs) > 1) + [cell.metric.replace("_", " ")] * (len(claim.metrics) > 1)
            lost.setdefault(cell.dataset, []).append(" ".join(detail))
    n_won = len(cells) - sum(map(len, lost.values()))
    where = [f"{name}: {', '.join(details)}" if details[0] else name for name, details in lost.items()]
    return f"ahead in {n_won} of {len(cells)} cells" + (f"; not in {'; '.join(where)}" if lost else "")


def _largest_gain(claim: Claim, cells: list[_Cell]) -> str:
    best = max(cells, key=lambda cell: cell.gain)
    return f"{best.gain:.1%} ({best.dataset}{f', {best.method}' if len(claim.pairs) > 1 else ''})"
