"""Measure what known answers bring, on panels with truth, against the default without them and against stacking.

    python docs/gold/measure.py FOLDER CACHE [--draws 10]

FOLDER has panels as NPZ files, as docs/quality/panels.py reads them. For each panel and
number of gold instances (at most three quarters of those of which some truth is known),
gold is drawn at random ten times; what is judged are the instances that are not gold
(at most 1,500 of them, drawn at random too), by four metrics. Results of each panel are
kept in CACHE. Writes gold.json beside this file and the tables of docs/gold.md into
that page.

Stacking is logistic regression on the raters' answers, label by label, as scikit-learn
has it by default; an answer that a rater did not give is its mean on the label; labels
of which all gold answers are alike get their rate.
"""

import argparse
import json
import re
import sys
import warnings
from pathlib import Path

import numpy as np
from mlconsensus.combiners._old_default import learning
from sklearn.linear_model import LogisticRegression

import mlconsensus as mlc
from mlconsensus import choosing
from mlconsensus.combiners.registry import list_by_name
from mlconsensus.predictions.predictions import as_predictions

sys.path.insert(0, str(Path(__file__).parents[1] / "quality"))
import panels as quality

HERE = Path(__file__).parent
SIZES = (25, 50, 100, 200)
MOST_JUDGED = 1500
LARGE, FEW = (
    4e6,
    3,
    # cells of panels of which fewer draws are taken; and where the default is not the
    # filter
)
BEYOND = (
    1.0,
    2.0,
    3.0,
)  # standard errors: the constant of the gate that was chosen with truth in view
SHIPPED = 3.0
SMALL = 2e6  # cells of panels on which the other methods are tried, with fewer draws
METRICS, SIGN = quality.METRICS, quality.SIGN


def drawn(known, size, draw):
    """Which instances are gold, and which are judged."""
    rng = np.random.default_rng([size, draw])
    gold = np.sort(rng.choice(np.flatnonzero(known.any(axis=1)), size, replace=False))
    rest = np.setdiff1d(np.arange(len(known)), gold)
    return gold, np.sort(rng.choice(rest, min(len(rest), MOST_JUDGED), replace=False))


def metrics(truth, known, scores):
    """The four metrics, higher = better."""
    yes, value = truth[known], scores[known]
    others = np.sort(value[~yes])
    below = np.searchsorted(others, value[yes], "left") + np.searchsorted(
        others, value[yes], "right"
    )
    each = np.nanmean(quality.of_instances(truth, known, scores), axis=0)
    return np.r_[below.sum() / (2 * len(others) * yes.sum()), each] * SIGN


def stacked(answers, truth, known, judged):
    """Probabilities by logistic regression on answers (g, m, l), of what is judged (n, m, l)."""
    out = np.zeros((len(judged), truth.shape[1]))
    for j in range(truth.shape[1]):
        some = known[:, j]
        own = truth[some, j]
        if 0 < own.sum() < len(own):
            fitted = LogisticRegression().fit(answers[some][:, :, j], own)
            out[:, j] = fitted.predict_proba(judged[:, :, j])[:, 1]
        elif len(own):
            out[:, j] = own.mean()
    return out


def of_panel(path, draws):
    """Metrics of every draw: size, draw, and for each of `without`, `stacking` and a gate in BEYOND four figures.

    `without` is what `combine` makes of the panel, a gate what it makes of it with
    gold.
    """
    scores, truth, known = quality.read(path)
    panel = as_predictions(scores)
    default = mlc.combine(panel)
    draws = FEW if scores.size > LARGE or default.method != choosing.DEFAULT else draws
    combiner = mlc.WeightedConsensus().fit(panel)
    usual = np.nan_to_num(np.nanmean(scores, axis=1, keepdims=True))
    answers = np.where(np.isnan(scores), usual, scores).transpose(1, 0, 2)
    rows = []
    for size in (size for size in SIZES if size <= 0.75 * known.any(axis=1).sum()):
        for draw in range(draws):
            gold, judged = drawn(known, size, draw)
            here = truth[judged], known[judged]
            found = {"without": metrics(*here, default.scores[judged])}
            found["stacking"] = metrics(
                *here, stacked(answers[gold], truth[gold], known[gold], answers[judged])
            )
            block = panel[gold].with_gold(np.where(known[gold], truth[gold], np.nan))
            learned = True
            for beyond in BEYOND:
                learning._BEYOND = beyond
                if learned:  # what a lower bar does not let pass, a higher one does not
                    given, learned = with_gold(
                        panel, default, combiner, block, truth, known, judged
                    )
                found[str(beyond)] = metrics(*here, given)
            rows.append(
                {"size": size, "draw": draw}
                | {name: value.tolist() for name, value in found.items()}
            )
    return rows


