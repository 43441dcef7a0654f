"""Broken and hostile files of statistics and models are refused in one sentence."""

import contextlib
import json
import pickle

import numpy as np
import pytest
from states import changed, combiner_named, every_method, saved

import mlconsensus as mlc
from mlconsensus.federated import statistics_files
from mlconsensus.federated.statistics_files import read_state


def outer_header(data):
    """What safetensors itself has before the arrays."""
    return json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])


def framed(outer, content):
    text = json.dumps(outer).encode()
    return len(text).to_bytes(8, "little") + text + content


def rewritten(path, change):
    """Change our own header as text, whatever comes of it."""
    data = path.read_bytes()
    outer = outer_header(data)
    start = 8 + int.from_bytes(data[:8], "little")
    part = json.loads(outer["__metadata__"]["mlconsensus"])
    part["header"] = change(part["header"])
    outer["__metadata__"]["mlconsensus"] = json.dumps(part)
    path.write_bytes(framed(outer, data[start:]))


def entry(data):
    """Our part of the metadata."""
    return outer_header(data)["__metadata__"]["mlconsensus"]


def refused(path):
    with pytest.raises(mlc.InputError) as error:
        mlc.load(path)
    assert str(error.value).startswith(str(path))
    assert "expected" in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("kind", ["stats", "model"])
def test_every_flipped_byte_and_every_cut_is_refused(kind, tmp_path):
    path = tmp_path / f"a.{kind}"
    fitted = mlc.MajorityVote().fit([[[1, 0]]])
    (mlc.save_statistics if kind == "stats" else mlc.save)(fitted, path)
    pooled = path.read_bytes()
    for position in range(len(pooled)):
        path.write_bytes(
            pooled[:position]
            + bytes([pooled[position] ^ (1 << position % 8)])
            + pooled[position + 1 :]
        )
        refused(path)
        path.write_bytes(pooled[:position])
        refused(path)
    path.write_bytes(pooled + b"x")
    refused(path)


@every_method
@pytest.mark.parametrize("kind", ["stats", "model"])
def test_flipped_bytes_under_a_right_sha256_of_are_refused_or_harmless(
    name, kind, tmp_path, monkeypatch
):
    """Changed files are refused in one sentence, or give finite scores."""
    panel, _ = mlc.datasets.make_panel(20, 2, 2, missing=0.1, random_state=0)
    path = tmp_path / f"a.{kind}"
    fitted = combiner_named(name).fit(panel)
    (mlc.save_statistics if kind == "stats" else mlc.save)(fitted, path)
    content = path.read_bytes()
    monkeypatch.setattr(
        statistics_files,
        "_sha256_of",
        lambda text, arrays: json.loads(entry(content))["sha256"],
    )
    rng = np.random.default_rng(0)
    for position in rng.choice(len(content), 150, replace=False):
        path.write_bytes(
            content[:position]
            + bytes([content[position] ^ (1 << rng.integers(8))])
            + content[position + 1 :]
        )
        with contextlib.suppress(mlc.InputError):
            read = mlc.load(path)
            mlc.save(read, tmp_path / "solved.model", force=True)
            part = mlc.Predictions(panel.to_array(), read.models_, read.labels_)
            assert np.isfinite(read.transform(part)).all()


def test_other_files_are_refused(tmp_path):
    class Trap:
        def __reduce__(self):
            return pytest.fail, ("a pickle was opened",)

    npz = tmp_path / "x.npz"
    np.savez(npz, a=np.array([Trap()], dtype=object), allow_pickle=True)
    for content in (
        b"",
        b"\n",
        b"mlconsensus",
        pickle.dumps(Trap()),
        npz.read_bytes(),
        b"id,a\n1,0\n",
        b"\x1f\x8b",
        b"\xff" * 8 + b"{}",
        (2).to_bytes(8, "little") + b"{}",
    ):
        (tmp_path / "x").write_bytes(content)
        refused(tmp_path / "x")
    refused(tmp_path)
    refused(tmp_path / "not there")


