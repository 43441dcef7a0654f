"""The paper's experiment, and a check of its claims by the results.

Each repeat shuffles the instances, cross-validates the base models, combines their
predictions, and evaluates the methods.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from ..datasets import load
from ..datasets.registry import entry
from ..errors import InputError
from ..execution.progress import track
from ..metrics import ranking
from ..model_selection.comparison import evaluate_methods
from ..predictions import Predictions
from . import paper
from .base_models import Settings, base_predictions


@dataclass(frozen=True, kw_only=True)
class MeanOfRepeats:
    """One cell of a table."""

    mean: float
    std: float  # over the repeats, divided by their number
    paper: float | None  # None: not in the paper, or misprinted there
    runs: Sequence[float] = ()  # of each repeat, in order


Table = dict[str, dict[str, MeanOfRepeats]]  # method → metric → figure
Verdict = Literal["holds", "holds in part", "does not"]


class Results(NamedTuple):
    """All tables of a run, and what they were made with."""

    settings: Settings
    instances: dict[str, int]  # how many of each data set were used, the first ones
    tables: dict[str, Table]  # by data set


def reproduce(
    names: Sequence[str],
    settings: Settings,
    cache: Path,
    jobs: int = -1,
    say: Callable[[str], None] = lambda _: None,
) -> Results:
    """Run the protocol on data sets of the registry.

    Parameters
    ----------
    names
        The data sets.
    settings
        The protocol's numbers.
    cache
        A folder for base predictions; what is there from an earlier run is used again.
    jobs
        How many processes; -1: one a core.
    say
        Is told what is worth knowing on the way.

    Examples
    --------
    >>> from mlconsensus.reproduction import Settings, reproduce
    >>> settings = Settings(repeats=1)
    >>> results = reproduce(["medical"], settings, Path("cache"))  # doctest: +SKIP
    >>> results.tables["medical"]["MV"]["micro_auc"].paper  # doctest: +SKIP
    0.9321
    """
    settings = settings.checked()
    instances = {
        name: entry(name).instances if settings.full else entry(name).paper
        for name in names
    }
    smallest = min(instances, key=lambda name: instances[name])
    most = instances[smallest]
    if not (settings.folds <= most):
        raise InputError(
            where="folds",
            found=settings.folds,
            expected=f"at most {most}, as {smallest} has instances",
        )

    tables = {}
    for name in names:
        data = load(name).first(instances[name])
        truth = data.labels.toarray()
        panels = base_predictions(data, settings, cache, jobs, say)
        combining = track(panels, settings.repeats, f"{name}: combining")
        tables[name] = summarize(
            [evaluate_methods(truth, Predictions(panel)) for panel in combining], name
        )

    return Results(settings, instances, tables)


def summarize(judged: Sequence[dict[str, dict[str, float]]], name: str) -> Table:
    """Compute mean and standard deviation over the repeats, next to the paper's value.

    Examples
    --------
    >>> run = {"MV": dict.fromkeys(ranking.RANKING_METRICS, 0.5)}
    >>> summarize([run, run], "medical")["MV"]["micro_auc"].paper
    0.9321
    """
    printed = paper.tables()[name]

    def figure(method: str, metric: str) -> MeanOfRepeats:
        runs = [run[method][metric] for run in judged]
        return MeanOfRepeats(
            mean=float(np.mean(runs)),
            std=float(np.std(runs)),
            paper=printed.get_value(method, metric),
            runs=runs,
        )

    return {
        method: {metric: figure(method, metric) for metric in ranking.RANKING_METRICS}
        for method in judged[0]
    }


@dataclass(frozen=True, kw_only=True)
class JudgedClaim:
    """What became of a claim."""

    claim: str
    verdict: Verdict
    ours: str  # the evidence
    paper: str  # the same, from the paper's own tables


def judge_claims(results: Results) -> list[JudgedClaim]:
    """Judge each of the paper's claims by the means of a run.

    A claim on how often one method is ahead holds if that is so in at least the share
    of cells that the paper names, and in part if in at least half of them. One on the
    largest gain holds if ours is at least as large as the largest in the paper's own
    tables of the same data sets, or as the paper says, and in part if at least half of
    that.

    Examples
    --------
    >>> from mlconsensus.metrics.ranking import RANKING_METRICS
    >>> from mlconsensus.reproduction import Settings
    >>> good = MeanOfRepeats(mean=0.9, std=0, paper=None)
    >>> bad = MeanOfRepeats(mean=0.8, std=0, paper=None)
    >>> rows = {"BM": bad, "MV": good, "MLCM-r": good, "MLCM-a": good}
    >>> table = {}
    >>> for method, figure in rows.items():
    ...     table[method] = dict.fromkeys(RANKING_METRICS, figure)
    >>> results = Results(Settings(), {"enron": 1702}, {"enron": table})
    >>> judge_claims(results)[0].ours
    'ahead in 2 of 4 cells; not in enron: one error, ranking loss'
    """
    judged = []
    for claim in paper.claims():
        ours, papers = (
            _cells(results.tables, claim, which) for which in ("mean", "paper")
        )
        if claim.gain is None:
            evidence = _ahead
        else:
            evidence = _largest_gain

        judged.append(
            JudgedClaim(
                claim=claim.text,
                verdict=_verdict(claim, ours, papers),
                ours=evidence(claim, ours) if ours else "no figures",
                paper=evidence(claim, papers) if papers else "no figures",
            )
        )

    return judged


@dataclass(frozen=True, kw_only=True)
class _Cell:
    dataset: str
    metric: str
    method: str  # that should be ahead
    difference: float  # by how much it is better than the other
    behind: float  # the other's figure

    @property
    def gain(self) -> float:
        return self.difference / self.behind


def _cells(tables: dict[str, Table], claim: paper.Claim, which: str) -> list[_Cell]:
    """Find the cells that a claim is about, with our figures or the paper's."""
    cells = []
    for name, metric, (first, second) in product(tables, claim.metrics, claim.pairs):
        ahead, behind = (
            getattr(tables[name][method][metric], which) for method in (first, second)
        )
        if ahead is not None and behind is not None:
            if metric in ranking.LOWER_IS_BETTER:
                difference = behind - ahead
            else:
                difference = ahead - behind

            cells.append(
                _Cell(
                    dataset=name,
                    metric=metric,
                    method=first,
                    difference=difference,
                    behind=behind,
                )
            )

    return cells


