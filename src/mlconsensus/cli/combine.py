"""`mlconsensus combine`: a panel of files in, one consensus out."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import click

from .options import panel_options, read_panel, say

if TYPE_CHECKING:
    from ..consensus import Consensus
    from ..predictions import Predictions

_METRICS = ["auto", "ranking-loss", "micro-auc", "one-error", "average-precision"]


@click.command("combine", short_help="Combine the models' files into one consensus.")
@panel_options
@click.option(
    "--output",
    "-o",
    default="-",
    show_default=True,
    metavar="FILE",
    help="Where to write the consensus; - for standard output, as CSV unless --output-format says else.",
)
@click.option("--output-format", metavar="NAME", help="Format of the output, where its suffix does not tell.")
@click.option("--method", metavar="NAME", help="Use this method: mv, ds, bgcm, mlcm-r, mlcm-a or filter.")
@click.option(
    "--optimize",
    type=click.Choice(_METRICS),
    default="auto",
    show_default=True,
    help="The metric that matters; it chooses the method.",
)
@click.option(
    "--decide",
    type=click.Choice(["instances", "labels", "threshold"]),
    help="Write label sets (0/1) instead of scores: as many labels for each instance, or instances for each "
    "label, as the models gave on average; or all scores of at least --threshold.",
)
@click.option("--threshold", type=float, default=0.5, show_default=True, help="For --decide threshold.")
@click.option(
    "--empty",
    type=click.Choice(["keep", "top"]),
    default="keep",
    show_default=True,
    help="With --decide: leave an instance without labels, or give it the top one.",
)
@click.option("--top-k", type=click.IntRange(min=1), metavar="K", help="Keep only the K best labels of each instance.")
@click.option(
    "--layout",
    type=click.Choice(["wide", "long", "ranked"]),
    default="wide",
    show_default=True,
    help="One column a label; one row a score; or one row a score from best to worst, with its rank.",
)
@click.option("--force", is_flag=True, help="Replace an existing output.")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON on standard output.")
def command(
    files: tuple[str, ...], input_format: str | None, instances: str, labels: str, output: str,
    output_format: str | None, method: str | None, optimize: str, decide: str | None, threshold: float, empty: str,
    top_k: int | None, layout: str, force: bool, as_json: bool,
) -> None:  # fmt: skip
    """Combine the predictions in FILE... (one or more models each) into one consensus.

    Models are matched by instance id and label name. What a model has not seen or does not know counts as silence.

    \b
    Examples:
      mlconsensus combine a.csv b.parquet c.jsonl --output consensus.csv
      mlconsensus combine *.csv --optimize ranking-loss --layout ranked --top-k 3 -o top.csv
      mlconsensus combine *.csv --decide instances -o tags.jsonl
    """
    from ..consensus import combine, method_named
    from ..diagnostics import examine
    from ..errors import InputError
    from ..io import format_of, write_table
    from ..io.files import check_output

    if as_json and output == "-":
        raise InputError(
            "--json: found no --output, expected a file for the consensus, as JSON goes to standard output"
        )
    check_output(output, force=force)  # before the work, not after
    if output != "-" and any(os.path.realpath(file) == os.path.realpath(output) for file in files):
        raise InputError(f"{output}: found among the input files too, expected another place for the output")
    if method is not None:
        method_named(method)
    output_format = output_format or ("csv" if output == "-" else None)
    format_of(output, output_format)
    panel = read_panel(files, input_format, instances, labels)
    found = combine(panel, optimize=optimize, method=method)  # type: ignore[arg-type]
    table = _table(found, panel, decide, threshold, empty, top_k)
    write_table(output, table, format=output_format, layout=layout, force=force)  # type: ignore[arg-type]
    m, n, l = panel.shape
    warnings = examine(panel, found.combiner).warnings()
    for warning in warnings:
        say(warning)
    if as_json:
        done = {
            "method": found.method,
            "reason": found.reason,
            "models": list(panel.models),
            "instances": n,
            "labels": l,
        }
        click.echo(json.dumps(done | {"missing": panel.n_missing, "output": output, "warnings": warnings}))
    else:
        where = "" if output == "-" else f" → {output}"
        say(f"combined {m} models × {n:,} instances × {l:,} labels with {found.method} ({found.reason}){where}")


def _table(
    found: Consensus, panel: Predictions, decide: str | None, threshold: float, empty: Any, top_k: int | None
) -> Any:
    """Turn the consensus into what is to be written: scores or label sets, all or the best."""
    import numpy as np

    from .. import decisions
    from ..predictions import ModelTable

    values: Any = found.scores
    if decide == "instances":
        values = decisions.match_instances(found.scores, found.cardinality, empty=empty)
    elif decide == "labels":
        values = decisions.match_labels(found.scores, decisions.frequencies(panel), empty=empty)
    elif decide == "threshold":
        values = decisions.threshold(found.scores, threshold, empty=empty)
    if top_k is not None:
        best = decisions.top_k(found.scores, top_k)
        values = values & best if decide else np.where(best, found.scores, np.nan)
    return ModelTable(found.method, values, found.instances, found.label_names)
