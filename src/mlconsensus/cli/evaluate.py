"""The commands that measure quality: `agreement`, `labels`, `compare`, `evaluate`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

import mlconsensus as mlc

from ..errors import InputError
from ..text import plural, table
from . import library
from .options import (
    PanelOptions,
    ReadOptions,
    command,
    families_option,
    force_option,
    format_json,
    format_option,
    gold_options,
    json_option,
    panel_options,
    parse_families,
    print_message,
    reading_options,
    written_option,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..inspection.similar_labels import Alias
    from ..metrics.estimate import Estimate
    from ..metrics.ground_truth import MatchedTruth
    from ..predictions import FloatArray, Matrix, Names, ScoreTable
    from ..predictions.families import FamiliesLike

# Intervals are computed up to this number of instance-label pairs. With more, they
# would take longer than all other work, and would be very narrow.
_MAX_PAIRS = 20_000_000


@command("agreement", short_help="Show how far models agree beyond chance.")
@panel_options
@families_option
@json_option(help="Print JSON, with every label, model and pair.")
def agreement(inputs: PanelOptions, families: str | None, as_json: bool) -> None:
    """Print how far the models or annotators in FILE... agree.

    The metrics are Krippendorff's α, Cohen's κ and percent agreement, over predictions
    that at least two of them share, for each label, each model and pairs of models,
    with 95 % intervals from the bootstrap over instances. Those that agree least come
    first. With --families, each family counts as one model: the mean of its members.

    \b
    Examples:
      mlconsensus agreement ann.csv bob.csv cleo.csv
      mlconsensus agreement gpt-t0.csv gpt-t1.csv ann.csv --families by-name
    """
    stated = parse_families(families)
    predictions, _ = inputs.read_to_show()
    result = mlc.agreement(predictions, stated)
    if as_json:
        click.echo(format_json(result))
    else:
        click.echo(result.to_text())


@command("labels", short_help="List labels with similar names.")
@panel_options
@written_option(
    "--suggest",
    help="Write them as a CSV file for --aliases; check it before you use it.",
)
@force_option
@json_option(help="Print JSON.")
def labels(
    inputs: PanelOptions, suggest: str | None, force: bool, as_json: bool
) -> None:
    """List labels in FILE... with similar names, such as Politics and politics.

    The name that is used more often replaces the others. --aliases of all commands
    reads the file that --suggest writes.

    \b
    Example:
      mlconsensus labels a.csv b.jsonl --suggest aliases.csv
      mlconsensus combine a.csv b.jsonl --aliases aliases.csv --output consensus.csv
    """
    counts = mlc.io.label_counts(
        inputs.files, format=inputs.input_format, **inputs.get_reading()
    )
    aliases = library.similar_labels(counts)
    if as_json:
        click.echo(format_json(aliases))
    elif aliases:
        click.echo(_format_aliases(aliases))
    else:
        print_message(f"no two of {plural(len(counts), 'label')} look alike")

    if suggest is not None:
        _write_aliases(aliases, suggest, force)
        suggestions = plural(len(aliases), "suggestion")
        print_message(
            f"{suggestions} → {suggest}; look through them before you use them"
        )


def _format_aliases(aliases: Sequence[Alias]) -> str:
    """Return a table of similar labels."""
    rows = []
    for alias in aliases:
        rows.append(
            (
                repr(alias.name),
                repr(alias.stands_for),
                f"{alias.similarity:.2f}",
                alias.used,
                alias.other_used,
            )
        )

    heads = ["name", "looks like", "similarity", "used", "that one"]
    return table(heads, rows, n_left=2)


def _write_aliases(aliases: Sequence[Alias], path: str, force: bool) -> None:
    """Write similar labels as a CSV file."""
    import polars as pl

    columns = {
        "name": [alias.name for alias in aliases],
        "stands for": [alias.stands_for for alias in aliases],
    }
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    with mlc.io.atomic_write(path, force) as file:
        frame.write_csv(file)


@command("compare", short_help="Compare all methods, with or without ground truth.")
@panel_options
@click.option(
    "--truth",
    metavar="FILE",
    help="The relevant labels of all instances, in any format. Without it, methods are "
    "compared on models that are held out.",
)
@gold_options
@click.option(
    "--leave-out",
    is_flag=True,
    help="With --gold: estimate the loss without each of the models.",
)
@click.option(
    "--each-model",
    is_flag=True,
    help="With --truth: evaluate each model too, not only their mean.",
)
@families_option
@json_option(help="Print JSON.")
def compare(
    *,
    inputs: PanelOptions,
    truth: str | None,
    gold: str | None,
    drawn: str | None,
    leave_out: bool,
    each_model: bool,
    families: str | None,
    as_json: bool,
) -> None:
    """Combine the predictions in FILE... with every method and print how good each is.

    The ground truth is used to evaluate, never to combine. BM is the mean of the
    models' own metrics, each on the instances and labels that it has predicted; a model
    that has predicted less than half of all is never marked as best.

    With --gold, gold labels of some instances are used to evaluate: each metric has a
    90 % interval, and differences to voting are paired. Methods learn from gold labels
    too, but never from those that they are evaluated with.

    --leave-out compares weighted consensus without each model with that of all models.

    Without either, families of models are held out in turn. The table shows how much
    better than voting each method ranks the predictions of the models that it has not
    seen, with 90 % intervals. A method is recommended only if the gain is significant
    and does not depend on one family.

    The last lines list families of related models and the effective number of models.
    --families FILE states the families instead, --families independent ignores them.

    \b
    Examples:
      mlconsensus compare a.csv b.csv c.csv --truth truth.csv
      mlconsensus compare a.csv b.csv c.csv --gold answers.csv --drawn random
      mlconsensus compare a.csv b.csv c.csv
    """
    _check_compare_options(
        truth=truth,
        gold=gold,
        each_model=each_model,
        leave_out=leave_out,
    )
    stated = parse_families(families)

    # Each branch reads its references before the predictions.
    if truth is not None:
        truth_table = inputs.read_truth(truth)
        predictions = inputs.read(many=True)
        results, text, note = _compare_with_truth(
            predictions, truth_table, each_model, stated
        )
    elif gold is not None:
        gold_table = inputs.read_gold(gold)
        predictions = inputs.read()
        compare_with_gold = mlc.leave_out if leave_out else mlc.compare
        results, text = _describe(
            compare_with_gold(predictions, gold_table, drawn, families=stated)
        )
        note = ""
    else:
        predictions, _ = inputs.read_to_show()
        results, text = _describe(
            mlc.compare_on_held_out_models(predictions, families=stated)
        )
        note = ""

    diagnostics = library.examine(predictions, families=stated)
    effective_models = diagnostics.effective_models
    if as_json:
        facts = {
            "effective_models": effective_models,
            "families": diagnostics.families,
        }
        click.echo(format_json(results | facts))
        return

    sentences = [f"{sentence}." for sentence in (note,) if sentence]
    sentences += diagnostics.families.sentences
    if effective_models.sentence:
        sentences.append(f"{effective_models.sentence}.")
    click.echo("\n".join([text, *sentences]))


def _check_compare_options(
    *,
    truth: str | None,
    gold: str | None,
    each_model: bool,
    leave_out: bool,
) -> None:
    """Check options of `compare` that depend on each other."""
    if each_model and truth is None:
        raise InputError(
            where="--each-model",
            found="no --truth",
            expected="both, to evaluate each model",
        )
    if gold is not None and truth is not None:
        raise InputError(where="--gold", found="--truth too", expected="one of the two")
    if leave_out and gold is None:
        raise InputError(
            where="--leave-out", found="no --gold", expected="both, to estimate losses"
        )


def _compare_with_truth(
    predictions: mlc.Predictions,
    truth: ScoreTable,
    each_model: bool,
    families: FamiliesLike,
) -> tuple[dict[str, object], str, str]:
    """Evaluate all methods; return the metrics, a table, and a note on the truth."""
    matched = library.match_truth_table(
        truth, predictions.instances, predictions.labels
    )
    if matched.note:
        print_message(matched.note)

    # Models, on the instances and labels of the truth.
    names = [predictions.labels[j] for j in matched.columns]
    evaluated = predictions[matched.rows].select(labels=names)
    results = mlc.metrics.evaluate_models(matched.truth, evaluated)
    if not each_model:
        results = {"BM": results["BM"]}

    # Methods: they combine all predictions.
    methods = library.list_by_name().items()
    for name, combiner_class in library.track(methods, len(methods), "comparing"):
        combiner, merged = library.combine_with_families(
            combiner_class(), predictions, families
        )
        combiner.fit(merged)
        scores = matched.select(combiner.transform(merged))
        label_sets = matched.select(combiner.predict(merged))
        results[name] = mlc.metrics.evaluate(matched.truth, scores, label_sets)

    legend = "BM: mean of the models; * best of its column."
    text = f"{library.format_metrics_table(results)}\n\n{legend}"
    return dict(results), text, library.describe_empty_instances(matched.truth)


def _describe(comparison: object) -> tuple[dict[str, object], str]:
    """Return a comparison as a dict and as text."""
    results = library.plain(comparison)
    assert isinstance(results, dict)
    return results, str(comparison)


@dataclass(frozen=True, kw_only=True)
class _Evaluation:
    """Metrics of a file of scores."""

    metrics: dict[str, float]
    intervals: dict[str, Estimate]  # empty: too many pairs
    sampling: str  # how the gold instances were drawn
    note: str  # about instances without relevant labels; may be empty


@command(
    "evaluate", short_help="Compute the metrics of a file of scores by ground truth."
)
@click.argument("scores", metavar="FILE")
@click.option(
    "--truth",
    metavar="FILE",
    help="Ground truth: the relevant labels of all instances, in any format.",
)
@gold_options
@format_option(
    "--format",
    "input_format",
    help="Format of both files, if their suffixes do not show it.",
)
@reading_options
@json_option(help="Print JSON.")
def evaluate(
    *,
    reading: ReadOptions,
    scores: str,
    truth: str | None,
    gold: str | None,
    drawn: str | None,
    input_format: str | None,
    as_json: bool,
) -> None:
    """Print the metrics of the scores in FILE, with 90 % intervals.

    Instances and labels are matched by name. If all scores are 0 or 1, they are also
    evaluated as label sets. With --json they always are: scores of at least 0.5 count
    as 1.

    With --gold in place of --truth, some labels may be unknown. If the gold instances
    were drawn at random or selected by ask, the metrics are estimates for all instances
    in FILE. Use gold labels that the scores were not combined with.

    \b
    Examples:
      mlconsensus evaluate consensus.csv --truth truth.csv
      mlconsensus evaluate consensus.csv --gold answers.csv --drawn random
    """
    if (truth is None) == (gold is None):
        raise InputError(
            where="evaluate",
            found="both or none of --truth and --gold",
            expected="one of the two",
        )

    score_table = mlc.io.read_table(
        scores, format=input_format, **reading.get_reading()
    )
    reference_reading = reading.get_reading()
    reference_reading["partial"] = gold is not None
    reference = mlc.io.read_table(
        truth or gold or "", format=input_format, **reference_reading
    )
    if truth is not None:
        score_table = _add_missing_labels(score_table, reference, scores)

    values, is_label_sets = _prepare_scores(score_table)
    evaluation = _evaluate_scores(
        score_table,
        values,
        reference,
        path=scores,
        is_gold=gold is not None,
        is_label_sets=is_label_sets,
        drawn=drawn,
    )
    if as_json:
        facts = {
            "intervals": evaluation.intervals,
            "drawn": evaluation.sampling,
            "note": evaluation.note,
        }
        click.echo(format_json(evaluation.metrics | facts))
        return

    _print_evaluation(
        evaluation,
        model=score_table.model,
        has_label_sets=truth is not None and is_label_sets,
        has_sampling=gold is not None or drawn is not None,
    )


def _add_missing_labels(
    score_table: ScoreTable, truth: ScoreTable, path: str
) -> ScoreTable:
    """Add the labels of the truth that no score names, and print their number."""
    extended = library.add_unnamed_labels(score_table, truth)
    n_added = extended.scores.shape[1] - score_table.scores.shape[1]
    if n_added:
        print_message(
            f"{plural(n_added, 'label')} of the truth never given in {path}: counted "
            "as not given"
        )

    return extended


def _prepare_scores(score_table: ScoreTable) -> tuple[Matrix, bool]:
    """Return the scores (n, l) with missing ones last, and whether all are 0 or 1."""
    import numpy as np
    from scipy import sparse

    values = score_table.scores.astype(float)
    cells = values.data if sparse.issparse(values) else values
    is_label_sets = bool(np.isin(cells, (0, 1)).all())

    # `cells` is a view of `values`.
    cells[np.isnan(cells)] = np.nanmin(cells, initial=0.0) - 1
    return values, is_label_sets


def _evaluate_scores(
    score_table: ScoreTable,
    values: Matrix,
    reference: ScoreTable,
    *,
    path: str,
    is_gold: bool,
    is_label_sets: bool,
    drawn: str | None,
) -> _Evaluation:
    """Compute the metrics of scores (n, l) by ground truth or gold labels."""
    import numpy as np

    instances, label_names = library.get_names(score_table)
    metrics: dict[str, float] = {}
    if is_gold:
        matched = _match_gold(reference, instances, label_names)
    else:
        matched = library.match_truth_table(reference, instances, label_names)
        if matched.note:
            print_message(matched.note)
        metrics = mlc.metrics.evaluate(matched.truth, matched.select(values))

    # Intervals.
    intervals: dict[str, Estimate] = {}
    sampling = ""
    n_pairs = float(np.prod(values.shape))
    if is_gold or n_pairs <= _MAX_PAIRS:
        library.check_size(16 * n_pairs, path, "of scores and truth", 0.9)
        dense_scores = library.dense(values)
        truth = np.full(dense_scores.shape, np.nan)
        truth[np.ix_(matched.rows, matched.columns)] = library.dense(matched.truth)
        if is_gold and not is_label_sets:
            _check_not_fitted(dense_scores, truth, path)

        chance, sampling = library.find_inclusion_probabilities(
            reference, drawn, truth, instances
        )
        intervals = library.evaluate_on_gold(
            truth, dense_scores, dense_scores, chance
        ).compute_estimates()

    estimates = {metric: estimate.value for metric, estimate in intervals.items()}
    return _Evaluation(
        metrics=estimates | metrics,
        intervals=intervals,
        sampling=sampling,
        note=library.describe_empty_instances(matched.truth),
    )


def _match_gold(
    gold: ScoreTable,
    instances: Sequence[object] | Names,
    label_names: Sequence[object] | Names,
) -> MatchedTruth:
    """Match gold labels with the instances and labels of the scores."""
    import numpy as np

    rows, answers = library.gold_of(gold, list(instances), tuple(map(str, label_names)))
    columns = np.arange(answers.shape[1])
    return library.MatchedTruth(truth=answers, rows=rows, columns=columns, note="")


def _check_not_fitted(scores: FloatArray, gold: FloatArray, path: str) -> None:
    """Check that the scores differ from the gold labels (n, l)."""
    import numpy as np

    has_gold = ~np.isnan(gold)
    if (scores == gold)[has_gold].all():
        raise InputError(
            where=path,
            found="the answers themselves, which it was combined with",
            expected="scores without this gold",
        )


def _print_evaluation(
    evaluation: _Evaluation, *, model: str, has_label_sets: bool, has_sampling: bool
) -> None:
    """Print tables of the metrics, and notes."""
    rows = {model: evaluation.metrics}
    if evaluation.intervals:
        intervals = evaluation.intervals.items()
        rows["90 % from"] = {metric: interval.low for metric, interval in intervals}
        rows["to"] = {metric: interval.high for metric, interval in intervals}

    click.echo(library.format_metrics_table(rows, first="scores", mark=False))
    if has_label_sets:
        text = library.format_metrics_table(
            {model: evaluation.metrics},
            mlc.metrics.LABEL_SET_METRICS,
            first="label sets",
            mark=False,
        )
        click.echo(f"\n{text}")

    notes = []
    if evaluation.note:
        notes.append(f"{evaluation.note}.")
    if has_sampling and evaluation.sampling:
        notes.append(evaluation.sampling)
    if notes:
        click.echo("\n" + "\n".join(notes))
