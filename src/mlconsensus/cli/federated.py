"""The commands for sites that do not share data: `statistics`, `solve`, `apply`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

import mlconsensus as mlc

from ..errors import InputError
from ..text import plural, sizes
from . import library
from .options import (
    LargePanelOptions,
    command,
    force_option,
    large_options,
    method_option,
    output_option,
    print_done,
    written_option,
)
from .output import OutputOptions, done_option, output_options

if TYPE_CHECKING:
    from ..combiners.base import BaseCombiner
    from ..predictions.source import BasePredictions

_METHOD = "The method they are for, one of METHODS.  [default: weighted-consensus]"
_AFTER = (
    "The file that solve wrote after the previous pass, for methods with several "
    "passes (weighted-consensus)."
)
_LABEL_NAMES = (
    "A file with the labels that all sites use, one per line. Some may be missing in "
    "the predictions; other labels are refused."
)
_EPSILON = "Add noise, so that the file is (ε, δ)-differentially private."
_CLIP = (
    "With --epsilon and mlcm-a: the clipping norm (docs/privacy.md).  [default: 1.5]"
)


@command(
    "statistics",
    short_help="Compute the statistics of one site.",
)
@large_options
@output_option(required=True, help="File to write.")
@method_option("--method", help=_METHOD)
@click.option("--after", metavar="FILE", help=_AFTER)
@click.option("--label-names", metavar="FILE", help=_LABEL_NAMES)
@click.option("--epsilon", type=float, metavar="E", help=_EPSILON)
@click.option(
    "--delta",
    type=float,
    metavar="D",
    help="With --epsilon: far below 1 / number of instances, such as 1e-6.",
)
@click.option("--clip", type=float, metavar="C", help=_CLIP)
@force_option
@done_option
def statistics(
    *,
    inputs: LargePanelOptions,
    output: str,
    method: str | None,
    after: str | None,
    label_names: str | None,
    epsilon: float | None,
    delta: float | None,
    clip: float | None,
    force: bool,
    as_json: bool,
) -> None:
    """Compute sums over the instances in FILE..., which contain no single instance.

    'mlconsensus solve' merges the files of all sites into one model.
    'mlconsensus apply' applies the model where the data is.

    \b
    Examples:
      mlconsensus statistics site_a/*.parquet --method mlcm-r --output a.stats
      mlconsensus statistics *.csv --method mlcm-r --epsilon 1 --delta 1e-6 -o a.stats
    """
    # Check all options before the work.
    combiner, is_continued = _create_combiner(method, after)
    _check_privacy_options(epsilon, delta, clip, combiner.identifier)
    clip_norm = library.DEFAULT_CLIP if clip is None else clip
    if epsilon is not None and delta is not None:
        library.check_budget(
            type(combiner), epsilon=epsilon, delta=delta, clip=clip_norm
        )

    common_labels = None
    if label_names is not None:
        common_labels = library.read_names(label_names)

    with inputs.open() as predictions:
        if common_labels is not None:
            predictions = predictions.with_labels(common_labels)
        if is_continued:
            predictions = predictions.with_labels(combiner.labels_)
            predictions = predictions.with_models(combiner.models_)
        if epsilon is not None and delta is not None:
            mlc.privacy.fit(
                combiner, predictions, epsilon=epsilon, delta=delta, clip=clip_norm
            )
        else:
            combiner.fit_pass(predictions, combiner.state_)

    mlc.save_statistics(combiner, output, force=force)
    print_done(
        as_json,
        _describe_statistics(combiner, predictions, output),
        method=combiner.identifier,
        round=combiner.progress(),
        models=predictions.models,
        labels=len(predictions.labels),
        instances=combiner.n_instances_,
        privacy=combiner.privacy_,
        output=output,
    )


def _create_combiner(
    method: str | None, after: str | None
) -> tuple[BaseCombiner, bool]:
    """Return the combiner to fit, and whether it continues an earlier round."""
    if after is None:
        combiner_class = mlc.COMBINERS[
            library.find_identifier(method or "weighted_consensus")
        ]
        return combiner_class(), False

    combiner = mlc.load(after)
    if method is not None:
        name = library.find_identifier(method)
        if name != combiner.identifier:
            raise InputError(
                where="--method",
                found=name,
                expected=f"{combiner.identifier} as in {after}",
            )
    if hasattr(combiner, "statistics_") or combiner.state_ is None:
        raise InputError(
            where=after,
            found="no round to go on from",
            expected="what 'solve' made of sites' statistics",
        )

    return combiner, True


def _check_privacy_options(
    epsilon: float | None, delta: float | None, clip: float | None, method: str
) -> None:
    """Check options of differential privacy that depend on each other."""
    if delta is not None and epsilon is None:
        raise InputError(where="--delta", found="no --epsilon", expected="both")
    if epsilon is not None and delta is None:
        raise InputError(where="--epsilon", found="no --delta", expected="both")
    if clip is not None and (epsilon is None or method != "mlcm_a"):
        raise InputError(
            where="--clip",
            found="without --epsilon and --method mlcm-a",
            expected="both",
        )


def _describe_statistics(
    combiner: BaseCombiner, predictions: BasePredictions, output: str
) -> str:
    """Return a line about the statistics that were written."""
    guarantee = combiner.privacy_
    if guarantee is not None:
        n_models = plural(len(predictions.models), "model")
        n_labels = plural(len(predictions.labels), "label")
        return (
            f"gathered private statistics ({guarantee}) of {n_models} × {n_labels} for "
            f"{combiner.identifier} → {output}; the names of models and labels are in it, "
            "the exact number of instances is not"
        )

    progress = ""
    if combiner.passes:
        progress = f", {combiner.progress()},"

    shape = sizes(predictions.shape)
    return (
        f"gathered statistics{progress} of {shape} for {combiner.identifier} → {output}"
    )


@command("solve", short_help="Merge the statistics of all sites into one model.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@output_option(required=True, help="File to write: the model.")
@click.option(
    "--without",
    multiple=True,
    metavar="FILE",
    help="Subtract these statistics from the sum; repeatable.",
)
@written_option(
    "--sums", help="Also write the sum, to which statistics can be added later."
)
@force_option
@done_option
def solve(
    *,
    files: tuple[str, ...],
    output: str,
    without: tuple[str, ...],
    sums: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Merge the statistics in FILE..., one file per site, and write the model.

    The model is the same as that of the data of all sites together.

    \b
    Examples:
      mlconsensus solve a.stats b.stats c.stats --output consensus.model
      mlconsensus solve week.stats --without monday.stats --sums new.stats -o new.model
    """
    combiner = mlc.merge([mlc.load(file) for file in files], files)
    for file in without:
        if [*files, *without].count(file) > 1:
            raise InputError(
                where=file,
                found="it given twice",
                expected="each once: what is not to count is left out of FILE...",
            )

        combiner = mlc.subtract(combiner, mlc.load(file), ("the sum", file))

    if sums is not None:
        mlc.save_statistics(combiner, sums, force=force)
    mlc.save(combiner, output, force=force)

    lines = [_describe_model(combiner, len(files), len(without), output)]
    unfinished_round = None
    if combiner.unfinished:
        unfinished_round = combiner.progress()
        lines.append(
            f"every site goes on with 'mlconsensus statistics … --after {output}'"
        )

    print_done(
        as_json,
        *lines,
        method=combiner.identifier,
        models=combiner.models_,
        labels=len(combiner.labels_),
        instances=combiner.n_instances_,
        sites=len(files),
        privacy=combiner.privacy_,
        unfinished=unfinished_round,
        output=output,
    )


def _describe_model(
    combiner: BaseCombiner, n_files: int, n_without: int, output: str
) -> str:
    """Return a line about the model that was written."""
    name = combiner.identifier
    if combiner.unfinished:
        name = f"{combiner.progress()} of {name}"

    files = plural(n_files, "file")
    if n_without:
        files += f", without {plural(n_without, 'file')},"

    if combiner.privacy_ is None:
        data = plural(combiner.n_instances_ or 0, "instance")
    else:
        data = f"private statistics ({combiner.privacy_})"

    n_models = plural(len(combiner.models_), "model")
    n_labels = plural(len(combiner.labels_), "label")
    return (
        f"solved {name} for {n_models} × {n_labels} from {files} of {data} → {output}"
    )


@command("apply", short_help="Combine new predictions with a saved model.")
@click.argument("model", metavar="MODEL")
@large_options
@output_options
@click.option(
    "--gold",
    metavar="FILE",
    help="Gold labels that correct the model of the default method.",
)
def apply(
    model: str, inputs: LargePanelOptions, writing: OutputOptions, gold: str | None
) -> None:
    """Combine the predictions in FILE... with the MODEL that solve has written.

    The predictions may have only some of its models and labels: others are missing.

    \b
    Examples:
      mlconsensus apply consensus.model site_a/*.parquet --output consensus.parquet
      mlconsensus apply consensus.model *.csv --gold answers.csv -o consensus.csv
    """
    writing.check()
    combiner = mlc.load(model)
    gold_table = inputs.read_gold(gold)
    with inputs.open(writing.check_streaming) as predictions:
        predictions = predictions.with_labels(combiner.labels_)
        predictions = predictions.with_models(combiner.models_)
        if gold_table is not None:
            predictions = predictions.with_gold(gold_table)
            combiner.fit_gold(predictions)

        written = writing.apply(predictions, combiner)

    writing.print_done(
        f"applied {written.method} to {sizes(predictions.shape)}",
        predictions,
        method=written.method,
        models=list(combiner.models_),
        missing=written.n_missing,
    )
