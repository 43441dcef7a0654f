"""How long `mlconsensus combine --stream` takes on Parquet files, and with how much memory, beside plain scans of them.

    python benchmarks/streaming.py [--instances 10000000] [--labels 100] [--models 5]
    [--method weighted] [--folder F]

A plain scan reads every row group of every file with the table library and turns it
into a NumPy array, which is the least that any program must do that computes with all
of it. `decode` leaves out the arrays. `write` writes as many scores as the consensus
has, block by block, without computing any. Each runs in a process of its own and
reports wall time, CPU time and peak memory. The bar: at most 2.5 times as long as two
plain scans, below 1 GiB; docs/decisions/history.md has what was measured.
"""

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from polars.io.plugins import register_io_source
from processes import COMBINE, compared, files, options

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

    def blocks(
        columns: Any, predicate: Any, rows: Any, batch: Any
    ) -> Iterator[pl.DataFrame]:
        rng = np.random.default_rng(model)
        for start in range(0, n, ROWS):
            size = min(ROWS, n - start)
            truth = (
                np.random.default_rng(10**6 + start).random((size, l), dtype=np.float32)
                < 0.02
            )
            votes = truth ^ (rng.random((size, l), dtype=np.float32) < 0.006)
            ids = (
                pl.select(pl.format("item-{}", pl.int_range(start, start + size)))
                .to_series()
                .alias("id")
            )
            yield pl.DataFrame(np.asfortranarray(votes), schema=labels).insert_column(
                0, ids
            )

    schema = {"id": pl.String} | dict.fromkeys(labels, pl.Boolean)
    register_io_source(blocks, schema=schema).sink_parquet(path, row_group_size=ROWS)


def main() -> None:
    parser = options(__doc__, models=5, instances=10_000_000, labels=100, repeats=1)
    parser.add_argument("--method", default="weighted")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        n = given.instances
        l = given.labels
        paths = files(
            folder,
            "model_{}.parquet",
            given.models,
            lambda path, k: make(path, n, l, k),
        )
        output = folder / "out.parquet"
        runs = {
            "decode": [sys.executable, "-c", SCAN, "frames", *paths],
            "two plain scans": [sys.executable, "-c", SCAN, "arrays", *paths],
            "write": [sys.executable, "-c", WRITE, str(n), str(l), str(output)],
            "combine": [
                *COMBINE,
                *paths,
                "--stream",
                "--method",
                given.method,
                "--output",
                str(output),
            ],
        }
        print(
            json.dumps(
                compared(runs, "two plain scans", given.repeats, output), indent=1
            )
        )


if __name__ == "__main__":
    main()
