"""R data files of the form that mldr.datasets publishes, written here."""

import sys

import numpy as np
import pandas as pd
import pytest

from mlconsensus.datasets.registry import _read_rda as read_rda
from mlconsensus.errors import InputError

rdata = pytest.importorskip(
    "rdata", reason="reading R data files needs the package rdata (extra 'datasets')"
)


@pytest.fixture
def path(tmp_path):
    table = pd.DataFrame(
        {"y": [1.0, 0.0], "a": [0.0, 0.5], "b": [1.0, 0.0], "z": [1.0, 1.0]}
    )
    content = {
        "dataset": table,
        "attributesIndexes": np.array([2, 3]),
        "labels": pd.DataFrame({"index": [1, 4]}),
    }
    rdata.write_rda(tmp_path / "toy.rda", {"toy": content})
    return tmp_path / "toy.rda"


def test_features_and_labels_are_told_apart_by_their_indexes(path):
    features, labels, feature_names, label_names = read_rda(path)
    assert (feature_names, label_names) == (["a", "b"], ["y", "z"])
    np.testing.assert_array_equal(features.toarray(), [[0, 1], [0.5, 0]])
    np.testing.assert_array_equal(labels.toarray(), [[1, 1], [0, 1]])


def test_what_is_not_such_a_file(path):
    path.write_bytes(b"RDX3\n")
    with pytest.raises(
        InputError, match="toy.rda: found .*, expected an R data file of mldr"
    ):
        read_rda(path)


def test_without_the_package(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rdata", None)  # as if it were not installed
    with pytest.raises(
        InputError, match="toy.rda: found no package rdata, expected pip install"
    ):
        read_rda(path)
