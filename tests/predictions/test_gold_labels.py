"""Gold labels: matched by name, checked, and kept with the predictions."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

import mlconsensus as mlc
from mlconsensus.predictions.gold_labels import CHANCE, Gold, gold_of, split_chances
from mlconsensus.predictions.score_tables import ScoreTable

UNKNOWN = np.nan
NAMES = {"labels": ["x", "y", "z"], "instances": ["a", "b", "c", "d"]}


@pytest.fixture
def panel() -> mlc.Predictions:
    rng = np.random.default_rng(3)
    return mlc.Predictions(rng.integers(0, 2, (3, 4, 3)).astype(bool), **NAMES)


@pytest.fixture
def frame() -> pd.DataFrame:
    return pd.DataFrame([[1, UNKNOWN], [0, 1]], index=["d", "b"], columns=["z", "x"])


def test_a_frame_is_matched_by_its_names(
    panel: mlc.Predictions, frame: pd.DataFrame
) -> None:
    gold = panel.with_gold(frame).gold
    assert gold is not None
    assert gold.at.tolist() == [1, 3]
    np.testing.assert_array_equal(
        gold.answers, [[1, UNKNOWN, 0], [UNKNOWN, UNKNOWN, 1]]
    )


def test_an_array_is_matched_by_position_and_rows_without_an_answer_are_left_out(
    panel: mlc.Predictions,
) -> None:
    known = np.full((4, 3), UNKNOWN)
    known[2] = [0, 1, UNKNOWN]
    gold = panel.with_gold(known).gold
    assert gold is not None
    assert gold.at.tolist() == [2]
    np.testing.assert_array_equal(gold.answers, known[[2]])


def test_instances_that_are_positions_are_matched_by_number_or_text() -> None:
    panel = mlc.Predictions(np.zeros((1, 12, 2)))
    table = ScoreTable("gold", np.array([[0.0, 1.0]]), ["10"], ["label_1", "label_0"])
    gold = panel.with_gold(table).gold
    assert gold is not None
    assert gold.at.tolist() == [10]
    assert gold.answers.tolist() == [[1, 0]]


def test_the_panel_carries_it_through_all_that_is_done_to_it(
    panel: mlc.Predictions, frame: pd.DataFrame
) -> None:
    held = panel.with_gold(frame)
    taken = held[[3, 3, 0]].select(labels=["z", "y"]).weighted({"model_0": 2}).gold
    assert taken is not None
    assert taken.at.tolist() == [0, 1]
    np.testing.assert_array_equal(taken.answers, [[1, UNKNOWN]] * 2)
    assert held[:1].gold is None
    assert held.select(labels=["y"]).gold is None
    longer = held.with_labels(["new", "z", "y", "x"])
    np.testing.assert_array_equal(longer.gold.answers[0], [UNKNOWN, 0, UNKNOWN, 1])  # type: ignore[union-attr]
    sizes = [
        0 if block.gold is None else len(block.gold.at) for block in held.blocks(2)
    ]
    assert sizes == [1, 1]
    again = pickle.loads(pickle.dumps(held))
    np.testing.assert_array_equal(again.gold.answers, held.gold.answers)  # type: ignore[union-attr]
    assert held.with_gold(None).gold is None


@pytest.mark.parametrize(
    ("rows", "columns", "answers", "said"),
    [
        (
            ["a", "e"],
            ["x"],
            [[1], [0]],
            "gold: found the instance 'e', which no model has, expected some of the "
            "panel",
        ),
        (
            ["a", "e", "f"],
            ["x"],
            [[1], [0], [0]],
            "found the instance 'e' and 1 more, which no model has",
        ),
        (
            ["a"],
            ["x", "zz"],
            [[1, 0]],
            "gold: found the label 'zz', which no model has",
        ),
        (
            ["a", "a"],
            ["x"],
            [[1], [0]],
            "gold, instances: found 'a' at positions 0, 1, expected each name once",
        ),
        (["a"], ["x", "y"], [[1, 0.5]], "gold: found 0.5, expected only 1"),
        (["a"], ["x"], [[UNKNOWN]], "gold: found no answer, expected some"),
        (
            ["a", "b"],
            ["x"],
            [[1], [UNKNOWN]],
            "gold: found only yes, expected some no, too",
        ),
    ],
)
def test_what_cannot_be_meant_gets_a_sentence(
    panel: mlc.Predictions,
    rows: list[str],
    columns: list[str],
    answers: list[list[float]],
    said: str,
) -> None:
    with pytest.raises(mlc.InputError, match=said.replace("(", r"\(")):
        panel.with_gold(pd.DataFrame(answers, index=rows, columns=columns))


def test_arrays_of_another_shape_are_refused(panel: mlc.Predictions) -> None:
    with pytest.raises(
        mlc.InputError, match=r"gold: found shape \(3, 3\), expected \(4, 3\)"
    ):
        panel.with_gold(np.zeros((3, 3)))


def test_gold_of_sorts_by_position() -> None:
    table = ScoreTable("gold", np.array([[1.0], [0.0]]), ["b", "a"], ["x"])
    result = gold_of(table, ["a", "b"], ("x",))
    assert isinstance(result, Gold)
    assert result.at.tolist() == [0, 1]
    assert result.answers.tolist() == [[0], [1]]


@pytest.mark.parametrize("chance", [0, UNKNOWN, 5e-324, 1e-16])
def test_a_probability_that_no_weight_can_stand_for(chance: float) -> None:
    with pytest.raises(
        mlc.InputError, match=f"column '{CHANCE}': found 0, nothing or less than one in"
    ):
        split_chances(
            ScoreTable("gold", [[0.5, 1.0], [chance, 0.0]], ["i", "k"], [CHANCE, "x"])
        )
