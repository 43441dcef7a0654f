"""Options that several commands share, declared once; all that is given reaches a command as one object."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial, reduce
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import click

import mlconsensus as mlc

from ..combiners.names import METHOD_NAMES
from ..errors import InputError
from ..text import safe

F = TypeVar("F", bound=Callable[..., Any])

_METRICS = click.Choice(
    ["auto", "ranking-loss", "micro-auc", "one-error", "average-precision"]
)
_CLUSTERING = "A table of instances and their clusters, heard beside the models by mlcm-r and bgcm; repeatable."
_RESCALE = "Bring scores that live on different scales to one; the method filter does so by itself."

_COLUMNS = "Which columns of long tables are which: model=annotator,instance=item,label=tag and perhaps score=…"

_LOCAL = "local"  # a cluster of this machine's own
_STREAM = "Walk the files block by block with little memory, or read them whole; by default as free memory suggests."
_DASK = "Let the workers of a Dask cluster do the work; without an address, one of this machine's own."


class Given(SimpleNamespace):
    """What a command is given, an attribute for each argument and option, and what several commands make of it.

    That is the files of a panel, read and matched as `panel_options` say, and what
    `method_options` ask for.
    """

    note = ""  # what of the panel is looked at, where it is not all

    def reading(self) -> Any:
        """Return how the files are to be read, as the readers take it; the truth is read the same way."""
        own = ("vocabulary", "aliases", "ignore_case", "strict", "skip_bad")
        return {"columns": columns_of(self.columns)} | {
            name: getattr(self, name) for name in own
        }

    def matched(self) -> dict[str, Any]:
        """Return how the files are to be read and matched."""
        return {
            "format": self.input_format,
            "instances": self.instances,
            "labels": self.labels,
            **self.reading(),
        }

    def read(self, many: bool = False) -> mlc.Predictions:
        """Read the panel, of `many` labels only if told, and say once, in one line, how much of it is missing."""
        from ..predictions import MAX_DENSE_LABELS

        panel = mlc.read_predictions(self.files, **self.matched())
        wanted = f"at most {MAX_DENSE_LABELS:,} for this command, for example those of a --vocabulary"
        if not (many or not panel.many):
            raise InputError(
                where="labels", found=f"{len(panel.labels):,}", expected=wanted
            )

        say_missing(panel.n_missing, panel.shape)
        return panel

    def read_to_show(self) -> mlc.Predictions:
        """Read the panel; of many labels, take as many as can be looked at, those that are named most, and say so."""
        from ..predictions.sampling import select_frequent_labels

        panel, self.note = select_frequent_labels(self.read(many=True))
        if self.note:
            say(self.note)
        return panel

    def known(self, path: str | None, partial: bool = False) -> Any:
        """Read the truth, or (`partial`) as much of it as is known, which must not be one of the models' files."""
        from ..io.formats.registry import check_apart, expanded

        if path is None:
            return None

        check_apart(path, expanded(self.files), copies=partial)
        return mlc.io.read_table(path, **self.reading(), partial=partial)

    def check_places(self, written: Sequence[str], read: Sequence[str]) -> None:
        """Refuse places that cannot be written to, that are one, or that are, or would be, among what is read."""
        from ..io.files import check_output
        from ..io.formats.registry import is_read_with

        self.inputs = read
        for at, output in enumerate(written):
            check_output(output, force=self.force)
            again = os.path.realpath(output) in map(os.path.realpath, written[:at])
            if again:
                raise InputError(
                    where=output,
                    found="the place of another output",
                    expected="one for each",
                )

            among = any(is_read_with(output, file) for file in read)
            if among:
                raise InputError(
                    where=output,
                    found="among the input files too",
                    expected="another place for the output",
                )

    @contextmanager
    def opened(self, check: Callable[[], None] = lambda: None) -> Iterator[Any]:
        """Read the panel, or scan it where it is to stay on disk, to be walked here or by the workers of a cluster.

        `check` raises an `InputError` where it cannot stay there; that is an error only
        if it was asked for.
        """
        from ..execution.dask import DaskPredictions, connect

        if not self._stays_on_disk(check):
            yield self.read(many=True)
            return

        with (
            nullcontext()
            if self.dask is None
            else connect(None if self.dask == _LOCAL else self.dask)
        ):
            panel = mlc.scan_predictions(self.files, **self.matched())
            yield (panel if self.dask is None else DaskPredictions.from_scanned(panel))

    def _stays_on_disk(self, check: Callable[[], None]) -> bool:
        """Tell whether to leave the files on disk: as the options say, or as the memory that is free suggests."""
        from ..execution.memory import available_memory
        from ..io.scan import needed_memory

        if not (self.dask is None or self.stream is not False):
            raise InputError(
                where="--dask",
                found="together with --no-stream",
                expected="one of the two",
            )
        if self.dask is not None or self.stream:
            check()
            return True

        large = False
        with suppress(
            InputError
            # what cannot be walked is read whole; what is wrong with files, the reader says
        ):
            check()
            large = (
                self.stream is None
                and needed_memory(self.files, self.input_format)
                > available_memory() / 2
            )

        if large:
            half = "more than half of the memory that is free"
            say(
                f"streaming: the files would take {half} (--no-stream reads them whole)"
            )

        return large

    def settings(self) -> dict[str, Any]:
        """Return what `combine` takes, checked before the work."""
        from ..combiners.registry import find_method_name

        method = self.method and find_method_name(self.method)
        return {
            "method": method,
            "optimize": self.optimize,
            "weights": weights_of(self.weight),
        }

    def members(self, panel: mlc.Predictions) -> mlc.Predictions:
        """Do what `--rescale` and `--clustering` ask for."""
        from ..io.formats.clusterings import read_clustering

        found: dict[str, Any] = {}
        if self.rescale:
            panel = mlc.rescale(panel)

        for path in self.clustering:
            name = Path(path).name.split(".")[0]
            if name in found:
                raise InputError(
                    where="--clustering",
                    found=f"two files called {name!r}",
                    expected="each name once",
                )

            found[name] = read_clustering(path)

        return panel.with_clusterings(found)


