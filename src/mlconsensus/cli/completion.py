"""`mlconsensus completion`: the script that makes a shell complete commands and options."""

import click
from click.shell_completion import get_completion_class


@click.command("completion", short_help="Print the script that makes your shell complete this command.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script for SHELL.

    \b
    Example, for the current bash:
      eval "$(mlconsensus completion bash)"
    """
    from .main import cli

    kind = get_completion_class(shell)
    assert kind is not None  # all three choices are click's own
    click.echo(kind(cli, {}, "mlconsensus", "_MLCONSENSUS_COMPLETE").source())
