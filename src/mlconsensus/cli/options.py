"""Options that several commands share, written once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..terminal import safe

if TYPE_CHECKING:
    from ..panel.predictions import Predictions

F = TypeVar("F", bound=Callable[..., Any])


def panel_options(command: F, format_option: str = "--format") -> F:
    """Add the files of a panel and how to read and match them."""
    for option in (
        click.option(
            "--labels",
            type=click.Choice(["union", "intersection"]),
            default="union",
            show_default=True,
            help="Keep the labels that any model knows, or those that all know.",
        ),
        click.option(
            "--instances",
            type=click.Choice(["union", "intersection"]),
            default="union",
            show_default=True,
            help="Keep the instances that any model has seen, or those that all have.",
        ),
        click.option(
            format_option,
            "input_format",
            metavar="NAME",
            help="Format of the input files, where their suffix does not tell.",
        ),
        click.argument("files", nargs=-1, required=True, metavar="FILE..."),
    ):
        command = option(command)
    return command


class MethodOption(click.Option):
    """An option in whose help METHODS stands for the names of all methods; these are looked up only for the help."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return what the help says of this option."""
        from ..estimators import COMBINERS

        record = super().get_help_record(ctx)
        names = ", ".join(name.lower() for name in COMBINERS)
        return record and (record[0], record[1].replace("METHODS", names))


def method_options(command: F) -> F:
    """Add the choice of the method, by its name or by the metric that matters."""
    for option in (
        click.option(
            "--optimize",
            type=click.Choice(["auto", "ranking-loss", "micro-auc", "one-error", "average-precision"]),
            default="auto",
            show_default=True,
            help="The metric that matters; it chooses the method.",
        ),
        click.option("--method", cls=MethodOption, metavar="NAME", help="Use this method, one of METHODS."),
    ):
        command = option(command)
    return command


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

    click.echo(json.dumps(_without_nan(found), allow_nan=False))


def _without_nan(found: Any) -> Any:
    if isinstance(found, dict):
        return {key: _without_nan(value) for key, value in found.items()}
    return None if found != found else found


def say(message: str) -> None:
    """Tell the user something on standard error, where it stays out of what a pipe carries."""
    click.echo(safe(message), err=True)
