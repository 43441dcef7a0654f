"""The main points of a summary, for the top of every rendering.

`actions` is what to do now, with the evidence for it; `findings` are the results, each
with a key, a number with its interval where there is one, and a section of the report.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..metrics.estimate import Estimate
from ..text import plural, shown
from .evaluation import JudgedSummary, Judgement
from .models import ModelsSummary
from .summary import Summary

_MAX_WARNINGS = 12
_MIN_F1_GAIN = 0.02  # gain of a model's label sets over those of the consensus
_TITLES = {
    "average_precision": "label ranking average precision",
    "micro_auc": "microAUC",
}
_LOW_AGREEMENT = 0.1  # mean correlation below which models hardly agree
_Z = 1.96  # 95 % intervals


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A result, and the section of the report that has its details."""

    key: str
    sentence: str
    section: str


@dataclass(frozen=True, kw_only=True)
class Action:
    """What to do now, and the section of the report that has the evidence."""

    sentence: str
    section: str


def introduce(summary: Summary) -> str:
    """Return what a reader can do with the report, and how similar it is to voting.

    Parameters
    ----------
    summary : Summary
        Summary of a consensus.

    Returns
    -------
    str

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> from mlconsensus.report import summarize
    >>> panel, _ = mlc.datasets.make_panel(n_instances=100, random_state=0)
    >>> introduce(summarize(mlc.combine(panel, method="mv")))[:52]
    'Use this report to check the combined labels of 100 '
    """
    changes = summary.changes
    n = summary.panel.n_instances
    return (
        f"Use this report to check the combined labels of {plural(n, 'instance')} from "
        f"{plural(summary.panel.n_models, 'model')} before you rely on them. Compared "
        f"with majority voting, the label sets differ for "
        f"{_format_share(changes.n_changed, n)} and the first label differs for "
        f"{changes.moved:.1%}."
    )


def findings(summary: Summary) -> list[Finding]:
    """Return what a reader should know first.

    Parameters
    ----------
    summary : Summary
        Summary of a consensus.

    Returns
    -------
    list of Finding

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> from mlconsensus.report import summarize
    >>> panel, _ = mlc.datasets.make_panel(n_instances=100, random_state=0)
    >>> results = findings(summarize(mlc.combine(panel, method="mv")))
    >>> [result.key for result in results]
    ['Agreement', 'Effective number of models', 'Changes', 'Disagreement']
    """
    items = []

    def add(key: str, sentence: str, section: str) -> None:
        items.append(Finding(key=key, sentence=sentence, section=section))

    if summary.note:
        add("Selection", summary.note, "labels")

    # The models
    add("Agreement", _describe_agreement(summary), "models")
    effective_models = summary.models.effective_models
    if effective_models.sentence:
        add("Effective number of models", f"{effective_models}.", "models")
    for sentence in warnings(summary.models):
        add("Flagged model", sentence, "models")
    for family in summary.models.families.families:
        add("Family", f"{family.sentence}.", "models")

    # The consensus
    add("Changes", changed(summary), "changes")
    add("Disagreement", _describe_disputed_labels(summary), "labels")
    if summary.judged is not None:
        for sentence in _describe_quality(summary.judged):
            add("Evaluation", sentence, "truth")
    return items


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
    >>> actions(summarize(mlc.combine(panel)))[-2].sentence
    'There is not yet evidence of how accurate these labels are.'
    """
    models = summary.models
    judged = summary.judged
    is_evaluated = judged is not None and not np.isnan(judged.chance.value)
    items = []

    def add(sentence: str, section: str) -> None:
        items.append(Action(sentence=sentence, section=section))

    # Check the models
    agreement = models.mean_agreement
    if not is_evaluated and agreement is not None and agreement < _LOW_AGREEMENT:
        add(
            "Do not combine these models before you know why they hardly agree.",
            "models",
        )
    if any(flag.is_about_quality for flag in models.flags):
        add(_suggest_checks(models), "models")

    # Use the consensus, or ask people
    if judged is not None and is_evaluated:
        add(_recommend_use(judged), "truth")
        return items
    if summary.gold_evidence is not None:
        add(_describe_gold_evidence(summary), "changes")
    elif summary.asking.instances:
        add("There is not yet evidence of how accurate these labels are.", "changes")
    if summary.asking.instances:
        add(_suggest_queries(summary), "changes")
    elif summary.gold_evidence is None:
        add("Use it: every instance has gold labels.", "changes")
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


def _describe_gold_evidence(summary: Summary) -> str:
    """Return what gold labels show about the consensus and about voting."""
    gold = summary.gold_evidence
    assert gold is not None
    metric = _TITLES[gold.metric]
    evidence = (
        f"on the {plural(gold.n_instances, 'instance')} with gold labels, its {metric} "
        f"is {_format_interval(gold.value)}"
    )
    gain = gold.gain
    if gain is not None:
        evidence += f", compared with voting {_format_gain(gain)}"
        if gain.high < 0:
            return f"Use voting in its place: {evidence} (90 % intervals)."
        if gain.low <= 0:
            evidence += ", which is within chance"
    return f"Rely on it as far as this suffices: {evidence} (90 % intervals)."


def _suggest_queries(summary: Summary) -> str:
    """Return how many and which instances a person should label next."""
    asking = summary.asking
    first = ", ".join(map(shown, asking.instances[:3]))
    # The command takes at most as many labels as the report shows
    command = ""
    if not summary.note:
        command = "; mlconsensus ask writes the table to fill in"

    labeling = (
        f"let a person label about {plural(asking.budget, 'instance')}, first {first}"
        f"{command}"
    )
    if summary.gold_evidence is not None:
        return f"For more precise estimates, {labeling}."
    return (
        "To measure how often the first label is wrong (estimated from agreement alone: "
        f"{asking.expected_error:.0%}) to within about 5 percentage points, {labeling}."
    )


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
        name = "voting"
        if rival.kind == "model":
            name = f"the best model {shown(rival.name)}"
        text = f"against {name} {_format_gain(rival.ahead)}"
        if rival.ahead.low <= 0 <= rival.ahead.high:
            text += ", not significant"
        differences.append(text)
    compared = f"{_TITLES[judged.metric]} {'; '.join(differences)} (90 % intervals)"

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
    low, high = _compute_share_interval(changes.n_changed, n)
    sentence = (
        "Compared with majority voting (same number of labels per instance), labels "
        f"change for {_format_share(changes.n_changed, n)}; 95 % interval "
        f"{low:.1%} to {high:.1%}"
    )
    if changes.n_changed:
        sentence += (
            f". Labels added: {changes.n_added:,}; labels dropped: "
            f"{changes.n_dropped:,}"
        )
    sentence += "."

    if changes.n_tied:
        tied = _format_share(changes.n_tied, n)
        sentence += f" Votes are tied at the cut-off for {tied}."
    return sentence


def _compute_share_interval(count: int, total: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share."""
    share = count / total
    center = (share + _Z**2 / (2 * total)) / (1 + _Z**2 / total)
    variance = share * (1 - share) / total + _Z**2 / (4 * total**2)
    margin = _Z * float(np.sqrt(variance)) / (1 + _Z**2 / total)
    return max(center - margin, 0.0), min(center + margin, 1.0)


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


