"""`mlconsensus datasets`: which data sets there are, and fetching them."""

import click

from .options import say


@click.group("datasets", short_help="List or fetch the paper's data sets.", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List or fetch the data sets that the paper's experiment runs on.

    Files in the folder that the variable MLCONSENSUS_DATA names are used first; what is downloaded goes to the user's
    cache, or to the folder that MLCONSENSUS_CACHE names.

    \b
    Example:
      mlconsensus datasets list
      mlconsensus datasets fetch medical enron
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_command)


@command.command("list")
def list_command() -> None:
    """Print the data sets, their sizes, licences and sources.

    \b
    Example:
      mlconsensus datasets list
    """
    from ..datasets.catalogue import is_here, registry
    from ..terminal import table

    heads = ("name", "here", "about", "instances", "in paper", "features", "labels")
    rows = []
    for name, e in registry().items():
        sizes = (f"{size:,}" for size in (e.instances, e.paper, e.features, e.labels))
        rows.append((name, "yes" if is_here(name) else "no", e.about, *sizes))
    click.echo(f"{table(heads, rows, left=3)}\n")
    for name, e in registry().items():
        click.echo(f"{name}: {e.citation}. Licence: {e.licence}. {e.public[0].address}")


@command.command("fetch")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def fetch_command(names: tuple[str, ...]) -> None:
    """Download data sets into the user's cache, unless they are on this machine already.

    \b
    Example:
      mlconsensus datasets fetch medical enron
    """
    from ..datasets.catalogue import entry, fetch, is_here

    for name in [entry(name).name for name in names]:
        if not is_here(name):
            say(f"fetching {name} …")
        for path in fetch(name):
            click.echo(path)
