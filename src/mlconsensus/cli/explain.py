"""`mlconsensus explain`: why labels of one instance have their scores."""

import click

from .options import Choice, PanelFiles, grouped, method_options, panel_options, print_json, read_panel, with_default

_TOP = "Without --label: explain the K labels that the consensus puts first."


@click.command("explain", short_help="Say what makes up the scores of one instance.")
@panel_options
@click.option("--instance", required=True, metavar="ID", help="The instance whose scores to explain.")
@click.option("--label", "label_names", multiple=True, metavar="NAME", help="The label; may be given several times.")
@with_default("--top-k", type=click.IntRange(1), default=3, metavar="K", help=_TOP)
@method_options
@with_default("--rows", type=click.IntRange(1), default=12, help="Longest table to print.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with every part.")
@grouped(source=PanelFiles, choice=Choice)
def command(
    source: PanelFiles, choice: Choice, instance: str, label_names: tuple[str, ...], top_k: int, rows: int,
    as_json: bool,
) -> None:  # fmt: skip
    """Combine the panel in FILE... and say why labels of one instance have their scores.

    A table for each label tells which model's statement about which label raised or lowered its score and by how much,
    and what the same statement counts in plain voting. The contributions sum to the score.

    \b
    Examples:
      mlconsensus explain a.csv b.csv c.csv --instance 42
      mlconsensus explain a.csv b.csv c.csv --instance 42 --label sport --method mlcm-r --json
    """
    from ..consensus import combine
    from ..insight.explanations import label_position, one_instance

    settings = choice.settings()
    panel = choice.members(read_panel(source, many=True))
    one = one_instance(panel, instance)
    chosen = [panel.labels[label_position(panel.labels, name)] for name in label_names]
    found = combine(panel, **settings)
    if not chosen:
        scores = found.combiner.transform(one)[0]
        chosen = [panel.labels[j] for j in (-scores).argsort(kind="stable")[:top_k]]
    explained = [found.explain(instance, label) for label in chosen]
    if as_json:
        print_json([one.to_dict() for one in explained])
    else:
        click.echo("\n\n".join(one.to_text(rows) for one in explained))
