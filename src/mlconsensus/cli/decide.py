"""`mlconsensus decide`: label sets that keep a promise, and what is left to people."""

import click

from .options import Choice, PanelFiles, grouped, method_options, panel_options, print_json, read_panel, read_truth, say
from .output import check_place, force_option

_GOLD = "The truth of some instances that were drawn at random, in any format; empty cells are not known."
_RECALL = "Keep at least this share of an instance's relevant labels, on average."
_PRECISION = "Give labels of which at least this share is relevant, on average over instances."
_FALSE = "Let at most this share of an instance's labels be wrong, on average: the same, said the other way round."
_LEVEL = click.FloatRange(0, 1, min_open=True, max_open=True)


@click.command("decide", short_help="Give label sets that keep a promise, by the truth of some instances.")
@panel_options
@click.option("--gold", required=True, metavar="FILE", help=_GOLD)
@click.option("--recall", type=_LEVEL, help=_RECALL)
@click.option("--precision", type=_LEVEL, help=_PRECISION)
@click.option("--false-discovery", type=_LEVEL, help=_FALSE)
@click.option("--certainty", type=_LEVEL, default=0.9, show_default=True, help="In how many draws of gold it holds.")
@click.option("--output", "-o", default="-", show_default=True, metavar="FILE", help="Where to write the label sets.")
@force_option
@click.option("--json", "as_json", is_flag=True, help="Print what was promised as JSON on standard output.")
@method_options
@grouped(source=PanelFiles, choice=Choice)
def command(
    source: PanelFiles, choice: Choice, gold: str, output: str, force: bool, as_json: bool,
    **promises: float,
) -> None:  # fmt: skip
    """Combine the panel in FILE... and write label sets (1, 0) that keep a promise: 1 where a label is given.

    With --recall beside another promise, cells that neither allows to decide are left to people: they stay empty.

    \b
    Examples:
      mlconsensus decide a.csv b.csv c.csv --gold answers.csv --recall 0.9 --output tags.csv
      mlconsensus decide a.csv b.csv c.csv --gold answers.csv --recall 0.9 --precision 0.8 --output tags.csv
    """
    from ..consensus import combine
    from ..errors import expect
    from ..io import write_table
    from ..panel.gold import split_chances
    from ..panel.model_tables import ModelTable
    from ..terminal import sizes

    expect(not (as_json and output == "-"), "--json", "no --output", "a file, as JSON goes to standard output")
    check_place([*source.files, gold], output, force)
    settings, answers = choice.settings(), read_truth(source, gold, partial=True)
    asked = answers and split_chances(answers)[1]
    uneven = asked is not None and bool(asked.max() > asked.min())
    expect(not uneven, gold, "instances that were asked about with unequal probabilities", "some drawn at random")
    panel = choice.members(read_panel(source))
    found = combine(panel, **settings)
    decided = found.decide(answers, **promises)
    table = ModelTable(found.method, decided.sets, found.instances, found.label_names)
    write_table(output, table, format="csv" if output == "-" else None, force=force)
    if as_json:
        left = {"cells": decided.n_cells, "instances": decided.n_instances}
        print_json({"promises": decided.promises, "left": left, "output": output})
    else:
        for line in [*str(decided).splitlines(), f"decided on {sizes(panel.shape)} with {found.method} → {output}"]:
            say(line)
