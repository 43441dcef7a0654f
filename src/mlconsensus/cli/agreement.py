"""`mlconsensus agreement`: how far raters agree beyond chance."""

from __future__ import annotations

import click

from .options import panel_options, print_json, read_panel


@click.command("agreement", short_help="Say how far raters agree beyond chance.")
@panel_options
@click.option("--rows", type=click.IntRange(min=1), default=12, show_default=True, help="Longest table to print.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with every label, rater and pair.")
def command(
    files: tuple[str, ...], input_format: str | None, instances: str, labels: str, rows: int, as_json: bool
) -> None:
    """Say how far the models or annotators in FILE... agree: Krippendorff's α, Cohen's κ and percent agreement.

    Figures are over what at least two of them have spoken about, for each label, each rater and pairs of raters, with
    95 % intervals from the bootstrap over instances. Those that agree least come first.

    \b
    Example:
      mlconsensus agreement ann.csv bob.csv cleo.csv
    """
    from ..insight.agreement import agreement
    from ..report.render import plain

    found = agreement(read_panel(files, input_format, instances, labels))
    if as_json:
        print_json(plain(found))
    else:
        click.echo(found.to_text(rows))
