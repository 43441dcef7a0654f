"""Label sets that maximize a metric are compared with all sets, one by one."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import mlconsensus as mlc
from mlconsensus.decision import METRICS, best_f1, best_hamming, best_micro_f1

probabilities_of_labels = arrays(
    np.float64, 5, elements=st.sampled_from([0.0, 0.05, 0.2, 0.4, 0.5, 0.7, 0.95, 1.0])
)


def f1(selected, relevant):
    total = sum(selected) + sum(relevant)
    if total == 0:
        return 1.0
    common = sum(a and b for a, b in zip(selected, relevant, strict=True))
    return 2 * common / total


def n_correct(selected, relevant):
    return sum(a == b for a, b in zip(selected, relevant, strict=True))


def precision(selected, relevant):
    common = sum(a and b for a, b in zip(selected, relevant, strict=True))
    return common / sum(selected)


def expect(metric, selected, p):
    """Return the expected metric, by all sets of relevant labels."""
    total = 0.0
    for relevant in product([False, True], repeat=len(p)):
        chance = np.prod(np.where(relevant, p, 1 - p))
        if chance > 0:
            total += chance * metric(selected, relevant)
    return total


@given(probabilities_of_labels)
def test_no_set_has_a_higher_expected_f1(p):
    (selected,) = best_f1([p])
    best = max(expect(f1, s, p) for s in product([False, True], repeat=5))
    assert expect(f1, selected, p) == pytest.approx(best, abs=1e-9)


@given(probabilities_of_labels)
def test_no_set_has_more_correct_pairs_on_average(p):
    (selected,) = best_hamming([p])
    best = max(expect(n_correct, s, p) for s in product([False, True], repeat=5))
    assert expect(n_correct, selected, p) == pytest.approx(best, abs=1e-9)


@given(probabilities_of_labels, st.integers(1, 5))
def test_no_set_of_k_labels_has_a_higher_expected_precision(p, k):
    (selected,) = mlc.decision.top_k([p], k)
    assert selected.sum() == k
    sets = [s for s in product([False, True], repeat=5) if sum(s) == k]
    best = max(expect(precision, s, p) for s in sets)
    assert expect(precision, selected, p) == pytest.approx(best, abs=1e-9)


@given(
    arrays(
        np.float64,
        (2, 4),
        elements=st.floats(0, 1, allow_subnormal=False).map(lambda x: round(x, 3)),
    )
)
def test_no_sets_have_a_higher_micro_f1_by_expected_numbers(p):
    def micro_f1(selected):
        return 2 * p[selected].sum() / max(selected.sum() + p.sum(), 1e-12)

    all_sets = product([False, True], repeat=8)
    best = max(micro_f1(np.reshape(s, (2, 4))) for s in all_sets)
    assert micro_f1(best_micro_f1(p)) == pytest.approx(best, abs=1e-9)


def test_expected_f1_of_many_labels_by_fewer_nodes_than_labels():
    """With equal probabilities, the number of relevant labels is binomial."""
    from scipy import stats

    n_labels = 200
    for p in (0.02, 0.3, 0.9):
        expected = [stats.binom.pmf(0, n_labels, p)]
        others = np.arange(n_labels)
        chance = stats.binom.pmf(others, n_labels - 1, p)
        for k in range(1, n_labels + 1):
            expected.append(2 * k * p * (chance / (k + 1 + others)).sum())
        count = best_f1(np.full((1, n_labels), p)).sum()
        assert expected[count] == pytest.approx(max(expected), abs=1e-9)


def test_empty_sets_can_get_their_best_label():
    p = [[0.1, 0.2, 0.1]]
    assert not best_f1(p).any()
    assert best_f1(p, empty="top").tolist() == [[False, True, False]]
    assert best_hamming(p, empty="top").tolist() == [[False, True, False]]
    assert best_f1(np.zeros((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("method", ["weighted_consensus", "mlcm_r"])
@pytest.mark.parametrize("has_gold", [False, True])
def test_a_consensus_has_the_sets_of_each_metric(method, has_gold):
    panel, truth = mlc.datasets.make_panel(60, 5, 4, random_state=0)
    gold = None
    if has_gold:
        gold = np.where(np.arange(60)[:, np.newaxis] < 20, truth, np.nan)
    consensus = mlc.combine(panel, method=method, gold=gold)
    p = consensus.probabilities
    is_open = np.ones(60, dtype=bool) if gold is None else np.isnan(gold[:, 0])
    for metric, expected in (("f1", best_f1(p)), ("hamming", best_hamming(p))):
        indicator = consensus.make_label_indicator(metric)
        np.testing.assert_array_equal(indicator[is_open], expected[is_open])
    np.testing.assert_array_equal(
        consensus.make_label_indicator("micro_f1"), consensus.label_indicator
    )
    top = consensus.make_label_indicator("top-k", k=2)
    assert (top[is_open].sum(axis=1) == 2).all()


def test_wrong_names_get_a_suggestion():
    panel, _ = mlc.datasets.make_panel(20, 4, 3, random_state=0)
    consensus = mlc.combine(panel)
    assert set(METRICS) == {"f1", "micro-f1", "hamming", "top-k"}
    with pytest.raises(mlc.InputError, match="did you mean 'hamming'"):
        consensus.make_label_indicator("haming")
    with pytest.raises(mlc.InputError, match="expected a number of labels with top-k"):
        consensus.make_label_indicator("top-k")
    with pytest.raises(mlc.InputError, match="found 3 with the metric f1"):
        consensus.make_label_indicator("f1", k=3)
