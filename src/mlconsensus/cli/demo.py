"""`mlconsensus demo`: a synthetic panel as files, and what each method makes of it."""

import shlex
import shutil
import sys

import click

from ..terminal import safe


@click.command("demo", short_help="Make a panel, combine it, and show how well it went.")
@click.option("--output", "folder", default="mlconsensus-demo", show_default=True, help="New folder for its files.")
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed makes another panel.")
def command(folder: str, seed: int) -> None:
    """Write a synthetic panel as CSV files, combine it with every method, and print how well each does.

    \b
    Example:
      mlconsensus demo --output my-demo
    """
    from ..demo import run

    ran = "mlconsensus" if shutil.which("mlconsensus") == sys.argv[0] else sys.argv[0]
    told = run(folder, seed, shlex.join([sys.executable, ran] if ran.endswith(".py") else [ran]))
    click.echo("\n".join(map(safe, told.split("\n"))))
