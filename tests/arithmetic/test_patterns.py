"""Patterns of votes: counted and looked up, they give what adding up gives."""

import numpy as np
import pytest
from scipy import sparse

import mlconsensus as mlc
import oracle
from mlconsensus.arithmetic import patterns

RNG = np.random.default_rng(0)
VOTES = RNG.random((3, 60, 4)) < 0.3


def test_codes_are_the_votes_bit_by_bit():
    expected = sum(VOTES[k].astype(int) << k for k in range(3))
    forms = [VOTES, VOTES.astype(np.float32), VOTES.astype(np.int64), [sparse.csr_array(model) for model in VOTES]]
    for form in forms:
        np.testing.assert_array_equal(patterns.codes(mlc.Predictions(form)), expected)


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
    assert patterns.codes(mlc.Predictions(scores)) is None


def test_counts_and_what_is_looked_up():
    found = patterns.codes(mlc.Predictions(VOTES))
    counted = patterns.counts(found, 3)
    for label in range(4):
        for kind in range(8):
            assert counted[label, kind] == (found[:, label] == kind).sum()
    table = RNG.random((4, 8))
    looked_up = patterns.looked_up(found, table)
    for i in range(60):
        assert [table[label, found[i, label]] for label in range(4)] == looked_up[i].tolist()


@pytest.mark.parametrize(("combiner", "literal"), [(mlc.BGCM(), oracle.bgcm), (mlc.DawidSkene(), oracle.dawid_skene)])
def test_methods_that_use_them_equal_the_literal_ones(combiner, literal):
    assert patterns.codes(mlc.Predictions(VOTES)) is not None
    np.testing.assert_allclose(combiner.fit_transform(VOTES), literal(VOTES.astype(float)), atol=1e-10)
    some = combiner.fit(VOTES[:, :40]).partial_fit(VOTES[:, 40:])  # the second piece is too small for patterns
    np.testing.assert_allclose(some.transform(VOTES), literal(VOTES.astype(float)), atol=1e-10)
