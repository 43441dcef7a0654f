"""`mlconsensus agreement`: how far raters agree beyond chance."""

import click

from .options import PanelFiles, grouped, panel_options, print_json, read_panel, with_default


@click.command("agreement", short_help="Say how far raters agree beyond chance.")
@panel_options
@with_default("--rows", type=click.IntRange(1), default=12, help="Longest table to print.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with every label, rater and pair.")
@grouped(source=PanelFiles)
def command(source: PanelFiles, rows: int, as_json: bool) -> None:
    """Say how far the models or annotators in FILE... agree: Krippendorff's α, Cohen's κ and percent agreement.

    Figures are over what at least two of them have spoken about, for each label, each rater and pairs of raters, with
    95 % intervals from the bootstrap over instances. Those that agree least come first.

    \b
    Example:
      mlconsensus agreement ann.csv bob.csv cleo.csv
    """
    from ..insight.agreement import agreement

    found = agreement(read_panel(source))
    if as_json:
        print_json(found)
    else:
        click.echo(found.to_text(rows))
