"""The group of all commands, and exit codes and messages of errors."""

import contextlib
import errno
import os
import signal
import sys
import traceback
import warnings
from importlib import import_module
from typing import NoReturn

import click

from .. import __version__
from ..errors import InputError, InputWarning, one_of
from ..execution import progress
from ..text import safe

# The commands of each module. A module is imported when one of its commands is used,
# so that `--help` is fast.
_COMMANDS_BY_MODULE = {
    "review": ("ask", "decide"),
    "combine": ("combine", "explain"),
    "evaluate": ("agreement", "compare", "evaluate", "labels"),
    "report": ("report",),
    "federated": ("apply", "solve", "statistics"),
    "examples": ("datasets", "demo", "reproduce"),
}
_COMMANDS = sorted(name for names in _COMMANDS_BY_MODULE.values() for name in names)

# The groups of commands in the help.
_COMMAND_GROUPS = {
    "Combine": ("combine", "apply", "decide", "explain", "report"),
    "Evaluate": ("compare", "evaluate", "agreement"),
    "Review": ("ask", "labels"),
    "Federated": ("statistics", "solve"),
    "Try": ("demo", "datasets", "reproduce"),
}

BAD_INPUT = 2  # exit codes
FAULT = 1
_MAX_LENGTH = 2000  # characters of a message
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


class _ReaderGoneError(Exception):
    """Raised if the reader of our output has closed it, as `| head` does."""


class _Commands(click.Group):
    def invoke(self, ctx: click.Context) -> object:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always", InputWarning)
                warnings.showwarning = _print_warning
                return super().invoke(ctx)
        except BrokenPipeError:  # click would exit with 1, our code for a fault
            raise _ReaderGoneError from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return _COMMANDS

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        width = max(map(len, _COMMANDS))
        for group, names in _COMMAND_GROUPS.items():
            rows = []
            for name in names:
                command = self.get_command(ctx, name)
                if command is not None:
                    limit = formatter.width - width - 6
                    rows.append((name.ljust(width), command.get_short_help_str(limit)))

            with formatter.section(group):
                formatter.write_dl(rows)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        for module_name, names in _COMMANDS_BY_MODULE.items():
            if name in names:
                module = import_module(f".{module_name}", __package__)
                command: click.Command = getattr(module, name)
                return command

        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
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
    """Combine the multilabel predictions of several models into one better result.

    \b
    Examples:
      mlconsensus demo
      mlconsensus combine a.csv b.csv c.csv --output consensus.csv
      mlconsensus combine --help
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
    elif sys.stderr.isatty():
        token = progress.on_terminal.set(True)
        ctx.call_on_close(lambda: progress.on_terminal.reset(token))


def main(args: list[str] | None = None) -> NoReturn:
    """Run the command line and exit.

    The exit code is 0 if all is done, 2 for bad input, 1 for a fault of the program,
    and 130 after Ctrl-C.

    Parameters
    ----------
    args : list of str, default=None
        The arguments; by default those of this process.
    """
    if args is None:
        has_traceback = "--traceback" in sys.argv[1:]
    else:
        has_traceback = "--traceback" in args

    try:
        if args is None:
            _set_up_process()
            if not has_traceback:
                _hide_native_messages()

        code = cli.main(args, prog_name="mlconsensus", standalone_mode=False)
        if sys.stdout is not None:  # None if the shell has closed it
            sys.stdout.flush()

        if not isinstance(code, int):  # the value that a command has returned
            code = 0
        sys.exit(code)
    except (_ReaderGoneError, BrokenPipeError):
        # Python would print an error when it flushes these streams at exit.
        for stream in (sys.stdout, sys.stderr):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())

        sys.exit(0)
    except (Exception, KeyboardInterrupt) as error:
        if has_traceback:
            traceback.print_exc()

        message, code = _describe_error(error)
        line = safe(" ".join(message.split()))[:_MAX_LENGTH]
        with contextlib.suppress(OSError):  # the terminal may be gone
            click.echo(f"mlconsensus: {line}", err=True)

        sys.exit(code)


def _set_up_process() -> None:
    """Set output encoding and signals of a process that only runs us."""
    # Characters that the terminal's encoding cannot write, such as α, are escaped.
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")

    # Requests to stop are handled like Ctrl-C, so that no unfinished output remains.
    for number in {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}:
        if signal.getsignal(number) == signal.SIG_DFL:  # nohup ignores it
            signal.signal(number, _interrupt)


def _hide_native_messages() -> None:
    """Hide what libraries write past Python to standard error.

    Polars prints several lines when it panics; bad input should give one line.
    """
    copy_of_stderr = os.dup(sys.stderr.fileno())
    sys.stderr = open(  # noqa: SIM115
        copy_of_stderr, "w", buffering=1, errors="backslashreplace"
    )
    os.dup2(os.open(os.devnull, os.O_RDWR), 2)


def _interrupt(number: int, frame: object) -> NoReturn:
    """Raise KeyboardInterrupt, once."""
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt(number)


def _print_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    *_: object,
    **__: object,
) -> None:
    """Print a warning as one line; it replaces `warnings.showwarning`."""
    text = str(message)
    if not issubclass(category, InputWarning):
        text = f"{filename}: {category.__name__}: {text}"

    click.echo(safe(text), err=True)


def _describe_error(error: BaseException) -> tuple[str, int]:
    """Return the message for the user, and the exit code."""
    if isinstance(error, InputError):
        return str(error), BAD_INPUT
    if isinstance(error, click.ClickException):
        return error.format_message(), BAD_INPUT
    if isinstance(error, MemoryError):
        message = (
            "memory: found too little for this panel, expected more, --stream, or "
            "--method mv"
        )
        return message, BAD_INPUT
    if isinstance(error, KeyboardInterrupt | click.exceptions.Abort):
        arguments = (error.__cause__ or error).args  # click wraps the interruption
        number = signal.SIGINT
        if arguments:
            number = arguments[0]
        return "interrupted", 128 + int(number)
    if isinstance(error, OSError) and error.strerror:
        return _describe_os_error(error), BAD_INPUT

    return f"internal fault, please report it: {type(error).__name__}: {error}", FAULT


def _describe_os_error(error: OSError) -> str:
    """Return the message about a file that cannot be used."""
    where = error.filename or "system"
    if error.errno in _NO_SPACE and error.filename is None:
        # Standard output is full: drop the rest of its buffer.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        where = "standard output"

    reason = str(error.strerror).lower()
    return f"{where}: found {reason!r}, expected what can be used"
