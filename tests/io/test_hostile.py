"""Files made to break readers: one line that names the file, the same in memory and when streamed."""

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
    expected = sparse.csr_array(
        (CSR["data"], CSR["indices"], CSR["indptr"]), shape=(6, 4)
    ).toarray()
    np.testing.assert_array_equal(
        read_predictions(tmp_path / "m.npz").to_array(), [expected]
    )


def test_a_file_at_which_polars_panics(tmp_path):
    (tmp_path / "a.csv").write_bytes(b'id,a,b\n1,0.5,\n2,"')
    assert "line 3" in refused(tmp_path / "a.csv")


def test_decimals_that_polars_cannot_read(tmp_path):
    pa = pytest.importorskip("pyarrow")
    feather = pytest.importorskip("pyarrow.feather")
    wide = pa.array([decimal.Decimal("0.5")], pa.decimal256(50, 3))
    feather.write_feather(
        pa.table({"id": ["a"], "x": wide}), str(tmp_path / "a.feather")
    )
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
        archive.writestr(
            "scores.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head
        )
    assert "NPZ" in refused(tmp_path / "a.npz")


def test_a_shape_that_is_no_number_of_rows(tmp_path, recwarn):
    np.savez(
        tmp_path / "m.npz",
        _is_array=True,
        **CSR | {"shape": np.array([6, 4], dtype=np.complex64)},
    )
    assert "broken sparse matrix" in refused(tmp_path / "m.npz")
    assert not recwarn.list


def test_what_python_2_wrote(tmp_path, recwarn):
    head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1L, 2L), }\n"
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr(
            "scores.npy",
            b"\x93NUMPY\x01\x00"
            + struct.pack("<H", len(head))
            + head
            + np.ones(2).tobytes(),
        )
    np.testing.assert_array_equal(
        read_predictions(tmp_path / "a.npz").to_array(), [[[1, 1]]]
    )
    assert not recwarn.list


def with_page_of(values: bytes) -> bytes:
    """Write Parquet whose page of scores says that it has another number of them than 2, as Thrift writes numbers."""
    file = io.BytesIO()
    pl.DataFrame({"id": ["x", "y"], "a": [0.5, 0.25]}).write_parquet(
        file, compression="uncompressed"
    )
    data = file.getvalue()
    position = (
        data.rindex(b"\x2c\x15\x04", 0, data.index(np.float64(0.25).tobytes())) + 2
    )  # field 5, its field 1: 2
    return data[:position] + values + data[position + 1 :]


@pytest.mark.parametrize("values", [b"\x01", b"\x06", b"\x7e"], ids=["-1", "3", "63"])
def test_a_page_of_other_numbers_than_its_column(tmp_path, values):
    """Of -1, Polars asks for memory for 2**64 - 1 and ends the process: no exception, no panic."""
    (tmp_path / "a.parquet").write_bytes(with_page_of(b"\x04"))
    np.testing.assert_array_equal(
        read_predictions(tmp_path / "a.parquet").to_array(), [[[0.5], [0.25]]]
    )
    (tmp_path / "a.parquet").write_bytes(with_page_of(values))
    assert "found a page of" in refused(tmp_path / "a.parquet")


def test_line_ends_the_wrong_way_round(tmp_path):
    (tmp_path / "a.tsv").write_bytes(b"id\ta\tb\n\r1\t0.5\t\n\r2\t1\t0\n\r")
    assert "line 2" in refused(tmp_path / "a.tsv")


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


def test_a_key_that_comes_twice_among_many_is_found_fast(tmp_path):
    keys = ",".join(f'"{position}":1' for position in range(100_000))
    (tmp_path / "a.jsonl").write_text(
        f'{{"instance":"1","labels":{{{keys},"99999":1}}}}\n'
    )
    start = time.process_time()
    assert "'99999' twice" in refused(tmp_path / "a.jsonl")
    assert time.process_time() - start < 5


LIMIT = "MLCONSENSUS_LIMIT"
ROWS = 2_000_000


def csv_inside(pack):
    return pack(b"id,a\n" + b"x,0\n" * 20_000_000)


def frame_of(write, **options):
    file = io.BytesIO()
    frame = pl.DataFrame(
        {"id": pl.zeros(ROWS, pl.Int64, eager=True), "a": pl.zeros(ROWS, eager=True)}
    )
    getattr(frame, write)(file, **options)
    return file.getvalue()


def archive(**arrays):
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def npy(head, data=b""):
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data


