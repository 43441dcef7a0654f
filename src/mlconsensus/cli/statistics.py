"""`mlconsensus statistics`: what one site's panel adds to a consensus of several sites, as one small file."""

from typing import Any

import click

from ..errors import expect
from ..terminal import plural, sizes
from .large import large_options, opened
from .options import PanelFiles, grouped, method_option, panel_options, print_json, say
from .output import check_place, force_option, json_option

_METHOD = "The method they are for, one of METHODS."
_AFTER = "What 'solve' made of all sites' files of the round before, for a method that takes several (filter)."
_LABEL_NAMES = "The labels that all sites use, one a line; the panel may lack some, and others are refused."
_EPSILON = "Add noise, so that the file is (ε, δ)-differentially private."
_CLIP = "With --epsilon, for mlcm-a; see docs/privacy.md.  [default: 1.5]"


@click.command("statistics", short_help="Gather a site's statistics, to be solved with other sites'.")
@panel_options
@click.option("--output", "-o", required=True, metavar="FILE", help="Where to write the statistics.")
@method_option("--method", default="filter", show_default=True, help=_METHOD)
@click.option("--after", metavar="FILE", help=_AFTER)
@click.option("--label-names", metavar="FILE", help=_LABEL_NAMES)
@click.option("--epsilon", type=float, metavar="E", help=_EPSILON)
@click.option("--delta", type=float, metavar="D", help="With --epsilon; far below 1 / number of instances, as 1e-6.")
@click.option("--clip", type=float, metavar="C", help=_CLIP)
@large_options
@force_option
@json_option
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
    from ..estimators import COMBINERS, method_named
    from ..io.labels import read_names
    from ..sites import privacy
    from ..sites.state import load, save_statistics

    check_place(source.files, output, force)
    before = None if after is None else load(after)
    name = method_named(method) if before is None else before.name
    kind = COMBINERS[name]
    # Scores stay on their own scales: which of them is every site's is not known before the first round.
    combiner = before or (kind(rescale=False) if "rescale" in kind().get_params() else kind())
    goes_on = before is None or not (hasattr(before, "statistics_") or before.prepared_ is None)
    expect(goes_on, str(after), "no round to go on from", "what 'solve' made of sites' statistics")
    expect(delta is None or epsilon is not None, "--delta", "no --epsilon beside it", "both")
    expect(epsilon is None or delta is not None, "--epsilon", "no --delta beside it", "both")
    clips = clip is None or (epsilon is not None and name == "MLCM-a")
    expect(clips, "--clip", "without --epsilon and --method mlcm-a", "both beside it")
    budget: Any = {"epsilon": epsilon, "delta": delta} | ({} if clip is None else {"clip": clip})
    if epsilon is not None:
        privacy.check(kind, **budget)
    names = None if label_names is None else read_names(label_names)
    with opened(source, stream, dask) as panel:
        if names is not None:
            panel = panel.with_labels(names)
        if panel.has_scores and "rescale" in kind().get_params():
            say("scores are taken as they are: bringing them to one scale would need all sites' instances")
        if before is not None:
            panel = panel.with_labels(before.labels_).with_models(before.models_)
        if epsilon is None:
            combiner.fit_round(panel, combiner.prepared_)
        else:
            privacy.fit(combiner, panel, **budget)
    save_statistics(combiner, output, force=force)
    guarantee = combiner.privacy_
    if as_json:
        done = {"method": name, "round": combiner.progress(), "models": panel.models, "labels": len(panel.labels)}
        print_json(done | {"instances": combiner.n_instances_, "privacy": guarantee, "output": output})
    elif guarantee is None:
        round_of = f", {combiner.progress()}," if combiner.rounds else ""
        say(f"gathered statistics{round_of} of {sizes(panel.shape)} for {name} → {output}")
    else:
        size = f"{plural(len(panel.models), 'model')} × {plural(len(panel.labels), 'label')}"
        say(
            f"gathered private statistics ({guarantee}) of {size} for {name} → {output}; "
            "the names of models and labels are in it, the exact number of instances is not"
        )
