"""Count how often intervals cover and promises are kept, over gold instances drawn again and again from panels.

    python docs/figures/coverage.py FOLDER [DRAWS] [random | asked]

FOLDER has panels as for docs/quality/panels.py; DRAWS (2,000) are spread over them.
Gold is drawn at random, and as `ask` draws it for consensus and for figures (a third of
the draws each), or in one of the two ways alone. Writes the tables of
docs/gold-figures.md into that page.
"""

import re
import sys
import warnings
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "quality"))

import mlconsensus as mlc  # noqa: E402
from mlconsensus.active_learning import query  # noqa: E402
from mlconsensus.metrics.intervals import evaluate_on_gold  # noqa: E402
from mlconsensus.metrics.ranking import RANKING_METRICS  # noqa: E402
from mlconsensus.metrics.tables import TITLES  # noqa: E402
from panels import read  # noqa: E402

SIZES = (50, 100, 200)
MOST = 1000  # instances of a panel, drawn at random, are all that there are
PROMISES = ({"recall": 0.9}, {"precision": 0.8}, {"false_discovery": 0.1})


def panels_of(folder):
    for path in sorted(folder.rglob("*.npz")):
        scores, truth, known = read(path)
        scores, truth, known = (
            scores.astype(float),
            truth.astype(bool),
            known.astype(bool),
        )
        some = known.any(axis=1)
        panel = mlc.Predictions(scores[:, some])
        by_name = {kind.name: kind for kind in mlc.COMBINERS.values()}
        methods = {
            name: by_name[name]().fit_transform(panel)
            for name in ("MV", "MLCM-a", "Weighted")
        }
        truth = np.where(known, truth, np.nan)[some]
        at = np.random.default_rng(0).permutation(len(truth))[:MOST]
        yield path.stem, truth[at], {name: own[at] for name, own in methods.items()}


def draws(truth, chance, count, rng):
    for _ in range(count):
        gold = np.full(truth.shape, np.nan)
        at = query.drawn(chance, rng)
        gold[at] = truth[at]
        yield gold


def covering(truth, methods, chance, count, rng):
    """For each draw, metric and kind: whether the interval covers, and its width beside that of gold alone."""
    target, size = (
        {name: evaluate_on_gold(truth, own) for name, own in methods.items()},
        chance.sum(),
    )
    pairs = [("Weighted", "MV"), ("Weighted", "MLCM-a")]
    for gold in draws(truth, chance, count, rng):
        found = {
            name: evaluate_on_gold(gold, own, methods["Weighted"], chance)
            for name, own in methods.items()
        }
        compared = [("value", own, target[name]) for name, own in found.items()]
        compared += [
            ("difference", found[a].subtract(found[b]), target[a].subtract(target[b]))
            for a, b in pairs
        ]
        for kind, own, true in compared:
            alone = own._replace(
                shift=own.shift * 0, foreseen=own.foreseen * 0
            ).compute_estimates()
            for at, (metric, figure) in enumerate(own.compute_estimates().items()):
                if not np.isnan(true.value[at]):
                    covered = (
                        figure.low - 1e-12 <= true.value[at] <= figure.high + 1e-12
                    )
                    plain = alone[metric]
                    yield (
                        kind,
                        metric,
                        covered,
                        figure.high - figure.low,
                        plain.high - plain.low,
                        figure.effective_gold / size,
                    )


def kept(truth, scores, size, count, rng, wanted):
    """For each draw: whether the promise is kept, and how many labels were given for each relevant one."""
    (about, level), yes, no = *wanted.items(), truth == 1, truth == 0
    for gold in draws(truth, np.full(len(truth), size / len(truth)), count, rng):
        found = mlc.decide(scores, gold, **wanted)
        given = (
            found.promises[0].threshold <= scores
        )  # without the answers that are known
        if about == "recall":
            some = yes.any(axis=1)
            ok = (
                (yes & given).sum(axis=1)[some] / yes.sum(axis=1)[some]
            ).mean() >= level
        else:
            wrong = (
                (given & no).sum(axis=1)
                / np.maximum((given & (yes | no)).sum(axis=1), 1)
            ).mean()
            ok = wrong <= (level if about == "false_discovery" else 1 - level)
        yield ok, np.isfinite(found.promises[0].threshold), given.sum() / yes.sum()


def main(folder, total, only):
    warnings.simplefilter("ignore")
    found = list(panels_of(folder))
    covered, promised = {}, {}
    for stem, truth, methods in found:
        for size in SIZES:
            if 2 * size > len(truth):
                continue
            rng, count = np.random.default_rng(size), -(-total // len(found))
            likely = np.clip(methods["Weighted"], 0, 1)
            designs = (
                {}
                if only == "asked"
                else {"at random": (np.full(len(truth), size / len(truth)), count)}
            )
            for goal in () if only == "random" else ("consensus", "figures"):
                designs[f"asked for {goal}"] = (
                    query.chances(likely, likely, size, goal),
                    -(-count // 3),
                )
            for design, (chance, times) in designs.items():
                rows = covered.setdefault((design, size), [])
                rows += [
                    (stem, *row) for row in covering(truth, methods, chance, times, rng)
                ]
            for wanted in PROMISES if size > 50 and only != "asked" else ():
                key = (*wanted.items(), size)
                promised.setdefault(key, []).extend(
                    kept(truth, methods["Weighted"], size, count, rng, wanted)
                )
        print(stem, flush=True)
    page = HERE.parent / "gold-figures.md"
    text = page.read_text()
    tables = (
        {}
        if only == "asked"
        else {
            "coverage": coverage(covered, "at random"),
            "promises": promises(promised),
        }
    )
    tables |= {} if only == "random" else {"asked": coverage(covered, "asked")}
    for name, lines in tables.items():
        block = f"<!-- {name} -->\n" + "\n".join(lines) + f"\n<!-- end {name} -->"
        text = re.sub(
            rf"<!-- {name} -->.*?<!-- end {name} -->",
            lambda _, block=block: block,
            text,
            flags=re.DOTALL,
        )
    page.write_text(text)


def coverage(covered, design):
    yield (
        "| drawn | gold | of | "
        + " | ".join(TITLES[metric] for metric in RANKING_METRICS)
        + " | all |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for (drawn, size), rows in sorted(
        item for item in covered.items() if item[0][0].startswith(design)
    ):
        for kind in ("value", "difference"):
            cells = []
            for metric in (*RANKING_METRICS, None):
                some = [
                    row for row in rows if row[1] == kind and metric in (None, row[2])
                ]
                width = sum(row[4] for row in some) / sum(row[5] for row in some)
                cells.append(f"{np.mean([row[3] for row in some]):.1%}, {width:.2f}")
            yield f"| {drawn} | {size} | {kind}s | " + " | ".join(cells) + " |"


def promises(promised):
    yield "| promise | gold | draws | kept | nothing to promise | labels given for each relevant one |"
    yield "|---|---|---|---|---|---|"
    for ((about, level), size), rows in promised.items():
        ok, possible, given = np.array(rows, dtype=float).T
        mean = given[possible > 0].mean() if possible.any() else np.nan
        yield f"| {about} {level} | {size} | {len(ok):,} | {ok.mean():.1%} | {1 - possible.mean():.0%} | {mean:.2f} |"


if __name__ == "__main__":
    main(
        Path(sys.argv[1]),
        int(sys.argv[2]) if len(sys.argv) > 2 else 2000,
        (*sys.argv[3:], "")[0],
    )
