"""Compare every method, and weighted consensus without its parts, on data with truth.

    python docs/quality/measure.py FOLDER

FOLDER has NPZ files at any depth: `predictions` (m, n, l) with NaN for missing
predictions, `truth` (n, l), and `truth_mask` or `verified_mask` (n, l) if the truth is
known in part. Writes results.json next to this file, and the tables of docs/quality.md.
"""

import json
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import mlconsensus as mlc
from mlconsensus.combiners import reliability, weighted_consensus
from mlconsensus.combiners.reliability import estimate_reliability
from mlconsensus.metrics._rank_counts import (
    compute_average_precision,
    compute_one_error,
    compute_ranking_loss,
    find_tie_groups,
)

HERE = Path(__file__).parent
METRICS = ("micro AUC", "one-error", "ranking loss", "average precision")
SIGN = np.array([1, -1, -1, 1])  # so that higher is better
N_PARTS = 20  # groups of instances for the jackknife
MAX_INSTANCES = 2000
DEFAULT = "weighted_consensus"


def read(path):
    """Return scores (m, n, l), truth (n, l) and where it is known, of one file."""
    file = np.load(path, allow_pickle=False)
    if "P" in file.files:  # packed bits
        shape = tuple(file["shape"])
        scores = np.unpackbits(file["P"])[: np.prod(shape)].reshape(shape)
        truth = np.unpackbits(file["Z"])[: shape[1] * shape[2]].reshape(shape[1:])
    else:
        scores = file["predictions"]
        truth = file["truth"]
    is_known = np.ones(truth.shape, dtype=bool)
    for name in ("truth_mask", "verified_mask"):
        if name in file.files:
            is_known = file[name].astype(bool)
    return scores.astype(np.float64), truth.astype(bool), is_known


# Metrics.


