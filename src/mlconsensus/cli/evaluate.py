"""Judging: how far raters agree, labels that look alike, how good a consensus is, all methods side by side."""

from typing import Any

import click

import mlconsensus as mlc

from ..errors import InputError
from ..text import plural, table
from . import options


@options.command("agreement", short_help="Say how far raters agree beyond chance.")
@options.panel_options
@options.json_option(help="Print JSON, with every label, rater and pair.")
def agreement(given: options.Given) -> None:
    """Say how far the models or annotators in FILE... agree: Krippendorff's α, Cohen's κ and percent agreement.

    Figures are over what at least two of them have spoken about, for each label, each
    rater and pairs of raters, with 95 % intervals from the bootstrap over instances.
    Those that agree least come first.

    \b
    Example:
      mlconsensus agreement ann.csv bob.csv cleo.csv
    """
    found = mlc.agreement(given.read_to_show())
    click.echo(options.json_of(found) if given.as_json else found.to_text())


@options.command("labels", short_help="Point out labels that look like one another.")
@options.panel_options
@options.written_option(
    "--suggest",
    help="Write them as a CSV file for --aliases, to be looked through first.",
)
@options.force_option
@options.json_option(help="Print JSON.")
def labels(given: options.Given) -> None:
    """Point out labels in FILE... that look like one another, such as Politics and politics, color and colour.

    The name that is used more often stands for the others. What --suggest writes is
    read by --aliases of all commands.

    \b
    Example:
      mlconsensus labels a.csv b.jsonl --suggest aliases.csv
      mlconsensus combine a.csv b.jsonl --aliases aliases.csv --output consensus.csv
    """
    import polars as pl

    from ..inspection.similar_labels import similar_labels

    used = mlc.io.label_counts(
        given.files, format=given.input_format, **given.reading()
    )
    found = similar_labels(used)
    if given.as_json:
        click.echo(options.json_of(found))
    elif found:
        rows = [
            (
                repr(a.name),
                repr(a.stands_for),
                f"{a.similarity:.2f}",
                a.used,
                a.other_used,
            )
            for a in found
        ]
        click.echo(
            table(
                ["name", "looks like", "similarity", "used", "that one"], rows, n_left=2
            )
        )
    else:
        options.say(f"no two of {plural(len(used), 'label')} look alike")

    if given.suggest is not None:
        columns = {
            "name": [alias.name for alias in found],
            "stands for": [alias.stands_for for alias in found],
        }
        with mlc.io.atomic_write(given.suggest, given.force) as file:
            pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String)).write_csv(
                file
            )

        options.say(
            f"{plural(len(found), 'suggestion')} → {given.suggest}; look through them before you use them"
        )


@options.command("compare", short_help="Judge every method on a panel, side by side.")
@options.panel_options
@click.option(
    "--truth",
    metavar="FILE",
    help="The relevant labels, in any format; without it, held-out raters judge.",
)
@options.gold_options
@click.option(
    "--leave-out",
    is_flag=True,
    help="With --gold: say what leaving each rater out would cost.",
)
@click.option(
    "--each-model",
    is_flag=True,
    help="With --truth: show each base model too, not only their mean.",
)
@click.option(
    "--groups",
    metavar="FILE",
    help="Without --truth: raters and their groups, which are held out together.",
)
@options.json_option(help="Print JSON.")
def compare(given: options.Given) -> None:
    """Combine the panel in FILE... with every method and print how well each agrees with the truth.

    The truth is used to judge, never to combine. BM is the mean of the base models' own
    metrics, each on the instances and labels that it has spoken about; one that has
    spoken about less than half of all is never marked as best.

    With --gold, the truth of some instances judges: each metric has a 90 % interval,
    and differences to voting are paired. Methods learn from the gold too, but never
    from the part that judges them.

    --leave-out compares the rater filter without each rater with that of all.

    Without either, some raters are held out in turn: what is printed is how much better
    than voting each method ranks what they said, with 90 % intervals, and whether that
    can be relied on.

    A last line says how many raters with errors of their own the panel is worth at
    most, if it can tell.

    \b
    Examples:
      mlconsensus compare a.csv b.csv c.csv --truth truth.csv
      mlconsensus compare a.csv b.csv c.csv --gold answers.csv --drawn random
      mlconsensus compare a.csv b.csv c.csv
    """
    from ..execution.progress import track
    from ..inspection.diagnostics import examine
    from ..io.formats.clusterings import read_clustering
    from ..metrics.ground_truth import match_truth, without_labels
    from ..metrics.tables import metrics_table, plain

    truth = given.truth
    gold = given.gold
    groups = given.groups
    if not (truth is not None or not given.each_model):
        raise InputError(
            where="--each-model", found="no --truth", expected="one to judge models by"
        )
    if not (truth is None or groups is None):
        raise InputError(
            where="--groups", found="--truth beside it", expected="one of the two"
        )
    if not (gold is None or (truth or groups) is None):
        raise InputError(
            where="--gold",
            found="--truth or --groups beside it",
            expected="one of them",
        )
    if not (gold is not None or not given.leave_out):
        raise InputError(
            where="--leave-out", found="no --gold", expected="one to judge by"
        )

    known = given.known(truth)
    answers = given.known(gold, partial=True)
    if known is None and answers is None:
        panel = given.read_to_show()
    else:
        panel = given.read(many=known is not None)

    if known is None:
        if given.leave_out:
            by_gold = mlc.leave_out
        else:
            by_gold = mlc.compare

        if groups is None:
            apart = None
        else:
            apart = read_clustering(groups)

        if answers is None:
            found = mlc.referee(panel, groups=apart)
        else:
            found = by_gold(panel, answers, given.drawn)

        results = plain(found)
        text = str(found)
        nothing = ""
    else:
        matched = match_truth(known, panel.instances, panel.labels)
        if matched.note:
            options.say(matched.note)

        judged = panel[matched.rows].select(
            labels=[panel.labels[j] for j in matched.columns]
        )
        models = mlc.metrics.evaluate_models(matched.truth, judged)
        if given.each_model:
            results = models
        else:
            results = {"BM": models["BM"]}

        for name, kind in track(mlc.COMBINERS.items(), len(mlc.COMBINERS), "comparing"):
            combiner = kind().fit(panel)
            scores, sets = (
                matched.of(values)
                for values in (combiner.transform(panel), combiner.predict(panel))
            )
            results[name] = mlc.metrics.evaluate(matched.truth, scores, sets)

        text = f"{metrics_table(results)}\n\nBM: mean of the base models; * best of its column."
        nothing = without_labels(matched.truth)

    voices = examine(panel).voices
    text += "".join(f"\n{said}." for said in (voices.sentence, nothing) if said)
    click.echo(options.json_of(results | {"voices": voices}) if given.as_json else text)


