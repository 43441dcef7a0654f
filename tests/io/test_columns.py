"""Boolean columns are unpacked as Polars does it, for all sizes and chunks."""

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from mlconsensus.io.columns import make_matrix
from mlconsensus.io.files import Place

PLACE = Place(file="a.parquet", unit="row", number=int)


CHUNK_SIZES = st.sampled_from([1, 7, 64, 511, 512, 513])


@given(
    sizes=st.lists(CHUNK_SIZES, min_size=1, max_size=3),
    width=st.integers(1, 5),
    start=st.integers(0, 20),
    seed=st.integers(0, 99),
)
def test_bits(sizes: list[int], width: int, start: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    parts = [pl.DataFrame(rng.random((size, width)) < 0.3) for size in (*sizes, 21)]
    frame = pl.concat(parts, rechunk=False).slice(start)
    result = make_matrix(frame, ["id", *frame.columns], PLACE)
    assert result.dtype == np.bool_
    assert np.array_equal(result, frame.to_numpy())


def test_bits_with_a_validity_mask() -> None:
    filled = pl.Series("a", [True, None]).fill_null(False)
    frame = pl.DataFrame([filled, pl.Series("b", [True, True])])
    result = make_matrix(frame, ["id", "a", "b"], PLACE)
    assert result.tolist() == [[True, True], [False, True]]
