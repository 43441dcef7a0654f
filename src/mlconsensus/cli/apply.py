"""`mlconsensus apply`: a solved model and a panel in, one consensus out."""

from __future__ import annotations

import json

import click

from .large import is_large, large_options, scanned, write_large
from .options import panel_options, read_panel, say
from .output import checked_output, output_options, table_of


@click.command("apply", short_help="Apply a solved model to a panel.")
@click.argument("model", metavar="MODEL")
@panel_options
@output_options
@large_options
def command(
    model: str, files: tuple[str, ...], input_format: str | None, instances: str, labels: str, output: str,
    output_format: str | None, decide: str | None, threshold: float, empty: str, top_k: int | None, layout: str,
    force: bool, as_json: bool, stream: bool | None, dask: str | None,
) -> None:  # fmt: skip
    """Combine the predictions in FILE... by the MODEL that 'mlconsensus solve' wrote.

    The panel must have the model's models; it may lack some of its labels, about which nobody spoke then.

    \b
    Example:
      mlconsensus apply consensus.model site_a/*.parquet --output consensus.parquet
    """
    from ..consensus import Consensus
    from ..io import write_table
    from ..sites.state import load

    output_format = checked_output((model, *files), output, output_format, force, as_json)
    combiner = load(model)
    method = combiner.name
    if is_large(files, input_format, output, output_format, decide, stream, dask):
        with scanned(files, input_format, instances, labels, dask) as panel:
            panel = panel.with_labels(combiner.labels_)
            missing = write_large(
                panel, output, decide, threshold, empty, top_k, method=combiner, format=output_format,
                layout=layout, force=force, solved=True,
            ).n_missing  # fmt: skip
    else:
        panel = read_panel(files, input_format, instances, labels).with_labels(combiner.labels_)
        scores = combiner.transform(panel)
        found = Consensus(scores, method, "it was solved for", combiner, panel.instances, combiner.labels_, panel)
        table = table_of(found, panel, decide, threshold, empty, top_k)
        write_table(output, table, format=output_format, layout=layout, force=force)  # type: ignore[arg-type]
        missing = panel.n_missing
    m, n, l = panel.shape
    if as_json:
        done = {"method": method, "models": list(combiner.models_), "instances": n, "labels": l}
        click.echo(json.dumps(done | {"missing": missing, "output": output}))
    else:
        where = "" if output == "-" else f" → {output}"
        say(f"applied {method} to {m} models × {n:,} instances × {l:,} labels{where}")
