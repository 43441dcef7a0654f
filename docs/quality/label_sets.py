"""Judge rules that turn scores into label sets on panels with truth.

    python docs/quality/label_sets.py FOLDER…

Each FOLDER has panels as NPZ files, as for panels.py; `annotators` are simulated here.
Prints, for all panels of a folder, the mean micro F1, F1 by instance, macro F1 and
Hamming loss of each rule, and in how many panels its micro F1 is below that of a
majority (in brackets: by more than two standard errors, from the paired jackknife over
20 groups of instances). Instances whose truth was given as gold are not judged.
"""

import itertools
import sys
import warnings
from pathlib import Path

import numpy as np

import mlconsensus as mlc
from panels import read

GOLD = 50  # instances


def rules(scores, truth, known):
    """Label sets by rule, and the instances to judge."""
    found = mlc.combine(scores)
    voted = mlc.majority_vote(scores)
    rng = np.random.default_rng(0)
    gold = rng.choice(len(truth), min(GOLD, len(truth) // 2), replace=False)
    answers = np.full(truth.shape, np.nan)
    answers[gold] = np.where(known[gold], truth[gold], np.nan)
    taught = mlc.combine(scores, gold=answers)
    sets = {
        "majority": voted >= 0.5,
        "instances": found.combiner.predict(scores),
        "score of at least 0.5": found.scores >= 0.5,
        "f1": found.label_indicator,
        f"f1, gold of {GOLD}": taught.label_indicator,
    }
    return sets, np.setdiff1d(np.arange(len(truth)), gold)


def counts(truth, known, chosen):
    """Right, chosen and relevant cells (n, l) of those that are known."""
    return np.stack([truth & chosen & known, chosen & known, truth & known]).astype(
        float
    )


def micro(cells):
    right, chosen, relevant = cells.sum(axis=(1, 2))
    return 2 * right / max(chosen + relevant, 1)


def judged(cells, known):
    by_instance, by_label = cells.sum(axis=2), cells.sum(axis=1)
    by_instance, by_label = (
        by_instance[:, by_instance[1:].sum(axis=0) > 0],
        by_label[:, by_label[2] > 0],
    )
    means = [
        (2 * each[0] / np.maximum(each[1] + each[2], 1)).mean()
        for each in (by_instance, by_label)
    ]
    wrong = (cells[1] + cells[2] - 2 * cells[0]).sum() / known.sum()
    return [micro(cells), *means, wrong]


def annotators():
    """Panels of raters who err on their own: 3, 5 or 9 that find 60 to 90 % of the labels, with few or many alarms."""
    rng = np.random.default_rng(0)
    for often, m, alarms in itertools.product(
        (0.02, 0.05, 0.1, 0.2), (3, 5, 9), (0.01, 0.03, 0.08)
    ):
        truth = rng.random((1000, 15)) < often
        hits, alarms = (
            rng.uniform(0.6, 0.9, m),
            rng.uniform(alarms / 2, 1.5 * alarms, m),
        )
        said = [
            rng.random(truth.shape) < np.where(truth, h, f)
            for h, f in zip(hits, alarms, strict=True)
        ]
        yield np.array(said, dtype=float), truth, np.ones(truth.shape, dtype=bool)


def main(folder):
    found = {}
    files = sorted(Path(folder).rglob("*.npz"))
    for scores, truth, known in (
        annotators() if folder == "annotators" else map(read, files)
    ):
        sets, rows = rules(scores, truth, known)
        group = np.random.default_rng(0).permutation(len(rows)) % 20
        all_cells = {
            name: counts(truth[rows], known[rows], chosen[rows])
            for name, chosen in sets.items()
        }
        for name, cells in all_cells.items():
            without = [
                [micro(each[:, group != g]) for each in (cells, all_cells["majority"])]
                for g in range(20)
            ]
            gain = np.subtract(*np.transpose(without))
            error = np.sqrt(19 / 20 * ((gain - gain.mean()) ** 2).sum())
            over = micro(cells) - micro(all_cells["majority"])
            found.setdefault(name, []).append(
                [*judged(cells, known[rows]), over < -1e-12, over < -1e-12 - 2 * error]
            )
    print(
        f"| {folder}: {len(found['f1'])} panels | micro F1 | F1 by instance | macro F1 | Hamming loss | behind |"
    )
    print("|---|---|---|---|---|---|")
    for name, rows in found.items():
        figures, (behind, clearly) = np.mean(rows, axis=0)[:4], np.sum(rows, axis=0)[4:]
        print(
            f"| {name} | "
            + " | ".join(f"{x:.3f}" for x in figures)
            + f" | {behind:.0f} ({clearly:.0f}) |",
            flush=True,
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for folder in sys.argv[1:]:
        main(folder)
