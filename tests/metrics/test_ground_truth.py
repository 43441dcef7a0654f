import numpy as np
import pytest
from scipy import sparse

import mlconsensus as mlc
from mlconsensus.metrics.ground_truth import match_truth_table
from mlconsensus.predictions.score_tables import ScoreTable


def test_names_decide_not_positions():
    table = ScoreTable(
        "truth", sparse.csr_array([[1, 0], [0, 1]]), ["b", "a"], ["y", "x"]
    )
    match = match_truth_table(table, ["a", "b"], ["x", "y"])
    np.testing.assert_array_equal(match.truth, [[True, False], [False, True]])
    assert (match.rows.tolist(), match.columns.tolist(), match.note) == (
        [0, 1],
        [0, 1],
        "",
    )


def test_a_truth_without_names_fits_positions_only():
    table = ScoreTable("truth", np.array([[1, 0], [0, 1]]))
    assert match_truth_table(table, [0, 1], ["label_0", "label_1"]).truth.tolist() == [
        [True, False],
        [False, True],
    ]
    with pytest.raises(mlc.InputError, match="truth: found no names of instances"):
        match_truth_table(table, ["1", "2"], ["label_0", "label_1"])
    with pytest.raises(mlc.InputError, match="truth: found no names of labels"):
        match_truth_table(table, ["0", "1"], ["x", "y"])


@pytest.mark.parametrize(
    "truth", [[[1, 0], [1]], np.ma.masked_array([[1, 0], [0, 1]], [[1, 0], [0, 0]])]
)
def test_ragged_or_masked_truth_is_refused(truth):
    panel = mlc.Predictions([[[1, 0], [0, 1]]])
    judges = (
        mlc.combine(panel).evaluate,
        mlc.combine(panel).report,
        lambda t: mlc.metrics.evaluate_models(t, panel),
    )
    for judge in (*judges, lambda t: mlc.metrics.micro_auc(t, [[0.9, 0], [0, 1]])):
        with pytest.raises(mlc.InputError, match="^truth: found "):
            judge(truth)


def test_truth_without_instances_is_refused():
    consensus = mlc.combine([[[1, 0], [0, 1]]])
    with pytest.raises(mlc.InputError, match=r"^truth: found shape \(0, 2\)"):
        consensus.evaluate(consensus.to_frame()[:0])
