"""Files made to break readers.

The error is one line that names the file, the same in memory and when streamed.
"""

import decimal
import gzip
import io
import json
import os
import struct
import time
import zipfile

import numpy as np
import polars as pl
import pytest
import zstandard
from scipy import sparse

import mlconsensus as mlc
from mlconsensus.errors import InputError
from mlconsensus.io import read_predictions, scan_predictions
from mlconsensus.io.formats.thrift import parse_struct
from mlconsensus.predictions.score_tables import ScoreTable

CSR = {
    "format": b"csr",
    "shape": [6, 4],
    "data": [0.5] * 4,
    "indices": [1, 3, 2, 0],
    "indptr": [0, 1, 1, 2, 3, 4, 4],
}
BSR = CSR | {"format": b"bsr", "data": np.full((4, 1, 1), 0.5)}
SPARSE = {
    "row outside": CSR
    | {"format": b"csc", "indices": [1, 22630477, 2, 0], "indptr": [0, 1, 2, 3, 4]},
    "column outside": CSR | {"indices": [1, 4, 2, 0]},
    "column below 0": CSR | {"indices": [1, -1, 2, 0]},
    "indptr ends in 0": CSR | {"indptr": [0, 0, 3, 50331648, 0, 196608, 0]},
    "indptr falls": BSR | {"indptr": [0, 50000000, 1, 2, 3, 4, 4]},
    "indptr falls where nothing is stored": CSR
    | {
        "format": b"csc",
        "data": np.zeros(0),
        "indices": np.zeros(0, int),
        "indptr": [0, 50000000, 0, 0, 0],
    },
    "positions beyond int64": CSR
    | {"indices": np.array([1, 2**64 - 1, 2, 0], dtype=np.uint64)},
    "indptr too short": CSR | {"indptr": [0, 4]},
    "fewer values than positions": CSR | {"data": [0.5] * 3},
    "shape of one dimension": CSR | {"shape": [6]},
    "positions of floats": CSR | {"indices": [1.0, 3.0, 2.0, 0.0]},
    "shape of floats": CSR | {"shape": [6.0, 4.0]},
    "empty shape": CSR | {"shape": [0, 4], "indptr": [0]},
    "a cell twice": CSR | {"indices": [1, 1, 2, 0], "indptr": [0, 2, 2, 2, 3, 4, 4]},
    "diagonals": CSR | {"format": b"dia"},
}


def get_refusal(path):
    """Return the message of both ways to read a file, which must be the same."""
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
    assert "broken sparse matrix" in get_refusal(tmp_path / "m.npz")


def test_the_valid_matrix_is_read(tmp_path):
    np.savez(tmp_path / "m.npz", _is_array=True, **CSR)
    arrays = (CSR["data"], CSR["indices"], CSR["indptr"])
    expected = sparse.csr_array(arrays, shape=(6, 4)).toarray()
    predictions = read_predictions(tmp_path / "m.npz")
    np.testing.assert_array_equal(predictions.to_array(), [expected])


def test_a_file_at_which_polars_panics(tmp_path):
    (tmp_path / "a.csv").write_bytes(b'id,a,b\n1,0.5,\n2,"')
    assert "line 3" in get_refusal(tmp_path / "a.csv")


def test_decimals_that_polars_cannot_read(tmp_path):
    pa = pytest.importorskip("pyarrow")
    feather = pytest.importorskip("pyarrow.feather")
    wide = pa.array([decimal.Decimal("0.5")], pa.decimal256(50, 3))
    feather.write_feather(
        pa.table({"id": ["a"], "x": wide}), str(tmp_path / "a.feather")
    )
    assert "Feather" in get_refusal(tmp_path / "a.feather")


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
def test_an_index_that_pandas_never_writes(tmp_path, index):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    metadata = {"pandas": json.dumps({"index_columns": [index]})}
    table = pa.table({"a": [0.5], "b": [0.1]}).replace_schema_metadata(metadata)
    parquet.write_table(table, tmp_path / "a.parquet")
    get_refusal(tmp_path / "a.parquet")


def test_an_array_larger_than_any_memory(tmp_path):
    head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 4), }\n"
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as members:
        members.writestr("scores.npy", make_npy(head))
    assert "NPZ" in get_refusal(tmp_path / "a.npz")


