import errno
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from mlconsensus.errors import InputError
from mlconsensus.experiments import cache


@given(predictions=arrays.arrays(np.bool_, st.tuples(*[st.integers(1, 5)] * 3)))
def test_what_is_written_is_read(tmp_path_factory, predictions):
    path = tmp_path_factory.mktemp("cache") / "a.npz"
    cache.write(path, predictions)
    np.testing.assert_array_equal(cache.read(path), predictions)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.npz"
    cache.write(path, np.random.default_rng(0).random((3, 40, 5)) < 0.3)
    return path


@pytest.mark.parametrize("keep", [0, 1, 50, 200, -1])
def test_a_file_cut_short_is_noticed(path, keep):
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(cache.DamagedError):
        cache.read(path)


def test_every_changed_byte_that_matters_is_noticed(path):
    whole, known = path.read_bytes(), cache.read(path)
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            found = cache.read(path)
        except cache.DamagedError:
            continue
        np.testing.assert_array_equal(found, known)  # such bytes as a time in the archive's header


def test_a_wrong_checksum_is_noticed(path):
    with np.load(path) as found:
        content = dict(found)
    content["bits"] = ~content["bits"]
    np.savez(path, **content)
    with pytest.raises(cache.DamagedError):
        cache.read(path)


def test_other_content_is_noticed(path):
    np.savez(path, bits=np.zeros(3, np.uint8))
    with pytest.raises(cache.DamagedError):
        cache.read(path)


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="a.npz: found 'no space left on device', expected a place to write to"):
        cache.write(tmp_path / "a.npz", np.ones((1, 1), dtype=bool))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="expected a folder to write to"):
        cache.write(tmp_path / "file" / "below" / "a.npz", np.ones((1, 1), dtype=bool))


def test_names_follow_the_settings():
    assert cache.key({"seed": 0}) != cache.key({"seed": 1})


def test_discarding(path):
    cache.discard(path)
    cache.discard(path)
    assert cache.read(Path(path)) is None
