"""Make the files of this example: five taggers of news articles, each with its own labels, gaps and file format.

Run `python make.py` in this folder; the files come out the same every time.
"""

from pathlib import Path

import numpy as np

import mlconsensus as mlc
from mlconsensus.io import write_table
from mlconsensus.predictions.score_tables import ScoreTable

LABELS = [
    "politics",
    "elections",
    "economy",
    "banking",
    "trade",
    "energy",
    "climate",
    "science",
    "health",
    "sports",
]
LABELS += ["football", "culture", "music"]
# name: (file, layout, labels it does not know, share of articles it has not seen, gives
# scores)
TAGGERS = {
    "newsroom": ("newsroom.csv", "wide", [], 0.3, False),
    "agency": ("agency.tsv", "long", ["football", "music"], 0.1, True),
    "archive": ("archive.parquet", "wide", ["climate", "elections"], 0.0, False),
    "readers": ("readers.jsonl", "wide", ["banking", "trade"], 0.2, False),
    "startup": ("startup.csv.gz", "wide", ["culture"], 0.0, True),
}


def main(folder: Path) -> None:
    rng = np.random.default_rng(2026)
    panel, truth = mlc.datasets.make_panel(
        300,
        len(LABELS),
        len(TAGGERS),
        quality=[0.8, 0.6, 0.6, 0.5, 0.7],
        probabilities=True,
        random_state=rng,
    )
    ids = np.array([f"2026-{i // 25 + 1:02d}-{i % 25 + 1:03d}" for i in range(300)])
    for scores, (name, (file, layout, unknown, unseen, probabilities)) in zip(
        panel.to_array(), TAGGERS.items(), strict=True
    ):
        rows = rng.permutation(
            np.flatnonzero(rng.random(len(ids)) >= unseen)
        )  # each in an order of its own
        columns = [j for j, label in enumerate(LABELS) if label not in unknown]
        own = scores[np.ix_(rows, columns)]
        values = own.round(3) if probabilities else own > 0.5
        table = ScoreTable(name, values, ids[rows], [LABELS[j] for j in columns])
        write_table(folder / file, table, layout=layout, force=True)
    write_table(
        folder / "truth.csv", ScoreTable("truth", truth, ids, LABELS), force=True
    )
    asked = np.sort(
        rng.choice(len(ids), 80, replace=False)
    )  # what an expert has answered: articles drawn at random
    write_table(
        folder / "answers.csv",
        ScoreTable("answers", truth[asked], ids[asked], LABELS),
        force=True,
    )


if __name__ == "__main__":
    main(Path(__file__).parent)
