"""ARFF."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from mlconsensus.io import read_table
from mlconsensus.io.files import InputFile
from mlconsensus.io.formats import arff

HEAD = r"""@RELATION 'a b: -C -2'
% made by hand
@attribute 'w 1' numeric
@Attribute "it's" {0, 1}
@attribute y\'s real
"""


def parse_numbers(rows: str, head: str = HEAD) -> list[list[float]]:
    data = parse_text(f"{head}\n@DATA\n{rows}")
    return np.hstack([data.features.toarray(), data.labels.toarray()]).tolist()


def parse_text(text: str) -> arff.ArffData:
    return arff.parse(InputFile(name="a.arff", model="a", read=lambda: text.encode()))


@pytest.mark.parametrize(
    "rows",
    [
        "0.5,1,0\n0,0,0.25\n",
        "{0 0.5,1 1}\n{2 0.25}\n",
        "% first\n{0 0.5,1 1}\n\n% second\n{2 0.25}\n\n",
        "{ 0 0.5 , 1\t1 }\r\n{2  0.25}\r\n",
        " 0.5 , 1, 0\n0 ,0,\t0.25",
        "{1 1,0 0.5}\n{2 .25}\n",
        "{0 5e-1,1 '1'}\n{2 0.25}\n",
        '0.5,"1",0\n0,0,0.25\n',
    ],
)
def test_ways_to_write_the_same(rows: str) -> None:
    assert parse_numbers(rows) == [[0.5, 1, 0], [0, 0, 0.25]]


def test_names_and_kinds() -> None:
    head = (
        HEAD.replace("-C -2", "-C -1")
        + "@attribute instance string\n"
        + "@attribute size {small,'very large'}\n"
        + "@attribute y2 integer\n"
    )
    data = parse_text(f"{head}@data\n1,0,0,'2020-01-01','very large',1\n")
    assert data.feature_names == ["w 1", "it's", "y\\'s", "size"]
    assert data.label_names == ["y2"]
    assert data.instance_names == ["2020-01-01"]
    assert data.features.toarray().tolist() == [[1, 0, 0, 1]]
    assert data.labels.toarray().tolist() == [[1]]


def test_missing() -> None:
    np.testing.assert_array_equal(
        parse_numbers("{0 ?,1 1}\n{}\n"), [[np.nan, 1, 0], [0, 0, 0]]
    )
    np.testing.assert_array_equal(parse_numbers("?,?,0.5\n"), [[np.nan, np.nan, 0.5]])
    assert parse_numbers("{}\n{}\n") == [[0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize(("option", "labels"), [("-C 2", ["a", "b"]), ("-C -1", ["c"])])
def test_meka_option(tmp_path: Path, option: str, labels: list[str]) -> None:
    attributes = "".join(f"@attribute {name} {{0,1}}\n" for name in "abc")
    (tmp_path / "x.arff").write_text(
        f"@relation 'x: {option}'\n{attributes}@data\n1,0,1\n"
    )
    data = arff.load(tmp_path / "x.arff")
    assert data.label_names == labels
    assert sorted(data.feature_names + labels) == ["a", "b", "c"]


def test_mulan_list_is_preferred_and_may_be_nested(tmp_path: Path) -> None:
    attributes = "".join(f"@attribute {name} {{0,1}}\n" for name in "abcd")
    (tmp_path / "x.arff.gz").write_bytes(
        gzip.compress(f"@relation 'x: -C 1'\n{attributes}@data\n1,0,1,0\n".encode())
    )
    (tmp_path / "x.xml").write_text(
        '<labels xmlns="http://mulan.sourceforge.net/labels">'
        '<label name="d"><label name="b"/></label></labels>'
    )
    table = read_table(tmp_path / "x.arff.gz")
    assert table.labels.tolist() == ["b", "d"]  # in the file's order
    assert table.instances is None
    data = arff.load(tmp_path / "x.arff.gz")
    assert data.feature_names == ["a", "c"]
    np.testing.assert_array_equal(data.features.toarray(), [[1, 1]])
    np.testing.assert_array_equal(data.labels.toarray(), [[0, 0]])
