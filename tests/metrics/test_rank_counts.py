"""Counts compared with loops; metrics do not depend on the size of the blocks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlconsensus.metrics import _rank_counts, evaluate


@st.composite
def truths_and_scores(draw):
    n = draw(st.integers(1, 6))
    l = draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    levels = draw(st.sampled_from([1, 2, 3, 1000]))
    scores = (rng.integers(0, levels, (n, l)) / levels - 0.5).astype(
        draw(st.sampled_from(["f4", "f8"]))
    )
    return rng.random((n, l)) < draw(st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0])), scores


@given(example=truths_and_scores(), order=st.sampled_from("CF"))
def test_groups_are_those_of_a_count(example, order):
    truth, scores = example
    groups = _rank_counts.find_tie_groups(truth, np.asarray(scores, order=order))
    expected = []
    for i, (z, s) in enumerate(zip(truth, scores, strict=True)):
        for value in sorted({float(v) for v in s[z]}, reverse=True):
            above = s > value
            tied = s == value
            counts = (above.sum(), tied.sum(), (above & z).sum(), (tied & z).sum())
            expected.append([i, *counts])

    columns = (
        groups.instance,
        groups.above,
        groups.size,
        groups.relevant_above,
        groups.relevant,
    )
    assert np.column_stack(columns).tolist() == expected
    assert groups.n_relevant.tolist() == truth.sum(axis=1).tolist()


@given(
    example=truths_and_scores(),
    order=st.sampled_from("CF"),
    size=st.sampled_from([1, 4, 2**22]),
)
def test_pairs_are_those_of_a_count(example, order, size):
    truth, scores = example
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_rank_counts, "_SORTED_AT_ONCE", size)
        counted = _rank_counts.count_ordered_pairs(
            truth, np.asarray(scores, order=order)
        )
    positive = scores[truth]
    negative = scores[~truth]
    pairs = [(p > q, p == q) for p in positive for q in negative]
    assert counted == _rank_counts.OrderedPairs(
        total=len(pairs),
        won=sum(won for won, _ in pairs),
        tied=sum(tied for _, tied in pairs),
    )


@given(example=truths_and_scores(), size=st.sampled_from([1, 7, 20]))
def test_metrics_do_not_depend_on_the_blocks(example, size):
    expected = evaluate(*example)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_rank_counts, "_RANKED_AT_ONCE", size)
        assert evaluate(*example) == pytest.approx(expected, nan_ok=True)


def test_long_rows_and_tied_blocks():
    rng = np.random.default_rng(0)
    truth = rng.random((3, 5000)) < 0.3
    scores = rng.integers(0, 40, (3, 5000)) / 40
    groups = _rank_counts.find_tie_groups(truth, scores)
    for i, above, size in zip(groups.instance, groups.above, groups.size, strict=True):
        value = -np.sort(-scores[i])[int(above)]
        assert (scores[i] > value).sum() == above
        assert (scores[i] == value).sum() == size
    assert len(groups.instance) == 3 * 40
