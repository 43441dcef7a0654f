"""How long `mlconsensus combine` takes on wide CSV files, beside the time the table library takes to read them.

    python benchmarks/combine_csv.py [--models 5] [--instances 1000000] [--labels 100] [--folder FOLDER] [--scores]

Both run in processes of their own, one after the other; prints wall time, CPU time and peak memory as one JSON object.
`make bench` runs it as its section ``csv``.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from processes import measured

FILL = 0.025
READ = "import sys, polars as pl\nfor path in sys.argv[1:]: pl.read_csv(path, infer_schema_length=100)"


def make(path: Path, n: int, l: int, seed: int, scores: bool) -> None:
    rng = np.random.default_rng(seed)
    with path.open("wb") as file:
        for start in range(0, n, 50_000):
            rows = min(50_000, n - start)
            values = rng.random((rows, l)).round(4) if scores else (rng.random((rows, l)) < FILL).astype(np.uint8)
            frame = pl.DataFrame(values, schema=[f"label_{j}" for j in range(l)])
            ids = pl.Series("id", [f"item-{i}" for i in range(start, start + rows)])
            frame.insert_column(0, ids).write_csv(file, include_header=start == 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("models", 5), ("instances", 1_000_000), ("labels", 100), ("repeats", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--scores", action="store_true", help="scores of four digits instead of 0/1")
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        kind = "scores" if options.scores else "votes"
        paths = [folder / f"{kind}_{k}.csv" for k in range(options.models)]
        for k, path in enumerate(paths):
            if not path.exists():
                make(path, options.instances, options.labels, k, options.scores)
        files = [str(path) for path in paths]
        combine = [str(Path(sys.executable).with_name("mlconsensus")), "combine", *files, "--force"]
        runs = {
            "read": [sys.executable, "-c", READ, *files],
            "combine to CSV": [*combine, "--output", str(folder / "out.csv")],
            "combine to Parquet": [*combine, "--output", str(folder / "out.parquet")],
        }
        best: dict[str, dict[str, float]] = {}
        for _ in range(options.repeats):
            for name, command in runs.items():
                found = measured(command)
                if name not in best or found["seconds"] < best[name]["seconds"]:
                    best[name] = found
    for found in best.values():
        found["times_read"] = found["seconds"] / best["read"]["seconds"]
    print(json.dumps(best))


if __name__ == "__main__":
    main()
