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


@pytest.mark.parametrize("read", [mlc.read_predictions, mlc.scan_predictions])
@pytest.mark.parametrize("start", ["", "\ufeff", "\ufeffsep=;\r\n"])
@pytest.mark.parametrize("cell", ["0,5", "0.5"])
def test_semicolons(tmp_path: Path, read, start: str, cell: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{start}id;x, y;z\r\n1;{cell};1\r\n2;;0\r\n", newline="")
    if start.endswith("\n"):
        panel = read(path)
    else:
        path.write_text(path.read_text().replace("x, y", "x"))
        with pytest.warns(InputWarning, match="^files with semicolons between columns"):
            panel = read(path)
    (block,) = panel.blocks()
    np.testing.assert_array_equal(block.to_array(), [[[0.5, 1], [np.nan, 0]]])

    with pytest.raises(InputError, match="^[^;]*a.csv, line 1: found"):
        read(path, strict=True)


def test_lines_after_that_of_the_separator(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("sep=;\nid;x\n1;1\n2;many\n")
    with pytest.raises(InputError, match="line 4, column 'x': found 'many'"):
        mlc.read_predictions(path)


@pytest.mark.parametrize("read", [mlc.read_predictions, mlc.scan_predictions])
def test_empty_rows_and_columns_at_the_end(tmp_path: Path, read) -> None:
    path = tmp_path / "a.csv"
    path.write_text("Item,a,b,,\n1,TRUE,FALSE,,\n2,,TRUE,,\n,,,,\n,,,,\n")
    with pytest.warns(
        InputWarning, match="^empty columns left out: 2; empty rows left out: 2$"
    ):
        panel = read(path)
    (block,) = panel.blocks()
    np.testing.assert_array_equal(block.to_array(), [[[1, 0], [np.nan, 1]]])

    # Long tables have them, too.
    path.write_text(
        "annotator,item,label,\nann,1,a,\nann,2,a,\nann,3,a,\nann,4,,\n,,,\n,,,\n"
    )
    with pytest.warns(InputWarning, match="left out: 1; empty rows left out: 2$"):
        panel = read(path)
    (block,) = panel.blocks()
    assert block.to_array().tolist() == [[[1], [1], [1], [0]]]

    # A column with cells needs a name, and a row between others an instance.
    path.write_text("id,a,\n1,1,0\n")
    with pytest.raises(InputError, match="column 3: found an empty name"):
        read(path)
    path.write_text("id,a\n1,1\n,\n2,1\n")
    with pytest.raises(InputError, match="line 3, column 'id': found nothing"):
        read(path)


@pytest.mark.parametrize("read", [mlc.read_predictions, mlc.scan_predictions])
@pytest.mark.parametrize("mark", ["x", "X", "yes", "✓", "✔ "])
def test_check_marks(tmp_path: Path, read, mark: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"Item,a,b\n1,{mark},\n2,,\n")
    with pytest.warns(InputWarning, match="^files with marks read as yes and no: 1"):
        (block,) = read(path).blocks()
    assert block.to_array().tolist() == [[[1, 0], [0, 0]]]

    # With a no, an empty cell is missing.
    path.write_text(f"Item,a,b\n1,{mark},no\n2,,\n")
    with pytest.warns(InputWarning, match="marks"):
        (block,) = read(path).blocks()
    np.testing.assert_array_equal(block.to_array(), [[[1, 0], [np.nan] * 2]])


def test_check_marks_next_to_other_scores_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("Item,a,b\n1,x,0.5\n2,,1\n")
    with pytest.raises(InputError, match="line 2, column 'a': found 'x'"):
        mlc.read_predictions(path)
    path.write_text("Item,a,b\n1,x,\n2,,\n")
    with pytest.raises(InputError, match="line 2, column 'a': found 'x'"):
        mlc.read_predictions(path, strict=True)

    # Gold labels are known for some cells only.
    with pytest.warns(InputWarning, match="marks"):
        gold = mlc.io.read_table(path, partial=True)
    np.testing.assert_array_equal(gold.scores, [[1, np.nan], [np.nan, np.nan]])
