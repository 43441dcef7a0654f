"""The commands `combine` and `explain`."""

import click

import mlconsensus as mlc

from ..text import sizes
from . import library
from .options import (
    LargePanelOptions,
    MethodOptions,
    PanelOptions,
    command,
    format_json,
    json_option,
    large_options,
    method_options,
    panel_options,
    print_message,
)
from .output import OutputOptions, output_options

_GOLD = (
    "Gold labels: the reference labels of some instances, to learn from, in any "
    "format; empty cells are unknown."
)
_TOP = "Without --label: explain the K labels with the highest scores."


@command("combine", short_help="Combine the predictions of several models.")
@large_options
@output_options
@method_options
@click.option("--gold", metavar="FILE", help=_GOLD)
def combine(
    *,
    inputs: LargePanelOptions,
    writing: OutputOptions,
    combining: MethodOptions,
    gold: str | None,
) -> None:
    """Combine the predictions in FILE... into one score for each instance and label.

    A file has one or more models. Instances and labels are matched by name. Instances
    and labels without predictions of a model count as missing, not as 0.

    \b
    Examples:
      mlconsensus combine a.csv b.csv c.csv --output consensus.csv
      mlconsensus combine a.csv b.csv c.csv --decide micro-f1 --output tags.jsonl
      mlconsensus combine a.csv b.csv c.csv --method mlcm-r --output mlcm.csv
      mlconsensus combine a.csv b.csv c.csv --gold gold.csv --output corrected.csv
    """
    # Check all options before the work.
    gold_table = inputs.read_gold(gold)
    writing.check()
    settings = combining.get_settings()
    in_memory_options = list(combining.clustering)
    if combining.rescale:
        in_memory_options.append("--rescale")

    def check_streaming() -> None:
        writing.check_streaming(*in_memory_options)

    with inputs.open(check_streaming) as predictions:
        # These options are refused for predictions that stay on disk.
        if in_memory_options and isinstance(predictions, mlc.Predictions):
            predictions = combining.prepare(predictions)
        if gold_table is not None:
            predictions = predictions.with_gold(gold_table)

        written = writing.combine(predictions, settings)
        warnings = library.examine(predictions, written.combiner).warnings()

    for warning in warnings:
        print_message(warning)

    shape = sizes(predictions.shape)
    writing.print_done(
        f"combined {shape} with {written.method} ({written.reason.sentence})",
        predictions,
        method=written.method,
        reason=written.reason.sentence,
        reason_codes=written.reason.codes,
        missing=written.n_missing,
        warnings=warnings,
    )


@command("explain", short_help="Show which predictions raised or lowered a score.")
@panel_options
@click.option(
    "--instance",
    required=True,
    metavar="ID",
    help="The instance whose scores to explain.",
)
@click.option(
    "--label",
    "label_names",
    multiple=True,
    metavar="NAME",
    help="A label to explain; repeatable.",
)
@click.option("--top-k", type=click.IntRange(1), default=3, metavar="K", help=_TOP)
@method_options
@json_option(help="Print JSON, with every part.")
def explain(
    *,
    inputs: PanelOptions,
    combining: MethodOptions,
    instance: str,
    label_names: tuple[str, ...],
    top_k: int,
    as_json: bool,
) -> None:
    """Combine the predictions in FILE... and explain the scores of one instance.

    A table for each label shows which prediction raised or lowered the score and by
    how much, and what the same prediction adds in majority voting. The contributions
    add up to the score.

    \b
    Examples:
      mlconsensus explain a.csv b.csv c.csv --instance 42
      mlconsensus explain a.csv b.csv c.csv --instance 42 --label sport --json
    """
    settings = combining.get_settings()
    predictions = combining.prepare(inputs.read(many=True))

    # Check the names before the work.
    selected = library.find_instance(predictions, instance)
    labels = []
    for name in label_names:
        labels.append(predictions.labels[library.find_label(predictions.labels, name)])

    consensus = mlc.combine(predictions, **settings)
    if not labels:
        scores = consensus.combiner.transform(selected)
        top = mlc.decision.top_labels(scores, predictions.labels, top_k)
        labels = top.labels[0].tolist()

    explanations = [consensus.explain(instance, label) for label in labels]
    if as_json:
        click.echo(format_json([part.to_dict() for part in explanations]))
    else:
        click.echo("\n\n".join(part.to_text() for part in explanations))
