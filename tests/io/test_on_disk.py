"""Rows on disk can be read in any order; single rows are decoded alone."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlconsensus.errors import InputError
from mlconsensus.io import on_disk

FRAME = pl.DataFrame({"1": range(1000)})


@given(
    st.lists(
        st.tuples(st.integers(0, 900), st.booleans(), st.integers(1, 100)),
        min_size=1,
        max_size=8,
    )
)
def test_rows_in_any_order(requests: list[tuple[int, bool, int]]) -> None:
    reader = on_disk.SequentialReader(FRAME.lazy(), "a.parquet")
    position = 0
    for start, continues, size in requests:
        if not (continues and position <= 900):
            position = start

        rows = reader.read(position, position + size)
        assert rows.equals(FRAME[position : position + size])
        position += size


def test_single_rows_do_not_decode_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(on_disk, "iterate_batches")
    reader = on_disk.SequentialReader(FRAME.lazy(), "a.parquet")
    for start in (0, 500, 100):
        assert reader.read(start, start + 5)["1"][0] == start


def test_a_file_that_became_shorter() -> None:
    reader = on_disk.SequentialReader(FRAME.lazy(), "a.parquet")
    with pytest.raises(
        InputError, match="found fewer rows than before, expected a file that stays"
    ):
        reader.read(995, 1005)
