"""NPZ archives."""

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from mlconsensus.errors import InputError
from mlconsensus.io import read_predictions, read_table, read_tables

PANEL = np.array([[[0.5, 1.0]], [[0.0, np.nan]]])


def test_panel_in_one_archive(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "p.npz",
        predictions=PANEL,
        models=["ann", "bob"],
        labels=["x", "y"],
        instances=[7],
    )
    tables = read_tables(tmp_path / "p.npz")
    assert [table.model for table in tables] == ["ann", "bob"]
    assert tables[0].instances.tolist() == ["7"]
    np.testing.assert_array_equal(
        read_predictions(tmp_path / "p.npz").to_array(), PANEL
    )


def test_panel_without_names(tmp_path: Path) -> None:
    np.savez(tmp_path / "p.npz", predictions=PANEL)
    panel = read_predictions(tmp_path / "p.npz")
    assert panel.models == ("p_0", "p_1")
    assert panel.labels == ("label_0", "label_1")
    assert panel.instances.tolist() == [0]


def test_blank_names_are_refused(tmp_path: Path) -> None:
    for axis in ("instances", "labels"):
        np.savez(tmp_path / "p.npz", scores=np.eye(2), **{axis: ["x", " "]})
        with pytest.raises(
            InputError, match=f"{axis}: found '' at position 1, expected a name"
        ):
            read_table(tmp_path / "p.npz")


def test_truth_and_predictions_in_one_archive(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "p.npz",
        predictions=PANEL,
        truth=[[True, False]],
        models=["ann", "bob"],
        labels=["x", "y"],
    )
    truth = read_table(tmp_path / "p.npz")
    assert truth.model == "p"
    np.testing.assert_array_equal(truth.scores, [[True, False]])
    assert len(read_tables(tmp_path / "p.npz")) == 2


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr"])
@pytest.mark.parametrize("kind", [sparse.coo_array, sparse.coo_matrix])
def test_scipy_files(tmp_path: Path, form: str, kind: type) -> None:
    dense = np.array([[0.0, 0.5], [np.nan, 0.0]])
    sparse.save_npz(tmp_path / "s.npz", kind(dense).asformat(form))
    np.testing.assert_array_equal(
        read_table(tmp_path / "s.npz").scores.toarray(), dense
    )
