"""Small files of every format and of every kind of state, which the fuzzer breaks."""

import gzip
import io
import tempfile
from decimal import Decimal
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard
from pyarrow.feather import write_feather
from scipy import sparse

import mlconsensus as mlc
from mlconsensus.io import write_table
from mlconsensus.predictions.score_tables import ScoreTable

SCORES = np.array(
    [
        [0.9, 0.1, 0.0, 1.0],
        [0.2, np.nan, 0.5, 0.0],
        [1.0, 0.25, 0.0, 0.75],
        [0.0, 1.0, 1.0, 0.125],
    ]
)
SETS = SCORES >= 0.5
INSTANCES = ["i0", "i1", "i2", "naïve"]
LABELS = ["sport", "politics", "law", "体育"]

GOOD = b"id,sport,politics,law\ni0,1,0,0\ni1,0,1,0\ni2,1,0,1\n"
ARFF = """@relation 'r: -C 3'
% a comment
@attribute sport {0,1}
@attribute 'pol itics' numeric
@attribute law {0,1}
@attribute instance string
@attribute colour {red,'dark blue'}
@data
1,0.5,0,'a',red
0,0,1,'b','dark blue'
?,1,0,'c',red
"""
SPARSE_ARFF = (
    ARFF.split("@data")[0]
    + "@data\n{0 1, 3 'a'}\n{1 0.25, 3 b, 4 'dark blue'}\n{2 1, 3 c}\n"
)
TAGS = """{"instance": "7", "labels": ["a", "b"]}
{"instance": 8, "labels": {"a": 0.5, "c": null}}
{"instance": "9", "labels": []}
"""
ANSWERS = """{"id": "7", "tags": "sports, weather", "why": "because"}
{"id": "8", "labels": [{"label": "sports", "score": 0.8}, {"name": "law"}], "annotator": "ann"}
{"id": "9", "labels": null}
{"id": "10", "labels": "```json\\n[\\"law\\"]\\n```"}
"""
LONG = 'instance,label,score,model\ni0,sport,0.5,ann\ni0,law,,ann\ni1,sport,1,bob\n"i,2",law,0,bob\n'
CROWD = "worker,task,label\nann,d1,sports\nann,d2,\nbob,d1,law\n"


def _npz(**arrays) -> bytes:
    file = io.BytesIO()
    np.savez(file, **{name: np.asarray(array) for name, array in arrays.items()})
    return file.getvalue()


# What models and rounds of `states` are applied to.
PANEL = _npz(
    predictions=SETS[None, :, :3].repeat(2, 0),
    models=["a", "good"],
    labels=["sport", "politics", "law"],
)


def files() -> dict[str, bytes]:
    """Return files of predictions by their names."""
    found: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as folder:
        for suffix in ("csv", "tsv", "parquet", "feather", "jsonl", "json", "npz"):
            for name, scores in (("scores", SCORES), ("sets", SETS)):
                for layout in (
                    ("wide", "long")
                    if suffix in ("csv", "tsv", "parquet", "feather")
                    else ("wide",)
                ):
                    path = Path(folder) / f"{name}-{layout}.{suffix}"
                    write_table(
                        path, ScoreTable(name, scores, INSTANCES, LABELS), layout=layout
                    )
                    found[path.name] = path.read_bytes()
    frame = pl.DataFrame(
        {"id": INSTANCES, **{label: SCORES[:, at] for at, label in enumerate(LABELS)}}
    )
    for packing in ("uncompressed", "snappy", "gzip", "lz4", "zstd"):
        found[f"{packing}.parquet"] = _written(
            frame.write_parquet, compression=packing, row_group_size=2
        )
    for packing in ("uncompressed", "lz4", "zstd"):
        if packing == "lz4":
            old = pl.CompatLevel.oldest()
        else:
            old = None
        found[f"{packing}.feather"] = _written(
            frame.write_ipc, compression=packing, compat_level=old
        )
    kinds = frame.with_columns(
        pl.col("sport").cast(pl.Float32),
        pl.col("law") > 0.2,
        pl.col("id").cast(pl.Categorical),
    )
    found["kinds.parquet"] = _written(kinds.write_parquet, statistics=True)
    found["kinds.feather"] = _written(kinds.write_ipc)
    pandas = '{"index_columns": [{"start": 3, "stop": 7, "step": 1, "name": "x"}]}'
    found["index.parquet"] = _written(
        frame.drop("id").write_parquet, metadata={"pandas": pandas}
    )
    found |= _of_arrow(frame.to_arrow())
    matrix = sparse.csr_array(np.nan_to_num(SCORES))
    for kind in ("csr", "csc", "bsr", "coo"):
        file = io.BytesIO()
        sparse.save_npz(file, matrix.asformat(kind))
        found[f"{kind}.npz"] = file.getvalue()
    found["panel.npz"] = _npz(
        predictions=np.stack([SCORES, SCORES]), models=["ann", "bob"], labels=LABELS
    )
    found |= {
        "dense.arff": ARFF.encode(),
        "sparse.arff": SPARSE_ARFF.encode(),
        "tags.jsonl": TAGS.encode(),
    }
    found |= {
        "answers.jsonl": ANSWERS.encode(),
        "long.csv": LONG.encode(),
        "crowd.csv": CROWD.encode(),
    }
    found["quoted.csv"] = b'id,"a ""b""",c\n"x\ny",1,0\nz,,1\n'
    tools = (
        Path(__file__).parent.parent / "tests" / "data"
    )  # exports of annotation tools
    for pattern in (
        "label_studio.json",
        "doccano_ann.jsonl",
        "prodigy*.jsonl",
        "argilla.jsonl",
        "annif/tfidf/*",
    ):
        found |= {path.name: path.read_bytes() for path in sorted(tools.glob(pattern))}
    found |= {
        "object.json": b'{"7": ["a", "b"], "8": ["b"], "9": []}',
        "good.csv": GOOD,
    }
    found["subjects.annif"] = (
        b"<http://example.org/7>\tlaw\t0.9\n<http://example.org/8>\twar\t0.25\n"
    )
    kept = (
        Path(__file__).parent.parent / "tests" / "data"
    )  # as people and tools write them
    found |= {
        path.name: path.read_bytes()
        for path in kept.glob("*.*")
        if path.stat().st_size < 2**14
    }
    for name in ("good.csv", "tags.jsonl", "scores-wide.parquet"):
        found[f"{name}.gz"] = gzip.compress(found[name], mtime=0)
        found[f"{name}.zst"] = zstandard.compress(found[name])
    return dict(sorted(found.items()))


