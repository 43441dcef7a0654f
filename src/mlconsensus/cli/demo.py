"""The demonstration: synthetic predictions as files, and a table of all methods."""

import shlex
from pathlib import Path

from ..datasets import make_panel
from ..errors import InputError
from ..io import write_table
from ..metrics.tables import format_metrics_table
from ..model_selection.comparison import evaluate_methods
from ..predictions import Predictions, ScoreTable

_LABELS = [
    "politics",
    "economy",
    "banking",
    "trade",
    "energy",
    "climate",
    "science",
    "health",
    "medicine",
    "education",
    "sports",
    "football",
    "travel",
    "food",
    "culture",
    "music",
    "film",
    "technology",
    "internet",
    "security",
    "law",
    "crime",
]
_MODELS = ("ana", "bert", "carl", "dora", "emil")


def run(folder: str | Path, seed: int = 0, program: str = "mlconsensus") -> str:
    """Write the predictions as files, and return the text to print.

    Parameters
    ----------
    folder : str or Path
        A new or empty folder.
    seed : int, default=0
        Seed of the synthetic predictions.
    program : str, default="mlconsensus"
        How a shell starts this program, for the commands that the text suggests.

    Returns
    -------
    str

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(run(folder).splitlines()[0])
    5 models tagged 2,000 articles with 22 labels; the methods below see neither
    features nor truth.
    """
    folder = Path(folder)
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise InputError(
            where=str(folder),
            found="something there already",
            expected="a new or empty folder (see --output)",
        )

    synthetic, truth = make_panel(
        2000, len(_LABELS), len(_MODELS), cardinality=2.5, random_state=seed
    )
    instances = [f"article-{i:04d}" for i in range(1, len(synthetic) + 1)]
    predictions = Predictions(
        synthetic.to_array().astype(bool),
        models=_MODELS,
        labels=_LABELS,
        instances=instances,
    )

    # One file for each model, and one for the truth.
    folder.mkdir(parents=True, exist_ok=True)
    for model, (scores, _) in zip(predictions.models, predictions.cells(), strict=True):
        table = ScoreTable(model, scores, instances, _LABELS)
        write_table(folder / f"{model}.csv", table)

    truth_file = folder / "truth.csv"
    write_table(truth_file, ScoreTable("truth", truth, instances, _LABELS))

    files = shlex.join(f"{folder / model}.csv" for model in _MODELS)
    truth_option = f"--truth {shlex.quote(str(truth_file))}"
    return f"""\
{len(_MODELS)} models tagged {len(instances):,} articles with {len(_LABELS)} labels; \
the methods below see neither features nor truth.

{format_metrics_table(evaluate_methods(truth, predictions))}

BM: the models' own mean; MV: majority voting; * best of its column.
The panel is in {folder}/. Try next:

  {program} combine {files} --output consensus.csv
  {program} evaluate consensus.csv {truth_option}
  {program} compare {files} {truth_option}
  {program} report {files} {truth_option} --output report.html"""