def _format_interval(estimate: Estimate) -> str:
    """Format an estimate with its interval."""
    low = figure(estimate.low, 3)
    high = figure(estimate.high, 3)
    return f"{figure(estimate.value, 3)} ({low} to {high})"


def _format_gain(gain: Estimate) -> str:
    """Format a difference with its sign and its interval."""
    sign = "+" if gain.value >= 0 else ""
    return f"{sign}{_format_interval(gain)}"


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
    alpha = ""
    if summary.agreement is not None:
        alpha = (
            f"Krippendorff's α is {summary.agreement.alpha} with its 95 % interval "
            "(1 is full agreement, 0 is chance). "
        )
    if best_agreement < _LOW_AGREEMENT:
        return (
            f"{alpha}The models hardly agree: their mean correlation is "
            f"{figure(mean)}; {closest}."
        )
    return f"{alpha}The mean correlation of two models is {figure(mean)}; {closest}."


def _describe_disputed_labels(summary: Summary) -> str:
    """Name the three labels on which the models differ most."""
    rows = sorted(summary.labels.rows, key=lambda row: -row.dispute)
    labels = []
    for row in rows[:3]:
        if row.dispute:
            labels.append(f"{shown(row.name)} ({row.dispute:.2f})")

    if not labels:
        return "The models agree on all labels."
    return (
        f"Models differ most on {', '.join(labels)}: how often two models differ on "
        "the label."
    )


def _describe_quality(judged: JudgedSummary) -> list[str]:
    """Compare the consensus with voting and with the models by the ground truth."""
    if np.isnan(judged.chance.value):
        return [
            "All labels of the ground truth are equal, so that a ranking cannot be "
            "evaluated."
        ]

    values = {}
    for row in judged.results:
        if row.kind != "model":
            values[row.name] = row.metrics[judged.metric]

    method = judged.results[0].name
    sentence = f"The {_TITLES[judged.metric]} is {values[method]:.4f}"
    for rival in judged.rivals:
        if rival.kind == "method":
            sentence += f", compared with voting {_describe_gain(rival.ahead)}"
    sentence += (
        f"; the mean of the models is {values['BM']:.4f}, each on what it predicted."
    )
    if judged.beyond_chance:
        return [sentence, *_describe_label_sets(judged.results)]
    return [sentence]


def _describe_gain(gain: Estimate) -> str:
    """Return a gain with its interval, and whether it is significant."""
    text = _format_gain(gain).replace(" (", " (90 % interval ")
    if gain.low <= 0 <= gain.high:
        return f"{text}, which is within chance"
    if gain.value > 0:
        return f"{text}, which is significantly better"
    return f"{text}, which is significantly worse"


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

    return [
        f"{shown(best_row.name)} alone has better label sets: micro F1 {model_f1:.3f}, "
        f"and {consensus_f1:.3f} for the consensus on what {shown(best_row.name)} "
        "predicted. About 50 instances with gold labels would help to set the number "
        "of labels."
    ]
