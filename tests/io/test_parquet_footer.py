"""One footer for Parquet files that stand behind each other: every reader must take them for one file."""

import io

import numpy as np
import polars as pl
import pytest

from mlconsensus.errors import InputError
from mlconsensus.io import parquet_footer

pyarrow = pytest.importorskip("pyarrow.parquet")


def frame(seed, rows):
    rng = np.random.default_rng(seed)
    scores = [None if score < 0.1 else float(score) for score in rng.random(rows)]
    return pl.DataFrame(
        {
            "id": [f"é-{seed}-{at}" for at in range(rows)],
            "x": pl.Series(scores, dtype=pl.Float64),
            "yes": rng.random(rows) < 0.5,
            "count": rng.integers(0, 2, rows).astype(np.uint8),
        }
    )


@pytest.mark.parametrize(
    "options", [{}, {"compression": "snappy", "statistics": False}, {"statistics": "full"}], ids=str
)
@pytest.mark.parametrize("sizes", [[5], [3, 1, 400], [1000] * 20], ids=len)
def test_joined_files_read_as_one(sizes, options):
    file, lengths = io.BytesIO(), []
    frames = [frame(seed, rows) for seed, rows in enumerate(sizes)]
    for part in frames:
        start = file.tell()
        part.write_parquet(file, row_group_size=300, **options)
        lengths.append(file.tell() - start)
    parquet_footer.join(file, lengths)
    whole = pl.concat(frames)
    assert pl.read_parquet(file.getvalue()).equals(whole)
    assert pl.from_arrow(pyarrow.read_table(io.BytesIO(file.getvalue()))).equals(whole)
    lazy = pl.scan_parquet(io.BytesIO(file.getvalue()))
    assert lazy.filter(pl.col("x") > 0.9).collect().equals(whole.filter(pl.col("x") > 0.9))
    assert lazy.slice(2, 5).collect().equals(whole.slice(2, 5))
    groups = pyarrow.ParquetFile(io.BytesIO(file.getvalue())).metadata
    assert (groups.num_rows, groups.num_row_groups) == (sum(sizes), sum(-(-rows // 300) for rows in sizes))


def test_row_groups_of_other_writers(tmp_path):
    table = frame(0, 1000).to_arrow()
    pyarrow.write_table(table, tmp_path / "a.parquet", row_group_size=300, write_page_index=True)
    assert parquet_footer.group_rows(tmp_path / "a.parquet") == [300, 300, 300, 100]


@pytest.mark.parametrize("data", [b"", b"PAR1", b"no Parquet at all", b"PAR1" + b"\xff" * 4 + b"PAR1"])
def test_broken_footers(tmp_path, data):
    (tmp_path / "a.parquet").write_bytes(data)
    with pytest.raises(InputError, match="expected a whole Parquet file"):
        parquet_footer.group_rows(tmp_path / "a.parquet")
