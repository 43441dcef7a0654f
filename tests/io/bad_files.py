"""Files that must be refused, each with words that the one-line message must hold.

``BAD_FILES`` is a list of cases. The function ``make(folder)`` of a case writes its
files and returns the paths for a command or a reader, in order. The fault is in the
last file unless the words name another.
"""

import gzip
import io
import os
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import zstandard
from scipy import sparse

GOOD = b"instance,a,b\n1,1,0\n2,0,1\n"


@dataclass(frozen=True, kw_only=True)
class BadFile:
    """A case: how to make it, and words of the message."""

    name: str
    make: Callable[[Path], list[Path]]
    words: tuple[str, ...]
    needs_user: bool = False  # root may do it


BAD_FILES: list[BadFile] = []


def add_bad(name: str, file: str, content: bytes | str, *words: str) -> None:
    """Add a case: a good file, and one whose content is bad."""

    data = content
    if isinstance(data, str):
        data = data.encode()

    def make(folder: Path) -> list[Path]:
        (folder / "good.csv").write_bytes(GOOD)
        (folder / file).write_bytes(data)
        return [folder / "good.csv", folder / file]

    BAD_FILES.append(BadFile(name=name, make=make, words=(file, *words)))


def add_case(
    name: str, *words: str, needs_user: bool = False
) -> Callable[[Callable[[Path], list[Path]]], None]:
    """Return a decorator that adds a function as a case."""

    def add(make: Callable[[Path], list[Path]]) -> None:
        case = BadFile(name=name, make=make, words=words, needs_user=needs_user)
        BAD_FILES.append(case)

    return add


def make_frame_bytes(write: str, **columns: list[object]) -> bytes:
    file = io.BytesIO()
    getattr(pl.DataFrame(columns), write)(file)
    return file.getvalue()


def make_npz_bytes(**arrays: object) -> bytes:
    file = io.BytesIO()
    np.savez(file, **{name: np.asarray(array) for name, array in arrays.items()})
    return file.getvalue()


PARQUET = make_frame_bytes(
    "write_parquet", instance=["1", "2"], a=[1.0, 0.0], b=[0.5, 0.5]
)
FEATHER = make_frame_bytes("write_ipc", instance=["1", "2"], a=[1.0, 0.0], b=[0.5, 0.5])
NPZ = make_npz_bytes(
    scores=np.full((20, 20), 0.5),
    instances=np.arange(20),
    labels=[f"l{k}" for k in range(20)],
)
ARFF = "@relation 'r: -C 2'\n@attribute a {0,1}\n@attribute b {0,1}\n@data\n"

# CSV: the shape of the file
add_bad("empty file", "bad.csv", "", "empty file", "data")
add_bad("only blank lines", "bad.csv", "\n\n\n", "empty file")
add_bad("only a byte order mark", "bad.csv", b"\xef\xbb\xbf", "empty file")
add_bad("header only", "bad.csv", "instance,a,b\n", "no rows", "at least one")
add_bad(
    "blank first line", "bad.csv", "\ninstance,a,b\n1,1,0\n", "line 1", "empty line"
)
add_bad(
    "blank line inside",
    "bad.csv",
    "instance,a,b\n1,1,0\n\n2,0,1\n",
    "line 3",
    "empty line",
    "3 fields",
)
add_bad(
    "short row",
    "bad.csv",
    "instance,a,b\n1,1\n2,0,1\n",
    "line 2",
    "2 fields",
    "3 fields",
)
add_bad(
    "short row later",
    "bad.csv",
    "instance,a,b\n1,1,0\n2,0\n",
    "line 3",
    "2 fields",
    "3 fields",
)
add_bad(
    "short row beside quotes",
    "bad.csv",
    'instance,a,b\n"1\n",1,0\n2,0\n',
    "line 4",
    "2 fields",
)
add_bad(
    "long row",
    "bad.csv",
    "instance,a,b\n1,1,0\n2,0,1,1\n",
    "line 3",
    "4 fields",
    "3 fields",
)
add_bad(
    "no label column",
    "bad.csv",
    "instance\n1\n2\n",
    "only the column 'instance'",
    "label",
)
add_bad(
    "semicolons", "bad.csv", "instance;a;b\n1;1;0\n", "line 1", "semicolons", "commas"
)
add_bad(
    "tabs in a CSV",
    "bad.csv",
    "instance\ta\tb\n1\t1\t0\n",
    "line 1",
    "tabs",
    "--format tsv",
)
add_bad(
    "commas in a TSV",
    "bad.tsv",
    "instance,a,b\n1,1,0\n",
    "line 1",
    "commas",
    "--format csv",
)
add_bad(
    "mixed delimiters",
    "bad.csv",
    "instance,a,b\n1,1,0\n2;0;1\n",
    "line 3",
    "1 field",
    "semicolons",
)
add_bad(
    "old Mac line ends",
    "bad.csv",
    "instance,a,b\r1,1,0\r2,0,1\r",
    "carriage returns",
    "line feeds",
)
add_bad("unclosed quote", "bad.csv", 'instance,a,b\n"1,1,0\n2,0,1\n', "line 2", "quote")
add_bad("stray quote", "bad.csv", 'instance,a,b\n"1"x,1,0\n2,0,1\n', "line 2", "quote")

