"""JSON lines."""

import json
from pathlib import Path

import numpy as np
import pytest

from mlconsensus import Predictions
from mlconsensus.errors import InputError
from mlconsensus.io import read_predictions, read_tables, scan_predictions, write_table
from mlconsensus.predictions.score_tables import ScoreTable


def test_lists_scores_and_models_in_one_file(tmp_path: Path) -> None:
    (tmp_path / "tags.jsonl").write_text(
        '{"instance": 7, "labels": ["a", "b"], "model": "ann"}\n'
        "\n"
        '{"model": "bob", "labels": {"a": 0.25, "c": null, "d": true},'
        ' "instance": "7"}\r\n'
        '{"instance": "8", "labels": [], "model": "ann"}'
    )
    ann, bob = read_tables(tmp_path / "tags.jsonl")
    assert ann.model == "ann"
    assert ann.instances.tolist() == ["7", "8"]
    assert ann.labels.tolist() == ["a", "b"]
    np.testing.assert_array_equal(ann.scores, [[1, 1], [0, 0]])

    assert bob.model == "bob"
    assert bob.instances.tolist() == ["7"]
    assert bob.labels.tolist() == ["a", "c", "d"]
    np.testing.assert_array_equal(bob.scores, [[0.25, np.nan, 1.0]])


def test_label_sets_are_written_as_lists(tmp_path: Path) -> None:
    table = ScoreTable(
        "t", np.array([[True, False], [False, False]]), ["1", "2"], ["a", "é"]
    )
    write_table(tmp_path / "sets.jsonl", table)
    assert (tmp_path / "sets.jsonl").read_text() == (
        '{"instance": "1", "labels": ["a"]}\n{"instance": "2", "labels": []}\n'
    )


def test_labels_may_be_called_as_the_keys_of_tools(tmp_path):
    """A label "choices" with a score is not Label Studio's list of choices."""
    (tmp_path / "a.jsonl").write_text(
        '{"instance": "7", "labels": {"choices": 1.0, "label": 0.5}}'
    )
    (table,) = read_tables(tmp_path / "a.jsonl")
    assert dict(zip(table.labels.tolist(), table.scores[0].tolist(), strict=True)) == {
        "choices": 1.0,
        "label": 0.5,
    }


def test_columns_that_no_entry_has_are_refused(tmp_path: Path) -> None:
    row = {"instance": "1", "labels": ["a"]}
    (tmp_path / "a.jsonl").write_text(json.dumps(row))
    (tmp_path / "b.csv").write_text("id,tag,score\n1,a,1\n")
    for read in (read_predictions, scan_predictions):
        with pytest.raises(
            InputError, match="columns: found none of those named in any file"
        ):
            read(tmp_path / "a.jsonl", columns={"label": "tag"})
        paths = [tmp_path / "a.jsonl", tmp_path / "b.csv"]
        assert len(read(paths, columns={"label": "tag"}).models) == 2
    with pytest.raises(
        InputError, match="columns: found none of those named in the dataset"
    ):
        Predictions.from_dataset([row], columns={"label": "tag"})
