"""The main points of a summary, one sentence each, for the top of every rendering."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..evaluation.metrics import is_better
from ..terminal import plural, shown
from .judged import Judgement
from .models import ModelsSummary
from .summary import Summary

_MOST_WARNINGS = 12
_CLEARLY = 0.02  # by how much a model's label sets are better than the consensus's
_HARDLY = 0.1  # agreement below which models have hardly anything in common


def findings(summary: Summary) -> list[str]:
    """Say what a reader should know first.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> from mlconsensus.report import summarise
    >>> panel, _ = mlc.datasets.make_panel(n_instances=100, random_state=0)
    >>> findings(summarise(mlc.combine(panel, method="mv")))[2]
    'The consensus gives every instance the labels that voting gives it. ...'
    """
    m, said = len(summary.models.rows), summary.models.voices
    voices = [f"{said}."] if m > 1 and (said.low > 1 or said.high < m) else []  # else it says nothing
    first = [*filter(None, [summary.note]), _agreement(summary), *voices, *warnings(summary.models)]
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
    >>> from mlconsensus.report import summarise
    >>> panel, _ = mlc.datasets.make_panel(n_instances=100, random_state=0)
    >>> actions(summarise(mlc.combine(panel)))[-1].sentence
    'Ask a person about 25 instances before you rely on it, first about ...'
    """
    models, asking, judged = summary.models, summary.asking, summary.judged
    found = []
    if models.mean_agreement is not None and models.mean_agreement < _HARDLY:
        found.append(Action("Do not combine these models before you know why they hardly agree.", "models"))
    if models.suspects:
        names = list(dict.fromkeys(name for suspect in models.suspects for name in suspect.raters))
        more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
        against = f"the evidence is against {'them' if len(names) > 1 else 'it'}."
        found.append(Action(f"Look at {', '.join(map(shown, names[:3]))}{more}: {against}", "models"))
    if judged is not None:
        gain = judged.ahead
        trust = "Use voting: the consensus is behind it" if gain.high < 0 else "Trust it: it is not behind voting"
        ends = f"{figure(gain.low, 3)} to {figure(gain.high, 3)}"
        return [*found, Action(f"{trust} (average precision: {figure(gain.value, 3)} ahead, {ends}).", "truth")]
    if not asking.instances:
        return [*found, Action("Trust it: every instance has an answer.", "changes")]
    first = ", ".join(map(shown, asking.instances[:3]))
    ask = f"Ask a person about {plural(asking.budget, 'instance')} before you rely on it, first about {first}"
    return [*found, Action(f"{ask}: mlconsensus ask writes the table to fill in.", "changes")]


def warnings(models: ModelsSummary) -> list[str]:
    """Say which models should be looked at."""
    found = [f"{suspect.sentence}." for suspect in models.suspects]
    more = len(found) - _MOST_WARNINGS
    return [*found[:_MOST_WARNINGS], f"The report as JSON has {plural(more, 'more warning')}."] if more > 0 else found


def changed(summary: Summary) -> str:
    """Say how far the label sets of the consensus depart from those of voting."""
    found = summary.changes
    tied = f" Voting could not decide on the labels of {_of(found.n_tied, found.n_instances)}." if found.n_tied else ""
    if not found.n_changed:
        return f"The consensus gives every instance the labels that voting gives it.{tied}"
    which, labels = _of(found.n_changed, found.n_instances), f"{found.n_added:,} added, {found.n_dropped:,} dropped"
    return f"The consensus gives other labels than voting to {which}: {labels}.{tied}"


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
    return text.removeprefix("-") if float(text) == 0 else text.replace("-", "−")


def _of(count: int, total: int) -> str:
    return f"{count:,} of {plural(total, 'instance')} ({count / total:.1%})"


def _agreement(summary: Summary) -> str:
    mean = summary.models.mean_agreement
    met = [row for row in summary.models.rows if row.agreement is not None]
    if not met:
        who = "There is one model alone" if mean is None else "No two models speak about the same instance"
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
    return "Most disputed: " + ", ".join(f"{shown(row.name)} ({row.dispute:.0%})" for row in rows if row.dispute) + "."


def _quality(summary: Summary) -> list[str]:
    if summary.judged is None:
        return []
    # With one label there is no order of labels to lose.
    metric, title = ("ranking_loss", "ranking loss") if summary.panel.n_labels > 1 else ("micro_auc", "microAUC")
    results = {row.name: row.metrics[metric] for row in summary.judged.results if row.kind != "model"}
    own, voting, models = results[summary.judged.results[0].name], results["MV"], results["BM"]
    if own != own:
        return ["All cells of the truth are alike, so that no ranking can be judged."]
    verdict = "the same as" if own == voting else "better than" if is_better(metric, own, voting) else "worse than"
    sentence = f"Against the truth, the {title} is {own:.4f}, {verdict} that of voting ({voting:.4f})"
    return [f"{sentence}; the models' mean is {models:.4f}.", *_label_sets(summary.judged.results)]


def _label_sets(results: Sequence[Judgement]) -> list[str]:
    """Say that a model alone has the better label sets, as is so where scores add up to too many labels."""
    own, best = results[0], max(results, key=lambda row: (row.kind == "model") * np.nan_to_num(row.metrics["micro_f1"]))
    if best.kind != "model" or best.metrics["micro_f1"] < own.metrics["micro_f1"] + _CLEARLY:
        return []
    figures = f"micro F1 {own.metrics['micro_f1']:.3f}, {shown(best.name)} alone {best.metrics['micro_f1']:.3f}"
    return [f"Its label sets are behind those of a model ({figures}): try --decide f1, or decide with known answers."]
