import pytest

from mlconsensus.execution.progress import on_terminal, show_progress, track


@pytest.fixture
def terminal(monkeypatch):
    """Standard error as a terminal of 80 columns."""
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    token = on_terminal.set(True)
    yield
    on_terminal.reset(token)


def test_only_the_outermost_work_is_shown(terminal, capsys):
    for _ in track("ab", 2, "outer"):
        assert list(track("xyz", 3, "inner")) == ["x", "y", "z"]
    assert list(track("cd", 2, "next")) == ["c", "d"]
    out, err = capsys.readouterr()
    assert out == ""
    assert "outer" in err
    assert "next" in err
    assert "inner" not in err


def test_work_of_unknown_length_is_named(terminal, capsys):
    with show_progress("solving"):
        print("a result")
    out, err = capsys.readouterr()
    assert out == "a result\n"  # which goes where it went before
    assert "solving" in err


def test_one_step_needs_no_bar(terminal, capsys):
    assert list(track("a", 1, "reading")) == ["a"]
    assert capsys.readouterr().err == ""


def test_off_a_terminal_nothing_is_shown(capsys):
    assert list(track("ab", 2, "reading")) == ["a", "b"]
    with show_progress("solving"):
        pass
    assert capsys.readouterr() == ("", "")


def test_an_error_ends_the_bar(terminal):
    def broken():
        yield 1
        raise KeyError

    with pytest.raises(KeyError):
        list(track(broken(), 2, "reading"))
    assert on_terminal.get()
