"""`mlconsensus statistics`: what one site's panel adds to a consensus of several sites, as one small file."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any

import click

from ..terminal import counted, sizes
from .large import dask_option, scanned, stays_on_disk, stream_option
from .options import PanelFiles, grouped, method_option, panel_options, read_panel, say
from .output import check_place


@click.command("statistics", short_help="Gather a site's statistics, to be solved with other sites'.")
@panel_options
@click.option("--output", "-o", required=True, metavar="FILE", help="Where to write the statistics.")
@method_option("--method", default="filter", show_default=True, help="The method they are for, one of METHODS.")
@click.option(
    "--after",
    metavar="FILE",
    help="What 'solve' made of all sites' files of the round before, for a method that takes several (filter).",
)
@click.option(
    "--label-names",
    metavar="FILE",
    help="The labels that all sites use, one a line; the panel may lack some, and others are refused.",
)
@click.option(
    "--epsilon", type=float, metavar="E", help="Add noise, so that the file is (ε, δ)-differentially private."
)
@click.option("--delta", type=float, metavar="D", help="With --epsilon; far below 1 / number of instances, as 1e-6.")
@click.option(
    "--clip", type=float, metavar="C", help="With --epsilon, for mlcm-a; see docs/privacy.md.  [default: 1.5]"
)
@stream_option
@dask_option
@click.option("--force", is_flag=True, help="Replace an existing output.")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON on standard output.")
@grouped(source=PanelFiles)
def command(
    source: PanelFiles, output: str, method: str, after: str | None, label_names: str | None, epsilon: float | None,
    delta: float | None, clip: float | None, stream: bool | None, dask: str | None, force: bool, as_json: bool,
) -> None:  # fmt: skip
    """Add up what the panel in FILE... says into one file of sums, in which no instance is listed.

    'mlconsensus solve' adds up the files of all sites and makes one model of them, 'mlconsensus apply' applies it where
    the data is.

    \b
    Examples:
      mlconsensus statistics site_a/*.parquet --method mlcm-r --output a.stats
      mlconsensus statistics *.csv --method mlcm-r --epsilon 1 --delta 1e-6 --output a.stats
    """
    from ..errors import InputError
    from ..estimators import COMBINERS, method_named
    from ..io.labels import read_names
    from ..sites.state import load, save_statistics

    check_place(source.files, output, force)
    before = None if after is None else load(after)
    name = method_named(method) if before is None else before.name
    kind = COMBINERS[name]
    # Scores stay on their own scales: which of them is every site's is not known before the first round.
    combiner = before or (kind(rescale=False) if "rescale" in kind().get_params() else kind())
    if before is not None and (hasattr(before, "statistics_") or before.prepared_ is None):
        raise InputError(f"{after}: found no round to go on from, expected what 'solve' made of sites' statistics")
    if (epsilon is None) != (delta is None):
        given, other = ("--epsilon", "--delta") if delta is None else ("--delta", "--epsilon")
        raise InputError(f"{given}: found no {other} beside it, expected both")
    if clip is not None and (epsilon is None or name != "MLCM-a"):
        raise InputError("--clip: found without --epsilon and --method mlcm-a, expected both beside it")
    budget = {"epsilon": epsilon, "delta": delta} | ({} if clip is None else {"clip": clip})
    if epsilon is not None:
        from ..sites import privacy

        privacy.check(kind, **budget)  # type: ignore[arg-type]
    names = None if label_names is None else read_names(label_names)
    on_disk = stays_on_disk(source.files, source.input_format, stream, dask)
    reading: Any = scanned(source, dask) if on_disk else nullcontext(read_panel(source))
    with reading as panel:
        if names is not None:
            panel = panel.with_labels(names)
        if panel.has_scores and "rescale" in kind().get_params():
            say("scores are taken as they are: bringing them to one scale would need all sites' instances")
        if before is not None:
            panel = panel.with_labels(before.labels_).with_models(before.models_)
        if epsilon is None:
            combiner.fit_round(panel, combiner.prepared_)
        else:
            privacy.fit(combiner, panel, **budget)  # type: ignore[arg-type]
    save_statistics(combiner, output, force=force)
    n = combiner.n_instances_
    if as_json:
        guarantee = combiner.privacy_ and combiner.privacy_._asdict()
        done = {"method": name, "round": combiner.progress(), "models": list(panel.models), "labels": len(panel.labels)}
        click.echo(json.dumps(done | {"instances": n, "privacy": guarantee, "output": output}))
    elif combiner.privacy_ is None:
        round_of = f", {combiner.progress()}," if combiner.rounds else ""
        say(f"gathered statistics{round_of} of {sizes(panel.shape)} for {name} → {output}")
    else:
        say(
            f"gathered private statistics ({combiner.privacy_}) of {counted(len(panel.models), 'model')} × "
            f"{counted(len(panel.labels), 'label')} for {name} → {output}; "
            "the names of models and labels are in it, the exact number of instances is not"
        )
