"""`mlconsensus reproduce`: the paper's experiment and its tables."""

from pathlib import Path

import click

from ..errors import expect
from .options import say


@click.command("reproduce", short_help="Run the paper's experiment and compare with its tables.")
@click.argument("names", nargs=-1, metavar="[DATASET]...")
@click.option("--repeats", type=int, default=10, show_default=True, help="How often all is done anew.")
@click.option("--models", type=click.IntRange(1), help="Base models of a repeat.  [default: 10]")
@click.option("--folds", type=click.IntRange(2), help="Folds of the cross-validation.  [default: 10]")
@click.option("--learner", default="svm", show_default=True, metavar="NAME", help="Kind of base models; see above.")
@click.option("--full", is_flag=True, help="Use all instances, not as many (the first ones) as the paper did.")
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed shuffles otherwise.")
@click.option("--jobs", type=int, default=-1, show_default=True, help="Processes; -1: one for each core.")
@click.option("--json", "json_file", metavar="FILE", help="Write the figures as JSON.")
@click.option("--markdown", metavar="FILE", help="Write the tables as Markdown.")
@click.option("--cache", metavar="FOLDER", help="Where base predictions are kept, instead of the user's cache.")
@click.option("--force", is_flag=True, help="Replace output files that exist.")
def command(
    names: tuple[str, ...], repeats: int, models: int | None, folds: int | None, learner: str, full: bool, seed: int,
    jobs: int, json_file: str | None, markdown: str | None, cache: str | None, force: bool,
) -> None:  # fmt: skip
    """Repeat the paper's experiment on its data sets (all six by default) and print its tables beside ours.

    A base model is the out-of-fold predictions of one shuffle and cross-validation. Base predictions are kept on disk:
    a run that was interrupted, or that asks for more, goes on where it was.

    \b
    Learners: svm (the paper's figures are closest to it), trees, logistic, chains, labelsets,
    and the panels mixed and views of models that differ in kind.

    \b
    Example:
      mlconsensus reproduce medical --repeats 1
      mlconsensus reproduce --json results.json --markdown tables.md
    """
    from ..datasets.catalogue import cache_folder, entry, registry
    from ..experiments import Settings, as_json, as_markdown, as_text, reproduce
    from ..io.files import check_output, whole_file

    chosen = list(dict.fromkeys(entry(name).name for name in names)) or list(registry())
    settings = Settings(learner, repeats, models or 0, folds or 0, seed, full).checked()
    expect(jobs == -1 or jobs > 0, "jobs", jobs, "a number of processes, or -1 for one for each core")
    outputs = [(file, render) for file, render in ((json_file, as_json), (markdown, as_markdown)) if file is not None]
    for file, _ in outputs:
        check_output(file, force)  # before hours of work, not after
    folder = Path(cache) if cache else cache_folder() / "base-models"
    results = reproduce(chosen, settings, folder, jobs, say)
    for file, render in outputs:
        with whole_file(file, force) as output:
            output.write(render(results).encode())
    click.echo(as_text(results), nl=False)
