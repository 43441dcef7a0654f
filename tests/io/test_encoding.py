"""Text with line ends in it, and the lines that error messages name."""

import numpy as np
import pytest

from mlconsensus.errors import InputError
from mlconsensus.io import read_predictions, read_table, scan_predictions, write_table
from mlconsensus.io.memory_estimate import estimate_memory
from mlconsensus.predictions.score_tables import ScoreTable

TEXT = (
    'id,x,"a ""label"""\r\n'
    "1,0.5,1\r\n"
    '"two\r\nlines",0,\r\n'
    "3,1,0.25\r\n"
    '"4, and more",,1\r\n'
)


@pytest.mark.parametrize("end", ["", "\n", "\n\n\n"])
def test_text_over_line_ends(tmp_path, end):
    path = tmp_path / "a.csv"
    path.write_bytes((TEXT.rstrip() + end).encode())
    table = read_table(path)
    assert table.instances.tolist() == ["1", "two\r\nlines", "3", "4, and more"]
    assert table.labels.tolist() == ["x", 'a "label"']
    expected = [[0.5, 1], [0, np.nan], [1, 0.25], [np.nan, 1]]
    np.testing.assert_array_equal(table.scores, expected)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (b"4,1", "line 6: found 2 fields"),
        (b"4,1,1,1", "line 6: found 4 fields"),
        (b"4,1,\xff", "line 6: found the byte 0xff"),
        (b'4,1,"', "line 6: found a stray or unclosed quote"),
        (b"", "line 6: found an empty line"),
        (b"4,no,1", "line 6, column 'x': found 'no'"),
        (b"4,0.5,7.5", "line 6, column 'y': found 7.5"),
        (b"1,1,1", "line 6: found the instance '1' again \\(first in line 2\\)"),
    ],
    ids=repr,
)
def test_faults_are_found_on_the_same_line(tmp_path, fault, words):
    path = tmp_path / "a.csv"
    path.write_bytes(b'id,x,y\n1,1,0\n"2\n",0,1\n3,0,1\n' + fault + b"\n5,1,1\n")
    with pytest.raises(InputError, match=words) as read:
        read_predictions(path)
    with pytest.raises(InputError) as scanned:
        list(scan_predictions(path).blocks(2))
    assert str(scanned.value) == str(read.value)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "jsonl"])
def test_needed_memory_grows_with_the_file(tmp_path, suffix):
    needed = []
    for n_instances in (100, 1000):
        path = tmp_path / f"{n_instances}.{suffix}"
        names = [f"i{position}" for position in range(n_instances)]
        scores = [[0.5, 0.25]] * n_instances
        write_table(path, ScoreTable("a", scores, names, ["x", "y"]))
        needed.append(estimate_memory([path, path]))
    assert 8 < needed[1] / needed[0] < 12
    assert needed[1] > 1000 * 2 * 8 * 2
