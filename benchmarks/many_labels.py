"""Panels of many labels of which each instance has a few: how long each method takes, with how much memory.

    python benchmarks/many_labels.py [--instances 50000] [--labels 20000] [--models 5] [--each 10] [--method mv ...]
    python benchmarks/many_labels.py --growth          # from 1,000 to 100,000 labels, and from 10,000 instances on

Labels are as frequent as Zipf has it and come in families of which an instance has several; every model gives each
instance the same number of them, with scores. A run reads one long Parquet file and writes a ranked one, the ten best
labels of each instance, in a process of its own. Beside it stands the time of adding up the models' sparse matrices.
"""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy import sparse

FAMILY = 20  # labels that go together
METHODS = ("mv", "ds", "bgcm", "mlcm-r", "mlcm-a", "filter")


def make(n: int, l: int, m: int, each: int, seed: int = 0) -> tuple[Any, list[Any]]:
    """Return the truth and what the models say, as CSR matrices (n, l)."""
    rng = np.random.default_rng(seed)
    names, families = rng.permutation(l), max(1, l // FAMILY)

    def zipf(size: tuple[int, ...]) -> Any:
        return np.minimum(np.exp(rng.random(size) * np.log(l)).astype(np.int64), l - 1)

    def relatives(rank: Any) -> Any:
        other = (FAMILY * rng.random(rank.shape) ** 2).astype(np.int64)
        return np.minimum(rank % families + families * other, l - 1)

    def matrix(rank: Any, scores: Any) -> Any:
        rows = np.repeat(np.arange(n), rank.shape[1])
        found = sparse.coo_array((scores.ravel(), (rows, names[rank.ravel()])), shape=(n, l))
        keys = rows * l + names[rank.ravel()]
        _, first = np.unique(keys, return_index=True)
        return sparse.csr_array((found.data[first], (found.row[first], found.col[first])), shape=(n, l))

    few = max(1, each // 3)
    topics = zipf((n, few))
    true = np.concatenate([topics, *(relatives(topics) for _ in range(2)), zipf((n, each - 3 * few))], axis=1)
    said = []
    for k in range(m):
        kept = rng.random(true.shape) < 0.75 - 0.06 * k
        wrong = np.where(rng.random(true.shape) < 0.5, relatives(true), zipf(true.shape))
        scores = np.where(kept, 1 - 0.6 * rng.random(true.shape) ** 2, 0.15 + 0.6 * rng.random(true.shape))
        said.append(matrix(np.where(kept, true, wrong), np.round(scores, 4)))
    return matrix(true, np.ones(true.shape)), said


def write(path: Path, said: list[Any]) -> None:
    """Write what the models say as one long Parquet file."""
    frames = []
    for k, own in enumerate(said):
        cells = own.tocoo()
        frame = pl.DataFrame({"instance": cells.row, "label": cells.col, "score": cells.data})
        names = pl.format("doc-{}", "instance").alias("instance"), pl.format("subject {}", "label").alias("label")
        frames.append(frame.select(*names, "score", pl.lit(f"model_{k}").alias("model")))
    pl.concat(frames).write_parquet(path)