def compute_by_instance(truth, is_known, scores):
    """Return one-error, ranking loss and average precision, (n, 3), NaN if undefined."""
    result = np.full((len(truth), 3), np.nan)
    patterns, which = np.unique(is_known, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        rows = np.flatnonzero(which.ravel() == number)
        n_relevant = truth[np.ix_(rows, pattern)].sum(axis=1)
        rows = rows[(n_relevant > 0) & (n_relevant < pattern.sum())]
        if len(rows) == 0:
            continue
        groups = find_tie_groups(
            truth[np.ix_(rows, pattern)],
            np.ascontiguousarray(scores[np.ix_(rows, pattern)]),
        )
        result[rows, 0] = compute_one_error(groups)
        result[rows, 1] = compute_ranking_loss(groups)
        result[rows, 2] = compute_average_precision(groups)
    return result


def evaluate(truth, is_known, scores):
    """Return the four metrics, and their jackknife replicates (N_PARTS, 4)."""
    part = np.random.default_rng(0).permutation(len(truth)) % N_PARTS
    by_instance = compute_by_instance(truth, is_known, scores)
    pair_part = np.broadcast_to(part[:, np.newaxis], truth.shape)[is_known]
    is_relevant = truth[is_known]
    value = scores[is_known]

    # Pairs of a relevant label of one part and an irrelevant label of another in the
    # right order.
    wins = np.zeros((N_PARTS, N_PARTS))
    relevant_part = pair_part[is_relevant]
    for number in range(N_PARTS):
        irrelevant = np.sort(value[~is_relevant & (pair_part == number)])
        below = np.searchsorted(irrelevant, value[is_relevant], "left")
        below = below + np.searchsorted(irrelevant, value[is_relevant], "right")
        wins[:, number] = np.bincount(relevant_part, below / 2, N_PARTS)
    n_relevant = np.bincount(relevant_part, minlength=N_PARTS).astype(float)
    n_irrelevant = np.bincount(pair_part[~is_relevant], minlength=N_PARTS)

    def compute(is_used):
        n_pairs = n_relevant[is_used].sum() * n_irrelevant[is_used].sum()
        micro_auc = wins[np.ix_(is_used, is_used)].sum() / n_pairs
        return np.append(micro_auc, np.nanmean(by_instance[is_used[part]], axis=0))

    full = compute(np.ones(N_PARTS, dtype=bool))
    replicates = [compute(np.arange(N_PARTS) != left) for left in range(N_PARTS)]
    return full, np.array(replicates)


def compare(result, reference):
    """Return the gains over a reference, (4,), and their standard errors."""
    differences = (result[1] - reference[1]) * SIGN
    squares = (differences - differences.mean(axis=0)) ** 2
    error = np.sqrt((N_PARTS - 1) / N_PARTS * squares.sum(axis=0))
    return (result[0] - reference[0]) * SIGN, error


# Weighted consensus without one of its parts.


@contextmanager
def replaced(module, name, value) -> Iterator[None]:
    """Use another value of a module's name in a block."""
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


def without_label_correlations(covariance, *args):
    """Return the identity instead of the correlations of labels."""
    return np.eye(len(covariance))


def without_label_reliability(statistics, families, ease):
    """Return the same reliability on all labels."""
    return np.repeat(families.reliability[:, np.newaxis], len(ease), axis=1)


def with_equal_reliability(correlation, across, is_ambiguous=False):
    """Return the average reliability for all models."""
    return estimate_reliability(correlation, across, is_ambiguous=True)


ABLATIONS: dict[str, tuple[object, str, Callable[..., object] | float]] = {
    "label correlations": (
        weighted_consensus,
        "_correlate_labels",
        without_label_correlations,
    ),
    "reliability and ease of each label": (
        weighted_consensus,
        "_estimate_label_reliability",
        without_label_reliability,
    ),
    "reliability of models (all are equal)": (
        reliability,
        "estimate_reliability",
        with_equal_reliability,
    ),
    "similarity K (all err independently)": (
        weighted_consensus,
        "measure_replication",
        lambda score_products: 0.0,
    ),
    "replication test (K is the similarity of rates)": (
        weighted_consensus,
        "measure_replication",
        lambda score_products: 1.0,
    ),
    "vote": (weighted_consensus, "_VOTE_SHARE", 0.0),
    "sampling error of other models": (reliability, "_N_ERRORS", 0.0),
}


def fit_all(predictions):
    """Yield the name and the scores of each method, and of each ablation."""
    for name, combiner_class in mlc.COMBINERS.items():
        yield name, combiner_class().fit_transform(predictions)
    for part, replacement in ABLATIONS.items():
        with replaced(*replacement):
            yield f"without {part}", mlc.weighted_consensus(predictions)
    independent = mlc.weighted_consensus(predictions, families="independent")
    yield "without families", independent


def measure(path, folder):
    """Return the metrics of all methods on one file, and gains over voting."""
    scores, truth, is_known = read(path)
    predictions = mlc.Predictions(scores)
    rows = np.arange(len(truth))
    if len(rows) > MAX_INSTANCES:
        rows = np.sort(np.random.default_rng(1).permutation(len(rows))[:MAX_INSTANCES])
    results = {}
    for name, consensus in fit_all(predictions):
        results[name] = evaluate(truth[rows], is_known[rows], consensus[rows])
    collection = "trained models, the paper's data"
    if path.parent != folder:
        collection = {"real": "real models and annotators"}.get(
            path.parent.name, "trained models, other data"
        )
    record = {"collection": collection, "shape": list(scores.shape), "methods": {}}
    for name, result in results.items():
        reference = results["majority_vote"]
        if name.startswith("without "):
            reference = results[DEFAULT]
        gain, error = compare(result, reference)
        record["methods"][name] = {
            "metrics": result[0].tolist(),
            "gain": gain.tolist(),
            "standard_error": error.tolist(),
        }
    return record


# Tables.


def summarize_gains(records, name):
    """Return mean gains and counts of comparisons, as cells of a table."""
    gain = np.array([record["methods"][name]["gain"] for record in records])
    error = np.array([record["methods"][name]["standard_error"] for record in records])
    n_comparisons = gain.size
    n_better = int((gain > 2 * error + 1e-9).sum())
    n_worse = int((gain < -2 * error - 1e-9).sum())
    cells = [f"{value:+.3f}" for value in gain.mean(axis=0)]
    cells.append(f"{n_better} of {n_comparisons} ({n_better / n_comparisons:.0%})")
    cells.append(f"{n_worse} of {n_comparisons} ({n_worse / n_comparisons:.0%})")
    return cells


def make_row(cells):
    """Return one row of a Markdown table."""
    return "| " + " | ".join(cells) + " |"


def make_header(first):
    """Return the header of a table of gains."""
    titles = [first, *METRICS, "significantly better", "significantly worse"]
    return [make_row(titles), "|" + "---|" * len(titles)]


def make_tables(results):
    """Return the tables of the page, by the name of their place."""
    records = list(results.values())
    collections = sorted({record["collection"] for record in records})
    by_collection = make_header("weighted consensus over voting")
    for collection in [*collections, "all"]:
        chosen = [r for r in records if collection in ("all", r["collection"])]
        cells = summarize_gains(chosen, DEFAULT)
        by_collection.append(make_row([f"{collection} ({len(chosen)})", *cells]))

    methods = make_header("method, over voting")
    ablations = make_header("without")
    for name in records[0]["methods"]:
        cells = summarize_gains(records, name)
        if name.startswith("without "):
            ablations.append(make_row([name.removeprefix("without "), *cells]))
        elif name != "majority_vote":
            methods.append(make_row([name, *cells]))

    worse = ["| data set | metric | gain | standard error |", "|---|---|---|---|"]
    for path, record in results.items():
        result = record["methods"][DEFAULT]
        for metric, gain, error in zip(
            METRICS, result["gain"], result["standard_error"], strict=True
        ):
            if gain < -2 * error - 1e-9:
                worse.append(make_row([path, metric, f"{gain:+.3f}", f"{error:.3f}"]))
    return {
        "collections": by_collection,
        "methods": methods,
        "ablations": ablations,
        "worse": worse,
    }


def write_page(results):
    """Replace the tables of docs/quality.md."""
    page = HERE.parent / "quality.md"
    text = page.read_text(encoding="utf-8")
    for name, lines in make_tables(results).items():
        table = f"<!-- {name} -->\n" + "\n".join(lines) + f"\n<!-- end {name} -->"
        pattern = re.compile(f"<!-- {name} -->.*?<!-- end {name} -->", re.DOTALL)
        text = pattern.sub(lambda match, table=table: table, text)
    page.write_text(text, encoding="utf-8")


def main(folder):
    """Measure all files below a folder, except those with a single label."""
    warnings.simplefilter("ignore")
    results = {}
    for path in sorted(folder.rglob("*.npz")):
        if read(path)[1].shape[1] == 1:
            continue
        name = str(path.relative_to(folder).with_suffix(""))
        results[name] = measure(path, folder)
        print(name, np.round(results[name]["methods"][DEFAULT]["gain"], 3), flush=True)
    text = json.dumps(results, indent=1)
    (HERE / "results.json").write_text(text + "\n", encoding="utf-8")
    write_page(results)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
