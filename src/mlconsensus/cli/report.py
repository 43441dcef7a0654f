"""The command `report`."""

import os
import shlex

import click
from click.core import ParameterSource

import mlconsensus as mlc

from ..text import sizes
from . import library
from .options import (
    MethodOptions,
    PanelOptions,
    command,
    force_option,
    get_paths,
    method_options,
    output_option,
    panel_options,
    print_message,
)

_OUTPUT = (
    "File to write: .html, .json or .txt; - is standard output, as text by default."
)
# Options that change nothing in the report, so that it does not mention them.
_UNMENTIONED = ("output", "output_format", "force")


@command("report", short_help="Write a page about models, labels and what changed.")
@panel_options
@output_option(default="-", help=_OUTPUT)
@click.option(
    "--output-format",
    type=click.Choice(["html", "json", "text"]),
    help="Format to write, if the suffix does not show it.",
)
@click.option(
    "--truth",
    metavar="FILE",
    help="Ground truth, in any format: it is used to evaluate, never to combine.",
)
@method_options
@force_option
@click.pass_context
def report(
    ctx: click.Context,
    *,
    inputs: PanelOptions,
    combining: MethodOptions,
    output: str,
    output_format: str | None,
    truth: str | None,
    force: bool,
) -> None:
    """Combine the predictions in FILE... and write a report as one file.

    The HTML file needs no network. The report shows how models agree, which labels
    occur together, what the consensus changed compared with voting and why, and with
    --truth how good every method and model is.

    \b
    Examples:
      mlconsensus report a.csv b.parquet c.jsonl --output report.html
      mlconsensus report a.csv b.csv c.csv --truth truth.csv --output-format text
    """
    # Check all options before the work.
    settings = combining.get_settings()
    report_type = library.choose_report_format(output, output_format)
    input_files = library.expand_folders(get_paths(ctx, click.Path))
    truth_table = None
    if truth is not None:
        truth_table = inputs.read_truth(truth)

    predictions, note = inputs.read_to_show()
    predictions = combining.prepare(predictions)
    matched = None
    if truth_table is not None:
        matched = library.match_truth_table(
            truth_table, predictions.instances, predictions.labels
        )

    consensus = mlc.combine(predictions, **settings)
    summary = library.summarize(
        consensus,
        matched,
        command=_format_command(ctx),
        inputs=library.hash_files(input_files, predictions),
        note=note,
    )
    library.Report(summary).save(output, format=report_type, force=force)
    if output != "-":
        shape = sizes(predictions.shape)
        print_message(f"reported on {shape} with {consensus.method} → {output}")


def _format_command(ctx: click.Context) -> str:
    """Return the command line without folders and without the output."""
    words = ["mlconsensus", "report"]
    for option in ctx.command.params:
        name = str(option.name)
        source = ctx.get_parameter_source(name)
        if name in _UNMENTIONED or source is not ParameterSource.COMMANDLINE:
            continue

        value = ctx.params[name]
        values = value if isinstance(value, tuple) else (value,)
        for item in values:
            if name != "files":
                words.append(option.opts[0])
            if isinstance(item, bool):  # a flag
                continue
            if isinstance(option.type, click.Path):
                item = os.path.basename(item)
            words.append(item)

    return shlex.join(words)