# CSV: names
add_bad(
    "duplicate label",
    "bad.csv",
    "instance,a,a\n1,1,0\n",
    "columns 2 and 3",
    "'a' twice",
)
add_bad("no header", "bad.csv", "1,0,0\n2,0,1\n", "'0' twice", "header line missing?")
add_bad("empty label", "bad.csv", "instance,a,\n1,1,0\n", "column 3", "empty name")
add_bad(
    "duplicate instance",
    "bad.csv",
    "instance,a,b\n1,1,0\n2,0,1\n1,0,0\n",
    "line 4",
    "'1' again",
    "line 2",
)
add_bad(
    "empty instance",
    "bad.csv",
    "instance,a,b\n1,1,0\n,0,1\n",
    "line 3",
    "nothing",
    "a name",
)
add_bad(
    "blank instance",
    "bad.csv",
    "instance,a,b\n1,1,0\n  ,0,1\n",
    "line 3",
    "nothing",
    "a name",
)

# CSV: scores
SCORES = "from 0 to 1"
add_bad(
    "text in a number",
    "bad.csv",
    "instance,a,b\n1,high,0\n2,0,1\n",
    "line 2",
    "column 'a'",
    "'high'",
    SCORES,
)
add_bad(
    "text after a quoted line end",
    "bad.csv",
    'instance,a,b\n"1\n",1,0\n2,0,x\n',
    "line 4",
    "column 'b'",
    "'x'",
    SCORES,
)
add_bad(
    "above one",
    "bad.csv",
    "instance,a,b\n1,1,0\n2,0,1.5\n",
    "line 3",
    "column 'b'",
    "1.5",
    SCORES,
)
add_bad(
    "percent",
    "bad.csv",
    "instance,a,b\n1,1,0\n2,0,100\n",
    "line 3",
    "column 'b'",
    "100",
    SCORES,
)
add_bad(
    "more than a byte",
    "bad.csv",
    "instance,a,b\n1,1,0\n2,0,300\n",
    "line 3",
    "column 'b'",
    "300",
    SCORES,
)
add_bad(
    "below zero",
    "bad.csv",
    "instance,a,b\n1,-0.25,0\n2,0,1\n",
    "line 2",
    "column 'a'",
    "-0.25",
    SCORES,
)
add_bad(
    "logits",
    "bad.csv",
    "instance,a,b\n1,-3,0\n2,0,1\n",
    "line 2",
    "column 'a'",
    "-3",
    SCORES,
)
add_bad(
    "1e400",
    "bad.csv",
    "instance,a,b\n1,1e400,0\n2,0,1\n",
    "line 2",
    "column 'a'",
    "inf",
    SCORES,
)
add_bad(
    "infinity",
    "bad.csv",
    "instance,a,b\n1,inf,0\n2,0,1\n",
    "line 2",
    "column 'a'",
    "inf",
    SCORES,
)
add_bad(
    "decimal comma",
    "bad.tsv",
    "instance\ta\tb\n1\t0,5\t0\n",
    "line 2",
    "column 'a'",
    "'0,5'",
    SCORES,
)
add_bad(
    "hexadecimal",
    "bad.csv",
    "instance,a,b\n1,0x1,0\n",
    "line 2",
    "column 'a'",
    "'0x1'",
    SCORES,
)
add_bad(
    "yes", "bad.csv", "instance,a,b\n1,yes,0\n", "line 2", "column 'a'", "'yes'", SCORES
)
for spelling in ("-", "?", ".", "missing", "#N/A", "nil", "NaNaN"):
    add_bad(
        f"missing spelt {spelling}",
        "bad.csv",
        f"instance,a,b\n1,{spelling},0\n",
        "column 'a'",
        repr(spelling),
        "NaN",
    )

