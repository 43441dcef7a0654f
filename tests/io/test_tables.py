"""Parquet and Feather."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import mlconsensus as mlc
from mlconsensus.errors import InputError, InputWarning
from mlconsensus.io import read_table

WRITERS = {"parquet": pl.DataFrame.write_parquet, "feather": pl.DataFrame.write_ipc}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize(
    ("cells", "dtype"),
    [
        (pl.Series([True, False]), np.bool_),
        (pl.Series([1, 0]), np.uint8),
        (pl.Series([1, None]), np.float32),
        (pl.Series([True, None]), np.float32),
        (pl.Series([0.5, None]), np.float64),
        (pl.Series([0.5, 0.25], dtype=pl.Float32), np.float32),
        (pl.Series([None, None]), np.float64),
        (pl.Series(["0.5", "NA"]), np.float64),
    ],
)
def test_scores_have_the_smallest_exact_type(
    tmp_path: Path, name: str, cells: pl.Series, dtype: type
) -> None:
    path = tmp_path / f"a.{name}"
    WRITERS[name](pl.DataFrame({"id": ["1", "2"], "a": cells}), path)
    scores = read_table(path).scores
    assert scores.dtype == dtype
    expected = cells.cast(pl.Float64, strict=False).to_numpy()
    np.testing.assert_array_equal(scores[:, 0].astype(float), expected)


@pytest.mark.parametrize("ids", [[7, 8], pl.Series(["7", "8"], dtype=pl.Categorical)])
def test_ids_become_text(tmp_path: Path, ids: list[int] | pl.Series) -> None:
    pl.DataFrame({"id": ids, "a": [0.5, 1.0]}).write_parquet(tmp_path / "a.parquet")
    assert read_table(tmp_path / "a.parquet").instances.tolist() == ["7", "8"]


def test_index_of_a_pandas_frame_names_the_instances(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    pd.DataFrame({"a": [0.5, 1.0]}, index=["x", "y"]).to_parquet(tmp_path / "a.parquet")
    assert read_table(tmp_path / "a.parquet").instances.tolist() == ["x", "y"]
    pd.DataFrame({"id": ["x", "y"], "a": [0.5, 1.0]}).to_parquet(tmp_path / "b.parquet")
    assert read_table(tmp_path / "b.parquet").instances.tolist() == ["x", "y"]


def test_a_range_index_that_is_only_in_the_metadata(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"a": [0, 1], "b": [1, 0]}, index=pd.RangeIndex(7, 9, name="id")
    )
    frame.to_parquet(tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet")
    assert list(table.instances) == ["7", "8"]
    assert list(table.labels) == ["a", "b"]

    # Now the ids are a column, and the index is an unnamed range.
    frame.reset_index().to_parquet(tmp_path / "b.parquet")
    assert list(read_table(tmp_path / "b.parquet").instances) == ["7", "8"]


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("read", [mlc.read_predictions, mlc.scan_predictions])
def test_lists_of_tags_in_a_column(tmp_path: Path, name: str, read) -> None:
    rows = pl.DataFrame({"id": [7, 8, 9], "labels": [["x", "y"], [], None]})
    WRITERS[name](rows, tmp_path / f"a.{name}")
    with pytest.warns(
        InputWarning, match="^answers without labels read as missing: 1$"
    ):
        panel = read(tmp_path / f"a.{name}")
    assert (panel.instances.tolist(), panel.labels) == (["7", "8", "9"], ("x", "y"))
    np.testing.assert_array_equal(
        next(panel.blocks(9)).to_array(), [[[1, 1], [0, 0], [np.nan, np.nan]]]
    )


@pytest.mark.parametrize("cell", ['"[""x""]"', "x;y", "x|y"])
def test_lists_of_tags_in_text_are_refused(tmp_path: Path, cell: str) -> None:
    (tmp_path / "a.csv").write_text(f"id,labels\n1,{cell}\n")
    with pytest.raises(
        InputError, match="; lists of tags are read from JSON lines and Parquet$"
    ):
        mlc.read_predictions(tmp_path / "a.csv")


def test_errors_name_the_column_of_ids(tmp_path: Path) -> None:
    pl.DataFrame({"s": [1, 0, 1], "p": [0, 0, 1]}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(
        InputError,
        match="row 3: found the instance '1' again .*, expected each once in 's'",
    ):
        mlc.read_predictions(tmp_path / "a.parquet")


def test_semicolons_come_with_decimal_commas(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id;x\n1;0,5\n")
    with pytest.raises(
        InputError,
        match="found semicolons between columns, expected commas, and points",
    ):
        mlc.read_predictions(tmp_path / "a.csv")
