"""One scale for scores that live on different ones."""

import numpy as np
import pytest
from scipy import sparse

import mlconsensus as mlc
from mlconsensus.predictions import quantile_normalization

RNG = np.random.default_rng(0)
SCORES = RNG.beta(0.3, 3, (400, 6))


def test_models_of_one_scale_keep_it():
    panel = mlc.Predictions(
        [SCORES, RNG.permutation(SCORES.ravel()).reshape(SCORES.shape)]
    )
    np.testing.assert_allclose(
        mlc.rescale(panel).to_array(), panel.to_array(), atol=2e-3
    )


@pytest.mark.parametrize(
    "distort", [lambda a: a**5, lambda a: a / 1000, lambda a: 1 - (1 - a) ** 8, np.sqrt]
)
def test_the_odd_one_comes_to_the_others(distort):
    result = mlc.rescale([SCORES, SCORES, distort(SCORES)]).to_array()
    np.testing.assert_allclose(result[2], SCORES, atol=0.01)
    np.testing.assert_allclose(result[:2], [SCORES, SCORES], atol=0.01)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_order_within_a_model_stays(kind):
    odd = (SCORES**3).astype(kind)
    result = (
        mlc.rescale([SCORES.astype(kind), SCORES.astype(kind), odd])
        .to_array()[2]
        .ravel()
    )
    assert (np.diff(result[np.argsort(odd.ravel(), kind="stable")]) >= 0).all()
    assert ((result >= 0) & (result <= 1)).all()


def test_decisions_stay_as_they_are():
    votes = SCORES > 0.5
    for decisions in (votes, votes.astype(float), votes.astype(int)):
        result = mlc.rescale([SCORES, SCORES**2, decisions]).to_array()
        np.testing.assert_array_equal(result[2], votes)
    np.testing.assert_array_equal(
        mlc.rescale([votes, ~votes]).to_array(), [votes, ~votes]
    )


def test_a_single_model_with_scores_stays_as_it_is():
    result = mlc.rescale([SCORES, SCORES > 0.5]).to_array()
    np.testing.assert_array_equal(result[0], SCORES)


def test_zero_stays_zero_and_sparse_sparse():
    thin = np.where(SCORES > 0.3, SCORES, 0.0)
    dense = mlc.rescale([SCORES, SCORES, thin])
    as_sparse = mlc.rescale([SCORES, SCORES, sparse.csr_array(thin)])
    np.testing.assert_allclose(as_sparse.to_array(), dense.to_array(), atol=1e-12)
    assert (dense.to_array()[2][thin == 0] == 0).all()
    values, _ = list(as_sparse.cells())[2]
    assert sparse.issparse(values)


def test_silence_is_not_counted():
    holes = SCORES.copy()
    holes[::3] = np.nan
    result = mlc.rescale([SCORES, SCORES, holes / 10])
    np.testing.assert_array_equal(np.isnan(result.to_array()[2]), np.isnan(holes))
    bulk = np.isfinite(holes) & (SCORES < 0.5)
    np.testing.assert_allclose(result.to_array()[2][bulk], SCORES[bulk], atol=0.05)
    counts = quantile_normalization.count_scores(mlc.Predictions([holes])).counts
    assert counts.sum() == np.isfinite(holes).sum()
    thin = sparse.csr_array(np.where(np.isnan(holes) | (holes > 0.3), holes, 0.0))
    assert (
        quantile_normalization.count_scores(mlc.Predictions([thin])).counts.sum()
        == np.isfinite(holes).sum()
    )


def test_blocks_add_up():
    panel = mlc.Predictions([SCORES, SCORES**2])
    complete = quantile_normalization.count_scores(panel).counts
    np.testing.assert_array_equal(
        sum(
            quantile_normalization.count_scores(block).counts
            for block in panel.blocks(7)
        ),
        complete,
    )


def test_twice_is_once():
    once = mlc.rescale([SCORES, SCORES**2, SCORES**3])
    np.testing.assert_allclose(mlc.rescale(once).to_array(), once.to_array(), atol=5e-3)


def test_bins_rise_with_the_score_and_tell_small_scores_apart():
    ladder = np.sort(
        np.concatenate(
            [10.0 ** -np.arange(1, 38), 1 - 10.0 ** -np.arange(1, 16), [0, 0.5, 1]]
        )
    )
    bins = quantile_normalization._find_bins(ladder)
    assert (np.diff(bins) > 0).all()
    assert bins[0] == 0
    assert bins[-1] == quantile_normalization.N_BINS - 1
    ends = quantile_normalization._compute_upper_edges()
    assert (ladder <= ends[bins] * (1 + 1e-6)).all()


def test_voting_gains_from_one_scale():
    panel, truth = mlc.datasets.make_panel(
        n_models=5, n_instances=800, n_labels=10, probabilities=True, random_state=3
    )
    odd = panel.to_array()
    odd[0] = odd[0] ** 6
    odd[1] = odd[1] / 200
    rescaled = mlc.metrics.ranking_loss(truth, mlc.majority_vote(mlc.rescale(odd)))
    assert rescaled < mlc.metrics.ranking_loss(truth, mlc.majority_vote(odd))


def test_minus_zero_is_zero():
    scores = np.random.default_rng(0).random((3, 40, 4)).round(1)
    minus = np.where(scores == 0, -0.0, scores)
    assert (np.signbit(minus) & (minus == 0)).any()
    np.testing.assert_array_equal(
        mlc.rescale(minus).to_array(), mlc.rescale(scores).to_array()
    )
