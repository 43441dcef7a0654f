import errno
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pooch
import pytest

from mlconsensus.datasets import fetch, registry
from mlconsensus.datasets.registry import cache_folder, entry, is_here
from mlconsensus.errors import InputError

pytest_plugins = ["shared_data"]


@pytest.mark.parametrize("name", registry())
def test_entries_say_all(name):
    data_set = entry(name)
    assert data_set.paper <= data_set.instances
    assert data_set.licence
    assert data_set.citation
    for file in data_set.local + data_set.public:
        assert len(file.sha256) == 64
    assert all(file.address.startswith("https://") for file in data_set.public)
    assert [file.file for file in data_set.local] == [f"{name}.arff.gz", f"{name}.xml"]


def test_unknown_names_are_answered_with_the_nearest():
    with pytest.raises(
        InputError,
        match="found 'bibtx', expected one of enron, .*; did you mean 'bibtex'",
    ):
        entry("bibtx")


def files_below(folder):
    return [path for path in Path(folder).rglob("*") if path.is_file()]


def test_a_download_is_kept(toy, server):
    assert not is_here("toy")
    paths = fetch("toy")
    assert [path.name for path in paths] == ["toy.arff", "toy.xml"]
    assert is_here("toy")
    for file in server[0].iterdir():
        file.unlink()  # from now on only the cache can answer
    assert fetch("toy") == paths
    assert all(path.is_relative_to(cache_folder()) for path in paths)


def test_files_of_ones_own_come_first(toy, server, monkeypatch):
    monkeypatch.setenv("MLCONSENSUS_DATA", str(server[0]))
    assert fetch("toy")[0].parent == server[0]
    assert not cache_folder().exists()


def test_a_folder_of_ones_own_without_the_files_changes_nothing(
    toy, monkeypatch, tmp_path
):
    monkeypatch.setenv("MLCONSENSUS_DATA", str(tmp_path))
    assert fetch("toy")[0].is_relative_to(cache_folder())


def test_a_folder_of_ones_own_that_is_not_there(toy, monkeypatch, tmp_path):
    monkeypatch.setenv("MLCONSENSUS_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(
        InputError, match="MLCONSENSUS_DATA: found .*nowhere', expected a folder"
    ):
        fetch("toy")


def test_a_wrong_hash_leaves_nothing(toy, server):
    (server[0] / "toy.arff").write_text("something else")
    with pytest.raises(
        InputError,
        match="found a file with another hash, expected SHA-256 .*; nothing was kept",
    ):
        fetch("toy")
    assert files_below(cache_folder()) == []


def test_a_file_of_ones_own_that_is_damaged_is_refused(toy, server, monkeypatch):
    monkeypatch.setenv("MLCONSENSUS_DATA", str(server[0]))
    (server[0] / "toy.arff").write_text("damaged")
    with pytest.raises(
        InputError,
        match="toy.arff: found SHA-256 .*…, expected .*…: the file is damaged",
    ):
        fetch("toy")


def test_a_damaged_file_of_the_cache_is_fetched_anew(toy):
    path = fetch("toy")[0]
    complete = path.read_bytes()
    path.write_text("damaged")
    assert fetch("toy")[0] == path
    assert path.read_bytes() == complete


def test_an_unreadable_file(toy, server, monkeypatch):
    def refused(*args, **options):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setenv("MLCONSENSUS_DATA", str(server[0]))
    monkeypatch.setattr(pooch, "file_hash", refused)
    with pytest.raises(
        InputError, match="toy.arff: found 'Permission denied', expected a file to read"
    ):
        fetch("toy")


def test_an_address_that_does_not_answer(toy, server, monkeypatch):
    (server[0] / "toy.arff").unlink()
    with pytest.raises(
        InputError,
        match=r"toy.arff: found the answer 404, expected the file toy.arff; without "
        r"a network",
    ):
        fetch("toy")
    assert files_below(cache_folder()) == []


def test_no_network(toy, monkeypatch):
    module = import_module("mlconsensus.datasets.registry")
    gone = replace(
        toy,
        public=tuple(
            replace(file, address="http://127.0.0.1:9/x") for file in toy.public
        ),
    )
    monkeypatch.setattr(module, "registry", lambda: {"toy": gone})
    with pytest.raises(
        InputError,
        match="found no connection, expected the file toy.arff; .* MLCONSENSUS_DATA",
    ):
        fetch("toy")
    assert files_below(cache_folder()) == []


def test_a_full_disk(toy, monkeypatch):
    def full(self, url, output_file, pooch):
        Path(output_file).write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", full)
    with pytest.raises(
        InputError,
        match="toy.arff: found 'no space left on device', expected a place to write to",
    ):
        fetch("toy")
    assert files_below(cache_folder()) == []
