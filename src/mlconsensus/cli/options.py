"""Options that several commands share, and the records that hold their values.

`option_group` adds a group of options to a command. The command's function receives
their values as one record, such as `PanelOptions`, under one keyword.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, fields
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import click

import mlconsensus as mlc

from ..errors import InputError
from ..text import safe
from . import library

if TYPE_CHECKING:
    from ..execution.dask import DaskPredictions
    from ..io.label_names import ReadKeywords
    from ..io.scan import FilePredictions
    from ..predictions import How, ScoreTable

CommandFunction = Callable[..., None]
Decorator = Callable[[CommandFunction], CommandFunction]

_CLUSTERING = (
    "A table of instances and their clusters, an additional input of mlcm-r and bgcm; "
    "repeatable."
)
_RESCALE = "Bring scores of models with different scales to one scale (quantile normalization)."
_COLUMNS = (
    "Names of the columns of a long table, if they are not model, instance, label and "
    "score, such as model=annotator,instance=item,label=tag."
)
_CONFIDENCES = (
    "A table of words and their scores, for answers with confidences in words; by "
    "default high is 0.95, medium 0.75 and low 0.55."
)
_STREAM = (
    "Read the files block by block, with little memory, or read them whole. By "
    "default, files are streamed if they would take more than half of the free memory."
)
_DASK = (
    "Use the workers of the Dask cluster at this address. Without an address, start "
    "a cluster on this machine."
)
_GOLD = (
    "Gold labels: the reference labels of some instances, in any format; empty cells "
    "are unknown."
)
_DRAWN = (
    "How the gold instances were sampled. Not needed for files that ask has written, "
    "which record it."
)

_FAMILIES = (
    "Which models are related: a table with a model and its family in each row, "
    "independent, or by-name. A model that is not in the table is a family of its own. "
    "By default, families are found."
)

_LOCAL_CLUSTER = "local"  # value of --dask without an address


class CombineSettings(TypedDict):
    """Keyword arguments of `mlc.combine` that come from options."""

    method: str | None
    families: str | dict[str, str] | None
    weights: dict[str, float] | None


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Values of `reading_options`: how files are read."""

    columns: str | None
    vocabulary: str | None
    aliases: str | None
    ignore_case: bool
    strict: bool
    skip_bad: bool
    confidences: str | None
    all_know_labels: bool

    def get_reading(self) -> ReadKeywords:
        """Return the keyword arguments of the reading functions."""
        return {
            "columns": parse_columns(self.columns),
            "vocabulary": self.vocabulary,
            "aliases": self.aliases,
            "ignore_case": self.ignore_case,
            "strict": self.strict,
            "skip_bad": self.skip_bad,
            "confidences": self.confidences,
            "all_know_labels": self.all_know_labels,
        }


@dataclass(frozen=True, kw_only=True)
class PanelOptions(ReadOptions):
    """Values of `panel_options`: the files with predictions."""

    files: tuple[str, ...]
    input_format: str | None
    instances: How
    labels: How

    def read(self, many: bool = False) -> mlc.Predictions:
        """Read the predictions, and print how many are missing.

        Parameters
        ----------
        many : bool, default=False
            Accept large label spaces.
        """
        predictions = mlc.read_predictions(
            self.files,
            format=self.input_format,
            instances=self.instances,
            labels=self.labels,
            **self.get_reading(),
        )
        if predictions.many and not many:
            raise InputError(
                where="labels",
                found=f"{len(predictions.labels):,}",
                expected=f"at most {library.MAX_DENSE_LABELS:,} for this command, for "
                "example those of a --vocabulary",
            )

        print_missing(predictions.n_missing, predictions.shape)
        return predictions

    def read_to_show(self) -> tuple[mlc.Predictions, str]:
        """Read the predictions for a table or report that people look at.

        Returns
        -------
        predictions : Predictions
            Large label spaces are restricted to the most frequent labels.
        note : str
            A sentence about this restriction, which is also printed; empty without.
        """
        predictions, note = library.select_frequent_labels(self.read(many=True))
        if note:
            print_message(note)
        return predictions, note

    def read_truth(self, path: str) -> ScoreTable:
        """Read the ground truth, which must not be one of the models' files."""
        return self._read_reference(path, is_partial=False)

    def read_gold(self, path: str | None) -> ScoreTable | None:
        """Read gold labels, which must not be one of the models' files."""
        if path is None:
            return None
        return self._read_reference(path, is_partial=True)

    def _read_reference(self, path: str, is_partial: bool) -> ScoreTable:

        library.check_apart(path, library.expand_folders(self.files), copies=is_partial)
        reading = self.get_reading()
        reading["partial"] = is_partial
        return mlc.io.read_table(path, **reading)


