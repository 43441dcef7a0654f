"""The commands that work with people's answers: `ask` and `decide`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

import mlconsensus as mlc

from ..errors import InputError
from ..text import sizes
from . import library
from .options import (
    MethodOptions,
    PanelOptions,
    command,
    families_option,
    force_option,
    json_option,
    method_options,
    output_option,
    panel_options,
    parse_families,
    print_done,
)

if TYPE_CHECKING:
    from ..active_learning.query import Goal
    from ..consensus import Consensus
    from ..predictions import Matrix, ScoreTable

_FOR = "To improve the consensus, or to get metrics with narrower intervals (figures)."
_GOLD = (
    "Gold labels: the reference labels of instances that were drawn at random, in any "
    "format; empty cells are unknown."
)
_METRICS = ("f1", "micro-f1", "hamming", "top-k")
_METRIC = (
    "Write the label sets with the highest expected F1 of each instance (f1), F1 of "
    "all instances together (micro-f1) or share of correct predictions (hamming), or "
    "the K best labels (top-k)."
)
_RECALL = (
    "Keep at least this share of an instance's relevant labels, on average over those "
    "that have one."
)
_PRECISION = "At least this share of the labels is relevant, on average over instances."
_FALSE_DISCOVERY = (
    "At most this share of an instance's labels is wrong, on average: 1 - precision."
)
_LEVEL = click.FloatRange(0, 1, min_open=True, max_open=True)


@command("ask", short_help="Select the instances that a person should label next.")
@panel_options
@click.option(
    "--budget",
    type=click.IntRange(1),
    default=100,
    help="Number of instances to select.",
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
    help="Gold labels so far; the output contains them and the new instances.",
)
@families_option
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    help="Seed of the random draw of instances.",
)
@output_option(required=True, help="File to write: a table to fill in.")
@force_option
@json_option(help="Print JSON.")
def ask(
    *,
    inputs: PanelOptions,
    budget: int,
    goal: Goal,
    gold: str | None,
    families: str | None,
    seed: int,
    output: str,
    force: bool,
    as_json: bool,
) -> None:
    """Select instances in FILE... that a person should label next.

    The command writes a table to fill in with 1 or 0. The table records the probability
    with which each instance was selected, so that its labels can also be used to
    evaluate. combine, compare, evaluate and ask read it as --gold.

    \b
    Example:
      mlconsensus ask a.csv b.csv c.csv --budget 100 --output questions.csv
      mlconsensus combine a.csv b.csv c.csv --gold questions.csv --output consensus.csv
    """
    gold_table = inputs.read_gold(gold)
    stated = parse_families(families)
    questions = mlc.ask(
        inputs.read(), budget, goal, gold=gold_table, families=stated, seed=seed
    )
    _write_table(questions.table, output, force)
    print_done(
        as_json,
        f"{questions} → {output}",
        instances=questions.table.instances,
        output=output,
    )


@command(
    "decide",
    short_help="Write label sets for a metric, or with a guarantee by gold labels.",
)
@panel_options
@click.option("--metric", metavar="|".join(_METRICS), help=_METRIC)
@click.option(
    "--k", type=click.IntRange(1), metavar="K", help="With --metric top-k: how many."
)
@click.option("--gold", metavar="FILE", help=_GOLD)
@click.option("--recall", type=_LEVEL, help=_RECALL)
@click.option("--precision", type=_LEVEL, help=_PRECISION)
@click.option("--false-discovery", type=_LEVEL, help=_FALSE_DISCOVERY)
@click.option(
    "--certainty", type=_LEVEL, default=0.9, help="Confidence level of the guarantee."
)
@output_option(default="-", help="File to write; - is standard output, as CSV.")
@force_option
@json_option(help="Print the guarantees as JSON on standard output.")
@method_options
def decide(
    *,
    inputs: PanelOptions,
    combining: MethodOptions,
    metric: str | None,
    k: int | None,
    gold: str | None,
    recall: float | None,
    precision: float | None,
    false_discovery: float | None,
    certainty: float,
    output: str,
    force: bool,
    as_json: bool,
) -> None:
    """Combine the predictions in FILE... and write label sets (1, 0).

    Either --metric selects the sets with the highest expected value of a metric, with
    or without gold labels, or --gold and --recall, --precision or --false-discovery
    select sets with a guarantee. With --recall and another guarantee, pairs that
    neither decides stay empty: a person should decide them.

    \b
    Examples:
      mlconsensus decide a.csv b.csv c.csv --metric f1 -o tags.csv
      mlconsensus decide a.csv b.csv c.csv --gold gold.csv --recall 0.9 -o tags.csv
      mlconsensus decide *.csv --gold gold.csv --recall 0.9 --precision 0.8 -o tags.csv
    """
    # Check all options before the work.
    if as_json and output == "-":
        raise InputError(
            where="--json",
            found="no --output",
            expected="a file, as JSON goes to standard output",
        )

    levels = {
        "recall": recall,
        "precision": precision,
        "false_discovery": false_discovery,
    }
    guarantees = {name: level for name, level in levels.items() if level is not None}
    _check_goal(metric, k, gold, guarantees)

    settings = combining.get_settings()
    gold_table = inputs.read_gold(gold)
    if metric is None and gold_table is not None:
        _check_equal_probabilities(gold_table, str(gold))

    predictions = combining.prepare(inputs.read())
    if metric is not None:
        if gold_table is not None:
            predictions = predictions.with_gold(gold_table)
        consensus = mlc.combine(predictions, **settings)
        label_sets = consensus.make_label_indicator(metric, k=k)
        _write_label_sets(consensus, label_sets, output, force)
        print_done(
            as_json,
            f"decided on {sizes(predictions.shape)} with {consensus.method} by "
            f"{metric} → {output}",
            metric=metric,
            output=output,
        )
        return

    consensus = mlc.combine(predictions, **settings)
    decided = consensus.decide(gold_table, **guarantees, certainty=certainty)

    # Without undecided cells, the label sets are boolean.
    label_sets = decided.sets
    if not decided.n_cells:
        label_sets = label_sets.astype(bool)

    _write_label_sets(consensus, label_sets, output, force)
    shape = sizes(predictions.shape)
    print_done(
        as_json,
        *str(decided).splitlines(),
        f"decided on {shape} with {consensus.method} → {output}",
        promises=decided.promises,
        left={"cells": decided.n_cells, "instances": decided.n_instances},
        output=output,
    )


def _check_goal(
    metric: str | None,
    k: int | None,
    gold: str | None,
    guarantees: dict[str, float],
) -> None:
    """Check that there is either a metric, or gold labels with guarantees."""
    if metric is None:
        if gold is None:
            raise InputError(
                where="decide",
                found="neither --metric nor --gold",
                expected="--metric f1, or --gold FILE with --recall or --precision",
            )
        if k is not None:
            raise InputError(
                where="--k", found="no --metric top-k", expected="both, or neither"
            )
        return

    name = mlc.decision.find_metric(metric, "--metric")
    if guarantees:
        raise InputError(
            where="--metric",
            found="a guarantee as well",
            expected="either --metric, or --recall, --precision or --false-discovery",
        )
    if (k is None) == (name == "top-k"):
        raise InputError(
            where="--k",
            found=f"{k} with --metric {name}".replace("None", "none"),
            expected="--k K with --metric top-k, and not with other metrics",
        )


def _write_label_sets(
    consensus: Consensus, label_sets: Matrix, output: str, force: bool
) -> None:
    """Write label sets (n, l) with the names of instances and labels."""
    table = library.ScoreTable(
        consensus.method, label_sets, consensus.instances, consensus.labels
    )
    _write_table(table, output, force)


def _check_equal_probabilities(gold: ScoreTable, path: str) -> None:
    """Check that all gold instances were drawn with the same probability."""
    _, probabilities = library.split_chances(gold)
    if probabilities is not None and probabilities.max() > probabilities.min():
        raise InputError(
            where=path,
            found="instances that were asked about with unequal probabilities",
            expected="some drawn at random; compare and evaluate take these",
        )


def _write_table(table: ScoreTable, output: str, force: bool) -> None:
    """Write a table; on standard output as CSV."""
    output_format = "csv" if output == "-" else None
    mlc.io.write_table(output, table, format=output_format, force=force)
