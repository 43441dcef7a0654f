"""`mlconsensus combine`: a panel of files in, one consensus out."""

from __future__ import annotations

import click

from .large import combine_large, is_large, large_options
from .members import member_options, weights_of, with_members
from .options import method_options, panel_options, read_panel
from .output import checked_output, output_options, say_done, table_of


@click.command("combine", short_help="Combine the models' files into one consensus.")
@panel_options
@output_options
@method_options
@member_options
@large_options
def command(
    files: tuple[str, ...], input_format: str | None, instances: str, labels: str, output: str,
    output_format: str | None, method: str | None, optimize: str, decide: str | None, threshold: float, empty: str,
    top_k: int | None, layout: str, force: bool, as_json: bool, stream: bool | None, dask: str | None,
    weight: tuple[str, ...], clustering: tuple[str, ...], rescale: bool,
) -> None:  # fmt: skip
    """Combine the predictions in FILE... (one or more models each) into one consensus.

    Models are matched by instance id and label name. What a model has not seen or does not know counts as silence.

    \b
    Examples:
      mlconsensus combine a.csv b.parquet c.jsonl --output consensus.csv
      mlconsensus combine *.csv --optimize ranking-loss --layout ranked --top-k 3 -o top.csv
      mlconsensus combine *.csv --decide instances -o tags.jsonl
      mlconsensus combine models/*.parquet --stream -o consensus.parquet
    """
    from ..consensus import combine
    from ..estimators import method_named
    from ..insight.diagnostics import examine
    from ..io import write_table

    output_format = checked_output(files, output, output_format, force, as_json)  # before the work, not after
    if method is not None:
        method_named(method)
    weights = weights_of(weight)
    if is_large(files, input_format, output, output_format, decide, stream, dask):
        combine_large(
            files, input_format, instances, labels, output, output_format, method, optimize, decide, threshold, empty,
            top_k, layout, force, as_json, dask, weights, [*clustering, *["--rescale"] * rescale],
        )  # fmt: skip
        return
    panel = with_members(read_panel(files, input_format, instances, labels), clustering, rescale)
    found = combine(panel, optimize=optimize, method=method, weights=weights)  # type: ignore[arg-type]
    table = table_of(found, panel, decide, threshold, empty, top_k)
    write_table(output, table, format=output_format, layout=layout, force=force)  # type: ignore[arg-type]
    warnings = examine(panel).warnings()
    say_done(found.method, found.reason, panel, panel.n_missing, warnings, output, as_json)
