import hashlib
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

from mlconsensus.datasets import load, registry
from mlconsensus.errors import InputError
from shared_data import ARFF, ROWS

pytest_plugins = ["shared_data"]

# Labels an instance, as Mulan's page of data sets prints them.
CARDINALITY = {
    "enron": 3.378,
    "medical": 1.245,
    "rcv1subset1": 2.880,
    "rcv1subset2": 2.634,
    "slashdot": 1.181,
    "bibtex": 2.402,
}


def test_a_toy(toy):
    data = load("toy")
    assert (data.feature_names, data.label_names) == (("a", "b"), ("x", "y"))
    np.testing.assert_array_equal(data.features.toarray(), [[1, 0], [0, 0.5], [0, 0]])
    np.testing.assert_array_equal(
        data.labels.toarray(), [[False, True], [False, False], [True, True]]
    )
    assert data.labels.dtype == np.bool_
    assert data.first(2).features.shape == (2, 2)


def test_sizes_are_checked(toy, server, monkeypatch):
    module = import_module("mlconsensus.datasets.registry")
    text = ARFF + ROWS + "{}\n"
    (server[0] / "toy.arff").write_text(text)
    file = replace(toy.public[0], sha256=hashlib.sha256(text.encode()).hexdigest())
    monkeypatch.setattr(
        module, "registry", lambda: {"toy": replace(toy, public=(file, toy.public[1]))}
    )
    with pytest.raises(
        InputError,
        match=r"toy.arff: found \(4, 2, 2\) instances, features and labels, "
        r"expected \(3, 2, 2\)",
    ):
        load("toy")


@pytest.mark.parametrize("name", registry())
def test_the_papers_data_sets(data_folder, name):
    data = load(name)
    entry = registry()[name]
    assert data.features.shape == (entry.instances, entry.features)
    assert data.labels.shape == (entry.instances, entry.labels)
    assert round(data.labels.sum() / entry.instances, 3) == CARDINALITY[name]
    words = name in (
        "enron",
        "medical",
        "slashdot",
        "bibtex",
    )  # there or not; in rcv1 they are weighted
    assert (set(np.unique(data.features.data)) == {1.0}) == words
    assert len(set(data.label_names)) == entry.labels


def test_the_truth_of_the_shared_panels(data_folder, panels_folder):
    with np.load(panels_folder / "enron_svm.npz", allow_pickle=False) as archive:
        assert tuple(archive["labels"]) == load("enron").label_names
        np.testing.assert_array_equal(archive["truth"], load("enron").labels.toarray())