def test_another_version_is_refused_with_what_to_do(stats):
    rewritten(stats, lambda header: header.replace('"version": 2', '"version": 3'))
    assert (
        "found version 3 of the format, expected 2: read it with a newer mlconsensus"
        in refused(stats)
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "pickle"},
        {"kind": None},
        {"method": "MLCM-x"},
        {"method": ["mlcm_r"]},
        {"parameters": None},
        {"parameters": {"alpha": -1}},
        {"parameters": {"alpha": "2"}},
        {"parameters": {"alpha": [2]}},
        {"parameters": {"beta": 1}},
        {"parameters": {"weights": 7}},
        {"parameters": {"weights": [1, 2]}},
        {"parameters": {"weights": {"nobody": 1}}},
        {"parameters": {"weights": ["a", "b", "c"]}},
        {"models": []},
        {"models": ["a", "b"]},
        {"models": ["a", "a", "b"]},
        {"models": "abc"},
        {"models": None},
        {"labels": [1, 2, 3, 4]},
        {"labels": ["a", "b", "c", ""]},
        {"labels": ["a", "b", "c", "d", "e"]},
        {"clusters": None},
        {"instances": None},
        {"instances": 0},
        {"instances": -5},
        {"instances": 1.5},
        {"instances": True},
        {"instances": 10**30},
        {"privacy": {}},
        {"privacy": {"epsilon": 1}},
        {"privacy": "none"},
    ],
    ids=str,
)
def test_headers_that_do_not_make_sense_are_refused(stats, changes):
    changed(stats, **changes)
    assert "\n" not in refused(stats)


@pytest.mark.parametrize(
    "entry",
    [
        None,
        1,
        {},
        {"dtype": "F64", "shape": [10**13], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [2**30, 2**30, 2**30], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [-1], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [1.0], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [1] * 40, "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [1], "data_offsets": [8, 16]},
        {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
        {"dtype": ["F64"], "shape": [1], "data_offsets": [0, 8]},
    ],
    ids=str,
)
def test_lists_of_arrays_that_lie_are_refused(stats, entry):
    outer = outer_header(stats.read_bytes())
    for content in (b"", bytes(8), bytes(16)):
        stats.write_bytes(
            framed({"__metadata__": outer["__metadata__"], "walk": entry}, content)
        )
        assert "\n" not in refused(stats)


@pytest.mark.parametrize(
    "header", ["", "{", "[]", "null", '{"kind": NaN}', "[" * 100_000, "1" * 5000]
)
def test_headers_that_are_no_json_objects_are_refused(stats, header):
    rewritten(stats, lambda before: header)
    refused(stats)


def walk_of(change):
    def changed_walk(arrays):
        arrays["walk"] = change(arrays["walk"].copy())
        return arrays

    return changed_walk


def put(where, value):
    def change(walk):
        walk[where] = value
        return walk

    return walk_of(change)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            put((0, 0, 0, 0), np.nan),
            "walk: found NaN, infinite or impossibly large values",
        ),
        (
            put((0, 0, 0, 0), np.inf),
            "walk: found NaN, infinite or impossibly large values",
        ),
        (put((0, 0, 0, 0), -1.0), "walk: found -1, expected no number below 0"),
        (put((0, 0, 1, 1), 99.0), "walk: found a matrix that is not symmetric"),
        (
            walk_of(lambda walk: walk[:2]),
            "walk: found the shape (2, 4, 3, 4), expected m × l × m × l",
        ),
        (walk_of(lambda walk: walk.reshape(12, 12)), "walk: found the shape (12, 12)"),
        (
            walk_of(lambda walk: walk[..., None]),
            "walk: found the shape (3, 4, 3, 4, 1)",
        ),
        (walk_of(lambda walk: np.float64(5.0)), "walk: found the shape ()"),
        (
            walk_of(lambda walk: walk.astype(np.uint8)),
            "walk: found no numbers that fit",
        ),
        (
            lambda arrays: {"walks": arrays["walk"]},
            "found the array 'walks', expected walk",
        ),
        (
            lambda arrays: {"walk.more": arrays["walk"]},
            "walk: found no numbers that fit",
        ),
        (lambda arrays: {}, "found no array 'walk', expected one"),
    ],
)
def test_sums_that_cannot_be_are_refused(stats, change, words):
    header, arrays = read_state(stats)
    saved(
        stats,
        header,
        {name: np.asarray(array) for name, array in change(arrays).items()},
    )
    assert words in refused(stats)


