"""Count how many answers `ask` needs for the consensus that answers about random instances give.

    python docs/figures/asking.py FOLDER CACHE

FOLDER has panels as for docs/quality/panels.py; of large ones, 600 instances are taken
for all. Random asking gets 60 answers; asking by `ask` gets a share of these, and what
share is needed is read off between those tried. Results of each panel are kept in
CACHE. Writes the table of docs/gold-figures.md.

Which instances are drawn by chance tells much of a few dozen answers. So shares are
also computed without drawing: an answered instance gets its metrics right, so that each
brings what it was wrong by, times its chance to be asked about (what the fit learns is
left out). By these the powers of the worth are chosen, for each data set on the others.
"""

import itertools
import json
import re
import sys
import warnings
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "quality"))

import mlconsensus as mlc  # noqa: E402
from mlconsensus.active_learning import query  # noqa: E402
from mlconsensus.metrics import _rank_counts  # noqa: E402
from mlconsensus.metrics.intervals import compute_instance_metrics, evaluate_on_gold  # noqa: E402
from mlconsensus.metrics.tables import TITLES  # noqa: E402
from panels import read, source  # noqa: E402

MOST, BUDGET, SHARES, DRAWS, SEEDS = 600, 60, (0.3, 0.5, 0.7, 0.9, 1.2), 8, 5
FINE = np.arange(0.1, 2.01, 0.1)
GRID = list(
    itertools.product((4, 8, 16), (0.25, 0.5, 1.0))
)  # powers of worth, and of uncertainty in it
SHIPPED = query._POWER, query._UNSURE
SIGN = np.array([1, -1, -1, 1])


def quality(panel, truth, gold):
    return evaluate_on_gold(truth, mlc.combine(panel, gold=gold).scores).value * SIGN


def needed(panel, truth, found):
    """Which share of the answers is needed, for each metric, by drawing instances."""
    n, rng = len(truth), np.random.default_rng(0)
    drawn = [some(truth, rng.choice(n, BUDGET, replace=False)) for _ in range(DRAWS)]
    start = evaluate_on_gold(truth, found.scores).value * SIGN
    target = np.mean([quality(panel, truth, gold) for gold in drawn], axis=0) - start
    gains = [np.zeros(4)]
    for share in SHARES:
        asked = [
            asked_about(found, round(share * BUDGET), seed).at for seed in range(SEEDS)
        ]
        gains.append(
            np.mean([quality(panel, truth, some(truth, at)) for at in asked], axis=0)
            - start
        )
    return read_off(target, gains, SHARES)


def asked_about(found, budget, seed=0):
    none = np.zeros(len(found.scores), dtype=bool)
    return query.select_queries(
        found.scores, found.probabilities, none, budget, "consensus", seed=seed
    )


def computed(truth, found, power, unsure):
    """The same without drawing: what each instance is wrong by, times its chance."""
    yes, no = truth == 1, truth == 0
    won, mass = (
        _rank_counts.sum_won_pairs(found.scores, yes * 1.0, no * 1.0),
        (yes.sum(), no.sum()),
    )
    missed = (
        yes.sum(axis=1) * mass[1] - won[0] + no.sum(axis=1) * mass[0] - won[1]
    ) / np.prod(mass)
    each = np.nan_to_num(compute_instance_metrics(yes, no, found.scores))
    some_yes = yes.any(
        axis=1
    )  # where no label is relevant, no answer makes the first one right
    wrong = np.array([missed, each[0] * some_yes, each[1], 1 - each[2]])
    gains = [np.zeros(4)]
    for share in FINE:
        chance = query.compute_inclusion_probabilities(
            found.scores,
            found.probabilities,
            share * BUDGET,
            "consensus",
            power=power,
            unsure=unsure,
        )
        gains.append(wrong @ chance)
    return read_off(BUDGET * wrong.mean(axis=1), gains, FINE)


def read_off(target, gains, shares):
    gains = np.maximum.accumulate(np.array(gains), axis=0)
    return [
        float(np.interp(target[q], gains[:, q], (0, *shares)))
        if target[q] > 1e-9
        else np.nan
        for q in range(4)
    ]


def some(truth, rows):
    gold = np.full(truth.shape, np.nan)
    gold[rows] = truth[rows]
    return gold


def main(folder, cache):
    warnings.simplefilter("ignore")
    cache.mkdir(exist_ok=True)
    found = {}
    for path in sorted(folder.rglob("*.npz"), key=lambda path: path.stat().st_size):
        kept = cache / f"{path.stem}.json"
        if not kept.exists():
            scores, truth, known = read(path)
            rows = np.flatnonzero(known.any(axis=1))
            rows = np.random.default_rng(0).permutation(rows)[:MOST]
            own = None
            if len(rows) >= 3 * BUDGET:
                panel, truth = (
                    mlc.Predictions(scores[:, rows]),
                    np.where(known, truth, np.nan)[rows],
                )
                combined = mlc.combine(panel)
                own = {
                    "source": source(path, folder),
                    "drawn": needed(panel, truth, combined),
                }
                own["computed"] = [
                    computed(truth, combined, *powers) for powers in GRID
                ]
            kept.write_text(json.dumps(own))
            print(path.stem, own and np.round(own["drawn"], 2), flush=True)
        if own := json.loads(kept.read_text()):
            found[path.stem] = own
    page = HERE.parent / "gold-figures.md"
    block = "<!-- asking -->\n" + "\n".join(table(found)) + "\n<!-- end asking -->"
    page.write_text(
        re.sub(
            r"<!-- asking -->.*?<!-- end asking -->",
            lambda _: block,
            page.read_text(),
            flags=re.DOTALL,
        )
    )


def chosen_elsewhere(found):
    """For each panel, its shares with the powers that panels of other sources choose: at most 110 %, then least."""
    out = []
    for own in found.values():
        others = np.array(
            [
                other["computed"]
                for other in found.values()
                if other["source"] != own["source"]
            ]
        )

        def cost(at, others=others):
            return max(np.nanmax(others[:, at]) - 1.1, 0), np.nanmean(others[:, at])

        out.append(own["computed"][min(range(len(GRID)), key=cost)])
    return out


def table(found):
    kinds = {
        "computed, powers chosen on other data sets": chosen_elsewhere(found),
        "computed, as shipped": [
            own["computed"][GRID.index(SHIPPED)] for own in found.values()
        ],
        f"drawn {SEEDS} times, as shipped": [own["drawn"] for own in found.values()],
    }
    yield "| | | " + " | ".join(list(TITLES.values())[:4]) + " | mean of the four |"
    yield "|---|---|---|---|---|---|---|"
    for kind, values in kinds.items():
        values = np.array(values, dtype=float)
        mean = np.nanmean(values, axis=1)
        for name, of in {"mean over panels": np.nanmean, "largest": np.nanmax}.items():
            cells = " | ".join(f"{of(values[:, q]):.0%}" for q in range(4))
            yield f"| {kind} | {name} | {cells} | {of(mean):.0%} |"


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