class Output(click.Path):
    """A place to write to; whatever else is a file is read."""


_PATHS = {
    "FILE": click.Path(),
    "MODEL": click.Path(),
    "FOLDER": click.Path(file_okay=False),
}


class Command(click.Command):
    """A command whose function gets all that is given as one object, and whose outputs replace no input."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for option in self.params:  # so that a shell completes the names of files
            if option.type is click.STRING:
                option.type = _PATHS.get(
                    str(option.metavar).removesuffix("..."), click.STRING
                )

    def invoke(self, ctx: click.Context) -> Any:
        """Check where the outputs go, and call the function."""
        given = Given(**ctx.params)
        places = dict[Any, list[str]]({Output: [], click.Path: []})
        for option in self.params:
            if isinstance(option.type, click.Path) and option.type.file_okay:
                value = ctx.params[str(option.name)]
                places[type(option.type)] += (
                    [value] if isinstance(value, str) else value or ()
                )

        given.check_places(places[Output], places[click.Path])
        return self.callback and self.callback(given)


command = partial(click.command, cls=Command)


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Make one decorator of several options, which the help lists in this order."""
    return lambda command: reduce(
        lambda made, option: option(made), reversed(options), command
    )


def format_names(ctx: object, option: object, start: str) -> list[str]:
    """List the formats that begin so, for a shell to complete."""
    return [name for name in mlc.io.FORMATS if name.startswith(start)]


def method_names(
    ctx: object = None, option: object = None, start: str = ""
) -> list[str]:
    """List the methods that begin so, as the command line calls them."""
    return [name.lower() for name in METHOD_NAMES if name.lower().startswith(start)]


kept = partial(
    click.option, type=click.Choice(["union", "intersection"]), default="union"
)
format_option = partial(click.option, metavar="NAME", shell_complete=format_names)
reading_options = together(
    click.option("--columns", metavar="ROLE=COLUMN,...", help=_COLUMNS),
    click.option(
        "--vocabulary",
        metavar="FILE",
        help="The labels that count, one a line; others are left out.",
    ),
    click.option(
        "--aliases",
        metavar="FILE",
        help="A table of other names of labels: name, stands for.",
    ),
    click.option(
        "--ignore-case",
        is_flag=True,
        help="Labels that differ in upper and lower case are one.",
    ),
    click.option(
        "--strict",
        is_flag=True,
        help="Refuse tags and tables that are not exactly as documented.",
    ),
    click.option(
        "--skip-bad",
        is_flag=True,
        help="Go on without JSON answers that cannot be read.",
    ),
)
panel_options = together(
    click.argument("files", nargs=-1, required=True, metavar="FILE..."),
    format_option(
        "--format",
        "input_format",
        help="Format of the files, where suffixes do not tell.",
    ),
    kept(
        "--instances",
        help="Keep the instances that any model has seen, or those that all have.",
    ),
    kept(
        "--labels", help="Keep the labels that any model knows, or those that all know."
    ),
    reading_options,
)
large_options = together(
    panel_options,
    click.option("--stream/--no-stream", default=None, help=_STREAM),
    click.option(
        "--dask", is_flag=False, flag_value=_LOCAL, metavar="[ADDRESS]", help=_DASK
    ),
)