def with_gold(panel, default, combiner, block, truth, known, judged):
    """Scores of what is judged, as `combine` gives them with gold, and whether a higher bar could change them.

    Only what gold changes is worked out anew.
    """
    if default.method != choosing.DEFAULT:
        answers = np.full(truth.shape, np.nan)
        gold = block.instances
        answers[gold] = np.where(known[gold], truth[gold], np.nan)
        told = panel.with_gold(answers)
        if not choosing._known_answers_prefer_the_default(told, default.method, None):
            return default.scores[judged], True
    solution = type(combiner).learn(block, combiner.solution_)
    return type(combiner).apply(panel[judged], solution), len(solution.learned) > 0


def of_others(path, draws=3):
    """Gains of the other methods with gold over themselves without it: method → size → four figures."""
    scores, truth, known = quality.read(path)
    panel, out = as_predictions(scores), {}
    for name, kind in list_by_name().items():
        if name in ("MV", "Weighted"):
            continue
        without = kind().fit_transform(panel)
        for size in (size for size in SIZES if size <= 0.75 * known.any(axis=1).sum()):
            gains = []
            for draw in range(draws):
                gold, judged = drawn(known, size, draw)
                answers = np.full(truth.shape, np.nan)
                answers[gold] = np.where(known[gold], truth[gold], np.nan)
                here = truth[judged], known[judged]
                found = kind().fit_transform(panel.with_gold(answers))
                gains.append(
                    metrics(*here, found[judged]) - metrics(*here, without[judged])
                )
            out.setdefault(name, {})[size] = np.mean(gains, axis=0).tolist()
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("cache", type=Path)
    parser.add_argument("--draws", type=int, default=10)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    given.cache.mkdir(exist_ok=True)
    results, others = {}, {}
    for path in sorted(
        given.folder.rglob("*.npz"), key=lambda path: path.stat().st_size
    ):
        kept = given.cache / f"{path.stem}.json"
        if not kept.exists():
            kept.write_text(json.dumps(of_panel(path, given.draws)))
            print(path.stem, flush=True)
        other = given.cache / f"{path.stem}.others"
        if not other.exists() and np.prod(quality.read(path)[0].shape) < SMALL:
            other.write_text(json.dumps(of_others(path)))
        if other.exists():
            others[path.stem] = json.loads(other.read_text())
        results[path.stem] = {
            "source": quality.source(path, given.folder),
            "rows": json.loads(kept.read_text()),
        }
    found = cells(results)
    (HERE / "gold.json").write_text(
        json.dumps({"default": found, "others": others}) + "\n"
    )
    write_page(found, others)


def cells(results):
    """A row for each panel, size and metric: means over draws and standard errors of the two differences."""
    out = []
    for name, found in sorted(results.items()):
        for size in sorted({row["size"] for row in found["rows"]}):
            some = [row for row in found["rows"] if row["size"] == size]
            kinds = ["without", "stacking", *map(str, BEYOND)]
            figures = {kind: np.array([row[kind] for row in some]) for kind in kinds}
            for at, metric in enumerate(METRICS):
                cell = {
                    "panel": name,
                    "source": found["source"],
                    "size": size,
                    "metric": metric,
                }
                cell |= {
                    kind: round(float(figures[kind][:, at].mean()), 6)
                    for kind in ("without", "stacking")
                }
                for beyond in map(str, BEYOND):
                    for against in ("without", "stacking"):
                        gain = (figures[beyond] - figures[against])[:, at]
                        error = gain.std(ddof=1) / np.sqrt(len(gain))
                        cell[f"{beyond} {against}"] = [
                            round(float(gain.mean()), 6),
                            round(float(error), 6),
                        ]
                out.append(cell)
    return out


