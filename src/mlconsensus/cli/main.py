"""The group of commands, and how errors leave the program: one line, and an exit code that means something."""

from __future__ import annotations

import errno
import os
import sys
import traceback
import warnings
from importlib import import_module
from typing import Any, NoReturn

import click

from .. import __version__
from ..engines import progress
from ..engines.machine import keep_memory
from ..errors import InputError, InputWarning, nearest
from ..terminal import safe

# Each command's module is imported when it is used: `--help` answers at once.
_COMMANDS = (
    "agreement", "apply", "ask", "combine", "compare", "completion", "datasets", "decide", "demo", "evaluate",
    "explain", "labels", "report", "reproduce", "solve", "statistics",
)  # fmt: skip

BAD_INPUT, FAULT, INTERRUPTED = 2, 1, 130
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


class _ReaderGoneError(Exception):
    """Whoever read our output has had enough, as `| head` does."""


class _Commands(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            with warnings.catch_warnings():  # what was done with the input goes into one line
                warnings.simplefilter("always", InputWarning)
                warnings.showwarning = _said  # type: ignore[assignment]
                return super().invoke(ctx)
        except BrokenPipeError:  # which click would end with 1, our code for a fault
            raise _ReaderGoneError from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return import_module(f".{name}", __package__).command if name in _COMMANDS else None

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            known = ", ".join(_COMMANDS)
            raise InputError(f"command: found {args[0]!r}, expected one of {known}{nearest(args[0], _COMMANDS)}")
        return super().resolve_command(ctx, args)


@click.command(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="mlconsensus")
@click.option("--traceback", is_flag=True, hidden=True, help="Show where in the program an error arose.")
@click.pass_context
def cli(ctx: click.Context, traceback: bool) -> None:
    """Combine the predictions of several multilabel models into one better ranking of labels.

    \b
    Example:
      mlconsensus combine a.csv b.csv c.csv --output consensus.csv
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
    elif sys.stderr.isatty():
        token = progress.on_terminal.set(True)
        ctx.call_on_close(lambda: progress.on_terminal.reset(token))


def main(args: list[str] | None = None) -> NoReturn:
    """Run the command line and exit: 0 done, 2 the input is bad, 1 a fault of the program, 130 interrupted."""
    show_traceback = "--traceback" in (sys.argv[1:] if args is None else args)
    if args is None:  # in a process of our own
        keep_memory()
    try:
        code = cli.main(args, prog_name="mlconsensus", standalone_mode=False)
        if sys.stdout is not None:  # as it is where the shell has closed it
            sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else 0)
    except (_ReaderGoneError, BrokenPipeError):
        # Python must not complain of it while it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except (Exception, KeyboardInterrupt) as error:
        if show_traceback:
            traceback.print_exc()
        message, code = _verdict(error)
        click.echo(f"mlconsensus: {safe(' '.join(message.split()))}", err=True)
        sys.exit(code)


def _said(message: Warning | str, category: type[Warning], filename: str, *where: Any) -> None:
    ours = issubclass(category, InputWarning)
    click.echo(safe(message) if ours else f"{filename}: {category.__name__}: {message}", err=True)


def _verdict(error: BaseException) -> tuple[str, int]:
    """Say of an error what the user should read, and the exit code."""
    if isinstance(error, InputError):
        return str(error), BAD_INPUT
    if isinstance(error, click.ClickException):
        return error.format_message(), BAD_INPUT
    if isinstance(error, KeyboardInterrupt | click.exceptions.Abort):
        # Work that can be gone on with says so in the interruption that click wraps.
        return str(error.__cause__ or error) or "interrupted", INTERRUPTED
    if isinstance(error, OSError) and error.errno in _NO_SPACE:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - what is left in the buffer has nowhere to go
        return f"standard output: found {error.strerror!r}, expected a place to write to", BAD_INPUT
    return f"internal fault, please report it: {type(error).__name__}: {error}", FAULT
