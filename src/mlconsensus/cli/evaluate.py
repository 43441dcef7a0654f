"""`mlconsensus evaluate`: how well a consensus, or any one file of scores, agrees with the truth."""

from __future__ import annotations

import click

from .options import format_option, print_json, say


@click.command("evaluate", short_help="Judge a file of scores against the truth.")
@click.argument("scores", metavar="FILE")
@click.option("--truth", required=True, metavar="FILE", help="The relevant labels, in any format.")
@format_option("--format", "input_format", help="Format of both files, where suffixes do not tell.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(scores: str, truth: str, input_format: str | None, as_json: bool) -> None:
    """Print the metrics of the scores in FILE.

    Instances and labels are matched by name. If all scores are 0 or 1, they are judged as label sets too (with --json
    always, scores of at least 0.5 as chosen).

    \b
    Example:
      mlconsensus evaluate consensus.csv --truth truth.csv
    """
    import numpy as np

    from ..evaluation.metrics import LABEL_SET_METRICS, RANKING_METRICS, evaluate
    from ..evaluation.truth import match_truth
    from ..io import read_table
    from ..io.layouts import named
    from ..tables import metrics_table

    judged = read_table(scores, format=input_format)
    matched = match_truth(read_table(truth, format=input_format), *named(judged))
    if matched.note:
        say(matched.note)
    values = judged.scores.toarray() if hasattr(judged.scores, "toarray") else judged.scores
    values = values[matched.rows][:, matched.columns].astype(float)
    last = np.nanmin(values, initial=0.0) - 1  # a label without a score comes after all that have one
    found = evaluate(matched.truth, np.where(np.isnan(values), last, values))
    if as_json:
        print_json(found)
    else:
        click.echo(metrics_table({judged.model: found}, RANKING_METRICS, first="scores", mark=False))
        if np.isin(values, (0, 1)).all():
            click.echo()
            click.echo(metrics_table({judged.model: found}, LABEL_SET_METRICS, first="label sets", mark=False))
