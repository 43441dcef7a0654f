"""The fuzzer for a moment, and all that it ever found, once more."""

import random
from pathlib import Path

import fuzz
import pytest
import seeds

CORPUS = sorted(
    path
    for path in (Path(__file__).parent / "fuzz_corpus").iterdir()
    if path.suffix != ".md"
)


def given(folder: Path, name: str, data: bytes) -> Path:
    (folder / "beside.npz").write_bytes(seeds.PANEL)
    (folder / name).write_bytes(data)
    return folder / name


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_what_was_ever_found(path, tmp_path, monkeypatch):
    monkeypatch.setattr(fuzz.tempfile, "tempdir", str(tmp_path))
    # which reads it into memory too
    if path.suffix in (".stats", ".model", ".round"):
        kind = "state"
    else:
        kind = "streamed"
    for chance in range(4):  # of methods and options
        assert (
            fuzz.wrong(
                kind,
                given(tmp_path, path.name, path.read_bytes()),
                random.Random(chance),
            )
            == ""
        )


@pytest.mark.parametrize("kind", fuzz.KINDS)
def test_a_few_broken_files(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(fuzz.tempfile, "tempdir", str(tmp_path))
    if kind == "state":
        originals = seeds.states()
    else:
        originals = seeds.files()
    changed = 0
    for number in range(40):
        name, data, rng = fuzz.case(kind, 0, number, originals)
        assert fuzz.case(kind, 0, number, originals)[1] == data
        changed += data != originals[name]
        assert fuzz.wrong(kind, given(tmp_path, name, data), rng) == ""
    assert changed > 30


def test_whole_files_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(fuzz.tempfile, "tempdir", str(tmp_path))
    refused = set()
    for name, data in seeds.files().items():
        path = given(tmp_path, name, data)
        code, _ = fuzz.run(
            "combine", path, "--method", "mv", "-o", tmp_path / "out.csv", "--force"
        )
        refused |= {name} if code else set()
    assert refused == {
        "export.csv",
        "nested.parquet",
    }  # which needs --columns; which has lists for scores
    for name, data in seeds.states().items():
        assert fuzz.wrong("state", given(tmp_path, name, data), random.Random(0)) == ""


def test_faults_are_seen(tmp_path, monkeypatch):
    path = given(tmp_path, "scores-wide.csv", seeds.GOOD)
    monkeypatch.setattr(fuzz, "run", lambda *words: (1, "mlconsensus: internal fault"))
    assert "exit code 1" in fuzz.wrong("memory", path, random.Random(0))
    monkeypatch.setattr(fuzz, "run", lambda *words: (2, "mlconsensus: found \x1b[2J"))
    assert "obeys" in fuzz.wrong("memory", path, random.Random(0))
    ends = iter([(0, ""), (2, "mlconsensus: found nothing")])
    monkeypatch.setattr(fuzz, "run", lambda *words: next(ends))
    assert "streaming ends with 2, memory with 0" in fuzz.wrong(
        "streamed", path, random.Random(0)
    )
