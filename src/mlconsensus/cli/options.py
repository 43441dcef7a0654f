"""Options that several commands share, declared once; those that belong together reach a command as one object."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from ..errors import InputError, expect
from ..terminal import safe

if TYPE_CHECKING:
    from ..io.labels import Reading
    from ..panel.model_tables import ModelTable
    from ..panel.predictions import Predictions

F = TypeVar("F", bound=Callable[..., Any])

_METRICS = click.Choice(["auto", "ranking-loss", "micro-auc", "one-error", "average-precision"])
_CLUSTERING = "A table of instances and their clusters, heard beside the models by mlcm-r and bgcm; repeatable."
_RESCALE = "Bring scores that live on different scales to one; the method filter does so by itself."

_COLUMNS = "Which columns of long tables are which: model=annotator,instance=item,label=tag and perhaps score=…"

with_default = partial(click.option, show_default=True)


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Make one decorator of several options, which the help lists in this order."""

    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def grouped(**kinds: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Hand the options that are fields of a named tuple to a command as one argument."""

    def wrap(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def call(*arguments: Any, **given: Any) -> None:
            groups = {name: kind(*map(given.pop, kind._fields)) for name, kind in kinds.items()}
            command(*arguments, **groups, **given)

        return call

    return wrap


class PanelFiles(NamedTuple):
    """The files of a panel, and how to read and match them."""

    files: tuple[str, ...]
    input_format: str | None
    instances: str
    labels: str
    columns: str | None
    strict: bool
    skip_bad: bool
    vocabulary: str | None
    aliases: str | None
    ignore_case: bool

    def reading(self) -> Reading:
        """Return how the files are to be read, as the readers take it; the truth is read the same way."""
        found: Any = dict(zip(self._fields[4:], self[4:], strict=True))
        return found | {"columns": columns_of(self.columns)}  # type: ignore[no-any-return]

    def matched(self) -> dict[str, Any]:
        """Return how the files are to be read and matched."""
        return {"format": self.input_format, "instances": self.instances, "labels": self.labels, **self.reading()}


def format_names(ctx: object, option: object, start: str) -> list[str]:
    """List the formats that begin so, for a shell to complete."""
    from ..io import FORMATS

    return [name for name in FORMATS if name.startswith(start)]


def method_names(ctx: object = None, option: object = None, start: str = "") -> list[str]:
    """List the methods that begin so, as the command line calls them."""
    from ..combiners import METHODS

    # `estimators` knows registered methods too, but imports scikit-learn; if nobody has used it, there are none.
    estimators = sys.modules.get("mlconsensus.estimators")
    names = estimators.COMBINERS if estimators else [method.name for method in METHODS]
    return [name.lower() for name in names if name.lower().startswith(start)]


kept = partial(with_default, type=click.Choice(["union", "intersection"]), default="union")
format_option = partial(click.option, metavar="NAME", shell_complete=format_names)
panel_options = together(
    click.argument("files", nargs=-1, required=True, metavar="FILE..."),
    format_option("--format", "input_format", help="Format of the files, where suffixes do not tell."),
    kept("--instances", help="Keep the instances that any model has seen, or those that all have."),
    kept("--labels", help="Keep the labels that any model knows, or those that all know."),
    click.option("--columns", metavar="ROLE=COLUMN,...", help=_COLUMNS),
    click.option("--vocabulary", metavar="FILE", help="The labels that count, one a line; others are left out."),
    click.option("--aliases", metavar="FILE", help="A table of other names of labels: name, stands for."),
    click.option("--ignore-case", is_flag=True, help="Labels that differ in upper and lower case are one."),
    click.option("--strict", is_flag=True, help="Refuse tags and tables that are not exactly as documented."),
    click.option("--skip-bad", is_flag=True, help="Go on without JSON answers that cannot be read."),
)


class MethodOption(click.Option):
    """An option in whose help METHODS stands for the names of all methods; these are looked up only for the help."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return what the help says of this option."""
        record = super().get_help_record(ctx)
        return record and (record[0], record[1].replace("METHODS", ", ".join(method_names())))


method_option = partial(click.option, cls=MethodOption, metavar="NAME", shell_complete=method_names)


class Choice(NamedTuple):
    """Which method to use, and which members of the panel it is to hear, how loud."""

    method: str | None
    optimize: str
    weight: tuple[str, ...]
    clustering: tuple[str, ...]
    rescale: bool

    def settings(self) -> dict[str, Any]:
        """Return what `combine` takes, checked before the work."""
        from ..estimators import method_named

        method = self.method and method_named(self.method)
        return {"method": method, "optimize": self.optimize, "weights": weights_of(self.weight)}

    def members(self, panel: Predictions) -> Predictions:
        """Do what `--rescale` and `--clustering` ask for."""
        from ..estimators import rescale
        from ..io.clusterings import read_clustering

        found: dict[str, Any] = {}
        panel = rescale(panel) if self.rescale else panel
        for path in self.clustering:
            name = Path(path).name.split(".")[0]
            expect(name not in found, "--clustering", f"two files called {name!r}", "each name once")
            found[name] = read_clustering(path)
        return panel.with_clusterings(found)


method_options = together(
    method_option("--method", help="Use this method, one of METHODS."),
    with_default("--optimize", type=_METRICS, default="auto", help="The metric that matters; it chooses the method."),
    click.option("--weight", multiple=True, metavar="MODEL=NUMBER", help="How much a model counts, not 1; repeatable."),
    click.option("--clustering", multiple=True, metavar="FILE", help=_CLUSTERING),
    click.option("--rescale", is_flag=True, help=_RESCALE),
)


_GOLD = "The truth of some instances or cells, in any format; empty cells are not known."
_DRAWN = "How the instances with gold were drawn; as ask's column of inclusion probabilities says, unless told."
gold_options = together(
    click.option("--gold", metavar="FILE", help=_GOLD),
    click.option("--drawn", type=click.Choice(["random"]), help=_DRAWN),
)


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
        expect(model not in found, "--weight", f"{model!r} twice", "each model once")
        try:
            found[model] = float(number if model else "")
        except ValueError:
            raise InputError(f"--weight: found {text!r}, expected a model's name, = and a number") from None
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
        expect(bool(role and mark and column), "--columns", repr(text), "such as label=tag, with commas between")
        expect(role not in found, "--columns", f"{role!r} twice", "each once")
        found[role] = column
    return found


def read_panel(source: PanelFiles, many: bool = False) -> Predictions:
    """Read a panel, of `many` labels only if told, and say once, in one line, how much of it is missing."""
    from ..errors import expect
    from ..io import read_predictions
    from ..panel.sources import MOST_DENSE

    panel = read_predictions(source.files, **source.matched())
    wanted = f"at most {MOST_DENSE:,} for this command, for example those of a --vocabulary"
    expect(many or not panel.many, "labels", f"{len(panel.labels):,}", wanted)
    say_missing(panel.n_missing, panel.shape)
    return panel


def read_truth(source: PanelFiles, path: str | None, partial: bool = False) -> ModelTable | None:
    """Read the truth, or (`partial`) as much of it as is known, which must not be one of the models' files."""
    from ..io import read_table
    from ..io.formats import check_apart, expanded

    if path is None:
        return None
    check_apart(path, expanded(source.files), copies=partial)
    return read_table(path, **(source.reading() | {"partial": partial}))


def say_missing(missing: int, shape: tuple[int, int, int]) -> None:
    """Say in one line how many predictions of a panel of this shape are missing, if any are."""
    if missing:
        m, n, l = shape
        say(
            f"{missing / (m * n * l):.1%} of the {m:,} × {n:,} × {l:,} predictions are missing "
            "(instances a model has not seen, labels it does not know, empty cells); they count as silence, not as no"
        )


def print_json(found: Any) -> None:
    """Print JSON that every parser reads: a figure that has no value is null."""
    import json

    from ..tables import plain

    click.echo(json.dumps(plain(found), allow_nan=False))


def say(message: str) -> None:
    """Tell the user something on standard error, where it stays out of what a pipe carries."""
    click.echo(safe(message), err=True)
