"""`mlconsensus compare`: every method side by side on one panel, against the truth."""

from __future__ import annotations

import click

from .options import panel_options, print_json, read_panel, say


@click.command("compare", short_help="Judge every method on a panel, side by side.")
@panel_options
@click.option("--truth", required=True, metavar="FILE", help="The relevant labels, in any format.")
@click.option("--each-model", is_flag=True, help="Show each base model too, not only their mean.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    files: tuple[str, ...], input_format: str | None, instances: str, labels: str, truth: str, each_model: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Combine the panel in FILE... with every method and print how well each agrees with the truth.

    The truth is used to judge, never to combine. BM is the mean of the base models' own metrics.

    \b
    Example:
      mlconsensus compare a.csv b.csv c.csv --truth truth.csv
    """
    from ..engines.progress import track
    from ..estimators import COMBINERS
    from ..evaluation.metrics import evaluate, evaluate_models
    from ..evaluation.truth import match_truth
    from ..io import read_table
    from ..tables import metrics_table

    panel = read_panel(files, input_format, instances, labels)
    matched = match_truth(read_table(truth), panel.instances, panel.labels)
    if matched.note:
        say(matched.note)
    judged = panel[matched.rows].select(labels=[panel.labels[j] for j in matched.columns])
    models = evaluate_models(matched.truth, judged)
    results = models if each_model else {"BM": models["BM"]}
    for name, kind in track(COMBINERS.items(), len(COMBINERS), "comparing"):
        combiner = kind().fit(panel)
        scores, sets = combiner.transform(panel), combiner.predict(panel)
        at = (matched.rows[:, None], matched.columns)
        results[name] = evaluate(matched.truth, scores[at], sets[at])
    if as_json:
        print_json(results)
    else:
        click.echo(f"{metrics_table(results)}\n\nBM: mean of the base models; * best of its column.")
