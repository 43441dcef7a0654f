"""How much faster two Dask workers are than one.

    python benchmarks/dask_workers.py [--instances 2000000] [--labels 200] [--models 5]
    [--method mlcm-r]

Workers are processes with one thread each on this machine, as `combine --dask` starts
them, and make their own chunks of decisions, 2.5 % of them yes, so that nothing has to
be sent to them. `fit` gathers the statistics, `transform` adds up the scores where they
are. The bar: two workers are at least 1.5 times as fast as one.
"""

import argparse
import json
import os
import time
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client

import mlconsensus as mlc
from mlconsensus.combiners.registry import find_identifier
from mlconsensus.execution.dask import start_local_cluster

FILL = 0.025


def votes(model: int, block_info: Any = None) -> np.ndarray:
    """Make one chunk; the same one every time, whoever makes it."""
    place = block_info[None]
    rng = np.random.default_rng([model, place["chunk-location"][0]])
    rows, columns = place["chunk-shape"]
    chosen = np.zeros(rows * columns, dtype=bool)
    chosen[rng.integers(0, rows * columns, int(FILL * rows * columns))] = True
    return chosen.reshape(rows, columns)


def measured(workers: int, options: argparse.Namespace) -> dict[str, float]:
    n = options.instances
    l = options.labels
    with start_local_cluster(workers) as cluster, Client(cluster):
        arrays = [
            da.map_blocks(
                votes,
                k,
                chunks=da.core.normalize_chunks((options.rows, l), (n, l)),
                dtype=bool,
            )
            for k in range(options.models)
        ]
        panel = mlc.from_dask(arrays)
        kind = mlc.COMBINERS[find_identifier(options.method)]
        small = mlc.from_dask([array[: options.rows * workers] for array in arrays])
        kind().fit(small).transform(
            small
        ).sum().compute()  # workers import what they need
        began = time.perf_counter()
        combiner = kind().fit(panel)
        fitted = time.perf_counter()
        total = combiner.transform(panel).sum().compute()
        ended = time.perf_counter()
    return {
        "fit": fitted - began,
        "transform": ended - fitted,
        "seconds": ended - began,
        "sum": float(total),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (
        ("models", 5),
        ("instances", 2_000_000),
        ("labels", 200),
        ("rows", 40_000),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--method", default="mlcm-r")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    found: dict[str, Any] = {
        f"{workers} workers": measured(workers, options) for workers in (1, 2)
    }
    one, two = found.values()
    assert abs(one["sum"] - two["sum"]) <= 1e-10 * abs(one["sum"])
    for part in ("fit", "transform", "seconds"):
        found[f"times as fast, {part}"] = one[part] / two[part]
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
