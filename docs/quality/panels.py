"""Judge every method on panels with truth, and the default's constants on data sets that they were not chosen on.

    python docs/quality/panels.py FOLDER

FOLDER has panels as NPZ files (`predictions` (m, n, l) with NaN for silence, `truth`,
and `truth_mask` or `verified_mask` where some of it is not known), at any depth. Writes
panels.json beside this file, and the tables of docs/quality.md into that page.
"""

import itertools
import json
import re
import sys
import warnings
from pathlib import Path

import numpy as np
from mlconsensus.combiners._old_default import rater_rounds, weighted_consensus

import mlconsensus as mlc
from mlconsensus.combiners.registry import list_by_name
from mlconsensus.metrics._rank_counts import (
    compute_average_precision,
    compute_one_error,
    compute_ranking_loss,
    find_tie_groups,
)
from mlconsensus.predictions.predictions import as_predictions

HERE = Path(__file__).parent
METRICS = ("microAUC", "one error", "ranking loss", "average precision")
SIGN = np.array([1, -1, -1, 1])
PARTS = 20  # of instances, for the jackknife
# Constants that were chosen with truth in view: what votes count, the most noise, how
# far rare labels are raised.
CONSTANTS = (
    (weighted_consensus, "_VOTING"),
    (weighted_consensus, "_MOST_NOISE"),
    (rater_rounds, "_RAISED"),
)
GRID = list(itertools.product((0.5, 1.0, 2.0), (1.5, 2.0, 3.0), (0.25, 0.5, 0.75)))


def read(path):
    file = np.load(path, allow_pickle=False)
    if "P" in file.files:  # packed bits
        shape = tuple(file["shape"])
        scores = np.unpackbits(file["P"])[: np.prod(shape)].reshape(shape)
        truth = np.unpackbits(file["Z"])[: shape[1] * shape[2]].reshape(shape[1:])
    else:
        scores, truth = file["predictions"], file["truth"]
    masks = [
        file[name].astype(bool)
        for name in ("truth_mask", "verified_mask")
        if name in file.files
    ]
    return (
        scores.astype(np.float64),
        truth.astype(bool),
        masks[0] if masks else np.ones(truth.shape, dtype=bool),
    )


def source(path, folder):
    """The data set that a panel is made from: no constant is chosen on it when it is judged."""
    return path.stem if path.parent.name == "real" else path.stem.split("_")[0]


