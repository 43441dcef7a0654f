"""Options that several commands share, declared once; those that belong together reach a command as one object."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from ..terminal import safe

if TYPE_CHECKING:
    from ..panel.predictions import Predictions

F = TypeVar("F", bound=Callable[..., Any])

_METRICS = click.Choice(["auto", "ranking-loss", "micro-auc", "one-error", "average-precision"])
_CLUSTERING = "A table of instances and their clusters, heard beside the models by mlcm-r and bgcm; repeatable."
_RESCALE = "Bring scores that live on different scales to one; the method filter does so by itself."

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


def panel_options_with(format_option: str) -> Callable[[F], F]:
    """Return the options of `PanelFiles`; the one that names the format is called as is said."""
    kept = partial(with_default, type=click.Choice(["union", "intersection"]), default="union")
    return together(
        click.argument("files", nargs=-1, required=True, metavar="FILE..."),
        click.option(
            format_option, "input_format", metavar="NAME", help="Format of the files, where suffixes do not tell."
        ),
        kept("--instances", help="Keep the instances that any model has seen, or those that all have."),
        kept("--labels", help="Keep the labels that any model knows, or those that all know."),
    )


panel_options = panel_options_with("--format")


class MethodOption(click.Option):
    """An option in whose help METHODS stands for the names of all methods; these are looked up only for the help."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return what the help says of this option."""
        from ..combiners import METHODS

        # `estimators` knows registered methods too, but imports scikit-learn; if nobody has used it, there are none.
        estimators = sys.modules.get("mlconsensus.estimators")
        names = estimators.COMBINERS if estimators else [method.name for method in METHODS]
        record = super().get_help_record(ctx)
        return record and (record[0], record[1].replace("METHODS", ", ".join(names).lower()))


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
        from ..errors import InputError
        from ..estimators import rescale
        from ..io.clusterings import read_clustering

        found: dict[str, Any] = {}
        panel = rescale(panel) if self.rescale else panel
        for path in self.clustering:
            name = Path(path).name.split(".")[0]
            if name in found:
                raise InputError(f"--clustering: found two files called {name!r}, expected each name once")
            found[name] = read_clustering(path)
        return panel.with_clusterings(found)


method_options = together(
    click.option("--method", cls=MethodOption, metavar="NAME", help="Use this method, one of METHODS."),
    with_default("--optimize", type=_METRICS, default="auto", help="The metric that matters; it chooses the method."),
    click.option("--weight", multiple=True, metavar="MODEL=NUMBER", help="How much a model counts, not 1; repeatable."),
    click.option("--clustering", multiple=True, metavar="FILE", help=_CLUSTERING),
    click.option("--rescale", is_flag=True, help=_RESCALE),
)


def weights_of(given: Sequence[str]) -> dict[str, float] | None:
    """Read what `--weight` said.

    Examples
    --------
    >>> weights_of(["ann=2", "bob=0.5"])
    {'ann': 2.0, 'bob': 0.5}
    """
    from ..errors import InputError

    found: dict[str, float] = {}
    for text in given:
        model, _, number = text.rpartition("=")
        try:
            weight = float(number if model else "")
        except ValueError:
            raise InputError(f"--weight: found {text!r}, expected a model's name, = and a number") from None
        if model in found:
            raise InputError(f"--weight: found {model!r} twice, expected each model once")
        found[model] = weight
    return found or None


def read_panel(files: Sequence[str], input_format: str | None, instances: str, labels: str) -> Predictions:
    """Read a panel and say once, in one line, how much of it is missing."""
    from ..io import read_predictions

    panel = read_predictions(files, format=input_format, instances=instances, labels=labels)  # type: ignore[arg-type]
    say_missing(panel.n_missing, panel.shape)
    return panel


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
