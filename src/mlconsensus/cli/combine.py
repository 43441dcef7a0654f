"""`mlconsensus combine`: a panel of files in, one consensus out."""

from __future__ import annotations

import json

import click

from .options import method_options, panel_options, read_panel, say
from .output import checked_output, output_options, table_of


@click.command("combine", short_help="Combine the models' files into one consensus.")
@panel_options
@output_options
@method_options
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
    from ..io import write_table

    output_format = checked_output(files, output, output_format, force, as_json)  # before the work, not after
    if method is not None:
        method_named(method)
    panel = read_panel(files, input_format, instances, labels)
    found = combine(panel, optimize=optimize, method=method)  # type: ignore[arg-type]
    table = table_of(found, panel, decide, threshold, empty, top_k)
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
