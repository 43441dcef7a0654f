"""How long `mlconsensus combine --stream` takes on Parquet files, and with how much memory, beside plain scans of them.

    python benchmarks/streaming.py [--instances 10000000] [--labels 100] [--models 5] [--method filter] [--folder F]

A plain scan reads every row group of every file with the table library and turns it into a NumPy array, which is the
least that any program must do that computes with all of it. `decode` leaves out the arrays. `write` writes as many
scores as the consensus has, block by block, without computing any. Each runs in a process of its own and reports wall
time, CPU time and peak memory. The bar: at most 2.5 times as long as two plain scans and the write, below 1 GiB.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from polars.io.plugins import register_io_source
from processes import measured

ROWS = 100_000
SCAN = """
import sys, polars as pl
for _ in range(2):
    for path in sys.argv[2:]:
        n = pl.scan_parquet(path).select(pl.len()).collect().item()
        for start in range(0, n, 100_000):
            frame = pl.scan_parquet(path).slice(start, 100_000).select(pl.exclude("id")).collect()
            if sys.argv[1] == "arrays":
                frame.to_numpy()
"""
WRITE = """
import os, sys, numpy as np, polars as pl
from polars.io.plugins import register_io_source
n, l = int(sys.argv[1]), int(sys.argv[2])
scores = pl.DataFrame(np.asfortranarray(np.random.default_rng(0).random((8192, l))))
def blocks(*pushed_down):
    for start in range(0, n, 8192):
        yield scores[: n - start]
with open(sys.argv[3], "wb") as file:
    lazy = register_io_source(blocks, schema=scores.schema)
    lazy.sink_parquet(file, compression="snappy", statistics=False, row_group_size=2**15)
    os.fsync(file.fileno())
"""


def make(path: Path, n: int, l: int, model: int) -> None:
    """Write decisions that five models mostly agree on, 2 % of them yes."""
    labels = [f"label_{j}" for j in range(l)]

    def blocks(columns: Any, predicate: Any, rows: Any, batch: Any) -> Iterator[pl.DataFrame]:
        rng = np.random.default_rng(model)
        for start in range(0, n, ROWS):
            size = min(ROWS, n - start)
            truth = np.random.default_rng(10**6 + start).random((size, l), dtype=np.float32) < 0.02
            votes = truth ^ (rng.random((size, l), dtype=np.float32) < 0.006)
            ids = pl.select(pl.format("item-{}", pl.int_range(start, start + size))).to_series().alias("id")
            yield pl.DataFrame(np.asfortranarray(votes), schema=labels).insert_column(0, ids)

    schema = {"id": pl.String} | dict.fromkeys(labels, pl.Boolean)
    register_io_source(blocks, schema=schema).sink_parquet(path, row_group_size=ROWS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("models", 5), ("instances", 10_000_000), ("labels", 100), ("repeats", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--method", default="filter")
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        paths = [folder / f"model_{k}.parquet" for k in range(options.models)]
        for k, path in enumerate(paths):
            if not path.exists():
                make(path, options.instances, options.labels, k)
        files = [str(path) for path in paths]
        command = [str(Path(sys.executable).with_name("mlconsensus")), "combine", *files, "--stream", "--force"]
        runs = {
            "decode": [sys.executable, "-c", SCAN, "frames", *files],
            "two plain scans": [sys.executable, "-c", SCAN, "arrays", *files],
            "write": [
                sys.executable,
                "-c",
                WRITE,
                *map(str, (options.instances, options.labels, folder / "out.parquet")),
            ],
            "combine": [*command, "--method", options.method, "--output", str(folder / "out.parquet")],
        }
        best: dict[str, dict[str, float]] = {}
        for _ in range(options.repeats):
            for name, run in runs.items():
                (folder / "out.parquet").unlink(missing_ok=True)  # removing it is not timed
                found = measured(run)
                if name not in best or found["seconds"] < best[name]["seconds"]:
                    best[name] = found
    floor = best["two plain scans"]["seconds"] + best["write"]["seconds"]
    for found in best.values():
        found["times_two_scans_and_write"] = found["seconds"] / floor
    print(json.dumps(best, indent=1))


if __name__ == "__main__":
    main()
