"""The main points of a summary, one sentence each, for the top of every rendering."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..text import plural, shown
from .evaluation import JudgedSummary, Judgement
from .models import ModelsSummary
from .summary import Summary

_MOST_WARNINGS = 12
_CLEARLY = 0.02  # by how much a model's label sets are better than the consensus's
_TITLES = {"average_precision": "average precision", "micro_auc": "microAUC"}
_HARDLY = 0.1  # agreement below which models have hardly anything in common


def findings(summary: Summary) -> list[str]:
    """Say what a reader should know first.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> from mlconsensus.report import summarize
    >>> panel, _ = mlc.datasets.make_panel(n_instances=100, random_state=0)
    >>> findings(summarize(mlc.combine(panel, method="mv")))[2]
    'The consensus gives every instance the labels that voting gives it in sets of the same sizes.'
    """
    said = summary.models.voices
    if said.sentence:
        voices = [f"{said}."]
    else:
        voices = []

    first = [
        *filter(None, [summary.note]),
        _agreement(summary),
        *voices,
        *warnings(summary.models),
    ]
    return [*first, changed(summary), _disputed(summary), *_quality(summary)]


class Action(NamedTuple):
    """What to do now, and the section of the report that has the evidence."""

    sentence: str
    section: str


def actions(summary: Summary) -> list[Action]:
    """Say what to do now: trust it, ask people, look at raters, or do not combine.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> from mlconsensus.report import summarize
    >>> panel, _ = mlc.datasets.make_panel(n_instances=100, random_state=0)
    >>> actions(summarize(mlc.combine(panel)))[-1].sentence
    'Ask a person about 25 instances before you rely on it, first about ...'
    """
    models = summary.models
    asking = summary.asking
    judged = summary.judged
    found = []
    known = judged is not None and not np.isnan(judged.chance.value)
    if (
        not known
        and models.mean_agreement is not None
        and models.mean_agreement < _HARDLY
    ):
        found.append(
            Action(
                "Do not combine these models before you know why they hardly agree.",
                "models",
            )
        )
    if models.suspects:
        names = list(
            dict.fromkeys(
                name for suspect in models.suspects for name in suspect.raters
            )
        )
        if len(names) > 3:
            more = f" and {len(names) - 3:,} more"
        else:
            more = ""

        against = f"the evidence is against {'them' if len(names) > 1 else 'it'}."
        found.append(
            Action(
                f"Look at {', '.join(map(shown, names[:3]))}{more}: {against}", "models"
            )
        )

    if judged is not None and known:
        return [*found, Action(_verdict(judged), "truth")]
    if not asking.instances:
        return [*found, Action("Trust it: every instance has an answer.", "changes")]

    first = ", ".join(map(shown, asking.instances[:3]))
    ask = f"Ask a person about {plural(asking.budget, 'instance')} before you rely on it, first about {first}"
    # it takes no more than are shown
    if summary.note:
        writes = ""
    else:
        writes = ": mlconsensus ask writes the table to fill in"

    return [*found, Action(f"{ask}{writes}.", "changes")]


def _verdict(judged: JudgedSummary) -> str:
    """Say whether the truth bears the consensus out: beyond chance, and beside voting and the best model."""
    auc = judged.results[0].metrics["micro_auc"]
    title = _TITLES[judged.metric]
    if not judged.beyond_chance:
        alone = (
            f"each label's mean score alone has {figure(auc - judged.chance.value, 3)}"
        )
        return f"Do not use it: it ranks no better than chance (microAUC {figure(auc, 3)}; {alone}, a coin 0.500)."

    beside = []
    for rival in judged.rivals:
        gain = rival.ahead
        if rival.kind == "model":
            who = f"the best model, {shown(rival.name)}"
        else:
            who = "voting"

        where = f"{figure(abs(gain.value), 3)} {'ahead of' if gain.value >= 0 else 'behind'} {who}"
        beside.append(f"{where} ({figure(gain.low, 3)} to {figure(gain.high, 3)})")

    compared = f"in {title} it is {' and '.join(beside)}"
    worst = min(judged.rivals, key=lambda rival: rival.ahead.value, default=None)
    if worst is not None and worst.ahead.high < 0:
        return f"Use {shown(worst.name) if worst.kind == 'model' else 'voting'} in its place: {compared}."
    return f"Use it: it ranks better than chance (microAUC {figure(auc, 3)}){'; ' + compared if beside else ''}."


def warnings(models: ModelsSummary) -> list[str]:
    """Say which models should be looked at."""
    found = [f"{suspect.sentence}." for suspect in models.suspects]
    more = len(found) - _MOST_WARNINGS
    if more > 0:
        return [
            *found[:_MOST_WARNINGS],
            f"The report as JSON has {plural(more, 'more warning')}.",
        ]

    return found


def changed(summary: Summary) -> str:
    """Say how far the label sets of the consensus depart from those of voting."""
    found = summary.changes
    n = summary.panel.n_instances
    if found.n_tied:
        tied = f" Voting could not decide on the labels of {_of(found.n_tied, n)}."
    else:
        tied = ""

    if not found.n_changed:
        return f"The consensus gives every instance the labels that voting gives it in sets of the same sizes.{tied}"

    which = _of(found.n_changed, n)
    labels = f"{found.n_added:,} added, {found.n_dropped:,} dropped"
    return f"The consensus gives other labels than voting in sets of the same sizes to {which}: {labels}.{tied}"


def figure(value: float | None, digits: int = 2) -> str:
    """Write a number with a true minus sign; a dash where there is none.

    Examples
    --------
    >>> figure(-0.125), figure(-0.001), figure(None)
    ('−0.12', '0.00', '–')
    """
    if value is None or value != value:
        return "–"

    text = f"{value:.{digits}f}"
    if float(text) == 0:
        return text.removeprefix("-")
    return text.replace("-", "−")


def _of(count: int, total: int) -> str:
    return f"{count:,} of {plural(total, 'instance')} ({count / total:.1%})"


def _agreement(summary: Summary) -> str:
    mean = summary.models.mean_agreement
    met = [row for row in summary.models.rows if row.agreement is not None]
    if not met:
        if mean is None:
            who = "There is one model alone"
        else:
            who = "No two models speak about the same instance"

        return f"{who}, and there is nothing to compare."

    best = max(met, key=lambda row: row.agreement or 0.0)
    closest = f"the closest are {shown(best.name)} and {shown(best.nearest)} ({figure(best.agreement)})"
    if (best.agreement or 0.0) < _HARDLY:
        return f"The models hardly agree: their mean correlation is {figure(mean)}; {closest}."
    return f"Models agree with a mean correlation of {figure(mean)}; {closest}."


def _disputed(summary: Summary) -> str:
    rows = sorted(summary.labels.rows, key=lambda row: -row.dispute)[:3]
    if not rows or rows[0].dispute == 0:
        return "The models differ on no label."
    return (
        "Most disputed: "
        + ", ".join(
            f"{shown(row.name)} ({row.dispute:.2f})" for row in rows if row.dispute
        )
        + "."
    )


def _quality(summary: Summary) -> list[str]:
    if summary.judged is None:
        return []

    judged = summary.judged
    if np.isnan(judged.chance.value):
        return ["All cells of the truth are alike, so that no ranking can be judged."]

    method = judged.results[0].name
    metric = judged.metric
    title = _TITLES[judged.metric]
    results = {
        row.name: row.metrics[metric] for row in judged.results if row.kind != "model"
    }
    own = results[method]
    voting = results["MV"]
    if own == voting:
        verdict = "the same as"
    else:
        if own > voting:
            verdict = "better than"
        else:
            verdict = "worse than"

    if method == "MV":
        beside = ""
    else:
        beside = f", {verdict} that of voting ({voting:.4f})"

    sentence = f"Against the truth, the {title} is {own:.4f}{beside}; the models' mean is {results['BM']:.4f}"
    return [
        f"{sentence}, each on what it has spoken about.",
        *(_label_sets(judged.results) if judged.beyond_chance else []),
    ]


def _label_sets(results: Sequence[Judgement]) -> list[str]:
    """Say that a model alone has the better label sets, as is so where scores add up to too many labels."""
    f1 = [
        (row.metrics["micro_f1"], row.consensus["micro_f1"], row.name)
        for row in results
        if row.consensus
    ]
    best, own, name = max(
        f1, key=lambda each: each[0] - each[1], default=(0.0, 0.0, "")
    )
    if best < own + _CLEARLY:
        return []

    figures = f"micro F1 {own:.3f}, {shown(name)} alone {best:.3f}"
    return [
        f"Its label sets are behind those of a model ({figures}): known answers would tell how many to give."
    ]
