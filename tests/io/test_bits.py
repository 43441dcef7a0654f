"""Bits read through Arrow's C interface are what the table library says they are."""

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from mlconsensus.io.bits import entries, few, unpacked


def _frame(n, fill=0.3):
    return pl.DataFrame(np.random.default_rng(n).random((n, 7)) < fill)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 64, 1000, 1003])
@pytest.mark.parametrize("how", ["whole", "slice", "chunks", "all", "none"])
def test_the_same_as_the_table_library_gives(n, how):
    whole = _frame(n)
    frame = {
        "whole": whole,
        "slice": whole[n // 3 :],
        "chunks": pl.concat([whole[n // 2 :], whole, whole[:5]], rechunk=False),
        "all": pl.DataFrame(np.ones((n, 3), dtype=bool)),
        "none": pl.DataFrame(np.zeros((n, 3), dtype=bool)),
    }[how]
    expected = frame.to_numpy()
    np.testing.assert_array_equal(unpacked(frame), expected)
    found = entries(frame)
    np.testing.assert_array_equal(found.toarray(), expected)
    assert found.nnz == expected.sum()
    assert found.has_sorted_indices


def test_bits_behind_the_end_are_not_read():
    ones = pl.DataFrame({"x": [True] * 64})
    assert entries(ones[:3]).nnz == 3
    assert entries(ones[5:12]).nnz == 7
    assert unpacked(ones[5:12]).shape == (7, 1)


def test_few_wants_bools_without_nulls():
    assert few(_frame(1000, 0.02))
    assert not few(_frame(1000, 0.2))
    assert not few(pl.DataFrame({"x": [False, None]}))
    assert not few(pl.DataFrame({"x": [0, 0]}))


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="there is no telling how much memory is held")
def test_memory_is_given_back():
    def held():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def once():
        unpacked(pl.DataFrame({"x": yes}).slice(1).rechunk().select(~pl.col("x")))  # 1 MiB of bits

    yes = np.ones(2**23, dtype=np.bool_)
    once()
    before = held()
    for _ in range(40):
        once()
    assert held() - before < 20 * 2**20
