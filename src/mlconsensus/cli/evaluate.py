"""`mlconsensus evaluate`: how well a consensus, or any one file of scores, agrees with the truth."""

import click

from .options import format_option, gold_options, print_json, say

_MOST_CELLS = 20_000_000  # of the truth, beyond which intervals would take longer than all else, and be hairs


@click.command("evaluate", short_help="Judge a file of scores against the truth.")
@click.argument("scores", metavar="FILE")
@click.option("--truth", metavar="FILE", help="The relevant labels, in any format.")
@gold_options
@format_option("--format", "input_format", help="Format of both files, where suffixes do not tell.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    scores: str, truth: str | None, gold: str | None, drawn: str | None, input_format: str | None, as_json: bool
) -> None:
    """Print the metrics of the scores in FILE, with 90 % intervals.

    Instances and labels are matched by name. If all scores are 0 or 1, they are judged as label sets too (with --json
    always, scores of at least 0.5 as chosen).

    With --gold in place of --truth, some cells may be unknown, and where the instances were drawn at random, or as ask
    chose them, the figures are of all instances in FILE. Gold must not be what the scores were found with.

    \b
    Examples:
      mlconsensus evaluate consensus.csv --truth truth.csv
      mlconsensus evaluate consensus.csv --gold answers.csv --drawn random
    """
    import numpy as np

    from ..arithmetic.products import dense
    from ..errors import expect
    from ..evaluation.intervals import judge
    from ..evaluation.metrics import LABEL_SET_METRICS, RANKING_METRICS, evaluate
    from ..evaluation.truth import match_truth
    from ..insight.comparison import chances
    from ..io import read_table
    from ..io.layouts import named
    from ..panel.gold import gold_of
    from ..tables import metrics_table

    expect((truth is None) != (gold is None), "evaluate", "both or none of --truth and --gold", "one of the two")
    judged = read_table(scores, format=input_format)
    table = read_table(truth or gold or "", format=input_format, partial=gold is not None)
    names, values = named(judged), dense(judged.scores).astype(float)
    filled = np.where(np.isnan(values), np.nanmin(values, initial=0.0) - 1, values)  # what has no score comes last
    known, found = np.full(values.shape, np.nan), {}
    if truth is not None:
        matched = match_truth(table, *names)
        if matched.note:
            say(matched.note)
        at = np.ix_(matched.rows, matched.columns)
        known[at], values = matched.truth, values[at]
        found = evaluate(matched.truth, filled[at])
    else:
        answers = gold_of(table, list(names[0]), tuple(map(str, names[1])))
        known[answers.at] = answers.answers
        learned = bool((filled == known)[~np.isnan(known)].all()) and not np.isin(values, (0, 1)).all()
        expect(not learned, scores, "the answers themselves, which it was combined with", "scores without this gold")
    chance, drawn_from = chances(table, drawn, known, names[0])
    figures = judge(known, filled, filled, chance).figures() if gold or known.size <= _MOST_CELLS else {}
    found = {metric: figure.value for metric, figure in figures.items()} | found
    ends = [{metric: getattr(figure, end) for metric, figure in figures.items()} for end in ("low", "high")]
    if as_json:
        print_json(found | {"intervals": figures, "drawn": drawn_from})
        return
    rows = {judged.model: found} | (dict(zip(("90 % from", "to"), ends, strict=True)) if figures else {})
    click.echo(metrics_table(rows, RANKING_METRICS, first="scores", mark=False))
    if truth is not None and np.isin(values, (0, 1)).all():
        click.echo()
        click.echo(metrics_table({judged.model: found}, LABEL_SET_METRICS, first="label sets", mark=False))
    if gold is not None or drawn is not None:
        click.echo(f"\n{drawn_from}")
