"""Reporting: a page that shows how models and labels agree, what consensus changed, and why."""

import os
import shlex

import click
from click.core import ParameterSource

import mlconsensus as mlc

from ..text import sizes
from .options import (
    Given,
    command,
    force_option,
    method_options,
    output_option,
    panel_options,
    say,
)

_OUTPUT = "Where to write it: .html, .json or .txt; - for standard output, as text unless --output-format says else."
_NOT_SAID = (
    "output",
    "output_format",
    "force",
)  # options that change nothing in the report


@command(
    "report", short_help="Show how models and labels agree, and what consensus changed."
)
@panel_options
@output_option(default="-", help=_OUTPUT)
@click.option(
    "--output-format",
    type=click.Choice(["html", "json", "text"]),
    help="Else as the suffix says.",
)
@click.option(
    "--truth",
    metavar="FILE",
    help="The relevant labels, to judge with, never to combine; in any format.",
)
@method_options
@force_option
def report(given: Given) -> None:
    """Combine the panel in FILE... and write a report of it: one HTML file, which needs no network.

    It shows how models agree, how labels go together, what consensus changed against
    voting and why, and with --truth how good every method and model is.

    \b
    Examples:
      mlconsensus report a.csv b.parquet c.jsonl --output report.html
      mlconsensus report a.csv b.csv c.csv --truth truth.csv --output-format text
    """
    from ..io.formats.registry import expanded
    from ..metrics.ground_truth import match_truth
    from ..report import Report, summarize
    from ..report.provenance import hash_files
    from ..report.render import report_format

    # before the work, not after
    output = given.output
    settings = given.settings()
    form = report_format(output, given.output_format)
    used = expanded(given.inputs)
    table = given.known(given.truth)
    panel = given.members(given.read_to_show())
    known = table and match_truth(table, panel.instances, panel.labels)
    found = mlc.combine(panel, **settings)
    summary = summarize(
        found, known, command=_line(), inputs=hash_files(used, panel), note=given.note
    )
    Report(summary).save(output, format=form, force=given.force)
    if output != "-":
        say(f"reported on {sizes(panel.shape)} with {found.method} → {output}")


def _line() -> str:
    """Write down what was asked for; without folders and output, which say nothing about the report."""
    ctx = click.get_current_context()
    words = ["mlconsensus", "report"]
    for option in ctx.command.params:
        name = str(option.name)
        given = ctx.params[str(option.name)]
        if (
            name in _NOT_SAID
            or ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE
        ):
            continue

        for value in given if isinstance(given, tuple) else (given,):
            words += [] if name == "files" else [option.opts[0]]
            if not isinstance(value, bool):
                words.append(
                    os.path.basename(value)
                    if isinstance(option.type, click.Path)
                    else value
                )

    return shlex.join(words)
