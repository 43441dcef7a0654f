"""What the commands that write a consensus share: their options, checks before the work, and the table to write."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .options import say

if TYPE_CHECKING:
    from ..consensus import Consensus
    from ..panel.predictions import Predictions
    from ..panel.sources import Source

F = TypeVar("F", bound=Callable[..., Any])


_OUTPUT = "Where to write the consensus; - for standard output, as CSV unless --output-format says else."
_FORMAT = "Format of the output, where its suffix does not tell."
_DECIDE = (
    "Write label sets (0/1) instead of scores: as many labels for each instance, or instances for each label, as the "
    "models gave on average; or all scores of at least --threshold."
)
_EMPTY = "With --decide: leave an instance without labels, or give it the top one."
_LAYOUT = "One column a label; one row a score; or one row a score from best to worst, with its rank."


def output_options(command: F) -> F:
    """Add where and in what form to write a consensus."""
    choice = partial(click.option, show_default=True)
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON on standard output."),
        click.option("--force", is_flag=True, help="Replace an existing output."),
        choice("--layout", type=click.Choice(["wide", "long", "ranked"]), default="wide", help=_LAYOUT),
        click.option(
            "--top-k", type=click.IntRange(1), metavar="K", help="Keep only the K best labels of each instance."
        ),
        choice("--empty", type=click.Choice(["keep", "top"]), default="keep", help=_EMPTY),
        choice("--threshold", type=float, default=0.5, help="For --decide threshold."),
        click.option("--decide", type=click.Choice(["instances", "labels", "threshold"]), help=_DECIDE),
        click.option("--output-format", metavar="NAME", help=_FORMAT),
        choice("--output", "-o", default="-", metavar="FILE", help=_OUTPUT),
    ):
        command = option(command)
    return command


def checked_output(
    files: Sequence[str], output: str, output_format: str | None, force: bool, as_json: bool = False
) -> str | None:
    """Refuse an output that cannot be written or would replace an input; return its format, where that is known."""
    from ..errors import InputError
    from ..io import format_of

    if as_json and output == "-":
        raise InputError(
            "--json: found no --output, expected a file for the consensus, as JSON goes to standard output"
        )
    check_place(files, output, force)
    output_format = output_format or ("csv" if output == "-" else None)
    format_of(output, output_format)
    return output_format


def check_place(files: Sequence[str], output: str, force: bool) -> list[Any]:
    """Refuse a place that cannot be written to, or that an input has; return the inputs, files in place of folders."""
    from ..errors import InputError
    from ..io.files import check_output
    from ..io.formats import expanded

    check_output(output, force=force)
    inputs = expanded(files)
    if output != "-" and any(os.path.realpath(file) == os.path.realpath(output) for file in inputs):
        raise InputError(f"{output}: found among the input files too, expected another place for the output")
    return inputs


def table_of(
    found: Consensus, panel: Predictions, decide: str | None, threshold: float, empty: Any, top_k: int | None
) -> Any:
    """Turn the consensus into what is to be written: scores or label sets, all or the best."""
    from ..panel.model_tables import ModelTable

    values = decided(found.scores, panel, decide, threshold, empty, top_k)
    return ModelTable(found.method, values, found.instances, found.label_names)


def decided(
    scores: Any, panel: Predictions, decide: str | None, threshold: float, empty: Any, top_k: int | None
) -> Any:
    """Turn the scores of a panel into what is to be written, as the options say."""
    import numpy as np

    from ..evaluation import decisions

    values: Any = scores
    if decide == "instances":
        values = decisions.match_instances(scores, decisions.cardinalities(panel), empty=empty)
    elif decide == "labels":
        values = decisions.match_labels(scores, decisions.frequencies(panel), empty=empty)
    elif decide == "threshold":
        values = decisions.threshold(scores, threshold, empty=empty)
    if top_k is not None:
        best = decisions.top_k(scores, top_k)
        values = values & best if decide else np.where(best, scores, np.nan)
    return values


def say_done(
    method: str, reason: str, panel: Source, missing: int, warnings: list[str], output: str, as_json: bool
) -> None:
    """Say what was combined with what, in one line or as JSON, after what is wrong with models."""
    m, n, l = panel.shape
    for warning in warnings:
        say(warning)
    if as_json:
        done = {"method": method, "reason": reason, "models": list(panel.models), "instances": n, "labels": l}
        click.echo(json.dumps(done | {"missing": missing, "output": output, "warnings": warnings}))
    else:
        where = "" if output == "-" else f" → {output}"
        say(f"combined {m} models × {n:,} instances × {l:,} labels with {method} ({reason}){where}")