# Encodings
add_bad(
    "UTF-16", "bad.csv", "instance,a,b\n1,1,0\n".encode("utf-16"), "UTF-16", "UTF-8"
)
add_bad(
    "UTF-16 without mark",
    "bad.csv",
    "instance,a,b\n1,1,0\n".encode("utf-16-le"),
    "UTF-16",
    "UTF-8",
)
add_bad(
    "Latin-1 in the header",
    "bad.csv",
    "instance,é,b\n1,1,0\n".encode("latin-1"),
    "line 1",
    "0xe9",
    "UTF-8",
)
add_bad(
    "Latin-1 in an id",
    "bad.csv",
    "instance,a,b\n1,1,0\né,0,1\n".encode("latin-1"),
    "line 3",
    "0xe9",
    "UTF-8",
)
add_bad(
    "Latin-1 in a score",
    "bad.csv",
    "instance,a,b\n1,1,0\n2,é,1\n".encode("latin-1"),
    "line 3",
    "0xe9",
    "UTF-8",
)
add_bad("binary data", "bad.csv", bytes(range(256)) * 4, "binary", "UTF-8")

# Long tables
add_bad(
    "long: duplicate pair",
    "bad.csv",
    "instance,label,score\n1,a,1\n2,a,0\n1,a,1\n",
    "line 4",
    "'a'",
    "'1'",
    "line 2",
)
add_bad(
    "long: empty label",
    "bad.csv",
    "instance,label,score\n1,a,1\n1,,1\n",
    "line 3",
    "column 'label'",
    "a name",
)
add_bad(
    "long: empty model",
    "bad.csv",
    "model,instance,label,score\nm,1,a,1\n,1,b,1\n",
    "line 3",
    "column 'model'",
)
add_bad(
    "long: text",
    "bad.csv",
    "instance,label,score\n1,a,sure\n",
    "line 2",
    "column 'score'",
    "'sure'",
    SCORES,
)
add_bad(
    "long: above one",
    "bad.csv",
    "instance,label,score\n1,a,0.5\n1,b,7.0\n",
    "line 3",
    "column 'score'",
    "7",
    SCORES,
)
add_bad(
    "long: misspelt header",
    "bad.csv",
    "instance,label,scores\n1,sports,1\n",
    "'sports'",
    "instance, label, score",
)
add_bad(
    "long: more columns",
    "bad.csv",
    "instance,label,score,by\n1,sports,1,x\n",
    "'sports'",
    "instance, label, score",
)

