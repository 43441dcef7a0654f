"""`mlconsensus compare`: every method side by side on one panel, against the truth or against held-out raters."""

from dataclasses import asdict
from functools import partial

import click

from .options import PanelFiles, gold_options, grouped, panel_options, print_json, read_panel, read_truth, say


@click.command("compare", short_help="Judge every method on a panel, side by side.")
@panel_options
@click.option("--truth", metavar="FILE", help="The relevant labels, in any format; without it, held-out raters judge.")
@gold_options
@click.option("--leave-out", is_flag=True, help="With --gold: say what leaving each rater out would cost.")
@click.option("--each-model", is_flag=True, help="With --truth: show each base model too, not only their mean.")
@click.option("--groups", metavar="FILE", help="Without --truth: raters and their groups, which are held out together.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@grouped(source=PanelFiles)
def command(
    source: PanelFiles, truth: str | None, gold: str | None, drawn: str | None, leave_out: bool, each_model: bool,
    groups: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Combine the panel in FILE... with every method and print how well each agrees with the truth.

    The truth is used to judge, never to combine. BM is the mean of the base models' own metrics.

    With --gold, the truth of some instances judges: each metric has a 90 % interval, and differences to voting are
    paired. Methods learn from the gold too, but never from the part that judges them.

    --leave-out compares the rater filter without each rater with that of all.

    Without either, some raters are held out in turn: what is printed is how much better than voting each method ranks
    what they said, with 90 % intervals, and whether that can be relied on.

    The last line says how many raters with errors of their own the panel is worth at most.

    \b
    Examples:
      mlconsensus compare a.csv b.csv c.csv --truth truth.csv
      mlconsensus compare a.csv b.csv c.csv --gold answers.csv --drawn random
      mlconsensus compare a.csv b.csv c.csv
    """
    from ..engines.progress import track
    from ..errors import expect
    from ..estimators import COMBINERS
    from ..evaluation.metrics import evaluate, evaluate_models
    from ..evaluation.truth import match_truth
    from ..insight import comparison
    from ..insight.diagnostics import examine
    from ..insight.referee import referee
    from ..io.clusterings import read_clustering
    from ..tables import metrics_table

    expect(truth is not None or not each_model, "--each-model", "no --truth", "one to judge models by")
    expect(truth is None or groups is None, "--groups", "--truth beside it", "one of the two")
    expect(gold is None or (truth or groups) is None, "--gold", "--truth or --groups beside it", "one of them")
    expect(gold is not None or not leave_out, "--leave-out", "no --gold", "one to judge by")
    known, answers = read_truth(source, truth), read_truth(source, gold, partial=True)
    panel = read_panel(source)
    if known is None:
        by_gold = comparison.leave_out if leave_out else comparison.compare
        by_raters = partial(referee, groups=None if groups is None else read_clustering(groups))
        found = by_raters(panel) if answers is None else by_gold(panel, answers, drawn)
        voices = examine(panel).voices
        print_json(asdict(found) | {"voices": voices}) if as_json else click.echo(f"{found}\n{voices}.")
        return
    matched = match_truth(known, panel.instances, panel.labels)
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
    voices = examine(panel).voices
    if as_json:
        print_json(results | {"voices": voices})
    else:
        click.echo(f"{metrics_table(results)}\n\nBM: mean of the base models; * best of its column.\n{voices}.")
