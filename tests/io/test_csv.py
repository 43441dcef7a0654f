"""CSV."""

from pathlib import Path

import numpy as np
import pytest

from mlconsensus.io import read_table, read_tables
from mlconsensus.predictions.score_tables import ScoreTable


def read_text(folder: Path, text: str) -> ScoreTable:
    """Write and read a CSV file."""
    path = folder / "a.csv"
    path.write_bytes(text.encode())
    return read_table(path)


def test_ids_stay_text(tmp_path: Path) -> None:
    table = read_text(tmp_path, "id,a\n007,1\n7,0\nNA,1\n1e5,0\nnull,1\n")
    assert table.instances.tolist() == ["007", "7", "NA", "1e5", "null"]


@pytest.mark.parametrize("first", ["instance", "id", "", "Unnamed: 0", "a"])
def test_first_column_may_be_called_anything(tmp_path: Path, first: str) -> None:
    assert read_text(tmp_path, f"{first},a,b\n1,0,1\n").labels.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("cells", "dtype"),
    [
        (["0", "1", "1"], np.uint8),
        (["0", "1", ""], np.float32),  # exact for 0, 1 and NaN
        (["0", "1", "0.5"], np.float64),
        (["0", "1", "1.0"], np.float64),
        (["True", "FALSE", "true"], np.float64),
    ],
)
def test_scores_have_the_smallest_exact_type(
    tmp_path: Path, cells: list[str], dtype: type
) -> None:
    rows = "".join(f"{position},{cell},1\n" for position, cell in enumerate(cells))
    table = read_text(tmp_path, f"id,a,b\n{rows}")
    assert table.scores.dtype == dtype
    numbers = {"": np.nan, "true": 1.0, "false": 0.0}
    expected = [float(numbers.get(cell.lower(), cell)) for cell in cells]
    np.testing.assert_array_equal(table.scores[:, 0], expected)


@pytest.mark.parametrize(
    "cell",
    [
        "",
        '""',
        "NaN",
        "nan",
        "NAN",
        "NA",
        "na",
        "N/A",
        "n/a",
        "null",
        "NULL",
        "None",
        " NA ",
    ],
)
@pytest.mark.parametrize("column", [0, 1])
def test_spellings_of_missing_scores(tmp_path: Path, cell: str, column: int) -> None:
    cells = ["0.5", "0.5"]
    cells[column] = cell
    scores = read_text(tmp_path, f"id,a,b\n1,{','.join(cells)}\n2,0,1\n").scores
    assert np.isnan(scores[0, column])
    assert np.isnan(scores).sum() == 1


@pytest.mark.parametrize(
    "cell",
    ["0.5", ".5", "5e-1", "+0.5", " 0.5", "0.5 ", '"0.5"', "0.50000000000000000"],
)
def test_spellings_of_numbers(tmp_path: Path, cell: str) -> None:
    assert read_text(tmp_path, f"id,a,b\n1,{cell},0\n").scores[0, 0] == 0.5


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffid,a,b\n1,0,1\n2,1,0\n",
        "id,a,b\r\n1,0,1\r\n2,1,0\r\n",
        "id,a,b\n1,0,1\n2,1,0",
        "id,a,b\n1,0,1\n2,1,0\n\n\n",
        "id,a,b\r\n1,0,1\r\n2,1,0\r\n\r\n",
        '"id","a","b"\n"1",0,1\n"2","1","0"\n',
    ],
    ids=[
        "byte order mark",
        "CRLF",
        "no last line end",
        "blank lines last",
        "blank CRLF lines last",
        "quotes",
    ],
)
def test_other_ways_to_write_the_same(tmp_path: Path, text: str) -> None:
    table = read_text(tmp_path, text)
    assert table.instances.tolist() == ["1", "2"]
    assert table.labels.tolist() == ["a", "b"]
    np.testing.assert_array_equal(table.scores, [[0, 1], [1, 0]])


@pytest.mark.parametrize("name", ["1", '"1\n1"'])
def test_empty_last_cells_are_not_short_rows(tmp_path: Path, name: str) -> None:
    table = read_text(tmp_path, f"id,a,b\n{name},0,\n2,,\n")
    np.testing.assert_array_equal(table.scores, [[0, np.nan], [np.nan, np.nan]])


def test_long_file_of_several_models(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text(
        "label,score,instance,model\n"
        "a,0.9,1,ann\n"
        "b,,1,ann\n"  # ann's prediction is missing
        "c,1,2,bob\n"
        "a,0.2,2,ann\n"
        "a,1,3,bob\n"
    )
    ann, bob = read_tables(tmp_path / "votes.csv")
    assert ann.model == "ann"
    assert ann.instances.tolist() == ["1", "2"]
    assert ann.labels.tolist() == ["a", "b"]
    # Ann lists label b elsewhere and instance 2, so that this pair has the score 0.
    np.testing.assert_array_equal(ann.scores, [[0.9, np.nan], [0.2, 0.0]])

    assert bob.model == "bob"
    assert bob.instances.tolist() == ["2", "3"]
    assert bob.labels.tolist() == ["a", "c"]
    np.testing.assert_array_equal(bob.scores, [[0, 1], [1, 0]])


def test_long_file_that_is_mostly_zero_stays_sparse(tmp_path: Path) -> None:
    rows = "".join(f"{position},l{position},1\n" for position in range(50))
    table = read_text(tmp_path, f"instance,label,score\n{rows}")
    assert table.scores.format == "csr"
    np.testing.assert_array_equal(table.scores.toarray(), np.eye(50))


def test_a_fraction_after_many_integers(tmp_path: Path) -> None:
    rows = "".join(f"{position},0\n" for position in range(5000))
    table = read_text(tmp_path, f"id,a\n{rows}x,0.125\n")
    assert table.scores[-1, 0] == 0.125
