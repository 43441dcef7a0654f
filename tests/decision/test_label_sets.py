import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

import mlconsensus as mlc
from mlconsensus.decision import label_sets
from mlconsensus.linalg.sparse_scores import SparseScores
from mlconsensus.metrics import _rank_counts
from panels import panels

SCORES = np.array([[0.9, 0.1, 0.5], [0.2, 0.3, 0.4], [0.0, 0.0, 0.0]])


@given(k=st.integers(0, 5))
def test_top_k_keeps_k_of_the_highest(k):
    chosen = label_sets.top_k(SCORES, k)
    assert (chosen.sum(axis=1) == min(k, 3)).all()
    for is_chosen, scores in zip(chosen, SCORES, strict=True):
        assert (
            not is_chosen.any()
            or is_chosen.all()
            or scores[is_chosen].min() >= scores[~is_chosen].max()
        )


def test_ties_go_to_the_first_label():
    assert label_sets.top_k([[0.5, 0.5, 0.5]], 2).tolist() == [[True, True, False]]


def test_threshold_includes_its_value():
    assert label_sets.threshold(SCORES, 0.5).tolist() == [
        [True, False, True],
        [False] * 3,
        [False] * 3,
    ]


def test_empty_sets_are_kept_or_filled():
    filled = label_sets.threshold(SCORES, 0.5, empty="top")
    assert filled.tolist() == [
        [True, False, True],
        [False, False, True],
        [True, False, False],
    ]
    assert label_sets.match_instances(SCORES, [2, 0, 0], empty="top").sum(
        axis=1
    ).tolist() == [2, 1, 1]
    with pytest.raises(
        mlc.InputError, match="empty: found 'drop', expected 'keep' or 'top'"
    ):
        label_sets.threshold(SCORES, 0.5, empty="drop")


def test_instances_get_as_many_labels_as_models_gave_them():
    chosen = label_sets.match_instances(SCORES, [1.5, 1.49, 0])
    assert chosen.tolist() == [[True, False, True], [False, False, True], [False] * 3]


@given(scores=panels())
def test_counts_are_over_those_who_spoke(scores):
    n_predictions = (~np.isnan(scores)).sum(axis=0)
    mean = np.nansum(scores, axis=0) / np.maximum(n_predictions, 1)
    np.testing.assert_allclose(label_sets.cardinalities(scores), mean.sum(axis=1))


def test_predict_matches_the_models_cardinality():
    scores = np.array(
        [[[1, 1, 0], [0, 0, 0]], [[1, 0, 0], [0, 0, 1]], [[1, 1, 0], [0, 0, 1]]]
    )
    assert mlc.MLCMr().fit(scores).predict(scores).tolist() == [
        [True, True, False],
        [False, False, True],
    ]


@pytest.mark.parametrize("k", [-1, 1.5, None])
def test_k_must_be_whole(k):
    with pytest.raises(mlc.InputError, match="k: found"):
        label_sets.top_k(SCORES, k)


def test_shapes_must_fit():
    with pytest.raises(
        mlc.InputError, match=r"counts: found shape \(2,\), expected \(3,\)"
    ):
        label_sets.match_instances(SCORES, [1, 1])
    with pytest.raises(mlc.InputError, match="scores: found 1 dimensions, expected 2"):
        label_sets.top_k([0.1, 0.2], 1)


@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.tuples(st.integers(1, 6), st.integers(1, 9)),
    levels=st.sampled_from([1, 2, 3, 1000]),
    rows_at_once=st.sampled_from([1, 2**16]),
)
def test_the_highest_are_those_of_a_stable_sort(seed, shape, levels, rows_at_once):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, levels, shape) / levels - 0.5
    wanted = rng.integers(-1, shape[1] + 2, shape[0])
    expected = np.zeros(shape, dtype=bool)
    for i in range(shape[0]):
        by_score = sorted(range(shape[1]), key=lambda j, i=i: -scores[i, j])
        expected[i, by_score[: max(wanted[i], 0)]] = True
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_rank_counts, "_RANKED_AT_ONCE", rows_at_once)
        assert label_sets.match_instances(scores, wanted).tolist() == expected.tolist()


