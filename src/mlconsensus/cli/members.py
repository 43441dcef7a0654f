"""Options on the panel's members: how much models count, one scale for their scores, and clusterings beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from ..panel.predictions import Predictions

F = TypeVar("F", bound=Callable[..., Any])


def member_options(command: F) -> F:
    """Add weights, clusterings and one scale."""
    for option in (
        click.option(
            "--rescale",
            is_flag=True,
            help="Bring scores that live on different scales to one; the method filter does so by itself.",
        ),
        click.option(
            "--clustering",
            multiple=True,
            metavar="FILE",
            help="A clustering of the instances beside the models: a table of instances and their clusters. For mlcm-r "
            "and bgcm; may be given several times.",
        ),
        click.option(
            "--weight",
            multiple=True,
            metavar="MODEL=NUMBER",
            help="Let a model count more or less than the others' 1; may be given several times.",
        ),
    ):
        command = option(command)
    return command


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
            weight = float(number)
        except ValueError:
            weight = None
        if not model or weight is None:
            raise InputError(f"--weight: found {text!r}, expected a model's name, = and a number")
        if model in found:
            raise InputError(f"--weight: found {model!r} twice, expected each model once")
        found[model] = weight
    return found or None


def with_members(panel: Predictions, clustering: Sequence[str], rescale: bool) -> Predictions:
    """Do what `--rescale` and `--clustering` ask for."""
    from ..errors import InputError
    from ..estimators import rescale as rescaled
    from ..io.clusterings import read_clustering

    names = [Path(path).name.split(".")[0] for path in clustering]
    if len(set(names)) < len(names):
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise InputError(f"--clustering: found two files called {twice!r}, expected each name once")
    panel = rescaled(panel) if rescale else panel
    return panel.with_clusterings({name: read_clustering(path) for name, path in zip(names, clustering, strict=True)})
