"""Data for tests: real files where available, and a small set on a server."""

import hashlib
import os
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path

import pytest

from mlconsensus.datasets.registry import Entry, File

ARFF = (
    "@relation toy\n@attribute a {0,1}\n@attribute b numeric\n@attribute x "
    "{0,1}\n@attribute y {0,1}\n@data\n"
)
ROWS = "{0 1,3 1}\n{1 0.5}\n{2 1,3 1}\n"
XML = (
    '<labels xmlns="http://mulan.sourceforge.net/labels"><label '
    'name="x"></label><label name="y"></label></labels>'
)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def _folder():
    return Path(
        os.environ.get("MLCONSENSUS_DATA")
        or Path(__file__).parents[2] / "shared" / "datasets"
    )


@pytest.fixture
def data_folder(monkeypatch):
    """The folder of the paper's data sets: MLCONSENSUS_DATA, or a neighbor."""
    folder = _folder()
    if not folder.is_dir():
        pytest.skip(
            f"the data sets are not here: no folder {folder} (set MLCONSENSUS_DATA)"
        )
    monkeypatch.setenv("MLCONSENSUS_DATA", str(folder))
    return folder


@pytest.fixture(scope="session")
def panels_folder():
    """The folder with predictions of real models and their truth."""
    folder = _folder().parent / "panels"
    if not folder.is_dir():
        pytest.skip(f"the panels of real models are not here: no folder {folder}")
    return folder


@pytest.fixture
def no_data(monkeypatch, tmp_path):
    """Neither a folder of one's own nor anything in the cache."""
    monkeypatch.delenv("MLCONSENSUS_DATA", raising=False)
    monkeypatch.setenv("MLCONSENSUS_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def server(tmp_path):
    """Serve a folder on localhost; gives the folder and its address."""
    folder = tmp_path / "public"
    folder.mkdir()
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Quiet, directory=str(folder))
    ) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield folder, f"http://127.0.0.1:{http.server_port}"
        http.shutdown()
        thread.join()


@pytest.fixture
def toy(server, no_data, monkeypatch):
    """A registry of one data set, ``toy``, on the server."""
    folder, address = server
    files = []
    for name, text in (("toy.arff", ARFF + ROWS), ("toy.xml", XML)):
        (folder / name).write_text(text)
        files.append(
            File(
                file=name,
                sha256=hashlib.sha256(text.encode()).hexdigest(),
                address=f"{address}/{name}",
            )
        )
    entry = Entry(
        name="toy",
        about="a toy",
        instances=3,
        paper=3,
        features=2,
        labels=2,
        licence="free",
        citation="none",
        local=(),
        public=tuple(files),
    )
    # `mlconsensus.datasets.registry` is also the name of a function.
    module = import_module("mlconsensus.datasets.registry")
    monkeypatch.setattr(module, "registry", lambda: {"toy": entry})
    return entry
