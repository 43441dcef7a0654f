"""Combining: one consensus of a panel, and why its scores are what they are."""

import click

import mlconsensus as mlc

from ..text import sizes
from . import output
from .options import (
    Given,
    command,
    json_of,
    json_option,
    large_options,
    method_options,
    panel_options,
    say,
)

_GOLD = "Answers that are known, of some instances or cells, to learn from; empty cells are not known. In any format."


@command("combine", short_help="Combine the models' files into one consensus.")
@large_options
@output.output_options
@method_options
@click.option("--gold", metavar="FILE", help=_GOLD)
def combine(given: Given) -> None:
    """Combine the predictions in FILE... (one or more models each) into one consensus.

    Models are matched by instance id and label name. What a model has not seen or does
    not know counts as silence.

    \b
    Examples:
      mlconsensus combine a.csv b.parquet c.jsonl --output consensus.csv
      mlconsensus combine *.csv --optimize ranking-loss --layout ranked --top-k 3 -o
      top.csv mlconsensus combine *.csv --decide f1 -o tags.jsonl mlconsensus combine
      *.csv --gold answers.csv -o consensus.csv mlconsensus combine models/*.parquet
      --stream -o consensus.parquet
    """
    from ..inspection.diagnostics import examine

    known = given.known(given.gold, partial=True)
    output.check(given)
    settings = given.settings()  # before the work, not after
    in_memory = [*given.clustering, *["--rescale"] * given.rescale]
    with given.opened(lambda: output.check_streamed(given, *in_memory)) as panel:
        if in_memory:
            panel = given.members(panel)
        if known is not None:
            panel = panel.with_gold(known)

        done = output.write(given, panel, **settings)
        warnings = examine(panel).warnings()

    for warning in warnings:
        say(warning)

    facts = {
        "method": done.method,
        "reason": done.reason,
        "missing": done.n_missing,
        "warnings": warnings,
    }
    output.say_done(
        given,
        f"combined {sizes(panel.shape)} with {done.method} ({done.reason})",
        panel,
        **facts,
    )


_TOP = "Without --label: explain the K labels that the consensus puts first."


@command("explain", short_help="Say what makes up the scores of one instance.")
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
    help="The label; may be given several times.",
)
@click.option("--top-k", type=click.IntRange(1), default=3, metavar="K", help=_TOP)
@method_options
@json_option(help="Print JSON, with every part.")
def explain(given: Given) -> None:
    """Combine the panel in FILE... and say why labels of one instance have their scores.

    A table for each label tells which model's statement about which label raised or
    lowered its score and by how much, and what the same statement counts in plain
    voting. The contributions sum to the score.

    \b
    Examples:
      mlconsensus explain a.csv b.csv c.csv --instance 42
      mlconsensus explain a.csv b.csv c.csv --instance 42 --label sport --method mlcm-r
      --json
    """
    from ..inspection.explanations import label_position, one_instance

    settings = given.settings()
    panel = given.members(given.read(many=True))
    one = one_instance(panel, given.instance)
    chosen = [
        panel.labels[label_position(panel.labels, name)] for name in given.label_names
    ]
    found = mlc.combine(panel, **settings)
    if not chosen:
        chosen = (
            mlc.decision.top_labels(
                found.combiner.transform(one), panel.labels, given.top_k
            )
            .labels[0]
            .tolist()
        )

    explained = [found.explain(given.instance, label) for label in chosen]
    text = "\n\n".join(one.to_text() for one in explained)
    click.echo(json_of([one.to_dict() for one in explained]) if given.as_json else text)
