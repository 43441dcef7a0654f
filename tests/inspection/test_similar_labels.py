import pytest

from mlconsensus.inspection.similar_labels import similar_labels


@pytest.mark.parametrize(
    ("often", "seldom"),
    [
        ("Politics", "politics"),
        ("sports", "sports "),
        ("colour", "color"),
        ("machine learning", "machine-learning"),
    ],
)
def test_names_of_one_label(often: str, seldom: str) -> None:
    (alias,) = similar_labels({seldom: 1, "something else": 5, often: 2})
    assert (alias.name, alias.stands_for, alias.used, alias.other_used) == (
        seldom,
        often,
        1,
        2,
    )


@pytest.mark.parametrize(
    "pair",
    [
        ("relevant", "irrelevant"),
        ("part 1", "part 2"),
        ("male", "female"),
        ("war", "law"),
        ("+", "-"),
        ("日本", "中国"),
    ],
)
def test_names_of_two_labels(pair: tuple[str, str]) -> None:
    assert similar_labels(dict.fromkeys(pair, 1)) == []


def test_what_a_name_stands_for_stands_for_itself() -> None:
    aliases = similar_labels({"colour": 3, "color": 2, "colors": 1})
    assert {alias.stands_for for alias in aliases}.isdisjoint(
        alias.name for alias in aliases
    )
    assert similar_labels({}) == []