@dataclass(frozen=True, kw_only=True)
class LargePanelOptions(PanelOptions):
    """Values of `large_options`: files that may be larger than the memory."""

    stream: bool | None  # None: decided by the free memory
    dask: str | None  # address of the cluster

    @contextmanager
    def open(
        self, check_streaming: Callable[[], None] = lambda: None
    ) -> Iterator[mlc.Predictions | FilePredictions | DaskPredictions]:
        """Read the predictions, or scan them if they are to stay on disk.

        Parameters
        ----------
        check_streaming : callable
            Raises `InputError` if the command cannot stream its input. This is an
            error only if the user asked for streaming.
        """
        if not self._is_streamed(check_streaming):
            yield self.read(many=True)
            return

        if self.dask is None:
            cluster: AbstractContextManager[object] = nullcontext()
        elif self.dask == _LOCAL_CLUSTER:
            cluster = library.connect(None)
        else:
            cluster = library.connect(self.dask)

        with cluster:
            predictions = mlc.scan_predictions(
                self.files,
                format=self.input_format,
                instances=self.instances,
                labels=self.labels,
                **self.get_reading(),
            )
            if self.dask is None:
                yield predictions
            else:
                yield library.DaskPredictions.from_scanned(predictions)

    def _is_streamed(self, check_streaming: Callable[[], None]) -> bool:
        """Decide by the options, or else by the free memory."""
        if self.dask is not None and self.stream is False:
            raise InputError(
                where="--dask",
                found="together with --no-stream",
                expected="one of the two",
            )
        if self.dask is not None or self.stream:
            check_streaming()
            return True
        if self.stream is False or not self._is_large(check_streaming):
            return False

        print_message(
            "streaming: the files would take more than half of the memory that is "
            "free (--no-stream reads them whole)"
        )
        return True

    def _is_large(self, check_streaming: Callable[[], None]) -> bool:
        """Check whether the files can be streamed and take half of the free memory."""
        # Files that cannot be streamed are read; errors in them are reported then.
        with suppress(InputError):
            n_bytes = library.estimate_memory(self.files, self.input_format)
            if n_bytes > library.available_memory() / 2:
                check_streaming()
                return True

        return False


@dataclass(frozen=True, kw_only=True)
class MethodOptions:
    """Values of `method_options`: how predictions are combined."""

    method: str | None
    families: str | None
    weight: tuple[str, ...]
    clustering: tuple[str, ...]
    rescale: bool

    def get_settings(self) -> CombineSettings:
        """Return the keyword arguments of `mlc.combine`, checked."""
        method = self.method
        if method:
            method = library.find_identifier(method)

        return {
            "method": method,
            "families": parse_families(self.families),
            "weights": parse_weights(self.weight),
        }

    def prepare(self, predictions: mlc.Predictions) -> mlc.Predictions:
        """Rescale the predictions and add clusterings, as the options say."""
        if self.rescale:
            predictions = mlc.rescale(predictions)

        clusterings: dict[str, dict[str, str]] = {}
        for path in self.clustering:
            name = Path(path).name.split(".")[0]
            if name in clusterings:
                raise InputError(
                    where="--clustering",
                    found=f"two files called {name!r}",
                    expected="each name once",
                )

            clusterings[name] = library.read_clustering(path)

        return predictions.with_clusterings(clusterings)


class Output(click.Path):
    """A file to write; files of the type `click.Path` are read."""


_PATHS = {
    "FILE": click.Path(),
    "MODEL": click.Path(),
    "FOLDER": click.Path(file_okay=False),
}


# Options by their heading in the help. A command's other options come first.
_OPTION_GROUPS = {
    "Method": ("method", "families", "weight", "clustering", "rescale"),
    "Label sets": ("decide", "threshold", "empty"),
    "Output": (
        "output",
        "output_format",
        "layout",
        "top_k",
        "force",
        "as_json",
    ),
    "Large data": ("stream", "dask"),
    "Reading files": (
        "input_format",
        "columns",
        "instances",
        "labels",
        "vocabulary",
        "aliases",
        "ignore_case",
        "strict",
        "skip_bad",
    ),
}


class Command(click.Command):
    """A command whose outputs never replace its inputs, with options in groups."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)

        # Set the type of file options, so that a shell completes the names of files.
        for option in self.params:
            if option.type is click.STRING:
                metavar = str(option.metavar).removesuffix("...")
                option.type = _PATHS.get(metavar, click.STRING)

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the options in groups: its own first, file reading last."""
        heading_of_option = {}
        for heading, names in _OPTION_GROUPS.items():
            heading_of_option.update(dict.fromkeys(names, heading))

        rows: dict[str, list[tuple[str, str]]] = {"Options": []}
        rows |= {heading: [] for heading in _OPTION_GROUPS}
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx)
            if record is not None and isinstance(option, click.Option):
                heading = heading_of_option.get(str(option.name), "Options")
                rows[heading].append(record)

        for heading, records in rows.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)

    def invoke(self, ctx: click.Context) -> object:
        """Check where the outputs go, and call the function."""
        _check_outputs(
            get_paths(ctx, Output),
            get_paths(ctx, click.Path),
            force=ctx.params.get("force", False),
        )
        return super().invoke(ctx)


