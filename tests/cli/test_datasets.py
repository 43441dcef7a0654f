"""`mlconsensus datasets`."""

import pytest

pytest_plugins = ["shared_data"]


def test_list(run):
    for arguments in (["datasets"], ["datasets", "list"]):
        ran = run(*arguments)
        assert ran.code == 0
        for name in (
            "enron",
            "medical",
            "rcv1subset1",
            "rcv1subset2",
            "slashdot",
            "bibtex",
        ):
            assert f"\n{name}" in ran.out
        assert "Licence" in ran.out


def test_fetch(run, toy):
    ran = run("datasets", "fetch", "toy")
    assert ran.code == 0
    assert ran.err == "fetching toy …\n"
    assert [line.rpartition("/")[2] for line in ran.out.splitlines()] == [
        "toy.arff",
        "toy.xml",
    ]
    assert run("datasets", "fetch", "toy").err == ""


def test_an_unknown_name(run):
    ran = run("datasets", "fetch", "medcial")
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.count("\n") == 1
    assert "did you mean 'medical'" in ran.err


@pytest.mark.parametrize("trouble", ["hash", "network"])
def test_trouble_ends_in_one_line(run, toy, server, trouble):
    path = server[0] / "toy.arff"
    path.unlink() if trouble == "network" else path.write_text("x")
    ran = run("datasets", "fetch", "toy")
    assert ran.code == 2
    assert ran.err.count("\n") == 2  # that it is being fetched, and what went wrong
    assert "found" in ran.err
    assert "expected" in ran.err
