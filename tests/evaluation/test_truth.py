import numpy as np
import pytest
from scipy import sparse

import mlconsensus as mlc
from mlconsensus.evaluation.truth import match_truth
from mlconsensus.panel.model_tables import ModelTable


def test_names_decide_not_positions():
    table = ModelTable("truth", sparse.csr_array([[1, 0], [0, 1]]), ["b", "a"], ["y", "x"])
    found = match_truth(table, ["a", "b"], ["x", "y"])
    np.testing.assert_array_equal(found.truth, [[True, False], [False, True]])
    assert (found.rows.tolist(), found.columns.tolist(), found.note) == ([0, 1], [0, 1], "")


def test_a_truth_without_names_fits_positions_only():
    table = ModelTable("truth", np.array([[1, 0], [0, 1]]))
    assert match_truth(table, [0, 1], ["label_0", "label_1"]).truth.tolist() == [[True, False], [False, True]]
    with pytest.raises(mlc.InputError, match="truth: found no names of instances"):
        match_truth(table, ["1", "2"], ["label_0", "label_1"])
    with pytest.raises(mlc.InputError, match="truth: found no names of labels"):
        match_truth(table, ["0", "1"], ["x", "y"])
