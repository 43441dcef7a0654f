"""Make the data of this example: what three vendors' models say of the patients of three hospitals.

Run `python make.py [FOLDER]`; the files come out the same every time.
"""

import sys
from pathlib import Path

import numpy as np

import mlconsensus as mlc
from mlconsensus.io import write_table
from mlconsensus.predictions.score_tables import ScoreTable

HOSPITALS = {"north": 1200, "south": 3000, "west": 1800}  # patients of each
VENDORS = {"acme": 0.75, "bolt": 0.6, "core": 0.4}  # how good each one's model is
FINDINGS = [
    "pneumonia",
    "effusion",
    "oedema",
    "fracture",
    "nodule",
    "atelectasis",
    "fibrosis",
    "hernia",
]


def main(folder: Path) -> None:
    rng = np.random.default_rng(2026)
    n = sum(HOSPITALS.values())
    panel, truth = mlc.datasets.make_panel(
        n,
        len(FINDINGS),
        len(VENDORS),
        cardinality=1.6,
        quality=list(VENDORS.values()),
        random_state=rng,
    )
    patients = np.array(
        [
            f"{hospital}-{at:04d}"
            for hospital, size in HOSPITALS.items()
            for at in range(size)
        ]
    )
    at_hospital = np.repeat(list(HOSPITALS), list(HOSPITALS.values()))
    for place in (
        *HOSPITALS,
        "pooled",
    ):  # pooled is what no one may have; it is here to compare with
        (folder / place).mkdir(parents=True, exist_ok=True)
        rows = np.flatnonzero((at_hospital == place) | (place == "pooled"))
        columns = rng.permutation(len(FINDINGS))  # each in an order of its own
        labels = [FINDINGS[at] for at in columns]
        for vendor, scores in zip(VENDORS, panel.to_array() > 0.5, strict=True):
            table = ScoreTable(
                vendor, scores[np.ix_(rows, columns)], patients[rows], labels
            )
            write_table(folder / place / f"{vendor}.csv", table, force=True)
        table = ScoreTable(
            "truth", truth[np.ix_(rows, columns)], patients[rows], labels
        )
        write_table(folder / place / "truth.csv", table, force=True)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