def test_scores_must_be_numbers():
    with pytest.raises(mlc.InputError, match="scores: found NaN, expected numbers"):
        label_sets.top_k([[0.1, np.nan]], 1)


def test_the_one_best_label_can_be_named():
    result = label_sets.top_labels(
        np.array([[0.2, 0.9, 0.5], [0.4, 0.1, 0.4]]), ["x", "y", "z"], 1
    )
    assert result.labels.tolist() == [["y"], ["x"]]
    assert result.scores.tolist() == [[0.9], [0.4]]


def test_instances_of_many_labels_that_would_get_none():
    scores = SparseScores(
        sparse.csr_array([[0.5, 0.9, 0.0], [0.0, 0.2, 0.0]]), np.array([0.1, 0.0, 0.3])
    )
    chosen = label_sets.match_instances(scores, [2, 0])
    assert chosen.toarray().tolist() == [[True, True, False], [False, False, False]]
    filled = label_sets.match_instances(scores, [2, 0], empty="top").toarray()
    assert filled.tolist() == [[True, True, False], [False, False, True]]


@given(
    likely=hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 4), st.integers(1, 3)),
        elements=st.floats(0, 1),
    )
)
def test_the_best_f1_is_that_of_all_thresholds(likely):
    def f1(chosen):
        return 2 * likely[chosen].sum() / max(chosen.sum() + likely.sum(), 1e-300)

    best = max(f1(likely >= threshold) for threshold in likely.ravel())
    assert f1(label_sets.best_micro_f1(likely)) == pytest.approx(best)


def test_the_best_f1_of_nothing_likely_is_no_label():
    assert not label_sets.best_micro_f1(np.zeros((2, 3))).any()
    assert label_sets.best_micro_f1(np.zeros((2, 3)), empty="top").sum(
        axis=1
    ).tolist() == [
        1,
        1,
    ]
    assert label_sets.best_micro_f1(np.zeros((0, 3))).shape == (0, 3)


def test_the_best_f1_of_true_probabilities_is_ahead_of_other_rules():
    rng = np.random.default_rng(0)
    likely = rng.beta(0.3, 2, size=(400, 10))
    truth = rng.random(likely.shape) < likely

    def f1(chosen):
        return mlc.metrics.evaluate(truth, likely, chosen)["micro_f1"]

    assert (
        f1(label_sets.best_micro_f1(likely))
        > f1(label_sets.match_instances(likely, likely.sum(axis=1))) + 0.02
    )
    assert (
        f1(label_sets.best_micro_f1(likely)) > f1(label_sets.threshold(likely)) + 0.02
    )


@given(
    stored=hnp.arrays(
        np.float64, (3, 4), elements=st.sampled_from([0.0, 0.2, 0.5, 0.9])
    ),
    default=hnp.arrays(np.float64, 4, elements=st.sampled_from([0.0, 0.01])),
    total=st.integers(0, 12),
)
def test_totals_of_many_labels_are_those_of_their_table(stored, default, total):
    scores = SparseScores(sparse.csr_array(stored), default)
    named = stored > 0
    chosen = label_sets.match_total(scores, total).toarray()
    table = label_sets.match_total(
        np.where(named, stored + default, -1.0), min(total, int(named.sum()))
    )
    assert (chosen == table).all()


@given(
    scores=hnp.arrays(
        np.float64, (3, 4), elements=st.sampled_from([0.0, 0.2, 0.5, 0.9])
    ),
    total=st.integers(0, 15),
)
def test_as_many_labels_in_all_as_were_wanted(scores, total):
    chosen = label_sets.match_total(scores, total)
    wanted = min(total, 12)
    assert not (~chosen & (scores >= scores[chosen].min(initial=np.inf))).any()
    # As near to the number as sets can come that cut no group of equal scores.
    possible = {0, *((scores >= threshold).sum() for threshold in scores.ravel())}
    assert abs(chosen.sum() - wanted) == min(abs(size - wanted) for size in possible)
    filled = label_sets.match_total(scores, total, empty="top")
    assert filled.any(axis=1).all()
