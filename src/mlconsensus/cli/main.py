"""The group of commands, and how errors leave the program: one line, and an exit code that means something."""

import contextlib
import errno
import os
import signal
import sys
import traceback
import warnings
from importlib import import_module
from typing import Any, NoReturn

import click

from .. import __version__
from ..errors import InputError, InputWarning, one_of
from ..execution import progress
from ..text import safe

# Each command's module is imported when it is used: `--help` answers at once.
_HOME = {
    "review": ("ask", "decide"),
    "combine": ("combine", "explain"),
    "evaluate": ("agreement", "compare", "evaluate", "labels"),
    "report": ("report",),
    "federated": ("apply", "solve", "statistics"),
    "examples": ("datasets", "demo", "reproduce"),
}
_COMMANDS = sorted(name for names in _HOME.values() for name in names)

BAD_INPUT = 2
FAULT = 1
_LONGEST = 2000  # characters of a message
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


class _ReaderGoneError(Exception):
    """Whoever read our output has had enough, as `| head` does."""


class _Commands(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            with (
                warnings.catch_warnings()
            ):  # what was done with the input goes into one line
                warnings.simplefilter("always", InputWarning)
                warnings.showwarning = _said  # type: ignore[assignment]
                return super().invoke(ctx)
        except BrokenPipeError:  # which click would end with 1, our code for a fault
            raise _ReaderGoneError from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return _COMMANDS

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        home = next((home for home, names in _HOME.items() if name in names), None)
        if home:
            return getattr(import_module(f".{home}", __package__), name)
        return None

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and not args[0].startswith("-"):
            one_of(args[0], _COMMANDS, "command")
        return super().resolve_command(ctx, args)


@click.command(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "show_default": True,
    },
)
@click.version_option(__version__, prog_name="mlconsensus")
@click.option(
    "--traceback",
    is_flag=True,
    hidden=True,
    help="Show where in the program an error arose.",
)
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
    try:
        if args is None:  # in a process of our own
            # What the terminal's encoding lacks, such as α, is written as an escape.
            getattr(sys.stdout, "reconfigure", lambda **how: None)(
                errors="backslashreplace"
            )
            for request in {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}:
                if signal.getsignal(request) == signal.SIG_DFL:  # nohup ignores it
                    signal.signal(
                        request, _stop
                    )  # is heard as Ctrl-C is, so that nothing half done is left

            if not show_traceback:
                _hush()

        code = cli.main(args, prog_name="mlconsensus", standalone_mode=False)
        if sys.stdout is not None:  # as it is where the shell has closed it
            sys.stdout.flush()

        sys.exit(code if isinstance(code, int) else 0)
    except (_ReaderGoneError, BrokenPipeError):
        for stream in (
            sys.stdout,
            sys.stderr,
        ):  # Python must not complain of it while it exits
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())

        sys.exit(0)
    except (Exception, KeyboardInterrupt) as error:
        if show_traceback:
            traceback.print_exc()

        message, code = _verdict(error)
        with contextlib.suppress(OSError):  # the terminal may be gone
            click.echo(
                f"mlconsensus: {safe(' '.join(message.split()))[:_LONGEST]}", err=True
            )

        sys.exit(code)


def _stop(number: int, frame: object) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)  # once
    raise KeyboardInterrupt(number)


def _hush() -> None:
    """Keep what libraries write past Python, such as the panics of Polars, off standard error."""
    place = os.dup(sys.stderr.fileno())
    sys.stderr = open(place, "w", buffering=1, errors="backslashreplace")  # noqa: SIM115
    os.dup2(os.open(os.devnull, os.O_RDWR), 2)


def _said(
    message: Warning | str, category: type[Warning], filename: str, *where: Any
) -> None:
    ours = issubclass(category, InputWarning)
    click.echo(
        safe(message if ours else f"{filename}: {category.__name__}: {message}"),
        err=True,
    )


def _verdict(error: BaseException) -> tuple[str, int]:
    """Say of an error what the user should read, and the exit code."""
    if isinstance(error, InputError):
        return str(error), BAD_INPUT
    if isinstance(error, click.ClickException):
        return error.format_message(), BAD_INPUT
    if isinstance(error, MemoryError):
        return (
            "memory: found too little for this panel, expected more, --stream, or --method mv",
            BAD_INPUT,
        )
    if isinstance(error, KeyboardInterrupt | click.exceptions.Abort):
        number, *_ = (
            *(error.__cause__ or error).args,
            signal.SIGINT,
        )  # click wraps the interruption
        return "interrupted", 128 + int(number)

    if isinstance(error, OSError) and error.strerror:
        where = error.filename or "system"
        if error.errno in _NO_SPACE and error.filename is None:
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - what is left in the buffer has nowhere to go
            where = "standard output"

        return (
            f"{where}: found {error.strerror.lower()!r}, expected what can be used",
            BAD_INPUT,
        )

    return f"internal fault, please report it: {type(error).__name__}: {error}", FAULT
