"""Sites that do not show their data: statistics of each, one model of all, and its use where the data is."""

from typing import Any

import click

import mlconsensus as mlc

from ..errors import InputError
from ..text import plural, sizes
from . import output
from .options import (
    Given,
    command,
    force_option,
    large_options,
    method_option,
    output_option,
    say,
    tell,
    written_option,
)

_METHOD = "The method they are for, one of METHODS.  [default: filter]"
_AFTER = "What 'solve' made of all sites' files of the round before, for a method that takes several (filter)."
_LABEL_NAMES = "The labels that all sites use, one a line; the panel may lack some, and others are refused."
_EPSILON = "Add noise, so that the file is (ε, δ)-differentially private."
_CLIP = "With --epsilon, for mlcm-a; see docs/privacy.md.  [default: 1.5]"


@command(
    "statistics",
    short_help="Gather a site's statistics, to be solved with other sites'.",
)
@large_options
@output_option(required=True, help="Where to write the statistics.")
@method_option("--method", help=_METHOD)
@click.option("--after", metavar="FILE", help=_AFTER)
@click.option("--label-names", metavar="FILE", help=_LABEL_NAMES)
@click.option("--epsilon", type=float, metavar="E", help=_EPSILON)
@click.option(
    "--delta",
    type=float,
    metavar="D",
    help="With --epsilon; far below 1 / number of instances, as 1e-6.",
)
@click.option("--clip", type=float, metavar="C", help=_CLIP)
@force_option
@output.done_option
def statistics(given: Given) -> None:
    """Add up what the panel in FILE... says into one file of sums, in which no instance is listed.

    'mlconsensus solve' adds up the files of all sites and makes one model of them,
    'mlconsensus apply' applies it where the data is.

    \b
    Examples:
      mlconsensus statistics site_a/*.parquet --method mlcm-r --output a.stats
      mlconsensus statistics *.csv --method mlcm-r --epsilon 1 --delta 1e-6 --output
      a.stats
    """
    from ..combiners.registry import find_method_name
    from ..federated.privacy.mechanism import check
    from ..io.label_names import read_names

    epsilon = given.epsilon
    delta = given.delta
    clip = given.clip
    if given.after is None:
        before = None
    else:
        before = mlc.load(given.after)

    if before is not None and given.method is None:
        name = before.name
    else:
        name = find_method_name(given.method or "filter")

    if not (before is None or before.name == name):
        raise InputError(
            where="--method",
            found=name,
            expected=f"{before and before.name} as in {given.after}",
        )

    kind = mlc.COMBINERS[name]
    # Scores stay on their own scales: which of them is every site's is not known before
    # the first round.
    combiner = before or (
        kind(rescale=False) if "rescale" in kind().get_params() else kind()
    )
    goes_on = before is None or not (
        hasattr(before, "statistics_") or before.prepared_ is None
    )
    if not (goes_on):
        raise InputError(
            where=str(given.after),
            found="no round to go on from",
            expected="what 'solve' made of sites' statistics",
        )
    if not (delta is None or epsilon is not None):
        raise InputError(
            where="--delta", found="no --epsilon beside it", expected="both"
        )
    if not (epsilon is None or delta is not None):
        raise InputError(
            where="--epsilon", found="no --delta beside it", expected="both"
        )

    clips = clip is None or (epsilon is not None and name == "MLCM-a")
    if not (clips):
        raise InputError(
            where="--clip",
            found="without --epsilon and --method mlcm-a",
            expected="both beside it",
        )

    budget: Any = {"epsilon": epsilon, "delta": delta} | (
        {} if clip is None else {"clip": clip}
    )
    if epsilon is not None:
        check(kind, **budget)
    if given.label_names is None:
        names = None
    else:
        names = read_names(given.label_names)

    with given.opened() as panel:
        if names is not None:
            panel = panel.with_labels(names)
        if panel.has_scores and "rescale" in kind().get_params():
            say(
                "scores are taken as they are: bringing them to one scale would need all sites' instances"
            )
        if before is not None:
            panel = panel.with_labels(before.labels_).with_models(before.models_)
        if epsilon is None:
            combiner.fit_round(panel, combiner.prepared_)
        else:
            mlc.privacy.fit(combiner, panel, **budget)

    mlc.save_statistics(combiner, given.output, force=given.force)
    guarantee = combiner.privacy_
    if combiner.rounds:
        progress = f", {combiner.progress()},"
    else:
        progress = ""

    line = f"gathered statistics{progress} of {sizes(panel.shape)} for {name} → {given.output}"
    if guarantee is not None:
        size = f"{plural(len(panel.models), 'model')} × {plural(len(panel.labels), 'label')}"
        public = "the names of models and labels are in it, the exact number of instances is not"
        line = f"gathered private statistics ({guarantee}) of {size} for {name} → {given.output}; {public}"

    done = {
        "method": name,
        "round": combiner.progress(),
        "models": panel.models,
        "labels": len(panel.labels),
    }
    tell(
        given.as_json,
        line,
        **done,
        instances=combiner.n_instances_,
        privacy=guarantee,
        output=given.output,
    )


