"""`--gold` and `--truth`: what is known, from files, apart from the models' files."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mlconsensus as mlc
from mlconsensus.io import read_table

ANN = "id,law,war,art\n1,1,0,1\n2,0,1,0\n3,1,1,0\n4,0,0,1\n"
BOB = "id,law,war,art\n1,1,0,0\n2,0,1,1\n3,1,0,0\n4,1,0,1\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"ann": ANN, "bob": BOB}.items():
        (tmp_path / "models").mkdir(exist_ok=True)
        (tmp_path / "models" / f"{name}.csv").write_text(text)
    return tmp_path


@pytest.fixture
def combined(run, folder):
    def combined(gold: str, *more: str) -> pd.DataFrame:
        (folder / "gold.csv").write_text(gold)
        out = folder / "consensus.csv"
        done = run(
            "combine",
            folder / "models",
            "--gold",
            folder / "gold.csv",
            "-o",
            out,
            "--force",
            *more,
        )
        assert done.code == 0, done.err
        return pd.read_csv(out, index_col=0)

    return combined


WIDE = "id,war,law\n3,0,1\n2,,0\n"
LONG = "instance,label,score\n3,law,1\n3,war,0\n2,law,0\n"


@pytest.mark.parametrize("method", [name.lower() for name in mlc.COMBINERS])
def test_known_answers_stand_whatever_the_method_and_file(
    combined, method: str
) -> None:
    wide = combined(WIDE, "--method", method)
    assert wide.loc[3, ["law", "war"]].tolist() == [1, 0]
    assert wide.loc[2, "law"] == 0
    pd.testing.assert_frame_equal(combined(LONG, "--method", method), wide)
    pd.testing.assert_frame_equal(combined(WIDE, "--method", method, "--stream"), wide)


def test_the_command_gives_what_the_library_gives(combined, folder: Path) -> None:
    panel = mlc.read_predictions(folder / "models")
    gold = pd.DataFrame([[0, 1], [np.nan, 0]], index=["3", "2"], columns=["war", "law"])
    result = mlc.combine(panel, gold=gold)
    np.testing.assert_allclose(combined(WIDE).to_numpy(), result.scores, atol=1e-12)
    assert result.gold is not None
    np.testing.assert_array_equal(np.nansum(result.gold, axis=0), [1, 0, 0])
    assert result.label_indicator[2, :2].tolist() == [True, False]


def test_lists_of_tags_are_complete_and_tables_with_scores_are_not(
    tmp_path: Path,
) -> None:
    path = tmp_path / "gold.jsonl"
    path.write_text(
        '{"instance": "1", "labels": ["law"]}\n{"instance": "2", "labels": ["war"]}\n'
    )
    np.testing.assert_array_equal(
        np.asarray(read_table(path, partial=True).scores), [[1, 0], [0, 1]]
    )
    path.write_text(
        '{"instance": "1", "labels": {"law": 1, "war": 0}}\n{"instance": "2", '
        '"labels": {"war": 1}}\n'
    )
    np.testing.assert_array_equal(
        np.asarray(read_table(path, partial=True).scores), [[1, 0], [np.nan, 1]]
    )
    table = tmp_path / "tags.csv"
    table.write_text("item,label,annotator\n1,law,eve\n2,war,eve\n")
    assert (read_table(table, partial=True).scores == [[1, 0], [0, 1]]).all()


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        ("id,law\n1,1\n2,\n", "gold.csv: found only yes, expected some no, too"),
        ("instance,label,score\n1,law,1\n2,law,1\n", "gold.csv: found only yes"),
        ("id,law\n9,1\n2,0\n", "gold.csv: found the instance '9', which no model has"),
        (
            "id,lav\n1,1\n2,0\n",
            "gold.csv: found the label 'lav', which no model has, expected some of "
            "the panel; did",
        ),
        (
            "instance,label,score\n1,law,1\n1,law,0\n",
            "found label 'law' of instance '1' again (first in line 2)",
        ),
        ("id,law\n1,1\n1,0\n", "found the instance '1' again"),
        (BOB, "gold.csv: found a copy of the model's file"),
    ],
)
def test_gold_that_cannot_be_meant_is_refused_and_nothing_is_written(
    run, folder: Path, gold: str, message: str
) -> None:
    (folder / "gold.csv").write_text(gold)
    out = folder / "consensus.csv"
    done = run("combine", folder / "models", "--gold", folder / "gold.csv", "-o", out)
    assert done.code == 2
    assert message in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert not out.exists()


@pytest.mark.parametrize("command", ["compare", "report"])
def test_truth_among_the_models_is_refused(run, folder: Path, command: str) -> None:
    truth = folder / "models" / "truth.csv"
    truth.write_text(ANN.replace("1,1,0,1", "1,1,1,1"))
    done = run(command, folder / "models", "--truth", truth)
    assert done.code == 2
    assert (
        "truth.csv: found among the models' files, expected the truth apart" in done.err
    )
    shutil.move(truth, folder / "truth.csv")
    assert run(command, folder / "models", "--truth", folder / "truth.csv").code == 0


def test_an_archive_may_hold_the_truth_beside_the_models(run, tmp_path: Path) -> None:
    panel, truth = mlc.datasets.make_panel(n_instances=50, random_state=0)
    np.savez(
        tmp_path / "all.npz", predictions=panel.to_array().astype(bool), truth=truth
    )
    assert (
        run("compare", tmp_path / "all.npz", "--truth", tmp_path / "all.npz").code == 0
    )
