"""Count how many answers `ask` needs for the consensus that answers about random instances give.

    python docs/figures/asking.py FOLDER

FOLDER has panels as for docs/quality/panels.py; of large ones, 600 instances are taken for all. Random asking gets 60
answers; asking by `ask` gets a share of these, and what share is needed is read off between those tried. Writes the
table of docs/gold-figures.md.
"""

import re
import sys
import warnings
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "quality"))

import mlconsensus as mlc  # noqa: E402
from mlconsensus.evaluation.intervals import judge  # noqa: E402
from mlconsensus.tables import TITLES  # noqa: E402
from panels import read  # noqa: E402

MOST, BUDGET, SHARES, DRAWS, SEEDS = 600, 60, (0.3, 0.5, 0.7, 0.9, 1.2), 6, 3
SIGN = np.array([1, -1, -1, 1])


def quality(panel, truth, gold):
    return judge(truth, mlc.combine(panel, gold=gold).scores).value * SIGN


def needed(panel, truth):
    """Which share of the answers is needed, for each metric."""
    n, rng = len(truth), np.random.default_rng(0)
    drawn = [some(truth, rng.choice(n, BUDGET, replace=False)) for _ in range(DRAWS)]
    start = judge(truth, mlc.combine(panel).scores).value * SIGN
    target = np.mean([quality(panel, truth, gold) for gold in drawn], axis=0) - start
    gains = [np.zeros(4)]
    for share in SHARES:
        asked = [mlc.ask(panel, round(share * BUDGET), seed=seed).at for seed in range(SEEDS)]
        gains.append(np.mean([quality(panel, truth, some(truth, at)) for at in asked], axis=0) - start)
    gains = np.maximum.accumulate(np.array(gains), axis=0)
    return [np.interp(target[q], gains[:, q], (0, *SHARES)) if target[q] > 1e-9 else np.nan for q in range(4)]


def some(truth, rows):
    gold = np.full(truth.shape, np.nan)
    gold[rows] = truth[rows]
    return gold


def main(folder):
    warnings.simplefilter("ignore")
    found = {}
    for path in sorted(folder.rglob("*.npz")):
        scores, truth, known = read(path)
        rows = np.flatnonzero(known.any(axis=1))
        rows = np.random.default_rng(0).permutation(rows)[:MOST]
        if len(rows) >= 3 * BUDGET:
            found[path.stem] = needed(mlc.Predictions(scores[:, rows]), np.where(known, truth, np.nan)[rows])
            print(path.stem, np.round(found[path.stem], 2), flush=True)
    page = HERE.parent / "gold-figures.md"
    block = "<!-- asking -->\n" + "\n".join(table(found)) + "\n<!-- end asking -->"
    page.write_text(
        re.sub(r"<!-- asking -->.*?<!-- end asking -->", lambda _: block, page.read_text(), flags=re.DOTALL)
    )


def table(found):
    values = np.array(list(found.values()))
    mean = np.nanmean(values, axis=1)
    yield "| | " + " | ".join(list(TITLES.values())[:4]) + " | mean of the four |"
    yield "|---|---|---|---|---|---|"
    rows = {"mean over panels": np.nanmean, "median": np.nanmedian, "largest": np.nanmax}
    for name, of in rows.items():
        yield f"| {name} | " + " | ".join(f"{of(values[:, q]):.0%}" for q in range(4)) + f" | {of(mean):.0%} |"
    above = [f"{name} ({share:.0%})" for name, share in zip(found, mean, strict=True) if share > 1.1]
    yield ""
    yield f"More than 110 % on average of the four metrics: {', '.join(above) or 'no panel'}, of {len(found)}."


if __name__ == "__main__":
    main(Path(sys.argv[1]))
