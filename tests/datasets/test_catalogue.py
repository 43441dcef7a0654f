import pytest

from mlconsensus.datasets import registry
from mlconsensus.datasets.catalogue import entry
from mlconsensus.errors import InputError


@pytest.mark.parametrize("name", registry())
def test_entries_say_all(name):
    known = entry(name)
    assert known.paper <= known.instances
    assert known.licence
    assert known.citation
    for file in known.local + known.public:
        assert len(file.sha256) == 64
    assert all(file.address.startswith("https://") for file in known.public)
    assert [file.file for file in known.local] == [f"{name}.arff.gz", f"{name}.xml"]


def test_unknown_names_are_answered_with_the_nearest():
    with pytest.raises(InputError, match="found 'bibtx', expected one of enron, .*; did you mean 'bibtex'"):
        entry("bibtx")
