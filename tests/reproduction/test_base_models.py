import errno
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from mlconsensus.datasets import Dataset
from mlconsensus.errors import InputError
from mlconsensus.reproduction import base_models
from mlconsensus.reproduction.base_models import Settings, base_predictions

SMALL = Settings(learner="trees", repeats=2, models=2, folds=3).checked()
DAMAGED = "found a damaged file of the cache; it is computed again"


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return Dataset(
        name="toy",
        features=sparse.csr_array(rng.random((30, 8)) < 0.4, dtype=float),
        labels=sparse.csr_array(rng.random((30, 20)) < 0.3),
        feature_names=(),
        label_names=(),
    )


@pytest.fixture(scope="module")
def full_cache(data, tmp_path_factory):
    """Make the predictions once and return their folder, which is only read."""
    folder = tmp_path_factory.mktemp("cache")
    made(data, SMALL, folder)
    return folder


@pytest.fixture
def cache(full_cache, tmp_path):
    """Return a copy of the full cache that a test may change."""
    return shutil.copytree(full_cache, tmp_path / "cache")


def made(data, settings, folder, **options):
    return np.stack(list(base_predictions(data, settings, folder, 1, **options)))


def stamps(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*.npz")}


@pytest.mark.parametrize("learner", ["svm", "trees", "labelsets"])
def test_the_same_settings_give_the_same_predictions(data, tmp_path, learner):
    settings = replace(SMALL, learner=learner)
    first = made(data, settings, tmp_path / "a")
    assert first.shape == (2, 2, 30, 20)
    np.testing.assert_array_equal(first, made(data, settings, tmp_path / "b"))
    assert (
        len({model.tobytes() for repeat in first for model in repeat}) == 4
    )  # each from a shuffle of its own


def test_what_is_there_is_not_made_again(data, cache):
    expected = made(data, SMALL, cache)
    before = stamps(cache)
    assert len(before) == 4  # 2 repeats × 2 models
    more = made(data, replace(SMALL, repeats=3, models=3), cache)
    np.testing.assert_array_equal(more[:2, :2], expected)
    after = stamps(cache)
    assert len(after) == 9
    assert before.items() <= after.items()


@pytest.mark.parametrize("change", [{"seed": 1}, {"folds": 4}, {"learner": "logistic"}])
def test_other_settings_are_other_files(data, cache, change):
    before = stamps(cache)
    made(data, replace(SMALL, **change), cache)
    assert len(stamps(cache)) == 2 * len(before)


def test_other_data_of_the_same_name_are_other_files(data, cache):
    first = made(data, SMALL, cache)
    other = replace(data, labels=data.labels[::-1])
    assert not np.array_equal(first, made(other, SMALL, cache))


def test_an_interrupted_run_goes_on_where_it_was(
    data, full_cache, tmp_path, monkeypatch
):
    real = base_models.out_of_fold

    def interrupted(*arguments):
        if len(stamps(tmp_path)) == 3:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(base_models, "out_of_fold", interrupted)
    with pytest.raises(KeyboardInterrupt):
        made(data, SMALL, tmp_path)
    before = stamps(tmp_path)
    assert len(before) == 3
    monkeypatch.setattr(base_models, "out_of_fold", real)
    finished = made(data, SMALL, tmp_path)
    assert before.items() <= stamps(tmp_path).items()
    np.testing.assert_array_equal(finished, made(data, SMALL, full_cache))


def is_reported(data, cache, path, full_cache):
    """Return whether a damaged file is reported; predictions must be right anyway."""
    expected = made(data, SMALL, full_cache)
    messages = []
    result = made(data, SMALL, cache, say=messages.append)
    np.testing.assert_array_equal(result, expected)
    assert messages in ([], [f"{path}: {DAMAGED}"])
    later_messages = []
    made(data, SMALL, cache, say=later_messages.append)
    assert later_messages == []
    return bool(messages)


@pytest.fixture
def cached(cache):
    """Return the path of one file of the cache."""
    return sorted(cache.rglob("*.npz"))[1]


@pytest.mark.parametrize("keep", [0, 1, 50, -40, -1])
def test_a_truncated_file_is_made_again(data, cache, full_cache, cached, keep):
    cached.write_bytes(cached.read_bytes()[:keep])
    assert is_reported(data, cache, cached, full_cache)


@pytest.mark.parametrize(
    "content", [{"bits": np.zeros(3)}, {"predictions": np.zeros((30, 19), dtype=bool)}]
)
def test_a_file_of_other_content_is_made_again(
    data, cache, full_cache, cached, content
):
    np.savez(cached, **content)
    assert is_reported(data, cache, cached, full_cache)


def test_a_changed_byte_never_changes_predictions(cached):
    """The time in the archive's header may change; other bytes may not."""
    complete = cached.read_bytes()
    expected = base_models._read(cached)
    n_accepted = 0
    for position in range(len(complete)):
        cached.write_bytes(
            complete[:position]
            + bytes([complete[position] ^ 0xFF])
            + complete[position + 1 :]
        )
        if base_models._is_good(cached, expected.shape, lambda _: None):
            np.testing.assert_array_equal(base_models._read(cached), expected)
            n_accepted += 1
    assert 0 < n_accepted < len(complete) / 3


def test_processes_give_what_one_process_gives(data, full_cache, tmp_path):
    expected = made(data, SMALL, full_cache)
    several = np.stack(list(base_predictions(data, SMALL, tmp_path / "two", 2)))
    np.testing.assert_array_equal(expected, several)


def test_a_full_disk_leaves_nothing(data, tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        InputError,
        match="npz: found 'no space left on device', expected a place to write to",
    ):
        made(data, SMALL, tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_folder_that_cannot_be_made(data, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="expected a place to write to"):
        made(data, SMALL, tmp_path / "file" / "below")
