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
    """Value of a metric of one method on one data set."""

    mean: float
    std: float  # over the repeats, divided by their number
    paper: float | None  # None if it is not in the paper, or misprinted there
    runs: Sequence[float] = ()  # of each repeat, in order


Table = dict[str, dict[str, MeanOfRepeats]]  # method → metric → value
ClaimResult = Literal["holds", "holds in part", "does not"]


class Results(NamedTuple):
    """All tables of a run, and its settings."""

    settings: Settings
    instances: dict[
        str, int
    ]  # number of instances used of each data set, from the first
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
    names : sequence of str
        The data sets.
    settings : Settings
        Numbers of repeats, models and folds, and the learner.
    cache : Path
        A folder for base predictions; those of an earlier run are used again.
    jobs : int, default=-1
        Number of processes; -1 for one per core.
    say : callable, default=no output
        Called with messages about damaged files in the cache.

    Returns
    -------
    Results

    Examples
    --------
    >>> from mlconsensus.reproduction import Settings, reproduce
    >>> settings = Settings(repeats=1)
    >>> results = reproduce(["medical"], settings, Path("cache"))  # doctest: +SKIP
    >>> results.tables["medical"]["MV"]["micro_auc"].paper  # doctest: +SKIP
    0.9321
    """
    settings = settings.checked()
    instances = {}
    for name in names:
        instances[name] = entry(name).instances if settings.full else entry(name).paper

    smallest = min(instances, key=lambda name: instances[name])
    most = instances[smallest]
    if settings.folds > most:
        raise InputError(
            where="folds",
            found=settings.folds,
            expected=f"at most {most}, the number of instances of {smallest}",
        )

    tables = {}
    for name in names:
        data = load(name).first(instances[name])
        truth = data.labels.toarray()
        repeats = base_predictions(data, settings, cache, jobs, say)
        combining = track(repeats, settings.repeats, f"{name}: combining")
        runs = []
        for base in combining:
            runs.append(evaluate_methods(truth, Predictions(base)))

        tables[name] = summarize(runs, name)

    return Results(settings, instances, tables)


def summarize(runs: Sequence[dict[str, dict[str, float]]], name: str) -> Table:
    """Compute mean and standard deviation over the repeats, next to the paper's value.

    Parameters
    ----------
    runs : sequence of dict
        The metrics of each method, for each repeat.
    name : str
        The data set.

    Returns
    -------
    dict of str to dict of str to MeanOfRepeats
        By method and metric.

    Examples
    --------
    >>> run = {"MV": dict.fromkeys(ranking.RANKING_METRICS, 0.5)}
    >>> summarize([run, run], "medical")["MV"]["micro_auc"].paper
    0.9321
    """
    printed = paper.tables()[name]

    table: Table = {}
    for method in runs[0]:
        table[method] = {}
        for metric in ranking.RANKING_METRICS:
            values = [run[method][metric] for run in runs]
            table[method][metric] = MeanOfRepeats(
                mean=float(np.mean(values)),
                std=float(np.std(values)),
                paper=printed.get_value(method, metric),
                runs=values,
            )

    return table


@dataclass(frozen=True, kw_only=True)
class JudgedClaim:
    """Whether a claim of the paper holds."""

    claim: str
    result: ClaimResult
    ours: str  # the evidence
    paper: str  # the evidence in the paper's own tables


def judge_claims(results: Results) -> list[JudgedClaim]:
    """Judge each of the paper's claims by the means of a run.

    A claim about how often one method is better holds if this is so in at least the
    share of comparisons that the paper names, and in part if in at least half of them.
    A claim about the largest gain holds if ours is at least as large as the paper
    claims, or as the largest in the paper's own tables of the same data sets; in part
    if it is at least half as large.

    Parameters
    ----------
    results : Results
        The tables of a run.

    Returns
    -------
    list of JudgedClaim
        In the order of the paper.

    Examples
    --------
    >>> from mlconsensus.metrics.ranking import RANKING_METRICS
    >>> from mlconsensus.reproduction import Settings
    >>> good = MeanOfRepeats(mean=0.9, std=0, paper=None)
    >>> bad = MeanOfRepeats(mean=0.8, std=0, paper=None)
    >>> rows = {"BM": bad, "MV": good, "MLCM-r": good, "MLCM-a": good}
    >>> table = {}
    >>> for method, value in rows.items():
    ...     table[method] = dict.fromkeys(RANKING_METRICS, value)
    >>> results = Results(Settings(), {"enron": 1702}, {"enron": table})
    >>> judge_claims(results)[0].ours
    'better in 2 of 4 comparisons; not in enron: one error, ranking loss'
    """
    judged = []
    for claim in paper.claims():
        ours = _compare_methods(results.tables, claim, is_paper=False)
        papers = _compare_methods(results.tables, claim, is_paper=True)
        judged.append(
            JudgedClaim(
                claim=claim.text,
                result=_judge_claim(claim, ours, papers),
                ours=_describe_evidence(claim, ours),
                paper=_describe_evidence(claim, papers),
            )
        )

    return judged


@dataclass(frozen=True, kw_only=True)
class _Comparison:
    """Two methods on one data set and metric."""

    dataset: str
    metric: str
    method: str  # the method that should be better
    difference: float  # how much better it is
    reference: float  # value of the other method

    @property
    def gain(self) -> float:
        """The difference, relative to the other method."""
        return self.difference / self.reference


def _compare_methods(
    tables: dict[str, Table], claim: paper.Claim, is_paper: bool
) -> list[_Comparison]:
    """Return the comparisons of a claim, with the paper's values or with ours."""
    comparisons = []
    for name, metric, (first, second) in product(tables, claim.metrics, claim.pairs):
        better = tables[name][first][metric]
        reference = tables[name][second][metric]
        better_value = better.paper if is_paper else better.mean
        reference_value = reference.paper if is_paper else reference.mean
        if better_value is None or reference_value is None:
            continue

        if metric in ranking.LOWER_IS_BETTER:
            difference = reference_value - better_value
        else:
            difference = better_value - reference_value

        comparisons.append(
            _Comparison(
                dataset=name,
                metric=metric,
                method=first,
                difference=difference,
                reference=reference_value,
            )
        )

    return comparisons