def of_instances(truth, known, scores):
    """One error, ranking loss and average precision of each instance; NaN where there is nothing to rank."""
    out = np.full((len(truth), 3), np.nan)
    patterns, which = np.unique(known, axis=0, return_inverse=True)
    for at, pattern in enumerate(patterns):
        rows = np.flatnonzero(which.ravel() == at)
        relevant = truth[np.ix_(rows, pattern)].sum(axis=1)
        rows = rows[(relevant > 0) & (relevant < pattern.sum())]
        for some in np.array_split(rows, max(1, len(rows) // 2000)):
            if len(some):
                found = find_tie_groups(
                    truth[np.ix_(some, pattern)],
                    np.ascontiguousarray(scores[np.ix_(some, pattern)]),
                )
                out[some] = np.stack(
                    [
                        each(found)
                        for each in (
                            compute_one_error,
                            compute_ranking_loss,
                            compute_average_precision,
                        )
                    ],
                    axis=1,
                )
    return out


def judge(truth, known, scores):
    """The four metrics (4,), and their jackknife replicates (PARTS, 4)."""
    part = np.random.default_rng(0).permutation(len(truth)) % PARTS
    each = of_instances(truth, known, scores)
    of_cell = np.broadcast_to(part[:, None], truth.shape)[known]
    yes, value = truth[known], scores[known]
    won = np.zeros(
        (PARTS, PARTS)
    )  # pairs of a relevant cell of one part and an irrelevant cell of another
    for at in range(PARTS):
        others = np.sort(value[~yes & (of_cell == at)])
        below = np.searchsorted(others, value[yes], "left") + np.searchsorted(
            others, value[yes], "right"
        )
        won[:, at] = np.bincount(of_cell[yes], weights=below / 2, minlength=PARTS)
    n_yes, n_no = (
        np.bincount(of_cell[some], minlength=PARTS).astype(float)
        for some in (yes, ~yes)
    )

    def metrics(kept):
        auc = won[np.ix_(kept, kept)].sum() / (n_yes[kept].sum() * n_no[kept].sum())
        return np.r_[auc, np.nanmean(each[kept[part]], axis=0)]

    every = np.ones(PARTS, dtype=bool)
    return metrics(every), np.array(
        [metrics(np.arange(PARTS) != at) for at in range(PARTS)]
    )


def gains(own, vote):
    """How much better than voting (4,), and the standard error of that."""
    replicates = (own[1] - vote[1]) * SIGN
    spread = ((replicates - replicates.mean(axis=0)) ** 2).sum(axis=0)
    return (own[0] - vote[0]) * SIGN, np.sqrt((PARTS - 1) / PARTS * spread)


def counted(own, methods):
    """First, behind voting, behind by more than two standard errors: cells of four."""
    gain, error = gains(own, methods["MV"])
    best = np.max([found[0] * SIGN for found in methods.values()], axis=0)
    first = own[0] * SIGN >= best - 1e-12
    return np.array(
        [first.sum(), (gain < -1e-12).sum(), (gain < -1e-12 - 2 * error).sum()]
    )


def with_constants(panel, fitted, constants):
    before = [getattr(*constant) for constant in CONSTANTS]
    for constant, value in zip(CONSTANTS, constants, strict=True):
        setattr(*constant, value)
    solution = weighted_consensus.solve(fitted.statistics_, None, fitted.state_)
    for constant, value in zip(CONSTANTS, before, strict=True):
        setattr(*constant, value)
    return weighted_consensus.apply(panel, solution)


def main(folder):
    warnings.simplefilter("ignore")
    results, tried = {}, {}
    paths = sorted(folder.rglob("*.npz"))
    for path in paths:
        scores, truth, known = read(path)
        panel = as_predictions(scores)
        others = {
            name: kind for name, kind in list_by_name().items() if name != "Weighted"
        }
        methods = {
            name: judge(truth, known, kind().fit_transform(panel))
            for name, kind in others.items()
        }
        fitted = mlc.WeightedConsensus().fit(panel)
        own = judge(truth, known, fitted.transform(panel))
        tried[path] = {
            at: counted(judge(truth, known, with_constants(panel, fitted, at)), methods)
            for at in GRID
        }
        gain, error = gains(own, methods["MV"])
        results[path.stem] = {
            "kind": {folder.name: "paper"}.get(path.parent.name, path.parent.name),
            "shape": list(scores.shape),
            "figures": {
                name: found[0].tolist()
                for name, found in {**methods, "Weighted": own}.items()
            },
            "gain": gain.tolist(),
            "error": error.tolist(),
            "counts": counted(own, methods).tolist(),
        }
        print(path.stem, results[path.stem]["counts"], flush=True)
    for path in paths:  # what other data sets would have chosen
        elsewhere = [
            other for other in paths if source(other, folder) != source(path, folder)
        ]

        def worth(at, elsewhere=elsewhere):
            by_source = {}
            for other in elsewhere:
                by_source.setdefault(source(other, folder), []).append(
                    tried[other][at] @ (1, -2, -4)
                )
            return np.mean([np.mean(found) for found in by_source.values()])

        chosen = max(GRID, key=worth)
        results[path.stem] |= {
            "chosen": list(chosen),
            "counts_chosen": tried[path][chosen].tolist(),
        }
    (HERE / "panels.json").write_text(json.dumps(results, indent=1) + "\n")
    write_page(results)


def write_page(results):
    page = HERE.parent / "quality.md"
    text = page.read_text()
    for name, lines in {
        "summary": summary(results),
        "behind": behind(results),
        "panels": panels(results),
    }.items():
        block = f"<!-- {name} -->\n" + "\n".join(lines) + f"\n<!-- end {name} -->"
        text = re.sub(
            rf"<!-- {name} -->.*?<!-- end {name} -->",
            lambda _, block=block: block,
            text,
            flags=re.DOTALL,
        )
    page.write_text(text)


def summary(results):
    yield "| panels | cells | first | behind voting | beyond two standard errors | mean gain over voting |"
    yield "|---|---|---|---|---|---|"
    kinds = {"real": "`real`", "few": "`few`", "paper": "the paper's data"}
    for label, key in (
        ("constants of other data sets", "counts_chosen"),
        ("as shipped", "counts"),
    ):
        for kind, name in {**kinds, None: "all"}.items():
            some = [
                found for found in results.values() if kind in (None, found["kind"])
            ]
            first, worse, clearly = np.sum([found[key] for found in some], axis=0)
            gain = " ".join(
                f"{x:+.3f}" for x in np.mean([found["gain"] for found in some], axis=0)
            )
            gain = gain if key == "counts" else ""
            yield f"| {name}, {label} | {4 * len(some)} | {first} | {worse} | {clearly} | {gain} |"


def behind(results):
    yield "| panel | metric | Filter | MV | behind by (standard error) |"
    yield "|---|---|---|---|---|"
    for name, found in results.items():
        for at, metric in enumerate(METRICS):
            gain, error = found["gain"][at], found["error"][at]
            if gain < -1e-12:
                own, vote = found["figures"]["Weighted"][at], found["figures"]["MV"][at]
                yield f"| {name} | {metric} | {own:.4f} | {vote:.4f} | {-gain:.4f} ({error:.4f}) |"


def panels(results):
    yield "| panel | m × n × l | Filter | MV | first of the others | gain over voting (standard error) |"
    yield "|---|---|---|---|---|---|"
    for name, found in results.items():
        figures = found["figures"]
        rivals = [other for other in figures if other != "Weighted"]
        best = [
            max(rivals, key=lambda other, at=at: figures[other][at] * SIGN[at])
            for at in range(4)
        ]
        row = [
            " ".join(f"{x:.3f}" for x in figures[which]) for which in ("Weighted", "MV")
        ]
        row.append(
            " ".join(
                f"{which} {figures[which][at]:.3f}" for at, which in enumerate(best)
            )
        )
        row.append(
            " ".join(
                f"{g:+.3f} ({e:.3f})"
                for g, e in zip(found["gain"], found["error"], strict=True)
            )
        )
        yield (
            f"| {name} | {' × '.join(map(str, found['shape']))} | "
            + " | ".join(row)
            + " |"
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
