"""Consensus of large label spaces in Python, with clear errors."""

import json

import numpy as np
import pytest
from scipy import sparse

import mlconsensus as mlc
from mlconsensus.execution.threads import ResourceLimits
from mlconsensus.linalg import sparse_scores

N = 60
L = 3000


@pytest.fixture(scope="module")
def truth():
    rng = np.random.default_rng(0)
    cells = np.repeat(np.arange(N), 8), rng.zipf(1.3, 8 * N) % L
    return sparse.coo_array((np.ones(8 * N), cells), shape=(N, L)).tocsr() > 0


@pytest.fixture(scope="module")
def panel(truth):
    rng = np.random.default_rng(1)
    noise = (
        sparse.random_array(
            (N, L), density=5e-4, rng=rng, data_sampler=lambda size: np.ones(size)
        )
        for _ in "abcd"
    )
    heard = (truth.multiply(rng.random((N, 1)) < 0.9).astype(float) for _ in "abcd")
    return mlc.Predictions(
        {
            name: matrix.maximum(more)
            for name, matrix, more in zip("abcd", heard, noise, strict=True)
        }
    )


@pytest.fixture(scope="module")
def consensus(panel):
    assert panel.many
    return mlc.combine(panel, method="mv")


def test_scores_are_an_array_where_they_fit(consensus, monkeypatch):
    table = np.asarray(consensus.scores)
    assert (table.shape, table.dtype) == ((N, L), np.float64)
    np.testing.assert_array_equal(table, consensus.scores.toarray())
    assert np.asarray(consensus.scores, np.float32).dtype == np.float32
    monkeypatch.setattr(
        sparse_scores, "get_limits", lambda: ResourceLimits(memory=1, threads=2**10)
    )
    with pytest.raises(
        mlc.InputError, match="scores: found 60 × 3,000, expected fewer for one array"
    ):
        np.asarray(consensus.scores)
    with pytest.raises(
        mlc.InputError, match="scores: found 60 × 3,000, expected fewer for one array"
    ):
        consensus.to_frame()


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(panel, consensus, library):
    frame = consensus.to_frame(library)
    np.testing.assert_array_equal(
        frame[list(consensus.labels)].to_numpy(), consensus.scores.toarray()
    )
    same = mlc.MajorityVote().set_output(transform="pandas").fit_transform(panel)
    np.testing.assert_array_equal(same.to_numpy(), consensus.scores.toarray())


def test_label_sets_by_number(consensus):
    table = consensus.scores.toarray()
    np.testing.assert_array_equal(
        mlc.decision.top_k(consensus.scores, 3).toarray(), mlc.decision.top_k(table, 3)
    )


def test_what_is_looked_at_are_the_labels_named_most(panel, consensus, truth):
    note = "Of 3,000 labels, the 500 named most are looked at"
    ground_truth = truth.toarray()
    report = consensus.report(ground_truth)
    shown = json.loads(report.to_json())
    assert shown["note"].startswith(note)
    assert (shown["panel"]["n_labels"], shown["origin"]["method"]) == (
        500,
        "majority_vote",
    )
    columns = [consensus.labels.index(label) for label in shown["labels"]["order"]]
    named = panel.to_array().sum(axis=(0, 1))
    assert named[columns].min() >= np.sort(named)[-500]
    assert shown["judged"]["results"][0]["metrics"]["micro_auc"] > 0.9
    assert mlc.agreement(panel).note.startswith(note)
    assert len(mlc.agreement(panel).labels) == 500
    assert note in mlc.compare_on_held_out_models(panel, methods=["mlcm-a"]).sentence
