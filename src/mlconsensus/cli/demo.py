"""The demonstration: combine the answers of six LLM taggers about support tickets."""

import shlex
import shutil
import textwrap
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..combiners.registry import list_by_name
from ..consensus import Consensus, combine
from ..datasets import load_support_tickets
from ..datasets.support_tickets import ANSWERS, FOLDER, TICKETS, TRUTH, SupportTickets
from ..errors import InputError
from ..io import write_table
from ..metrics.tables import format_metrics_table
from ..model_selection.comparison import evaluate_methods
from ..predictions import BoolArray, FloatArray, Matrix, Predictions, ScoreTable

_N_SHOWN = 3  # tickets that are printed
_WIDTH = 80  # characters of a line


def run_demo(folder: str | Path, program: str = "mlconsensus") -> str:
    """Combine the answers of six LLM taggers, and return the text to print.

    The input files and the results are written to the folder.

    Parameters
    ----------
    folder : str or Path
        A new or empty folder.
    program : str, default="mlconsensus"
        How a shell starts this program, for the commands that the text suggests.

    Returns
    -------
    str

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(run_demo(folder).splitlines()[0])
    Six LLM taggers (simulated) labeled 300 support tickets with 12 labels.
    """
    folder = Path(folder)
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise InputError(
            where=str(folder),
            found="something there already",
            expected="a new or empty folder (see --output)",
        )

    # The input files.
    folder.mkdir(parents=True, exist_ok=True)
    for name in (ANSWERS, TICKETS, TRUTH):
        shutil.copyfile(FOLDER / name, folder / name)

    # The main job, which does not use the ground truth.
    tickets = load_support_tickets()
    consensus = combine(tickets.predictions)
    consensus.save(folder / "consensus.csv")
    label_sets = consensus.make_label_indicator(empty="top")
    label_set_table = ScoreTable(
        consensus.method, label_sets, consensus.instances, consensus.labels
    )
    write_table(folder / "label-sets.csv", label_set_table)
    consensus.report().save(folder / "report.html")

    n, l = consensus.scores.shape
    rows = _find_changed(tickets.predictions, label_sets)
    instance = str(consensus.instances[rows[-1]])
    parts = [
        f"Six LLM taggers (simulated) labeled {n} support tickets with {l} labels.\n"
        "Their answers were combined without ground truth. These are the first three\n"
        "tickets for which it differs from what more than half of the taggers answered.",
        *_describe_tickets(tickets, label_sets, rows),
        _describe_models(consensus),
        _describe_files(folder),
        _describe_metrics(tickets),
        _suggest_commands(folder, instance, program),
    ]
    return "\n\n".join(parts)


def _vote(predictions: Predictions) -> BoolArray:
    """Return the labels (n, l) that more than half of the taggers gave."""
    return np.asarray(np.nanmean(predictions.to_array(), axis=0) > 0.5)


def _find_changed(predictions: Predictions, label_sets: Matrix) -> list[int]:
    """Return the first instances with other labels than by majority."""
    is_changed = (label_sets != _vote(predictions)).any(axis=1)
    return [int(i) for i in np.flatnonzero(is_changed)[:_N_SHOWN]]


def _describe_tickets(
    tickets: SupportTickets, label_sets: Matrix, instances: Sequence[int]
) -> list[str]:
    """Return tickets with the labels of all taggers and of the consensus."""
    predictions = tickets.predictions
    labels = predictions.labels
    scores = predictions.to_array()
    majority = _vote(predictions)

    texts = []
    for i in instances:
        rows = []
        for k, model in enumerate(predictions.models):
            rows.append((model, _join_labels(scores[k, i], labels)))
        rows += [
            ("MAJORITY", _join_labels(majority[i], labels)),
            ("CONSENSUS", _join_labels(label_sets[i], labels)),
            ("ground truth", _join_labels(tickets.truth[i], labels)),
        ]
        width = max(len(name) for name, _ in rows)
        lines = [f"  {name:<{width}}  {names}" for name, names in rows]
        title = f"{predictions.instances[i]}: {tickets.texts[i]}"
        texts.append("\n".join([*textwrap.wrap(title, _WIDTH), *lines]))

    return texts


def _join_labels(values: FloatArray, labels: Sequence[str]) -> str:
    """Return the names of the labels with the value 1, separated by commas."""
    if np.isnan(values).all():
        return "(no answer: missing, not counted as no)"
    names = [labels[int(j)] for j in np.flatnonzero(values == 1)]
    return ", ".join(names) or "(no label)"


def _describe_models(consensus: Consensus) -> str:
    """Return how many models the taggers are worth, and which one to check."""
    diagnostics = consensus.diagnostics
    sentences = [diagnostics.effective_models.sentence]
    sentences += [family.sentence for family in diagnostics.families.families]
    for flag in diagnostics.flags:
        if flag.is_about_quality:
            sentences.append(f"To check: {flag.sentence}")

    lines = [
        "How good are the taggers? This is estimated from their answers alone. (Error",
        "correlation: 0 for independent models, 1 for copies. In brackets: intervals.)",
    ]
    for sentence in sentences:
        lines += textwrap.wrap(
            f"{sentence}.", _WIDTH, initial_indent="  - ", subsequent_indent="    "
        )
    return "\n".join(lines)


def _describe_files(folder: Path) -> str:
    """Return what is in the folder."""
    rows = [
        ("  answers.jsonl", "the input: one line for each tagger and ticket"),
        ("  tickets.csv", "the texts of the tickets, only to look at"),
        ("  truth.jsonl", "the ground truth, only for the table below"),
        ("  consensus.csv", "the result: a score for each ticket and label"),
        (
            "  label-sets.csv",
            "the result as 1 and 0, with at least one label for each ticket",
        ),
        ("  report.html", "models, labels and changes as a page: open it in a browser"),
    ]
    width = max(len(name) for name, _ in rows)
    lines = [f"{name:<{width}}  {text}" for name, text in rows]
    return "\n".join([f"The files are in {folder}/:", *lines])


def _describe_metrics(tickets: SupportTickets) -> str:
    """Return the metrics of all methods by the ground truth."""
    results = evaluate_methods(tickets.truth, tickets.predictions)
    identifiers = {
        name: combiner.identifier.replace("_", "-")
        for name, combiner in list_by_name().items()
    }
    identifiers["BM"] = "mean of the taggers"
    named = {identifiers[name]: metrics for name, metrics in results.items()}
    return f"""\
How good is the result? All methods, evaluated by the ground truth:

{format_metrics_table(named)}

↑ higher is better, ↓ lower is better, * best of its column.
weighted-consensus is the default: it made the result above.
  microAUC       how often a relevant label has a higher score than one that is not
  one error      share of the tickets whose best label is wrong
  ranking loss   share of a ticket's pairs of labels that are in the wrong order
  avg precision  label ranking average precision (LRAP)"""


def _suggest_commands(folder: Path, instance: str, program: str) -> str:
    """Return three commands to try next."""
    file = shlex.quote(str(folder / ANSWERS))
    return f"""\
Try next:

  {program} explain {file} --instance {instance}
  {program} compare {file}
  {program} combine {file} --decide f1 -o sets.csv"""