def test_a_shape_of_complex_numbers(tmp_path, recwarn):
    arrays = CSR | {"shape": np.array([6, 4], dtype=np.complex64)}
    np.savez(tmp_path / "m.npz", _is_array=True, **arrays)
    assert "broken sparse matrix" in get_refusal(tmp_path / "m.npz")
    assert not recwarn.list


def test_an_array_that_python_2_wrote(tmp_path, recwarn):
    head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1L, 2L), }\n"
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as members:
        members.writestr("scores.npy", make_npy(head, np.ones(2).tobytes()))
    predictions = read_predictions(tmp_path / "a.npz")
    np.testing.assert_array_equal(predictions.to_array(), [[[1, 1]]])
    assert not recwarn.list


def make_parquet_with_page_size(size: bytes) -> bytes:
    """Write Parquet with another number in the header of its page of two scores.

    The number is one byte of Thrift's compact protocol.
    """
    file = io.BytesIO()
    frame = pl.DataFrame({"id": ["x", "y"], "a": [0.5, 0.25]})
    frame.write_parquet(file, compression="uncompressed")
    data = file.getvalue()

    # The header is before the scores: field 5, a structure whose field 1 is 2.
    end = data.index(np.float64(0.25).tobytes())
    position = data.rindex(b"\x2c\x15\x04", 0, end) + 2
    return data[:position] + size + data[position + 1 :]


@pytest.mark.parametrize("size", [b"\x01", b"\x06", b"\x7e"], ids=["-1", "3", "63"])
def test_a_page_of_another_size_than_its_column(tmp_path, size):
    """For -1, Polars allocates memory for 2**64 - 1 values and ends the process."""
    path = tmp_path / "a.parquet"
    path.write_bytes(make_parquet_with_page_size(b"\x04"))
    expected = [[[0.5], [0.25]]]
    np.testing.assert_array_equal(read_predictions(path).to_array(), expected)

    path.write_bytes(make_parquet_with_page_size(size))
    assert "found a page of" in get_refusal(path)


def test_line_feeds_before_carriage_returns(tmp_path):
    (tmp_path / "a.tsv").write_bytes(b"id\ta\tb\n\r1\t0.5\t\n\r2\t1\t0\n\r")
    assert "line 2" in get_refusal(tmp_path / "a.tsv")


@pytest.mark.parametrize("declared", ["numeric", "{0,1}"])
def test_xml_in_an_unknown_encoding(tmp_path, declared):
    (tmp_path / "x.arff").write_text(
        f"@relation r\n@attribute a {declared}\n@data\n1\n"
    )
    (tmp_path / "x.xml").write_text(
        '<?xml version="1.0" encoding="foo"?><labels><label name="a"/></labels>'
    )
    with pytest.raises(InputError, match=r"x\.xml: found broken data .*, expected XML"):
        read_predictions(tmp_path / "x.arff")


def test_a_repeated_key_among_many(tmp_path):
    keys = ",".join(f'"{position}":1' for position in range(100_000))
    (tmp_path / "a.jsonl").write_text(
        f'{{"instance":"1","labels":{{{keys},"99999":1}}}}\n'
    )
    start = time.process_time()
    assert "'99999' twice" in get_refusal(tmp_path / "a.jsonl")
    assert time.process_time() - start < 5


LIMIT = "MLCONSENSUS_LIMIT"
ROWS = 2_000_000


def make_packed_csv(pack):
    return pack(b"id,a\n" + b"x,0\n" * 20_000_000)


def make_frame(write, **options):
    file = io.BytesIO()
    frame = pl.DataFrame(
        {"id": pl.zeros(ROWS, pl.Int64, eager=True), "a": pl.zeros(ROWS, eager=True)}
    )
    getattr(frame, write)(file, **options)
    return file.getvalue()


def make_archive(**arrays):
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def make_npy(head, data=b""):
    """Return a file in NumPy's format: its header and its values."""
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data


def make_empty_names():
    """Make an archive with a billion names of no bytes each."""
    names = b"{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000,), }\n"
    scores = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1), }\n"
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as members:
        members.writestr("labels.npy", make_npy(names))
        members.writestr("scores.npy", make_npy(scores, bytes(8)))
    return file.getvalue()


