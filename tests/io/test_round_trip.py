"""Tables in all formats, layouts and compressions are read as they were written."""

import io
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
# Files that tools import do not hold all scores.
LOSSY = ("label-studio", "doccano", "prodigy")
WRITABLE = [
    name for name, form in FORMATS.items() if form.is_writable and name not in LOSSY
]
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
    suffix = FORMATS[name].suffixes[0]
    paths = []
    for table in tables:
        paths.append(tmp_path / f"{table.model}{suffix}{packed}")
        write_table(paths[-1], table, layout=layout)

    read = read_predictions(paths)
    panel_in_memory = mlc.Predictions.from_tables(tables)
    assert read.models == panel_in_memory.models
    assert read.instances.tolist() == panel_in_memory.instances.tolist()
    assert read.labels == panel_in_memory.labels
    np.testing.assert_array_equal(read.to_array(), panel_in_memory.to_array())

    consensus = mlc.MLCMr().fit_transform(read)
    expected = mlc.MLCMr().fit_transform(panel_in_memory)
    np.testing.assert_allclose(consensus, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", WRITABLE)
def test_same_bytes(tmp_path: Path, name: str) -> None:
    table = scored_panel()[0]
    for packed in ("", ".gz", ".zst"):
        first = tmp_path / f"a.{name}{packed}"
        second = tmp_path / f"b.{name}{packed}"
        write_table(first, table, format=name)
        write_table(second, table, format=name)
        assert first.read_bytes() == second.read_bytes()


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
    shape = (len(instances), len(labels))
    n_cells = len(instances) * len(labels)
    scores = draw(st.lists(cell, min_size=n_cells, max_size=n_cells))
    return ScoreTable("t", np.array(scores).reshape(shape), instances, labels)


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
    written = table
    if as_csr:
        (written,) = as_sparse([table])
    write_table(path, written, format=name, layout=layout, force=True)

    # Long tables may have another order.
    read = read_table(path, format=name)
    rows = list(map(list(read.instances).index, table.instances))
    columns = list(map(list(read.labels).index, table.labels))
    scores = read.scores
    if sparse.issparse(scores):
        scores = scores.toarray()
    assert scores.shape == table.scores.shape
    np.testing.assert_array_equal(scores[np.ix_(rows, columns)], table.scores)


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
