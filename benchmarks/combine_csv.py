"""How long `mlconsensus combine` takes on wide CSV files, beside the time the table library takes to read them.

    python benchmarks/combine_csv.py [--models 5] [--instances 1000000] [--labels 100]
    [--folder FOLDER] [--scores]

Both run in processes of their own, one after the other; prints wall time, CPU time and
peak memory as one JSON object. `make bench` runs it as its section ``csv``.
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from processes import COMBINE, compared, files, options

FILL = 0.025
READ = "import sys, polars as pl\nfor path in sys.argv[1:]: pl.read_csv(path, infer_schema_length=100)"


def make(path: Path, n: int, l: int, seed: int, scores: bool) -> None:
    rng = np.random.default_rng(seed)
    with path.open("wb") as file:
        for start in range(0, n, 50_000):
            rows = min(50_000, n - start)
            if scores:
                values = rng.random((rows, l)).round(4)
            else:
                values = (rng.random((rows, l)) < FILL).astype(np.uint8)
            frame = pl.DataFrame(values, schema=[f"label_{j}" for j in range(l)])
            ids = pl.Series("id", [f"item-{i}" for i in range(start, start + rows)])
            frame.insert_column(0, ids).write_csv(file, include_header=start == 0)


def main() -> None:
    parser = options(__doc__, models=5, instances=1_000_000, labels=100, repeats=2)
    parser.add_argument(
        "--scores", action="store_true", help="scores of four digits instead of 0/1"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        if given.scores:
            pattern = "scores_{}.csv"
        else:
            pattern = "votes_{}.csv"
        n = given.instances
        l = given.labels
        paths = files(
            folder,
            pattern,
            given.models,
            lambda path, k: make(path, n, l, k, given.scores),
        )
        runs = {"read": [sys.executable, "-c", READ, *paths]}
        for name, file in (
            ("combine to CSV", "out.csv"),
            ("combine to Parquet", "out.parquet"),
        ):
            runs[name] = [*COMBINE, *paths, "--output", str(folder / file)]
        print(json.dumps(compared(runs, "read", given.repeats, folder / "out.csv")))


if __name__ == "__main__":
    main()
