"""Metrics against definitions with loops, and against scikit-learn."""

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics
from hypothesis import given
from hypothesis import strategies as st
from rankings import average_over_orders, compare_pairs, truths_and_scores
from scipy import sparse

import mlconsensus as mlc
from mlconsensus import metrics
from mlconsensus.linalg.sparse_scores import SparseScores
from mlconsensus.metrics import ground_truth as truth_checks
from mlconsensus.metrics import ranking


def _one_error(ranked):
    return not ranked[0]


def _ranking_loss(ranked):
    pairs = [
        (a, b)
        for a in range(len(ranked))
        for b in range(len(ranked))
        if ranked[a] and not ranked[b]
    ]
    if pairs:
        return np.mean([a > b for a, b in pairs])
    return 0.0


def _average_precision(ranked):
    results = [sum(ranked[: s + 1]) / (s + 1) for s in range(len(ranked)) if ranked[s]]
    if results:
        return np.mean(results)
    return 1.0


@pytest.mark.parametrize(
    ("metric", "of_order"),
    [
        (ranking.one_error, _one_error),
        (ranking.ranking_loss, _ranking_loss),
        (ranking.average_precision, _average_precision),
    ],
    ids=lambda function: function.__name__,
)
@given(example=truths_and_scores())
def test_is_the_mean_over_the_orders_of_ties(metric, of_order, example):
    assert metric(*example) == pytest.approx(
        average_over_orders(of_order, *example), abs=1e-12
    )


@given(example=truths_and_scores())
def test_micro_auc_counts_pairs_of_cells(example):
    assert ranking.micro_auc(*example) == pytest.approx(
        compare_pairs(*example, tied=0.5), nan_ok=True
    )


def test_without_ties_scikit_learn_agrees():
    rng = np.random.default_rng(0)
    truth = rng.random((200, 30)) < 0.1
    scores = rng.random((200, 30))
    assert ranking.ranking_loss(truth, scores) == pytest.approx(
        sklearn.metrics.label_ranking_loss(truth, scores)
    )
    expected = sklearn.metrics.label_ranking_average_precision_score(truth, scores)
    assert ranking.average_precision(truth, scores) == pytest.approx(expected)


@given(example=truths_and_scores())
def test_sparse_truth(example):
    truth, scores = example
    sets = scores > 0.5
    assert metrics.evaluate(sparse.csr_array(truth), scores, sets) == pytest.approx(
        metrics.evaluate(truth, scores, sets), nan_ok=True
    )


def test_evaluate_takes_label_sets_or_a_threshold():
    truth = np.array([[1, 0]])
    scores = np.array([[0.4, 0.1]])
    assert metrics.evaluate(truth, scores)["micro_f1"] == 0
    assert metrics.evaluate(truth, scores, [[True, False]])["micro_f1"] == 1
    assert list(metrics.evaluate(truth, scores)) == [
        *metrics.RANKING_METRICS,
        *metrics.LABEL_SET_METRICS,
    ]


def test_evaluate_checks_what_it_is_given_once(monkeypatch):
    checked = []
    check = truth_checks._check_binary

    def watch(matrix, where, is_sparse):
        checked.append(where)
        return check(matrix, where, is_sparse)

    monkeypatch.setattr(
        truth_checks,
        "_check_binary",
        watch,
    )
    metrics.evaluate([[1, 0]], [[0.4, 0.1]])
    assert checked == ["truth"]


def test_base_models_are_averaged():
    panel, truth = mlc.datasets.make_panel(50, 6, 3, missing=0.2, random_state=0)
    results = metrics.evaluate_models(truth, panel)
    assert list(results) == [*panel.models, "BM"]
    alone = [
        ranking.ranking_loss(truth, np.nan_to_num(scores))
        for scores in panel.to_array()
    ]
    assert results["BM"]["ranking_loss"] == pytest.approx(np.mean(alone))
    as_sparse = [sparse.csr_array(scores) for scores in panel.to_array()]
    assert metrics.evaluate_models(truth, as_sparse)["BM"] == pytest.approx(
        results["BM"]
    )


@pytest.mark.parametrize(
    ("truth", "scores", "message"),
    [
        ([[1, 2]], [[0, 1]], "truth: found values other than 0 and 1"),
        ([["a", "b"]], [[0, 1]], "truth: found values other than 0 and 1"),
        (
            [[1, 0]],
            [[0, 1], [1, 0]],
            r"scores: found shape \(2, 2\), expected \(1, 2\)",
        ),
        ([1, 0], [0.2, 0.5], r"truth: found shape \(2,\), expected two dimensions"),
        ([[1, 0]], [[0, np.nan]], "scores: found NaN or infinity"),
        ([[1, 0]], [["a", "b"]], "scores: found <U1 values"),
        (np.zeros((0, 2)), np.zeros((0, 2)), "at least one instance"),
    ],
)
def test_bad_input(truth, scores, message):
    for metric in metrics.RANKING_METRICS:
        with pytest.raises(mlc.InputError, match=message):
            getattr(ranking, metric)(truth, scores)


def test_models_are_judged_on_what_they_have_seen():
    rng = np.random.default_rng(0)
    truth = rng.random((50, 4)) < 0.4
    full = (truth ^ (rng.random(truth.shape) < 0.1)).astype(float)
    part = truth.astype(float)
    none = np.full((50, 4), np.nan)
    part[10:] = np.nan
    part[3, 1] = np.nan  # of an instance that it has seen: not put forward
    results = metrics.evaluate_models(truth, {"full": full, "part": part, "none": none})
    assert results["full"] == metrics.evaluate(truth, full) | {"share": 1.0}
    assert results["part"] == metrics.evaluate(truth[:10], np.nan_to_num(part[:10])) | {
        "share": 0.2
    }
    assert np.isnan(list(results["none"].values())).all()
    assert results["BM"]["micro_auc"] == pytest.approx(
        (results["full"]["micro_auc"] + results["part"]["micro_auc"]) / 2
    )
    with pytest.raises(mlc.InputError, match="shape"):
        metrics.evaluate_models(truth[:40], {"part": part})


