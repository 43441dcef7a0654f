"""`mlconsensus apply`: a solved model and a panel in, one consensus out."""

import click

from ..terminal import sizes
from .large import large_options, opened, write
from .options import PanelFiles, grouped, panel_options, read_truth
from .output import Output, output_options


@click.command("apply", short_help="Apply a solved model to a panel.")
@click.argument("model", metavar="MODEL")
@panel_options
@output_options
@large_options
@click.option("--gold", metavar="FILE", help="Answers that are known here, to correct the rater filter's model by.")
@grouped(source=PanelFiles, output=Output)
def command(
    model: str, source: PanelFiles, output: Output, gold: str | None, stream: bool | None, dask: str | None
) -> None:
    """Combine the predictions in FILE... by the MODEL that 'mlconsensus solve' wrote.

    The panel may lack some of the models and labels that it was solved for: they count as silence.

    \b
    Examples:
      mlconsensus apply consensus.model site_a/*.parquet --output consensus.parquet
      mlconsensus apply consensus.model site_a/*.parquet --gold answers.csv --output consensus.parquet
    """
    from ..sites.state import load

    output = output.checked((model, *source.files, *filter(None, [gold])))
    combiner, known = load(model), read_truth(source, gold, partial=True)
    with opened(source, stream, dask, output.check_streamed) as panel:
        panel = panel.with_labels(combiner.labels_).with_models(combiner.models_)
        if known is not None:
            panel = panel.with_gold(known)
            combiner.teach(panel)
        done = write(panel, output, solved=True, method=combiner)
    facts = {"method": done.method, "models": list(combiner.models_), "missing": done.n_missing}
    output.say_done(f"applied {done.method} to {sizes(panel.shape)}", panel, **facts)