def _verdict(claim: paper.Claim, ours: list[_Cell], papers: list[_Cell]) -> Verdict:
    if claim.gain is None:
        reached = sum(cell.difference > 0 for cell in ours) / len(ours)
        wanted = claim.share
        half = 0.5
    else:
        reached = max(cell.gain for cell in ours)
        wanted = min(
            [claim.gain, max((cell.gain for cell in papers), default=claim.gain)]
        )
        half = wanted / 2

    if reached >= wanted - 1e-12:
        return "holds"
    if reached >= half:
        return "holds in part"
    return "does not"


def _ahead(claim: paper.Claim, cells: list[_Cell]) -> str:
    lost: dict[str, list[str]] = {}
    for cell in cells:
        if cell.difference <= 0:
            detail = [cell.method] * (len(claim.pairs) > 1) + [
                cell.metric.replace("_", " ")
            ] * (len(claim.metrics) > 1)
            lost.setdefault(cell.dataset, []).append(" ".join(detail))

    n_won = len(cells) - sum(map(len, lost.values()))
    where = [
        f"{name}: {', '.join(details)}" if details[0] else name
        for name, details in lost.items()
    ]
    return f"ahead in {n_won} of {len(cells)} cells" + (
        f"; not in {'; '.join(where)}" if lost else ""
    )


def _largest_gain(claim: paper.Claim, cells: list[_Cell]) -> str:
    best = max(cells, key=lambda cell: cell.gain)
    description = best.dataset
    if len(claim.pairs) > 1:
        description += f", {best.method}"

    return f"{best.gain:.1%} ({description})"
