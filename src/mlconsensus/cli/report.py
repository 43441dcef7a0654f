"""`mlconsensus report`: a page that shows how models and labels agree, what consensus changed, and why."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from ..terminal import sizes
from .options import Choice, PanelFiles, grouped, method_options, panel_options, read_panel, read_truth, say
from .output import check_place, force_option

if TYPE_CHECKING:
    from ..io.files import AnyPath
    from ..panel.predictions import Predictions
    from ..report.origin import Input

_OUTPUT = "Where to write it: .html, .json or .txt; - for standard output, as text unless --output-format says else."
_PATHS = ("files", "truth", "clustering", "vocabulary", "aliases")
_NOT_SAID = ("output", "output_format", "force")  # options that change nothing in the report


@click.command("report", short_help="Show how models and labels agree, and what consensus changed.")
@panel_options
@click.option("--output", "-o", default="-", show_default=True, metavar="FILE", help=_OUTPUT)
@click.option("--output-format", type=click.Choice(["html", "json", "text"]), help="Else as the suffix says.")
@click.option("--truth", metavar="FILE", help="The relevant labels, to judge with, never to combine; in any format.")
@method_options
@force_option
@click.pass_context
@grouped(source=PanelFiles, choice=Choice)
def command(
    ctx: click.Context, source: PanelFiles, choice: Choice, output: str, output_format: str | None, truth: str | None,
    force: bool,
) -> None:  # fmt: skip
    """Combine the panel in FILE... and write a report of it: one HTML file, which needs no network.

    It shows how models agree, how labels go together, what consensus changed against voting and why, and with
    --truth how good every method and model is.

    \b
    Examples:
      mlconsensus report a.csv b.parquet c.jsonl --output report.html
      mlconsensus report a.csv b.csv c.csv --truth truth.csv --output-format text
    """
    from ..consensus import combine
    from ..evaluation.truth import match_truth
    from ..report import Report, summarise
    from ..report.report import report_format

    form = report_format(output, output_format)
    given = [*source.files, *choice.clustering, *filter(None, [truth, source.vocabulary, source.aliases])]
    used, settings = check_place(given, output, force), choice.settings()  # before the work, not after
    table = read_truth(source, truth)
    panel = choice.members(read_panel(source))
    known = table and match_truth(table, panel.instances, panel.labels)
    found = combine(panel, **settings)
    summary = summarise(found, known, command=_line(ctx), inputs=_inputs(used, panel))
    Report(summary).save(output, format=form, force=force)
    if output != "-":
        say(f"reported on {sizes(panel.shape)} with {found.method} → {output}")


def _line(ctx: click.Context) -> str:
    """Write down what was asked for; without folders and output, which say nothing about the report."""
    words = ["mlconsensus", "report"]
    for option in ctx.command.params:
        name, given = str(option.name), ctx.params[str(option.name)]
        if name in _NOT_SAID or ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        for value in given if isinstance(given, tuple) else (given,):
            words += [] if name == "files" else [option.opts[0]]
            if not isinstance(value, bool):
                words.append(os.path.basename(value) if name in _PATHS else value)
    return shlex.join(words)


def _inputs(files: Sequence[AnyPath], panel: Predictions) -> tuple[Input, ...]:
    """Hash the files, in folders too; standard input is gone once it is read, so then the panel is hashed."""
    import hashlib

    from ..report.origin import Input, hash_predictions

    found = []
    for name in map(Path, files):
        if str(name) == "-":
            found.append(hash_predictions(panel, "the panel, with standard input"))
            continue
        parts = sorted(part for part in name.rglob("*") if part.is_file()) if name.is_dir() else [name]
        for part in parts:
            with part.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            found.append(Input(part.relative_to(name.parent).as_posix(), digest, part.stat().st_size))
    return tuple(found)
