"""Rows on disk: the same in whatever order they are asked for, and no more decoded than is asked for by itself."""

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
def test_rows_in_any_order(asked: list[tuple[int, bool, int]]) -> None:
    reader = on_disk.SequentialReader(FRAME.lazy(), "a.parquet")
    position = 0
    for start, goes_on, size in asked:
        if not (goes_on and position <= 900):
            position = start
        assert reader.read(position, position + size).equals(
            FRAME[position : position + size]
        )
        position += size


def test_what_is_read_by_itself_decodes_nothing_ahead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(on_disk, "iterate_batches")
    reader = on_disk.SequentialReader(FRAME.lazy(), "a.parquet")
    assert [reader.read(start, start + 5)["1"][0] for start in (0, 500, 100)] == [
        0,
        500,
        100,
    ]


def test_a_file_that_became_shorter() -> None:
    reader = on_disk.SequentialReader(FRAME.lazy(), "a.parquet")
    with pytest.raises(
        InputError, match="found fewer rows than before, expected a file that stays"
    ):
        reader.read(995, 1005)
