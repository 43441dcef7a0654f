"""People's answers: what to ask, and label sets that keep a promise by them."""

import click

import mlconsensus as mlc

from ..errors import InputError
from ..text import sizes
from .options import (
    Given,
    command,
    force_option,
    json_option,
    method_options,
    output_option,
    panel_options,
    tell,
)

_FOR = "For a better consensus, or for figures with narrower intervals."


@command("ask", short_help="Choose the instances that a person should answer.")
@panel_options
@click.option(
    "--budget",
    type=click.IntRange(1),
    default=100,
    help="How many instances to ask about.",
)
@click.option(
    "--for",
    "goal",
    type=click.Choice(["consensus", "figures"]),
    default="consensus",
    help=_FOR,
)
@click.option(
    "--gold",
    metavar="FILE",
    help="Answers so far; they are kept in the output, with the new questions.",
)
@click.option(
    "--seed", type=click.IntRange(0), default=0, help="Instances are drawn by it."
)
@output_option(required=True, help="Where to write the questions: a table to fill in.")
@force_option
@json_option(help="Print JSON.")
def ask(given: Given) -> None:
    """Choose instances of the panel in FILE... that a person should answer, and write a table to fill in: 1 or 0.

    The table keeps with what probability each instance was chosen, so that its answers
    can also judge. combine, compare, evaluate and ask take it back as --gold, as it is.

    \b
    Example:
      mlconsensus ask a.csv b.csv c.csv --budget 100 --output questions.csv
      mlconsensus combine a.csv b.csv c.csv --gold questions.csv --output consensus.csv
    """
    output = given.output
    answers = given.known(given.gold, partial=True)
    found = mlc.ask(
        given.read(), given.budget, given.goal, gold=answers, seed=given.seed
    )
    mlc.io.write_table(
        output, found.table, format="csv" if output == "-" else None, force=given.force
    )
    tell(
        given.as_json,
        f"{found} → {output}",
        instances=found.table.instances,
        output=output,
    )


_GOLD = "The truth of some instances that were drawn at random, in any format; empty cells are not known."
_RECALL = "Keep at least this share of an instance's relevant labels, on average over those that have one."
_PRECISION = (
    "Give labels of which at least this share is relevant, on average over instances."
)
_FALSE = "Let at most this share of an instance's labels be wrong, on average: the same, said the other way round."
_LEVEL = click.FloatRange(0, 1, min_open=True, max_open=True)


@command(
    "decide",
    short_help="Give label sets that keep a promise, by the truth of some instances.",
)
@panel_options
@click.option("--gold", required=True, metavar="FILE", help=_GOLD)
@click.option("--recall", type=_LEVEL, help=_RECALL)
@click.option("--precision", type=_LEVEL, help=_PRECISION)
@click.option("--false-discovery", type=_LEVEL, help=_FALSE)
@click.option(
    "--certainty", type=_LEVEL, default=0.9, help="In how many draws of gold it holds."
)
@output_option(default="-", help="Where to write the label sets.")
@force_option
@json_option(help="Print what was promised as JSON on standard output.")
@method_options
def decide(given: Given) -> None:
    """Combine the panel in FILE... and write label sets (1, 0) that keep a promise: 1 where a label is given.

    With --recall beside another promise, cells that neither allows to decide are left
    to people: they stay empty.

    \b
    Examples:
      mlconsensus decide a.csv b.csv c.csv --gold answers.csv --recall 0.9 --output
      tags.csv mlconsensus decide a.csv b.csv c.csv --gold answers.csv --recall 0.9
      --precision 0.8 --output tags.csv
    """
    from ..predictions import ScoreTable, split_chances

    output = given.output
    file = "a file, as JSON goes to standard output"
    if given.as_json and output == "-":
        raise InputError(where="--json", found="no --output", expected=file)

    settings = given.settings()
    answers = given.known(given.gold, partial=True)
    asked = answers and split_chances(answers)[1]
    uneven = asked is not None and bool(asked.max() > asked.min())
    drawn = "some drawn at random; compare and evaluate take these"
    if uneven:
        raise InputError(
            where=given.gold,
            found="instances that were asked about with unequal probabilities",
            expected=drawn,
        )

    panel = given.members(given.read())
    found = mlc.combine(panel, **settings)
    promises = ("recall", "precision", "false_discovery", "certainty")
    decided = found.decide(answers, **{name: getattr(given, name) for name in promises})
    if decided.n_cells:
        sets = decided.sets
    else:
        sets = decided.sets.astype(bool)

    table = ScoreTable(found.method, sets, found.instances, found.labels)
    mlc.io.write_table(
        output, table, format="csv" if output == "-" else None, force=given.force
    )
    lines = [
        *str(decided).splitlines(),
        f"decided on {sizes(panel.shape)} with {found.method} → {output}",
    ]
    left = {"cells": decided.n_cells, "instances": decided.n_instances}
    tell(given.as_json, *lines, promises=decided.promises, left=left, output=output)