# of the truth, beyond which intervals would take longer than all else, and be hairs
_MOST_CELLS = 20_000_000


@options.command("evaluate", short_help="Judge a file of scores against the truth.")
@click.argument("scores", metavar="FILE")
@click.option("--truth", metavar="FILE", help="The relevant labels, in any format.")
@options.gold_options
@options.format_option(
    "--format", "input_format", help="Format of both files, where suffixes do not tell."
)
@options.reading_options
@options.json_option(help="Print JSON.")
def evaluate(given: options.Given) -> None:
    """Print the metrics of the scores in FILE, with 90 % intervals.

    Instances and labels are matched by name. If all scores are 0 or 1, they are judged
    as label sets too (with --json always, scores of at least 0.5 as chosen).

    With --gold in place of --truth, some cells may be unknown, and where the instances
    were drawn at random, or as ask chose them, the figures are of all instances in
    FILE. Gold must not be what the scores were found with.

    \b
    Examples:
      mlconsensus evaluate consensus.csv --truth truth.csv
      mlconsensus evaluate consensus.csv --gold answers.csv --drawn random
    """
    import numpy as np
    from scipy import sparse

    from ..execution.memory import check_size
    from ..io.layouts import named
    from ..linalg.block_sums import dense
    from ..metrics.ground_truth import (
        Matched,
        match_truth,
        with_never_given,
        without_labels,
    )
    from ..metrics.intervals import judge
    from ..metrics.tables import metrics_table
    from ..model_selection.comparison import chances
    from ..predictions import gold_of

    truth = given.truth
    gold = given.gold
    scores = given.scores
    if truth is None == gold is None:
        raise InputError(
            where="evaluate",
            found="both or none of --truth and --gold",
            expected="one of the two",
        )

    reading: Any = {"format": given.input_format, **given.reading()}
    judged = mlc.io.read_table(scores, **reading)
    table = mlc.io.read_table(truth or gold or "", **reading, partial=gold is not None)
    given_labels = judged.scores.shape[1]
    if truth is not None:
        judged = with_never_given(judged, table)
    if more := judged.scores.shape[1] - given_labels:
        options.say(
            f"{plural(more, 'label')} of the truth never given in {scores}: counted as not given"
        )

    names = named(judged)
    values = judged.scores.astype(float)
    found = {}
    figures = {}
    drawn_from = ""
    if sparse.issparse(values):
        cells = values.data
    else:
        cells = values

    decided = np.isin(cells, (0, 1)).all()
    cells[np.isnan(cells)] = (
        np.nanmin(cells, initial=0.0) - 1
    )  # what has no score comes last
    if truth is not None:
        matched = match_truth(table, *names)
        if matched.note:
            options.say(matched.note)

        found = mlc.metrics.evaluate(matched.truth, matched.of(values))
    else:
        at, answers = gold_of(table, list(names[0]), tuple(map(str, names[1])))
        matched = Matched(answers, at, np.arange(answers.shape[1]), "")

    nothing = without_labels(matched.truth)
    if gold or np.prod(values.shape) <= _MOST_CELLS:
        check_size(
            16 * float(np.prod(values.shape)), scores, "of scores and truth", 0.9
        )
        whole = dense(values)
        known = np.full(whole.shape, np.nan)
        known[np.ix_(matched.rows, matched.columns)] = dense(matched.truth)
        same = gold and not decided and bool((whole == known)[~np.isnan(known)].all())
        if same:
            raise InputError(
                where=scores,
                found="the answers themselves, which it was combined with",
                expected="scores without this gold",
            )

        chance, drawn_from = chances(table, given.drawn, known, names[0])
        figures = judge(known, whole, whole, chance).figures()

    found = {metric: figure.value for metric, figure in figures.items()} | found
    ends = [
        {metric: getattr(figure, end) for metric, figure in figures.items()}
        for end in ("low", "high")
    ]
    if given.as_json:
        click.echo(
            options.json_of(
                found | {"intervals": figures, "drawn": drawn_from, "note": nothing}
            )
        )
        return

    rows = {judged.model: found} | (
        dict(zip(("90 % from", "to"), ends, strict=True)) if figures else {}
    )
    click.echo(metrics_table(rows, first="scores", mark=False))
    if truth is not None and decided:
        click.echo()
        click.echo(
            metrics_table(
                {judged.model: found},
                mlc.metrics.LABEL_SET_METRICS,
                first="label sets",
                mark=False,
            )
        )

    said = [nothing and f"{nothing}.", drawn_from if gold or given.drawn else ""]
    if any(said):
        click.echo("\n" + "\n".join(filter(None, said)))
