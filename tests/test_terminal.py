import pytest

from mlconsensus.terminal import padded, shown, width


@pytest.mark.parametrize(
    ("text", "columns"),
    [("", 0), ("sport", 5), ("体育", 4), ("e\u0301", 1), ("שלום", 4), ("👩\u200d🚀", 4), ("ｆｕｌｌ", 8)],
)
def test_width(text, columns):
    assert width(text) == columns
    assert width(padded(text, 10)) == 10


@pytest.mark.parametrize("name", ["x" * 10_000, "体" * 10_000, "\n" * 10_000, "a\u0301" * 10_000, "体\n" * 50])
@pytest.mark.parametrize("most", [1, 2, 7, 40])
def test_long_names_are_cut_to_what_there_is_room_for(name, most):
    found = shown(name, most)
    assert width(found) <= most
    assert found.endswith("…")


def test_what_fits_stays_whole():
    assert shown("体育", 4) == "体育"
    assert shown("体育", 3) == "体…"
    assert shown(42) == "42"


@pytest.mark.parametrize(
    "character", ["\n", "\r", "\t", "\x1b", "\x00", "\x85", "\u2028", "\u202e", "\u2066", "\ud800"]
)
def test_what_would_move_the_cursor_or_turn_the_text_is_escaped(character):
    found = shown(f"a{character}b")
    assert found.isprintable()
    assert found.startswith("a\\")
    assert found.endswith("b")
    found.encode()
