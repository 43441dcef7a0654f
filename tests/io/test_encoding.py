"""Text that goes over line ends, and faults in it: the same rows and lines in memory and on disk."""

import pytest

from mlconsensus.errors import InputError
from mlconsensus.io import read_predictions, read_table, scan_predictions, write_table
from mlconsensus.io.scan import needed_memory
from mlconsensus.predictions.score_tables import ScoreTable

TEXT = 'id,x,"a ""label"""\r\n1,0.5,1\r\n"two\r\nlines",0,\r\n3,1,0.25\r\n"4, and more",,1\r\n'


@pytest.mark.parametrize("end", ["", "\n", "\n\n\n"])
def test_text_over_line_ends(tmp_path, end):
    path = tmp_path / "a.csv"
    path.write_bytes((TEXT.rstrip() + end).encode())
    table = read_table(path)
    assert table.instances.tolist() == ["1", "two\r\nlines", "3", "4, and more"]
    assert table.labels.tolist() == ["x", 'a "label"']
    assert [cell for cell in table.scores.ravel() if cell == cell] == [
        0.5,
        1,
        0,
        1,
        0.25,
        1,
    ]


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
    with pytest.raises(InputError) as walked:
        list(scan_predictions(path).blocks(2))
    assert str(walked.value) == str(read.value)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "jsonl"])
def test_needed_memory_grows_with_the_file(tmp_path, suffix):
    needed = []
    for n in (100, 1000):
        path = tmp_path / f"{n}.{suffix}"
        write_table(
            path,
            ScoreTable(
                "a",
                [[0.5, 0.25]] * n,
                [f"i{position}" for position in range(n)],
                ["x", "y"],
            ),
        )
        needed.append(needed_memory([path, path]))
    assert 8 < needed[1] / needed[0] < 12
    assert needed[1] > 1000 * 2 * 8 * 2
