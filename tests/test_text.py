import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from mlconsensus.text import safe, shown, table


@pytest.mark.parametrize(
    "name",
    ["x" * 10_000, "体" * 10_000, "\n" * 10_000, "a\u0301" * 10_000, "体\n" * 50],
)
@pytest.mark.parametrize("most", [1, 2, 7, 40])
def test_long_names_are_cut_to_what_there_is_room_for(name, most):
    result = shown(name, most)
    assert cell_len(result) <= most
    begin, end = result.split("…")
    assert safe(name).startswith(begin)
    assert safe(name).endswith(end)


def test_long_names_that_differ_in_their_end_stay_apart():
    assert shown("a" * 50 + "1", 18) != shown("a" * 50 + "2", 18)


def test_what_fits_stays_whole():
    assert shown("体育", 4) == "体育"
    assert shown("体育", 3) == "体…"
    assert shown(42) == "42"


@pytest.mark.parametrize(
    "character",
    ["\n", "\r", "\t", "\x1b", "\x00", "\x85", "\u2028", "\u202e", "\u2066", "\ud800"],
)
def test_what_would_move_the_cursor_or_turn_the_text_is_escaped(character):
    result = shown(f"a{character}b")
    assert result.isprintable()
    assert result.startswith("a\\")
    assert result.endswith("b")
    result.encode()


ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=30)


@given(ANY_TEXT)
def test_nothing_that_a_terminal_obeys_is_left(text):
    result = safe(text)
    assert all(
        character.isprintable() or character in "\u200c\u200d" for character in result
    )
    if text.isprintable():
        assert result == text


@given(st.lists(st.tuples(ANY_TEXT, ANY_TEXT), max_size=5))
def test_a_row_of_a_table_is_one_line_whatever_is_in_it(rows):
    text = table(["one", "two"], rows) + "\n"
    assert len(text.splitlines()) == 1 + len(rows)


def test_columns_are_aligned():
    lines = table(
        ["name", "of", "count"],
        [["体育", "a", 7], ["e\u0301x", "long", "1,234 "]],
        n_left=2,
    ).split("\n")
    assert lines == [
        "name  of     count",
        "体育  a          7",
        "e\u0301x    long  1,234",
    ]


@pytest.mark.parametrize("variable", ["FORCE_COLOR", "TTY_COMPATIBLE", "COLUMNS"])
def test_tables_stay_plain_and_whole(monkeypatch, variable):
    monkeypatch.setenv(variable, "1")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert table(["a", "b"], [["x" * 500, "[bold]y[/bold] :smile:"]], n_left=2).split(
        "\n"
    )[1] == ("x" * 500 + "  [bold]y[/bold] :smile:")
