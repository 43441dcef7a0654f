"""Results of a run as text, Markdown and JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from ..metrics.ranking import RANKING_METRICS
from ..metrics.tables import TITLES, find_best_rows, plain, title
from ..text import table as aligned
from .paper import tables as printed_tables
from .protocol import Results, Table, judge_claims

_NOTE = (
    "BM: mean of the base models; MV: majority voting; * best of its column, ours and"
    " the paper's each; "
    "± standard deviation over the repeats; diff: ours − paper."
)
_CLAIMS = ("claim", "result", "ours", "paper's tables")
_MISPRINT = (
    "The paper's {metrics} of {name} is misprinted (it repeats another column): in"
    " parentheses, not compared."
)


def as_json(results: Results) -> str:
    """Render as JSON: settings, and the values by data set, method and metric.

    Examples
    --------
    >>> from mlconsensus.reproduction import Settings
    >>> as_json(Results(Settings(), {}, {})).splitlines()[1]
    '  "settings": {'
    """
    settings = asdict(results.settings) | {
        "about": results.settings.how.about,
        "instances": results.instances,
        "seeds": "numpy SeedSequence of (seed, repeat, model, …)",
    }
    if results.tables:
        claims = judge_claims(results)
    else:
        claims = []

    content = plain({"settings": settings, **results.tables, "claims": claims})
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def as_text(results: Results) -> str:
    """Render for a terminal.

    Examples
    --------
    >>> from mlconsensus.reproduction import Settings
    >>> text = as_text(Results(Settings(repeats=3).checked(), {}, {}))
    >>> text.partition(";")[0]
    '3 repeats of 10 models in 10 folds, seed 0'
    """
    parts = [_headline(results)]
    for name, table in results.tables.items():
        rows = _cells(name, table)
        parts += [
            f"{name}, {results.instances[name]:,} instances",
            aligned(_heads(), rows, n_left=len(_heads())),
        ]
        if results.settings.repeats > 1:
            largest = max(
                figure.std for row in table.values() for figure in row.values()
            )
            parts.append(f"Standard deviation over the repeats: at most {largest:.4f}.")

        parts += _misprints(name)

    if results.tables:
        parts += [
            "The paper's claims",
            aligned(_CLAIMS, _list_claims(results), n_left=len(_CLAIMS)),
        ]
        parts.append(_NOTE.replace("± standard deviation over the repeats; ", ""))

    return "\n\n".join(parts) + "\n"


def as_markdown(results: Results) -> str:
    """Render as Markdown tables.

    Examples
    --------
    >>> from mlconsensus.reproduction import Settings
    >>> as_markdown(Results(Settings(), {}, {})).splitlines()[0]
    '# Reproduction with `svm`'
    """
    parts = [
        f"# Reproduction with `{results.settings.learner}`",
        _headline(results) + ".",
        _NOTE,
    ]
    for name, table in results.tables.items():
        rows = _cells(name, table, with_std=results.settings.repeats > 1)
        parts += [
            f"## {name}, {results.instances[name]:,} instances",
            _piped(_heads(), rows),
            *_misprints(name),
        ]

    if results.tables:
        parts += ["## The paper's claims", _piped(_CLAIMS, _list_claims(results))]
    return "\n\n".join(parts) + "\n"


def _list_claims(results: Results) -> list[tuple[str, ...]]:
    """Return a row for each claim: its text, the result and the evidence."""
    rows: list[tuple[str, ...]] = []
    for claim in judge_claims(results):
        rows.append((claim.claim, claim.result, claim.ours, claim.paper))
    return rows


def _headline(results: Results) -> str:
    s = results.settings
    repeats = f"{s.repeats} repeat{'s' * (s.repeats != 1)}"
    size = f"{repeats} of {s.models} models in {s.folds} folds"
    return f"{size}, seed {s.seed}; {s.how.about}"


def _heads() -> list[str]:
    return [
        "method",
        *(
            head
            for metric in RANKING_METRICS
            for head in (title(metric), "paper", "diff")
        ),
    ]


def _cells(name: str, table: Table, with_std: bool = False) -> list[list[str]]:
    """Make a row for each method: our value, the paper's and the difference."""
    means = {
        method: {metric: figure.mean for metric, figure in row.items()}
        for method, row in table.items()
    }
    printed = printed_tables()[name].cells
    rows = []
    for method, row in table.items():
        cells = [method]
        for metric, figure in row.items():
            ours = f"{figure.mean:.4f}{'*' * (method in find_best_rows(means, metric))}"
            papers = ""
            difference = ""
            if method in printed:
                papers = f"({printed[method][metric]:.4f})"
            if figure.paper is not None:
                is_best = method in find_best_rows(printed, metric)
                papers = f"{figure.paper:.4f}{'*' * is_best}"
                difference = f"{round(figure.mean - figure.paper, 4) + 0.0:+.4f}"

            cells += [
                f"{ours} ± {figure.std:.4f}" if with_std else ours,
                papers,
                difference,
            ]

        rows.append(cells)

    return rows


def _misprints(name: str) -> list[str]:
    """Return a note on the metrics that are misprinted in the paper."""
    misprinted = sorted(printed_tables()[name].misprinted)
    if not misprinted:
        return []

    titles = ", ".join(TITLES[metric] for metric in misprinted)
    return [_MISPRINT.format(metrics=titles, name=name)]


def _piped(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [
        heads,
        ["---"] * len(heads),
        *([cell.replace("*", "\\*") for cell in row] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