@command("solve", short_help="Add up sites' statistics and solve them to one model.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@output_option(required=True, help="Where to write the model.")
@click.option(
    "--without",
    multiple=True,
    metavar="FILE",
    help="Take these statistics back out of the sum; repeatable.",
)
@written_option(
    "--sums", help="Write the sum too, as statistics to add to, or take from, later."
)
@force_option
@output.done_option
def solve(given: Given) -> None:
    """Add up the statistics in FILE..., one file a site, and write the model that they give.

    The model equals the one that all sites' data together would give. It has no
    statistics in it.

    \b
    Examples:
      mlconsensus solve a.stats b.stats c.stats --output consensus.model
      mlconsensus solve week.stats today.stats --without monday.stats --sums new.stats
      -o consensus.model
    """
    files = given.files
    without = given.without
    combined = mlc.merge([mlc.load(file) for file in files], files)
    for file in without:
        once = [*files, *without].count(file) == 1
        if not (once):
            raise InputError(
                where=file,
                found="it given twice",
                expected="each once: what is not to count is left out of FILE...",
            )

        combined = mlc.subtract(combined, mlc.load(file), ("the sum", file))

    if given.sums is not None:
        mlc.save_statistics(combined, given.sums, force=given.force)

    mlc.save(combined, given.output, force=given.force)
    if combined.unfinished:
        going_on = combined.progress()
    else:
        going_on = None

    m = len(combined.models_)
    l = len(combined.labels_)
    n = combined.n_instances_
    done = {
        "method": combined.name,
        "models": combined.models_,
        "labels": l,
        "instances": n,
    }
    done |= {
        "sites": len(files),
        "privacy": combined.privacy_,
        "unfinished": going_on,
        "output": given.output,
    }
    if combined.privacy_ is None:
        of = plural(n or 0, "instance")
    else:
        of = f"private statistics ({combined.privacy_})"

    if going_on is None:
        what = combined.name
    else:
        what = f"{going_on} of {combined.name}"

    sites = plural(len(files), "file") + (
        f", without {plural(len(without), 'file')}," if without else ""
    )
    line = f"solved {what} for {plural(m, 'model')} × {plural(l, 'label')} from {sites} of {of} → {given.output}"
    next_line = (
        f"every site goes on with 'mlconsensus statistics … --after {given.output}'"
    )
    tell(given.as_json, *([line] if going_on is None else [line, next_line]), **done)


@command("apply", short_help="Apply a solved model to a panel.")
@click.argument("model", metavar="MODEL")
@large_options
@output.output_options
@click.option(
    "--gold",
    metavar="FILE",
    help="Answers that are known here, to correct the rater filter's model by.",
)
def apply(given: Given) -> None:
    """Combine the predictions in FILE... by the MODEL that 'mlconsensus solve' wrote.

    The panel may lack some of the models and labels that it was solved for: they count
    as silence.

    \b
    Examples:
      mlconsensus apply consensus.model site_a/*.parquet --output consensus.parquet
      mlconsensus apply consensus.model site_a/*.parquet --gold answers.csv --output
      consensus.parquet
    """
    output.check(given)
    combiner = mlc.load(given.model)
    known = given.known(given.gold, partial=True)
    with given.opened(lambda: output.check_streamed(given)) as panel:
        panel = panel.with_labels(combiner.labels_).with_models(combiner.models_)
        if known is not None:
            panel = panel.with_gold(known)
            combiner.teach(panel)

        done = output.write(given, panel, solved=True, method=combiner)

    facts = {
        "method": done.method,
        "models": list(combiner.models_),
        "missing": done.n_missing,
    }
    output.say_done(
        given, f"applied {done.method} to {sizes(panel.shape)}", panel, **facts
    )