def nameless():
    """A billion names of no bytes each."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as members:
        members.writestr(
            "labels.npy",
            npy(
                b"{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000,), }\n"
            ),
        )
        members.writestr(
            "scores.npy",
            npy(
                b"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1), }\n",
                bytes(8),
            ),
        )
    return file.getvalue()


def one_long_text(column):
    """A text of 1 MB, which a dictionary holds once, in each of 200 rows."""
    file = io.BytesIO()
    cells = {"id": [str(row) for row in range(200)], "a": [0.5] * 200} | {
        column: ["0." + "5" * 2**20] * 200
    }
    pl.DataFrame(cells).write_parquet(file)
    return file.getvalue()


BOMBS = {
    "a.csv.gz": lambda: csv_inside(gzip.compress),
    "a.csv.zst": lambda: csv_inside(zstandard.compress),
    "cut.csv.zst": lambda: csv_inside(zstandard.compress)[:-10],
    "a.parquet": lambda: frame_of(
        "write_parquet", row_group_size=ROWS, compression="zstd"
    ),
    "a.parquet.zst": lambda: zstandard.compress(
        frame_of("write_parquet", row_group_size=ROWS)
    ),
    "a.feather": lambda: frame_of("write_ipc", compression="zstd"),
    "names.parquet": lambda: one_long_text("id"),
    "dense.npz": lambda: archive(scores=np.zeros((ROWS, 2))),
    "rows.npz": lambda: archive(
        format=b"coo",
        shape=[2**30, 2],
        row=np.zeros(1, int),
        col=np.zeros(1, int),
        data=[1.0],
        _is_array=True,
    ),
    "names.npz": nameless,
    # A prediction that comes twice needs the table of each model.
    "repeated.csv": lambda: (
        b"model,instance,label\nm0,i0,a\n"
        + b"".join(b"m%d,i%d,a\n" % (k, k) for k in range(2000))
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_sizes_are_known_before_memory_is_taken(tmp_path, monkeypatch, name):
    data = BOMBS[name]()
    assert len(data) < 2e6
    (tmp_path / name).write_bytes(data)
    monkeypatch.setenv(LIMIT, "0.01")
    said = refused(tmp_path / name)
    assert "GB" in said
    assert (
        f"expected at most 0.01 GB (the variable {LIMIT} sets another number of GB)"
        in said
    )


def test_the_limit_follows_the_memory_that_is_free_and_can_be_raised(
    tmp_path, monkeypatch
):
    (tmp_path / "a.csv.gz").write_bytes(
        gzip.compress(b"id,a\n" + b"".join(b"%d,0\n" % k for k in range(100_000)))
    )
    monkeypatch.setattr("mlconsensus.io.compression._STEP", 2**16)
    monkeypatch.setattr(
        "mlconsensus.execution.memory.available_memory", lambda: 400_000
    )
    assert "at most 0.0001 GB" in refused(tmp_path / "a.csv.gz")
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
    (tmp_path / "a.parquet").write_bytes(one_long_text("a"))
    monkeypatch.setenv(LIMIT, "0.01")
    with pytest.raises(
        InputError, match="column 'a': found 0.21 GB of text, expected at most 0.01 GB"
    ):
        read_predictions(tmp_path / "a.parquet")


def test_more_scores_than_fit_into_memory(monkeypatch):
    few = sparse.eye_array(2000, format="csr")
    monkeypatch.setenv(LIMIT, "0.01")
    with pytest.raises(
        InputError,
        match="consensus: found 0.032 GB of scores of 2,000 instances × 2,000 labels",
    ):
        mlc.MajorityVote().fit_transform([few, few])


def test_a_footer_that_tells_fewer_rows_than_there_are(tmp_path):
    n = 100_000
    pl.DataFrame({"id": range(n), "a": [0.5] * n}).write_parquet(
        tmp_path / "a.parquet", row_group_size=n
    )
    data = (tmp_path / "a.parquet").read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    # 100,000 and 1, twice each as Thrift's numbers are
    true = b"\xc0\x9a\x0c"
    told = b"\x82\x80\x00"
    footer, _ = parse_struct(data, start)
    assert footer.get_int(3) == n
    position = data.index(true, start)
    (tmp_path / "a.parquet").write_bytes(data[:position] + told + data[position + 3 :])
    assert (
        "found groups of 100,000 rows in all, expected 1, as the footer says"
        in refused(tmp_path / "a.parquet")
    )


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
def test_footers_that_end_nowhere(data):
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
    assert "file name too long" in refused(path)
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
    refused(tmp_path / "a.arff")
    assert time.process_time() - start < 5


def test_xml_that_multiplies_itself(tmp_path):
    entities = "".join(f'<!ENTITY e{k} "{f"&e{k - 1};" * 10}">' for k in range(1, 12))
    bomb = f'<?xml version="1.0"?><!DOCTYPE l [<!ENTITY e0 "lol">{entities}]><labels><label name="&e11;"/></labels>'
    (tmp_path / "x.xml").write_text(bomb)
    (tmp_path / "x.arff").write_text("@relation r\n@attribute a {0,1}\n@data\n1\n")
    with pytest.raises(InputError, match=r"x\.xml: found broken data .*, expected XML"):
        read_predictions(tmp_path / "x.arff")


def test_single_bytes_and_members_that_are_no_arrays(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"\xef")
    refused(tmp_path / "a.csv")
    for name, content in {
        "labels": b"a\nb",
        "labels.npy": npy(b"{'descr': '<f8', 'shape': (((("),
    }.items():
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as members:
            members.writestr(
                "scores.npy",
                npy(
                    b"{'descr': '|b1', 'fortran_order': False, 'shape': (1, 1), }\n",
                    b"\1",
                ),
            )
            members.writestr(name, content)
        refused(tmp_path / "a.npz")
