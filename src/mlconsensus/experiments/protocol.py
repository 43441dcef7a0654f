"""The paper's experiment: shuffle, cross-validate, combine, judge; again and again, and the mean of it all."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..datasets import load
from ..datasets.catalogue import entry
from ..engines.progress import track
from ..errors import expect
from ..estimators import COMBINERS
from ..evaluation import metrics
from ..panel import BoolArray, Predictions
from . import paper
from .base_models import Settings, base_predictions


class MeanOfRepeats(NamedTuple):
    """One cell of a table."""

    mean: float
    std: float  # over the repeats, divided by their number
    paper: float | None  # None: not in the paper, or misprinted there
    runs: Sequence[float] = ()  # of each repeat, in order


Table = dict[str, dict[str, MeanOfRepeats]]  # method → metric → figure


class Results(NamedTuple):
    """All tables of a run, and what they were made with."""

    settings: Settings
    instances: dict[str, int]  # how many of each data set were used, the first ones
    tables: dict[str, Table]  # by data set


def reproduce(
    names: Sequence[str], settings: Settings, cache: Path, jobs: int = -1, say: Callable[[str], None] = lambda _: None
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
    >>> from mlconsensus.experiments import Settings, reproduce
    >>> results = reproduce(["medical"], Settings(repeats=1), Path("cache"))  # doctest: +SKIP
    >>> results.tables["medical"]["MV"]["micro_auc"].paper  # doctest: +SKIP
    0.9321
    """
    settings = settings.checked()
    instances = {name: entry(name).instances if settings.full else entry(name).paper for name in names}
    smallest = min(instances, key=lambda name: instances[name])
    most = instances[smallest]
    expect(settings.folds <= most, "folds", settings.folds, f"at most {most}, as {smallest} has instances")
    tables = {}
    for name in names:
        data = load(name).first(instances[name])
        truth, panels = data.labels.toarray(), base_predictions(data, settings, cache, jobs, say)
        combining = track(panels, settings.repeats, f"{name}: combining")
        tables[name] = summarise([judge(truth, panel) for panel in combining], name)
    return Results(settings, instances, tables)


def judge(truth: BoolArray, predictions: BoolArray) -> dict[str, dict[str, float]]:
    """Combine one repeat's base models with every method, and judge each: method → metric → value.

    ``BM`` is the mean of the base models' own metrics.

    Examples
    --------
    >>> truth = np.array([[1, 0], [0, 1]], dtype=bool)
    >>> judge(truth, np.stack([truth, ~truth]))["BM"]["micro_auc"]
    0.5
    """
    panel = Predictions(predictions)
    judged = {"BM": metrics.evaluate_models(truth, panel)["BM"]}
    for name, kind in COMBINERS.items():
        judged[name] = metrics.evaluate(truth, kind().fit_transform(panel))
    return {name: {metric: row[metric] for metric in metrics.RANKING_METRICS} for name, row in judged.items()}


def summarise(judged: Sequence[dict[str, dict[str, float]]], name: str) -> Table:
    """Take mean and standard deviation over the repeats, and put the paper's figure beside them.

    Examples
    --------
    >>> runs = [{"MV": dict.fromkeys(metrics.RANKING_METRICS, value)} for value in (0.5, 0.7)]
    >>> summarise(runs, "medical")["MV"]["micro_auc"].paper
    0.9321
    """
    printed = paper.tables()[name]

    def figure(method: str, metric: str) -> MeanOfRepeats:
        runs = [run[method][metric] for run in judged]
        return MeanOfRepeats(float(np.mean(runs)), float(np.std(runs)), printed.figure(method, metric), runs)

    return {method: {metric: figure(method, metric) for metric in metrics.RANKING_METRICS} for method in judged[0]}