def get_paths(ctx: click.Context, kind: type[click.Path]) -> list[str]:
    """Return the files among the values of a command's arguments and options.

    Parameters
    ----------
    ctx : click.Context
        The running command.
    kind : type
        `Output` for files that are written, `click.Path` for files that are read.

    Returns
    -------
    list of str
    """
    paths: list[str] = []
    for option in ctx.command.params:
        if type(option.type) is kind and option.type.file_okay:
            value = ctx.params[str(option.name)]
            if isinstance(value, str):
                paths.append(value)
            elif value:
                paths += value

    return paths


def _check_outputs(outputs: Sequence[str], inputs: Sequence[str], force: bool) -> None:
    """Check that outputs can be written, differ, and are not among the inputs."""
    places: set[str] = set()
    for output in outputs:
        library.check_output(output, force=force)
        place = os.path.realpath(output)
        if place in places:
            raise InputError(
                where=output,
                found="the place of another output",
                expected="one for each",
            )
        if any(library.is_read_with(output, file) for file in inputs):
            raise InputError(
                where=output,
                found="among the input files too",
                expected="another place for the output",
            )

        places.add(place)


command = partial(click.command, cls=Command)


def compose_options(*options: Decorator) -> Decorator:
    """Return one decorator for several options, which the help lists in this order."""

    def decorate(function: CommandFunction) -> CommandFunction:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def option_group(name: str, record: type, *options: Decorator) -> Decorator:
    """Return a decorator that adds options and collects their values in a record.

    Parameters
    ----------
    name : str
        The keyword under which the function receives the record.
    record : type
        A dataclass whose fields are the names of the options.
    *options : callable
        Decorators of click, in the order of the help.

    Returns
    -------
    callable
    """
    field_names = [field.name for field in fields(record)]

    add_options = compose_options(*options)

    def decorate(function: CommandFunction) -> CommandFunction:
        @wraps(function)
        def call(**values: object) -> None:
            group = {field: values.pop(field) for field in field_names}
            function(**values, **{name: record(**group)})

        return add_options(call)

    return decorate


def complete_format(ctx: object, option: object, start: str) -> list[str]:
    """Return the formats that begin with `start`, for completion in a shell."""
    return [name for name in mlc.io.FORMATS if name.startswith(start)]


def complete_method(ctx: object, option: object, start: str) -> list[str]:
    """Return the methods that begin with `start`, for completion in a shell."""
    return [name for name in list_methods() if name.startswith(start)]


def list_methods() -> list[str]:
    """Return the names of all methods, as the command line spells them."""
    return [identifier.replace("_", "-") for identifier in mlc.COMBINERS]


selection_option = partial(
    click.option, type=click.Choice(["union", "intersection"]), default="union"
)
format_option = partial(click.option, metavar="NAME", shell_complete=complete_format)

_READ_OPTIONS = compose_options(
    click.option("--columns", metavar="ROLE=COLUMN,...", help=_COLUMNS),
    click.option(
        "--vocabulary",
        metavar="FILE",
        help="A file with the labels to use, one per line; others are left out.",
    ),
    click.option(
        "--aliases",
        metavar="FILE",
        help="A table with other names of labels, as labels --suggest writes it.",
    ),
    click.option(
        "--ignore-case",
        is_flag=True,
        help="Treat labels that differ in upper and lower case as one.",
    ),
    click.option(
        "--strict",
        is_flag=True,
        help="Refuse lists of labels and tables that are not exactly as documented.",
    ),
    click.option(
        "--skip-bad",
        is_flag=True,
        help="Leave out JSON answers that cannot be read: they count as missing.",
    ),
    click.option("--confidences", metavar="FILE", help=_CONFIDENCES),
    click.option(
        "--all-know-labels",
        is_flag=True,
        help="All models chose from the same labels: what one does not list is a no.",
    ),
)
_PANEL_OPTIONS = compose_options(
    click.argument("files", nargs=-1, required=True, metavar="FILE..."),
    format_option(
        "--format",
        "input_format",
        help="Format of the files, if their suffixes do not show it.",
    ),
    selection_option(
        "--instances",
        help="Use the instances of any model (union), or of all (intersection).",
    ),
    selection_option(
        "--labels", help="Use the labels of any model (union), or of all models."
    ),
    _READ_OPTIONS,
)

