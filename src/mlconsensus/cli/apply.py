"""`mlconsensus apply`: a solved model and a panel in, one consensus out."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from .large import is_large
from .options import panel_options, read_panel, say, say_missing
from .output import checked_output, decided, output_options, table_of

if TYPE_CHECKING:
    from ..combiners import Combiner


@click.command("apply", short_help="Apply a solved model to a panel.")
@click.argument("model", metavar="MODEL")
@panel_options
@output_options
@click.option(
    "--stream/--no-stream",
    default=None,
    help="Walk the files block by block with little memory, or read them whole; by default what the memory "
    "that is free suggests.",
)
@click.option("--resume", is_flag=True, help="Go on where streaming was interrupted.")
def command(
    model: str, files: tuple[str, ...], input_format: str | None, instances: str, labels: str, output: str,
    output_format: str | None, decide: str | None, threshold: float, empty: str, top_k: int | None, layout: str,
    force: bool, as_json: bool, stream: bool | None, resume: bool,
) -> None:  # fmt: skip
    """Combine the predictions in FILE... by the MODEL that 'mlconsensus solve' wrote.

    The panel must have the model's models; it may lack some of its labels, about which nobody spoke then.

    \b
    Example:
      mlconsensus apply consensus.model site_a/*.parquet --output consensus.parquet
    """
    from ..combiners import name_of
    from ..consensus import Consensus
    from ..io import write_table
    from ..state import load

    output_format = checked_output((model, *files), output, output_format, force, as_json)
    combiner = load(model)
    method = name_of(combiner)
    if is_large(files, input_format, output, output_format, decide, stream, resume, None):
        options = {"format": input_format, "instances": instances, "labels": labels}
        values = partial(decided, decide=decide, threshold=threshold, empty=empty, top_k=top_k)
        plain = decide is None and top_k is None
        shape, missing = _stream(
            combiner, files, options, output, None if plain else values, format=output_format, layout=layout,
            force=force, resume=resume,
        )  # fmt: skip
    else:
        panel = read_panel(files, input_format, instances, labels).with_labels(combiner.labels_)
        scores = combiner.transform(panel)
        found = Consensus(scores, method, "it was solved for", combiner, panel.instances, combiner.labels_, panel)
        table = table_of(found, panel, decide, threshold, empty, top_k)
        write_table(output, table, format=output_format, layout=layout, force=force)  # type: ignore[arg-type]
        shape, missing = panel.shape, panel.n_missing
    m, n, l = shape
    if as_json:
        done = {"method": method, "models": list(combiner.models_), "instances": n, "labels": l}
        click.echo(json.dumps(done | {"missing": missing, "output": output}))
    else:
        where = "" if output == "-" else f" → {output}"
        say(f"applied {method} to {m} models × {n:,} instances × {l:,} labels{where}")


def _stream(
    combiner: Combiner, files: tuple[str, ...], reading: dict[str, Any], output: str, values: Any, **writing: Any
) -> tuple[tuple[int, int, int], int]:
    """Apply a model to files that stay on disk; return the panel's shape and how much of it is missing."""
    from ..engines.streaming import part_of, write_consensus
    from ..io import scan_predictions

    panel = scan_predictions(files, **reading).with_labels(combiner.labels_)
    try:
        done = write_consensus(panel, output, method=combiner, values=values, solved=True, **writing)
    except KeyboardInterrupt:
        if part_of(output).exists():
            raise KeyboardInterrupt("interrupted: what is done so far is kept, and --resume goes on") from None
        raise
    say_missing(done.n_missing, panel.shape)
    return panel.shape, done.n_missing