def make_long_text(column):
    """Make Parquet with a text of 1 MB in each of 200 rows, which is stored once."""
    file = io.BytesIO()
    cells = {"id": list(map(str, range(200))), "a": [0.5] * 200}
    cells[column] = ["0." + "5" * 2**20] * 200
    pl.DataFrame(cells).write_parquet(file)
    return file.getvalue()


BOMBS = {
    "a.csv.gz": lambda: make_packed_csv(gzip.compress),
    "a.csv.zst": lambda: make_packed_csv(zstandard.compress),
    "cut.csv.zst": lambda: make_packed_csv(zstandard.compress)[:-10],
    "a.parquet": lambda: make_frame(
        "write_parquet", row_group_size=ROWS, compression="zstd"
    ),
    "a.parquet.zst": lambda: zstandard.compress(
        make_frame("write_parquet", row_group_size=ROWS)
    ),
    "a.feather": lambda: make_frame("write_ipc", compression="zstd"),
    "names.parquet": lambda: make_long_text("id"),
    "dense.npz": lambda: make_archive(scores=np.zeros((ROWS, 2))),
    "rows.npz": lambda: make_archive(
        format=b"coo",
        shape=[2**30, 2],
        row=np.zeros(1, int),
        col=np.zeros(1, int),
        data=[1.0],
        _is_array=True,
    ),
    "names.npz": make_empty_names,
    # A prediction that comes twice needs the table of each model.
    "repeated.csv": lambda: (
        b"model,instance,label\nm0,i0,a\n"
        + b"".join(b"m%d,i%d,a\n" % (k, k) for k in range(2000))
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_sizes_are_checked_before_memory_is_allocated(tmp_path, monkeypatch, name):
    data = BOMBS[name]()
    assert len(data) < 2e6
    (tmp_path / name).write_bytes(data)
    monkeypatch.setenv(LIMIT, "0.01")
    message = get_refusal(tmp_path / name)
    hint = f"the variable {LIMIT} sets another number of GB"
    assert f"expected at most 0.01 GB ({hint})" in message


def test_the_limit_depends_on_free_memory_and_can_be_raised(tmp_path, monkeypatch):
    rows = b"".join(b"%d,0\n" % k for k in range(100_000))
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"id,a\n" + rows))
    monkeypatch.setattr("mlconsensus.io.compression._STEP", 2**16)
    monkeypatch.setattr(
        "mlconsensus.execution.memory.available_memory", lambda: 400_000
    )
    assert "at most 0.0001 GB" in get_refusal(tmp_path / "a.csv.gz")
    monkeypatch.setenv(LIMIT, "1")
    assert len(read_predictions(tmp_path / "a.csv.gz")) == 100_000
    monkeypatch.setenv(LIMIT, "much")
    with pytest.raises(
        InputError, match="MLCONSENSUS_LIMIT: found 'much', expected a number of GB"
    ):
        read_predictions(tmp_path / "a.csv.gz")


def test_a_table_that_fits_into_memory_only_in_parts(tmp_path, monkeypatch):
    table = pl.DataFrame({"id": range(10**6), "a": pl.zeros(10**6, eager=True)})
    table.write_parquet(tmp_path / "a.parquet", row_group_size=10**4)
    monkeypatch.setenv(LIMIT, "0.01")
    with pytest.raises(InputError, match="GB of cells, expected at most 0.01 GB"):
        read_predictions(tmp_path / "a.parquet")
    assert len(scan_predictions(tmp_path / "a.parquet")) == 10**6


def test_scores_of_long_text(tmp_path, monkeypatch):
    (tmp_path / "a.parquet").write_bytes(make_long_text("a"))
    monkeypatch.setenv(LIMIT, "0.01")
    with pytest.raises(
        InputError, match="column 'a': found 0.21 GB of text, expected at most 0.01 GB"
    ):
        read_predictions(tmp_path / "a.parquet")


def test_more_scores_than_fit_into_memory(monkeypatch):
    identity = sparse.eye_array(2000, format="csr")
    monkeypatch.setenv(LIMIT, "0.01")
    with pytest.raises(
        InputError,
        match="consensus: found 0.032 GB of scores of 2,000 instances × 2,000 labels",
    ):
        mlc.MajorityVote().fit_transform([identity, identity])