class MethodOption(click.Option):
    """An option in whose help METHODS stands for the names of all methods; these are looked up only for the help."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return what the help says of this option."""
        record = super().get_help_record(ctx)
        return record and (
            record[0],
            record[1].replace("METHODS", ", ".join(method_names())),
        )


method_option = partial(
    click.option, cls=MethodOption, metavar="NAME", shell_complete=method_names
)


method_options = together(
    method_option("--method", help="Use this method, one of METHODS."),
    click.option(
        "--optimize",
        type=_METRICS,
        default="auto",
        help="The metric that matters; it chooses the method.",
    ),
    click.option(
        "--weight",
        multiple=True,
        metavar="MODEL=NUMBER",
        help="How much a model counts, not 1; repeatable.",
    ),
    click.option("--clustering", multiple=True, metavar="FILE", help=_CLUSTERING),
    click.option("--rescale", is_flag=True, help=_RESCALE),
)


_GOLD = (
    "The truth of some instances or cells, in any format; empty cells are not known."
)
_DRAWN = "How the instances with gold were drawn; as ask's column of inclusion probabilities says, unless told."
gold_options = together(
    click.option("--gold", metavar="FILE", help=_GOLD),
    click.option("--drawn", type=click.Choice(["random"]), help=_DRAWN),
)
written_option = partial(click.option, type=Output(), metavar="FILE")
output_option = partial(written_option, "--output", "-o")
force_option = click.option("--force", is_flag=True, help="Replace an existing output.")
json_option = partial(click.option, "--json", "as_json", is_flag=True)


def weights_of(given: Sequence[str]) -> dict[str, float] | None:
    """Read what `--weight` said.

    Examples
    --------
    >>> weights_of(["ann=2", "bob=0.5"])
    {'ann': 2.0, 'bob': 0.5}
    """
    found: dict[str, float] = {}
    for text in given:
        model, _, number = text.rpartition("=")
        if model in found:
            raise InputError(
                where="--weight", found=f"{model!r} twice", expected="each model once"
            )

        try:
            found[model] = float(number if model else "")
        except ValueError:
            raise InputError(
                f"--weight: found {text!r}, expected a model's name, = and a number"
            ) from None

    return found or None


def columns_of(given: str | None) -> dict[str, str]:
    """Read what `--columns` said.

    Examples
    --------
    >>> columns_of("model=annotator,label=tag")
    {'model': 'annotator', 'label': 'tag'}
    """
    found: dict[str, str] = {}
    for text in given.split(",") if given else ():
        role, mark, column = (part.strip() for part in text.partition("="))
        if not (bool(role and mark and column)):
            raise InputError(
                where="--columns",
                found=repr(text),
                expected="such as label=tag, with commas between",
            )
        if role in found:
            raise InputError(
                where="--columns", found=f"{role!r} twice", expected="each once"
            )

        found[role] = column

    return found


def say_missing(missing: int, shape: tuple[int, int, int]) -> None:
    """Say in one line how many predictions of a panel of this shape are missing, if any are."""
    if missing:
        m, n, l = shape
        which = "instances a model has not seen, labels it does not know, empty cells"
        missed = f"{missing / (m * n * l):.1%} of the {m:,} × {n:,} × {l:,} predictions are missing ({which})"
        say(f"{missed}; they count as silence, not as no")


def json_of(found: Any) -> str:
    """Write JSON that every parser reads: a figure that has no value is null."""
    import json

    from ..metrics.tables import plain

    return json.dumps(plain(found), allow_nan=False)


def tell(as_json: bool, *lines: str, **facts: Any) -> None:
    """Tell the user what was done: as JSON on standard output, or in lines on standard error."""
    for line in () if as_json else lines:
        say(line)

    if as_json:
        click.echo(json_of(facts))


def say(message: str) -> None:
    """Tell the user something on standard error, where it stays out of what a pipe carries."""
    click.echo(safe(message), err=True)
