"""`mlconsensus ask`: which instances a person should answer next."""

import click

from .options import PanelFiles, grouped, panel_options, print_json, read_panel, read_truth, say, with_default
from .output import check_place, force_option

_FOR = "For a better consensus, or for figures with narrower intervals."


@click.command("ask", short_help="Choose the instances that a person should answer.")
@panel_options
@with_default("--budget", type=click.IntRange(1), default=100, help="How many instances to ask about.")
@with_default("--for", "goal", type=click.Choice(["consensus", "figures"]), default="consensus", help=_FOR)
@click.option("--gold", metavar="FILE", help="Answers so far; they are kept in the output, with the new questions.")
@with_default("--seed", type=click.IntRange(0), default=0, help="Instances are drawn by it.")
@click.option("--output", "-o", required=True, metavar="FILE", help="Where to write the questions: a table to fill in.")
@force_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@grouped(source=PanelFiles)
def command(
    source: PanelFiles, budget: int, goal: str, gold: str | None, seed: int, output: str, force: bool, as_json: bool
) -> None:
    """Choose instances of the panel in FILE... that a person should answer, and write a table to fill in: 1 or 0.

    The table keeps with what probability each instance was chosen, so that its answers can also judge. combine,
    compare, evaluate and ask take it back as --gold, as it is.

    \b
    Example:
      mlconsensus ask a.csv b.csv c.csv --budget 100 --output questions.csv
      mlconsensus combine a.csv b.csv c.csv --gold questions.csv --output consensus.csv
    """
    from ..asking import ask
    from ..io import write_table

    check_place([*source.files, *filter(None, [gold])], output, force)
    answers = read_truth(source, gold, partial=True)
    panel = read_panel(source)
    found = ask(panel, budget, goal, gold=answers, seed=seed)  # type: ignore[arg-type]
    write_table(output, found.table, force=force)
    if as_json:
        print_json({"instances": found.table.instances, "expected": found.expected, "output": output})
    else:
        say(f"{found} → {output}")
