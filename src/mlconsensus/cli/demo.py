"""The demonstration: a synthetic panel written as files, and a table of what each method makes of it."""

import shlex
from pathlib import Path

from ..datasets import make_panel
from ..errors import InputError
from ..io import write_table
from ..metrics.tables import metrics_table
from ..model_selection.comparison import side_by_side
from ..predictions import Predictions, ScoreTable

_LABELS = [
    "politics", "economy", "banking", "trade", "energy", "climate", "science", "health", "medicine", "education",
    "sports", "football", "travel", "food", "culture", "music", "film", "technology", "internet", "security",
    "law", "crime",
]  # fmt: skip
_MODELS = ("ana", "bert", "carl", "dora", "emil")


def run(folder: str | Path, seed: int = 0, program: str = "mlconsensus") -> str:
    """Write the panel into `folder`, which must not exist or be empty, and return what to print.

    What to try next can be pasted into a shell, where our own command is called
    `program`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(run(folder).splitlines()[0])
    5 models tagged 2,000 articles with 22 labels; nobody shows features or truth to the methods below.
    """
    folder = Path(folder)
    free = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
    if not (free):
        raise InputError(
            where=str(folder),
            found="something there already",
            expected="a new or empty folder (see --output)",
        )

    made, truth = make_panel(
        2000, len(_LABELS), len(_MODELS), cardinality=2.5, random_state=seed
    )
    ids = [f"article-{i:04d}" for i in range(1, len(made) + 1)]
    panel = Predictions(
        made.to_array().astype(bool), models=_MODELS, labels=_LABELS, instances=ids
    )

    folder.mkdir(parents=True, exist_ok=True)
    for model, (scores, _) in zip(panel.models, panel.cells(), strict=True):
        write_table(folder / f"{model}.csv", ScoreTable(model, scores, ids, _LABELS))

    write_table(folder / "truth.csv", ScoreTable("truth", truth, ids, _LABELS))

    files = shlex.join(f"{folder / model}.csv" for model in _MODELS)
    known = shlex.quote(f"{folder / 'truth.csv'}")
    return f"""\
{len(_MODELS)} models tagged {len(ids):,} articles with {len(_LABELS)} labels; \
nobody shows features or truth to the methods below.

{metrics_table(side_by_side(truth, panel))}

BM: the models' own mean; MV: majority voting; * best of its column.
The panel is in {folder}/. Try next:

  {program} combine {files} --output consensus.csv
  {program} evaluate consensus.csv --truth {known}
  {program} compare {files} --truth {known}
  {program} report {files} --truth {known} --output report.html"""
