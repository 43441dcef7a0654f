"""All three ways to solve the walk's system find the same, and what plain inversion finds."""

import numpy as np
import pytest
from scipy import sparse

import mlconsensus as mlc
from mlconsensus.combiners.mlcm_r import MLCMrStatistics
from mlconsensus.execution import threads
from mlconsensus.linalg import random_walk
from mlconsensus.linalg.gram import Gram, as_gram

RNG = np.random.default_rng(0)


def literal(rows, anchors, held):
    walk = rows.T @ rows
    return np.linalg.inv(np.diag(anchors + walk.sum(axis=1)) - walk) @ held


@pytest.mark.parametrize(
    "form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"]
)
@pytest.mark.parametrize("n", [1, 7, 19, 20, 60])
def test_every_side_finds_the_same(form, n, monkeypatch):
    rows = RNG.random((n, 20)) * (RNG.random((n, 20)) < 0.4)
    anchors = RNG.random(20) + 0.1
    held = RNG.random((20, 3))
    expected = literal(rows, anchors, held)
    few = Gram.of(form(rows))
    assert (few.rows is None) == (n >= 20)
    np.testing.assert_allclose(
        random_walk.solve_system(few, anchors, held.copy()), expected, atol=1e-10
    )
    np.testing.assert_allclose(
        random_walk.solve_system(as_gram(rows.T @ rows), anchors, held.copy()),
        expected,
        atol=1e-10,
    )
    monkeypatch.setattr(threads._bound, "limits", threads.ResourceLimits(memory=0))
    walk = Gram.of(form(rows))
    assert walk.rows is not None
    np.testing.assert_allclose(
        random_walk.solve_system(walk, anchors, held.copy()), expected, atol=1e-10
    )


@pytest.mark.parametrize("alpha", [1e-3, 2.0, 1e3])
@pytest.mark.parametrize("scores", ["dense", "sparse"])
def test_mlcm_r_without_room_for_the_matrix(alpha, scores, monkeypatch):
    panel, _ = mlc.datasets.make_panel(
        n_instances=400, n_labels=12, n_models=4, random_state=1
    )
    if scores == "sparse":
        inputs = [sparse.csr_array(matrix) for matrix in panel.to_array()]
    else:
        inputs = panel
    exact = mlc.mlcm_r(inputs, alpha=alpha)
    monkeypatch.setattr("mlconsensus.execution.local.available_memory", lambda: 0)
    monkeypatch.setattr(threads._bound, "limits", threads.ResourceLimits(memory=0))
    assert mlc.MLCMr()._compute_statistics(panel.to_block()).walk.rows is not None
    np.testing.assert_allclose(mlc.mlcm_r(inputs, alpha=alpha), exact, atol=1e-10)


def test_labels_are_worked_out_in_portions(monkeypatch):
    rows = RNG.random((30, 20))
    anchors = np.ones(20)
    held = np.eye(20)[:, :7]
    monkeypatch.setattr(
        threads._bound, "limits", threads.ResourceLimits(memory=0, threads=2)
    )  # one label at a time
    np.testing.assert_allclose(
        random_walk.solve_system(Gram.of(rows), anchors, held.copy()),
        literal(rows, anchors, held),
        atol=1e-10,
    )


def test_fewer_instances_than_nodes_take_no_matrix_of_nodes(monkeypatch):
    panel, _ = mlc.datasets.make_panel(
        n_instances=10, n_labels=12, n_models=4, random_state=1
    )
    walk = mlc.MLCMr()._compute_statistics(panel.to_block()).walk
    assert walk.rows.shape == (10, 48)
    exact = mlc.MLCMr()._solve(MLCMrStatistics(walk=np.asarray(walk)))
    np.testing.assert_allclose(
        mlc.MLCMr()._solve(MLCMrStatistics(walk=walk)).groups, exact.groups, atol=1e-10
    )


def test_conjugate_gradients_that_do_not_converge_say_so(monkeypatch):
    monkeypatch.setattr(threads._bound, "limits", threads.ResourceLimits(memory=0))
    monkeypatch.setattr(random_walk, "_ERROR", 0.0)  # which rounding never reaches
    with pytest.raises(mlc.InputError, match="found no solution"):
        random_walk.solve_system(
            Gram.of(RNG.random((30, 20))), np.ones(20), RNG.random((20, 3))
        )


def test_a_walk_that_takes_many_steps_is_followed_to_its_end(monkeypatch):
    """A chain of nodes, of which hardly any is anchored: conjugate gradients need about a round for each."""
    v = 200
    rows = np.zeros((2 * v, v))
    rows[np.arange(v - 1), np.arange(v - 1)] = rows[
        np.arange(v - 1), np.arange(1, v)
    ] = 1.0
    anchors = np.full(v, 1e-4)
    held = np.eye(v)[:, :2]
    monkeypatch.setattr(threads._bound, "limits", threads.ResourceLimits(memory=0))
    gram = Gram.of(rows)
    assert gram.rows is not None
    solution = random_walk.solve_system(gram, anchors, held.copy())
    np.testing.assert_allclose(solution, literal(rows, anchors, held), rtol=1e-6)