def _judge_claim(
    claim: paper.Claim, ours: list[_Comparison], papers: list[_Comparison]
) -> ClaimResult:
    """Return whether a claim holds."""
    if claim.gain is None:
        reached = sum(comparison.difference > 0 for comparison in ours) / len(ours)
        required = claim.share
        half = 0.5
    else:
        reached = max(comparison.gain for comparison in ours)
        required = min(claim.gain, _find_largest_gain(papers, claim.gain))
        half = required / 2

    if reached >= required - 1e-12:
        return "holds"
    if reached >= half:
        return "holds in part"
    return "does not"


def _find_largest_gain(comparisons: list[_Comparison], default: float) -> float:
    """Return the largest gain, or the default without comparisons."""
    return max((comparison.gain for comparison in comparisons), default=default)


def _describe_evidence(claim: paper.Claim, comparisons: list[_Comparison]) -> str:
    """Return the evidence for a claim as text."""
    if not comparisons:
        return "no figures"
    if claim.gain is None:
        return _describe_share(claim, comparisons)
    return _describe_largest_gain(claim, comparisons)


def _describe_share(claim: paper.Claim, comparisons: list[_Comparison]) -> str:
    """Return in how many comparisons a method is better, and where it is not."""
    exceptions: dict[str, list[str]] = {}
    n_better = 0
    for comparison in comparisons:
        if comparison.difference > 0:
            n_better += 1
            continue

        words = []
        if len(claim.pairs) > 1:
            words.append(comparison.method)
        if len(claim.metrics) > 1:
            words.append(comparison.metric.replace("_", " "))
        exceptions.setdefault(comparison.dataset, []).append(" ".join(words))

    text = f"better in {n_better} of {len(comparisons)} comparisons"
    places = []
    for name, details in exceptions.items():
        places.append(f"{name}: {', '.join(details)}" if details[0] else name)

    if places:
        text += f"; not in {'; '.join(places)}"
    return text


def _describe_largest_gain(claim: paper.Claim, comparisons: list[_Comparison]) -> str:
    """Return the largest gain and its data set."""
    largest = max(comparisons, key=lambda comparison: comparison.gain)
    place = largest.dataset
    if len(claim.pairs) > 1:
        place += f", {largest.method}"
    return f"{largest.gain:.1%} ({place})"