def test_nothing_in_place_of_sums_is_refused(stats):
    """A 0 means that a field is absent, which only optional fields can be."""
    header, arrays = read_state(stats)
    saved(stats, header, arrays | {"walk": np.float64(0.0)})
    assert "walk: found the shape (), expected m × l × m × l" in refused(stats)


@pytest.mark.parametrize("value", [-1.0, 7.0])
@pytest.mark.parametrize(
    "name", ["majority_vote", "dawid_skene", "bgcm", "mlcm_r", "mlcm_a"]
)
def test_models_with_numbers_that_no_solution_has_are_refused(name, value, tmp_path):
    panel, _ = mlc.datasets.make_panel(20, 3, 2, random_state=0)
    mlc.save(combiner_named(name).fit(panel), tmp_path / "a.model")
    header, arrays = read_state(tmp_path / "a.model")
    saved(
        tmp_path / "a.model",
        header,
        {field: np.full_like(array, value) for field, array in arrays.items()},
    )
    assert "expected no number" in refused(tmp_path / "a.model")


def test_shares_that_do_not_add_up_to_1_are_refused(tmp_path):
    panel, _ = mlc.datasets.make_panel(20, 3, 2, random_state=0)
    mlc.save(mlc.MLCMr().fit(panel), tmp_path / "a.model")
    header, arrays = read_state(tmp_path / "a.model")
    saved(tmp_path / "a.model", header, arrays | {"groups": arrays["groups"] / 2})
    assert "groups: found shares that do not add up to 1" in refused(
        tmp_path / "a.model"
    )


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("counts", lambda counts: -counts, "expected no number below 0"),
        ("counts", lambda counts: counts * np.nan, "found NaN, infinite"),
        ("counts", lambda counts: counts[1:], "expected patterns of 3 votes"),
        ("starts", lambda starts: starts[:-1], "expected patterns of 3 votes"),
        ("votes", lambda votes: votes.astype(float), "expected patterns of 3 votes"),
        ("votes", lambda votes: votes + 3, "expected votes"),
        ("labels", lambda labels: labels + 1, "expected votes"),
    ],
)
def test_impossible_patterns_are_refused(tmp_path, name, change, words):
    path = tmp_path / "a.stats"
    panel, _ = mlc.datasets.make_panel(40, 4, 3, random_state=0)
    mlc.save_statistics(mlc.DawidSkene().fit(panel), path)
    header, arrays = read_state(path)
    field = f"patterns.{name}"
    saved(path, header, arrays | {field: change(arrays[field])})
    assert words in refused(path)


def test_statistics_without_a_solution_are_refused(tmp_path):
    path = tmp_path / "a.stats"
    mlc.save_statistics(mlc.MLCMa().fit([[[1, 0]]]), path)
    header, arrays = read_state(path)
    saved(path, header, arrays | {"n_instances": np.array(0)})
    with pytest.raises(mlc.InputError, match="statistics: found no solution"):
        mlc.save(mlc.load(path), tmp_path / "a.model")
    assert not (tmp_path / "a.model").exists()


def test_models_for_more_than_any_panel_are_refused(tmp_path):
    path = tmp_path / "a.model"
    mlc.save(mlc.MajorityVote().fit([[[1]]]), path)
    names = [str(position) for position in range(5000)]
    header, _ = read_state(path)
    saved(path, header | {"models": names, "labels": names}, {"value": np.zeros(5000)})
    assert "found 5,000 models × 5,000 labels" in refused(path)
