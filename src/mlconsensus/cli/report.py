"""`mlconsensus report`: a page that shows how models and labels agree, what consensus changed, and why."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from .members import member_options, weights_of, with_members
from .options import method_options, panel_options, read_panel, say

if TYPE_CHECKING:
    from ..panel.predictions import Predictions
    from ..report.origin import Input


@click.command("report", short_help="Show how models and labels agree, and what consensus changed.")
@partial(panel_options, format_option="--input-format")
@click.option(
    "--output",
    "-o",
    default="-",
    show_default=True,
    metavar="FILE",
    help="Where to write the report: .html, .json or .txt; - for standard output, as text unless --format says else.",
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["html", "json", "text"]),
    help="How to write it, where the suffix of the output does not tell.",
)
@click.option("--truth", metavar="FILE", help="The relevant labels, to judge with, never to combine; in any format.")
@method_options
@member_options
@click.option("--force", is_flag=True, help="Replace an existing output.")
def command(
    files: tuple[str, ...], input_format: str | None, instances: str, labels: str, output: str,
    output_format: str | None, truth: str | None, method: str | None, optimize: str, force: bool,
    weight: tuple[str, ...], clustering: tuple[str, ...], rescale: bool,
) -> None:  # fmt: skip
    """Combine the panel in FILE... and write a report of it: one HTML file, which needs no network.

    It shows how models agree, how labels go together, what consensus changed against voting and why, and with
    --truth how good every method and model is.

    \b
    Examples:
      mlconsensus report a.csv b.parquet c.jsonl --output report.html
      mlconsensus report a.csv b.csv c.csv --truth truth.csv --format text
    """
    from ..consensus import combine
    from ..errors import InputError
    from ..estimators import method_named
    from ..evaluation.truth import match_truth
    from ..io import read_table
    from ..io.files import check_output
    from ..report import Report, summarise
    from ..report.report import report_format

    form = report_format(output, output_format)
    check_output(output, force=force)  # before the work, not after
    weights = weights_of(weight)
    used = [*files, *clustering, truth] if truth else [*files, *clustering]
    if output != "-" and any(os.path.realpath(file) == os.path.realpath(output) for file in used):
        raise InputError(f"{output}: found among the input files too, expected another place for the output")
    if method is not None:
        method_named(method)
    panel = with_members(read_panel(files, input_format, instances, labels), clustering, rescale)
    known = match_truth(read_table(truth), panel.instances, panel.labels) if truth else None  # before the work
    found = combine(panel, optimize=optimize, method=method, weights=weights)  # type: ignore[arg-type]
    members = [f"--weight={given}" for given in weight]
    members += [f"--clustering={os.path.basename(given)}" for given in clustering] + ["--rescale"] * rescale
    line = _line(files, truth, method, optimize, instances, labels, members)
    report = Report(summarise(found, known, command=line, inputs=_inputs(used, panel)))
    report.save(output, format=form, force=force)
    if output != "-":
        m, n, l = panel.shape
        say(f"reported on {m} models × {n:,} instances × {l:,} labels with {found.method} → {output}")


def _line(
    files: Sequence[str], truth: str | None, method: str | None, optimize: str, instances: str, labels: str,
    members: Sequence[str],
) -> str:  # fmt: skip
    """Write down what was asked for; without folders and output, which say nothing about the report."""
    words = ["mlconsensus", "report", *(os.path.basename(file) for file in files)]
    words += ["--truth", os.path.basename(truth)] if truth else []
    words += ["--method", method] if method else []
    words += ["--optimize", optimize] if optimize != "auto" else []
    words += ["--instances", instances] if instances != "union" else []
    words += ["--labels", labels] if labels != "union" else []
    return shlex.join([*words, *members])


def _inputs(files: Sequence[str], panel: Predictions) -> tuple[Input, ...]:
    """Hash the files; standard input is gone once it is read, so then the panel is hashed."""
    import dataclasses
    import hashlib

    from ..report.origin import Input, hash_predictions

    found = []
    for name in files:
        if name == "-":
            found.append(dataclasses.replace(hash_predictions(panel), name="the panel, with standard input"))
            continue
        with open(name, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        found.append(Input(os.path.basename(name), digest, os.path.getsize(name)))
    return tuple(found)
