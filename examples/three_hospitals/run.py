"""Three hospitals, one consensus, and no patient leaves a hospital: through the real commands.

python run.py [FOLDER]  # where the data is made
"""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from make import HOSPITALS, VENDORS, main

import mlconsensus as mlc
from mlconsensus.io import read_table

PANEL = [f"{vendor}.csv" for vendor in VENDORS]
FEDERATED = {"together": [], "private": ["--epsilon", "1", "--delta", "1e-6"]}


def mlconsensus(folder, *args):
    """Run a command in a folder, and show it."""
    line = " ".join([f"{folder.name}$ mlconsensus", *args])
    print(
        f"{line}\n", end="", flush=True
    )  # in one piece, as several hospitals are at work
    command = [Path(sys.executable).with_name("mlconsensus"), *args, "--force"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def combine_sites(folder, name, options):
    """Let each hospital send statistics and nothing else, and apply the model that comes back."""

    def gather(hospital):
        output = f"../{hospital}.{name}.stats"
        mlconsensus(
            folder / hospital,
            "statistics",
            *PANEL,
            "--method",
            "mlcm-r",
            *options,
            "--output",
            output,
        )

    def apply(hospital):
        mlconsensus(
            folder / hospital,
            "apply",
            f"../{name}.model",
            *PANEL,
            "--output",
            f"{name}.csv",
        )

    with ThreadPoolExecutor() as hospitals:  # each works at home, at the same time
        list(hospitals.map(gather, HOSPITALS))
        files = [f"{hospital}.{name}.stats" for hospital in HOSPITALS]
        mlconsensus(folder, "solve", *files, "--output", f"{name}.model")
        list(hospitals.map(apply, HOSPITALS))


def named(path):
    """Read scores by patient and finding, whatever order they are in."""
    table = read_table(path)
    cells = zip(table.instances.tolist(), table.scores.tolist(), strict=True)
    return {
        (patient, label): score
        for patient, row in cells
        for label, score in zip(table.labels, row, strict=True)
    }


def losses(folder):
    """Judge what is in a hospital's folder, and what it would have had on its own."""
    panel = mlc.read_predictions([folder / file for file in PANEL])
    truth = read_table(folder / "truth.csv").scores
    scores = {
        "majority voting": mlc.majority_vote(panel),
        "each on its own": mlc.mlcm_r(panel),
    }
    for name, options in FEDERATED.items():
        federated = read_table(folder / f"{name}.csv")
        order = [list(federated.labels).index(label) for label in panel.labels]
        scores[f"{name}, ε = {options[1]}" if options else name] = federated.scores[
            :, order
        ]
    return {
        name: mlc.metrics.ranking_loss(truth, found) for name, found in scores.items()
    }


def run(folder):
    """Make the data, combine it where it is, and compare with what nobody may do: put it in one place."""
    main(folder)
    for name, options in FEDERATED.items():
        combine_sites(folder, name, options)
    mlconsensus(
        folder / "pooled",
        "combine",
        *PANEL,
        "--method",
        "mlcm-r",
        "--output",
        "pooled.csv",
    )

    pooled = named(folder / "pooled" / "pooled.csv")
    apart = max(
        abs(score - pooled[cell])
        for hospital in HOSPITALS
        for cell, score in named(folder / hospital / "together.csv").items()
    )
    print(
        f"\nLargest difference between scores from pooled data and from three sites: {apart:.0e}"
    )
    by_hospital = {hospital: losses(folder / hospital) for hospital in HOSPITALS}
    print(
        f"\n{'ranking loss':<18}" + "".join(f"{hospital:>8}" for hospital in HOSPITALS)
    )
    for name in by_hospital["north"]:
        print(
            f"{name:<18}"
            + "".join(f"{found[name]:8.4f}" for found in by_hospital.values())
        )
    return apart, by_hospital


if __name__ == "__main__":
    run(Path(sys.argv[1] if len(sys.argv) > 1 else "hospitals"))