# Parquet and Feather
add_bad("Parquet: truncated", "bad.parquet", PARQUET[:-20], "Parquet")
add_bad("Parquet: text", "bad.parquet", "instance,a,b\n1,1,0\n", "Parquet")
add_bad("Parquet: empty file", "bad.parquet", b"", "Parquet")
add_bad(
    "Parquet: damaged inside",
    "bad.parquet",
    PARQUET[:4] + bytes(60) + PARQUET[64:],
    "Parquet",
)
add_bad(
    "Parquet: no rows",
    "bad.parquet",
    make_frame_bytes("write_parquet", i=[], a=[]),
    "no rows",
)
add_bad(
    "Parquet: above one",
    "bad.parquet",
    make_frame_bytes("write_parquet", i=["1", "2"], a=[1, 7]),
    "row 2",
    "column 'a'",
    "7",
)
add_bad(
    "Parquet: text scores",
    "bad.parquet",
    make_frame_bytes("write_parquet", i=["1"], a=["x"]),
    "row 1",
    "column 'a'",
    "'x'",
)
add_bad(
    "Parquet: lists",
    "bad.parquet",
    make_frame_bytes("write_parquet", i=["1"], a=[[1]]),
    "column 'a'",
    "List",
)
add_bad(
    "Parquet: float ids",
    "bad.parquet",
    make_frame_bytes("write_parquet", i=[1.0], a=[1.0]),
    "column 'i'",
    "Float64",
)
add_bad(
    "Parquet: duplicate ids",
    "bad.parquet",
    make_frame_bytes("write_parquet", i=[1, 1], a=[1, 0]),
    "row 2",
    "'1' again",
)
add_bad("Feather: truncated", "bad.feather", FEATHER[: len(FEATHER) // 2], "Feather")
add_bad("Feather: text", "bad.arrow", "instance,a,b\n1,1,0\n", "Feather")

# JSON lines
TAGS = '{"instance": "1", "labels": ["a"]}\n'
add_bad("JSON: empty file", "bad.jsonl", "", "empty file")
add_bad(
    "JSON: not JSON",
    "bad.jsonl",
    TAGS + "instance 2: b\n",
    "line 2",
    "no JSON",
    '"labels"',
)
add_bad(
    "JSON: cut off", "bad.jsonl", TAGS + '{"instance": "2", "lab', "line 2", "no JSON"
)
add_bad(
    "JSON: an array",
    "bad.jsonl",
    "[" + TAGS.strip() + "]\n",
    "line 1",
    "a list",
    '"labels"',
)
add_bad(
    "JSON: spread over lines",
    "bad.jsonl",
    '{\n"instance": "1",\n"labels": []\n}\n',
    "line 1",
    "no JSON",
)
add_bad(
    "JSON: no labels", "bad.jsonl", '{"instance": "1"}\n', "line 1", "no key 'labels'"
)
add_bad(
    "JSON: unknown key",
    "bad.jsonl",
    '{"instance": "1", "label": ["a"]}\n',
    "line 1",
    "'label'",
    "did you mean 'labels'?",
)
add_bad(
    "JSON: key twice",
    "bad.jsonl",
    '{"instance": "1", "labels": {"a": 1, "a": 0}}\n',
    "line 1",
    "'a' twice",
)
add_bad(
    "JSON: labels are text",
    "bad.jsonl",
    '{"instance": "1", "labels": "a"}\n',
    "line 1",
    "a text",
    "a list",
)
add_bad(
    "JSON: a label is a list",
    "bad.jsonl",
    '{"instance": "1", "labels": [["a"]]}\n',
    "line 1",
    "a list",
    "text",
)
add_bad(
    "JSON: a label is empty",
    "bad.jsonl",
    '{"instance": "1", "labels": [""]}\n',
    "line 1",
    "empty text",
)
add_bad(
    "JSON: instance is null",
    "bad.jsonl",
    '{"instance": null, "labels": []}\n',
    "line 1",
    "instance",
    "null",
)
add_bad(
    "JSON: score is text",
    "bad.jsonl",
    '{"instance": "1", "labels": {"a": "perhaps"}}\n',
    "line 1",
    "label 'a'",
    "'perhaps'",
    SCORES,
)
add_bad(
    "JSON: score above one",
    "bad.jsonl",
    '{"instance": "1", "labels": {"a": 1.01}}\n',
    "line 1",
    "label 'a'",
    "1.01",
    SCORES,
)
add_bad(
    "JSON: infinity",
    "bad.jsonl",
    '{"instance": "1", "labels": {"a": Infinity}}\n',
    "line 1",
    "label 'a'",
    "inf",
    SCORES,
)
add_bad(
    "JSON: instance twice", "bad.jsonl", TAGS + TAGS, "line 2", "'1' again", "line 1"
)
add_bad(
    "JSON: label twice",
    "bad.jsonl",
    '{"instance": "1", "labels": ["a", "a"]}\n',
    "line 1",
    "'a'",
    "again",
)
add_bad(
    "JSON: model now and then",
    "bad.jsonl",
    TAGS + '{"instance": "2", "labels": [], "model": "m"}\n',
    "line 2",
    "a model",
)
add_bad(
    "JSON: no label at all",
    "bad.jsonl",
    '{"instance": "1", "labels": []}\n',
    "no label",
    "at least one",
)
add_bad(
    "JSON: half a surrogate",
    "bad.jsonl",
    '{"instance": "1", "labels": ["\\ud800"]}\n',
    "surrogate",
    "Unicode",
)
add_bad("JSON: nested too deep", "bad.jsonl", "[" * 100_000, "line 1", "no JSON")

# NPZ
add_bad(
    "NPZ: pickled",
    "bad.npz",
    make_npz_bytes(scores=np.array([[None, 1]], dtype=object)),
    "pickle",
)
add_bad("NPZ: a bare pickle", "bad.npz", pickle.dumps({"scores": [[1]]}), "pickle")
add_bad(
    "NPZ: pickled names",
    "bad.npz",
    make_npz_bytes(scores=[[1.0]], labels=np.array(["a"], dtype=object)),
    "pickle",
)
add_bad("NPZ: truncated", "bad.npz", NPZ[:-30], "NPZ")
add_bad("NPZ: damaged inside", "bad.npz", NPZ[:300] + bytes(100) + NPZ[400:], "NPZ")
add_bad("NPZ: empty file", "bad.npz", b"", "no ZIP file", "NPZ")
add_bad("NPZ: one byte", "bad.npz", b"x", "no ZIP file", "NPZ")
add_bad("NPZ: a single array", "bad.npz", b"\x93NUMPY", "a single array (NPY)", "NPZ")
add_bad(
    "NPZ: other arrays",
    "bad.npz",
    make_npz_bytes(score=[[1.0]]),
    "score",
    "did you mean 'scores'?",
)
add_bad(
    "NPZ: one dimension",
    "bad.npz",
    make_npz_bytes(scores=[1.0, 0.0]),
    "scores",
    "(2,)",
    "(n, l)",
)
add_bad(
    "NPZ: above one",
    "bad.npz",
    make_npz_bytes(scores=[[0.0, 2.0]]),
    "scores[0, 1]",
    "2",
    SCORES,
)
add_bad(
    "NPZ: text scores",
    "bad.npz",
    make_npz_bytes(scores=[["x"]]),
    "scores",
    "<U1",
    "numbers",
)
add_bad(
    "NPZ: too few names",
    "bad.npz",
    make_npz_bytes(scores=[[0.0, 1.0]], labels=["a"]),
    "labels",
    "for 1",
    "for 2",
)
add_bad(
    "NPZ: duplicate names",
    "bad.npz",
    make_npz_bytes(scores=[[0.0, 1.0]], labels=["a", "a"]),
    "labels",
    "'a'",
    "once",
)
add_bad(
    "NPZ: no instance", "bad.npz", make_npz_bytes(scores=np.zeros((0, 2))), "(0, 2)"
)
add_bad(
    "NPZ: no names beside a file with names",
    "bad.npz",
    make_npz_bytes(scores=[[0.0, 1.0]], labels=["a", "b"]),
    "no names",
    "'1'",
)

# ARFF
add_bad(
    "ARFF: no @data",
    "bad.arff",
    "@relation r\n@attribute a {0,1}\n",
    "line 2",
    "layout",
)
add_bad(
    "ARFF: no list of labels",
    "bad.arff",
    ARFF.replace(": -C 2", "") + "1,0\n",
    "bad.xml",
    "-C",
)
add_bad(
    "ARFF: -C too large",
    "bad.arff",
    ARFF.replace("-C 2", "-C 9") + "1,0\n",
    "-C 9",
    "1 to 2",
)
add_bad("ARFF: no rows", "bad.arff", ARFF, "no row")
add_bad(
    "ARFF: bad attribute",
    "bad.arff",
    ARFF.replace("b {0,1}", "b") + "1,0\n",
    "line 3",
    "@ATTRIBUTE",
)
add_bad(
    "ARFF: unknown type",
    "bad.arff",
    ARFF.replace("b {0,1}", "b relational") + "1,0\n",
    "line 3",
    "@ATTRIBUTE type",
)
add_bad("ARFF: short row", "bad.arff", ARFF + "1,0\n1\n", "line 6", "@DATA", "ARFF")
add_bad(
    "ARFF: undeclared value",
    "bad.arff",
    ARFF + "{0 1}\n{0 2}\n",
    "line 6",
    "2",
    "nominal",
)
add_bad(
    "ARFF: position too large", "bad.arff", ARFF + "{0 1}\n{7 1}\n", "line 6", "{7 1}"
)
add_bad("ARFF: unclosed row", "bad.arff", ARFF + "{0 1\n", "line 5")
add_bad(
    "ARFF: nominal label",
    "bad.arff",
    ARFF.replace("b {0,1}", "b {no,yes}") + "1,no\n",
    "'b'",
    "{no,yes}",
    "{0,1}",
)
add_bad(
    "ARFF: above one",
    "bad.arff",
    ARFF.replace("b {0,1}", "b numeric") + "1,0\n1,5\n",
    "data row 2",
    "'b'",
    "5",
    SCORES,
)

# Compression
add_bad("gzip: cut off", "bad.csv.gz", gzip.compress(GOOD * 100)[:-12], "gzip")
add_bad(
    "gzip: damaged",
    "bad.csv.gz",
    gzip.compress(GOOD)[:12] + b"xx" + gzip.compress(GOOD)[14:],
    "gzip",
)
add_bad("gzip: plain text", "bad.csv.gz", GOOD, "gzip")
add_bad("gzip: empty file", "bad.csv.gz", b"", "empty file")
add_bad(
    "zstd: cut off",
    "bad.csv.zst",
    zstandard.compress(os.urandom(0) + GOOD * 100)[:-5],
    "zstd",
)
add_bad("zstd: plain text", "bad.csv.zst", GOOD, "zstd")
add_bad(
    "zstd: bad CSV within",
    "bad.csv.zst",
    zstandard.compress(b"instance,a,b\n1,x,0\n"),
    "line 2",
    "column 'a'",
    "'x'",
)

# Names of files and formats
add_bad("unknown suffix", "bad.cvs", GOOD, "'.cvs'", "did you mean 'csv'?")
add_bad(
    "unknown suffix, compressed",
    "bad.docx.gz",
    gzip.compress(GOOD),
    "'.docx'",
    ".parquet",
)
add_bad("no suffix", "bad", GOOD, "no suffix", ".csv")

# Panels whose models do not fit together
add_bad(
    "no label in common",
    "bad.csv",
    "instance,x,y\n1,1,0\n2,0,1\n",
    "no label",
    "'x'",
    "in common",
)
add_bad(
    "no instance in common",
    "bad.csv",
    "instance,a,b\nq,1,0\nr,0,1\n",
    "no instance",
    "'q'",
    "in common",
)


@add_case("a model in two files", "b.csv", "second model 'm'", "a.csv")
def _(folder: Path) -> list[Path]:
    for name in ("a.csv", "b.csv"):
        (folder / name).write_text("model,instance,label,score\nm,1,a,1\n")
    return [folder / "a.csv", folder / "b.csv"]


@add_case("a folder", "folder.csv", "a folder", "a file")
def _(folder: Path) -> list[Path]:
    (folder / "folder.csv").mkdir()
    return [folder / "folder.csv"]


@add_case("a missing file", "god.csv", "no such file", "did you mean 'good.csv'?")
def _(folder: Path) -> list[Path]:
    (folder / "good.csv").write_bytes(GOOD)
    return [folder / "god.csv"]


@add_case("a missing folder", "nowhere", "no such file")
def _(folder: Path) -> list[Path]:
    return [folder / "nowhere" / "a.csv"]


@add_case("a file as a folder", "good.csv", "not a directory")
def _(folder: Path) -> list[Path]:
    (folder / "good.csv").write_bytes(GOOD)
    return [folder / "good.csv" / "a.csv"]


@add_case("links in a circle", "loop.csv", "symbolic links")
def _(folder: Path) -> list[Path]:
    (folder / "loop.csv").symlink_to(folder / "loop.csv")
    return [folder / "loop.csv"]


@add_case("no permission", "secret.csv", "no permission", needs_user=True)
def _(folder: Path) -> list[Path]:
    (folder / "secret.csv").write_bytes(GOOD)
    (folder / "secret.csv").chmod(0)
    return [folder / "secret.csv"]


@add_case("the same file twice", "good.csv", "second model", "own name")
def _(folder: Path) -> list[Path]:
    (folder / "good.csv").write_bytes(GOOD)
    return [folder / "good.csv", folder / "good.csv"]


@add_case("the same model in two formats", "good.tsv", "second model", "good.csv")
def _(folder: Path) -> list[Path]:
    (folder / "good.csv").write_bytes(GOOD)
    (folder / "good.tsv").write_bytes(GOOD.replace(b",", b"\t"))
    return [folder / "good.csv", folder / "good.tsv"]


@add_case("broken sparse matrix", "bad.npz", "broken sparse matrix")
def _(folder: Path) -> list[Path]:
    matrix = sparse.csr_array(np.eye(3))
    matrix.indices[0] = 9
    sparse.save_npz(folder / "bad.npz", matrix)
    return [folder / "bad.npz"]


@add_case("XML with another label", "bad.xml", "'c'", "attribute")
def _(folder: Path) -> list[Path]:
    (folder / "bad.arff").write_text(ARFF + "1,0\n")
    (folder / "bad.xml").write_text(
        '<labels><label name="a"/><label name="c"/></labels>'
    )
    return [folder / "bad.arff"]


@add_case("broken XML", "bad.xml", "broken data", "XML")
def _(folder: Path) -> list[Path]:
    (folder / "bad.arff").write_text(ARFF + "1,0\n")
    (folder / "bad.xml").write_text('<labels><label name="a">')
    return [folder / "bad.arff"]


@add_case("unnamed files of different lengths", "2 instances", "3")
def _(folder: Path) -> list[Path]:
    for name, n in (("a.npz", 3), ("b.npz", 2)):
        (folder / name).write_bytes(make_npz_bytes(scores=np.ones((n, 2))))
    return [folder / "a.npz", folder / "b.npz"]
