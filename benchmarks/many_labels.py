"""Panels of many labels of which each instance has a few: how long each method takes, with how much memory.

    python benchmarks/many_labels.py [--instances 50000] [--labels 20000] [--models 5]
    [--each 10] [--method mv ...] python benchmarks/many_labels.py --growth        #
    from 1,000 to 100,000 labels, from 12,500 to 100,000 instances

Labels are as frequent as Zipf has it and come in families of which an instance has
several; every model gives each instance the same number of them, with scores. A run
reads one long Parquet file and writes a ranked one, the ten best labels of each
instance, in a process of its own. Beside it stands the time of adding up the models'
sparse matrices.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from processes import COMBINE, measured
from scipy import sparse

FAMILY = 20  # labels that go together
METHODS = ("mv", "ds", "bgcm", "mlcm-r", "mlcm-a", "weighted")


def make(n: int, l: int, m: int, each: int, seed: int = 0) -> tuple[Any, list[Any]]:
    """Return the truth and what the models say, as CSR matrices (n, l)."""
    rng = np.random.default_rng(seed)
    names = rng.permutation(l)
    families = max(1, l // FAMILY)

    def zipf(size: tuple[int, ...]) -> Any:
        return np.minimum(np.exp(rng.random(size) * np.log(l)).astype(np.int64), l - 1)

    def relatives(rank: Any) -> Any:
        other = (FAMILY * rng.random(rank.shape) ** 2).astype(np.int64)
        return np.minimum(rank % families + families * other, l - 1)

    def matrix(rank: Any, scores: Any) -> Any:
        rows = np.repeat(np.arange(n), rank.shape[1])
        found = sparse.coo_array(
            (scores.ravel(), (rows, names[rank.ravel()])), shape=(n, l)
        )
        keys = rows * l + names[rank.ravel()]
        _, first = np.unique(keys, return_index=True)
        return sparse.csr_array(
            (found.data[first], (found.row[first], found.col[first])), shape=(n, l)
        )

    few = max(1, each // 3)
    topics = zipf((n, few))
    true = np.concatenate(
        [topics, *(relatives(topics) for _ in range(2)), zipf((n, each - 3 * few))],
        axis=1,
    )
    said = []
    for k in range(m):
        kept = rng.random(true.shape) < 0.75 - 0.06 * k
        wrong = np.where(
            rng.random(true.shape) < 0.5, relatives(true), zipf(true.shape)
        )
        scores = np.where(
            kept,
            1 - 0.6 * rng.random(true.shape) ** 2,
            0.15 + 0.6 * rng.random(true.shape),
        )
        said.append(matrix(np.where(kept, true, wrong), np.round(scores, 4)))
    return matrix(true, np.ones(true.shape)), said


def write(path: Path, said: list[Any]) -> None:
    """Write what the models say as one long Parquet file."""
    frames = []
    for k, own in enumerate(said):
        cells = own.tocoo()
        frame = pl.DataFrame(
            {"instance": cells.row, "label": cells.col, "score": cells.data}
        )
        names = (
            pl.format("doc-{}", "instance").alias("instance"),
            pl.format("subject {}", "label").alias("label"),
        )
        frames.append(
            frame.select(*names, "score", pl.lit(f"model_{k}").alias("model"))
        )
    pl.concat(frames).write_parquet(path)


def adding(said: list[Any]) -> float:
    """Return the seconds of CPU that it takes to add up the models' matrices."""
    began = time.process_time()
    sum(said[1:], said[0])
    return time.process_time() - began


def run(
    n: int, l: int, m: int, each: int, methods: list[str], folder: Path
) -> dict[str, Any]:
    """Measure each method on one panel."""
    _, said = make(n, l, m, each)
    panel = folder / f"panel-{n}-{l}-{m}-{each}.parquet"
    if not panel.exists():
        write(panel, said)
    found: dict[str, Any] = {
        "adding": adding(said),
        "said": sum(own.nnz for own in said),
    }
    del said
    for method in methods:
        out = [
            "--layout",
            "ranked",
            "--top-k",
            "10",
            "--output",
            str(folder / "out.parquet"),
            "--method",
            method,
        ]
        found[method] = measured([*COMBINE, str(panel), *out])
        found[method]["times"] = found[method]["cpu"] / found["adding"]
        print(
            f"{n:>9,} × {l:>7,} × {m}  {method:8}",
            json.dumps({k: round(v, 2) for k, v in found[method].items()}),
        )
    return found


def exponents(
    rows: list[tuple[float, dict[str, Any]]], methods: list[str]
) -> dict[str, float]:
    """Fit how the CPU time of each method grows, leaving out what starting and importing take."""
    at = np.log([size for size, _ in rows])
    return {
        own: float(
            np.polyfit(at, np.log([found[own]["cpu"] for _, found in rows]), 1)[0]
        )
        for own in methods
    }


def main() -> None:
    """Run what the options ask for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in {
        "instances": 50_000,
        "labels": 20_000,
        "models": 5,
        "each": 10,
    }.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--method", nargs="+", default=list(METHODS))
    parser.add_argument(
        "--growth",
        action="store_true",
        help="how time grows with labels and with instances",
    )
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp())
    size = given.models, given.each, given.method, folder
    if not given.growth:
        run(given.instances, given.labels, *size)
        return
    by_instances = [
        (n, run(n, given.labels, *size)) for n in (12_500, 25_000, 50_000, 100_000)
    ]
    by_labels = [
        (l, run(given.instances, l, *size))
        for l in (1_000, 3_000, 10_000, 30_000, 100_000)
    ]
    print("l^", exponents(by_labels, given.method))
    print("n^", exponents(by_instances, given.method))


if __name__ == "__main__":
    main()
