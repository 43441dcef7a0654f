"""Whatever the format, layout and compression: what is written is read back, and gives the same consensus."""

import io
import itertools
from dataclasses import replace
from pathlib import Path
from unicodedata import normalize

import numpy as np
import pytest
from file_panels import as_sparse, scored_panel, voted_panel
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

import mlconsensus as mlc
from mlconsensus.io import FORMATS, read_predictions, read_table, write_table
from mlconsensus.predictions.score_tables import ScoreTable

LAYOUTS = {
    "csv": ("wide", "long"),
    "tsv": ("wide", "long"),
    "parquet": ("wide", "long"),
    "feather": ("wide", "long"),
}
LOSSY = (
    "annif",
    "label-studio",
    "doccano",
    "prodigy",
    "argilla",
)  # what tools import has no room for all scores
WRITABLE = [name for name in FORMATS if name not in ("arff", *LOSSY)]
KINDS = [(name, layout) for name in WRITABLE for layout in LAYOUTS.get(name, ("wide",))]
PANELS = {
    "scored": scored_panel(),
    "scored, sparse": as_sparse(scored_panel()),
    "voted": voted_panel(),
    "voted, sparse": as_sparse(voted_panel()),
    "0/1": voted_panel(np.uint8),
    "float32": voted_panel(np.float32),
}


@pytest.mark.parametrize(("name", "layout"), KINDS)
@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("packed", ["", ".gz", ".zst"])
def test_same_consensus(
    tmp_path: Path, name: str, layout: str, panel: str, packed: str
) -> None:
    tables = PANELS[panel]
    paths = [
        tmp_path / f"{table.model}{FORMATS[name].suffixes[0]}{packed}"
        for table in tables
    ]
    for path, table in zip(paths, tables, strict=True):
        write_table(path, table, layout=layout)
    read = read_predictions(paths)
    panel_in_memory = mlc.Predictions.from_tables(tables)
    assert read.models == panel_in_memory.models
    assert read.instances.tolist() == panel_in_memory.instances.tolist()
    assert read.labels == panel_in_memory.labels
    np.testing.assert_array_equal(read.to_array(), panel_in_memory.to_array())
    consensus = mlc.MLCMr().fit_transform(read)
    np.testing.assert_allclose(
        consensus, mlc.MLCMr().fit_transform(panel_in_memory), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("name", WRITABLE)
def test_same_bytes(tmp_path: Path, name: str) -> None:
    table = scored_panel()[0]
    for packed, k in itertools.product(("", ".gz", ".zst"), "ab"):
        write_table(tmp_path / f"{k}.{name}{packed}", table, format=name)
    for packed in ("", ".gz", ".zst"):
        assert (tmp_path / f"a.{name}{packed}").read_bytes() == (
            tmp_path / f"b.{name}{packed}"
        ).read_bytes()


names = st.text(
    st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8
).filter(str.strip)
odd = st.sampled_from(
    [
        "007",
        "a,b",
        'a"b',
        '"',
        "a\nb",
        "a\r\nb",
        "a\rb",
        " a ",
        "NA",
        "nan",
        "é",
        "instance",
        "label",
        "score",
        "model",
        "id",
        "1e5",
        "#a",
        "'",
        "{",
        "%",
        "\\",
        "a\tb",
        "?",
        "true",
        "0.5",
    ]
)


@st.composite
def named_tables(draw: st.DrawFn) -> ScoreTable:
    instances = draw(st.lists(odd | names, min_size=1, max_size=4, unique=True))
    composed = names.map(lambda name: normalize("NFC", name))  # as labels are read
    labels = draw(st.lists(odd | composed, min_size=1, max_size=4, unique=True))
    cell = st.floats(0, 1) | st.just(float("nan"))
    scores = draw(
        st.lists(
            cell,
            min_size=len(instances) * len(labels),
            max_size=len(instances) * len(labels),
        )
    )
    return ScoreTable(
        "t", np.array(scores).reshape(len(instances), len(labels)), instances, labels
    )


@pytest.mark.parametrize(("name", "layout"), KINDS)
@settings(
    max_examples=50,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(table=named_tables(), as_csr=st.booleans())
def test_any_names_and_scores(
    tmp_path: Path, name: str, layout: str, table: ScoreTable, as_csr: bool
) -> None:
    path = tmp_path / f"t.{name}"
    write_table(
        path,
        replace(table, scores=sparse.csr_array(table.scores)) if as_csr else table,
        format=name,
        layout=layout,
        force=True,
    )
    read = read_table(path, format=name)
    order = [list(read.labels).index(label) for label in table.labels]
    rows = [list(read.instances).index(instance) for instance in table.instances]
    if sparse.issparse(read.scores):
        dense = read.scores.toarray()
    else:
        dense = read.scores
    assert dense.shape == table.scores.shape
    np.testing.assert_array_equal(dense[np.ix_(rows, order)], table.scores)


def test_standard_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stream:
        def __init__(self, data: bytes = b"") -> None:
            self.buffer = io.BytesIO(data)

    out = Stream()
    monkeypatch.setattr("sys.stdout", out)
    write_table("-", scored_panel()[0], format="csv")
    monkeypatch.setattr("sys.stdin", Stream(out.buffer.getvalue()))
    table = read_table("-", format="csv")
    assert table.model == "stdin"
    np.testing.assert_array_equal(table.scores, scored_panel()[0].scores)
