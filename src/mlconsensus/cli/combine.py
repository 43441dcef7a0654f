"""`mlconsensus combine`: a panel of files in, one consensus out."""

from functools import partial

import click

from ..terminal import sizes
from .large import large_options, opened, write
from .options import Choice, PanelFiles, grouped, method_options, panel_options, read_truth, say
from .output import Output, output_options

_GOLD = "Answers that are known, of some instances or cells, to learn from; empty cells are not known. In any format."


@click.command("combine", short_help="Combine the models' files into one consensus.")
@panel_options
@output_options
@method_options
@click.option("--gold", metavar="FILE", help=_GOLD)
@large_options
@grouped(source=PanelFiles, output=Output, choice=Choice)
def command(
    source: PanelFiles, output: Output, choice: Choice, gold: str | None, stream: bool | None, dask: str | None
) -> None:
    """Combine the predictions in FILE... (one or more models each) into one consensus.

    Models are matched by instance id and label name. What a model has not seen or does not know counts as silence.

    \b
    Examples:
      mlconsensus combine a.csv b.parquet c.jsonl --output consensus.csv
      mlconsensus combine *.csv --optimize ranking-loss --layout ranked --top-k 3 -o top.csv
      mlconsensus combine *.csv --decide instances -o tags.jsonl
      mlconsensus combine *.csv --gold answers.csv -o consensus.csv
      mlconsensus combine models/*.parquet --stream -o consensus.parquet
    """
    from ..insight.diagnostics import examine

    known = read_truth(source, gold, partial=True)
    output, settings = output.checked(source.files), choice.settings()  # before the work, not after
    in_memory = [*choice.clustering, *["--rescale"] * choice.rescale]
    with opened(source, stream, dask, partial(output.check_streamed, *in_memory)) as panel:
        panel = choice.members(panel) if in_memory else panel
        panel = panel if known is None else panel.with_gold(known)
        done = write(panel, output, **settings)
        warnings = examine(panel).warnings()
    for warning in warnings:
        say(warning)
    facts = {"method": done.method, "reason": done.reason, "missing": done.n_missing, "warnings": warnings}
    output.say_done(f"combined {sizes(panel.shape)} with {done.method} ({done.reason})", panel, **facts)
