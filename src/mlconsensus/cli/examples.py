"""The commands to try the package: `demo`, `datasets` and `reproduce`."""

import shlex
import shutil
import sys
from pathlib import Path

import click

from ..errors import InputError
from ..text import safe, table
from . import library
from .options import command, force_option, print_message, written_option


@command("demo", short_help="Combine six taggers' labels of 300 support tickets.")
@click.option(
    "--output",
    "folder",
    default="mlconsensus-demo",
    help="New folder for the input and the results.",
)
def demo(folder: str) -> None:
    """Combine the labels that six LLM taggers gave to 300 support tickets.

    The taggers are simulated. Their answers come with the package. The command prints
    some tickets, which taggers to check, and how good each method is. It writes the
    answers, the consensus and a report to a folder.

    \b
    Example:
      mlconsensus demo --output my-demo
    """
    # Suggested commands start this program in the same way.
    program = sys.argv[0]
    if program == shutil.which("mlconsensus"):
        program = "mlconsensus"

    words = [program]
    if program.endswith(".py"):
        words = [sys.executable, program]

    text = library.run_demo(folder, shlex.join(words))
    click.echo("\n".join(map(safe, text.split("\n"))))


@click.group(
    "datasets",
    short_help="List or fetch the paper's data sets.",
    invoke_without_command=True,
)
@click.pass_context
def datasets(ctx: click.Context) -> None:
    """List or fetch the data sets that the paper's experiment runs on.

    Files in the folder that the variable MLCONSENSUS_DATA names are used first; what is
    downloaded goes to the user's cache, or to the folder that MLCONSENSUS_CACHE names.

    \b
    Example:
      mlconsensus datasets list
      mlconsensus datasets fetch medical enron
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_command)


@datasets.command("list")
def list_command() -> None:
    """Print the data sets, their sizes, licences and sources.

    \b
    Example:
      mlconsensus datasets list
    """
    heads = ("name", "here", "about", "instances", "in paper", "features", "labels")
    rows = []
    for name, metadata in library.registry().items():
        rows.append(
            (
                name,
                "yes" if library.is_here(name) else "no",
                metadata.about,
                f"{metadata.instances:,}",
                f"{metadata.paper:,}",
                f"{metadata.features:,}",
                f"{metadata.labels:,}",
            )
        )

    click.echo(f"{table(heads, rows, n_left=3)}\n")
    for name, metadata in library.registry().items():
        source = f"{metadata.citation}. Licence: {metadata.licence}"
        click.echo(f"{name}: {source}. {metadata.public[0].address}")


@datasets.command("fetch")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def fetch_command(names: tuple[str, ...]) -> None:
    """Download data sets into the user's cache if they are not on this machine.

    \b
    Example:
      mlconsensus datasets fetch medical enron
    """
    for name in [library.entry(name).name for name in names]:
        if not library.is_here(name):
            print_message(f"fetching {name} …")

        for path in library.fetch(name):
            click.echo(path)


@command(
    "reproduce", short_help="Run the paper's experiment and compare with its tables."
)
@click.argument("names", nargs=-1, metavar="[DATASET]...")
@click.option("--repeats", type=int, default=10, help="Number of repetitions.")
@click.option(
    "--models",
    type=click.IntRange(1),
    help="Base models of a repetition.  [default: 10]",
)
@click.option(
    "--folds",
    type=click.IntRange(2),
    help="Folds of the cross-validation.  [default: 10]",
)
@click.option(
    "--learner", default="svm", metavar="NAME", help="Type of base models; see above."
)
@click.option(
    "--full",
    is_flag=True,
    help="Use all instances, not only the first ones, as many as in the paper.",
)
@click.option("--seed", type=int, default=0, help="Seed of the shuffles.")
@click.option(
    "--jobs", type=int, default=-1, help="Number of processes; -1 is one per core."
)
@written_option("--json", "json_file", help="Write the metrics as JSON.")
@written_option("--markdown", help="Write the tables as Markdown.")
@click.option(
    "--cache",
    metavar="FOLDER",
    help="Folder of the base predictions, in place of the user's cache.",
)
@force_option
def reproduce(
    *,
    names: tuple[str, ...],
    repeats: int,
    models: int | None,
    folds: int | None,
    learner: str,
    full: bool,
    seed: int,
    jobs: int,
    json_file: str | None,
    markdown: str | None,
    cache: str | None,
    force: bool,
) -> None:
    """Repeat the paper's experiment and print its tables next to ours.

    The experiment runs on the named data sets, by default on all six.

    A base model is the out-of-fold predictions of one shuffle and cross-validation.
    Base predictions are kept on disk: a run that was interrupted, or that asks for
    more, goes on where it was.

    \b
    Learners: svm (the paper's figures are closest to it), trees, logistic, chains,
    labelsets, and the panels mixed and views of models that differ in kind.

    \b
    Example:
      mlconsensus reproduce medical --repeats 1
      mlconsensus reproduce --json results.json --markdown tables.md
    """
    # Check all options before the work.
    dataset_names = list(dict.fromkeys(library.entry(name).name for name in names))
    if not dataset_names:
        dataset_names = list(library.registry())

    settings = library.Settings(
        learner=learner,
        repeats=repeats,
        models=models or 0,
        folds=folds or 0,
        seed=seed,
        full=full,
    ).checked()
    if jobs != -1 and jobs <= 0:
        raise InputError(
            where="jobs",
            found=jobs,
            expected="a number of processes, or -1 for one for each core",
        )

    folder = Path(cache) if cache else library.cache_folder() / "base-models"
    results = library.reproduce(dataset_names, settings, folder, jobs, print_message)
    for path, render in ((json_file, library.as_json), (markdown, library.as_markdown)):
        if path is not None:
            with library.atomic_write(path, force) as file:
                file.write(render(results).encode())

    click.echo(library.as_text(results), nl=False)
