"""The main points of a summary, one sentence each, for the top of every rendering."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..text import plural, shown
from .evaluation import JudgedSummary, Judgement
from .models import ModelsSummary
from .summary import Summary

_MAX_WARNINGS = 12
_MIN_F1_GAIN = 0.02  # gain of a model's label sets over those of the consensus
_TITLES = {"average_precision": "average precision", "micro_auc": "microAUC"}
_LOW_AGREEMENT = 0.1  # mean correlation below which models hardly agree


def findings(summary: Summary) -> list[str]:
    """Return what a reader should know first.

    Parameters
    ----------
    summary : Summary
        Summary of a consensus.

    Returns
    -------
    list of str
        Sentences.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> from mlconsensus.report import summarize
    >>> panel, _ = mlc.datasets.make_panel(n_instances=100, random_state=0)
    >>> sentences = findings(summarize(mlc.combine(panel, method="mv")))
    >>> sentences[2][:52]
    'The consensus gives every instance the labels that v'
    """
    sentences = []
    if summary.note:
        sentences.append(summary.note)

    # The models
    sentences.append(_describe_agreement(summary))
    effective_models = summary.models.effective_models
    if effective_models.sentence:
        sentences.append(f"{effective_models}.")
    sentences += warnings(summary.models)
    for family in summary.models.families.families:
        sentences.append(f"{family.sentence}.")

    # The consensus
    sentences.append(changed(summary))
    sentences.append(_describe_disputed_labels(summary))
    if summary.judged is not None:
        sentences += _describe_quality(summary.judged)
    return sentences


class Action(NamedTuple):
    """What to do now, and the section of the report that has the evidence."""

    sentence: str
    section: str


def actions(summary: Summary) -> list[Action]:
    """Return what to do now: use it, ask people, check models, or do not combine.

    Parameters
    ----------
    summary : Summary
        Summary of a consensus.

    Returns
    -------
    list of Action

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> from mlconsensus.report import summarize
    >>> panel, _ = mlc.datasets.make_panel(n_instances=100, random_state=0)
    >>> actions(summarize(mlc.combine(panel)))[-1].sentence
    'Ask a person about 25 instances before you rely on it, first about ...'
    """
    models = summary.models
    judged = summary.judged
    is_evaluated = judged is not None and not np.isnan(judged.chance.value)
    items = []

    # Check the models
    agreement = models.mean_agreement
    if not is_evaluated and agreement is not None and agreement < _LOW_AGREEMENT:
        sentence = "Do not combine these models before you know why they hardly agree."
        items.append(Action(sentence, "models"))
    if any(flag.is_about_quality for flag in models.flags):
        items.append(Action(_suggest_checks(models), "models"))

    # Use the consensus, or ask people
    if judged is not None and is_evaluated:
        items.append(Action(_recommend_use(judged), "truth"))
    elif not summary.asking.instances:
        items.append(Action("Trust it: every instance has an answer.", "changes"))
    else:
        items.append(Action(_suggest_queries(summary), "changes"))
    return items


def _suggest_checks(models: ModelsSummary) -> str:
    """Return the names of models with evidence against their quality, at most three."""
    flags: dict[str, str] = {}
    for flag in models.flags:
        if flag.is_about_quality:
            flags.setdefault(flag.models[0], flag.kind)

    listed = [f"{shown(name)} ({kind})" for name, kind in list(flags.items())[:3]]
    text = ", ".join(listed)
    if len(flags) > 3:
        text += f" and {len(flags) - 3:,} more"
    pronoun = "them" if len(flags) > 1 else "it"
    return f"Check {text}, or leave {pronoun} out."


def _suggest_queries(summary: Summary) -> str:
    """Return how many and which instances a person should label next."""
    asking = summary.asking
    first = ", ".join(map(shown, asking.instances[:3]))
    sentence = (
        f"Ask a person about {plural(asking.budget, 'instance')} before you rely on "
        f"it, first about {first}"
    )
    # The command takes at most as many labels as the report shows
    if not summary.note:
        sentence += ": mlconsensus ask writes the table to fill in"
    return f"{sentence}."


def _recommend_use(judged: JudgedSummary) -> str:
    """Return whether to use the consensus, voting or a model, by the ground truth."""
    auc = judged.results[0].metrics["micro_auc"]
    if not judged.beyond_chance:
        label_means_auc = figure(auc - judged.chance.value, 3)
        return (
            "Do not use it: it ranks no better than chance "
            f"(microAUC {figure(auc, 3)}; each label's mean score alone has "
            f"{label_means_auc}, a coin 0.500)."
        )

    # Compare it with voting and the best model
    differences = []
    for rival in judged.rivals:
        gain = rival.ahead
        if rival.kind == "model":
            name = f"the best model, {shown(rival.name)}"
        else:
            name = "voting"

        direction = "ahead of" if gain.value >= 0 else "behind"
        interval = f"{figure(gain.low, 3)} to {figure(gain.high, 3)}"
        differences.append(
            f"{figure(abs(gain.value), 3)} {direction} {name} ({interval})"
        )
    compared = f"in {_TITLES[judged.metric]} it is {' and '.join(differences)}"

    # A rival that is significantly better replaces it
    best = min(judged.rivals, key=lambda rival: rival.ahead.value, default=None)
    if best is not None and best.ahead.high < 0:
        replacement = shown(best.name) if best.kind == "model" else "voting"
        return f"Use {replacement} in its place: {compared}."

    sentence = f"Use it: it ranks better than chance (microAUC {figure(auc, 3)})"
    if differences:
        sentence += f"; {compared}"
    return f"{sentence}."


def warnings(models: ModelsSummary) -> list[str]:
    """Return a sentence about each flagged model, families excepted.

    Parameters
    ----------
    models : ModelsSummary
        Summary of the models.

    Returns
    -------
    list of str
    """
    sentences = []
    for flag in models.flags:
        # Families have a section of their own.
        if flag.kind != "family":
            sentences.append(f"{flag.sentence}.")
    n_omitted = len(sentences) - _MAX_WARNINGS
    if n_omitted > 0:
        omitted = f"The report as JSON has {plural(n_omitted, 'more warning')}."
        return [*sentences[:_MAX_WARNINGS], omitted]
    return sentences


def changed(summary: Summary) -> str:
    """Describe how the label sets of the consensus differ from those of voting.

    Parameters
    ----------
    summary : Summary
        Summary of a consensus.

    Returns
    -------
    str
    """
    changes = summary.changes
    n = summary.panel.n_instances
    if changes.n_changed:
        sentence = (
            "The consensus gives other labels than voting in sets of the same sizes to "
            f"{_format_share(changes.n_changed, n)}: {changes.n_added:,} added, "
            f"{changes.n_dropped:,} dropped."
        )
    else:
        sentence = (
            "The consensus gives every instance the labels that voting gives it in "
            "sets of the same sizes."
        )

    if changes.n_tied:
        tied = _format_share(changes.n_tied, n)
        sentence += f" Voting could not decide on the labels of {tied}."
    return sentence


def figure(value: float | None, digits: int = 2) -> str:
    """Format a number with a true minus sign, or a dash if there is none.

    Parameters
    ----------
    value : float or None
        None and NaN mean that the value is not known.
    digits : int, default=2
        Number of decimals.

    Returns
    -------
    str

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