def test_a_footer_with_fewer_rows_than_the_file(tmp_path):
    path = tmp_path / "a.parquet"
    n_rows = 100_000
    frame = pl.DataFrame({"id": range(n_rows), "a": [0.5] * n_rows})
    frame.write_parquet(path, row_group_size=n_rows)
    data = path.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer, _ = parse_struct(data, start)
    assert footer.get_int(3) == n_rows

    # 100,000 and 1, twice each as Thrift's numbers are.
    true_number = b"\xc0\x9a\x0c"
    false_number = b"\x82\x80\x00"
    position = data.index(true_number, start)
    path.write_bytes(data[:position] + false_number + data[position + 3 :])
    message = get_refusal(path)
    assert "found groups of 100,000 rows in all, expected 1, as the footer" in message


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x15",
        b"\x19\xfc" + b"\xff" * 9,
        b"\x19\xf1\xff\xff\xff\x7f",
        b"\x1c" * 5000,
        b"\x18\xff\x7fa",
        b"\x19\xf3" + b"\xff" * 8 + b"\x7f",  # a long list of single bytes
    ],
)
def test_footers_that_end_too_early(data):
    with pytest.raises((IndexError, RecursionError)):
        parse_struct(data)


def test_names_of_files_that_are_not_text(tmp_path):
    path = tmp_path / os.fsdecode(b"caf\xe9.csv")
    path.write_text("id,x\n1,1\n2,0\n")
    for result in (read_predictions(path), scan_predictions(path)):
        assert result.models == ("caf\\xe9",)
    with path.with_suffix(".parquet").open("wb") as file:
        pl.DataFrame({"id": ["1"], "x": [0.5]}).write_parquet(file)
    assert read_predictions(path.with_suffix(".parquet")).labels == ("x",)


@pytest.mark.parametrize("length", [300, 5000])
def test_names_of_files_that_are_too_long(tmp_path, length):
    path = tmp_path / ("x" * length + ".csv")
    assert "file name too long" in get_refusal(path)
    with pytest.raises(
        InputError, match="found 'file name too long', expected a place to write to"
    ):
        mlc.io.write_table(path, ScoreTable("a", [[0.5]], ["1"], ["x"]))


@pytest.mark.parametrize(
    "text",
    [
        "@relation 'r: -C 1'\n@attribute " + "a" * 60_000 + " \x0b\n@data\n1\n",
        "@relation 'r: -C 1'\n@attribute a {" + "a" * 60_000 + "'}\n@data\n1\n",
        "@relation 'r: -C 1'\n@attribute a {0,1}\n@attribute b string\n@data\n1,"
        + "'\\" * 30_000
        + "\n",
        "@relation '" + " " * 60_000 + "\n@attribute a {0,1}\n@data\n1\n",
        "@relation 'r: -C " + "9" * 5000 + "'\n@attribute a {0,1}\n@data\n1\n",
    ],
    ids=["name", "value", "quotes", "spaces", "digits"],
)
def test_arff_that_would_make_regular_expressions_slow(tmp_path, text):
    (tmp_path / "a.arff").write_text(text)
    start = time.process_time()
    get_refusal(tmp_path / "a.arff")
    assert time.process_time() - start < 5


def test_xml_that_multiplies_itself(tmp_path):
    entities = ['<!ENTITY e0 "lol">']
    for k in range(1, 12):
        content = f"&e{k - 1};" * 10
        entities.append(f'<!ENTITY e{k} "{content}">')

    (tmp_path / "x.xml").write_text(
        f'<?xml version="1.0"?><!DOCTYPE l [{"".join(entities)}]>'
        '<labels><label name="&e11;"/></labels>'
    )
    (tmp_path / "x.arff").write_text("@relation r\n@attribute a {0,1}\n@data\n1\n")
    with pytest.raises(InputError, match=r"x\.xml: found broken data .*, expected XML"):
        read_predictions(tmp_path / "x.arff")


def test_a_file_of_a_single_byte(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"\xef")
    get_refusal(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("labels", b"a\nb"),
        ("labels.npy", make_npy(b"{'descr': '<f8', 'shape': ((((")),
    ],
)
def test_members_of_an_archive_that_are_not_arrays(tmp_path, name, content):
    scores = b"{'descr': '|b1', 'fortran_order': False, 'shape': (1, 1), }\n"
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as members:
        members.writestr("scores.npy", make_npy(scores, b"\1"))
        members.writestr(name, content)
    get_refusal(tmp_path / "a.npz")