def chosen_elsewhere(found):
    """For each source, the gate that panels of other sources would have chosen: fewest cells behind, then most gain."""
    choice = {}
    for source in {cell["source"] for cell in found}:
        others = [cell for cell in found if cell["source"] != source]

        def worth(beyond, others=others):
            gain = np.array([cell[f"{beyond} without"] for cell in others])
            return -round((gain[:, 0] < -1e-12).mean() / 0.05 - 0.5), gain[:, 0].mean()

        choice[source] = max(map(str, BEYOND), key=worth)
    return choice


def summary(found):
    choice = chosen_elsewhere(found)
    heads = "at least as good as without | clearly worse | mean gain | ahead of stacking | clearly"
    yield f"| gate | gold | cells | {heads} |"
    yield "|---|---|---|---|---|---|---|---|"
    for label, of in (
        ("chosen on other data sets", choice.get),
        ("as shipped", lambda source: str(SHIPPED)),
    ):
        for size in SIZES:
            some = [cell for cell in found if cell["size"] == size]
            own, stack = (
                np.array([cell[f"{of(cell['source'])} {against}"] for cell in some])
                for against in ("without", "stacking")
            )
            gains = " ".join(
                f"{own[[cell['metric'] == metric for cell in some], 0].mean():+.3f}"
                for metric in METRICS
            )
            yield (
                f"| {label} | {size} | {len(some)} | {(own[:, 0] >= -1e-12).mean():.1%} | "
                f"{(own[:, 0] < -2 * own[:, 1] - 1e-12).sum()} | {gains} | {(stack[:, 0] >= 0).mean():.1%} | "
                f"{(stack[:, 0] > 2 * stack[:, 1]).mean():.1%} |"
            )


def behind(found):
    yield "| panel | gold | metric | without | gain (standard error) |"
    yield "|---|---|---|---|---|"
    for cell in found:
        gain, error = cell[f"{SHIPPED} without"]
        if gain < -1e-12:
            yield (
                f"| {cell['panel']} | {cell['size']} | {cell['metric']} | {abs(cell['without']):.4f} | "
                f"{gain:+.4f} ({error:.4f}) |"
            )


def panels(found):
    yield "| panel | gold | gain over the default without gold | gain over stacking |"
    yield "|---|---|---|---|"
    for name in sorted({cell["panel"] for cell in found}):
        for size in SIZES:
            some = [
                cell for cell in found if (cell["panel"], cell["size"]) == (name, size)
            ]
            both = [
                " ".join(f"{cell[f'{SHIPPED} {against}'][0]:+.3f}" for cell in some)
                for against in ("without", "stacking")
            ]
            if some:
                yield f"| {name} | {size} | {both[0]} | {both[1]} |"


def methods(others):
    yield f"| method | gold | mean gain on {len(others)} panels | cells not behind |"
    yield "|---|---|---|---|"
    for name in next(iter(others.values())):
        for size in map(str, SIZES):
            gains = np.array(
                [found[name][size] for found in others.values() if size in found[name]]
            )
            mean = " ".join(f"{x:+.3f}" for x in gains.mean(axis=0))
            yield f"| {name} | {size} | {mean} | {(gains >= -1e-12).mean():.0%} |"


def write_page(found, others):
    page = HERE.parent / "gold.md"
    text = page.read_text()
    tables = {
        "summary": summary(found),
        "behind": behind(found),
        "panels": panels(found),
        "methods": methods(others),
    }
    for name, lines in tables.items():
        block = f"<!-- {name} -->\n" + "\n".join(lines) + f"\n<!-- end {name} -->"
        text = re.sub(
            rf"<!-- {name} -->.*?<!-- end {name} -->",
            lambda _, block=block: block,
            text,
            flags=re.DOTALL,
        )
    page.write_text(text)


if __name__ == "__main__":
    main()
