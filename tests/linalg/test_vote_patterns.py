"""Patterns of votes: counted and looked up, they give what adding up gives."""

import numpy as np
import pytest
from scipy import sparse

import mlconsensus as mlc
import oracle
from mlconsensus.linalg import vote_patterns
from mlconsensus.linalg.block_sums import column_sums, dense

RNG = np.random.default_rng(0)
VOTES = RNG.random((3, 60, 4)) < 0.3
FEW = (
    RNG.random((9, 4096, 6)) < 0.01
)  # so few that the patterns are sparse, and of more models than a byte has bits


@pytest.mark.parametrize("votes", [VOTES, FEW], ids=["many", "few"])
def test_codes_are_the_votes_bit_by_bit(votes):
    expected = sum(
        votes_of_model.astype(int) << k for k, votes_of_model in enumerate(votes)
    )
    by_column = [np.asfortranarray(votes_of_model) for votes_of_model in votes]
    sparse_ones = [sparse.csr_array(votes_of_model) for votes_of_model in votes]
    mixed = [*sparse_ones[:1], *votes[1:]]
    for form in (
        votes,
        votes.astype(np.float32),
        votes.astype(np.int64),
        by_column,
        sparse_ones,
        mixed,
    ):
        result = vote_patterns.codes(mlc.Predictions(form))
        assert sparse.issparse(result) == (votes is FEW)
        np.testing.assert_array_equal(dense(result), expected)


@pytest.mark.parametrize(
    "scores",
    [
        np.where(VOTES, 0.7, 0.0),
        np.where(RNG.random(VOTES.shape) < 0.1, np.nan, VOTES),
        [sparse.csr_array(np.where(model, 0.5, 0)) for model in VOTES],
        VOTES[:, :31],
        np.ones((13, 2**15 + 1, 1), dtype=bool),
    ],
    ids=["scores", "silence", "sparse scores", "few instances", "many models"],
)
def test_there_are_none(scores):
    assert vote_patterns.codes(mlc.Predictions(scores)) is None


@pytest.mark.parametrize("votes", [VOTES, FEW], ids=["many", "few"])
def test_counts_and_what_is_looked_up(votes):
    result = vote_patterns.codes(mlc.Predictions(votes))
    (m, _, l) = votes.shape
    counted = vote_patterns.counts(result, 2**m)
    cells = dense(result)
    for label in range(l):
        for kind in np.unique(cells):
            assert counted[label, kind] == (cells[:, label] == kind).sum()
    assert counted.sum() == cells.size
    table = RNG.random((l, 2**m))
    table[:, 0] = 0
    np.testing.assert_array_equal(
        dense(vote_patterns.looked_up(result, table)), table[np.arange(l), cells]
    )


@pytest.mark.parametrize("kind", [np.bool_, np.float64])
@pytest.mark.parametrize(
    "votes", [VOTES, FEW, VOTES[:, :31]], ids=["many", "few", "too few instances"]
)
def test_patterns_and_connections_add_up_to_the_same(votes, kind):
    A = vote_patterns.answers(mlc.Predictions(votes.astype(kind)))
    (m, _, l) = votes.shape
    assert (A.shape[1] == l) == (kind is np.bool_ and votes.shape[1] != 31)
    weights = RNG.random((m, l))
    expected = np.einsum("kil,kl->il", votes.astype(float), weights)
    result = vote_patterns.pooled(A, weights)
    np.testing.assert_allclose(dense(result), expected, atol=1e-14)
    with_all = np.einsum("kil,il->kl", votes.astype(float), expected)
    for votes_of_model, model, product in zip(
        vote_patterns.by_model(A, m), votes, with_all, strict=True
    ):
        np.testing.assert_array_equal(dense(votes_of_model), model)
        np.testing.assert_allclose(
            column_sums(votes_of_model * result), product, rtol=1e-12
        )


@pytest.mark.parametrize(
    ("combiner", "literal"),
    [(mlc.BGCM(), oracle.bgcm), (mlc.DawidSkene(), oracle.dawid_skene)],
)
def test_methods_that_use_them_equal_the_literal_ones(combiner, literal):
    assert vote_patterns.codes(mlc.Predictions(VOTES)) is not None
    np.testing.assert_allclose(
        combiner.fit_transform(VOTES), literal(VOTES.astype(float)), atol=1e-10
    )
    subset = combiner.fit(VOTES[:, :40]).partial_fit(
        VOTES[:, 40:]
    )  # the second piece is too small for patterns
    np.testing.assert_allclose(
        subset.transform(VOTES), literal(VOTES.astype(float)), atol=1e-10
    )
