"""`mlconsensus labels`: names of labels that look like one another, and a file of aliases to mend them."""

import click

from .options import PanelFiles, grouped, panel_options, print_json, say, with_default
from .output import check_place, force_option


@click.command("labels", short_help="Point out labels that look like one another.")
@panel_options
@with_default("--least", type=click.FloatRange(0, 1), default=0.87, help="How alike names have to be; 1: but for case.")
@click.option("--suggest", metavar="FILE", help="Write them as a CSV file for --aliases, to be looked through first.")
@force_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@grouped(source=PanelFiles)
def command(source: PanelFiles, least: float, suggest: str | None, force: bool, as_json: bool) -> None:
    """Point out labels in FILE... that look like one another, such as Politics and politics, color and colour.

    The name that is used more often stands for the others. What --suggest writes is read by --aliases of all commands.

    \b
    Example:
      mlconsensus labels a.csv b.jsonl --suggest aliases.csv
      mlconsensus combine a.csv b.jsonl --aliases aliases.csv --output consensus.csv
    """
    import polars as pl

    from ..insight.spellings import similar_labels
    from ..io import label_counts, whole_file
    from ..terminal import table

    if suggest is not None:
        check_place(source.files, suggest, force)
    used = label_counts(source.files, format=source.input_format, **source.reading())
    found = similar_labels(used, least)
    if as_json:
        print_json([alias._asdict() for alias in found])
    elif found:
        rows = [(repr(a.name), repr(a.stands_for), f"{a.similarity:.2f}", a.used, a.other_used) for a in found]
        click.echo(table(["name", "looks like", "similarity", "used", "that one"], rows, left=2))
    else:
        say(f"no two of {len(used):,} labels look alike")
    if suggest is not None:
        columns = {"name": [alias.name for alias in found], "stands for": [alias.stands_for for alias in found]}
        with whole_file(suggest, force) as file:
            pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String)).write_csv(file)
        say(f"{len(found)} aliases → {suggest}; look through them before you use them")
