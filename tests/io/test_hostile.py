"""Files made to break readers: one line that names the file, the same in memory and when streamed."""

import decimal
import json
import struct
import zipfile

import numpy as np
import pytest
from scipy import sparse

from mlconsensus.errors import InputError
from mlconsensus.io import read_predictions, scan_predictions

CSR = {"format": b"csr", "shape": [6, 4], "data": [0.5] * 4, "indices": [1, 3, 2, 0], "indptr": [0, 1, 1, 2, 3, 4, 4]}
BSR = CSR | {"format": b"bsr", "data": np.full((4, 1, 1), 0.5)}
SPARSE = {
    "row outside": CSR | {"format": b"csc", "indices": [1, 22630477, 2, 0], "indptr": [0, 1, 2, 3, 4]},
    "column outside": CSR | {"indices": [1, 4, 2, 0]},
    "column below 0": CSR | {"indices": [1, -1, 2, 0]},
    "indptr ends in 0": CSR | {"indptr": [0, 0, 3, 50331648, 0, 196608, 0]},
    "indptr falls": BSR | {"indptr": [0, 50000000, 1, 2, 3, 4, 4]},
    "indptr falls where nothing is stored": CSR
    | {"format": b"csc", "data": np.zeros(0), "indices": np.zeros(0, int), "indptr": [0, 50000000, 0, 0, 0]},
    "positions beyond int64": CSR | {"indices": np.array([1, 2**64 - 1, 2, 0], dtype=np.uint64)},
    "indptr too short": CSR | {"indptr": [0, 4]},
    "fewer values than positions": CSR | {"data": [0.5] * 3},
    "shape of one dimension": CSR | {"shape": [6]},
    "shape of floats": CSR | {"indices": [1.0, 3.0, 2.0, 0.0]},
    "empty shape": CSR | {"shape": [0, 4], "indptr": [0]},
    "a cell twice": CSR | {"indices": [1, 1, 2, 0], "indptr": [0, 2, 2, 2, 3, 4, 4]},
    "diagonals": CSR | {"format": b"dia"},
}


def refused(path):
    """Return what both ways say."""
    with pytest.raises(InputError) as read:
        read_predictions(path)
    with pytest.raises(InputError) as scanned:
        list(scan_predictions(path).blocks(2))
    assert str(scanned.value) == str(read.value)
    assert path.name in str(read.value)
    assert "\n" not in str(read.value)
    return str(read.value)


@pytest.mark.parametrize("case", SPARSE)
def test_sparse_arrays_are_checked_before_compiled_code_sees_them(tmp_path, case):
    np.savez(tmp_path / "m.npz", _is_array=True, **SPARSE[case])
    assert "broken sparse matrix" in refused(tmp_path / "m.npz")


def test_the_sound_matrix_is_read(tmp_path):
    np.savez(tmp_path / "m.npz", _is_array=True, **CSR)
    expected = sparse.csr_array((CSR["data"], CSR["indices"], CSR["indptr"]), shape=(6, 4)).toarray()
    np.testing.assert_array_equal(read_predictions(tmp_path / "m.npz").to_array(), [expected])


def test_a_file_at_which_polars_panics(tmp_path):
    (tmp_path / "a.csv").write_bytes(b'id,a,b\n1,0.5,\n2,"')
    assert "line 3" in refused(tmp_path / "a.csv")


def test_decimals_that_polars_cannot_read(tmp_path):
    pa = pytest.importorskip("pyarrow")
    feather = pytest.importorskip("pyarrow.feather")
    wide = pa.array([decimal.Decimal("0.5")], pa.decimal256(50, 3))
    feather.write_feather(pa.table({"id": ["a"], "x": wide}), str(tmp_path / "a.feather"))
    assert "Feather" in refused(tmp_path / "a.feather")


@pytest.mark.parametrize(
    "index",
    [
        {"start": "a", "stop": "b", "step": "c", "name": "x"},
        {"start": 0, "stop": 3_000_000_000_000, "step": 1, "name": "x"},
        {"start": 0, "stop": 3, "step": 0, "name": "x"},
        {},
        7,
    ],
    ids=str,
)
def test_what_pandas_never_writes(tmp_path, index):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    metadata = {"pandas": json.dumps({"index_columns": [index]})}
    table = pa.table({"a": [0.5], "b": [0.1]}).replace_schema_metadata(metadata)
    parquet.write_table(table, tmp_path / "a.parquet")
    refused(tmp_path / "a.parquet")


def test_an_array_larger_than_any_memory(tmp_path):
    head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 4), }\n"
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("scores.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head)
    assert "NPZ" in refused(tmp_path / "a.npz")


def test_line_ends_the_wrong_way_round(tmp_path):
    (tmp_path / "a.tsv").write_bytes(b"id\ta\tb\n\r1\t0.5\t\n\r2\t1\t0\n\r")
    assert "line 2" in refused(tmp_path / "a.tsv")


@pytest.mark.parametrize("declared", ["numeric", "{0,1}"])
def test_xml_in_an_unknown_encoding(tmp_path, declared):
    (tmp_path / "x.arff").write_text(f"@relation r\n@attribute a {declared}\n@data\n1\n")
    (tmp_path / "x.xml").write_text('<?xml version="1.0" encoding="foo"?><labels><label name="a"/></labels>')
    with pytest.raises(InputError, match=r"x\.xml: found broken data .*, expected XML"):
        read_predictions(tmp_path / "x.arff")


def test_a_key_that_comes_twice_among_many_is_found_fast(tmp_path):
    keys = ",".join(f'"{at}":1' for at in range(100_000))
    (tmp_path / "a.jsonl").write_text(f'{{"instance":"1","labels":{{{keys},"99999":1}}}}\n')
    assert "'99999' twice" in refused(tmp_path / "a.jsonl")