reading_options = option_group("reading", ReadOptions, _READ_OPTIONS)
panel_options = option_group("inputs", PanelOptions, _PANEL_OPTIONS)
large_options = option_group(
    "inputs",
    LargePanelOptions,
    _PANEL_OPTIONS,
    click.option("--stream/--no-stream", default=None, help=_STREAM),
    click.option(
        "--dask",
        is_flag=False,
        flag_value=_LOCAL_CLUSTER,
        metavar="[ADDRESS]",
        help=_DASK,
    ),
)


class MethodOption(click.Option):
    """An option whose help lists all methods in place of the word METHODS.

    The methods are imported only when the help is printed.
    """

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the option's name and its help."""
        record = super().get_help_record(ctx)
        if record is None:
            return None

        name, text = record
        return name, text.replace("METHODS", ", ".join(list_methods()))


method_option = partial(
    click.option, cls=MethodOption, metavar="NAME", shell_complete=complete_method
)

families_option = click.option("--families", metavar="FILE", help=_FAMILIES)
method_options = option_group(
    "combining",
    MethodOptions,
    method_option(
        "--method",
        help="The method, one of METHODS.  [default: weighted-consensus]",
    ),
    families_option,
    click.option(
        "--weight",
        multiple=True,
        metavar="MODEL=NUMBER",
        help="Weight of a model's predictions, if it is not 1; repeatable.",
    ),
    click.option("--clustering", multiple=True, metavar="FILE", help=_CLUSTERING),
    click.option("--rescale", is_flag=True, help=_RESCALE),
)

gold_options = compose_options(
    click.option("--gold", metavar="FILE", help=_GOLD),
    click.option("--drawn", type=click.Choice(["random"]), help=_DRAWN),
)
written_option = partial(click.option, type=Output(), metavar="FILE")
output_option = partial(written_option, "--output", "-o")
force_option = click.option("--force", is_flag=True, help="Replace an existing output.")
json_option = partial(click.option, "--json", "as_json", is_flag=True)


def parse_families(text: str | None) -> str | dict[str, str] | None:
    """Return the families of models that `--families` sets.

    Parameters
    ----------
    text : str or None
        ``"independent"``, ``"by-name"``, or a table with a model and its family in each
        row.

    Returns
    -------
    str, dict of str to str, or None
    """
    if text is None or text in ("independent", "by-name"):
        return text
    return library.read_pairs(text, "model", "family")


def parse_weights(texts: Sequence[str]) -> dict[str, float] | None:
    """Return the weights of models that `--weight` sets, or None without any.

    Examples
    --------
    >>> parse_weights(["ann=2", "bob=0.5"])
    {'ann': 2.0, 'bob': 0.5}
    """
    weights: dict[str, float] = {}
    for text in texts:
        model, _, number = text.rpartition("=")
        if model in weights:
            raise InputError(
                where="--weight", found=f"{model!r} twice", expected="each model once"
            )

        try:
            weights[model] = float(number if model else "")
        except ValueError:
            raise InputError(
                where="--weight",
                found=repr(text),
                expected="a model's name, = and a number",
            ) from None

    return weights or None


def parse_columns(text: str | None) -> dict[str, str]:
    """Return the columns by role that `--columns` names.

    Examples
    --------
    >>> parse_columns("model=annotator,label=tag")
    {'model': 'annotator', 'label': 'tag'}
    """
    columns: dict[str, str] = {}
    if not text:
        return columns

    for item in text.split(","):
        role, mark, column = (part.strip() for part in item.partition("="))
        if not (role and mark and column):
            raise InputError(
                where="--columns",
                found=repr(item),
                expected="such as label=tag, with commas between",
            )
        if role in columns:
            raise InputError(
                where="--columns", found=f"{role!r} twice", expected="each once"
            )

        columns[role] = column

    return columns


def print_missing(n_missing: int, shape: tuple[int, int, int]) -> None:
    """Print how many predictions of this shape are missing, if any are."""
    if not n_missing:
        return

    m, n, l = shape
    share = n_missing / (m * n * l)
    print_message(
        f"{share:.1%} of the {m:,} × {n:,} × {l:,} predictions are missing (instances "
        "a model has not seen, labels it does not know, empty cells); they do not "
        "count as no"
    )


def format_json(value: object) -> str:
    """Return valid JSON; numbers that are not finite become null."""
    return json.dumps(library.plain(value), allow_nan=False)


def print_done(as_json: bool, *lines: str, **facts: object) -> None:
    """Print facts as JSON on standard output, or else lines on standard error."""
    if as_json:
        click.echo(format_json(facts))
        return

    for line in lines:
        print_message(line)


def print_message(message: str) -> None:
    """Print a line on standard error, which is not part of a pipe."""
    click.echo(safe(message), err=True)