def _format_share(count: int, total: int) -> str:
    """Format a number of instances and their share."""
    return f"{count:,} of {plural(total, 'instance')} ({count / total:.1%})"


def _describe_agreement(summary: Summary) -> str:
    """Describe the mean agreement of the models, and the two closest ones."""
    mean = summary.models.mean_agreement
    best_row = None
    best_agreement = -np.inf
    for row in summary.models.rows:
        if row.agreement is not None and row.agreement > best_agreement:
            best_row = row
            best_agreement = row.agreement

    if best_row is None:
        if mean is None:
            reason = "There is one model"
        else:
            reason = "No two models have predictions for the same instance"
        return f"{reason}, so that agreement cannot be measured."

    closest = (
        f"the closest are {shown(best_row.name)} and {shown(best_row.nearest)} "
        f"({figure(best_agreement)})"
    )
    if best_agreement < _LOW_AGREEMENT:
        return (
            f"The models hardly agree: their mean correlation is {figure(mean)}; "
            f"{closest}."
        )
    return f"Models agree with a mean correlation of {figure(mean)}; {closest}."


def _describe_disputed_labels(summary: Summary) -> str:
    """Name the three labels on which the models differ most."""
    rows = sorted(summary.labels.rows, key=lambda row: -row.dispute)
    labels = []
    for row in rows[:3]:
        if row.dispute:
            labels.append(f"{shown(row.name)} ({row.dispute:.2f})")

    if not labels:
        return "The models differ on no label."
    return f"Most disputed: {', '.join(labels)}."


def _describe_quality(judged: JudgedSummary) -> list[str]:
    """Compare the consensus with voting and with the models by the ground truth."""
    if np.isnan(judged.chance.value):
        return ["All cells of the truth are alike, so that no ranking can be judged."]

    values = {}
    for row in judged.results:
        if row.kind != "model":
            values[row.name] = row.metrics[judged.metric]

    method = judged.results[0].name
    value = values[method]
    voting_value = values["MV"]
    if value == voting_value:
        comparison = "the same as"
    elif value > voting_value:
        comparison = "better than"
    else:
        comparison = "worse than"

    sentence = f"Against the truth, the {_TITLES[judged.metric]} is {value:.4f}"
    if method != "MV":
        sentence += f", {comparison} that of voting ({voting_value:.4f})"
    sentence += (
        f"; the models' mean is {values['BM']:.4f}, each on what it has spoken about."
    )
    if judged.beyond_chance:
        return [sentence, *_describe_label_sets(judged.results)]
    return [sentence]


def _describe_label_sets(results: Sequence[Judgement]) -> list[str]:
    """Return a sentence if the label sets of a model alone are better.

    This happens if the scores add up to too many labels.
    """
    largest_gain = -np.inf
    best_row = None
    for row in results:
        if row.consensus:
            gain = row.metrics["micro_f1"] - row.consensus["micro_f1"]
            if gain > largest_gain:
                largest_gain = gain
                best_row = row

    if best_row is None or not best_row.consensus:
        return []

    model_f1 = best_row.metrics["micro_f1"]
    consensus_f1 = best_row.consensus["micro_f1"]
    if model_f1 < consensus_f1 + _MIN_F1_GAIN:
        return []

    values = f"micro F1 {consensus_f1:.3f}, {shown(best_row.name)} alone {model_f1:.3f}"
    return [
        f"Its label sets are behind those of a model ({values}): known answers would "
        "tell how many to give."
    ]