def states() -> dict[str, bytes]:
    """Return files of statistics, of rounds and of models by their names; all of the panel in `GOOD` beside another."""
    rng = np.random.default_rng(0)
    panel = mlc.Predictions(
        rng.random((2, 40, 3)) < 0.4, ["a", "good"], ["sport", "politics", "law"]
    )
    found: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state"
        for name, kind in mlc.COMBINERS.items():
            if name == "weighted_consensus":
                combiner = kind()
            else:
                combiner = kind()
            fitted = combiner.fit(panel)
            mlc.save_statistics(fitted, path, force=True)
            found[f"{name}.stats"] = path.read_bytes()
            mlc.save(fitted, path, force=True)
            found[f"{name}.model"] = path.read_bytes()
        known = None
        for at in (1, 2):
            first = mlc.WeightedConsensus().fit_pass(panel, known)
            mlc.save_statistics(first, path, force=True)
            found[f"filter-{at}.stats"] = path.read_bytes()
            mlc.save(first, path, force=True)
            found[f"filter-{at}.round"] = path.read_bytes()
            known = mlc.load(path).state_
    return dict(sorted(found.items()))


def _of_arrow(table: pa.Table) -> dict[str, bytes]:
    """Return Parquet and Feather as others write them: pages of version 2, deltas, split bytes, what we refuse."""
    plain = {"use_dictionary": False, "data_page_version": "2.0"}
    text = table.schema.names[0]
    number = table.schema.names[1]
    table = table.set_column(0, text, table[text].cast("string"))
    some = {"deltas": plain | {"column_encoding": {text: "DELTA_BYTE_ARRAY"}}}
    some["lengths"] = plain | {
        "column_encoding": {
            text: "DELTA_LENGTH_BYTE_ARRAY",
            number: "BYTE_STREAM_SPLIT",
        }
    }
    some["dictionary"] = {
        "use_dictionary": True,
        "data_page_size": 8,
        "write_page_index": True,
    }
    found = {
        f"{name}.parquet": _written(partial(pq.write_table, table), **how)
        for name, how in some.items()
    }
    numbered = table.set_column(0, text, pa.array(range(table.num_rows)))
    deltas = plain | {
        "column_encoding": {text: "DELTA_BINARY_PACKED"},
        "compression": "gzip",
    }
    found["numbers.parquet"] = _written(partial(pq.write_table, numbered), **deltas)
    odd = table.append_column(
        "odd", pa.array([[0.5], [], None, [1, 2]], pa.list_(pa.float64()))
    )
    odd = odd.append_column(
        "money", pa.array([Decimal("0.5")] * 4, pa.decimal128(9, 2))
    )
    found["nested.parquet"] = _written(partial(pq.write_table, odd))
    found["decimal.feather"] = _written(
        partial(write_feather, odd.drop_columns(["odd"]))
    )
    return found


def _written(write, **options) -> bytes:
    file = io.BytesIO()
    write(file, **options)
    return file.getvalue()