def test_models_are_judged_on_the_labels_that_they_know():
    """A model that is right on its labels makes no error on the others."""
    pd = pytest.importorskip("pandas")
    truth = np.random.default_rng(0).random((50, 4)) < 0.4
    all_labels = pd.DataFrame(truth.astype(float), columns=list("abcd"))
    panel = mlc.Predictions({"whole": all_labels, "part": all_labels[["a", "b", "d"]]})
    for predictions in (panel, panel.as_block(many=True)):
        results = metrics.evaluate_models(truth, predictions)["part"]
        assert results == metrics.evaluate(
            truth[:, [0, 1, 3]], all_labels[["a", "b", "d"]].to_numpy()
        ) | {"share": 0.75}
        assert (results["micro_auc"], results["hamming_loss"]) == (1.0, 0.0)


def test_frames_are_matched_by_their_names():
    truth = pd.DataFrame(
        [[1, 0], [0, 1], [1, 1]], index=list("abc"), columns=["x", "y"]
    )
    scores = pd.DataFrame(
        [[0.9, 0.2], [0.6, 0.7], [0.1, 0.8]], index=list("cba"), columns=["y", "x"]
    )
    ordered = [[0.8, 0.1], [0.7, 0.6], [0.2, 0.9]]
    assert metrics.evaluate(truth, scores) == metrics.evaluate(
        truth.to_numpy(), np.array(ordered)
    )


@pytest.mark.parametrize(
    ("index", "columns", "message"),
    [
        ("abd", "xy", "scores: found other instances than the truth has"),
        ("abca", "xy", "instances of truth and scores: found 'a' at positions 0, 3"),
        ("ab", "xy", "scores: found other instances than the truth has"),
        ("abc", "xz", "scores: found other labels than the truth has"),
        ("abc", "xyx", "labels of truth and scores: found 'x' at positions 0, 2"),
    ],
)
def test_frames_with_other_names_are_refused(index, columns, message):
    truth = pd.DataFrame(
        np.eye(3, 2, dtype=bool), index=list("abc"), columns=["x", "y"]
    )
    scores = pd.DataFrame(
        np.full((len(index), len(columns)), 0.5),
        index=list(index),
        columns=list(columns),
    )
    with pytest.raises(mlc.InputError, match=message):
        ranking.micro_auc(truth, scores)
    twice = pd.DataFrame(np.eye(2, dtype=bool), index=list("aa"), columns=["x", "y"])
    with pytest.raises(mlc.InputError, match="found 'a' at positions 0, 1"):
        ranking.micro_auc(twice, twice.astype(float))


@given(n=st.integers(1, 6), l=st.integers(1, 7), seed=st.integers(0, 10**6))
def test_scores_of_many_labels_are_judged_as_the_whole_table_is(n, l, seed):
    """Most pairs have the default; some stored differences are 0."""
    rng = np.random.default_rng(seed)
    stored = sparse.csr_array(
        (rng.random((n, l)) < 0.5) * rng.choice([1.0, 1.25, 1.5, 0.75], (n, l))
    )
    stored.data -= 1.0
    scores = SparseScores(stored, rng.choice([0.0, 0.25, 0.4], l))
    truth, sets = rng.random((2, n, l)) < 0.4
    results = metrics.evaluate(sparse.csr_array(truth), scores, sparse.csr_array(sets))
    assert results == pytest.approx(
        metrics.evaluate(truth, scores.toarray(), sets), nan_ok=True
    )
    chosen = metrics.evaluate(truth, scores)  # those of at least 0.5
    assert chosen == pytest.approx(
        metrics.evaluate(truth, scores.toarray()), nan_ok=True
    )


def test_sparse_scores_are_judged_as_dense_ones():
    rng = np.random.default_rng(0)
    truth = rng.random((30, 8)) < 0.3
    scores = rng.random((30, 8)) * (rng.random((30, 8)) < 0.4)
    results = metrics.evaluate(truth, sparse.csc_array(scores))
    assert results == pytest.approx(metrics.evaluate(truth, scores))
    with pytest.raises(mlc.InputError, match="scores: found NaN or infinity"):
        metrics.evaluate([[1, 0]], sparse.csr_array([[np.nan, 0.0]]))
    with pytest.raises(
        mlc.InputError, match=r"scores: found shape \(1, 2\), expected \(1, 3\)"
    ):
        metrics.evaluate([[1, 0, 0]], sparse.csr_array([[0.5, 0.0]]))
    with pytest.raises(
        mlc.InputError, match="label sets: found values other than 0 and 1"
    ):
        metrics.evaluate([[1, 0]], [[0.5, 0.1]], sparse.csr_array([[0.5, 0.0]]))


def test_models_of_many_labels_are_judged_as_those_of_few():
    rng = np.random.default_rng(1)
    matrices = [
        sparse.random_array((40, 30), density=0.1, rng=rng, format="csr")
        for _ in range(3)
    ]
    truth = sparse.random_array((40, 30), density=0.1, rng=rng, format="csr").astype(
        bool
    )
    panel = mlc.Predictions(matrices)
    results = metrics.evaluate_models(truth, panel.as_block(many=True))
    assert {
        name: pytest.approx(value) for name, value in results.items()
    } == metrics.evaluate_models(truth, panel)
